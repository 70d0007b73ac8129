//! The threads of a held thing: each moved to one cpu and, if asked for, to class FIFO or RR. The cpuset that confines them there
//! and the group that lets them into the class are changed with them, and restored with them ([`super::back`]).

use std::path::Path;

use host::rtgroup;
use host::sched::{self, Class, SchedError};

use super::back::Back;
use super::file::Part;
use super::{HeldError, group};
use crate::admit::HIGHEST_HELD;
use crate::process::start_of;

/// How often threads are looked for that were born meanwhile.
const PASSES: usize = 100;

/// Keeps all threads of each of these parts of a group to its cpu, and gives them a class.
///
/// # Errors
/// The kernel's refusal; some are kept to it then.
pub(super) fn keep(
    group: &Path,
    parts: &[Part<'_>],
    class: Option<&Class>,
    back: &Back,
) -> Result<(), Refused> {
    if back.has_rt_groups()
        && let Ok(top) = rtgroup::detect()
    {
        enter_all(&top, group).map_err(Refused::Group)?;
    }
    for part in parts {
        confine(*part).map_err(Refused::Thread)?;
        if let Some(class) = class {
            each(part.0, |tid| {
                let has_other = sched::get_class(tid)? != *class;
                if has_other {
                    sched::set_class(tid, class)?;
                }
                Ok(has_other)
            })
            .map_err(Refused::Thread)?;
        }
    }
    Ok(())
}

/// Keeps all threads of a part to its cpu.
///
/// # Errors
/// The kernel's refusal; some are kept to it then.
pub(super) fn confine((group, cpu): Part<'_>) -> Result<(), SchedError> {
    each(group, |tid| {
        let is_elsewhere = sched::get_affinity(tid)? != [cpu];
        if is_elsewhere {
            sched::set_affinity(tid, &[cpu])?;
        }
        Ok(is_elsewhere)
    })
}

/// Puts all processes of a group that can have no real-time class into the group of these at the top.
fn enter_all(top: &Path, group: &Path) -> Result<(), HeldError> {
    for _ in 0..PASSES {
        let mut found = false;
        for pid in group::processes(group) {
            let has_none =
                rtgroup::own_group(pid).is_ok_and(|own| own.path != top && !own.has_budget());
            if has_none {
                found |= group::enter(top, pid)?;
            }
        }
        if !found {
            break;
        }
    }
    Ok(())
}

/// Why threads are not kept.
pub(super) enum Refused {
    Thread(SchedError),
    Group(HeldError),
}

/// How many threads of a part may run on other cpus than its own.
pub(super) fn elsewhere((group, cpu): Part<'_>) -> usize {
    let cpus = (group::threads(group).into_iter()).filter_map(|tid| sched::get_affinity(tid).ok());
    cpus.filter(|cpus| *cpus != [cpu]).count()
}

/// How many of a group's threads and of these `others` run before the freezer's threads, by their class.
pub(super) fn above(group: &Path, others: &[i32]) -> usize {
    let all = group::threads(group).into_iter().chain(others.to_vec());
    let comes_before = |tid: &i32| match sched::get_class(*tid) {
        Ok(Class::Fifo { priority } | Class::RoundRobin { priority }) => priority > HIGHEST_HELD,
        Ok(Class::Deadline { .. }) => true,
        _ => false,
    };
    all.filter(comes_before).count()
}

pub(super) use host::process::threads as threads_of;

/// Does something to every thread until none is left to which it does anything. Those that end meanwhile are passed over.
pub(super) fn each(
    group: &Path,
    mut change: impl FnMut(i32) -> Result<bool, SchedError>,
) -> Result<(), SchedError> {
    for _ in 0..PASSES {
        let mut changed = false;
        for tid in group::threads(group) {
            match change(tid) {
                Ok(done) => changed |= done,
                Err(_) if start_of(tid).is_none() => {}
                Err(error) => return Err(error),
            }
        }
        if !changed {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
pub(super) mod tests {
    use std::process::Command;

    use super::super::back::put_back;
    use super::*;

    /// A group of one thread, which is on a cpu that it may use.
    pub(in crate::held) fn thread() -> (tempfile::TempDir, std::process::Child, i32) {
        let dir = tempfile::tempdir().unwrap();
        let child = Command::new("sleep").arg("60").spawn().unwrap();
        let tid = child.id().cast_signed();
        std::fs::write(dir.path().join("cgroup.threads"), format!("{tid}\n")).unwrap();
        (dir, child, tid)
    }

    #[test]
    fn threads_are_kept_to_a_cpu_and_get_back_what_they_had() {
        let (dir, mut child, tid) = thread();
        let had = sched::get_affinity(tid).unwrap();
        let cpu = *had.last().unwrap();
        let mut back = Back::of(&group::threads(dir.path()), Some(tid));
        assert_eq!(
            (back.cpus(), back.priorities(), back.deadline()),
            (&had[..], None, None)
        );
        assert!(keep(dir.path(), &[(dir.path(), cpu)], None, &back).is_ok());
        assert_eq!(sched::get_affinity(tid).unwrap(), [cpu]);
        if had.len() > 1 {
            assert_eq!(elsewhere((dir.path(), had[0])), 1);
        }
        assert_eq!(elsewhere((dir.path(), cpu)), 0);
        put_back(dir.path(), &[(dir.path(), cpu)], None, &mut back).unwrap();
        assert_eq!(sched::get_affinity(tid).unwrap(), had);
        // One that has chosen for itself meanwhile.
        assert!(keep(dir.path(), &[(dir.path(), cpu)], None, &back).is_ok());
        sched::set_affinity(tid, &had).unwrap();
        put_back(dir.path(), &[(dir.path(), cpu)], None, &mut back).unwrap();
        assert_eq!(sched::get_affinity(tid).unwrap(), had);
        child.kill().unwrap();
        child.wait().unwrap();
        // Its number is nobody's, and that is no error.
        put_back(dir.path(), &[(dir.path(), cpu)], None, &mut back).unwrap();
    }

    #[test]
    fn a_class_that_was_given_is_taken_back() {
        let (dir, mut child, tid) = thread();
        let mut back = Back::of(&[tid], Some(tid)).with_rt_groups(&[tid]);
        let cpu = *back.cpus().last().unwrap();
        let had = sched::get_class(tid).unwrap();
        // A class of its own choice stays.
        let own = Class::Batch;
        sched::set_class(tid, &own).unwrap();
        let held = Class::RoundRobin { priority: 3 };
        put_back(dir.path(), &[(dir.path(), cpu)], Some(&held), &mut back).unwrap();
        assert_eq!(sched::get_class(tid).unwrap(), own);
        sched::set_class(tid, &had).unwrap();
        match keep(dir.path(), &[(dir.path(), cpu)], Some(&held), &back) {
            Ok(()) => {
                assert_eq!(sched::get_class(tid).unwrap(), held);
                assert_eq!(Back::of(&[tid], None).priorities(), Some((3, 3)));
                put_back(dir.path(), &[(dir.path(), cpu)], Some(&held), &mut back).unwrap();
            }
            // A caller that may not give the class is told so, and nobody else.
            Err(_) => assert!(sched::set_class(tid, &held).is_err()),
        }
        assert_eq!(sched::get_class(tid).unwrap(), had);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
