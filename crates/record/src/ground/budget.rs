//! Budgets, and how precisely a process outside the kernel enforces one.

use model::Enforcer;
use serde::{Deserialize, Serialize};

/// A budget under one enforcer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Budget {
    /// The enforcer.
    pub enforcer: Enforcer,
    /// Cpu time granted in every period, ns.
    pub budget_ns: u64,
    /// Period, ns.
    pub period_ns: u64,
}

/// Cpu time within a longer time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// Cpu time, ns.
    pub cpu_ns: u64,
    /// The longer time, ns.
    pub of_ns: u64,
}

impl Share {
    /// As a ratio; 0 if the time is 0.
    pub fn ratio(self) -> f64 {
        if self.of_ns == 0 {
            0.0
        } else {
            self.cpu_ns as f64 / self.of_ns as f64
        }
    }
}

/// Times of a trial, in bins 12.5 % wide at most.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Times {
    /// (smallest time above the bin in ns, number in the bin), ascending, without empty bins.
    pub bins: Vec<(u64, u64)>,
    /// The longest, exactly, ns; 0 if there are none.
    pub most_ns: u64,
}

impl Times {
    /// The number of times.
    pub fn count(&self) -> u64 {
        self.bins.iter().map(|(_, count)| count).sum()
    }

    /// The time that `permille` of 1,000 do not exceed, ns, rounded up by 12.5 % at most; 0 if there are none.
    pub fn quantile_ns(&self, permille: u64) -> u64 {
        let wanted = (u128::from(self.count()) * u128::from(permille)).div_ceil(1000);
        let mut seen = 0u128;
        let found = self.bins.iter().find(|(_, count)| {
            seen += u128::from(*count);
            seen >= wanted
        });
        found.map_or(0, |(end, _)| (*end).min(self.most_ns))
    }

    /// Merges those of several trials.
    pub fn of_all<'a>(all: impl Iterator<Item = &'a Times>) -> Times {
        let mut bins = std::collections::BTreeMap::new();
        let mut most_ns = 0;
        for times in all {
            most_ns = most_ns.max(times.most_ns);
            for &(end, count) in &times.bins {
                *bins.entry(end).or_insert(0) += count;
            }
        }
        let bins = bins.into_iter().collect();
        Times { bins, most_ns }
    }
}

/// The counts of the process that held the cell of one trial, from arming to the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reacted {
    /// Lateness: from the planned instant of a wake-up until its thaw or freeze was done.
    pub late: Times,
    /// The cell's overrun in each period in which its budget was used up.
    pub overruns: Times,
    /// Whether the kernel gave notice of the first use of an idle group in time; `None`: unknown.
    pub noticed: Option<bool>,
    /// Cpu time of the process that holds, for all groups that it holds at the time: cells that were held together share this
    /// cost, which does not add up. `None` if another process took over meanwhile.
    pub cost: Option<Share>,
    /// How often another process took over.
    pub takeovers: u64,
    /// Calls on the group's files that failed, each of which was tried again.
    pub errors: u64,
}
