//! The threads of what is held: each moved to one cpu and, if asked for, to class FIFO, and later restored. What else confines
//! them there and lets them into the class is restored with them.
//!
//! What they had is recorded before anything is changed. A thread created later inherits what its parent has by then, and
//! gets at the end what the first process had. A thread that has meanwhile changed its cpus or class itself is left as it
//! is.

use std::path::{Path, PathBuf};

use host::rtgroup;
use host::sched::{self, Class, SchedError};
use serde::{Deserialize, Serialize};

use super::cpuset::Cpuset;
use super::file::Part;
use super::{HeldError, Thing, group};
use crate::admit::HIGHEST_HELD;
use crate::process::start_of;

/// How often threads are looked for that were born meanwhile.
const PASSES: usize = 100;

/// What a thread had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Before {
    tid: i32,
    start_ticks: u64,
    cpus: Vec<u32>,
    class: Class,
    /// Whether its children start as OTHER.
    #[serde(default)]
    resets_on_fork: bool,
}

impl Before {
    fn of(tid: i32) -> Option<Before> {
        let (class, resets_on_fork) = sched::get_class_and_reset(tid).ok()?;
        Some(Before {
            tid,
            start_ticks: start_of(tid)?,
            cpus: sched::get_affinity(tid).ok()?,
            class,
            resets_on_fork,
        })
    }

    /// Gives a thread this class.
    fn give_class(&self, tid: i32) -> Result<(), SchedError> {
        match self.resets_on_fork {
            true => sched::set_class_reset_on_fork(tid, &self.class),
            false => sched::set_class(tid, &self.class),
        }
    }
}

/// Where a process was among real-time groups.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct RtGroup {
    pid: i32,
    start_ticks: u64,
    path: PathBuf,
}

/// What has to be restored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Back {
    /// The first one's counts for those that were born later.
    threads: Vec<Before>,
    /// When that was, in clock ticks since boot, like start times of processes.
    #[serde(default)]
    noted_ticks: u64,
    /// Of processes whose real-time group has no budget, so that none of them could be of class FIFO.
    rt_groups: Vec<RtGroup>,
    /// Around its threads.
    cpuset: Option<Cpuset>,
}

impl Back {
    /// What these threads have now, the first process's first.
    pub(super) fn of(threads: &[i32], pid: Option<i32>) -> Back {
        let mut order = threads.to_vec();
        order.sort_by_key(|tid| Some(*tid) != pid);
        Back {
            noted_ticks: crate::process::ticks_now(),
            // A thread that has just ended needs nothing restored.
            threads: order.into_iter().filter_map(Before::of).collect(),
            rt_groups: Vec::new(),
            cpuset: None,
        }
    }

    /// The same with the cpuset around the thing's threads.
    pub(super) fn with_cpuset(self, thing: &Thing) -> Back {
        let pid = thing.pid.or(self.threads.first().map(|first| first.tid));
        Back {
            cpuset: pid.and_then(|pid| Cpuset::of(thing, pid)),
            ..self
        }
    }

    /// Its cpuset.
    pub(super) fn cpuset(&self) -> Option<&Cpuset> {
        self.cpuset.as_ref()
    }

    /// Leaves a container's cpuset these cpus alone.
    pub(super) fn keep_cpuset(&mut self, cpus: &[u32]) {
        if let Some(cpuset) = &mut self.cpuset {
            cpuset.keep(cpus);
        }
    }

    /// The same with where these processes are, where their real-time groups let nobody into the class.
    pub(super) fn with_rt_groups(self, processes: &[i32]) -> Back {
        let Ok(top) = rtgroup::detect() else {
            return self;
        };
        let group = |pid: i32| {
            let own = rtgroup::own_group(pid).ok()?;
            (own.path != top && !own.has_budget()).then_some(())?;
            Some(RtGroup {
                pid,
                start_ticks: start_of(pid)?,
                path: own.path,
            })
        };
        Back {
            rt_groups: processes.iter().copied().filter_map(group).collect(),
            ..self
        }
    }

    /// Lowest and highest priority of those that were of class FIFO or RR; `None`: none was.
    pub(super) fn priorities(&self) -> Option<(u8, u8)> {
        let priority = |before: &Before| match before.class {
            Class::Fifo { priority } | Class::RoundRobin { priority } => Some(priority),
            _ => None,
        };
        let all = || self.threads.iter().filter_map(priority);
        all().min().zip(all().max())
    }

    /// A thread of SCHED_DEADLINE.
    pub(super) fn deadline(&self) -> Option<i32> {
        let is = |before: &&Before| matches!(before.class, Class::Deadline { .. });
        self.threads.iter().find(is).map(|before| before.tid)
    }

    /// Cpus on which the first thread might run.
    pub(super) fn cpus(&self) -> &[u32] {
        self.threads.first().map_or(&[], |first| &first.cpus)
    }

    /// Those of its threads that still live, whose number is nobody else's.
    pub(super) fn living(&self) -> Vec<i32> {
        let lives = |before: &&Before| start_of(before.tid) == Some(before.start_ticks);
        let living = self.threads.iter().filter(lives);
        living.map(|before| before.tid).collect()
    }

    /// Whether a process was started since they were noted; `false`: earlier, or it is gone.
    pub(super) fn began_since(&self, pid: i32) -> bool {
        start_of(pid).is_some_and(|start| start >= self.noted_ticks)
    }

    #[cfg(test)]
    pub(super) fn with_cpus(mut self, cpus: &[u32]) -> Back {
        for before in &mut self.threads {
            cpus.clone_into(&mut before.cpus);
        }
        self
    }

    #[cfg(test)]
    pub(super) fn noted_at(self, noted_ticks: u64) -> Back {
        Back {
            noted_ticks,
            ..self
        }
    }

    fn had(&self, tid: i32) -> Option<&Before> {
        let known = self.threads.iter().find(|before| before.tid == tid);
        let same = known.filter(|before| start_of(tid) == Some(before.start_ticks));
        same.or(self.threads.first())
    }

    /// Where a process is to go among real-time groups.
    fn rt_group(&self, pid: i32) -> Option<&Path> {
        let known = self.rt_groups.iter().find(|group| group.pid == pid);
        let same = known.filter(|group| start_of(pid) == Some(group.start_ticks));
        Some(&same.or(self.rt_groups.first())?.path)
    }
}

/// Keeps all threads of each of these parts of a group to its cpu, and gives them a class.
///
/// # Errors
/// What the kernel refused; some are kept to it then.
pub(super) fn keep(
    group: &Path,
    parts: &[Part<'_>],
    fifo: Option<u8>,
    back: &Back,
) -> Result<(), Refused> {
    if !back.rt_groups.is_empty()
        && let Ok(top) = rtgroup::detect()
    {
        enter_all(&top, group).map_err(Refused::Group)?;
    }
    for part in parts {
        confine(*part).map_err(Refused::Thread)?;
        if let Some(priority) = fifo {
            let class = Class::Fifo { priority };
            each(part.0, |tid| {
                let has_other = sched::get_class(tid)? != class;
                if has_other {
                    sched::set_class(tid, &class)?;
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
/// What the kernel refused; some are kept to it then.
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

/// Restores what all threads of a group had, in each of its parts, where they still have what they were given.
///
/// # Errors
/// What the kernel refused, of the first; the others have it.
pub(super) fn put_back(
    group: &Path,
    parts: &[Part<'_>],
    fifo: Option<u8>,
    back: &mut Back,
) -> Result<(), SchedError> {
    let mut refused = None;
    // Within it none could choose for itself, and older kernels give every thread all of what it is given.
    let is_back = back.cpuset.as_mut().is_some_and(Cpuset::put_back);
    let back = &*back;
    let mut done = Ok(());
    for &(group, cpu) in parts {
        let give = |tid| give_back(tid, (cpu, is_back), fifo, back, &mut refused);
        done = done.and(each(group, give));
    }
    // Not before their class is another: the kernel takes none of that class into such a group.
    if !back.rt_groups.is_empty()
        && let Ok(top) = rtgroup::detect()
    {
        for pid in group::processes(group) {
            if rtgroup::own_group(pid).is_ok_and(|own| own.path == top)
                && let Some(path) = back.rt_group(pid)
            {
                // Its group may be gone; then it stays.
                let _ = group::enter(path, pid);
            }
        }
    }
    done.and(refused.map_or(Ok(()), Err))
}

/// The same of threads that are not in the group any more.
///
/// # Errors
/// What the kernel refused, of the first; the others have it.
pub(super) fn put_back_of(
    threads: &[i32],
    cpus: &[u32],
    fifo: Option<u8>,
    back: &Back,
) -> Result<(), SchedError> {
    let mut refused = None;
    for tid in threads {
        let has = sched::get_affinity(*tid).unwrap_or_default();
        let cpu = has.first().filter(|cpu| cpus.contains(cpu));
        let cpu = cpu.or(cpus.first()).copied().unwrap_or_default();
        match give_back(*tid, (cpu, false), fifo, back, &mut refused) {
            Err(error) if start_of(*tid).is_some() => {
                refused.get_or_insert(error);
            }
            _ => {}
        }
    }
    refused.map_or(Ok(()), Err)
}

/// Restores what a thread had, where it still has the class `fifo` and the cpu that it was confined to, or, where its cpuset has
/// just been put back, whatever cpus; whether that changed anything. What the kernel refuses goes to `refused`.
fn give_back(
    tid: i32,
    (cpu, is_back): (u32, bool),
    fifo: Option<u8>,
    back: &Back,
    refused: &mut Option<SchedError>,
) -> Result<bool, SchedError> {
    let Some(before) = back.had(tid) else {
        return Ok(false);
    };
    let mut changed = false;
    if let Some(priority) = fifo
        && sched::get_class(tid)? == (Class::Fifo { priority })
        && before.class != (Class::Fifo { priority })
    {
        match before.give_class(tid) {
            Ok(()) => changed = true,
            Err(error) => {
                refused.get_or_insert(error);
            }
        }
    }
    let has = sched::get_affinity(tid)?;
    let cpuset = back.cpuset.as_ref();
    let theirs = cpuset.and_then(Cpuset::theirs);
    let had_all = cpuset.is_some_and(|cpuset| cpuset.is_all(&before.cpus));
    let cpus = match &theirs {
        // The kernel has lifted the one cpu, or will lift it with the next change: it gets all of what others give it.
        Some(theirs) if had_all && (has == theirs.cpus || has == [cpu]) => {
            &host::cpus::possible().unwrap_or_default()
        }
        _ if has != before.cpus && (is_back || has == [cpu]) => &before.cpus,
        _ => return Ok(changed),
    };
    match sched::set_affinity(tid, cpus) {
        // Those that are offline by now, or outside of its cpuset, are left out, and what is left may be what it has.
        Ok(()) => changed |= sched::get_affinity(tid)? != has,
        // None of what it had is in the cpuset that others have given it.
        Err(_) if theirs.is_some() => {}
        Err(error) => {
            refused.get_or_insert(error);
        }
    }
    Ok(changed)
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
fn each(
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
mod tests {
    use std::process::Command;

    use super::*;

    /// A group of one thread, which is on a cpu that it may use.
    fn thread() -> (tempfile::TempDir, std::process::Child, i32) {
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
        put_back(dir.path(), &[(dir.path(), cpu)], Some(3), &mut back).unwrap();
        assert_eq!(sched::get_class(tid).unwrap(), own);
        sched::set_class(tid, &had).unwrap();
        match keep(dir.path(), &[(dir.path(), cpu)], Some(3), &back) {
            Ok(()) => {
                let held = Class::Fifo { priority: 3 };
                assert_eq!(sched::get_class(tid).unwrap(), held);
                assert_eq!(Back::of(&[tid], None).priorities(), Some((3, 3)));
                put_back(dir.path(), &[(dir.path(), cpu)], Some(3), &mut back).unwrap();
            }
            // Whoever may not give the class is told so, and nobody else.
            Err(_) => assert!(sched::set_class(tid, &Class::Fifo { priority: 3 }).is_err()),
        }
        assert_eq!(sched::get_class(tid).unwrap(), had);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn whether_children_start_as_other_is_put_back() {
        let (_dir, mut child, tid) = thread();
        let (batch, other) = (Class::Batch, Class::Other);
        sched::set_class_reset_on_fork(tid, &batch).unwrap();
        let back = Back::of(&[tid], Some(tid));
        // It takes a privilege to do without again, but none to be of the class again.
        sched::set_class_reset_on_fork(tid, &other).unwrap();
        back.threads[0].give_class(tid).unwrap();
        assert_eq!(sched::get_class_and_reset(tid), Ok((batch, true)));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn one_that_was_born_later_gets_what_the_first_had() {
        let (_dir, mut child, tid) = thread();
        let mut back = Back::of(&[std::process::id().cast_signed(), tid], Some(tid));
        assert_eq!(back.threads[0].tid, tid);
        // The same number, of another thread.
        back.threads[1].start_ticks += 1;
        assert_eq!(back.had(back.threads[1].tid), back.threads.first());
        assert_eq!(back.had(i32::MAX), back.threads.first());
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
