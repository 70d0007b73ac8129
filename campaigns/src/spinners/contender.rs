//! Competitors of the cells from outside: ordinary work on the same cpu, and a thread of higher priority that waits for
//! a mutex which a cell holds.

use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

use host::sched::{self, Class};

use super::Failure;
use super::cell::{self, Behaviour, Shared};

/// A process of class OTHER that spins beside the cells; killed when it is dropped.
pub struct Ordinary(Option<i32>);

impl Ordinary {
    /// Beside cells that try to escape: their work in class IDLE then shows.
    pub fn start(cpu: u32, behaviour: Behaviour) -> Result<Ordinary, Failure> {
        if matches!(behaviour, Behaviour::Spin | Behaviour::Sleep) {
            return Ok(Ordinary(None));
        }
        let pid = cell::child(|| {
            let _ = sched::set_affinity(0, &[cpu]);
            loop {
                std::hint::spin_loop();
            }
        })?;
        Ok(Ordinary(Some(pid)))
    }

    pub fn used_ns(&self) -> i64 {
        self.0.map_or(0, cell::cpu_ns)
    }
}

impl Drop for Ordinary {
    fn drop(&mut self) {
        if let Some(pid) = self.0 {
            // SAFETY: our own child, not waited for yet but by its death.
            unsafe {
                libc::kill(pid, libc::SIGKILL);
                libc::waitpid(pid, std::ptr::null_mut(), 0);
            }
        }
    }
}

/// A process of class FIFO 90 that waits for the cell's mutex for ever, once the cell holds it.
pub fn wait_for_mutex(cpu: u32, shared: &'static Shared) -> Result<(), Failure> {
    cell::child(|| {
        let _ = sched::set_affinity(0, &[cpu]);
        let _ = sched::set_class(0, &Class::Fifo { priority: 90 });
        while shared.mutex.load(SeqCst) == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        lock(&shared.mutex);
    })
    .map(drop)
}

/// Locks a futex with priority inheritance.
pub fn lock(mutex: &AtomicU32) {
    // SAFETY: the kernel reads and writes the one word, which lives as long as the process.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_futex,
            mutex.as_ptr(),
            libc::FUTEX_LOCK_PI,
            0,
            std::ptr::null::<libc::timespec>(),
        )
    };
    if answer != 0 {
        eprintln!("futex: {}", std::io::Error::last_os_error());
    }
}
