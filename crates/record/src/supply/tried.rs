//! Task sets that were run inside budgets.

use serde::{Deserialize, Serialize};

use crate::ground::{Budget, LoadRecord, Misses, NotMeasured};

/// Task sets that were run inside budgets, to see whether the measured supplies predict deadlines.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Tried {
    /// The sets.
    pub sets: Vec<TriedSet>,
    /// Budgets for which there is no set, with the reason.
    pub without: Vec<NotMeasured>,
    /// The trials, in the order of execution.
    pub trials: Vec<TriedTrial>,
}

model::choice! {
    /// The supply by which a set was chosen: its urgent task has the shortest period with which the test accepts both tasks.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum ChosenBy {
        /// The periodic resource model; the measured supply refuses the set.
        Textbook = "textbook",
        /// The lines below the supply measured in the same run.
        Measured = "measured",
    }
}

/// Two tasks of one cell under a budget, and the predictions for them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TriedSet {
    /// From 1, in the order of the record.
    pub number: u32,
    /// The budget.
    pub held: Budget,
    /// The supply by which it was chosen.
    pub chosen_by: ChosenBy,
    /// The most urgent first; deadlines are the ends of the periods.
    pub tasks: Vec<TriedTask>,
    /// The prediction of the periodic resource model.
    pub textbook: Foretold,
    /// The prediction from the measured supply.
    pub measured: Foretold,
}

/// A periodic thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TriedTask {
    /// Its name, and that of its samples file.
    pub name: String,
    /// Cpu time that a job may take, ns.
    pub wcet_ns: u64,
    /// Period and relative deadline, ns.
    pub period_ns: u64,
    /// SCHED_FIFO priority.
    pub priority: u8,
}

/// The result of an analysis of a set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Foretold {
    /// Whether it says that every deadline is met.
    pub accepted: bool,
    /// Bounds on the response times in the order of the tasks, ns; `None`: none within the deadline.
    pub responses_ns: Vec<Option<u64>>,
    /// Why it is not accepted, if the analysis names an instant.
    pub witness: Option<TriedWitness>,
}

/// An instant at which the demand exceeds the guaranteed supply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TriedWitness {
    /// The task whose deadline is in question.
    pub task: String,
    /// Counted from the start of the worst case, ns.
    pub instant_ns: u64,
    /// Work that is due by then, ns.
    pub demand_ns: u64,
    /// Cpu time that is guaranteed by then, ns.
    pub supply_ns: u64,
}

/// One run of a set; the samples of a task are `trials/<number>/<task>.samples`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TriedTrial {
    /// Number in the order of execution over all trials of the study, from 1.
    pub number: u32,
    /// Round, from 1.
    pub round: u32,
    /// The set, by its number.
    pub set: u32,
    /// Whether it ran with the budget; `false`: the same threads without a budget, to learn the host's own misses.
    pub in_budget: bool,
    /// Cpu on which the threads ran.
    pub cpu: u32,
    /// Planned activations of each task, in the order of the tasks.
    pub jobs: Vec<u32>,
    /// Steal time of this cpu during the trial as reported by the hypervisor, ns, mostly in steps of 10 ms; `None` if the
    /// kernel does not report it.
    pub steal_ns: Option<u64>,
    /// The load during the trial; `None`: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<LoadRecord>,
    /// Why the trial failed; `None` when it is good.
    pub failure: Option<String>,
}

/// The result of one set, in the summary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TriedSummary {
    /// The set and its predictions.
    pub set: TriedSet,
    /// Inside its budget.
    pub in_budget: TriedOutcome,
    /// The same threads without a budget.
    pub without: TriedOutcome,
}

/// Runs of one set over all rounds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TriedOutcome {
    /// The deadlines of each task, in the order of the tasks.
    pub tasks: Vec<Misses>,
    /// All tasks, in the trials without reported steal time.
    pub quiet: Misses,
    /// Steal time, ns; `None` if the kernel does not report it, or if nothing was run.
    pub steal_ns: Option<u64>,
}

impl TriedOutcome {
    /// All tasks together; trials are counted once.
    pub fn all(&self) -> Misses {
        Misses::together(&self.tasks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supply::{SupplyRecord, SupplySummary};

    #[test]
    fn all_tasks_count_together_and_their_trials_once() {
        let task = |late, jobs, worst| Misses {
            jobs,
            late,
            trials: 3,
            trials_with: u64::from(late > 0),
            worst_lateness_ns: Some(worst),
            ..Misses::default()
        };
        let outcome = TriedOutcome {
            tasks: vec![task(2, 700, 5), task(0, 12, -9)],
            ..TriedOutcome::default()
        };
        let all = outcome.all();
        assert_eq!(
            (all.jobs, all.missed(), all.trials, all.trials_with),
            (712, 2, 3, 1)
        );
        assert_eq!(all.worst_lateness_ns, Some(5));
        assert_eq!(TriedOutcome::default().all(), Misses::default());
    }

    #[test]
    fn records_and_summaries_of_studies_that_tried_nothing_are_read() {
        let machine = r#"{"cpu_model":null,"cpus":1,"virtual_machine":null,"kernel_release":null,"kernel_version":null,"tick_hz":250,
            "deadline_by_timer":null}"#;
        let record = format!(
            r#"{{"schema":1,"question":"q","machine":{machine},"conditions":[],"rounds_planned":1,"trials":[],"not_measured":[]}}"#
        );
        let record: SupplyRecord = serde_json::from_str(&record).unwrap();
        assert_eq!(record.tried, Tried::default());
        let summary = r#"{"schema":1,"run":"r","supplies":[],"host":null,"not_measured":[],"unmet":[],"failures":[]}"#;
        let summary: SupplySummary = serde_json::from_str(summary).unwrap();
        assert!(summary.tried.is_empty() && summary.not_tried.is_empty());
        let by = serde_json::to_string(&ChosenBy::Measured).unwrap();
        assert_eq!(by, "\"measured\"");
    }
}
