//! The parent of a load on the host: puts it on its cpus, and ends all of it when it ends itself.
//!
//! With root's powers the load gets a pid namespace of its own: when the guard ends, however it ends, the kernel
//! kills every process in it. Without, a killed coordinator's load is found by its mark at the next start.

use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command};

use host::sched;
use rustix::process::{
    Pid, Signal, getpid, getppid, set_child_subreaper, set_parent_process_death_signal,
};
use rustix::thread::{UnshareFlags, unshare_unsafe};

/// Where programs are looked for: a cell's environment is empty.
pub(super) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The guard's orders.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Guarded {
    /// Cpus that the load may use.
    pub cpus: Vec<u32>,
    /// Working directory.
    pub dir: Option<String>,
    /// Program and arguments.
    pub command: Vec<String>,
}

impl Guarded {
    /// The words, to stand behind `timecell load guard`.
    pub(crate) fn to_words(&self) -> Vec<String> {
        let mut words = vec![
            format!("parent={}", std::process::id()),
            format!("cpus={}", host::cpus::format_list(&self.cpus)),
        ];
        words.extend(self.dir.iter().map(|path| format!("dir={path}")));
        words.push("--".to_owned());
        words.extend(self.command.iter().cloned());
        words
    }

    fn from_words(words: &[String]) -> Result<(i32, Guarded), String> {
        let mut guarded = Guarded::default();
        let mut parent = 0;
        let mut words = words.iter();
        for word in words.by_ref() {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            match key {
                "--" => break,
                "parent" => parent = value.parse().map_err(|_| format!("cannot read `{word}`"))?,
                "cpus" => {
                    guarded.cpus = host::cpus::parse_list(value).map_err(|e| e.to_string())?;
                }
                "dir" => guarded.dir = Some(value.to_owned()),
                _ => return Err(format!("cannot read `{word}`")),
            }
        }
        guarded.command = words.cloned().collect();
        if guarded.command.is_empty() {
            return Err("no command".to_owned());
        }
        Ok((parent, guarded))
    }
}

/// The hidden command `timecell load guard`; returns the exit code. Called before any thread is started.
pub(crate) fn guard(words: &[String]) -> i32 {
    match Guarded::from_words(words).and_then(|(parent, guarded)| outer(parent, &guarded)) {
        Ok(code) => code,
        Err(why) => {
            eprintln!("load: {why}");
            1
        }
    }
}

fn outer(parent: i32, guarded: &Guarded) -> Result<i32, String> {
    die_with_parent();
    if Pid::as_raw(getppid()) != parent {
        return Err("the coordinator has ended".to_owned());
    }
    if !guarded.cpus.is_empty() {
        sched::set_affinity(0, &guarded.cpus).map_err(|error| error.to_string())?;
    }
    block_signals();
    // Refused without privilege, which is distinguished below. SAFETY: descriptors stay shared.
    let apart = unsafe { unshare_unsafe(UnshareFlags::NEWPID) }.is_ok();
    // SAFETY: this process has one thread.
    match unsafe { libc::fork() } {
        -1 => Err(format!("fork: {}", io::Error::last_os_error())),
        0 => {
            die_with_parent();
            if !apart {
                // Orphans of the load come to this process instead of the machine's init.
                let _ = set_child_subreaper(Some(getpid()));
            }
            let code = inner(guarded).unwrap_or_else(|why| {
                eprintln!("load: {why}");
                1
            });
            std::process::exit(code);
        }
        child => Ok(pass_on(child)),
    }
}

/// Hands the request to end down to the inner guard and waits for it.
fn pass_on(child: i32) -> i32 {
    loop {
        match next_signal() {
            libc::SIGCHLD => {
                if let Some((_, status)) = reap(child) {
                    return code(status);
                }
            }
            // SAFETY: a child that has not been reaped.
            _ => unsafe {
                libc::kill(child, libc::SIGTERM);
            },
        }
    }
}

/// Runs the program; reaps the namespace's remains.
fn inner(guarded: &Guarded) -> Result<i32, String> {
    let program = &guarded.command[0];
    let mut command = Command::new(program);
    command
        .args(&guarded.command[1..])
        .env("PATH", PATH)
        .env("LC_ALL", "C")
        // The request to end goes to the whole group.
        .process_group(0);
    if let Some(dir) = &guarded.dir {
        command.current_dir(dir);
    }
    // SAFETY: one system call on a set made beforehand, nothing allocated.
    unsafe { command.pre_exec(unblock_signals) };
    let child: Child = command
        .spawn()
        .map_err(|error| format!("cannot start {program}: {error}"))?;
    let main = child.id().cast_signed();
    let mut asked = false;
    loop {
        let signal = next_signal();
        // Before a request is passed on: it may find that the program has ended by itself.
        while let Some((pid, status)) = reap(-1) {
            if pid == main {
                // If the program was asked to end, its exit status says nothing about the load.
                if !asked {
                    let how = std::process::ExitStatus::from_raw(status);
                    eprintln!("load: {program} ended with {how}");
                }
                return Ok(code(status));
            }
        }
        if signal != libc::SIGCHLD {
            asked = true;
            // SAFETY: the group of a child that has not been reaped.
            unsafe { libc::kill(-main, libc::SIGINT) };
        }
    }
}

fn reap(which: i32) -> Option<(i32, i32)> {
    let mut status = 0;
    // SAFETY: `status` is valid.
    let pid = unsafe { libc::waitpid(which, &raw mut status, libc::WNOHANG) };
    (pid > 0).then_some((pid, status))
}

fn code(status: i32) -> i32 {
    if libc::WIFEXITED(status) {
        libc::WEXITSTATUS(status)
    } else {
        128 + libc::WTERMSIG(status)
    }
}

fn signals() -> libc::sigset_t {
    // SAFETY: a set on the stack, filled in by the calls.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGCHLD] {
            libc::sigaddset(&raw mut set, signal);
        }
        set
    }
}

fn block_signals() {
    let set = signals();
    // SAFETY: a valid set; the old mask is not asked for.
    unsafe { libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) };
}

/// The mask is inherited over the start of a program, which knows nothing of it.
fn unblock_signals() -> io::Result<()> {
    let set = signals();
    // SAFETY: a valid set; the old mask is not asked for.
    unsafe { libc::sigprocmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut()) };
    Ok(())
}

fn next_signal() -> i32 {
    let set = signals();
    let mut signal = 0;
    // SAFETY: a valid set and a valid place for the answer.
    unsafe { libc::sigwait(&raw const set, &raw mut signal) };
    signal
}

fn die_with_parent() {
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_back() {
        let guarded = Guarded {
            cpus: vec![0, 1, 3],
            dir: Some("/x".to_owned()),
            command: vec!["sh".to_owned(), "--".to_owned(), "parent=1".to_owned()],
        };
        let (parent, read) = Guarded::from_words(&guarded.to_words()).unwrap();
        assert_eq!(parent.unsigned_abs(), std::process::id());
        assert_eq!(read, guarded);
        assert!(Guarded::from_words(&["cpus=0".to_owned()]).is_err());
        assert!(Guarded::from_words(&["what=0".to_owned()]).is_err());
    }
}
