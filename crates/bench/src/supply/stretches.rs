//! When a thread wants the cpu: the positions of its stretches.

use host::cpu_use::{RtLimit, rt_limit};
use host::root::Root;

use super::subject::Subject;

/// The golden ratio's fraction in 2^-32: multiples of it fall into a unit as evenly as any, however many there are.
const GOLDEN: u64 = 2_654_435_769;
/// Refills that a group can be behind by, beyond which short stretches do not grow.
const MOST_BEHIND: i64 = 64;
/// Of real-time throttling's runtime, the part that a thread without a budget takes, in tenths.
const UNTHROTTLED: i64 = 8;
/// Longest stretch of a thread without a budget where nothing is throttled, and its rest, ns.
const UNLIMITED_NS: (i64, i64) = (800_000_000, 250_000_000);
/// Most stretches of one trial, as a gaps file holds.
const MOST: usize = record::gaps::MOST_STRETCHES;

/// How long threads spin, and how often they begin.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stretches {
    /// Of the long stretch, or of all together without a budget, ns.
    pub long_ns: i64,
    /// Short ones.
    pub starts: u32,
    /// Distance of two ticks, ns.
    pub tick_ns: i64,
}

/// The stretches of one trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Laid {
    /// Length, and instant between two ticks, ns.
    pub each: Vec<(i64, i64)>,
    /// Between two of them at least, ns.
    pub rest_ns: i64,
}

impl Stretches {
    /// The stretches of a subject in a round, from 1: the instants between two ticks go on from round to round.
    pub(super) fn of(&self, subject: &Subject, round: u32) -> Laid {
        let (lengths, rest_ns) = self.lengths(subject);
        let begun = u64::from(round.saturating_sub(1)) * lengths.len() as u64;
        let each = (begun..)
            .zip(lengths)
            .map(|(place, length)| (length, self.instant(place)))
            .collect();
        Laid { each, rest_ns }
    }

    /// How long a trial takes, ns.
    pub(super) fn expected_ns(&self, subject: &Subject) -> i64 {
        let (lengths, rest_ns) = self.lengths(subject);
        let each = rest_ns + self.tick_ns;
        lengths.iter().map(|length| length + each).sum()
    }

    fn lengths(&self, subject: &Subject) -> (Vec<i64>, i64) {
        let Some(held) = subject.held else {
            let (longest, rest_ns) = unthrottled(rt_limit(&Root::live()));
            let pieces = usize::try_from(self.long_ns / longest + 1).unwrap_or(MOST);
            let pieces = pieces.min(MOST);
            return (vec![longest.min(self.long_ns); pieces], rest_ns);
        };
        let [budget, period] =
            [held.budget_ns, held.period_ns].map(|ns| i64::try_from(ns).unwrap_or(i64::MAX).max(1));
        // So many refills may pass before a group runs again that has run over its budget by a tick.
        let behind = (1 + self.tick_ns / budget).min(MOST_BEHIND);
        let short = period.saturating_mul(3 * (behind + 1));
        // Whole periods: the supply in them does not depend on where they end.
        let long = self.long_ns.div_euclid(period) + i64::from(self.long_ns % period > 0);
        let mut lengths = vec![long * period];
        lengths.extend(std::iter::repeat_n(short, self.starts as usize));
        lengths.truncate(MOST);
        (lengths, period.saturating_mul(behind + 2))
    }

    fn instant(&self, place: u64) -> i64 {
        let fraction = place.wrapping_mul(GOLDEN) & 0xffff_ffff;
        let at = (u128::from(fraction) * u128::from(self.tick_ns.unsigned_abs())) >> 32;
        i64::try_from(at).unwrap_or(0)
    }
}

/// The longest stretch that real-time throttling lets pass, and the rest after it, ns: within any of its periods lies one
/// such stretch at most.
fn unthrottled(limit: Option<RtLimit>) -> (i64, i64) {
    match limit {
        Some(RtLimit::Of {
            runtime_us,
            period_us,
        }) => {
            let ns = |us: u64| i64::try_from(us.saturating_mul(1_000)).unwrap_or(i64::MAX);
            let longest = ns(runtime_us) / 10 * UNTHROTTLED;
            (
                longest.max(1_000_000),
                (ns(period_us) - longest).max(1_000_000),
            )
        }
        _ => UNLIMITED_NS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Enforcer;
    use record::Budget;

    const MS: i64 = 1_000_000;

    fn stretches() -> Stretches {
        Stretches {
            long_ns: 5_000 * MS,
            starts: 8,
            tick_ns: 4 * MS,
        }
    }

    fn subject(budget: u64, period: u64) -> Subject {
        let held = Budget {
            enforcer: Enforcer::RtCgroup,
            budget_ns: budget * 1_000_000,
            period_ns: period * 1_000_000,
        };
        Subject { held: Some(held) }
    }

    #[test]
    fn starts_fall_evenly_between_two_ticks_over_all_rounds() {
        let mut instants: Vec<i64> = (1..=3)
            .flat_map(|round| stretches().of(&subject(30, 100), round).each)
            .map(|(_, at)| at)
            .collect();
        instants.sort_unstable();
        assert_eq!(instants.len(), 27);
        // Three lengths of gaps at most, by the three-gap theorem; the widest is not far from the mean.
        let widest = instants.windows(2).map(|two| two[1] - two[0]).max();
        assert!(
            widest.is_some_and(|widest| widest < 2 * 4 * MS / 27),
            "{widest:?}"
        );
    }

    #[test]
    fn a_budget_below_the_tick_has_longer_stretches_for_its_cycles() {
        let of = |budget, period| stretches().of(&subject(budget, period), 1);
        let (wide, narrow) = (of(30, 100), of(1, 10));
        assert_eq!((wide.each[0].0, wide.each[1].0), (5_000 * MS, 600 * MS));
        assert_eq!((narrow.each[1].0, narrow.rest_ns), (180 * MS, 70 * MS));
        assert_eq!(wide.each.len(), 9);
        assert_eq!(of(1, 7).each[0].0, 5_005 * MS, "whole periods");
    }

    #[test]
    fn without_a_budget_no_stretch_meets_the_throttling() {
        let limit = RtLimit::Of {
            runtime_us: 950_000,
            period_us: 1_000_000,
        };
        let (longest, rest) = unthrottled(Some(limit));
        assert_eq!((longest, longest + rest), (760 * MS, 1_000 * MS));
        assert_eq!(unthrottled(Some(RtLimit::Off)), UNLIMITED_NS);
        let laid = stretches().of(&Subject { held: None }, 1);
        let sum: i64 = laid.each.iter().map(|(length, _)| length).sum();
        assert!(laid.each.len() <= MOST && sum >= 5_000 * MS, "{laid:?}");
    }
}
