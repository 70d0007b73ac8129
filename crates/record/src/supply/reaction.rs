//! How precisely a process outside the kernel enforced a budget: how late it woke, and for how long the cell overran.

use serde::{Deserialize, Serialize};

use crate::ground::{Share, Times};

/// How precisely a budget was enforced, over all rounds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeasuredReaction {
    /// The lateness of wake-ups.
    pub late: Spread,
    /// The cell's overruns.
    pub overruns: Spread,
    /// Whether notice of first use was given in every round.
    pub noticed: bool,
    /// Cpu time of the process that holds it.
    pub cost: Option<Share>,
    /// Longest gap by the textbook with this reaction, ns: 2(P - Q) plus the longest lateness and the longest overrun, as
    /// measured.
    pub textbook_gap_ns: u64,
    /// Longest gap that the rule allows for a cell alone on its cpu, with this reaction, ns; `None`: unbounded.
    pub longest_gap_ns: Option<u64>,
}

/// A distribution of times.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spread {
    /// Their number.
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
    /// The distribution of these times.
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

/// The worst measured reaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorstReaction {
    /// The largest lateness, ns.
    pub late_ns: u64,
    /// The longest overrun, ns, at least the lateness: a wake-up that was late for a thaw can be late for a freeze.
    pub overrun_ns: u64,
    /// Whether notice of first use was always given.
    pub noticed: bool,
}

impl WorstReaction {
    /// The worst of these; `None` if there are none.
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
    /// The worst of this reaction.
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
