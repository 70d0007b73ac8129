//! Running an isolation study.

use std::time::Instant;

use host::latency::DmaLatency;
use host::provenance::Provenance;
use host::rtgroup::RtGroup;
use model::Enforcer;
use record::isolation::{ISOLATION_SCHEMA, IsolationRecord};
use record::run::{Manifest, RUN_SCHEMA, Run, Status};
use record::supply::Machine;

use super::contest::Contest;
use super::received::Received;
use super::{ISOLATION_QUESTION, IsolationPlan, Todo};
use crate::BenchError;
use crate::elsewhere::Elsewhere;
use crate::held::group_name;
use crate::interrupt::Interrupt;
use crate::launch::Stage;
use crate::load::Ground;
use crate::run::{Progress, Settings, alone};
use crate::supply::left_ns;
use crate::together::Around;
use crate::utc::{stamp, utc_now};

/// Runs the plan. Returns the run with its record complete, also when some trials failed.
///
/// Everything made on the way is removed before this returns, on errors and signals too.
///
/// # Errors
/// What ended the run, [`BenchError::Interrupted`] after a signal, together with the run if it had begun: what was
/// measured until then is on record.
pub fn run_isolation(
    plan: &IsolationPlan,
    settings: &Settings,
    progress: &mut dyn Progress,
) -> Result<Run, (Option<Run>, BenchError)> {
    let todo = plan.todo();
    if todo.is_empty() {
        return Err((None, BenchError::Unmet(why_nothing(plan))));
    }
    let interrupt = alone(progress).map_err(|error| (None, error))?;
    let (run, mut manifest, mut record) =
        begin(plan, settings, todo.len()).map_err(|error| (None, error))?;
    progress.began(&run, manifest.trials_planned);
    let going = Going {
        plan,
        run: &run,
        interrupt: &interrupt,
    };
    let mut result = going.trials(&todo, &mut manifest, &mut record, progress);
    manifest.status = match &result {
        Ok(()) => Status::Complete,
        Err(BenchError::Interrupted) => Status::Interrupted,
        Err(_) => Status::Failed,
    };
    manifest.failure = result.as_ref().err().map(ToString::to_string);
    manifest.finished = Some(utc_now());
    let written = run
        .write_isolation(&record)
        .and_then(|()| run.write_manifest(&manifest));
    if result.is_ok() {
        result = written.map_err(BenchError::Record);
    }
    match result {
        Ok(()) => Ok(run),
        Err(error) => Err((Some(run), error)),
    }
}

fn why_nothing(plan: &IsolationPlan) -> String {
    let lacking = plan.requirements.iter().filter(|needed| !needed.met);
    let mut why: Vec<String> = lacking
        .map(|needed| {
            let mend = needed.mend.clone().unwrap_or_default();
            format!("{}: {} ({mend})", needed.what, needed.reason)
        })
        .collect();
    for absent in &plan.draws {
        let refused = absent.without.iter();
        why.extend(refused.map(|one| format!("{}: {} ({})", one.trial, one.reason, one.mend)));
    }
    format!("isolation cannot be measured here: {}", why.join("; "))
}

fn begin(
    plan: &IsolationPlan,
    settings: &Settings,
    trials: usize,
) -> Result<(Run, Manifest, IsolationRecord), BenchError> {
    let provenance = Provenance::collect(&settings.version);
    let manifest = Manifest {
        schema: RUN_SCHEMA,
        timecell_version: settings.version.clone(),
        status: Status::Running,
        started: utc_now(),
        finished: None,
        trials_planned: u32::try_from(trials).unwrap_or(u32::MAX),
        trials_done: 0,
        requirements: plan.requirements.clone(),
        not_measured: plan.not_measured.clone(),
        resumed: Vec::new(),
        failure: None,
    };
    let record = IsolationRecord {
        schema: ISOLATION_SCHEMA,
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
        not_measured: plan.not_measured.clone(),
    };
    let run = Run::create_isolation(&settings.out, &stamp(), &record, &provenance, &manifest)?;
    Ok((run, manifest, record))
}

struct Going<'a> {
    plan: &'a IsolationPlan,
    run: &'a Run,
    interrupt: &'a Interrupt,
}

impl Going<'_> {
    fn trials(
        &self,
        todo: &[(u32, Todo<'_>)],
        manifest: &mut Manifest,
        record: &mut IsolationRecord,
        progress: &mut dyn Progress,
    ) -> Result<(), BenchError> {
        let plan = self.plan;
        let mut stage = Stage::set()?;
        let group = self.group(&mut stage)?;
        let loads: Vec<_> = plan.loads.iter().flatten().collect();
        let (ground, remarks) = Ground::for_loads(&loads, self.run.dir(), &mut stage.place)?;
        for remark in remarks {
            progress.note(&remark);
        }
        let _elsewhere = Elsewhere::than(&[plan.setting.spot.cpu]);
        let _awake = match DmaLatency::hold() {
            Ok(held) => Some(held),
            Err(why) => {
                progress.note(&format!("idle states are left as they are: {why}"));
                None
            }
        };
        let began = Instant::now();
        let (mut past, expected) = (0, plan.expected_ns());
        for ((round, todo), number) in todo.iter().zip(1..) {
            let left = left_ns(expected - past, past, began);
            progress.trial(number, *round, &todo.name(), left);
            let around = Around {
                stage: &stage,
                ground: &ground,
                interrupt: self.interrupt,
                number,
            };
            let failure = self.one(*round, todo, around, record);
            if self.interrupt.came() {
                return Err(BenchError::Interrupted);
            }
            if let Some(failure) = failure {
                progress.note(&format!(
                    "trial {number} ({}) failed: {failure}",
                    todo.name()
                ));
            }
            manifest.trials_done += 1;
            self.run.write_isolation(record)?;
            self.run.write_manifest(manifest)?;
            past += plan.trial_ns(todo);
        }
        match group.map(RtGroup::remove) {
            None | Some(Ok(())) => Ok(()),
            Some(Err(error)) => Err(BenchError::Failed(error.to_string())),
        }
    }

    /// Runs one trial and puts it on record, but for one that a signal cut off; what failed.
    fn one(
        &self,
        round: u32,
        todo: &Todo<'_>,
        around: Around<'_>,
        record: &mut IsolationRecord,
    ) -> Option<String> {
        let plan = self.plan;
        match *todo {
            Todo::Contest { set, arm, load } => {
                let contest = Contest {
                    set,
                    arm,
                    load,
                    round,
                    setting: &plan.setting,
                    around,
                    run: self.run,
                };
                let trial = contest.run();
                let failure = trial.failure.clone();
                if !self.interrupt.came() {
                    record.contests.push(trial);
                }
                failure
            }
            Todo::Received(enforcer) => {
                let received = Received {
                    enforcer,
                    reservations: &plan.checked.reservations,
                    round,
                    setting: &plan.setting,
                    around,
                    run: self.run,
                };
                let trial = received.run();
                let failure = trial.failure.clone();
                if !self.interrupt.came() {
                    record.received.push(trial);
                }
                failure
            }
        }
    }

    /// The group around those of the cells: whoever comes after a `kill -9` removes it with all inside.
    fn group(&self, stage: &mut Stage) -> Result<Option<RtGroup>, BenchError> {
        // Before any is made: whoever comes after a `kill -9` removes it.
        stage.place.note_held_groups(&group_name())?;
        if !self.plan.enforcers.contains(&Enforcer::RtCgroup) {
            return Ok(None);
        }
        stage.place.note_rt_group(&group_name())?;
        RtGroup::create(&group_name(), self.plan.setting.free_us, 1_000_000)
            .map(Some)
            .map_err(|error| BenchError::Failed(error.to_string()))
    }
}
