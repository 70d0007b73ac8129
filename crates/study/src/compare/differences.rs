//! Differences between two machines, or between two experiments.

use crate::machine::facts;
use crate::plan;
use host::provenance::Provenance;
use model::Experiment;

/// One thing that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Its name.
    pub what: String,
    /// In the first run.
    pub first: String,
    /// In the second run.
    pub second: String,
}

impl Difference {
    pub(super) fn between(what: &str, first: String, second: String) -> Option<Difference> {
        (first != second).then(|| Difference {
            what: what.to_owned(),
            first,
            second,
        })
    }
}

/// Facts of the provenance that differ (the time of day apart), then the doctor's checks whose state changed.
pub(super) fn machine(first: &Provenance, second: &Provenance) -> Vec<Difference> {
    let (a, b) = (facts(first), facts(second));
    let mut differences: Vec<Difference> = a
        .into_iter()
        .filter(|(name, _)| *name != "time")
        .filter_map(|(name, value)| {
            let other = b.iter().find(|(other, _)| *other == name);
            let other = other.map_or("not recorded".to_owned(), |(_, value)| value.clone());
            Difference::between(name, value, other)
        })
        .collect();
    for check in &first.checks {
        if let Some(other) = second.checks.iter().find(|c| c.id == check.id)
            && other.state != check.state
        {
            differences.push(Difference {
                what: format!("doctor: {}", check.title),
                first: format!("{}: {}", check.state, check.found),
                second: format!("{}: {}", other.state, other.found),
            });
        }
    }
    differences
}

/// Why a ratio between cells of the same name in these experiments would be meaningless: different work, period or load; `None`: it would
/// not. One clause.
pub fn unlike(first: &Experiment, second: &Experiment) -> Option<String> {
    let (a, b) = (&first.workload, &second.workload);
    if a.work != b.work {
        return Some(format!(
            "the work is {} there and {} here",
            plan::work(a),
            plan::work(b)
        ));
    }
    if first.tasks != second.tasks {
        return Some("the task sets differ".to_owned());
    }
    if a.pacing != b.pacing {
        return Some("jobs are paced differently".to_owned());
    }
    for trial in &second.trials {
        let Some(other) = first.trial(&trial.name) else {
            continue;
        };
        let (there, here) = (
            first.workload_of(other).period,
            second.workload_of(trial).period,
        );
        if there != here {
            let name = &trial.name;
            return Some(format!(
                "the period of {name} is {there} there and {here} here"
            ));
        }
        if other.own != trial.own {
            return Some(format!("the cells of {} have different tasks", trial.name));
        }
        if other.load_name() != trial.load_name() {
            return Some(format!(
                "the load of {} is {} there and {} here",
                trial.name,
                other.load_name(),
                trial.load_name()
            ));
        }
    }
    None
}

/// Parts of the experiment that differ.
pub(super) fn experiment(first: &Experiment, second: &Experiment) -> Vec<Difference> {
    let trials = |e: &Experiment| {
        let names: Vec<String> = e
            .trials
            .iter()
            .map(|trial| format!("{} ({})", trial.name, trial.cells.len()))
            .collect();
        names.join(", ")
    };
    [
        Difference::between("name", first.name.clone(), second.name.clone()),
        Difference::between("question", first.question.clone(), second.question.clone()),
        Difference::between("plan", plan::line(first), plan::line(second)),
        Difference::between("trials (cells)", trials(first), trials(second)),
        Difference::between("baseline", first.baseline.clone(), second.baseline.clone()),
    ]
    .into_iter()
    .flatten()
    .collect()
}
