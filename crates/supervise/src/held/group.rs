//! The group that is held: its processes, and creating one for a process that shares its group with others.
//!
//! A process whose group has others in it, like all of a login session, gets its own group **below** that one: it stays
//! subject to the group's limits, and the end of the group (`systemctl stop`, the end of a session) is still the end of
//! the process. Processes that it has started come along if they are in the same group.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use freezer::hold::{HoldError, remove};
use freezer::process::is_holder;
use host::cgroup;
use host::file::FileError;
use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

use super::HeldError;
use super::file::Part;
use super::thing::{Kind, Thing};
use crate::ledger::{Entry, Holder};
use crate::process::descends;

/// How often processes are looked for that were started meanwhile.
const PASSES: usize = 100;

/// The inode of a group's directory.
pub(super) fn inode(group: &Path) -> io::Result<u64> {
    Ok(fs::metadata(group)?.ino())
}

/// The processes in a group and in those below it.
pub(super) fn processes(group: &Path) -> Vec<i32> {
    listed(group, "cgroup.procs")
}

/// The threads in a group and in those below it.
pub(super) fn threads(group: &Path) -> Vec<i32> {
    listed(group, "cgroup.threads")
}

/// 0 stands for one of another pid namespace.
fn listed(group: &Path, file: &str) -> Vec<i32> {
    let mut all = cgroup::listed_with_those_below(group, file);
    all.retain(|number| *number > 0);
    all
}

/// Whether nobody is in this group but the process and its descendants.
pub(super) fn is_of(group: &Path, pid: i32) -> bool {
    let all = processes(group);
    !all.is_empty() && all.iter().all(|other| descends(*other, &[pid]))
}

/// Whether a process is this one, or one that holds groups, or a supervisor: it runs this program.
pub(super) fn is_own(pid: i32) -> bool {
    // Without asking the filesystem, which may be one of a user's that does not answer.
    let flags = AtFlags::STATX_DONT_SYNC;
    let program = |pid: &str| {
        let file = statx(CWD, format!("/proc/{pid}/exe"), flags, StatxFlags::INO).ok()?;
        Some((file.stx_dev_major, file.stx_dev_minor, file.stx_ino))
    };
    let same = || program("self").is_some_and(|own| program(&pid.to_string()) == Some(own));
    pid == std::process::id().cast_signed() || same() || is_holder(pid)
}

/// Those who supervise or measure by the machine's ledger, regardless of their program by now: another build, or one that was replaced.
pub(super) fn supervisors(entries: &[Entry]) -> Vec<i32> {
    let supervised = entries
        .iter()
        // The process that put something under a budget is gone, and its number may be reused.
        .filter(|entry| !matches!(entry.holder, Holder::Held { .. }));
    let running = supervised.filter(|entry| entry.process.still_runs().unwrap_or(true));
    running.map(|entry| entry.process.pid).collect()
}

/// Whether this group, with these `processes` in it, may be stopped now and then; `supervisors` may not.
///
/// # Errors
/// [`HeldError::Init`], [`HeldError::Own`], [`HeldError::Cell`], [`HeldError::Ended`], [`HeldError::OutOfBand`].
pub(super) fn check(
    thing: &Thing,
    processes: &[i32],
    supervisors: &[i32],
    top: &Path,
) -> Result<(), HeldError> {
    let what = || thing.to_string();
    let below_top = thing.group.strip_prefix(top).unwrap_or(Path::new(""));
    let first = below_top.components().next();
    if let Some(id) = first.map(|first| first.as_os_str().to_string_lossy().into_owned())
        && id.starts_with("timecell-")
    {
        return Err(HeldError::Cell { what: what(), id });
    }
    if processes.is_empty() {
        return Err(HeldError::Ended(what()));
    }
    if processes.contains(&1) {
        return Err(HeldError::Init(what()));
    }
    let has = |tid: &i32| {
        let is_of = |pid: &i32| Path::new(&format!("/proc/{pid}/task/{tid}")).exists();
        processes.iter().any(is_of)
    };
    if let Some(thread) = host::out_of_band::threads().into_iter().find(has) {
        return Err(HeldError::OutOfBand {
            what: what(),
            thread,
        });
    }
    let own = |pid: &&i32| supervisors.contains(pid) || is_own(**pid);
    match processes.iter().find(own) {
        Some(&pid) => Err(HeldError::Own { what: what(), pid }),
        None => Ok(()),
    }
}

/// Those of the group `from` that get a group of their own with a process: itself and its descendants where it shares the group with others, and all
/// where the group is the container's.
pub(super) fn family(thing: &Thing, from: &Path, pid: i32) -> Vec<i32> {
    let mut all = cgroup::processes(from);
    all.retain(|pid| *pid > 0);
    let name = from.file_name().unwrap_or_default().to_string_lossy();
    if thing.kind != Kind::Docker || !name.contains(&thing.id) {
        all.retain(|other| descends(*other, &[pid]));
    }
    all
}

/// The name of the group that is made for a process. It must not begin as those of cells do.
pub(super) fn name_for(pid: i32) -> String {
    format!("held-by-timecell-{pid}")
}

/// The name of the group for the threads on one of several cpus.
pub(super) fn name_on(cpu: u32) -> String {
    format!("held-by-timecell-cpu{cpu}")
}

/// The group in which all processes of a thing are, itself or one below it: that one can be divided.
///
/// # Errors
/// [`HeldError::Undivided`].
pub(super) fn with_all(thing: &Thing) -> Result<PathBuf, HeldError> {
    let mut group = thing.group.clone();
    loop {
        let below: Vec<PathBuf> = (cgroup::below(&group).into_iter())
            .filter(|below| !processes(below).is_empty())
            .collect();
        match (cgroup::processes(&group).is_empty(), below.as_slice()) {
            (false, []) => return Ok(group),
            (true, [one]) => group.clone_from(one),
            _ => {
                return Err(HeldError::Undivided {
                    what: thing.to_string(),
                    why: "its processes are in several control groups".to_owned(),
                });
            }
        }
    }
}

/// Puts the threads that are in none of several parts of a group yet into them, each into the one with the fewest; the
/// groups are made. Threads that these start later are born in the same one. Does nothing where there is one part.
///
/// # Errors
/// When the kernel refuses it.
pub(super) fn divide(parts: &[Part<'_>]) -> Result<(), HeldError> {
    let [(first, _), _, ..] = parts else {
        return Ok(());
    };
    for (group, _) in parts {
        make(group)?;
        let kind = group.join("cgroup.type");
        if host::file::text(&kind).is_ok_and(|text| text.trim() != "threaded") {
            fs::write(&kind, "threaded").map_err(failed(&kind))?;
        }
    }
    let around = first.parent().unwrap_or(first);
    let mut sizes: Vec<(usize, &Path)> = (parts.iter())
        .map(|(group, _)| (threads(group).len(), *group))
        .collect();
    for _ in 0..PASSES {
        let mut left = cgroup::listed(around, "cgroup.threads");
        left.retain(|tid| *tid > 0);
        left.sort_unstable();
        if left.is_empty() {
            break;
        }
        for tid in left {
            if let Some((size, group)) = sizes.iter_mut().min_by_key(|(size, _)| *size) {
                enter_thread(group, tid)?;
                *size += 1;
            }
        }
    }
    Ok(())
}

/// Undoes [`divide`] of the group of a thing; fine if it is gone.
///
/// # Errors
/// When the kernel refuses it.
pub(super) fn join(parts: &[Part<'_>], own: &Path) -> Result<(), HeldError> {
    for (group, _) in parts.iter().filter(|(group, _)| *group != own) {
        let around = group.parent().unwrap_or(own);
        for _ in 0..PASSES {
            let all = threads(group);
            if all.is_empty() {
                break;
            }
            all.into_iter()
                .try_for_each(|tid| enter_thread(around, tid))?;
        }
        removed(group)?;
    }
    Ok(())
}

/// Puts a thread into a group; fine if it has ended.
fn enter_thread(group: &Path, tid: i32) -> Result<(), HeldError> {
    let file = group.join("cgroup.threads");
    match fs::write(&file, tid.to_string()) {
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
        done => done.map_err(failed(&file)),
    }
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> HeldError {
    let path = path.to_owned();
    move |reason| HeldError::File { path, reason }
}

/// Makes a group that nobody else needs, and tells its inode.
///
/// # Errors
/// When the kernel refuses it.
pub(super) fn make(path: &Path) -> Result<u64, HeldError> {
    let made = match fs::create_dir(path) {
        // Of an earlier one that was killed, and empty, else it would be this process's group.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    };
    made.and_then(|()| inode(path)).map_err(failed(path))
}

/// A group in or around which users other than root can move processes: those in `group` could leave it, or be moved out of it by them. Of the group
/// itself only the freezer must be `owner`'s, because a process that moves within it stays
/// held; `None`: there is none.
pub(super) fn others_rule(group: &Path, top: &Path, owner: u32) -> Option<PathBuf> {
    let ruled = |file: PathBuf| {
        let about = fs::metadata(&file).ok()?;
        let by_others = about.uid() != owner || about.mode() & 0o022 != 0;
        by_others.then_some(file)
    };
    // To move a process takes the right to write to the file of the innermost group around both places.
    let around = group.ancestors().skip(1);
    let mut around = around.take_while(|dir| dir.starts_with(top) && *dir != top);
    let freezer = ruled(group.join("cgroup.freeze"));
    let found = freezer.or_else(|| around.find_map(|dir| ruled(dir.join("cgroup.procs"))));
    found.and_then(|file| file.parent().map(Path::to_owned))
}

/// Moves a process with those that belong to it ([`family`]) from one group to that of `thing`, which was made for them.
///
/// # Errors
/// When the kernel refuses it; some may be in either then.
pub(super) fn gather(from: &Path, thing: &Thing, pid: i32) -> Result<(), HeldError> {
    for _ in 0..PASSES {
        let mut left = false;
        // Its parents first, so that children which come meanwhile are born there.
        for member in family(thing, from, pid) {
            left |= enter(&thing.group, member)?;
        }
        if !left {
            return Ok(());
        }
    }
    Ok(())
}

/// Moves all processes of a group that was made here to where they came from, and removes it; fine if it is gone.
///
/// # Errors
/// When the kernel refuses it.
pub(super) fn dissolve(group: &Path, from: &Path) -> Result<(), HeldError> {
    for _ in 0..PASSES {
        let mut left = false;
        for member in processes(group) {
            left |= enter(from, member)?;
        }
        if !left {
            break;
        }
    }
    // A process that was in it may have created others in it.
    removed(group)
}

fn removed(group: &Path) -> Result<(), HeldError> {
    remove(group, Duration::ZERO).map_err(|error| match error {
        HoldError::Group { path, reason } => HeldError::File { path, reason },
        error => error.into(),
    })
}

/// Puts a process into a group; `false`: it has ended.
pub(super) fn enter(group: &Path, pid: i32) -> Result<bool, HeldError> {
    match cgroup::enter(group, pid) {
        Ok(()) => Ok(true),
        Err(FileError { source, .. }) if source.raw_os_error() == Some(libc::ESRCH) => Ok(false),
        Err(FileError { path, source }) => Err(HeldError::File {
            path,
            reason: source,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_below_count_and_strangers_of_other_namespaces_do_not() {
        let dir = tempfile::tempdir().unwrap();
        let below = dir.path().join("below");
        fs::create_dir(&below).unwrap();
        fs::write(dir.path().join("cgroup.procs"), "12\n0\n").unwrap();
        fs::write(below.join("cgroup.procs"), "14\n").unwrap();
        assert_eq!(processes(dir.path()), [12, 14]);
        assert!(threads(dir.path()).is_empty());
        assert!(processes(Path::new("/nowhere")).is_empty());
    }

    #[test]
    fn a_group_is_ones_own_when_all_in_it_descend_from_it() {
        let dir = tempfile::tempdir().unwrap();
        let own = std::process::id().cast_signed();
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let file = dir.path().join("cgroup.procs");
        fs::write(&file, format!("{own}\n{}\n", child.id())).unwrap();
        assert!(is_of(dir.path(), own));
        assert!(!is_of(dir.path(), child.id().cast_signed()));
        let thing = |kind, id: &str| Thing {
            kind,
            name: "a".to_owned(),
            id: id.to_owned(),
            pid: None,
            group: "/nowhere".into(),
            inode: 1,
            taken_from: None,
        };
        let name = dir.path().file_name().unwrap().to_str().unwrap();
        let pid = child.id().cast_signed();
        for stranger in [thing(Kind::Process, name), thing(Kind::Docker, "0123")] {
            assert_eq!(family(&stranger, dir.path(), pid), [pid]);
        }
        // A process that `exec` has started in a container descends from somebody else.
        let container = thing(Kind::Docker, name);
        assert_eq!(family(&container, dir.path(), pid), [own, pid]);
        fs::write(&file, "").unwrap();
        assert!(!is_of(dir.path(), own));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn what_must_not_stop_is_not_held() {
        let thing = |group: &str| Thing {
            kind: super::super::Kind::Unit,
            name: "a.service".to_owned(),
            id: "a.service".to_owned(),
            pid: None,
            group: group.into(),
            inode: 1,
            taken_from: None,
        };
        let top = Path::new("/top");
        let own = std::process::id().cast_signed();
        let check = |group: &str, processes: &[i32]| check(&thing(group), processes, &[12], top);
        assert!(matches!(
            check("/top/init.scope", &[1]),
            Err(HeldError::Init(_))
        ));
        assert!(matches!(
            check("/top/a", &[own]),
            Err(HeldError::Own { .. })
        ));
        assert!(matches!(check("/top/a", &[]), Err(HeldError::Ended(_))));
        let cell = "/top/timecell-cell-m.a/cell";
        assert!(matches!(check(cell, &[2]), Err(HeldError::Cell { .. })));
        assert!(check("/top/a", &[i32::MAX]).is_ok());
        // By the ledger, with any program.
        assert!(matches!(
            check("/top/a", &[i32::MAX, 12]),
            Err(HeldError::Own { pid: 12, .. })
        ));
    }

    #[test]
    fn those_who_supervise_are_known_by_the_ledger() {
        let mission = |name: &str| Holder::Mission {
            name: name.to_owned(),
            dir: "/nowhere".into(),
        };
        let held = Holder::Held {
            name: "7".to_owned(),
            group: "/nowhere".into(),
            inode: 1,
        };
        let own = Entry::own(mission("a")).unwrap();
        let mut ended = Entry::own(mission("b")).unwrap();
        ended.process.start_ticks += 1;
        let entries = [own.clone(), ended, Entry::own(held).unwrap()];
        assert_eq!(supervisors(&entries), [own.process.pid]);
    }

    #[test]
    fn what_was_made_below_goes_with_the_group() {
        let dir = tempfile::tempdir().unwrap();
        let group = dir.path().join("held");
        fs::create_dir_all(group.join("a/b")).unwrap();
        fs::create_dir(group.join("c")).unwrap();
        dissolve(&group, dir.path()).unwrap();
        assert!(!group.exists());
        dissolve(&group, dir.path()).unwrap();
    }

    #[test]
    fn where_others_may_move_processes_is_found() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path();
        let group = top.join("slice/service/held");
        fs::create_dir_all(&group).unwrap();
        for of in group.ancestors().take_while(|of| of.starts_with(top)) {
            for file in ["cgroup.procs", "cgroup.freeze"] {
                fs::write(of.join(file), "").unwrap();
                let only_owner = fs::Permissions::from_mode(0o644);
                fs::set_permissions(of.join(file), only_owner).unwrap();
            }
        }
        let own = fs::metadata(top).unwrap().uid();
        let found = |owner: u32| others_rule(&group, top, owner);
        assert_eq!(found(own), None);
        let open = |file: PathBuf| fs::set_permissions(file, fs::Permissions::from_mode(0o664));
        // A process moved within it is held all the same, and above the top there is nothing.
        open(group.join("cgroup.procs")).unwrap();
        open(top.join("cgroup.procs")).unwrap();
        assert_eq!(found(own), None);
        open(top.join("slice/cgroup.procs")).unwrap();
        assert_eq!(found(own), Some(top.join("slice")));
        open(group.join("cgroup.freeze")).unwrap();
        assert_eq!(found(own), Some(group.clone()));
        assert_eq!(found(own.wrapping_add(1)), Some(group.clone()));
    }
}
