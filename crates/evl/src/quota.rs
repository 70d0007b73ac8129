//! Quotas: groups of threads, each with a part of every period of one cpu.
//!
//! All groups of a cpu are refilled at the same instant, so that none comes back to back with a full one of the period before. They
//! come by the priorities of their threads, among those of FIFO, and after time partitions. A group outlives whoever made it.

use std::os::fd::OwnedFd;

use crate::abi::{self, PolicyRequest, QuotaAnswer, QuotaAsked};
use crate::kernel::{self, Core, EvlError};

/// The period of all quotas, ns: a core goes on with the one it began with, whatever is written to its `quota` in sysfs later.
pub const PERIOD_NS: u64 = 1_000_000_000;

/// A group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Group {
    /// Its cpu.
    pub cpu: u32,
    /// Its number, 0 to 1023: no other group of any cpu has it at the same time.
    pub number: i32,
}

/// The variable that names a cell's groups to the program in it.
pub const GROUPS: &str = "TIMECELL_EVL_GROUP";

/// These groups as one word, such as `1:7,2:8`: cpu and number of each.
pub fn listed(groups: &[Group]) -> String {
    let each: Vec<String> = (groups.iter())
        .map(|group| format!("{}:{}", group.cpu, group.number))
        .collect();
    each.join(",")
}

/// The groups of such a word; `None`: it is none.
pub fn groups(word: &str) -> Option<Vec<Group>> {
    let group = |one: &str| {
        let (cpu, number) = one.split_once(':')?;
        Some(Group {
            cpu: cpu.parse().ok()?,
            number: number.parse().ok()?,
        })
    };
    word.split(',').map(group).collect()
}

/// The quota of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// Of every period, percent.
    pub percent: i32,
    /// Of a period, with what those before left, percent; `percent`: nothing is saved.
    pub peak: i32,
    /// Of all groups of the cpu together, percent.
    pub sum: i32,
}

/// The groups of all cpus.
#[derive(Debug)]
pub struct Quotas {
    control: OwnedFd,
}

impl Quotas {
    /// Those of the running kernel.
    ///
    /// # Errors
    /// If it has no EVL, or one of an unknown level.
    pub fn open() -> Result<Quotas, EvlError> {
        Core::open()?;
        let control = kernel::open(0)?;
        Ok(Quotas { control })
    }

    fn ask(&self, cpu: u32, asked: QuotaAsked) -> Result<QuotaAnswer, EvlError> {
        let mut answer = QuotaAnswer::default();
        let request = PolicyRequest {
            policy: abi::SCHED_QUOTA,
            cpu: cpu as i32,
            asked: &raw const asked as u64,
            answer: &raw mut answer as u64,
        };
        kernel::ioctl(&self.control, abi::SCHEDCTL, &raw const request as usize).map_err(
            |source| EvlError::Cpu {
                cpu,
                what: kernel::QUOTAS,
                source,
            },
        )?;
        Ok(answer)
    }

    /// Makes a group with so much of every period of a cpu, 1 to 100 percent, of which nothing is saved.
    ///
    /// # Errors
    /// If the core refuses, or all quotas of the cpu would be more than 100 percent; then there is no such group.
    pub fn add(&self, cpu: u32, percent: i32) -> Result<Group, EvlError> {
        let made = self.ask(
            cpu,
            QuotaAsked {
                operation: abi::QUOTA_ADD,
                ..QuotaAsked::default()
            },
        )?;
        let group = Group {
            cpu,
            number: made.group,
        };
        let set = self.set(group, percent);
        if set.is_err() {
            let _ = self.remove(group);
        }
        set.map(|()| group)
    }

    /// Changes the quota of a group, 1 to 100 percent, at once.
    ///
    /// # Errors
    /// If there is no such group, or all quotas of the cpu would be more than 100 percent; then it has the quota that it had.
    pub fn set(&self, group: Group, percent: i32) -> Result<(), EvlError> {
        let before = self.get(group)?;
        let to = |percent, peak| {
            let asked = QuotaAsked {
                operation: abi::QUOTA_SET,
                group: group.number,
                percent,
                peak,
            };
            self.ask(group.cpu, asked)
        };
        match to(percent, percent)?.sum {
            ..=100 => Ok(()),
            sum => {
                to(before.percent, before.peak)?;
                let cpu = group.cpu;
                Err(EvlError::Overbooked { cpu, sum })
            }
        }
    }

    /// The quota of a group.
    ///
    /// # Errors
    /// If there is no such group.
    pub fn get(&self, group: Group) -> Result<Quota, EvlError> {
        let asked = QuotaAsked {
            operation: abi::QUOTA_GET,
            group: group.number,
            ..QuotaAsked::default()
        };
        let answer = self.ask(group.cpu, asked)?;
        Ok(Quota {
            percent: answer.percent,
            peak: answer.peak,
            sum: answer.sum,
        })
    }

    /// Removes a group.
    ///
    /// # Errors
    /// If there is none, or there are threads in it.
    pub fn remove(&self, group: Group) -> Result<(), EvlError> {
        let asked = QuotaAsked {
            operation: abi::QUOTA_REMOVE,
            group: group.number,
            ..QuotaAsked::default()
        };
        self.ask(group.cpu, asked).map(drop)
    }
}

/// A budget as percent of [`PERIOD_NS`].
///
/// # Errors
/// Why EVL has no such quota, a clause.
pub fn percent(budget_ns: u64, period_ns: u64) -> Result<i32, String> {
    if period_ns != PERIOD_NS {
        return Err(format!(
            "all quotas of EVL have the period of its core, 1s, and not {} us",
            period_ns / 1_000
        ));
    }
    let one = PERIOD_NS / 100;
    match budget_ns {
        0 => Err("a quota is 1 percent or more".to_owned()),
        _ if !budget_ns.is_multiple_of(one) || budget_ns > PERIOD_NS => {
            Err("a quota of EVL is a whole percent of its period, a multiple of 10ms".to_owned())
        }
        _ => Ok((budget_ns / one) as i32),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_are_whole_percents_of_one_period() {
        const MS: u64 = 1_000_000;
        assert_eq!(percent(300 * MS, 1_000 * MS), Ok(30));
        assert_eq!(percent(1_000 * MS, 1_000 * MS), Ok(100));
        for (budget, period, said) in [
            (30, 100, "not 100000 us"),
            (305, 1_000, "whole percent"),
            (1_010, 1_000, "whole percent"),
            (0, 1_000, "1 percent or more"),
        ] {
            let why = percent(budget * MS, period * MS).unwrap_err();
            assert!(why.contains(said), "{why}");
        }
    }

    #[test]
    fn groups_are_one_word_in_the_environment() {
        let both = [Group { cpu: 1, number: 7 }, Group { cpu: 2, number: 8 }];
        assert_eq!(listed(&both), "1:7,2:8");
        assert_eq!(groups("1:7,2:8").as_deref(), Some(&both[..]));
        for none in ["", "1", "1:", "1:7,", ":7"] {
            assert_eq!(groups(none), None, "{none}");
        }
    }

    #[test]
    fn a_kernel_without_the_core_has_no_quotas() {
        if !std::path::Path::new(crate::CONTROL).exists() {
            let why = Quotas::open().unwrap_err().to_string();
            assert!(why.contains("no kernel with EVL"), "{why}");
        }
    }
}
