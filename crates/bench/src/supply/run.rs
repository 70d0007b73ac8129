//! Running a supply study.

use record::plan::PlanRecord;
use record::supply::{SupplyRecord, Tried};
use record::{Document, Kind, Machine};

use super::subject::Subject;
use super::trial::Trial;
use super::tried::try_sets;
use super::{SCENARIO, SUPPLY_QUESTION, SupplyPlan};
use crate::BenchError;
use crate::held::group_name;
use crate::session::{
    Finished, Grows, Opening, Progress, Settings, Step, Study, TimeLeft, conduct, in_turn,
    nothing_of,
};
use crate::together::Surroundings;

impl Grows for SupplyRecord {
    const GROWING: &'static [&'static str] = &["trials", "tried"];

    fn last_trial(&self) -> u32 {
        let spinning = self.trials.last().map_or(0, |trial| trial.number);
        let tried = self.tried.trials.last();
        tried.map_or(spinning, |trial| trial.number)
    }
}

/// Runs the plan, or the rest of it in a resumed run. Returns the run with its record complete, also when some trials failed. The
/// gaps decide which sets run after the spinning.
///
/// Everything made on the way is removed before this returns, on errors and signals too.
///
/// # Errors
/// Why the run ended, [`BenchError::Interrupted`] after a signal, together with the run if it had begun: measurements until then
/// are on record.
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
        name: SCENARIO,
        trials: plan.trials(),
        requirements: &plan.needs.requirements,
        not_measured: &plan.needs.not_measured,
        engines: None,
    };
    let mut trials: Vec<String> = plan.subjects.iter().map(Subject::name).collect();
    trials.extend(plan.tried());
    let planned = PlanRecord::new(SCENARIO, &plan.options, trials);
    let loads: Vec<_> = plan.load.iter().collect();
    conduct(
        &opening,
        &planned,
        record,
        settings,
        progress,
        |going| {
            let cpu = plan.setting.spot.cpu;
            let mut around = Surroundings::make(&mut going.session, &loads, cpu, going.progress)?;
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
