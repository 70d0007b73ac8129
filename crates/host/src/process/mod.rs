//! The kernel's reports of processes and threads in `/proc`: which exist, names, start times, cpu time, memory, whether one is dying;
//! and the calling thread's id. That a process has ended is an answer (`None`); that the kernel does not report the time or memory of a
//! live one is an error, so that neither is mistaken for 0.

mod stat;

use std::fs;
use std::io;
use std::path::Path;

use crate::bounded;
use crate::root::Root;

pub use stat::Stat;
use stat::first_line;

/// Id of the calling thread.
///
/// By the system call, because `libc::gettid` is null in a static binary built with fat LTO (the standard library
/// declares it weak).
pub fn thread_id() -> i32 {
    // SAFETY: no arguments, cannot fail.
    let id = unsafe { libc::syscall(libc::SYS_gettid) };
    i32::try_from(id).expect("ids of threads are ints")
}

/// The kernel's name of a process, or of any thread by its id; `None` once it is gone.
pub fn name(tid: i32) -> Option<String> {
    first_line(&format!("/proc/{tid}/comm"))
}

/// The processes that there are.
pub fn all() -> Vec<i32> {
    numbers("/proc")
}

/// The threads of a process; none of one that is gone.
pub fn threads(pid: i32) -> Vec<i32> {
    numbers(&format!("/proc/{pid}/task"))
}

fn numbers(dir: &str) -> Vec<i32> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    (entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())).collect()
}

/// When a process, or a thread by its id, was started, in clock ticks since boot; `None`: it has ended.
pub fn start_ticks(tid: i32) -> Option<u64> {
    Stat::of(tid)
        .filter(|stat| !stat.has_ended())?
        .start_ticks()
}

/// Where the kernel's name for this boot is.
pub const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The kernel's name for this boot.
///
/// # Errors
/// When [`BOOT_ID`] cannot be read.
pub fn boot_id() -> io::Result<String> {
    Ok(crate::file::text(BOOT_ID)?.trim().to_owned())
}

/// The text of `/proc/PID/status` of a process, or of any thread by its id; nothing once it is gone.
pub fn status(tid: i32) -> String {
    Root::live()
        .read(format!("/proc/{tid}/status"))
        .unwrap_or_default()
}

/// The value after `key:` in a text of such lines, trimmed.
pub fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let of_key = |line: &'a str| line.strip_prefix(key)?.strip_prefix(':').map(str::trim);
    text.lines().find_map(of_key)
}

/// Whether a signal is in one of the sets of a [`status`]; `None`: it has no such set.
pub fn has_signal(status: &str, key: &str, signal: i32) -> Option<bool> {
    let set = u64::from_str_radix(value(status, key)?, 16).ok()?;
    Some(is_in(set, signal))
}

/// Whether a signal is in a set of the kernel's.
pub fn is_in(set: u64, signal: i32) -> bool {
    set & (1 << (signal - 1).clamp(0, 63)) != 0
}

/// The effective user of a process; `None` once it is gone.
pub fn user(pid: i32) -> Option<u32> {
    let status = status(pid);
    value(&status, "Uid")?
        .split_whitespace()
        .nth(1)?
        .parse()
        .ok()
}

/// Whether a process is about to end: SIGKILL waits for it, or it has begun to exit (PF_EXITING, PF_SIGNALED). Nobody
/// can take either back. One that is gone is not dying.
pub fn is_dying(pid: i32) -> bool {
    const EXITING: u64 = 0x4;
    const SIGNALED: u64 = 0x400;
    let status = status(pid);
    let is_pending = |key: &&str| has_signal(&status, key, libc::SIGKILL) == Some(true);
    ["SigPnd", "ShdPnd"].iter().any(is_pending)
        || Stat::of(pid).is_some_and(|stat| stat.has_flag(EXITING | SIGNALED))
}

/// The kind of thing behind a number in `/proc`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A process of a program.
    Program,
    /// A thread, and not the first, of this process.
    ThreadOf(i32),
    /// A thread of the kernel's own.
    Kernel,
}

/// The kind of thing that has this id now, by `Tgid` of its status and the flags of its stat; `None`: nothing has.
pub fn kind(pid: i32) -> Option<Kind> {
    let leader: i32 = value(&status(pid), "Tgid")?.parse().ok()?;
    let stat = Stat::of(pid)?;
    Some(match leader == pid {
        _ if stat.is_kernels() => Kind::Kernel,
        true => Kind::Program,
        false => Kind::ThreadOf(leader),
    })
}

/// Cpu time so far of a process's first thread, or of any thread by its id, ns, not negative; `None` once it is gone. A
/// process that has ended and is not waited for yet still has its time.
///
/// `sum_exec_runtime` of the scheduler, the first number of `/proc/PID/schedstat` (Documentation/scheduler/sched-stats.rst
/// of the kernel). Reading takes no lock, so it is as old as the thread's last tick or switch.
///
/// # Errors
/// When the kernel keeps no `schedstat` (built without CONFIG_SCHED_INFO), does not let it be read, or it is malformed.
pub fn scheduled_ns(pid: i32) -> io::Result<Option<i64>> {
    let path = format!("/proc/{pid}/schedstat");
    let Some(text) = text_of(pid, &path)? else {
        return Ok(None);
    };
    match scheduled_in(text.as_bytes()) {
        Some(ns) => Ok(Some(ns)),
        None => Err(malformed(&path, "not a number of nanoseconds")),
    }
}

/// The cpu time, ns, in the text of a `schedstat` that was read elsewhere; `None` where there is none.
pub fn scheduled_in(schedstat: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(schedstat).ok()?;
    text.split_whitespace().next()?.parse().ok()
}

/// Cpu time so far of all threads that a process has now, ns; `None` once it is gone. The time of threads that have
/// ended is not in it: the sum may fall.
///
/// # Errors
/// As [`scheduled_ns`].
pub fn cpu_ns_of_threads(pid: i32) -> io::Result<Option<i64>> {
    let path = format!("/proc/{pid}/task");
    let tasks = match fs::read_dir(&path) {
        Err(error) => return gone_or(pid, &path, &error),
        Ok(tasks) => tasks,
    };
    let mut sum = None;
    for task in tasks {
        let name = match task {
            Err(error) => return gone_or(pid, &path, &error),
            Ok(task) => task.file_name(),
        };
        let Some(tid) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        if let Some(ns) = scheduled_ns(tid)? {
            sum = Some(sum.unwrap_or(0) + ns);
        }
    }
    Ok(sum)
}

/// [`scheduled_ns`] of several processes with one thread each, in their order.
///
/// # Errors
/// As [`scheduled_ns`], at the first.
pub fn cpu_ns(pids: &[i32]) -> io::Result<Vec<Option<i64>>> {
    pids.iter().map(|pid| scheduled_ns(*pid)).collect()
}

/// Memory of a process that is in RAM, bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Resident {
    /// Proportional set: a page that n processes share counts as its n-th part.
    pub pss_bytes: u64,
    /// Resident set: every page counts whole.
    pub rss_bytes: u64,
}

impl Resident {
    /// Of process `pid`, from `/proc/PID/smaps_rollup` (proc(5)); `None` for one that has no memory: it has ended,
    /// waited for or not, or it is the kernel's own.
    ///
    /// # Errors
    /// When the kernel does not report it (before Linux 4.14, without CONFIG_PROC_PAGE_MONITOR), or not to this user.
    pub fn of(pid: i32) -> io::Result<Option<Resident>> {
        const MOST_BYTES: u64 = 4096;
        let path = format!("/proc/{pid}/smaps_rollup");
        let text = match bounded::read(path.as_str(), MOST_BYTES) {
            Ok(text) => String::from_utf8_lossy(&text).into_owned(),
            Err(error) => return gone_or(pid, &path, &error),
        };
        if text.is_empty() {
            return Ok(None);
        }
        let told = Resident::in_rollup(&text);
        told.map(Some)
            .ok_or_else(|| malformed(&path, "no Pss or no Rss"))
    }

    fn in_rollup(text: &str) -> Option<Resident> {
        Some(Resident {
            pss_bytes: bytes(text, "Pss")?,
            rss_bytes: bytes(text, "Rss")?,
        })
    }
}

/// Address space that a process has mapped, in RAM or not, bytes: `VmSize` of `/proc/PID/status`, the total that pmap
/// prints; `None` for a process without memory, as [`Resident::of`].
///
/// # Errors
/// When the file cannot be read.
pub fn mapped_bytes(pid: i32) -> io::Result<Option<u64>> {
    let text = text_of(pid, &format!("/proc/{pid}/status"))?;
    Ok(text.and_then(|text| bytes(&text, "VmSize")))
}

/// The bytes in the line `key: N kB` (the kernel's kB are 1,024 bytes) of a text as in `/proc/meminfo`; `None` without
/// such a line, or where it holds something else.
pub fn bytes(text: &str, key: &str) -> Option<u64> {
    let kib: u64 = value(text, key)?
        .strip_suffix("kB")?
        .trim_end()
        .parse()
        .ok()?;
    kib.checked_mul(1024)
}

/// One tick of the times in `/proc` (USER_HZ), ns: 10 ms on every usual Linux.
pub fn tick_ns() -> i64 {
    const USUAL: i64 = 100;
    // SAFETY: no memory is involved.
    let per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    1_000_000_000 / if per_second > 0 { per_second } else { USUAL }
}

/// The text of a file of process `pid`; `None` if the process is gone.
fn text_of(pid: i32, path: &str) -> io::Result<Option<String>> {
    match crate::file::text(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) => gone_or(pid, path, &error),
    }
}

/// `None` if the error only says that the process is gone, or has no memory any more.
fn gone_or<T>(pid: i32, path: &str, error: &io::Error) -> io::Result<Option<T>> {
    let gone =
        error.raw_os_error() == Some(libc::ESRCH) || !Path::new(&format!("/proc/{pid}")).exists();
    match gone {
        true => Ok(None),
        false => Err(io::Error::new(error.kind(), format!("{path}: {error}"))),
    }
}

fn malformed(path: &str, what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{path}: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::process::{Command, Stdio};

    /// The kernel's largest pid is 2^22.
    const NOBODY: i32 = i32::MAX;

    fn own() -> i32 {
        std::process::id().cast_signed()
    }

    #[test]
    fn a_number_is_a_process_a_thread_or_the_kernels() {
        assert_eq!(kind(own()), Some(Kind::Program));
        assert_eq!(kind(NOBODY), None);
        let (tell, told) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            tell.send(thread_id()).unwrap();
            let _ = ended.recv();
        });
        assert_eq!(kind(told.recv().unwrap()), Some(Kind::ThreadOf(own())));
        drop(end);
        thread.join().unwrap();
        // kthreadd, but not in every pid namespace.
        if std::fs::read_to_string("/proc/2/comm").is_ok_and(|name| name.trim() == "kthreadd") {
            assert_eq!(kind(2), Some(Kind::Kernel));
        }
    }

    #[test]
    fn a_process_is_dying_from_its_kill_until_it_is_gone() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let pid = child.id().cast_signed();
        assert!(!is_dying(pid));
        child.kill().unwrap();
        assert!(is_dying(pid));
        child.wait().unwrap();
        assert!(!is_dying(pid));
    }

    #[test]
    fn this_process_takes_time_and_memory() {
        let resident = Resident::of(own()).unwrap().unwrap();
        let mapped = mapped_bytes(own()).unwrap().unwrap();
        assert!(0 < resident.pss_bytes && resident.pss_bytes <= resident.rss_bytes);
        assert!(resident.rss_bytes <= mapped);
        // The thread of a test has a time of its own, which is part of the whole.
        let thread = thread_id();
        let before = scheduled_ns(thread).unwrap().unwrap();
        let began = std::time::Instant::now();
        let mut after = before;
        while after < before + 20_000_000 && began.elapsed().as_secs() < 60 {
            after = scheduled_ns(thread).unwrap().unwrap();
        }
        assert!(after >= before + 20_000_000, "{before} {after}");
        assert!(cpu_ns_of_threads(own()).unwrap().unwrap() >= after);
    }

    #[test]
    fn who_is_gone_is_told_from_who_has_ended() {
        assert_eq!(scheduled_ns(NOBODY).unwrap(), None);
        assert_eq!(cpu_ns_of_threads(NOBODY).unwrap(), None);
        assert_eq!(Resident::of(NOBODY).unwrap(), None);
        assert_eq!(mapped_bytes(NOBODY).unwrap(), None);
        let mut child = Command::new("true").stdin(Stdio::null()).spawn().unwrap();
        let pid = child.id().cast_signed();
        // SAFETY: plain data that the call fills in; the child is left to be waited for.
        let ended = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            libc::waitid(
                libc::P_PID,
                child.id(),
                &raw mut info,
                libc::WEXITED | libc::WNOWAIT,
            )
        };
        assert_eq!(ended, 0);
        assert_eq!(Resident::of(pid).unwrap(), None);
        assert_eq!(mapped_bytes(pid).unwrap(), None);
        assert!(scheduled_ns(pid).unwrap() > Some(0));
        assert!(cpu_ns_of_threads(pid).unwrap() > Some(0));
        let both = cpu_ns(&[pid, NOBODY]).unwrap();
        assert!(both[0].is_some() && both[1].is_none());
        child.wait().unwrap();
        assert_eq!(scheduled_ns(pid).unwrap(), None);
    }

    #[test]
    fn what_is_not_told_of_the_living_is_an_error() {
        let path = format!("/proc/{}/no-such-file", own());
        let error = text_of(own(), &path).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(error.to_string().starts_with(&path), "{error}");
    }

    #[test]
    fn the_kernels_words_are_read() {
        let rollup = "5555-7fff ---p 00000000 00:00 0 [rollup]\nRss:   1768 kB\nPss_Dirty: 1 kB\nPss:  207 kB\n";
        let resident = Resident {
            pss_bytes: 207 * 1024,
            rss_bytes: 1768 * 1024,
        };
        assert_eq!(Resident::in_rollup(rollup), Some(resident));
        assert_eq!(Resident::in_rollup("Rss: 5 kB\n"), None);
        let status = "Name:\tx\nVmPeak:\t  9000 kB\nVmSize:\t    8192 kB\n";
        assert_eq!(bytes(status, "VmSize"), Some(8 << 20));
        assert_eq!(bytes(status, "Name"), None);
        assert_eq!(bytes("Rss: 18446744073709551615 kB", "Rss"), None);
        assert_eq!(scheduled_in(b"1234 5 6\n"), Some(1234));
        assert_eq!(scheduled_in(b""), None);
        assert_eq!(scheduled_in(b"\xff 5 6"), None);
        assert!((1_000_000..=10_000_000).contains(&tick_ns()));
    }

    proptest! {
        #[test]
        fn any_number_that_is_written_is_read(kib in 0u64..1 << 50, gap in "[ \t]{1,9}", before in "([A-Z][a-z_]{1,9}: +[0-9]{1,9} kB\n){0,4}") {
            let text = format!("{before}Own:{gap}{kib} kB\n");
            prop_assert_eq!(bytes(&text, "Own"), bytes(&before, "Own").or(Some(kib * 1024)));
        }

        #[test]
        fn no_text_is_too_strange(text in any::<String>(), raw in any::<Vec<u8>>()) {
            let _ = (bytes(&text, "Rss"), Resident::in_rollup(&text), scheduled_in(&raw));
        }
    }
}
