//! The floor under every container engine: one clone3 with the namespaces, one pivot_root, one execve.
//!
//! No OCI, no cgroup, no capabilities dropped: the least that a container engine can do.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use probe::clock;

/// Arguments prepared before the clone: between clone and exec nothing may be allocated.
pub(crate) struct Floor {
    root: CString,
    program: CString,
    words: Vec<CString>,
}

#[repr(C)]
#[derive(Default)]
struct CloneArgs {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
}

impl Floor {
    /// A launcher of `/timecell words...` in `rootfs`.
    pub(crate) fn new(rootfs: &Path, words: &[String]) -> io::Result<Floor> {
        let c = |text: &[u8]| CString::new(text).map_err(io::Error::other);
        Ok(Floor {
            root: c(rootfs.as_os_str().as_bytes())?,
            program: c(b"/timecell")?,
            words: words
                .iter()
                .map(|word| c(word.as_bytes()))
                .collect::<io::Result<_>>()?,
        })
    }

    /// Launches and waits for the end; the exit code, and when the clone was made, CLOCK_MONOTONIC ns.
    pub(crate) fn run(&self) -> io::Result<(i32, i64)> {
        let mut argv: Vec<*const libc::c_char> = vec![self.program.as_ptr()];
        argv.extend(self.words.iter().map(|word| word.as_ptr()));
        argv.push(std::ptr::null());
        let flags = libc::CLONE_NEWNS
            | libc::CLONE_NEWPID
            | libc::CLONE_NEWNET
            | libc::CLONE_NEWIPC
            | libc::CLONE_NEWUTS;
        let args = CloneArgs {
            flags: u64::from(flags.cast_unsigned()),
            exit_signal: libc::SIGCHLD as u64,
            ..CloneArgs::default()
        };
        // SAFETY: as fork: the child runs on a copy of this stack, calls only raw system calls, and ends in
        // execve or _exit.
        let pid = unsafe {
            let size = size_of::<CloneArgs>();
            libc::syscall(libc::SYS_clone3, &raw const args, size)
        };
        if pid < 0 {
            return Err(io::Error::last_os_error());
        }
        if pid == 0 {
            // SAFETY: all pointers were prepared before the clone and live in the copied memory.
            unsafe {
                self.enter();
                libc::execve(self.program.as_ptr(), argv.as_ptr(), std::ptr::null());
                libc::_exit(127);
            }
        }
        let cloned_ns = clock::now();
        let mut status = 0;
        // SAFETY: our own child.
        unsafe { libc::waitpid(pid as i32, &raw mut status, 0) };
        let code = if libc::WIFEXITED(status) {
            libc::WEXITSTATUS(status)
        } else {
            -1
        };
        Ok((code, cloned_ns))
    }

    /// In the child: private mounts, the new root, a new /proc.
    unsafe fn enter(&self) {
        const DOT: &std::ffi::CStr = c".";
        let none = std::ptr::null();
        let root = self.root.as_ptr();
        // SAFETY: C strings that live as long as self; a failure ends the child with a code of its own.
        unsafe {
            let private = libc::MS_REC | libc::MS_PRIVATE;
            if libc::mount(none, c"/".as_ptr(), none, private, none.cast()) != 0
                || libc::mount(root, root, none, libc::MS_BIND | libc::MS_REC, none.cast()) != 0
                || libc::chdir(root) != 0
                || libc::syscall(libc::SYS_pivot_root, DOT.as_ptr(), DOT.as_ptr()) != 0
                || libc::umount2(DOT.as_ptr(), libc::MNT_DETACH) != 0
                || libc::chdir(c"/".as_ptr()) != 0
                || libc::mount(
                    c"proc".as_ptr(),
                    c"/proc".as_ptr(),
                    c"proc".as_ptr(),
                    0,
                    none.cast(),
                ) != 0
            {
                libc::_exit(126);
            }
        }
    }
}
