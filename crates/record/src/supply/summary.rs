//! The summary of a supply study.

use model::Requirement;
use serde::{Deserialize, Serialize};

use super::{MeasuredReaction, TriedSummary};
use crate::document::Document;
use crate::ground::{Budget, Machine, NotMeasured, Share};

/// `summary.json` of a supply study: what its gaps amount to. Computed from the record, and computable again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SupplySummary {
    /// [`SUPPLY_SUMMARY_SCHEMA`](super::SUPPLY_SUMMARY_SCHEMA).
    pub schema: u64,
    /// Name of the run's directory.
    pub run: String,
    /// One entry for each budget that was measured, in the order of the first round.
    pub supplies: Vec<MeasuredSupply>,
    /// What the host itself took from a thread without a budget; `None` where that was not measured.
    pub host: Option<SupplyHost>,
    /// The load that all trials had beside them; `None`: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<String>,
    /// Budgets that were not measured, with the reason.
    pub not_measured: Vec<NotMeasured>,
    /// Task sets that were run inside the budgets; empty in runs that tried none.
    #[serde(default)]
    pub tried: Vec<TriedSummary>,
    /// Budgets in which no set was run, with the reason.
    #[serde(default)]
    pub not_tried: Vec<NotMeasured>,
    /// Requirements that the machine did not meet.
    pub unmet: Vec<Requirement>,
    /// What failed, as sentences.
    pub failures: Vec<String>,
}

impl Document for SupplySummary {
    const FILE: &'static str = "summary.json";
    const SCHEMA: u64 = super::SUPPLY_SUMMARY_SCHEMA;
}

/// The supply of one budget as it was measured: of a cell that always wanted the cpu, had its cpu to itself, and was
/// held by nothing but its budget. Whoever shares the cpu takes from it what this does not hold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeasuredSupply {
    /// What held the cell.
    pub held: Budget,
    /// The machine. A measurement tells nothing of another one ([`super::find`]).
    pub machine: Machine,
    /// Rounds that it rests on.
    pub rounds: u32,
    /// Starts of the cell, each at another instant between two ticks.
    pub starts: u32,
    /// Lines that lie below what was received in every window of every length up to `measured_to_ns`, the one of the
    /// highest rate first: each is a supply, and so is the highest of them at every length.
    pub points: Vec<SupplyPoint>,
    /// Length of the longest window that was seen, ns.
    pub measured_to_ns: u64,
    /// The same, of the first line's rate, round by round.
    pub delay_ns: Between,
    /// The longest gap, ns: over all rounds, and of each.
    pub longest_gap_ns: Between,
    /// What the kernel billed to the cell, of the time from its first to its last gap.
    pub billed: Option<Share>,
    /// What the cell received of the same time: less by the interrupts and pauses of the host that it was billed.
    pub received: Share,
    /// What it received in each period, counted from a start on, within the long stretches.
    pub periods: Option<Periods>,
    /// The textbook's bound (periodic resource model) held against the windows.
    pub textbook: Promise,
    /// The bound from the length of the tick, of a cell that has its cpu to itself; `None` where that is not known.
    pub by_tick: Option<Promise>,
    /// The bound from how exact whoever held the cell was, at the worst, of a cell that has its cpu to itself; `None` where the kernel
    /// itself holds it, and where it was so inexact that nothing is certain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_reaction: Option<Promise>,
    /// How exact whoever held the cell was; `None` where the kernel itself holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reaction: Option<MeasuredReaction>,
    /// What is relied on without a measurement, held against the windows; `None` where the tick is not known.
    pub cautious: Option<Promise>,
    /// The least that was received in a window: (length, received), ns, ascending. For pictures.
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
    /// The same, no better than `bound` in rate or delay.
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
    /// What is proved of a cell that has its cpu to itself, from the length of the tick, or from how exact whoever held it was at the
    /// worst; `None` where neither is known.
    pub fn proved(&self) -> Option<Promise> {
        self.by_tick.or(self.by_reaction)
    }

    /// The lines that may be counted on, each as (supplied, per, delay in ns): those that were measured, none of them better than
    /// what is proved ([`MeasuredSupply::proved`]). The worst phase of refills and ticks may not have come while it was
    /// measured, nor all looks have been late at once.
    pub fn counted_on(&self) -> Vec<(u64, u64, u64)> {
        let proved = self.proved();
        if proved.is_none() && self.reaction.is_some() {
            // Whoever held it was later than a whole period: what was received was luck.
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
    /// The least.
    pub least: u64,
    /// The middle one, the lower of two.
    pub median: u64,
    /// The largest.
    pub most: u64,
}

impl Between {
    /// Of the values of the rounds; `None` of none.
    pub fn of(mut values: Vec<u64>) -> Option<Between> {
        values.sort_unstable();
        Some(Between {
            least: *values.first()?,
            median: values[(values.len() - 1) / 2],
            most: *values.last()?,
        })
    }
}

/// What was received in whole periods.
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

/// A bound on the supply, and whether it was kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Promise {
    /// Its rate: `supplied` by `per`.
    pub supplied: u64,
    /// See `supplied`.
    pub per: u64,
    /// Its delay, ns.
    pub delay_ns: u64,
    /// Whether it was kept.
    pub kept: Kept,
}

/// Whether a bound was kept in all windows that were looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "verdict")]
pub enum Kept {
    /// In all of them.
    Held,
    /// In all but some where no more is missing than the host takes, in a window of that length, from a thread without
    /// a budget.
    HeldButForTheHost {
        /// Length of the window in which the most is missing, ns.
        window_ns: u64,
        /// What was promised in it, ns.
        promised_ns: u64,
        /// What was received, ns.
        received_ns: u64,
    },
    /// Not in this window, whatever the host took.
    Broken {
        /// Length of the window in which the most is missing, ns.
        window_ns: u64,
        /// What was promised in it, ns.
        promised_ns: u64,
        /// What was received, ns.
        received_ns: u64,
    },
}

/// What the host takes from a thread that has its cpu to itself and no budget.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SupplyHost {
    /// Rounds that it rests on.
    pub rounds: u32,
    /// What the thread received of the time in which it wanted the cpu.
    pub received: Share,
    /// The longest gap, ns: over all rounds, and of each.
    pub longest_gap_ns: Between,
    /// The same held as a line below: its rate, and the least delay.
    pub point: SupplyPoint,
    /// The most that was lost in a window: (length, lost), ns, ascending.
    pub most_lost: Vec<(u64, u64)>,
}

impl SupplyHost {
    /// The most that the host takes in a window of this length, ns: of the next longer one that was looked at. Longer
    /// windows than any are put together of those.
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
