//! Admission of the hierarchical constant bandwidth servers of cgroup v2.

use super::deadline::RootDomain;
use super::ratio::Bandwidth;
use super::refusal::Refusal;
use crate::Ns;

/// A group of the cpu controller of cgroup v2 with a budget in `cpu.rt.max`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HcbsGroup {
    /// Index of the parent; `None` for the root.
    pub parent: Option<usize>,
    /// `cpu.rt.max`: runtime in every period, on each cpu.
    pub bandwidth: Bandwidth,
}

/// The tree of groups under the hierarchical constant-bandwidth server of Abeni and others, as its patches check it
/// (`dl_check_tg`; series of 2025 and 2026, not in a released kernel).
///
/// The root group reserves its bandwidth on every cpu of every root domain, beside SCHED_DEADLINE threads and fair
/// servers; its descendants divide it. Each group's budget is the same on each cpu, so that a cell on m cpus is a
/// multiprocessor periodic resource in its equal-share form ([`crate::multi::EqualShare`]).
///
/// ```
/// use timecell_analysis::linux::{Bandwidth, HcbsTree, RootDomain};
///
/// let root = Bandwidth::new(900_000_000, 1_000_000_000);
/// let mut tree = HcbsTree::new(vec![RootDomain::of_cpus(2)], root).unwrap();
/// let cell = tree.add(0, Bandwidth::new(8_750_000, 10_000_000)).unwrap();
/// assert!(tree.add(0, Bandwidth::new(500_000, 10_000_000)).is_err());
/// assert_eq!(tree.own_ratio(0), Some(943_718 - 917_504));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HcbsTree {
    domains: Vec<RootDomain>,
    groups: Vec<HcbsGroup>,
}

impl HcbsTree {
    /// A root alone, with its own budget, on these root domains.
    ///
    /// # Errors
    /// Some root domain has no room for the root: `bw cpus >= total_bw + ratio(root) cpus` does not hold.
    ///
    /// ```
    /// use timecell_analysis::linux::{Bandwidth, HcbsTree, RootDomain};
    ///
    /// let domains = vec![RootDomain::of_cpus(2)];
    /// assert!(HcbsTree::new(domains.clone(), Bandwidth::new(95, 100)).is_ok());
    /// assert!(HcbsTree::new(domains, Bandwidth::new(96, 100)).is_err());
    /// ```
    pub fn new(domains: Vec<RootDomain>, root: Bandwidth) -> Result<HcbsTree, Refusal> {
        let tree = HcbsTree {
            domains,
            groups: vec![HcbsGroup {
                parent: None,
                bandwidth: root,
            }],
        };
        tree.check()?;
        Ok(tree)
    }

    /// A new group with a budget.
    ///
    /// # Errors
    /// There is no such parent, or the kernel would refuse; then nothing changes.
    ///
    /// ```
    /// use timecell_analysis::linux::{Bandwidth, HcbsTree, RootDomain};
    ///
    /// let mut tree = HcbsTree::new(vec![RootDomain::of_cpus(1)], Bandwidth::new(1, 2)).unwrap();
    /// let group = tree.add(0, Bandwidth::new(3, 10)).unwrap();
    /// assert!(tree.add(group, Bandwidth::new(3, 10)).is_ok());
    /// assert!(tree.add(0, Bandwidth::new(3, 10)).is_err(), "3/10 + 3/10 of 1/2");
    /// ```
    pub fn add(&mut self, parent: usize, bandwidth: Bandwidth) -> Result<usize, Refusal> {
        if parent >= self.groups.len() {
            return Err(Refusal::NoGroup { group: parent });
        }
        self.groups.push(HcbsGroup {
            parent: Some(parent),
            bandwidth,
        });
        match self.check() {
            Ok(()) => Ok(self.groups.len() - 1),
            Err(refusal) => {
                self.groups.pop();
                Err(refusal)
            }
        }
    }

    /// Writes `cpu.rt.max` of a group; if the kernel would refuse, nothing changes.
    ///
    /// # Errors
    /// There is no such group, or the kernel would refuse.
    ///
    /// ```
    /// use timecell_analysis::linux::{Bandwidth, HcbsTree, RootDomain};
    ///
    /// let mut tree = HcbsTree::new(vec![RootDomain::of_cpus(2)], Bandwidth::new(1, 2)).unwrap();
    /// assert!(tree.write(0, Bandwidth::new(96, 100)).is_err(), "more than 0.95 of each cpu");
    /// ```
    pub fn write(&mut self, group: usize, bandwidth: Bandwidth) -> Result<(), Refusal> {
        let Some(there) = self.groups.get_mut(group) else {
            return Err(Refusal::NoGroup { group });
        };
        let before = std::mem::replace(&mut there.bandwidth, bandwidth);
        let outcome = self.check();
        if outcome.is_err() {
            self.groups[group].bandwidth = before;
        }
        outcome
    }

    /// The ratio left for a group's own tasks on each cpu: its ratio less those of its children (`cpu.rt.internal`, in version 7 of the series
    /// `cpu.rt.max.effective.local`).
    ///
    /// ```
    /// use timecell_analysis::linux::{Bandwidth, HcbsTree, RootDomain};
    ///
    /// let mut tree = HcbsTree::new(vec![RootDomain::of_cpus(1)], Bandwidth::new(1, 2)).unwrap();
    /// tree.add(0, Bandwidth::new(1, 4)).unwrap();
    /// assert_eq!((tree.own_ratio(0), tree.own_ratio(1), tree.own_ratio(2)), (Some(1 << 18), Some(1 << 18), None));
    /// ```
    pub fn own_ratio(&self, group: usize) -> Option<u64> {
        let own = self.groups.get(group)?.bandwidth.ratio();
        Some(own.saturating_sub(self.children(group)))
    }

    fn children(&self, group: usize) -> u64 {
        self.groups
            .iter()
            .filter(|child| child.parent == Some(group))
            .fold(0, |sum, child| sum.saturating_add(child.bandwidth.ratio()))
    }

    fn check(&self) -> Result<(), Refusal> {
        for (group, each) in self.groups.iter().enumerate() {
            let Bandwidth { runtime, period } = each.bandwidth;
            if period == 0 {
                return Err(Refusal::Nothing { group });
            }
            let runtime: Ns = runtime.unwrap_or(period);
            if runtime > period {
                return Err(Refusal::LongerThanPeriod {
                    group,
                    runtime,
                    period,
                });
            }
        }
        let root = self.groups[0].bandwidth.ratio();
        for (domain, each) in self.domains.iter().enumerate() {
            if each.share.runtime.is_none() {
                continue;
            }
            let cpus = each.capacities.len() as u64;
            let available = each.share.ratio().saturating_mul(cpus);
            let (others, groups) = (each.given(), root.saturating_mul(cpus));
            if available < others.saturating_add(groups) {
                return Err(Refusal::RootAboveDomain {
                    domain,
                    groups,
                    others,
                    available,
                });
            }
        }
        for (group, each) in self.groups.iter().enumerate() {
            let (own, children) = (each.bandwidth.ratio(), self.children(group));
            if children > own {
                return Err(Refusal::ChildrenAboveParent {
                    group,
                    children,
                    own,
                });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::DeadlineParams;

    const MS: Ns = 1_000_000;

    #[test]
    fn deadline_threads_and_fair_servers_take_from_the_groups() {
        let domain = RootDomain {
            taken: DeadlineParams::new(10 * MS, 100 * MS).ratio(),
            ..RootDomain::of_cpus(2)
        };
        let root = Bandwidth::new(900 * MS, 1_000 * MS);
        // 996147 * 2 - 943718 * 2 = 104858 is just enough for one thread of 104857.
        assert!(HcbsTree::new(vec![domain.clone()], root).is_ok());
        let refusal = HcbsTree::new(vec![domain.with_fair_server()], root).unwrap_err();
        assert!(matches!(
            refusal,
            Refusal::RootAboveDomain { domain: 0, .. }
        ));
    }

    #[test]
    fn the_largest_root_is_that_of_a_kernel_that_was_asked() {
        // Linux 7.1.3 with version 6 of the series, two cpus with fair servers, sched_rt_runtime_us = sched_rt_period_us = 1 s.
        let domain = RootDomain {
            share: Bandwidth::new(1_000 * MS, 1_000 * MS),
            ..RootDomain::of_cpus(2).with_fair_server()
        };
        let takes = |us: Ns| {
            let root = Bandwidth::new(us * 1_000, 1_000 * MS);
            HcbsTree::new(vec![domain.clone()], root).is_ok()
        };
        assert!(takes(950_001));
        assert!(!takes(950_002));
    }

    #[test]
    fn every_root_domain_must_have_room() {
        let full = RootDomain {
            taken: 100_000,
            ..RootDomain::of_cpus(1)
        };
        let refusal = HcbsTree::new(
            vec![RootDomain::of_cpus(1), full],
            Bandwidth::new(900 * MS, 1_000 * MS),
        );
        assert!(matches!(
            refusal,
            Err(Refusal::RootAboveDomain { domain: 1, .. })
        ));
    }

    #[test]
    fn children_divide_what_their_parent_has() {
        let root = Bandwidth::new(800 * MS, 1_000 * MS);
        let mut tree = HcbsTree::new(vec![RootDomain::of_cpus(4)], root).unwrap();
        let parent = tree.add(0, Bandwidth::new(50 * MS, 100 * MS)).unwrap();
        let child = tree.add(parent, Bandwidth::new(4 * MS, 10 * MS)).unwrap();
        assert!(tree.add(parent, Bandwidth::new(2 * MS, 10 * MS)).is_err());
        assert!(
            tree.write(parent, Bandwidth::new(30 * MS, 100 * MS))
                .is_err()
        );
        assert_eq!(tree.own_ratio(parent), Some((1 << 19) - 419_430));
        tree.write(child, Bandwidth::new(5 * MS, 10 * MS)).unwrap();
        assert_eq!(tree.own_ratio(parent), Some(0));
        assert!(tree.write(child, Bandwidth::new(5, 0)).is_err());
        assert!(tree.write(child, Bandwidth::new(5, 4)).is_err());
        assert!(tree.write(9, Bandwidth::new(4, 5)).is_err());
        assert!(tree.add(9, Bandwidth::new(4, 5)).is_err());
        assert_eq!(tree.own_ratio(9), None);
    }
}
