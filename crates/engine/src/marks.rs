//! Which processes belong to a cell: those in its groups, and those on the way there that carry its mark.
//!
//! Anybody can write a mark into the memory of a process of their own. Those of root, of the user who runs this program and of the user whom the
//! cell's note or program names are believed; no other process is read, killed or waited for. A process that cannot be read in time is not the cell's.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use host::bounded;
use host::isolate::PARTITION_PREFIX;
use host::pidfd;
use host::process::{status, value};
use host::root::Root;
use rustix::process::geteuid;

use crate::app::program;
use crate::error::{Error, Result, refused};
use crate::identity::Identity;
use crate::made;
use crate::note::MARK;
use crate::process::{Process, kill_each};

/// How long a new process may be on its way to its program.
const UNMARKED: Duration = Duration::from_millis(2);

/// Bytes of a process's environment or arguments that are read. execve(2) passes at most 6 MiB, but a process may declare later that its own lie
/// anywhere in its memory (PR_SET_MM_MAP), a thousand GiB of it.
const MOST_BYTES: u64 = 6 << 20;

/// Kills every process of root's or this user's that belongs to the cell with this id, and waits for their ends.
///
/// # Errors
/// Names one that does not end.
pub fn kill_marked(id: &str) -> Result<()> {
    first(kill_all(|found| found == id, &[]))
}

/// Kills every process of this cell, and waits for their ends.
pub(crate) fn kill_of(cell: &dyn Identity) -> Result<()> {
    first(kill_of_each(&[cell]))
}

/// As [`kill_of`] for many cells at once: every process is examined twice, however many cells there are.
pub(crate) fn kill_of_each(cells: &[&dyn Identity]) -> Vec<Error> {
    let ids: BTreeSet<&str> = cells.iter().map(|cell| cell.id()).collect();
    let users: Vec<u32> = cells.iter().filter_map(|cell| user(*cell)).collect();
    kill_all(|id| ids.contains(id), &users)
}

/// Kills every process of this cell, also those that such a process starts meanwhile; returns whether there were any.
///
/// # Errors
/// Names the process that does not end, or the cell whose processes never become fewer.
pub(crate) fn kill_to_the_last(cell: &dyn Identity) -> Result<bool> {
    const MOST_ROUNDS: usize = 20;
    for round in 0..MOST_ROUNDS {
        let mut found = processes(|id| id == cell.id(), user(cell).as_slice(), None);
        // One that has ended stays in its groups until it is reaped.
        found.retain(|process| {
            let open = process.open();
            open.is_some_and(|open| !pidfd::ended_within(open, Duration::ZERO))
        });
        if found.is_empty() {
            return Ok(round > 0);
        }
        first(kill_each(&found))?;
    }
    Err(refused!("processes of {} keep being started", cell.id()))
}

fn kill_all(is_meant: impl Fn(&str) -> bool, users: &[u32]) -> Vec<Error> {
    let mut left = kill_each(&processes(&is_meant, users, None));
    // A process that was just forked carries the mark only once it executes its program.
    std::thread::sleep(UNMARKED);
    left.extend(kill_each(&processes(&is_meant, users, None)));
    left
}

fn first(errors: Vec<Error>) -> Result<()> {
    errors.into_iter().next().map_or(Ok(()), Err)
}

/// The user who runs it without root's powers, or that of its program: a process on the way there has become that user before it is in the
/// cell's groups.
fn user(cell: &dyn Identity) -> Option<u32> {
    let of_program = || Some(program::kept(&made::state(cell)).ok()??.ids.uid);
    cell.user().map(|user| user.uid).or_else(of_program)
}

/// Pids of the live processes of this cell, and of those that have `path` in their arguments.
pub(crate) fn belonging(cell: &dyn Identity, path: &Path) -> Vec<i32> {
    let found = processes(|id| id == cell.id(), user(cell).as_slice(), Some(path));
    found.iter().map(|process| process.pid).collect()
}

/// Pids of the live processes of the cells whose ids begin with `prefix`, and of those that have `path` in their arguments: one pass over all
/// processes. `user`: the one that the notes of the cells name.
pub fn processes_of_many(prefix: &str, path: &Path, user: Option<u32>) -> Vec<i32> {
    let found = processes(|id| id.starts_with(prefix), user.as_slice(), Some(path));
    found.iter().map(|process| process.pid).collect()
}

/// The processes but this one that belong to cells whose ids are meant, or have `path` in their arguments.
fn processes(is_meant: impl Fn(&str) -> bool, users: &[u32], path: Option<&Path>) -> Vec<Process> {
    let own = std::process::id().cast_signed();
    let pids = host::process::all().into_iter();
    let mut found = Vec::new();
    let mut asked = Vec::new();
    for process in pids.filter(|pid| *pid != own).filter_map(Process::of) {
        match cell_of(process.pid) {
            Some(id) if is_meant(&id) => found.push(process),
            None if is_believed(process.pid, users) => asked.push(process),
            _ => {}
        }
    }
    let mut ask = |file: &str, is_it: &dyn Fn(&[u8]) -> bool| {
        let pids = asked.iter().map(|process| process.pid);
        let read = bounded::read_each(
            pids.map(|pid| format!("/proc/{pid}/{file}")),
            MOST_BYTES,
            |at, bytes| {
                if bytes.is_ok_and(|bytes| is_it(&bytes)) && !found.contains(&asked[at]) {
                    found.push(asked[at]);
                }
                ControlFlow::Continue(())
            },
        );
        read.expect("no NUL is in such a path");
    };
    ask("environ", &|environment| {
        marks(environment).any(|id| is_meant(&id))
    });
    if let Some(path) = path {
        ask("cmdline", &|words| holds(words, path));
    }
    found
}

/// Whether a mark in this process's memory is believed: its users all are one of these, root or this program's own. The kernel's own threads and
/// processes that have ended have no memory.
fn is_believed(pid: i32, users: &[u32]) -> bool {
    let status = status(pid);
    let ids = value(&status, "Uid").unwrap_or_default();
    let mut ids = ids.split_whitespace().map(str::parse::<u32>);
    let believed = |user| user == 0 || user == geteuid().as_raw() || users.contains(&user);
    let Some(Ok(real)) = ids.next() else {
        return false;
    };
    believed(real) && ids.all(|id| id == Ok(real)) && value(&status, "VmSize").is_some()
}

/// The cells whose marks are in an environment.
fn marks(environment: &[u8]) -> impl Iterator<Item = String> {
    let words = environment.split(|byte| *byte == 0);
    words.filter_map(|word| {
        let id = word.strip_prefix(MARK.as_bytes())?.strip_prefix(b"=")?;
        Some(String::from_utf8_lossy(id).into_owned())
    })
}

fn holds(words: &[u8], path: &Path) -> bool {
    String::from_utf8_lossy(words).contains(&*path.to_string_lossy())
}

fn memory_of(pid: i32, file: &str, user: Option<u32>) -> Vec<u8> {
    let read = || bounded::read(format!("/proc/{pid}/{file}"), MOST_BYTES).ok();
    let read = is_believed(pid, user.as_slice()).then(read).flatten();
    read.unwrap_or_default()
}

/// Whether a process carries the mark of the cell with this id, whose note names `user`.
pub(crate) fn is_marked(pid: i32, id: &str, user: Option<u32>) -> bool {
    marks(&memory_of(pid, "environ", user)).any(|found| found == id)
}

/// Whether a process has this path in its arguments, and is root's, this program's user's or `user`'s.
pub(crate) fn has_argument(pid: i32, path: &Path, user: Option<u32>) -> bool {
    holds(&memory_of(pid, "cmdline", user), path)
}

/// Whether a process belongs to the cell with this id: is in its groups, or carries its mark and is root's or this program's user's.
pub(crate) fn is_of(pid: i32, id: &str) -> bool {
    cell_of(pid).map_or_else(|| is_marked(pid, id, None), |found| found == id)
}

/// Id of the cell to which a process belongs: the one in whose groups it is, or whose mark it carries as a process of root's or of this program's
/// user.
///
/// The environment of a process in a cell's groups is not read: that waits for the holder of its address space, which may be a thread that its
/// budget, or the freezer, keeps from running.
pub fn cell_id_of(pid: i32) -> Option<String> {
    cell_of(pid).or_else(|| marks(&memory_of(pid, "environ", None)).next())
}

/// The cell in whose groups a process is.
fn cell_of(pid: i32) -> Option<String> {
    cell_in(&Root::live().read(format!("/proc/{pid}/cgroup")).ok()?)
}

/// The cell of a process whose `/proc/<pid>/cgroup` this is. Only hierarchies count in which each cell has a group of its own:
/// of real-time groups, several may share one.
fn cell_in(groups: &str) -> Option<String> {
    groups.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        let own = controllers.is_empty()
            || (controllers.split(',')).any(|name| name == "pids" || name == "memory");
        let mut parts = path.trim_start_matches('/').split('/');
        // In a partition of cpus a cell is as it is at the top.
        let top = parts.find(|part| !part.starts_with(PARTITION_PREFIX))?;
        (own && top.starts_with("timecell-")).then(|| top.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt as _;
    use std::process::{Child, Command};

    use model::EngineKind;

    use super::*;
    use crate::app::{AppSpec, Image};

    fn marked(id: &str, user: u32) -> Child {
        let mut command = Command::new("/bin/sleep");
        command.arg("1000").env_clear().env(MARK, id).uid(user);
        let child = command.spawn().unwrap();
        // The environment is only there once the program has been executed.
        while std::fs::read(format!("/proc/{}/environ", child.id())).is_ok_and(|all| all.is_empty())
        {
        }
        child
    }

    #[test]
    fn marked_processes_are_killed_and_no_others() {
        let id = format!("timecell-test-mark-{}", std::process::id());
        let own = geteuid().as_raw();
        let (one, two) = (marked(&id, own), marked(&id, own));
        let mut other = marked(&format!("{id}0"), own);
        let pid = other.id().cast_signed();
        assert!(is_of(pid, &format!("{id}0")) && !is_of(pid, &id));
        kill_marked(&id).unwrap();
        for marked in [&one, &two] {
            assert_eq!(Process::of(marked.id().cast_signed()), None);
        }
        assert!(other.try_wait().unwrap().is_none());
        other.kill().unwrap();
        for mut child in [one, two, other] {
            let _ = child.wait();
        }
    }

    #[test]
    fn the_mark_of_a_stranger_is_not_believed() {
        const STRANGER: u32 = 4711;
        if !geteuid().is_root() {
            return;
        }
        let id = format!("timecell-test-stranger-{}", std::process::id());
        let mut bait = marked(&id, STRANGER);
        let pid = bait.id().cast_signed();
        kill_marked(&id).unwrap();
        assert!(bait.try_wait().unwrap().is_none());
        assert_eq!(cell_id_of(pid), None);
        assert!(!is_of(pid, &id) && !is_marked(pid, &id, Some(STRANGER + 1)));
        assert!(!has_argument(pid, Path::new("1000"), None));
        let all = |user| processes_of_many(&id, Path::new("/nonexistent"), user);
        assert!(all(None).is_empty() && all(Some(STRANGER + 1)).is_empty());
        // The note of the cell names it.
        assert!(is_marked(pid, &id, Some(STRANGER)));
        assert_eq!(all(Some(STRANGER)), [pid]);
        bait.kill().unwrap();
        bait.wait().unwrap();
    }

    #[test]
    fn a_process_that_has_become_its_programs_user_is_known() {
        const USER: u32 = 4712;
        if !geteuid().is_root() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let id = format!("timecell-test-way-{}", std::process::id());
        let cell = AppSpec::new(
            &id,
            EngineKind::Embedded,
            Image::Rootfs("/".into()),
            dir.path(),
        );
        let mut child = marked(&id, USER);
        kill_of(&cell).unwrap();
        assert!(child.try_wait().unwrap().is_none(), "nobody names its user");
        let state = made::state(&cell);
        std::fs::create_dir(&state).unwrap();
        let text = format!(
            r#"{{"root_is_own":true,"args":[],"env":[],"cwd":"/","ids":{{"uid":{USER},"gid":0}},"hostname":""}}"#
        );
        std::fs::write(state.join("program.json"), text).unwrap();
        kill_of(&cell).unwrap();
        assert_eq!(Process::of(child.id().cast_signed()), None);
        let _ = child.wait();
    }

    #[test]
    fn a_process_in_the_groups_of_a_cell_is_known_by_them() {
        let v1 = "9:pids:/timecell-cell-m.app\n8:cpu,cpuacct:/timecell-mission-m.app\n0::/\n";
        assert_eq!(cell_in(v1).as_deref(), Some("timecell-cell-m.app"));
        let v2 = "0::/timecell-cell-m.app/inner\n";
        assert_eq!(cell_in(v2).as_deref(), Some("timecell-cell-m.app"));
        // A real-time group that a bench's plain processes share.
        assert_eq!(cell_in("8:cpu:/timecell-12\n9:pids:/user\n0::/\n"), None);
        assert_eq!(cell_in("0::/system.slice/timecell@m.service\n"), None);
        let inside = "0::/timecell-cpus-m.1/timecell-cell-m.app/cell\n";
        assert_eq!(cell_in(inside).as_deref(), Some("timecell-cell-m.app"));
        assert_eq!(cell_in("0::/timecell-cpus-m.1\n"), None);
        assert_eq!(cell_in(""), None);
    }
}
