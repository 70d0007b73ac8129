//! Budgets, and how exact whoever holds one from outside the kernel is.

use model::Enforcer;
use serde::{Deserialize, Serialize};

/// A budget under one enforcer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Budget {
    /// The kernel's mechanism, by its name.
    pub enforcer: Enforcer,
    /// Cpu time granted in every period, ns.
    pub budget_ns: u64,
    /// Period, ns.
    pub period_ns: u64,
}

/// Cpu time of a longer time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// Cpu time, ns.
    pub cpu_ns: u64,
    /// The time in which, ns.
    pub of_ns: u64,
}

impl Share {
    /// As a number; 0 of no time at all.
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
    /// (least time above the bin in ns, how many are in it), ascending, without empty bins.
    pub bins: Vec<(u64, u64)>,
    /// The longest, exactly, ns; 0 of none.
    pub most_ns: u64,
}

impl Times {
    /// How many there are.
    pub fn count(&self) -> u64 {
        self.bins.iter().map(|(_, count)| count).sum()
    }

    /// The time that `permille` of 1,000 do not exceed, ns, rounded up by 12.5 % at most; 0 of none.
    pub fn quantile_ns(&self, permille: u64) -> u64 {
        let wanted = (u128::from(self.count()) * u128::from(permille)).div_ceil(1000);
        let mut seen = 0u128;
        let found = self.bins.iter().find(|(_, count)| {
            seen += u128::from(*count);
            seen >= wanted
        });
        found.map_or(0, |(end, _)| (*end).min(self.most_ns))
    }

    /// Those of several trials together.
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

/// What was counted of whoever held the cell of one trial, from when it was armed until it was done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reacted {
    /// From when a look was meant until it was done, with the thaw or freeze that it asked for.
    pub late: Times,
    /// What the cell used beyond its budget, of each period in which that was used up.
    pub overruns: Times,
    /// Whether the kernel gave notice of the first use of an idle group in time; `None`: that is not known.
    pub noticed: Option<bool>,
    /// What the process that holds took of the cpu, for all groups that it holds at the time: the costs of cells that were held together
    /// are the same one, and do not add up. `None` where another one took its place meanwhile.
    pub cost: Option<Share>,
    /// How often another one took its place.
    pub takeovers: u64,
    /// Calls on the group's files that failed, each of which was tried again.
    pub errors: u64,
}
