//! The second stage of a supply study: whether what was measured tells anything of deadlines. For each budget two sets of two
//! tasks are run inside it, and without it to learn what the host itself makes late: one that the textbook's supply accepts
//! and the measured one refuses, and one that the measured one accepts.

mod choose;
mod trial;

use std::time::Instant;

use record::RecordError;
use record::run::{Manifest, Run};
use record::series::Condition;
use record::summary::NotMeasured;
use record::supply::{Budget, SupplyRecord, SupplySummary, TriedSet};

use super::{SupplyPlan, name_of};
use crate::BenchError;
use crate::held;
use crate::interrupt::Interrupt;
use crate::launch::Stage;
use crate::load::Ground;
use crate::run::Progress;
use crate::series::condition;
use crate::together::Around;
use choose::choose;
use trial::Attempt;

/// What the gaps of a run amount to: for a crate above this one.
pub type SupplyStudy<'a> = &'a dyn Fn(&Run) -> Result<SupplySummary, RecordError>;

/// Length of each run of a set, and with `--quick`, ns: some jobs of the background task.
pub(super) const TRIED_NS: (i64, i64) = (4_000_000_000, 1_200_000_000);
/// Guess of the time that making and removing a cell takes, and calibrating its work, ns.
const CELL_GUESS_NS: i64 = 100_000_000;
/// Runs of a budget in each round: two sets, each inside it and without it.
const RUNS: u32 = 4;

/// What is tried in a run.
#[derive(Debug, Clone)]
pub(super) struct Trying {
    /// Of each run of a set, ns.
    pub length_ns: i64,
    /// Those among the measured that can hold two tasks.
    pub budgets: Vec<Budget>,
    /// Those that cannot, with the reason.
    pub without: Vec<NotMeasured>,
}

impl Trying {
    /// Of these budgets, which are measured.
    pub(super) fn of(length_ns: i64, measured: impl Iterator<Item = Budget>) -> Trying {
        let mut trying = Trying {
            length_ns,
            budgets: Vec::new(),
            without: Vec::new(),
        };
        for held in measured {
            let name = held.enforcer.name();
            match held::by(held.enforcer).and_then(|holder| holder.unshared()) {
                None => trying.budgets.push(held),
                Some(_) if trying.without.iter().any(|one| one.trial == name) => {}
                Some(why) => trying.without.push(NotMeasured {
                    trial: name.to_owned(),
                    reason: why.to_owned(),
                    mend: String::new(),
                }),
            }
        }
        trying
    }

    /// What is run in every round, as far as the measured supply tells the textbook's apart.
    pub(super) fn names(&self) -> Vec<String> {
        let each = |held: &Budget| {
            let name = name_of(held);
            format!(
                "{name}: the textbook's set and the measured supply's, each inside the budget and without"
            )
        };
        self.budgets.iter().map(each).collect()
    }

    /// Runs in each round, at most.
    pub(super) fn runs(&self) -> u32 {
        u32::try_from(self.budgets.len())
            .unwrap_or(u32::MAX)
            .saturating_mul(RUNS)
    }

    /// How long one takes, ns.
    pub(super) fn run_ns(&self) -> i64 {
        self.length_ns + CELL_GUESS_NS
    }

    pub(super) fn condition(&self) -> Condition {
        condition(
            "tried sets",
            format!(
                "two periodic SCHED_FIFO threads in one plain process, released together, {} s each: one that takes 0.9 of the \
                 budget, and one that every {} ms takes up to 0.4 of what is granted meanwhile; deadlines at the ends of the \
                 periods; each set also without the budget",
                self.length_ns as f64 / 1e9,
                choose::BACKGROUND_NS / 1_000_000
            ),
        )
    }
}

/// The stage that goes on after the spinning.
pub(super) struct Second<'a> {
    pub plan: &'a SupplyPlan,
    pub trying: &'a Trying,
    pub run: &'a Run,
    pub interrupt: &'a Interrupt,
    pub stage: &'a Stage,
    pub ground: &'a Ground,
    /// The last number given to a trial.
    pub number: u32,
    pub began: Instant,
    /// Expected time of what is done, ns.
    pub past_ns: i64,
}

impl Second<'_> {
    /// Chooses the sets by what is on record, and runs them, round by round, each beginning with the next.
    pub(super) fn run(
        mut self,
        study: SupplyStudy<'_>,
        manifest: &mut Manifest,
        record: &mut SupplyRecord,
        progress: &mut dyn Progress,
    ) -> Result<(), BenchError> {
        record.tried.without.clone_from(&self.trying.without);
        let (sets, without) = self.sets(&study(self.run)?);
        for one in &without {
            progress.note(&format!("{}: no set tried: {}", one.trial, one.reason));
        }
        record.tried.without.extend(without);
        record.tried.sets.clone_from(&sets);
        let todo: Vec<(&TriedSet, bool)> = (sets.iter())
            .flat_map(|set| [(set, true), (set, false)])
            .collect();
        let runs = u32::try_from(todo.len()).unwrap_or(u32::MAX);
        manifest.trials_planned = self.number + runs.saturating_mul(self.plan.rounds);
        self.run.write_supply(record)?;
        self.run.write_manifest(manifest)?;
        let mut left =
            self.plan.tried_ns(self.trying) * i64::from(runs) * i64::from(self.plan.rounds);
        for round in 1..=self.plan.rounds {
            for turn in 0..todo.len() {
                let (set, in_budget) = todo[(turn + round as usize - 1) % todo.len()];
                self.number += 1;
                let name = name(set, in_budget);
                let soon = super::left_ns(left, self.past_ns, self.began);
                progress.trial(self.number, round, &name, soon);
                let trial = Attempt {
                    set,
                    in_budget,
                    round,
                    cpu: self.plan.setting.spot.cpu,
                    length_ns: self.trying.length_ns,
                    load: self.plan.load.as_ref(),
                    around: Around {
                        stage: self.stage,
                        ground: self.ground,
                        interrupt: self.interrupt,
                        number: self.number,
                    },
                    run: self.run,
                }
                .run();
                if self.interrupt.came() {
                    return Err(BenchError::Interrupted);
                }
                if let Some(failure) = &trial.failure {
                    progress.note(&format!("{name}, round {round}: {failure}"));
                }
                record.tried.trials.push(trial);
                manifest.trials_done += 1;
                self.run.write_supply(record)?;
                self.run.write_manifest(manifest)?;
                self.past_ns += self.plan.tried_ns(self.trying);
                left -= self.plan.tried_ns(self.trying);
            }
        }
        Ok(())
    }

    /// The sets of all budgets, and the reasons why some have none.
    fn sets(&self, summary: &SupplySummary) -> (Vec<TriedSet>, Vec<NotMeasured>) {
        let (mut sets, mut without) = (Vec::new(), Vec::new());
        for held in &self.trying.budgets {
            let Some(supply) = summary.supplies.iter().find(|supply| supply.held == *held) else {
                without.push(NotMeasured {
                    trial: name_of(held),
                    reason: "nothing was measured of it".to_owned(),
                    mend: String::new(),
                });
                continue;
            };
            let first = u32::try_from(sets.len() + 1).unwrap_or(u32::MAX);
            match choose(supply, self.plan.setting.spot.priority, first) {
                Ok(chosen) => sets.extend(chosen),
                Err(reason) => without.push(reason),
            }
        }
        (sets, without)
    }
}

fn name(set: &TriedSet, in_budget: bool) -> String {
    let whose = set.chosen_by.name();
    let place = if in_budget {
        "inside the budget"
    } else {
        "without it"
    };
    format!("{}, the {whose} set {place}", name_of(&set.held))
}
