//! Running an isolation study.

use std::collections::BTreeMap;

use host::rtgroup::RtGroup;
use model::Enforcer;
use record::isolation::IsolationRecord;
use record::plan::PlanRecord;
use record::{Document, Kind, Machine};

use super::contest::Contest;
use super::received::Received;
use super::{ISOLATION_QUESTION, IsolationPlan, SCENARIO, Todo};
use crate::BenchError;
use crate::held::group_name;
use crate::session::{
    Finished, Grows, Opening, Progress, Settings, Step, Study, TimeLeft, conduct,
};
use crate::together::Surroundings;

impl Grows for IsolationRecord {
    const GROWING: &'static [&'static str] = &["contests", "received"];

    fn last_trial(&self) -> u32 {
        let contest = self.contests.last().map_or(0, |trial| trial.number);
        let received = self.received.last().map_or(0, |trial| trial.number);
        contest.max(received)
    }
}

/// Runs the plan, or the rest of it where a run is resumed. Returns the run with its record complete, also when some trials failed.
///
/// Everything made on the way is removed before this returns, on errors and signals too.
///
/// # Errors
/// Why the run ended, [`BenchError::Interrupted`] after a signal, together with the run if it had begun: measurements until then are on
/// record.
pub fn run_isolation(
    plan: &IsolationPlan,
    settings: &Settings,
    progress: &mut dyn Progress,
) -> Finished {
    let todo = plan.todo();
    if todo.is_empty() {
        return Err((None, BenchError::Unmet(why_nothing(plan))));
    }
    let record = IsolationRecord {
        schema: IsolationRecord::SCHEMA,
        question: ISOLATION_QUESTION.to_owned(),
        machine: Machine::here(),
        conditions: plan.conditions(),
        rounds_planned: plan.rounds,
        seed: plan.checked.seed,
        overrun_permille: plan.setting.overrun_permille,
        draws: plan.draws.clone(),
        sets: plan.sets.clone(),
        contests: Vec::new(),
        received: Vec::new(),
        not_measured: plan.needs.not_measured.clone(),
    };
    let opening = Opening {
        kind: Kind::Isolation,
        name: SCENARIO,
        trials: u32::try_from(todo.len()).unwrap_or(u32::MAX),
        requirements: &plan.needs.requirements,
        not_measured: &plan.needs.not_measured,
        engines: None,
    };
    let trials = todo.iter().map(|(_, todo)| todo.name()).collect();
    let planned = PlanRecord {
        found: load_programs(plan),
        ..PlanRecord::new(SCENARIO, &plan.options, trials)
    };
    let loads: Vec<_> = plan.loads.iter().flatten().collect();
    conduct(
        &opening,
        &planned,
        record,
        settings,
        progress,
        |going| {
            let cpu = plan.setting.spot.cpu;
            let mut around = Surroundings::make(&mut going.session, &loads, cpu, going.progress)?;
            // The group before the place, whose note names it until it is gone.
            Ok((group(plan, &mut around)?, around))
        },
        |(group, around), going| {
            going.left = TimeLeft::new(plan.expected_ns());
            for (round, todo) in &todo {
                one(plan, *round, todo, around, going)?;
            }
            (group.take().map_or(Ok(()), RtGroup::remove))
                .map_err(|error| BenchError::Failed(error.to_string()))
        },
    )
}

/// The programs behind the loads, which no condition names.
fn load_programs(plan: &IsolationPlan) -> BTreeMap<String, String> {
    let loads = plan.loads.iter().flatten();
    let found = loads.map(|load| (format!("load {}", load.plan.name), load.form.clone()));
    found.collect()
}

fn why_nothing(plan: &IsolationPlan) -> String {
    let lacking = plan.needs.requirements.iter().filter(|needed| !needed.met);
    let mut why: Vec<String> = lacking
        .map(|needed| {
            let fix = needed.fix.clone().unwrap_or_default();
            format!("{}: {} ({fix})", needed.what, needed.reason)
        })
        .collect();
    for absent in &plan.draws {
        let refused = absent.without.iter();
        why.extend(refused.map(|one| format!("{}: {} ({})", one.trial, one.reason, one.fix)));
    }
    format!("isolation cannot be measured here: {}", why.join("; "))
}

fn one(
    plan: &IsolationPlan,
    round: u32,
    todo: &Todo<'_>,
    around: &Surroundings,
    going: &mut Study<'_, IsolationRecord>,
) -> Result<(), BenchError> {
    let step = Step {
        round,
        name: todo.name(),
        expected_ns: plan.trial_ns(todo),
    };
    match *todo {
        Todo::Contest { set, arm, load } => going.trial(
            &step,
            |session, number| {
                Contest {
                    set,
                    arm,
                    load,
                    round,
                    setting: &plan.setting,
                    around: around.of(session, number),
                    run: &session.run,
                }
                .run()
            },
            |record, trial| {
                let failure = trial.failure.clone();
                record.contests.push(trial);
                failure
            },
        ),
        Todo::Received(enforcer) => going.trial(
            &step,
            |session, number| {
                Received {
                    enforcer,
                    reservations: &plan.checked.reservations,
                    round,
                    setting: &plan.setting,
                    around: around.of(session, number),
                    run: &session.run,
                }
                .run()
            },
            |record, trial| {
                let failure = trial.failure.clone();
                record.received.push(trial);
                failure
            },
        ),
    }
}

/// The group around those of the cells: after a `kill -9` it is removed with everything in it.
fn group(plan: &IsolationPlan, around: &mut Surroundings) -> Result<Option<RtGroup>, BenchError> {
    if !plan.enforcers.contains(&Enforcer::RtCgroup) {
        return Ok(None);
    }
    // Before it is made.
    around.stage.place.note_rt_group(&group_name())?;
    RtGroup::create(&group_name(), plan.setting.free_us, 1_000_000)
        .map(Some)
        .map_err(|error| BenchError::Failed(error.to_string()))
}
