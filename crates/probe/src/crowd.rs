//! Threads that want the cpu whenever the payload of a supply study does, one step less urgent: they get it only where that one stops
//! before them, as while a budget that they share is taken away.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

use host::sched::{Class, SchedError};

use crate::arm;

/// Stack of each, bytes: it calls nothing deep, and is locked in memory.
const STACK_BYTES: usize = 64 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    Rest,
    Spin,
    End,
}

struct Shared {
    turn: Mutex<Turn>,
    told: Condvar,
    /// The same as `turn` is `Spin`, without a lock.
    spins: AtomicBool,
}

impl Shared {
    fn turn(&self) -> MutexGuard<'_, Turn> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, turn: Turn) {
        *self.turn() = turn;
        self.spins.store(turn == Turn::Spin, Relaxed);
        self.told.notify_all();
    }

    fn live(&self) {
        loop {
            let mut turn = self.turn();
            while *turn == Turn::Rest {
                turn = (self.told.wait(turn)).unwrap_or_else(PoisonError::into_inner);
            }
            if *turn == Turn::End {
                return;
            }
            drop(turn);
            while self.spins.load(Relaxed) {
                std::hint::spin_loop();
            }
        }
    }
}

/// The threads; they end when it is dropped.
pub(crate) struct Crowd {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Crowd {
    /// So many threads of this class on the cpus of the caller, resting. Returns once all have their class.
    ///
    /// # Errors
    /// When there are too many threads, or the class is refused.
    pub(crate) fn of(count: u32, class: &Class) -> Result<Crowd, i32> {
        let shared = Arc::new(Shared {
            turn: Mutex::new(Turn::Rest),
            told: Condvar::new(),
            spins: AtomicBool::new(false),
        });
        let mut crowd = Crowd {
            shared,
            threads: Vec::new(),
        };
        let (tell, told) = channel();
        for _ in 0..count {
            let thread = crowd.start(class.clone(), tell.clone());
            crowd
                .threads
                .push(thread.map_err(|error| error.raw_os_error().unwrap_or(libc::EAGAIN))?);
        }
        for _ in 0..count {
            let taken = told.recv().map_err(|_| libc::EIO)?;
            taken.map_err(|error| error.errno())?;
        }
        Ok(crowd)
    }

    fn start(
        &self,
        class: Class,
        tell: Sender<Result<(), SchedError>>,
    ) -> io::Result<JoinHandle<()>> {
        let shared = Arc::clone(&self.shared);
        Builder::new().stack_size(STACK_BYTES).spawn(move || {
            let taken = arm::take_class(&class);
            let is_ready = taken.is_ok();
            let _ = tell.send(taken);
            if is_ready {
                shared.live();
            }
        })
    }

    /// They want the cpu from now on.
    pub(crate) fn spin(&self) {
        if !self.threads.is_empty() {
            self.shared.tell(Turn::Spin);
        }
    }

    /// They want it no more, once they have had it to see that.
    pub(crate) fn rest(&self) {
        if !self.threads.is_empty() {
            self.shared.tell(Turn::Rest);
        }
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.shared.tell(Turn::End);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::thread::JoinHandleExt;
    use std::time::{Duration, Instant};

    use super::*;

    const MS: i64 = 1_000_000;

    /// The clock of a thread's cpu time.
    fn clock_of(thread: &JoinHandle<()>) -> libc::clockid_t {
        let mut clock = 0;
        // SAFETY: the thread has not been joined, and the pointer is to a number of this frame.
        // A number in one C library, a pointer in the other.
        let refused =
            unsafe { libc::pthread_getcpuclockid(thread.as_pthread_t() as _, &raw mut clock) };
        assert_eq!(refused, 0);
        clock
    }

    fn used(crowd: &Crowd) -> Vec<i64> {
        let clocks = crowd.threads.iter().map(clock_of);
        clocks.map(crate::clock::read).collect()
    }

    /// Whether all of them wait for something.
    fn sleep(crowd: &Crowd) -> bool {
        crowd.threads.iter().all(|thread| {
            // The kernel's number of the clock of a thread is the thread's own, inverted, above three bits.
            let tid = !(clock_of(thread) >> 3);
            let stat = std::fs::read_to_string(format!("/proc/self/task/{tid}/stat")).unwrap();
            let (_, after) = stat.rsplit_once(") ").unwrap();
            after.starts_with('S')
        })
    }

    /// Until it is so, or 20 s are over; whether it is.
    fn soon(is: impl Fn() -> bool) -> bool {
        let until = Instant::now() + Duration::from_secs(20);
        while !is() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
        is()
    }

    #[test]
    fn they_use_the_cpu_only_while_they_are_to() {
        let crowd = Crowd::of(2, &Class::Other).unwrap();
        let rests = || {
            assert!(soon(|| sleep(&crowd)));
            let before = used(&crowd);
            std::thread::sleep(Duration::from_millis(30));
            let grown = used(&crowd).into_iter().zip(before);
            grown.for_each(|(now, before)| assert!(now - before < MS, "{now} {before}"));
        };
        rests();
        let before = used(&crowd);
        crowd.spin();
        assert!(soon(|| {
            let grown = used(&crowd).into_iter().zip(&before);
            grown
                .into_iter()
                .all(|(now, before)| now - before >= 10 * MS)
        }));
        crowd.rest();
        rests();
        drop(crowd);
        assert!(Crowd::of(0, &Class::Other).unwrap().threads.is_empty());
    }
}
