//! The state to restore once something is held no longer.
//!
//! It is recorded before anything is changed. A thread created later inherits the state of its parent, and gets that of the first
//! process at the end. A thread whose cpus or class have been changed meanwhile, by itself or others, is left as it is.

use std::path::{Path, PathBuf};

use host::rtgroup;
use host::sched::{self, Class, SchedError};
use serde::{Deserialize, Serialize};

use super::cpuset::Cpuset;
use super::file::Part;
use super::threads::each;
use super::{Thing, group};
use crate::process::start_of;

/// The former state of a thread.
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

/// The state to restore.
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
    /// The present state of these threads, the first process's first.
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

    /// Whether processes of it were in real-time groups that let nobody into the class.
    pub(super) fn has_rt_groups(&self) -> bool {
        !self.rt_groups.is_empty()
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

/// Restores the former state of all threads of a group, in each of its parts, where they still have the state given.
///
/// # Errors
/// The kernel's first refusal; the other threads are restored.
pub(super) fn put_back(
    group: &Path,
    parts: &[Part<'_>],
    class: Option<&Class>,
    back: &mut Back,
) -> Result<(), SchedError> {
    let mut refused = None;
    // Within it none could choose for itself, and older kernels give every thread all of the cpuset.
    let is_back = back.cpuset.as_mut().is_some_and(Cpuset::put_back);
    let back = &*back;
    let mut done = Ok(());
    for &(group, cpu) in parts {
        let give = |tid| give_back(tid, (cpu, is_back), class, back, &mut refused);
        done = done.and(each(group, give));
    }
    // Not before their class is another: the kernel takes none of that class into such a group.
    if back.has_rt_groups()
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
/// The kernel's first refusal; the other threads are restored.
pub(super) fn put_back_of(
    threads: &[i32],
    cpus: &[u32],
    class: Option<&Class>,
    back: &Back,
) -> Result<(), SchedError> {
    let mut refused = None;
    for tid in threads {
        let has = sched::get_affinity(*tid).unwrap_or_default();
        let cpu = has.first().filter(|cpu| cpus.contains(cpu));
        let cpu = cpu.or(cpus.first()).copied().unwrap_or_default();
        match give_back(*tid, (cpu, false), class, back, &mut refused) {
            Err(error) if start_of(*tid).is_some() => {
                refused.get_or_insert(error);
            }
            _ => {}
        }
    }
    refused.map_or(Ok(()), Err)
}

/// Restores the former state of a thread, where it still has the class that it was given and the cpu that it was confined to, or, where its
/// cpuset has just been put back, any cpus; whether that changed anything. Refusals of the kernel go to `refused`.
fn give_back(
    tid: i32,
    (cpu, is_back): (u32, bool),
    class: Option<&Class>,
    back: &Back,
    refused: &mut Option<SchedError>,
) -> Result<bool, SchedError> {
    let Some(before) = back.had(tid) else {
        return Ok(false);
    };
    let mut changed = false;
    if let Some(class) = class
        && sched::get_class(tid)? == *class
        && before.class != *class
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
        // The kernel has lifted the one cpu, or will lift it with the next change: it gets all cpus that others give it.
        Some(theirs) if had_all && (has == theirs.cpus || has == [cpu]) => {
            &host::cpus::possible().unwrap_or_default()
        }
        _ if has != before.cpus && (is_back || has == [cpu]) => &before.cpus,
        _ => return Ok(changed),
    };
    match sched::set_affinity(tid, cpus) {
        // Those that are offline by now, or outside of its cpuset, are left out, and the rest may be its present ones.
        Ok(()) => changed |= sched::get_affinity(tid)? != has,
        // None of its former cpus is in the cpuset that others have given it.
        Err(_) if theirs.is_some() => {}
        Err(error) => {
            refused.get_or_insert(error);
        }
    }
    Ok(changed)
}

#[cfg(test)]
mod tests {
    use super::super::threads::tests::thread;
    use super::*;

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
