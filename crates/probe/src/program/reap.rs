//! Children are reaped in class OTHER.
//!
//! Reaping a process takes its entries in `/proc` apart. While one of them is on its way out by somebody else, the kernel looks again and
//! again until it is gone (`shrink_dcache_parent` of fs/dcache.c). A thread of that process which is just ending is somebody else, too:
//! where the reaping thread is of a real-time class on the same cpu and above it, that thread never gets on, and both stand still for ever,
//! with everything below them on that cpu. So the measuring thread only learns that a process has ended.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::FromRawFd;
use std::thread::JoinHandle;

use host::sched::{self, Class};

/// The status of a child that has ended, which remains to be reaped; `None` with WNOHANG while it has not, and where there is no such child.
pub fn ended(pid: libc::pid_t, flags: libc::c_int) -> Option<i32> {
    let how = libc::WEXITED | libc::WNOWAIT | flags;
    loop {
        // SAFETY: siginfo_t is plain data, and valid for the write.
        let (answer, told) = unsafe {
            let mut told: libc::siginfo_t = std::mem::zeroed();
            let answer = libc::waitid(libc::P_PID, pid.unsigned_abs(), &raw mut told, how);
            (answer, told)
        };
        // SAFETY: waitid fills in these fields, or has left them 0.
        let (of, status) = unsafe { (told.si_pid(), told.si_status()) };
        match answer {
            0 if of == pid => {
                return Some(match told.si_code {
                    libc::CLD_EXITED => (status & 0xff) << 8,
                    libc::CLD_DUMPED => status | 0x80,
                    _ => status,
                });
            }
            0 => return None,
            // SAFETY: the address is valid for the calling thread.
            _ if unsafe { *libc::__errno_location() } != libc::EINTR => return None,
            _ => (),
        }
    }
}

/// Reaps a child that has ended. The calling thread is of class OTHER then.
pub fn reap(pid: libc::pid_t) {
    // A cell without this right has no real-time class.
    let _ = sched::set_class(0, &Class::Other);
    // SAFETY: no status is asked for.
    while unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) } == -1
        // SAFETY: the address is valid for the calling thread.
        && unsafe { *libc::__errno_location() } == libc::EINTR
    {}
}

/// A thread of class OTHER that reaps one child after the other.
pub struct Reaper {
    /// Pids, which it reads: a pipe takes them without waiting, and without an allocation.
    pids: Option<File>,
    thread: Option<JoinHandle<()>>,
}

impl Reaper {
    /// Starts it.
    ///
    /// # Errors
    /// An errno: no more threads or descriptors.
    pub fn start() -> Result<Reaper, i32> {
        let mut ends = [0; 2];
        // SAFETY: the array is valid for the write.
        if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
            return Err(std::io::Error::last_os_error()
                .raw_os_error()
                .unwrap_or(libc::EIO));
        }
        // SAFETY: both descriptors are new and nobody else's.
        let [mut from, to] = ends.map(|end| unsafe { File::from_raw_fd(end) });
        let work = move || {
            let mut pid = [0; size_of::<libc::pid_t>()];
            while from.read_exact(&mut pid).is_ok() {
                reap(libc::pid_t::from_ne_bytes(pid));
            }
        };
        let thread = std::thread::Builder::new().stack_size(64 << 10).spawn(work);
        let thread = thread.map_err(|error| error.raw_os_error().unwrap_or(libc::EAGAIN))?;
        Ok(Reaper {
            pids: Some(to),
            thread: Some(thread),
        })
    }

    /// Leaves a child that has ended to it.
    pub fn take(&self, pid: libc::pid_t) {
        if let Some(mut pids) = self.pids.as_ref() {
            // It has room for more pids than a cell may have processes.
            let _ = pids.write_all(&pid.to_ne_bytes());
        }
    }
}

impl Drop for Reaper {
    /// Waits until all are reaped.
    fn drop(&mut self) {
        self.pids = None;
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
