//! How exact whoever held a budget from outside the kernel was: how late it looked, and for how long the cell ran on.

use serde::{Deserialize, Serialize};

use crate::ground::{Share, Times};

/// How exact whoever held a budget was, over all rounds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeasuredReaction {
    /// How late it looked.
    pub late: Spread,
    /// What the cell used beyond its budget.
    pub overruns: Spread,
    /// Whether notice of first use was given in every round.
    pub noticed: bool,
    /// What holding it took of the cpu.
    pub cost: Option<Share>,
    /// Longest gap by the textbook and this reaction, ns: 2(P - Q), the longest lateness and the longest overrun, each as it was
    /// measured.
    pub textbook_gap_ns: u64,
    /// Longest gap that the rule lets a cell have that is alone on its cpu, with this reaction, ns; `None`: it bounds none.
    pub longest_gap_ns: Option<u64>,
}

/// A distribution of times.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spread {
    /// How many.
    pub count: u64,
    /// Half are no longer, ns.
    pub median_ns: u64,
    /// 90 of 100 are no longer, ns.
    pub p90_ns: u64,
    /// 99 of 100 are no longer, ns.
    pub p99_ns: u64,
    /// 999 of 1,000 are no longer, ns.
    pub p999_ns: u64,
    /// The longest, ns.
    pub most_ns: u64,
    /// As [`Times::bins`].
    pub bins: Vec<(u64, u64)>,
}

impl Spread {
    /// Of these times.
    pub fn of(times: Times) -> Spread {
        let [median_ns, p90_ns, p99_ns, p999_ns] =
            [500, 900, 990, 999].map(|permille| times.quantile_ns(permille));
        Spread {
            count: times.count(),
            median_ns,
            p90_ns,
            p99_ns,
            p999_ns,
            most_ns: times.most_ns,
            bins: times.bins,
        }
    }
}

/// The worst that was measured of whoever holds budgets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorstReaction {
    /// The latest look, ns.
    pub late_ns: u64,
    /// The longest overrun, ns, and no less than the lateness: a look that was late at a thaw can be at a freeze.
    pub overrun_ns: u64,
    /// Whether notice of first use was always given.
    pub noticed: bool,
}

impl WorstReaction {
    /// Of these; `None` of none.
    pub fn of<'a>(all: impl Iterator<Item = &'a MeasuredReaction>) -> Option<WorstReaction> {
        all.map(MeasuredReaction::worst)
            .reduce(|one, other| WorstReaction {
                late_ns: one.late_ns.max(other.late_ns),
                overrun_ns: one.overrun_ns.max(other.overrun_ns),
                noticed: one.noticed && other.noticed,
            })
    }
}

impl MeasuredReaction {
    /// The worst of it.
    pub fn worst(&self) -> WorstReaction {
        WorstReaction {
            late_ns: self.late.most_ns,
            overrun_ns: self.overruns.most_ns.max(self.late.most_ns),
            noticed: self.noticed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(bins: &[(u64, u64)], most_ns: u64) -> Times {
        Times {
            bins: bins.to_vec(),
            most_ns,
        }
    }

    #[test]
    fn times_of_several_trials_are_put_together() {
        let all = [
            times(&[(10, 5), (20, 4)], 18),
            times(&[(20, 1), (90, 90)], 88),
        ];
        let all = Times::of_all(all.iter());
        assert_eq!(all, times(&[(10, 5), (20, 5), (90, 90)], 88));
        assert_eq!(all.count(), 100);
        // A quantile is never beyond the longest.
        assert_eq!(
            [50, 100, 101, 1000].map(|p| all.quantile_ns(p)),
            [10, 20, 88, 88]
        );
        assert_eq!(Times::default().quantile_ns(500), 0);
        let spread = Spread::of(all);
        assert_eq!(
            (spread.count, spread.median_ns, spread.most_ns),
            (100, 88, 88)
        );
    }

    #[test]
    fn the_worst_is_the_worst_of_each_and_an_overrun_contains_the_lateness() {
        let reaction = |late: u64, overrun: u64, noticed| MeasuredReaction {
            late: Spread::of(times(&[(late + 1, 1)], late)),
            overruns: Spread::of(times(&[(overrun + 1, 1)], overrun)),
            noticed,
            cost: None,
            textbook_gap_ns: 0,
            longest_gap_ns: None,
        };
        let worst = |late_ns, overrun_ns, noticed| WorstReaction {
            late_ns,
            overrun_ns,
            noticed,
        };
        assert_eq!(reaction(70, 50, true).worst(), worst(70, 70, true));
        let both = [reaction(70, 50, true), reaction(10, 90, false)];
        let found = WorstReaction::of(both.iter());
        assert_eq!(found, Some(worst(70, 90, false)));
        assert_eq!(WorstReaction::of([].iter()), None);
    }
}
