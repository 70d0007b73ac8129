//! Running a supply study.

use record::supply::{SupplyRecord, Tried};
use record::{Document, Kind, Machine};

use super::trial::Trial;
use super::tried::try_sets;
use super::{SUPPLY_QUESTION, SupplyPlan};
use crate::BenchError;
use crate::held::group_name;
use crate::session::{
    Finished, Opening, Progress, Settings, Step, Study, TimeLeft, conduct, in_turn, nothing_of,
};
use crate::together::Surroundings;

/// Runs the plan. Returns the run with its record complete, also when some trials failed. By what the gaps amount to the
/// sets are chosen that are run after the spinning.
///
/// Everything made on the way is removed before this returns, on errors and signals too.
///
/// # Errors
/// What ended the run, [`BenchError::Interrupted`] after a signal, together with the run if it had begun: what was
/// measured until then is on record.
pub fn run_supply(plan: &SupplyPlan, settings: &Settings, progress: &mut dyn Progress) -> Finished {
    if plan.subjects.is_empty() {
        return Err((None, nothing_of("no supply", &plan.needs.not_measured)));
    }
    let record = SupplyRecord {
        schema: SupplyRecord::SCHEMA,
        question: SUPPLY_QUESTION.to_owned(),
        machine: Machine::here(),
        conditions: plan.conditions(),
        rounds_planned: plan.rounds,
        trials: Vec::new(),
        not_measured: plan.needs.not_measured.clone(),
        tried: Tried::default(),
    };
    let opening = Opening {
        kind: Kind::Supply,
        name: "supply",
        trials: plan.trials(),
        requirements: &plan.needs.requirements,
        not_measured: &plan.needs.not_measured,
        engines: None,
    };
    let loads: Vec<_> = plan.load.iter().collect();
    conduct(
        opening,
        record,
        settings,
        progress,
        |going| {
            let cpu = plan.setting.spot.cpu;
            let mut around = Surroundings::make(&going.session, &loads, cpu, going.progress)?;
            around.stage.place.note_rt_group(&group_name())?;
            Ok(around)
        },
        |around, going| {
            spin(plan, around, going)?;
            match &plan.trying {
                Some(trying) => try_sets(plan, trying, around, going),
                None => Ok(()),
            }
        },
    )
}

/// Measures the supply of every subject, round by round.
fn spin(
    plan: &SupplyPlan,
    around: &Surroundings,
    going: &mut Study<'_, SupplyRecord>,
) -> Result<(), BenchError> {
    going.left = TimeLeft::new(plan.expected_ns());
    for (round, place) in in_turn(plan.rounds, plan.subjects.len()) {
        let subject = &plan.subjects[place];
        let step = Step {
            round,
            name: subject.name(),
            expected_ns: plan.trial_ns(subject),
        };
        going.trial(
            &step,
            |session, number| {
                Trial {
                    subject,
                    round,
                    setting: &plan.setting,
                    load: plan.load.as_ref(),
                    around: around.of(session, number),
                    run: &session.run,
                }
                .run()
            },
            |record, trial| {
                let failure = trial.failure.clone();
                record.trials.push(trial);
                failure
            },
        )?;
    }
    Ok(())
}
