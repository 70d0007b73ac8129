//! `[turns]` of an experiment file: the trials of a round exist at the same time and take turns on their cpus.

use crate::Duration;

const LENGTH: Duration = Duration::from_ns(12_000_000);
pub(super) const LENGTH_NS: std::ops::RangeInclusive<i64> = 1_000_000..=60_000_000_000;
const SETTLE: u32 = 2;
pub(super) const MOST_SETTLE: i64 = 100;
pub(super) const CATCH_UP: u32 = 2;
pub(super) const MOST_CATCH_UP: i64 = 1_000;
/// Minimum number of jobs of a turn that count: the ratio of two turns is that of their medians.
const FEWEST_KEPT: u32 = 5;

/// How the trials of a round take turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turns {
    /// Length of a turn, 1 ms to 60 s; in any case at least 5 jobs more than those dropped.
    pub length: Duration,
    /// Jobs at the beginning of a turn that are recorded but not compared, 0 to 100: they find the caches as the turn before
    /// left them.
    pub settle: u32,
    /// Periods at the beginning of each turn, 0 to 1,000, in which a program that reports its jobs catches up with, or drops,
    /// the jobs due while it was stopped; its jobs count only afterwards.
    pub catch_up: u32,
    /// Relative precision with which every ratio is to be known, in ten-thousandths, 1 to 10,000: the run ends once each is
    /// known so well or shown to differ from 1, and in any case after all rounds. `None`: all rounds take place.
    pub decide: Option<u32>,
}

/// Maximum number of looks at a run that may end early.
const LOOKS: u32 = 5;
/// Rounds below which no look decides.
const FEWEST_ROUNDS: u32 = 3;

impl Default for Turns {
    fn default() -> Turns {
        Turns {
            length: LENGTH,
            settle: SETTLE,
            catch_up: CATCH_UP,
            decide: None,
        }
    }
}

impl Turns {
    /// Jobs of a turn, including those that are dropped.
    pub fn jobs(&self, period: Duration) -> u32 {
        let jobs = self.length.ns() / period.ns().max(1);
        u32::try_from(jobs)
            .unwrap_or(u32::MAX)
            .max(self.settle + FEWEST_KEPT)
    }

    /// Relative precision with which every ratio is to be known.
    pub fn decides_within(&self) -> Option<f64> {
        self.decide.map(|share| f64::from(share) / 10_000.0)
    }

    /// The rounds after which the run checks whether everything is decided; the last one is the end of the run. A single
    /// one if all rounds take place.
    pub fn looks(&self, rounds: u32) -> Vec<u32> {
        if self.decide.is_none() {
            return vec![rounds];
        }
        let mut looks: Vec<u32> = (1..=LOOKS)
            .map(|look| (u64::from(rounds) * u64::from(look)).div_ceil(LOOKS.into()) as u32)
            .filter(|&after| after >= FEWEST_ROUNDS || after == rounds)
            .collect();
        looks.dedup();
        looks
    }
}

/// A share in the unit of [`Turns::decide`].
pub(super) fn ten_thousandths(share: f64) -> Result<u32, (String, String)> {
    let parts = (share * 10_000.0).round();
    if (1.0..=10_000.0).contains(&parts) {
        return Ok(parts as u32);
    }
    Err((
        format!("a ratio cannot be known to within {share}"),
        "use 0.0001 to 1, such as 0.02 for 2 %".to_owned(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Experiment;

    fn parsed(lines: &str) -> Result<Option<Turns>, String> {
        let text = format!(
            "schema = 1\nname = \"x\"\n[workload]\nkind = \"timer\"\n[scheduling]\nclass = \"other\"\n[[trial]]\ncells = [\"bare\"]\n{lines}"
        );
        Experiment::parse("x", &text)
            .map(|experiment| experiment.turns)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_bare_table_means_the_defaults_and_none_means_rounds() {
        assert_eq!(parsed(""), Ok(None));
        assert_eq!(parsed("[turns]"), Ok(Some(Turns::default())));
        let own = Turns {
            length: Duration::from_ns(50_000_000),
            settle: 0,
            catch_up: 7,
            decide: None,
        };
        assert_eq!(
            parsed("[turns]\nlength = \"50ms\"\nsettle = 0\ncatch_up = 7"),
            Ok(Some(own))
        );
    }

    #[test]
    fn what_cannot_take_turns_says_so() {
        let refused = |lines: &str| parsed(lines).unwrap_err();
        assert!(refused("[turns]\nlength = \"1us\"").contains("1ms to 60s"));
        assert!(refused("[turns]\nsettle = 101").contains("settle"));
        let text = "schema = 1\nname = \"x\"\nrecord = \"histogram\"\n[workload]\nkind = \"timer\"\n[[trial]]\ncells = [\"bare\"]\n[turns]\n";
        let error = Experiment::parse("x", text).unwrap_err().to_string();
        assert!(error.contains("job by job"), "{error}");
        let text = "schema = 1\nname = \"x\"\n[workload]\nkind = \"timer\"\npacing = \"relative\"\n[[trial]]\ncells = [\"bare\"]\n[turns]\n";
        let error = Experiment::parse("x", text).unwrap_err().to_string();
        assert!(error.contains("periodic"), "{error}");
    }

    #[test]
    fn a_run_that_may_end_early_is_looked_at_five_times() {
        let turns = |decide| Turns {
            decide,
            ..Turns::default()
        };
        assert_eq!(turns(None).looks(10), [10]);
        assert_eq!(turns(Some(200)).looks(40), [8, 16, 24, 32, 40]);
        assert_eq!(turns(Some(200)).looks(10), [4, 6, 8, 10]);
        assert_eq!(turns(Some(200)).looks(3), [3]);
        assert_eq!(turns(Some(200)).looks(2), [2]);
        let read = parsed("[turns]\ndecide = 0.02").unwrap().unwrap();
        assert_eq!(
            (read.decide, read.decides_within()),
            (Some(200), Some(0.02))
        );
        assert!(
            parsed("[turns]\ndecide = 2.0")
                .unwrap_err()
                .contains("0.0001 to 1")
        );
    }

    #[test]
    fn a_turn_has_jobs_enough_to_take_a_median_of() {
        let turns = Turns::default();
        assert_eq!(turns.jobs(Duration::from_ns(1_000_000)), 12);
        assert_eq!(turns.jobs(Duration::from_ns(100_000)), 120);
        assert_eq!(turns.jobs(Duration::from_ns(100_000_000)), 7);
    }
}
