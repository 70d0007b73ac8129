//! Files of processes whose reading waits for somebody, such as `/proc/PID/environ`: read within bounds of bytes and of time.
//!
//! The kernel reads them in the address space of the process they tell of, whose lock a thread that does not run may hold for ever, or whose
//! pages a filesystem of a user's never delivers; others are as long as the process likes. So a helper process reads them, which is killed if it
//! takes too long. A helper that does not even end then is the last one: as long as it is there, nothing of such files is known.

use std::ffi::{CString, c_int, c_void};
use std::io::{self, PipeReader, Read as _};
use std::ops::ControlFlow;
use std::os::fd::{AsRawFd as _, BorrowedFd, IntoRawFd as _, RawFd};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};

use crate::process::{Stat, scheduled_ns};
use crate::{pidfd, sched};

/// How long a file may take.
const LIMIT: Duration = Duration::from_millis(50);
/// How long it may take at most where both this process and its helper wait for a cpu.
const STARVED: Duration = Duration::from_secs(2);
/// How long a killed helper is waited for before it counts as one that does not end.
const DYING: Duration = Duration::from_millis(5);
/// How many files of one call may take too long before the others are given up.
const OVERRUNS: u32 = 3;
/// The stack of a helper.
const STACK: usize = 64 << 10;
/// A pipe passes on as many in one piece: a number and bytes of a file. POSIX has no less than 512 for it.
const PIECE: usize = 4096;
/// The number before a piece: how many bytes of the file follow, 0 at its end, or a negative error number.
const NUMBER: usize = size_of::<c_int>();

/// The helper that was killed and has not ended.
static HUNG: Mutex<Option<Helper>> = Mutex::new(None);

/// The first bytes of a file, at most `most_bytes`.
///
/// # Errors
/// [`io::ErrorKind::TimedOut`]: it cannot be known for now. Else in the system's words.
pub fn read(path: impl Into<Vec<u8>>, most_bytes: u64) -> io::Result<Vec<u8>> {
    read_at(path, 0, most_bytes)
}

/// The bytes of a file from `offset` on, at most `most_bytes`.
///
/// # Errors
/// As [`read`].
pub fn read_at(path: impl Into<Vec<u8>>, offset: u64, most_bytes: u64) -> io::Result<Vec<u8>> {
    let file = (CString::new(path)?, offset);
    let mut answer = Err(io::ErrorKind::TimedOut.into());
    read_in_turn(&HUNG, &[file], most_bytes, |_, read| {
        answer = read;
        ControlFlow::Continue(())
    });
    answer
}

/// [`read`] for many files, which costs one helper for all; `told` gets each one's place in the list and its bytes, reads none itself, and says
/// whether to go on. Where several take too long, those behind them are not read.
///
/// # Errors
/// When a path holds a NUL.
pub fn read_each<P: Into<Vec<u8>>>(
    paths: impl IntoIterator<Item = P>,
    most_bytes: u64,
    told: impl FnMut(usize, io::Result<Vec<u8>>) -> ControlFlow<()>,
) -> io::Result<()> {
    let files = paths.into_iter().map(|path| Ok((CString::new(path)?, 0)));
    let files: io::Result<Vec<_>> = files.collect();
    read_in_turn(&HUNG, &files?, most_bytes, told);
    Ok(())
}

fn read_in_turn(
    hung: &Mutex<Option<Helper>>,
    files: &[(CString, u64)],
    most_bytes: u64,
    mut told: impl FnMut(usize, io::Result<Vec<u8>>) -> ControlFlow<()>,
) {
    let unknown = || Err(io::ErrorKind::TimedOut.into());
    let mut hung = hung.lock().unwrap_or_else(PoisonError::into_inner);
    let mut left = 0..files.len();
    let mut overruns = 0;
    let mut goes_on = ControlFlow::Continue(());
    while goes_on.is_continue() && !left.is_empty() && overruns < OVERRUNS {
        if (hung.as_mut()).is_some_and(|helper| !helper.ended_within(Duration::ZERO)) {
            break;
        }
        *hung = None;
        let mut helper = match Helper::start(&files[left.clone()], most_bytes) {
            Ok(helper) => helper,
            Err(error) => {
                goes_on = left.next().map_or(goes_on, |file| told(file, Err(error)));
                continue;
            }
        };
        let mut in_time = true;
        while in_time
            && goes_on.is_continue()
            && let Some(file) = left.next()
        {
            let read = helper.next_file();
            in_time = read.is_some();
            goes_on = told(file, read.unwrap_or_else(unknown));
        }
        overruns += u32::from(!in_time);
        if !in_time || goes_on.is_break() {
            let _ = kill_process(helper.pid, Signal::KILL);
        }
        if !helper.ended_within(DYING) {
            *hung = Some(helper);
        }
    }
    for file in left {
        if goes_on.is_continue() {
            goes_on = told(file, unknown());
        }
    }
}

/// The task of a helper, at the top of its stack.
struct Work {
    files: *const (CString, u64),
    count: usize,
    most_bytes: u64,
    to: RawFd,
}

/// A process that shares this one's memory, so that making it copies none, and nothing else.
struct Helper {
    pid: Pid,
    from: PipeReader,
    patience: Duration,
    /// The kernel may still write to it until the helper has ended.
    _stack: Box<[u8]>,
}

impl Helper {
    fn start(files: &[(CString, u64)], most_bytes: u64) -> io::Result<Helper> {
        let (from, to) = io::pipe()?;
        let mut stack = vec![0; STACK].into_boxed_slice();
        let work = Work {
            files: files.as_ptr(),
            count: files.len(),
            most_bytes,
            to: to.as_raw_fd(),
        };
        let class = sched::get_class_and_reset(0);
        // SAFETY: the stack is aligned here, as is its content, and is kept until the helper has ended; so are the files and the work as long
        // as it runs any instruction of ours. No signal is handled in it.
        let pid = unsafe {
            let mut all = std::mem::zeroed::<libc::sigset_t>();
            let mut had = std::mem::zeroed::<libc::sigset_t>();
            libc::sigfillset(&raw mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut had);
            let top = stack.as_mut_ptr().add(STACK);
            let top = top.sub(top.addr() % 16 + 16 + size_of::<Work>().next_multiple_of(16));
            let kept = top.cast::<Work>();
            kept.write(work);
            let pid = libc::clone(help, top.cast(), libc::CLONE_VM, kept.cast());
            let error = io::Error::last_os_error();
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const had, std::ptr::null_mut());
            Pid::from_raw(pid.max(0)).ok_or(error)?
        };
        let mut patience = STARVED;
        if let Ok((class, resets_on_fork)) = class
            && class.is_real_time()
        {
            patience = LIMIT;
            // A class that children do not get is given to this one, so that no thread of a lower priority keeps it from running.
            if resets_on_fork && !matches!(class, sched::Class::Deadline { .. }) {
                let _ = sched::set_class(pid.as_raw_nonzero().get(), &class);
            }
        }
        Ok(Helper {
            pid,
            from,
            patience,
            _stack: stack,
        })
    }

    /// The next file; `None` if it takes too long.
    fn next_file(&mut self) -> Option<io::Result<Vec<u8>>> {
        let began = Instant::now();
        let mut bytes = Vec::new();
        loop {
            if !self.speaks(began) {
                return None;
            }
            let mut number = [0; NUMBER];
            // A piece is in the pipe as a whole.
            self.from.read_exact(&mut number).ok()?;
            match c_int::from_ne_bytes(number) {
                0 => return Some(Ok(bytes)),
                // The bytes read before a process ended may still tell its cell.
                ..0 if !bytes.is_empty() => return Some(Ok(bytes)),
                error @ ..0 => return Some(Err(io::Error::from_raw_os_error(-error))),
                more => {
                    let end = bytes.len() + more.unsigned_abs() as usize;
                    bytes.resize(end, 0);
                    let begin = end - more.unsigned_abs() as usize;
                    self.from.read_exact(&mut bytes[begin..]).ok()?;
                }
            }
        }
    }

    fn speaks(&self, began: Instant) -> bool {
        loop {
            let left = (began + self.patience).saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            if pidfd::ready_within(&self.from, left.min(LIMIT)) {
                return true;
            }
            if !self.is_starved() {
                return false;
            }
        }
    }

    /// Whether it waits for a cpu, and for nothing else.
    fn is_starved(&self) -> bool {
        let pid = self.pid.as_raw_nonzero().get();
        let runs = Stat::of(pid).and_then(|stat| stat.field(3)) == Some('R');
        let used = scheduled_ns(pid).ok().flatten().unwrap_or(i64::MAX);
        runs && u128::try_from(used).is_ok_and(|used| used < LIMIT.as_nanos())
    }

    /// Whether it has ended within this time, and been reaped.
    fn ended_within(&mut self, patience: Duration) -> bool {
        let mut flags = libc::__WALL | libc::WNOHANG;
        while pidfd::ready_within(&self.from, patience) {
            if !matches!(self.from.read(&mut [0; PIECE]), Ok(1..)) {
                // Nothing that could take long is left to it once its files are closed.
                flags = libc::__WALL;
                break;
            }
        }
        let pid = self.pid.as_raw_nonzero().get();
        // SAFETY: no memory is involved; a child that nobody else waits for, as it sends no signal at its end.
        unsafe { libc::waitpid(pid, std::ptr::null_mut(), flags) == pid }
    }
}

/// Reads the files one after the other. Its memory is another process's, so it allocates none.
extern "C" fn help(work: *mut c_void) -> c_int {
    // SAFETY: `start` has written it there.
    let work = unsafe { &*work.cast::<Work>() };
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    // While it hangs it is to hold nothing open that others wait for; where the kernel cannot close so (before Linux 5.9), it does.
    let to = work.to.unsigned_abs();
    let below = to.checked_sub(1).map(|last| (0, last));
    for (first, last) in below.into_iter().chain([(to + 1, u32::MAX)]) {
        // SAFETY: numbers of this process's own, of which it uses none but `to`.
        unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
    }
    // SAFETY: it stays open until the process ends; the files are kept as long.
    let (to, files) = unsafe {
        let files = std::slice::from_raw_parts(work.files, work.count);
        (BorrowedFd::borrow_raw(work.to), files)
    };
    for (path, offset) in files {
        let last = send(path, *offset, work.most_bytes, to).map_or_else(|error| -error, |()| 0);
        if rustix::io::write(to, &last.to_ne_bytes()).is_err() {
            break;
        }
    }
    0
}

fn send(path: &CString, mut offset: u64, most: u64, to: BorrowedFd<'_>) -> Result<(), c_int> {
    let number = |error: rustix::io::Errno| error.raw_os_error();
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = openat(CWD, path.as_c_str(), flags, Mode::empty()).map_err(number)?;
    let end = offset.saturating_add(most);
    let mut piece = [0; PIECE];
    let mut sent = Ok(());
    while offset < end && sent.is_ok() {
        let room = (PIECE - NUMBER).min(usize::try_from(end - offset).unwrap_or(usize::MAX));
        sent = match rustix::io::pread(&file, &mut piece[NUMBER..NUMBER + room], offset) {
            Ok(0) => break,
            Ok(length) => {
                offset += length as u64;
                let told = c_int::try_from(length).unwrap_or(0);
                piece[..NUMBER].copy_from_slice(&told.to_ne_bytes());
                let written = rustix::io::write(to, &piece[..NUMBER + length]);
                written.map(|_| ()).map_err(number)
            }
            Err(error) => Err(number(error)),
        };
    }
    // SAFETY: closed once; by the system call alone, as a C library may use the memory of the thread that started this process.
    unsafe { rustix::io::close(file.into_raw_fd()) };
    sent
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt as _;
    use std::process::{Command, Stdio};

    /// A file whose opening never ends.
    fn endless(dir: &tempfile::TempDir) -> CString {
        let path = dir.path().join("fifo");
        rustix::fs::mknodat(
            CWD,
            &path,
            rustix::fs::FileType::Fifo,
            Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        CString::new(path.as_os_str().as_bytes()).unwrap()
    }

    #[test]
    fn a_file_is_read_as_far_as_is_asked() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let text: Vec<u8> = (0..300_000_u32)
            .map(|number| number.to_le_bytes()[0])
            .collect();
        std::fs::write(&path, &text).unwrap();
        let path = path.as_os_str().as_bytes();
        assert_eq!(read(path, u64::MAX).unwrap(), text);
        assert_eq!(read(path, 4100).unwrap(), text[..4100]);
        assert_eq!(read_at(path, 7, 8).unwrap(), text[7..15]);
        assert!(read("/proc/self/cmdline", 0).unwrap().is_empty());
        let own = std::fs::read("/proc/self/environ").unwrap();
        let of_this = format!("/proc/{}/environ", std::process::id());
        assert_eq!(read(of_this, u64::MAX).unwrap(), own);
        let missing = read("/proc/0/environ", 9).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        assert!(read("/a\0", 9).is_err());
    }

    #[test]
    fn a_file_that_never_answers_is_unknown_and_those_behind_it_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let endless = endless(&dir);
        let file = |name: &[u8]| (CString::new(name).unwrap(), 0);
        let mut files = vec![file(b"/proc/version"), (endless.clone(), 0)];
        files.extend([file(b"/proc/version"), file(b"/nonexistent")]);
        let mut told = Vec::new();
        read_in_turn(&Mutex::new(None), &files, 1 << 20, |file, read| {
            told.push((
                file,
                read.map(|bytes| bytes.len()).map_err(|error| error.kind()),
            ));
            ControlFlow::Continue(())
        });
        let length = std::fs::read("/proc/version").unwrap().len();
        let expected = [
            (0, Ok(length)),
            (1, Err(io::ErrorKind::TimedOut)),
            (2, Ok(length)),
            (3, Err(io::ErrorKind::NotFound)),
        ];
        assert_eq!(told, expected);
        // So many do not make up for their number.
        let many = vec![(endless, 0); 1000];
        let mut unknown = 0;
        read_in_turn(&Mutex::new(None), &many, 9, |_, read| {
            unknown += usize::from(read.unwrap_err().kind() == io::ErrorKind::TimedOut);
            ControlFlow::Continue(())
        });
        assert_eq!(unknown, 1000);
        let mut first = Vec::new();
        read_in_turn(&Mutex::new(None), &files, 9, |file, _| {
            first.push(file);
            ControlFlow::Break(())
        });
        assert_eq!(first, [0]);
    }

    #[test]
    fn while_a_killed_helper_has_not_ended_nothing_is_read() {
        let mut child = Command::new("/bin/cat")
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let (from, to) = io::pipe().unwrap();
        let hung = Mutex::new(Some(Helper {
            pid: Pid::from_child(&child),
            from,
            patience: LIMIT,
            _stack: Box::default(),
        }));
        let files = [(CString::new("/proc/version").unwrap(), 0)];
        let is_read = || {
            let mut is_read = false;
            read_in_turn(&hung, &files, 9, |_, read| {
                is_read = read.is_ok();
                ControlFlow::Continue(())
            });
            is_read
        };
        assert!(!is_read());
        child.kill().unwrap();
        drop(to);
        assert!(is_read());
        // Reaped by then.
        child.wait().unwrap_err();
    }

    #[test]
    fn a_helper_keeps_nothing_open_and_handles_no_signal() {
        let dir = tempfile::tempdir().unwrap();
        let files = [(endless(&dir), 0)];
        let (mut from, to) = io::pipe().unwrap();
        let mut helper = Helper::start(&files, 9).unwrap();
        drop(to);
        // Waits as long as anybody could write.
        assert_eq!(from.read(&mut [0]).unwrap(), 0);
        let status = crate::process::status(helper.pid.as_raw_nonzero().get());
        let is_blocked =
            |signal| crate::process::has_signal(&status, "SigBlk", signal) == Some(true);
        assert!(is_blocked(libc::SIGTERM) && is_blocked(libc::SIGINT));
        let open = format!("/proc/{}/fd", helper.pid.as_raw_nonzero());
        while std::fs::read_dir(&open).unwrap().count() != 1 {}
        kill_process(helper.pid, Signal::KILL).unwrap();
        assert!(helper.ended_within(STARVED));
    }
}
