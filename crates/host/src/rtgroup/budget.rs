//! Budgets of real-time groups, as the kernel keeps them.

use std::path::PathBuf;

use model::grouped;
use serde::{Deserialize, Serialize};

/// A real-time budget as the kernel keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// Runtime on each cpu in every period, in microseconds; -1 is no limit, 0 is no runtime at all.
    pub runtime_us: i64,
    /// Period, in microseconds.
    pub period_us: u64,
}

impl Budget {
    /// Runtime in a period of 1 s, in microseconds: rounded down, and 1,000,000 without limit.
    pub fn per_second_us(&self) -> u64 {
        self.scaled(false)
    }

    /// The same rounded up: the most that a group of this budget takes from the one above.
    pub fn per_second_up_us(&self) -> u64 {
        self.scaled(true)
    }

    fn scaled(&self, up: bool) -> u64 {
        if self.runtime_us < 0 {
            return 1_000_000;
        }
        let product = self.runtime_us as u128 * 1_000_000;
        let period = u128::from(self.period_us.max(1));
        let scaled = if up {
            product.div_ceil(period)
        } else {
            product / period
        };
        u64::try_from(scaled).unwrap_or(u64::MAX)
    }
}

impl std::fmt::Display for Budget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.runtime_us < 0 {
            write!(f, "no limit")
        } else {
            let (runtime, period) = (grouped(self.runtime_us), grouped(self.period_us));
            write!(f, "{runtime} us every {period} us")
        }
    }
}

/// The group of a process and its budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnGroup {
    /// The directory of the group.
    pub path: PathBuf,
    /// Its budget.
    pub budget: Budget,
}

impl OwnGroup {
    /// Whether a FIFO or RR task can run in the group at all.
    pub fn has_budget(&self) -> bool {
        self.budget.runtime_us != 0
    }
}
