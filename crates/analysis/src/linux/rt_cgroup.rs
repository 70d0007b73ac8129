//! Admission of real-time groups of cgroup v1, as the kernel does it.

use super::ratio::Bandwidth;
use super::refusal::Refusal;
use crate::Ns;

/// `max_rt_runtime`: a longer runtime would overflow the kernel's shift, ns.
const LONGEST_RUNTIME: Ns = (1 << 44) - 1;

/// The files are in microseconds.
const MICROSECOND: Ns = 1_000;

/// A group of the cpu controller of cgroup v1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RtGroup {
    /// Index of the parent; `None` for the root.
    pub parent: Option<usize>,
    /// `cpu.rt_runtime_us` in every `cpu.rt_period_us`, on each cpu.
    pub bandwidth: Bandwidth,
    /// Whether a real-time task is in it.
    pub has_tasks: bool,
}

/// A write to one of a group's two files, in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RtWrite {
    /// `cpu.rt_period_us`.
    Period(Ns),
    /// `cpu.rt_runtime_us`; `None` is -1.
    Runtime(Option<Ns>),
}

/// The tree of rt-cgroups (cgroup v1, CONFIG_RT_GROUP_SCHED) as the kernel checks it (kernel/sched/rt.c).
///
/// Group 0 is the root. Every budget holds on each cpu: a group with 5 ms in 10 ms may run 10 ms in 10 ms on two. An
/// admitted tree promises no deadline: it bounds the use of groups, and below the priorities of others they may get
/// less.
///
/// ```
/// use timecell_analysis::linux::{RtTree, RtWrite};
///
/// let mut tree = RtTree::default();
/// let cell = tree.add(0).unwrap();
/// // A new group has a period of 1 s, and so the runtime cannot come first.
/// assert!(tree.write(cell, RtWrite::Runtime(Some(1_500_000_000))).is_err());
/// tree.write(cell, RtWrite::Period(2_000_000_000)).unwrap();
/// tree.write(cell, RtWrite::Runtime(Some(1_500_000_000))).unwrap();
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RtTree {
    global: Bandwidth,
    groups: Vec<RtGroup>,
}

impl Default for RtTree {
    /// A root alone, with the kernel's 0.95 s in every second.
    fn default() -> RtTree {
        RtTree::new(Bandwidth::default(), Bandwidth::default())
    }
}

impl RtTree {
    /// A root alone, under `sched_rt_runtime_us` by `sched_rt_period_us`.
    ///
    /// ```
    /// use timecell_analysis::linux::{Bandwidth, RtTree, RtWrite};
    ///
    /// let mut tree = RtTree::new(Bandwidth::default(), Bandwidth::new(500_000_000, 1_000_000_000));
    /// let cell = tree.add(0).unwrap();
    /// assert!(tree.write(cell, RtWrite::Runtime(Some(500_000_000))).is_ok());
    /// ```
    pub fn new(global: Bandwidth, root: Bandwidth) -> RtTree {
        RtTree {
            global,
            groups: vec![RtGroup {
                parent: None,
                bandwidth: root,
                has_tasks: false,
            }],
        }
    }

    /// A new group, as `mkdir` makes it: no runtime, and the machine's period.
    ///
    /// # Errors
    /// There is no such parent.
    ///
    /// ```
    /// use timecell_analysis::linux::{Bandwidth, RtTree};
    ///
    /// let mut tree = RtTree::default();
    /// let cell = tree.add(0).unwrap();
    /// assert_eq!(tree.group(cell).unwrap().bandwidth, Bandwidth::new(0, 1_000_000_000));
    /// assert!(tree.add(7).is_err());
    /// ```
    pub fn add(&mut self, parent: usize) -> Result<usize, Refusal> {
        self.group(parent)?;
        self.groups.push(RtGroup {
            parent: Some(parent),
            bandwidth: Bandwidth::new(0, self.global.period),
            has_tasks: false,
        });
        Ok(self.groups.len() - 1)
    }

    /// A group.
    ///
    /// # Errors
    /// There is no group with that index.
    ///
    /// ```
    /// use timecell_analysis::linux::{Bandwidth, RtTree};
    ///
    /// let tree = RtTree::default();
    /// assert_eq!(tree.group(0).unwrap().bandwidth, Bandwidth::default());
    /// assert!(tree.group(1).is_err());
    /// ```
    pub fn group(&self, group: usize) -> Result<&RtGroup, Refusal> {
        self.groups.get(group).ok_or(Refusal::NoGroup { group })
    }

    /// Puts a real-time task into a group.
    ///
    /// # Errors
    /// The group has no runtime (`sched_rt_can_attach`).
    ///
    /// ```
    /// let mut tree = timecell_analysis::linux::RtTree::default();
    /// let cell = tree.add(0).unwrap();
    /// assert!(tree.enter(cell).is_err());
    /// ```
    pub fn enter(&mut self, group: usize) -> Result<(), Refusal> {
        if self.group(group)?.bandwidth.runtime == Some(0) {
            return Err(Refusal::NoRuntime { group });
        }
        self.groups[group].has_tasks = true;
        Ok(())
    }

    /// Writes one file, if the kernel would take it (`tg_set_rt_bandwidth`); else nothing changes.
    ///
    /// # Errors
    /// The check that fails first, in the kernel's order: the group itself, then every group from the root down.
    ///
    /// ```
    /// use timecell_analysis::linux::{Errno, RtTree, RtWrite};
    ///
    /// let mut tree = RtTree::default();
    /// let cells = [tree.add(0).unwrap(), tree.add(0).unwrap()];
    /// tree.write(cells[0], RtWrite::Runtime(Some(500_000_000))).unwrap();
    /// let refused = tree.write(cells[1], RtWrite::Runtime(Some(500_000_000)));
    /// assert_eq!(refused.unwrap_err().errno(), Errno::Einval, "1.0 of the root's 0.95");
    /// tree.write(cells[1], RtWrite::Runtime(Some(450_000_000))).unwrap();
    /// ```
    pub fn write(&mut self, group: usize, write: RtWrite) -> Result<(), Refusal> {
        let before = self.group(group)?.bandwidth;
        let after = match write {
            RtWrite::Period(period) => Bandwidth { period, ..before },
            RtWrite::Runtime(runtime) => Bandwidth { runtime, ..before },
        };
        self.check_write(group, after)?;
        self.groups[group].bandwidth = after;
        let outcome = self.check_tree(group, before);
        if outcome.is_err() {
            self.groups[group].bandwidth = before;
        }
        outcome
    }

    /// The writes that bring a group to a budget with every step admitted: the period before the runtime where that
    /// goes, else the runtime first, else by way of a runtime of 0.
    ///
    /// # Errors
    /// Why the last way that was tried is refused; a parent must have its share first, so go from the root down.
    ///
    /// ```
    /// use timecell_analysis::linux::{Bandwidth, RtTree, RtWrite};
    ///
    /// let mut tree = RtTree::default();
    /// let cell = tree.add(0).unwrap();
    /// let writes = tree.plan(cell, Bandwidth::new(7_500_000, 11_000_000)).unwrap();
    /// assert_eq!(writes, [RtWrite::Period(11_000_000), RtWrite::Runtime(Some(7_500_000))]);
    /// ```
    pub fn plan(&self, group: usize, target: Bandwidth) -> Result<Vec<RtWrite>, Refusal> {
        let period = RtWrite::Period(target.period);
        let runtime = RtWrite::Runtime(target.runtime);
        let ways = [
            vec![period, runtime],
            vec![runtime, period],
            vec![RtWrite::Runtime(Some(0)), period, runtime],
        ];
        let mut refusal = Refusal::NoGroup { group };
        for way in ways {
            let mut tree = self.clone();
            match way.iter().try_for_each(|&write| tree.write(group, write)) {
                Ok(()) => return Ok(way),
                Err(why) => refusal = why,
            }
        }
        Err(refusal)
    }

    fn check_write(&self, group: usize, after: Bandwidth) -> Result<(), Refusal> {
        for time in after.runtime.into_iter().chain([after.period]) {
            if time % MICROSECOND != 0 {
                return Err(Refusal::NotMicroseconds { group, time });
            }
        }
        if after.period == 0 || (group == 0 && after.runtime == Some(0)) {
            return Err(Refusal::Nothing { group });
        }
        match after.runtime {
            Some(runtime) if runtime > LONGEST_RUNTIME => Err(Refusal::LongerThanPeriod {
                group,
                runtime,
                period: after.period,
            }),
            _ => Ok(()),
        }
    }

    /// `tg_rt_schedulable` for every group, parents first; `changed` had the bandwidth `before`.
    fn check_tree(&self, changed: usize, before: Bandwidth) -> Result<(), Refusal> {
        let mut children = vec![0u64; self.groups.len()];
        for group in &self.groups {
            if let Some(parent) = group.parent {
                children[parent] = children[parent].saturating_add(group.bandwidth.ratio());
            }
        }
        let global = self.global.ratio();
        for (group, each) in self.groups.iter().enumerate() {
            let Bandwidth { runtime, period } = each.bandwidth;
            if let Some(runtime) = runtime.filter(|&runtime| runtime > period) {
                return Err(Refusal::LongerThanPeriod {
                    group,
                    runtime,
                    period,
                });
            }
            let emptied = group == changed && runtime == Some(0) && before.runtime != Some(0);
            if emptied && each.has_tasks && self.global.runtime.is_some() {
                return Err(Refusal::TasksWouldStarve { group });
            }
            let ratio = each.bandwidth.ratio();
            if ratio > global {
                return Err(Refusal::AboveGlobal {
                    group,
                    ratio,
                    global,
                });
            }
            if children[group] > ratio {
                return Err(Refusal::ChildrenAboveParent {
                    group,
                    children: children[group],
                    own: ratio,
                });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::Errno;
    use proptest::prelude::*;

    const MS: Ns = 1_000_000;

    fn set(tree: &mut RtTree, group: usize, runtime: Ns, period: Ns) -> Result<(), Refusal> {
        for write in tree.plan(group, Bandwidth::new(runtime, period))? {
            tree.write(group, write)?;
        }
        Ok(())
    }

    #[test]
    fn children_share_what_their_parent_has() {
        let mut tree = RtTree::default();
        let parent = tree.add(0).unwrap();
        let (left, right) = (tree.add(parent).unwrap(), tree.add(parent).unwrap());
        let refusal = set(&mut tree, left, 10 * MS, 100 * MS).unwrap_err();
        assert!(
            matches!(
                refusal,
                Refusal::ChildrenAboveParent {
                    group: 1,
                    own: 0,
                    ..
                }
            ),
            "the ancestor that refuses is named: {refusal}"
        );
        set(&mut tree, parent, 50 * MS, 100 * MS).unwrap();
        set(&mut tree, left, 30 * MS, 100 * MS).unwrap();
        set(&mut tree, right, 20 * MS, 100 * MS).unwrap();
        assert!(set(&mut tree, right, 21 * MS, 100 * MS).is_err());
        assert_eq!(tree.group(right).unwrap().bandwidth.runtime, Some(20 * MS));
        let refusal = set(&mut tree, parent, 49 * MS, 100 * MS).unwrap_err();
        assert_eq!(refusal.errno(), Errno::Einval);
    }

    #[test]
    fn rounding_lets_a_little_more_in() {
        // Three thirds are 3 * 349525 = 2^20 - 1 of 2^20: the kernel's rounding admits them together.
        let whole = Bandwidth::new(1_000 * MS, 1_000 * MS);
        let mut tree = RtTree::new(whole, whole);
        for _ in 0..3 {
            let third = tree.add(0).unwrap();
            set(&mut tree, third, 100 * MS, 300 * MS).unwrap();
        }
        let more = tree.add(0).unwrap();
        // One of 2^20 is left: 1 us in 1 s rounds to it.
        set(&mut tree, more, 1_000, 1_000 * MS).unwrap();
    }

    #[test]
    fn nobody_has_more_than_the_machine() {
        let mut tree = RtTree::default();
        let refusal = tree.write(0, RtWrite::Runtime(Some(960 * MS))).unwrap_err();
        assert!(matches!(refusal, Refusal::AboveGlobal { group: 0, .. }));
        assert!(tree.write(0, RtWrite::Runtime(None)).is_err());
        assert!(tree.write(0, RtWrite::Runtime(Some(0))).is_err());
        assert!(tree.write(0, RtWrite::Period(0)).is_err());
        assert!(tree.write(0, RtWrite::Period(999)).is_err());
        assert!(tree.write(1, RtWrite::Period(MS)).is_err());
        assert!(tree.add(1).is_err());
    }

    #[test]
    fn tasks_are_not_starved() {
        let mut tree = RtTree::default();
        let cell = tree.add(0).unwrap();
        set(&mut tree, cell, 10 * MS, 100 * MS).unwrap();
        tree.enter(cell).unwrap();
        let refusal = tree.write(cell, RtWrite::Runtime(Some(0))).unwrap_err();
        assert_eq!(refusal.errno(), Errno::Ebusy);
    }

    #[test]
    fn a_shorter_period_goes_by_a_shorter_runtime() {
        let mut tree = RtTree::default();
        let cell = tree.add(0).unwrap();
        set(&mut tree, cell, 500 * MS, 1_000 * MS).unwrap();
        let target = Bandwidth::new(5 * MS, 10 * MS);
        assert_eq!(
            tree.plan(cell, target).unwrap(),
            [RtWrite::Runtime(Some(5 * MS)), RtWrite::Period(10 * MS)]
        );
    }

    proptest! {
        #[test]
        fn a_tree_that_was_admitted_stays_so(
            writes in proptest::collection::vec((0usize..6, any::<bool>(), 0u64..1_200), 0..60),
        ) {
            let mut tree = RtTree::default();
            for parent in [0, 0, 1, 1, 2] {
                tree.add(parent).unwrap();
            }
            for (group, period, time) in writes {
                let time = time * MS;
                let write = if period { RtWrite::Period(time) } else { RtWrite::Runtime(Some(time)) };
                let before = tree.clone();
                if tree.write(group, write).is_err() {
                    prop_assert_eq!(&tree, &before);
                }
                for (index, group) in tree.groups.iter().enumerate() {
                    let children: u64 = tree.groups.iter()
                        .filter(|child| child.parent == Some(index))
                        .map(|child| child.bandwidth.ratio())
                        .sum();
                    prop_assert!(children <= group.bandwidth.ratio());
                    prop_assert!(group.bandwidth.ratio() <= 996_147);
                }
            }
        }
    }
}
