//! Telling the processes that hold groups from others, and reaping those that have ended and were inherited by this
//! process.

use std::fs;

use host::{bounded, process};
use rustix::process::{Pid, WaitOptions, waitpid};

use super::common::WORD;
use super::setup::NAME;

/// The most bytes of arguments that are read: some words and a path.
pub(super) const MOST_BYTES: u64 = 1 << 13;

/// Their roles, on their command line behind [`WORD`].
const ROLES: [&[u8]; 3] = [b"keeper", b"watcher", b"heir"];

/// Whether a process is one of those that hold groups, of this or another version. The name alone does not count: it
/// also has to be root's and in this process's pid namespace.
pub fn is_holder(pid: i32) -> bool {
    // Nobody else's arguments are read, which may be long.
    let words = || bounded::read(format!("/proc/{pid}/cmdline"), MOST_BYTES).unwrap_or_default();
    may_hold(&process::status(pid)) && has_role(&words())
}

fn may_hold(status: &str) -> bool {
    of(status, "Uid").split_whitespace().all(|uid| uid == "0") && is_called_so(status)
}

fn has_role(words: &[u8]) -> bool {
    let mut words = words.split(|byte| *byte == 0).skip(1);
    words.next() == Some(WORD.as_bytes()) && words.next().is_some_and(|role| ROLES.contains(&role))
}

/// Whether this `/proc/<pid>/status` is of one that has this name and no pid namespace of its own.
fn is_called_so(status: &str) -> bool {
    let pids = of(status, "NSpid").split_whitespace().count();
    of(status, "Name").as_bytes() == NAME.to_bytes() && pids == 1
}

fn of<'a>(status: &'a str, key: &str) -> &'a str {
    process::value(status, key).unwrap_or_default()
}

/// Reaps processes that held cells, have ended and are children of this process: as a subreaper it becomes the parent
/// of orphans. It leaves all others alone, regardless of their name, if they run in a container: a container has its
/// own pid namespace, and no holder has. Does nothing where the kernel does not list a process's children
/// (`CONFIG_PROC_CHILDREN`).
pub fn reap_ended_holders() {
    for task in fs::read_dir("/proc/self/task").into_iter().flatten() {
        let Ok(task) = task else { continue };
        let children = host::file::text(task.path().join("children")).unwrap_or_default();
        for pid in children.split_whitespace() {
            let Ok(pid) = pid.parse() else { continue };
            // A child's that has ended, and nobody else's as long as it is not waited for.
            if is_ended_holder(&process::status(pid)) {
                let _ = waitpid(Pid::from_raw(pid), WaitOptions::NOHANG);
            }
        }
    }
}

/// Whether this `/proc/<pid>/status` is of a holder that has ended and has not been waited for.
fn is_ended_holder(status: &str) -> bool {
    is_called_so(status) && of(status, "State").starts_with('Z')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_held_cells_and_has_ended_is_reaped() {
        let of = |name: &str, state: &str, pids: &str| {
            is_ended_holder(&format!("Name:\t{name}\nState:\t{state}\nNSpid:\t{pids}\n"))
        };
        assert!(of("timecell-holder", "Z (zombie)", "812"));
        assert!(!of("timecell-holder", "S (sleeping)", "812"));
        assert!(!of("timecell", "Z (zombie)", "812"));
        // A program in a cell that calls itself so.
        assert!(!of("timecell-holder", "Z (zombie)", "812\t1"));
        assert!(!is_ended_holder(""));
    }

    #[test]
    fn a_program_that_calls_itself_a_holder_is_none() {
        let status = |name: &str, uids: &str, pids: &str| {
            format!("Name:\t{name}\nUid:\t{uids}\nNSpid:\t{pids}\n")
        };
        let root = "0\t0\t0\t0";
        let is = |status: String| may_hold(&status);
        assert!(is(status("timecell-holder", root, "812")));
        assert!(!is(status("x", root, "812")));
        assert!(!is(status("timecell-holder", root, "812\t1")));
        assert!(!is(status(
            "timecell-holder",
            "1000\t1000\t1000\t1000",
            "812"
        )));
        assert!(has_role(b"timecell\0freezer\0keeper\0/run/timecell-held\0"));
        for words in [&b"x\0run\0keeper"[..], b"x\0freezer\0else", b"x", b""] {
            assert!(!has_role(words));
        }
    }
}
