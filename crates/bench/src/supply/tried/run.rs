//! Choosing the sets, and running them.

use record::NotMeasured;
use record::supply::{SupplyRecord, SupplySummary, Tried, TriedSet};

use super::Trying;
use super::choose::choose;
use super::trial::Attempt;
use crate::BenchError;
use crate::session::{Step, Study, in_turn};
use crate::supply::SupplyPlan;
use crate::supply::subject::name_of;
use crate::together::Surroundings;

/// Chooses the sets by the record, unless that was done before the run was resumed, and runs them, round by round, each beginning with the next.
pub(in crate::supply) fn try_sets(
    plan: &SupplyPlan,
    trying: &Trying,
    around: &Surroundings,
    going: &mut Study<'_, SupplyRecord>,
) -> Result<(), BenchError> {
    if going.record.tried == Tried::default() {
        let (sets, without) = sets(plan, trying, &study::supply_study(&going.session.run)?);
        for one in &without {
            (going.progress).note(&format!("{}: no set tried: {}", one.trial, one.reason));
        }
        let tried = &mut going.record.tried;
        tried.without.clone_from(&trying.without);
        tried.without.extend(without);
        tried.sets = sets;
    }
    let sets = going.record.tried.sets.clone();
    let todo: Vec<(&TriedSet, bool)> = (sets.iter())
        .flat_map(|set| [(set, true), (set, false)])
        .collect();
    let runs = (u32::try_from(todo.len()).unwrap_or(u32::MAX)).saturating_mul(plan.rounds);
    going.session.manifest.trials_planned = going.number + runs;
    going.write()?;
    going.left.replan(plan.tried_ns(trying) * i64::from(runs));
    for (round, place) in in_turn(plan.rounds, todo.len()) {
        let (set, in_budget) = todo[place];
        let step = Step {
            round,
            name: name(set, in_budget),
            expected_ns: plan.tried_ns(trying),
        };
        going.trial(
            &step,
            |session, number| {
                Attempt {
                    set,
                    in_budget,
                    round,
                    cpu: plan.setting.spot.cpu,
                    length_ns: trying.length_ns,
                    load: plan.load.as_ref(),
                    around: around.of(session, number),
                    run: &session.run,
                }
                .run()
            },
            |record, trial| {
                let failure = trial.failure.clone();
                record.tried.trials.push(trial);
                failure
            },
        )?;
    }
    Ok(())
}

/// The sets of all budgets, and the reasons why some have none.
fn sets(
    plan: &SupplyPlan,
    trying: &Trying,
    summary: &SupplySummary,
) -> (Vec<TriedSet>, Vec<NotMeasured>) {
    let (mut sets, mut without) = (Vec::new(), Vec::new());
    for held in &trying.budgets {
        let Some(supply) = summary.supplies.iter().find(|supply| supply.held == *held) else {
            without.push(NotMeasured {
                trial: name_of(held),
                reason: "it was not measured".to_owned(),
                fix: String::new(),
            });
            continue;
        };
        let first = u32::try_from(sets.len() + 1).unwrap_or(u32::MAX);
        match choose(supply, plan.setting.spot.priority, first) {
            Ok(chosen) => sets.extend(chosen),
            Err(reason) => without.push(reason),
        }
    }
    (sets, without)
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
