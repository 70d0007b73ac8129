//! The summary of a supply study.

use model::Requirement;
use serde::{Deserialize, Serialize};

use super::{MeasuredReaction, TriedSummary};
use crate::document::Document;
use crate::ground::{Budget, Machine, NotMeasured, Share};

/// `summary.json` of a supply study. Computed from the record, and computable again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SupplySummary {
    /// [`SUPPLY_SUMMARY_SCHEMA`](super::SUPPLY_SUMMARY_SCHEMA).
    pub schema: u64,
    /// Name of the run's directory.
    pub run: String,
    /// One entry for each budget that was measured, in the order of the first round.
    pub supplies: Vec<MeasuredSupply>,
    /// Losses of a thread without a budget to the host; `None` if not measured.
    pub host: Option<SupplyHost>,
    /// The load during all trials; `None`: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<String>,
    /// Budgets that were not measured, with the reason.
    pub not_measured: Vec<NotMeasured>,
    /// Task sets that were run inside the budgets; empty if none were.
    #[serde(default)]
    pub tried: Vec<TriedSummary>,
    /// Budgets in which no set was run, with the reason.
    #[serde(default)]
    pub not_tried: Vec<NotMeasured>,
    /// Requirements that the machine did not meet.
    pub unmet: Vec<Requirement>,
    /// Failures, as sentences.
    pub failures: Vec<String>,
}

impl Document for SupplySummary {
    const FILE: &'static str = "summary.json";
    const SCHEMA: u64 = super::SUPPLY_SUMMARY_SCHEMA;
}

/// The measured supply of one budget to a cell that always wanted the cpu, had its cpu to itself, and was limited only by its
/// budget. The share of others on the cpu is not included.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeasuredSupply {
    /// The enforcer and the budget.
    pub held: Budget,
    /// The machine. A measurement says nothing about another one ([`super::find`]).
    pub machine: Machine,
    /// Number of rounds.
    pub rounds: u32,
    /// Number of starts of the cell, each at a different instant between two ticks.
    pub starts: u32,
    /// Lines below the supply in every window of every length up to `measured_to_ns`, the one with the highest rate first: each
    /// is a supply, and so is their maximum at every length.
    pub points: Vec<SupplyPoint>,
    /// Length of the longest observed window, ns.
    pub measured_to_ns: u64,
    /// The same for the first line's rate, round by round.
    pub delay_ns: Between,
    /// The longest gap, ns: over all rounds, and of each round.
    pub longest_gap_ns: Between,
    /// The share of the time from its first to its last gap that the kernel billed to the cell.
    pub billed: Option<Share>,
    /// The share of the same time that the cell received: less, by the interrupts and pauses of the host for which it was
    /// billed.
    pub received: Share,
    /// Its supply in each period, counted from a start, within the long stretches.
    pub periods: Option<Periods>,
    /// The textbook's bound (periodic resource model) compared with the windows.
    pub textbook: Promise,
    /// The bound from the length of the tick, out of band from EVL's timer, for a cell that has its cpu to itself; `None` if the tick is
    /// unknown.
    pub by_tick: Option<Promise>,
    /// The bound from the worst reaction of the process that held the cell, for a cell that has its cpu to itself; `None` if the
    /// kernel enforces, or if the reaction was so slow that nothing is guaranteed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_reaction: Option<Promise>,
    /// How precisely the budget was enforced; `None` if the kernel enforces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reaction: Option<MeasuredReaction>,
    /// The bound that is used without a measurement, compared with the windows; `None` if the tick is unknown.
    pub cautious: Option<Promise>,
    /// The least received in a window: (length, received), ns, ascending. For pictures.
    pub least: Vec<(u64, u64)>,
}

/// A line below the supply: `rate * (window - delay)` was received in every window, at least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SupplyPoint {
    /// The rate is `supplied` by `per`, rounded down.
    pub supplied: u64,
    /// See `supplied`; never 0.
    pub per: u64,
    /// Delay, ns, rounded up.
    pub delay_ns: u64,
}

impl SupplyPoint {
    /// The same, but no better than `bound` in rate or delay.
    fn within(self, bound: &Promise) -> SupplyPoint {
        let faster = u128::from(self.supplied) * u128::from(bound.per)
            > u128::from(bound.supplied) * u128::from(self.per);
        let (supplied, per) = match faster {
            true => (bound.supplied, bound.per),
            false => (self.supplied, self.per),
        };
        SupplyPoint {
            supplied,
            per,
            delay_ns: self.delay_ns.max(bound.delay_ns),
        }
    }
}

impl MeasuredSupply {
    /// The bound that is proved for a cell that has its cpu to itself, from the length of the tick or from the worst reaction of
    /// the process that held it; `None` if neither is known.
    pub fn proved(&self) -> Option<Promise> {
        self.by_tick.or(self.by_reaction)
    }

    /// The lines that may be relied on, each as (supplied, per, delay in ns): the measured ones, none of them better than the
    /// proved one ([`MeasuredSupply::proved`]). The worst phase of refills and ticks may not have occurred during the
    /// measurement, nor all wake-ups have been late at once.
    pub fn counted_on(&self) -> Vec<(u64, u64, u64)> {
        let proved = self.proved();
        if proved.is_none() && self.reaction.is_some() {
            // The process that held it was later than a whole period: the supply was luck.
            return Vec::new();
        }
        let points = self.points.iter().map(|point| match &proved {
            Some(bound) => point.within(bound),
            None => *point,
        });
        points
            .map(|point| (point.supplied, point.per, point.delay_ns))
            .collect()
    }
}

/// A value of each round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Between {
    /// The smallest.
    pub least: u64,
    /// The median, the lower of two.
    pub median: u64,
    /// The largest.
    pub most: u64,
}

impl Between {
    /// From the values of the rounds; `None` if there are none.
    pub fn of(mut values: Vec<u64>) -> Option<Between> {
        values.sort_unstable();
        Some(Between {
            least: *values.first()?,
            median: values[(values.len() - 1) / 2],
            most: *values.last()?,
        })
    }
}

/// The supply in whole periods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Periods {
    /// Number of periods.
    pub count: u64,
    /// Least received in one, ns.
    pub least_ns: u64,
    /// Mean, ns, rounded down.
    pub mean_ns: u64,
    /// Most received in one, ns.
    pub most_ns: u64,
}

/// A bound on the supply, and whether it held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Promise {
    /// Its rate: `supplied` by `per`.
    pub supplied: u64,
    /// See `supplied`.
    pub per: u64,
    /// Its delay, ns.
    pub delay_ns: u64,
    /// Whether it held.
    pub kept: Kept,
}

/// Whether a bound held in all windows that were examined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "verdict")]
pub enum Kept {
    /// In all of them.
    Held,
    /// In all but some in which no more is missing than the host takes in a window of that length from a thread without a
    /// budget.
    HeldButForTheHost {
        /// Length of the window with the largest shortfall, ns.
        window_ns: u64,
        /// The promised time in it, ns.
        promised_ns: u64,
        /// The received time, ns.
        received_ns: u64,
    },
    /// Not in this window, even allowing for losses to the host.
    Broken {
        /// Length of the window with the largest shortfall, ns.
        window_ns: u64,
        /// The promised time in it, ns.
        promised_ns: u64,
        /// The received time, ns.
        received_ns: u64,
    },
}

/// Losses to the host of a thread that has its cpu to itself and no budget.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SupplyHost {
    /// Number of rounds.
    pub rounds: u32,
    /// The share of the time in which the thread wanted the cpu that it received.
    pub received: Share,
    /// The longest gap, ns: over all rounds, and of each round.
    pub longest_gap_ns: Between,
    /// The same as a line below: its rate, and the smallest delay.
    pub point: SupplyPoint,
    /// The most that was lost in a window: (length, lost), ns, ascending.
    pub most_lost: Vec<(u64, u64)>,
}

impl SupplyHost {
    /// The most that the host takes in a window of this length, ns: that of the next longer examined one. Windows longer
    /// than any are composed of those.
    pub fn lost_in(&self, window_ns: u64) -> u64 {
        let Some(&(longest, most)) = self.most_lost.last() else {
            return 0;
        };
        let whole = window_ns / longest.max(1);
        let rest = window_ns - whole * longest;
        let part = self.most_lost.iter().find(|(window, _)| *window >= rest);
        let part = part.filter(|_| rest > 0).map_or(0, |(_, lost)| *lost);
        whole.saturating_mul(most).saturating_add(part)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Spread;
    use super::*;

    #[test]
    fn what_the_host_takes_of_long_windows_is_put_together() {
        let host = SupplyHost {
            rounds: 1,
            received: Share {
                cpu_ns: 97,
                of_ns: 100,
            },
            longest_gap_ns: Between::of(vec![5]).unwrap(),
            point: SupplyPoint {
                supplied: 97,
                per: 100,
                delay_ns: 5,
            },
            most_lost: vec![(10, 5), (100, 8)],
        };
        assert_eq!(
            [0, 5, 10, 11, 100].map(|w| host.lost_in(w)),
            [0, 5, 5, 8, 8]
        );
        assert_eq!([101, 211].map(|w| host.lost_in(w)), [13, 24]);
    }

    #[test]
    fn of_a_budget_whose_holder_was_too_late_nothing_is_counted_on() {
        let share = Share {
            cpu_ns: 3,
            of_ns: 10,
        };
        let one = Between::of(vec![7]).unwrap();
        let bound = Promise {
            supplied: 3,
            per: 10,
            delay_ns: 20,
            kept: Kept::Held,
        };
        let mut supply = MeasuredSupply {
            held: Budget {
                enforcer: model::Enforcer::Freezer,
                budget_ns: 3,
                period_ns: 10,
            },
            machine: crate::ground::machine::tests::machine(),
            rounds: 1,
            starts: 1,
            points: vec![SupplyPoint {
                supplied: 29,
                per: 100,
                delay_ns: 8,
            }],
            measured_to_ns: 100,
            delay_ns: one,
            longest_gap_ns: one,
            billed: None,
            received: share,
            periods: None,
            textbook: bound,
            by_tick: None,
            by_reaction: Some(bound),
            reaction: Some(MeasuredReaction {
                late: Spread::default(),
                overruns: Spread::default(),
                noticed: true,
                cost: None,
                textbook_gap_ns: 14,
                longest_gap_ns: None,
            }),
            cautious: None,
            least: Vec::new(),
        };
        assert_eq!(supply.counted_on(), [(29, 100, 20)]);
        supply.by_reaction = None;
        assert_eq!(supply.counted_on(), []);
        let text = serde_json::to_string(&supply).unwrap();
        assert_eq!(
            serde_json::from_str::<MeasuredSupply>(&text).unwrap(),
            supply
        );
    }

    #[test]
    fn no_line_is_better_than_what_is_proved() {
        let bound = Promise {
            supplied: 3,
            per: 10,
            delay_ns: 20,
            kept: Kept::Held,
        };
        let line = |supplied, per, delay_ns| SupplyPoint {
            supplied,
            per,
            delay_ns,
        };
        assert_eq!(line(29, 100, 18).within(&bound), line(29, 100, 20));
        assert_eq!(line(31, 100, 30).within(&bound), line(3, 10, 30));
        assert_eq!(line(1, 10, 25).within(&bound), line(1, 10, 25));
    }

    #[test]
    fn the_middle_of_two_is_the_lower() {
        let of = Between::of(vec![9, 3]).unwrap();
        assert_eq!((of.least, of.median, of.most), (3, 3, 9));
        assert_eq!(Between::of(Vec::new()), None);
    }

    #[test]
    fn a_verdict_says_its_window() {
        let broken = Kept::Broken {
            window_ns: 17,
            promised_ns: 3,
            received_ns: 0,
        };
        let text = serde_json::to_string(&broken).unwrap();
        assert!(
            text.contains("\"verdict\":\"broken\",\"window_ns\":17"),
            "{text}"
        );
        assert_eq!(serde_json::from_str::<Kept>(&text).unwrap(), broken);
        let held = serde_json::to_string(&Kept::HeldButForTheHost {
            window_ns: 1,
            promised_ns: 1,
            received_ns: 0,
        });
        assert!(held.unwrap().contains("held-but-for-the-host"));
    }
}
