//! Running a supply study.

use std::time::Instant;

use host::latency::DmaLatency;
use host::provenance::Provenance;
use record::run::{Manifest, RUN_SCHEMA, Run, Status};
use record::supply::{Machine, SUPPLY_SCHEMA, SupplyRecord, Tried};

use super::trial::Trial;
use super::tried::{Second, SupplyStudy};
use super::{SUPPLY_QUESTION, SupplyPlan};
use crate::BenchError;
use crate::elsewhere::Elsewhere;
use crate::held::group_name;
use crate::interrupt::Interrupt;
use crate::launch::Stage;
use crate::load::Ground;
use crate::run::{Progress, Settings, alone};
use crate::together::Around;
use crate::utc::{stamp, utc_now};

/// Runs the plan. Returns the run with its record complete, also when some trials failed. `study` says what the gaps amount
/// to, by which the sets are chosen that are run after the spinning.
///
/// Everything made on the way is removed before this returns, on errors and signals too.
///
/// # Errors
/// What ended the run, [`BenchError::Interrupted`] after a signal, together with the run if it had begun: what was
/// measured until then is on record.
pub fn run_supply(
    plan: &SupplyPlan,
    settings: &Settings,
    study: SupplyStudy<'_>,
    progress: &mut dyn Progress,
) -> Result<Run, (Option<Run>, BenchError)> {
    if plan.subjects.is_empty() {
        let why: Vec<String> = (plan.not_measured.iter())
            .map(|n| format!("{}: {} ({})", n.trial, n.reason, n.mend))
            .collect();
        return Err((
            None,
            BenchError::Unmet(format!(
                "no supply can be measured here: {}",
                why.join("; ")
            )),
        ));
    }
    let interrupt = alone(progress).map_err(|error| (None, error))?;
    let (run, mut manifest, mut record) = begin(plan, settings).map_err(|error| (None, error))?;
    progress.began(&run, manifest.trials_planned);
    let going = Going {
        plan,
        run: &run,
        interrupt: &interrupt,
        study,
    };
    let mut result = going.rounds(&mut manifest, &mut record, progress);
    manifest.status = match &result {
        Ok(()) => Status::Complete,
        Err(BenchError::Interrupted) => Status::Interrupted,
        Err(_) => Status::Failed,
    };
    manifest.failure = result.as_ref().err().map(ToString::to_string);
    manifest.finished = Some(utc_now());
    let written = run
        .write_supply(&record)
        .and_then(|()| run.write_manifest(&manifest));
    if result.is_ok() {
        result = written.map_err(BenchError::Record);
    }
    match result {
        Ok(()) => Ok(run),
        Err(error) => Err((Some(run), error)),
    }
}

fn begin(
    plan: &SupplyPlan,
    settings: &Settings,
) -> Result<(Run, Manifest, SupplyRecord), BenchError> {
    let provenance = Provenance::collect(&settings.version);
    let manifest = Manifest {
        schema: RUN_SCHEMA,
        timecell_version: settings.version.clone(),
        status: Status::Running,
        started: utc_now(),
        finished: None,
        trials_planned: plan.trials(),
        trials_done: 0,
        requirements: plan.requirements.clone(),
        not_measured: plan.not_measured.clone(),
        resumed: Vec::new(),
        failure: None,
    };
    let record = SupplyRecord {
        schema: SUPPLY_SCHEMA,
        question: SUPPLY_QUESTION.to_owned(),
        machine: Machine::here(),
        conditions: plan.conditions(),
        rounds_planned: plan.rounds,
        trials: Vec::new(),
        not_measured: plan.not_measured.clone(),
        tried: Tried::default(),
    };
    let run = Run::create_supply(&settings.out, &stamp(), &record, &provenance, &manifest)?;
    Ok((run, manifest, record))
}

struct Going<'a> {
    plan: &'a SupplyPlan,
    run: &'a Run,
    interrupt: &'a Interrupt,
    study: SupplyStudy<'a>,
}

impl Going<'_> {
    fn rounds(
        &self,
        manifest: &mut Manifest,
        record: &mut SupplyRecord,
        progress: &mut dyn Progress,
    ) -> Result<(), BenchError> {
        let (plan, run) = (self.plan, self.run);
        let mut stage = Stage::set()?;
        // Before any is made: whoever comes after a `kill -9` removes it.
        stage.place.note_rt_group(&group_name())?;
        stage.place.note_held_groups(&group_name())?;
        let loads: Vec<_> = plan.load.iter().collect();
        let (ground, remarks) = Ground::for_loads(&loads, run.dir(), &mut stage.place)?;
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
        let (mut number, mut past) = (0, 0i64);
        for round in 1..=plan.rounds {
            for turn in 0..plan.subjects.len() {
                // Each begins in turn: what stands before a subject in the round may have an effect on it.
                let subject = &plan.subjects[(turn + round as usize - 1) % plan.subjects.len()];
                number += 1;
                let left = left_ns(plan.expected_ns() - past, past, began);
                progress.trial(number, round, &subject.name(), left);
                let trial = Trial {
                    subject,
                    round,
                    setting: &plan.setting,
                    load: plan.load.as_ref(),
                    around: Around {
                        stage: &stage,
                        ground: &ground,
                        interrupt: self.interrupt,
                        number,
                    },
                    run,
                }
                .run();
                if self.interrupt.came() {
                    return Err(BenchError::Interrupted);
                }
                if let Some(failure) = &trial.failure {
                    progress.note(&format!("{}, round {round}: {failure}", subject.name()));
                }
                record.trials.push(trial);
                manifest.trials_done += 1;
                run.write_supply(record)?;
                run.write_manifest(manifest)?;
                past += plan.trial_ns(subject);
            }
        }
        let Some(trying) = &plan.trying else {
            return Ok(());
        };
        let second = Second {
            plan,
            trying,
            run,
            interrupt: self.interrupt,
            stage: &stage,
            ground: &ground,
            number,
            began,
            past_ns: past,
        };
        second.run(self.study, manifest, record, progress)
    }
}

/// Expected at first, stretched by what was seen as the run goes on.
pub(crate) fn left_ns(expected: i64, past: i64, began: Instant) -> i64 {
    if past <= 0 {
        return expected;
    }
    let seen = began.elapsed().as_nanos() as f64;
    (expected as f64 * seen / past as f64) as i64
}
