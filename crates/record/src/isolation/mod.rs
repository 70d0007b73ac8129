//! A study of temporal isolation: whether a cell keeps its deadlines beside one that runs longer than it declared, and
//! whether cells receive the budgets that they were granted.
//!
//! `isolation.json` has the drawn sets and how each trial went ([`IsolationRecord`]); `trials/<n>/` the raw samples of
//! each task of a contest, or the raw gaps of each spinning cell; `summary.json` the results ([`IsolationSummary`]), which
//! are computed from the other two.

mod arm;
mod draw;
mod summary;
mod trial;

use serde::{Deserialize, Serialize};

pub use crate::ground::Misses;
pub use arm::{Arm, Attacker};
pub use draw::{DrawnCell, DrawnSet, DrawnTask, Draws};
pub use summary::{
    Against, ArmSummary, IsolationSummary, PeriodShares, ReceivedSummary, ReceivedVerdict, Standing,
};
pub use trial::{ContestTrial, ReceivedCell, ReceivedTrial, Role};

use crate::Kind;
use crate::document::Document;
use crate::ground::{Condition, Machine, NotMeasured};

/// Schema of `isolation.json`. Records of schema 1 may have fields `budget_ns` and `freezer_ns` of each cell instead of
/// `budgets`, and are read like current ones.
pub const ISOLATION_SCHEMA: u64 = 2;
/// Schema of the `summary.json` of a study of isolation.
pub const ISOLATION_SUMMARY_SCHEMA: u64 = 1;

/// `isolation.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IsolationRecord {
    /// [`ISOLATION_SCHEMA`].
    pub schema: u64,
    /// The question it answers, one sentence.
    pub question: String,
    /// The machine, as far as budgets depend on it.
    pub machine: Machine,
    /// The conditions of the measurement, in the order of the report.
    pub conditions: Vec<Condition>,
    /// Planned number of sets of each utilisation.
    pub rounds_planned: u32,
    /// Seed of the sets.
    pub seed: u64,
    /// Length of an overrunning attacker's job, in thousandths of the declared wcet.
    pub overrun_permille: u32,
    /// How the sets of each utilisation were drawn.
    pub draws: Vec<Draws>,
    /// The sets that were run.
    pub sets: Vec<DrawnSet>,
    /// Contests that took place, in the order of execution.
    pub contests: Vec<ContestTrial>,
    /// Trials of received budgets that took place, in the order of execution.
    pub received: Vec<ReceivedTrial>,
    /// Parts not measured, with the reason.
    pub not_measured: Vec<NotMeasured>,
}

impl Document for IsolationRecord {
    const FILE: &'static str = Kind::Isolation.file();
    const SCHEMA: u64 = ISOLATION_SCHEMA;
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::RecordError;
    use crate::document::read_json;

    #[test]
    fn a_record_of_the_first_schema_is_read_as_one_of_now() {
        let cell = |field: &str| json!({"tasks": [], field: [2, 10]});
        let former = json!({
            "schema": 1,
            "question": "?",
            "machine": Machine::here(),
            "conditions": [],
            "rounds_planned": 1,
            "seed": 1,
            "overrun_permille": 1,
            "draws": [],
            "sets": [{
                "number": 1,
                "round": 1,
                "utilisation_permille": 500,
                "draw": 0,
                "attacker": cell("budget_ns"),
                "victim": cell("freezer_ns"),
                "late_without": false,
            }],
            "contests": [],
            "received": [],
            "not_measured": [],
        });
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(IsolationRecord::FILE);
        let read = || IsolationRecord::read(&path);
        std::fs::write(&path, former.to_string()).unwrap();
        let mut record = read().unwrap();
        let set = &record.sets[0];
        let of = |cell: &DrawnCell| cell.budgets.first().map(|held| held.enforcer);
        assert_eq!(of(&set.attacker), Some(model::Enforcer::RtCgroup));
        assert_eq!(of(&set.victim), Some(model::Enforcer::Freezer));
        // A timecell that knows only the first schema refuses a record that it would read without its budgets.
        record.schema = ISOLATION_SCHEMA;
        std::fs::write(&path, serde_json::to_vec(&record).unwrap()).unwrap();
        assert!(matches!(
            read_json::<IsolationRecord>(&path, 1),
            Err(RecordError::Newer {
                found: 2,
                known: 1,
                ..
            })
        ));
        assert_eq!(read().unwrap(), record);
    }
}
