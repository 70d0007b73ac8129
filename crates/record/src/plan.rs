//! `plan.json`: the options of a study without an experiment file and the trials planned from them, so that the run can be resumed.
//! It is written once, before the first trial.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::document::Document;

/// Schema of `plan.json`.
pub const PLAN_SCHEMA: u64 = 1;

/// The plan of a study.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanRecord {
    /// [`PLAN_SCHEMA`].
    pub schema: u64,
    /// Name of the scenario.
    pub scenario: String,
    /// Its options, as its kind of run reads them; a kind may gain options, and absent ones have their defaults.
    pub options: serde_json::Value,
    /// The trials in their order: of one round, where every round has the same.
    pub trials: Vec<String>,
    /// Choices that the options left to the machine and neither a trial nor a condition names, such as usable cpus, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub found: BTreeMap<String, String>,
}

impl PlanRecord {
    /// A plan that is made now.
    pub fn new(scenario: &str, options: &impl Serialize, trials: Vec<String>) -> PlanRecord {
        PlanRecord {
            schema: PLAN_SCHEMA,
            scenario: scenario.to_owned(),
            // Options are plain data: numbers, names, lists.
            options: serde_json::to_value(options).unwrap_or_default(),
            trials,
            found: BTreeMap::new(),
        }
    }

    /// The first difference from a plan that is made of the same options `now`, as a clause; `None`: they are the same.
    pub fn difference(&self, now: &PlanRecord) -> Option<String> {
        if self.scenario != now.scenario {
            return Some(format!(
                "the scenario was `{}` and is `{}`",
                self.scenario, now.scenario
            ));
        }
        // Runs of earlier versions do not have it.
        let other = (self.found.iter()).find_map(|(name, then)| {
            let now = now.found.get(name).filter(|now| *now != then)?;
            Some(format!("{name}: `{then}` then, `{now}` now"))
        });
        if other.is_some() {
            return other;
        }
        let at = (0..self.trials.len().max(now.trials.len()))
            .find(|at| self.trials.get(*at) != now.trials.get(*at))?;
        let name = |plan: &PlanRecord| match plan.trials.get(at) {
            Some(name) => format!("`{name}`"),
            None => "absent".to_owned(),
        };
        Some(format!(
            "trial {} was {} and is {}",
            at + 1,
            name(self),
            name(now)
        ))
    }
}

impl Document for PlanRecord {
    const FILE: &'static str = "plan.json";
    const SCHEMA: u64 = PLAN_SCHEMA;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_trial_that_differs_is_named() {
        let plan = |trials: &[&str]| {
            let trials = trials.iter().map(|name| (*name).to_owned()).collect();
            PlanRecord::new("supply", &[1], trials)
        };
        assert_eq!(plan(&["a", "b"]).difference(&plan(&["a", "b"])), None);
        let differs = |then: &[&str], now: &[&str]| plan(then).difference(&plan(now)).unwrap();
        assert_eq!(
            differs(&["a", "b"], &["a", "c"]),
            "trial 2 was `b` and is `c`"
        );
        assert_eq!(
            differs(&["a"], &["a", "b"]),
            "trial 2 was absent and is `b`"
        );
        assert_eq!(
            differs(&["a", "b"], &["a"]),
            "trial 2 was `b` and is absent"
        );
    }

    #[test]
    fn what_was_found_on_the_machine_is_compared_where_both_have_it() {
        let plan = |cpus: Option<&str>| PlanRecord {
            found: (cpus.into_iter())
                .map(|cpus| ("cpus".to_owned(), cpus.to_owned()))
                .collect(),
            ..PlanRecord::new("nqueens", &[1], Vec::new())
        };
        assert_eq!(plan(Some("0-3")).difference(&plan(Some("0-3"))), None);
        assert_eq!(plan(None).difference(&plan(Some("0-3"))), None);
        let said = plan(Some("0-3")).difference(&plan(Some("0"))).unwrap();
        assert_eq!(said, "cpus: `0-3` then, `0` now");
    }
}
