//! Asking a program to end by a signal. The first process of a cell gets only signals that it handles: where the kernel would drop one,
//! the program is killed, as the signal would have ended it anywhere else. A blocked signal stays pending until it is unblocked and may be
//! dropped then: a C library blocks all signals while it creates a process. A program that waits for the signal with sigwait or a
//! signalfd receives it.

use std::fs::{self, DirEntry};
use std::io;
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;

use host::bounded;
use host::pidfd::send;
use host::process::{has_signal, is_in, status, value};

/// How many looks must find the signal unheard before the program is killed: a signal sent earlier may have been taken.
const DROPPED_LOOKS: u8 = 5;
/// How many looks in a row must find the signal blocked and not pending before it counts as taken: a program that keeps creating processes is often
/// seen so.
const BLOCKED_LOOKS: u8 = 10;
/// The most file descriptors of a program that are searched for a signalfd.
const MOST_FILES: usize = 1024;
/// The most bytes that are read about a system call, or about a signalfd.
const MOST_BYTES: u64 = 4096;

/// The outcome of asking a program to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asking {
    /// The program handles or ignores it as it likes.
    Heard,
    /// It blocks the signal for now, and the kernel may drop it later: call [`super::AppCell::ask_again`].
    Blocked(Looks),
    /// It does not handle the signal, and is killed.
    Killed,
}

/// Observations since a sent signal stopped being pending.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Looks {
    /// How often another signal would have been dropped.
    dropped: u8,
    /// How often in a row it was found blocked.
    blocked: u8,
}

/// The fate of a signal that is sent to a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// The program handles or ignores it, or it ends the program.
    Heard,
    /// The kernel drops it where it would end any other process.
    Dropped,
    /// It is blocked, and has no handler.
    Blocked,
}

/// Asks the program to end by this signal.
///
/// # Errors
/// In the kernel's words; ESRCH after its end.
pub(super) fn to_end(pid: i32, pidfd: &OwnedFd, signal: i32) -> io::Result<Asking> {
    let (sent, asking) = match fate_now(pid, signal) {
        Fate::Dropped => (libc::SIGKILL, Asking::Killed),
        Fate::Heard => (signal, Asking::Heard),
        Fate::Blocked if has_signalfd(pid, signal) => (signal, Asking::Heard),
        Fate::Blocked => (signal, Asking::Blocked(Looks::default())),
    };
    send(pidfd, sent)?;
    Ok(asking)
}

/// Ends a program that was asked by this signal while it blocked it, if the kernel has dropped it since. One that goes on blocking it while it is no
/// longer pending has taken it by itself. `looks` are the observations before.
///
/// # Errors
/// As [`to_end`].
pub(super) fn again(pid: i32, pidfd: &OwnedFd, signal: i32, looks: Looks) -> io::Result<Asking> {
    let status = status(pid);
    let is_pending = |key| has_signal(&status, key, signal) == Some(true);
    if is_pending("SigPnd") || is_pending("ShdPnd") {
        return Ok(Asking::Blocked(Looks::default()));
    }
    let asking = looks.and(fate_now(pid, signal));
    if asking == Asking::Killed {
        send(pidfd, libc::SIGKILL)?;
    }
    Ok(asking)
}

impl Looks {
    fn and(self, fate: Fate) -> Asking {
        let Looks { dropped, blocked } = self;
        let looks = match fate {
            Fate::Heard => return Asking::Heard,
            Fate::Dropped => Looks {
                dropped: dropped + 1,
                blocked: 0,
            },
            Fate::Blocked => Looks {
                dropped,
                blocked: blocked + 1,
            },
        };
        match looks {
            _ if looks.dropped >= DROPPED_LOOKS => Asking::Killed,
            _ if looks.blocked >= BLOCKED_LOOKS => Asking::Heard,
            _ => Asking::Blocked(looks),
        }
    }
}

/// The fate of a signal sent now.
fn fate_now(pid: i32, signal: i32) -> Fate {
    match fate(&status(pid), signal) {
        // While a thread waits for signals, the kernel shows them as not blocked.
        Fate::Dropped if waits_for(pid, signal) => Fate::Heard,
        // It may have come back from there between the two looks.
        Fate::Dropped => fate(&status(pid), signal),
        fate => fate,
    }
}

/// Whether the first thread waits in sigwait or one of its kin for this signal: a signal to the process reaches it.
fn waits_for(pid: i32, signal: i32) -> bool {
    let call = match bounded::read(format!("/proc/{pid}/syscall"), MOST_BYTES) {
        // Nothing is known: that is no reason to kill it.
        Err(error) if error.kind() == io::ErrorKind::TimedOut => return true,
        call => call.unwrap_or_default(),
    };
    let call = String::from_utf8_lossy(&call);
    let mut words = call.split_whitespace();
    // The words of a call are its number and its arguments, the first of which is where the set of signals is.
    if words.next() != Some(&libc::SYS_rt_sigtimedwait.to_string()) {
        return false;
    }
    let at =
        (words.next()).and_then(|at| u64::from_str_radix(at.trim_start_matches("0x"), 16).ok());
    let set = bounded::read_at(format!("/proc/{pid}/mem"), at.unwrap_or(0), 8);
    // For which ones, where that cannot be read, is not known either.
    let set: Option<[u8; 8]> = set.ok().and_then(|set| set.try_into().ok());
    set.is_none_or(|set| is_in(u64::from_ne_bytes(set), signal))
}

/// Whether it is seen to have a signalfd for this signal. The text of `fdinfo` on files of other kinds may be long.
fn has_signalfd(pid: i32, signal: i32) -> bool {
    let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter();
    let files = files.flatten().flatten().take(MOST_FILES);
    let is_one = |file: &DirEntry| {
        let to = fs::read_link(file.path());
        to.is_ok_and(|to| to.as_os_str() == "anon_inode:[signalfd]")
    };
    let numbers = files
        .filter(is_one)
        .filter_map(|file| file.file_name().into_string().ok());
    let mut has = false;
    let file = |number| format!("/proc/{pid}/fdinfo/{number}");
    let read = bounded::read_each(numbers.map(file), MOST_BYTES, |_, info| {
        let text = info.as_deref().map(String::from_utf8_lossy);
        has = text.is_ok_and(|text| has_signal(&text, "sigmask", signal) == Some(true));
        // The program has exchanged it for a file that takes long, or will.
        let is_late = info.is_err_and(|error| error.kind() == io::ErrorKind::TimedOut);
        if has || is_late {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    read.is_ok() && has
}

fn fate(status: &str, signal: i32) -> Fate {
    let ids: Vec<&str> = value(status, "NSpid")
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    let is_first = ids.len() > 1 && ids.last() == Some(&"1");
    let sets = ["SigIgn", "SigCgt", "SigBlk"].map(|key| has_signal(status, key, signal));
    match (is_first, sets) {
        (true, [Some(false), Some(false), Some(true)]) => Fate::Blocked,
        (true, [Some(false), Some(false), Some(false)]) => Fate::Dropped,
        _ => Fate::Heard,
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::time::Duration;

    use super::*;
    use host::pidfd;

    #[test]
    fn the_first_of_a_cell_gets_only_what_it_handles() {
        let status = |ids: &str, blocked: u64, ignored: u64, caught: u64| {
            format!(
                "Name:\tsh\nNSpid:\t{ids}\nSigBlk:\t{blocked:016x}\nSigIgn:\t{ignored:016x}\nSigCgt:\t{caught:016x}\n"
            )
        };
        let term = 1 << (libc::SIGTERM - 1);
        let of = |status: &str| fate(status, libc::SIGTERM);
        assert_eq!(of(&status("77\t1", 0, 0, 0)), Fate::Dropped);
        let other = fate(&status("77\t1", 0, 0, term), libc::SIGINT);
        assert_eq!(other, Fate::Dropped);
        assert_eq!(of(&status("77\t1", term, 0, 0)), Fate::Blocked);
        for (blocked, ignored, caught) in [(0, term, 0), (0, 0, term), (term, 0, term)] {
            assert_eq!(of(&status("77\t1", blocked, ignored, caught)), Fate::Heard);
        }
        assert_eq!(of(&status("77", 0, 0, 0)), Fate::Heard);
        assert_eq!(of(&status("77\t2", term, 0, 0)), Fate::Heard);
        assert_eq!(of(""), Fate::Heard);
    }

    /// The first process of a pid namespace of its own, which blocks SIGTERM, and the end by which it is told to go on to `then`.
    fn first(then: extern "C" fn()) -> Option<(i32, io::PipeWriter)> {
        let (mut says, mut ready) = io::pipe().unwrap();
        let (mut hears, go_on) = io::pipe().unwrap();
        let forked = std::thread::spawn(move || {
            // SAFETY: of this thread's children alone; the child only makes calls that may follow a fork.
            unsafe {
                if libc::unshare(libc::CLONE_NEWPID) != 0 {
                    return None;
                }
                let pid = libc::fork();
                if pid == 0 {
                    let mut all = std::mem::zeroed::<libc::sigset_t>();
                    libc::sigfillset(&raw mut all);
                    libc::sigprocmask(libc::SIG_BLOCK, &raw const all, std::ptr::null_mut());
                    let _ = ready.write(&[1]);
                    let _ = hears.read(&mut [0]);
                    then();
                    libc::_exit(7);
                }
                Some(pid)
            }
        });
        let pid = forked.join().unwrap()?;
        says.read_exact(&mut [0]).unwrap();
        Some((pid, go_on))
    }

    /// As a C library that has made a process.
    extern "C" fn unblocks() {
        // SAFETY: a set on the stack.
        unsafe {
            let mut none = std::mem::zeroed::<libc::sigset_t>();
            libc::sigemptyset(&raw mut none);
            libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
            libc::sleep(60);
        }
    }

    extern "C" fn takes_it() {
        // SAFETY: a set and a number on the stack.
        unsafe {
            let mut one = std::mem::zeroed::<libc::sigset_t>();
            libc::sigaddset(&raw mut one, libc::SIGTERM);
            let mut taken = 0;
            libc::sigwait(&raw const one, &raw mut taken);
            libc::usleep(300_000);
        }
    }

    /// Takes the signal and ends after its clean-up, with no handler.
    extern "C" fn waits_in_a_signalfd() {
        // SAFETY: a set and a record on the stack.
        unsafe {
            let mut one = std::mem::zeroed::<libc::sigset_t>();
            libc::sigaddset(&raw mut one, libc::SIGTERM);
            let fd = libc::signalfd(-1, &raw const one, 0);
            let mut taken = std::mem::zeroed::<libc::signalfd_siginfo>();
            libc::read(fd, (&raw mut taken).cast(), size_of_val(&taken));
            libc::sigprocmask(libc::SIG_UNBLOCK, &raw const one, std::ptr::null_mut());
            libc::usleep(300_000);
        }
    }

    extern "C" fn waits_for_another() {
        // SAFETY: a set and a number on the stack.
        unsafe {
            let mut one = std::mem::zeroed::<libc::sigset_t>();
            libc::sigprocmask(libc::SIG_SETMASK, &raw const one, std::ptr::null_mut());
            libc::sigaddset(&raw mut one, libc::SIGUSR1);
            libc::sigprocmask(libc::SIG_BLOCK, &raw const one, std::ptr::null_mut());
            libc::sigwait(&raw const one, &mut 0);
        }
    }

    /// The end of one that is asked once it sleeps in this call, and the answer to its asker.
    fn asked_in(then: extern "C" fn(), call: i64) -> Option<(i32, Asking)> {
        let (pid, mut go_on) = first(then)?;
        let pidfd = pidfd::open(pid).unwrap();
        go_on.write_all(&[1]).unwrap();
        let is_there = || {
            let now = fs::read_to_string(format!("/proc/{pid}/syscall")).unwrap();
            now.split(' ').next() == Some(&call.to_string())
        };
        let mut looks = 0;
        while !is_there() {
            looks += 1;
            assert!(looks < 10_000, "it does not wait");
            std::thread::sleep(Duration::from_millis(1));
        }
        let mut asking = to_end(pid, &pidfd, libc::SIGTERM).unwrap();
        while let Asking::Blocked(looks) = asking {
            std::thread::sleep(Duration::from_millis(5));
            asking = again(pid, &pidfd, libc::SIGTERM, looks).unwrap();
        }
        Some((ended_with(pid, &pidfd), asking))
    }

    fn ended_with(pid: i32, pidfd: &OwnedFd) -> i32 {
        if !pidfd::ended_within(pidfd, Duration::from_secs(20)) {
            // It would outlive the test.
            send(pidfd, libc::SIGKILL).unwrap();
            panic!("it goes on");
        }
        let mut status = 0;
        // SAFETY: a child of this process, and a number on the stack.
        assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
        status
    }

    /// The end of one that was asked while it blocked that, and told to go on then, and the asker's last answer.
    fn asked(then: extern "C" fn()) -> Option<(i32, Asking)> {
        // Namespaces are root's.
        let (pid, mut go_on) = first(then)?;
        let pidfd = pidfd::open(pid).unwrap();
        let none = Looks::default();
        let again = |looks| again(pid, &pidfd, libc::SIGTERM, looks).unwrap();
        assert_eq!(
            to_end(pid, &pidfd, libc::SIGTERM).unwrap(),
            Asking::Blocked(none)
        );
        for _ in 0..3 {
            assert_eq!(again(none), Asking::Blocked(none), "it is blocked yet");
        }
        go_on.write_all(&[1]).unwrap();
        let mut asking = again(none);
        while let Asking::Blocked(looks) = asking {
            std::thread::sleep(Duration::from_millis(5));
            asking = again(looks);
        }
        Some((ended_with(pid, &pidfd), asking))
    }

    fn went_on(status: i32) -> bool {
        libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 7
    }

    #[test]
    fn one_that_waits_for_the_signal_hears_it() {
        let waits: [(extern "C" fn(), i64); 2] = [
            (takes_it, libc::SYS_rt_sigtimedwait),
            (waits_in_a_signalfd, libc::SYS_read),
        ];
        for (then, call) in waits {
            let Some((status, asking)) = asked_in(then, call) else {
                return;
            };
            assert_eq!((asking, went_on(status)), (Asking::Heard, true), "{status}");
        }
    }

    #[test]
    fn one_that_waits_for_another_signal_is_killed() {
        let Some((status, asking)) = asked_in(waits_for_another, libc::SYS_rt_sigtimedwait) else {
            return;
        };
        assert_eq!(asking, Asking::Killed);
        assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGKILL);
    }

    #[test]
    fn several_looks_tell_what_has_become_of_a_signal() {
        let after = |fates: &[Fate]| {
            let mut looks = Looks::default();
            for (at, fate) in fates.iter().enumerate() {
                match looks.and(*fate) {
                    Asking::Blocked(next) => looks = next,
                    asking => return Some((at + 1, asking)),
                }
            }
            None
        };
        // A program that makes processes all the time.
        let forks = [Fate::Blocked, Fate::Dropped, Fate::Blocked, Fate::Blocked].repeat(9);
        assert!(matches!(after(&forks), Some((18, Asking::Killed))));
        assert_eq!(after(&[Fate::Dropped; 4]), None, "it may have taken it");
        assert_eq!(after(&[Fate::Dropped; 5]), Some((5, Asking::Killed)));
        assert_eq!(after(&[Fate::Blocked; 9]), None, "it may be at a fork");
        assert_eq!(after(&[Fate::Blocked; 10]), Some((10, Asking::Heard)));
        assert_eq!(after(&[Fate::Heard]), Some((1, Asking::Heard)));
    }

    #[test]
    fn what_is_dropped_once_it_is_not_blocked_any_more_is_seen() {
        let Some((status, asking)) = asked(unblocks) else {
            return;
        };
        assert_eq!(asking, Asking::Killed);
        assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGKILL);
    }

    #[test]
    fn what_a_program_takes_itself_is_its_own() {
        let Some((status, asking)) = asked(takes_it) else {
            return;
        };
        assert_eq!(asking, Asking::Heard);
        assert!(went_on(status), "{status}");
    }
}
