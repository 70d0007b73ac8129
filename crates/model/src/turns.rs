//! `[turns]` of an experiment file: the trials of a round exist at the same time and take turns on their cpus.

use std::fmt::Write as _;

use crate::parse::small;
use crate::reader::Table;
use crate::{Duration, InputError, Keep, Pacing};

const TURNS: [&str; 2] = ["length", "settle"];
const LENGTH: Duration = Duration::from_ns(12_000_000);
const LENGTH_NS: std::ops::RangeInclusive<i64> = 1_000_000..=60_000_000_000;
const SETTLE: u32 = 2;
const MOST_SETTLE: i64 = 100;
/// Jobs of a turn that count, at least: the ratio of two turns is one of their medians.
const FEWEST_KEPT: u32 = 5;

/// How the trials of a round take turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turns {
    /// Length of a turn, 1 ms to 60 s; at least 5 jobs more than those dropped, whatever it says.
    pub length: Duration,
    /// Jobs at the beginning of a turn that are recorded and not compared, 0 to 100: they find the caches as the turn before
    /// left them.
    pub settle: u32,
}

impl Default for Turns {
    fn default() -> Turns {
        Turns {
            length: LENGTH,
            settle: SETTLE,
        }
    }
}

impl Turns {
    /// Jobs of a turn, those that are dropped among them.
    pub fn jobs(&self, period: Duration) -> u32 {
        let jobs = self.length.ns() / period.ns().max(1);
        u32::try_from(jobs)
            .unwrap_or(u32::MAX)
            .max(self.settle + FEWEST_KEPT)
    }
}

/// What the table asks for; `None` where there is none.
pub(crate) fn turns(
    top: &Table<'_>,
    keep: Keep,
    pacing: Pacing,
) -> Result<Option<Turns>, InputError> {
    let Some(table) = top.table("turns", &TURNS)? else {
        return Ok(None);
    };
    for (met, what, mend) in [
        (
            keep == Keep::Samples,
            "turns are compared job by job",
            "remove `record`, or [turns]",
        ),
        (
            pacing == Pacing::Periodic,
            "only periodic jobs keep to a timetable",
            "set pacing = \"periodic\", or remove [turns]",
        ),
        (
            !top.has("scale"),
            "the trials of a scale study have the machine each for itself",
            "remove [turns]",
        ),
    ] {
        if !met {
            return Err(top.fault("turns", what, mend));
        }
    }
    let length = table.duration("length")?.unwrap_or(LENGTH);
    if !LENGTH_NS.contains(&length.ns()) {
        let what = format!("`length` is {length}");
        return Err(table.fault("length", what, "it must be 1ms to 60s"));
    }
    let settle = small(table.integer("settle", &(0..=MOST_SETTLE))?, SETTLE);
    Ok(Some(Turns { length, settle }))
}

/// The table as it is read back.
pub(crate) fn write(out: &mut String, turns: Turns) {
    let _ = writeln!(
        out,
        "\n[turns]\nlength = \"{}\"\nsettle = {}",
        turns.length, turns.settle
    );
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
        };
        assert_eq!(
            parsed("[turns]\nlength = \"50ms\"\nsettle = 0"),
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
    fn a_turn_has_jobs_enough_to_take_a_median_of() {
        let turns = Turns::default();
        assert_eq!(turns.jobs(Duration::from_ns(1_000_000)), 12);
        assert_eq!(turns.jobs(Duration::from_ns(100_000)), 120);
        assert_eq!(turns.jobs(Duration::from_ns(100_000_000)), 7);
    }
}
