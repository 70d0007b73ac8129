//! Round after round, every task in turn, from plan to record.

use std::time::{Duration, Instant};

use host::provenance::Provenance;
use record::run::{Manifest, RUN_SCHEMA, Run, Status};
use record::series::{Failure, Quantity, SERIES_SCHEMA, SeriesRecord, Value};

use super::{Bench, SeriesPlan, Turn};
use crate::BenchError;
use crate::interrupt::Interrupt;
use crate::run::{Progress, Settings, alone};
use crate::utc::{stamp, utc_now};

/// How often the record is written while the run goes on, at most: a power cut loses no more than this.
const WRITTEN_EVERY: Duration = Duration::from_secs(10);

/// How often progress is told, at most.
const TOLD_EVERY: Duration = Duration::from_millis(1500);

/// Runs the plan. Returns the run with its record complete, also when some measurements failed.
///
/// Everything made on the way is removed before this returns, on errors and signals too.
///
/// # Errors
/// What ended the run, [`BenchError::Interrupted`] after a signal, together with the run if it had begun: what was
/// measured until then is on record.
pub fn run_series(
    plan: SeriesPlan,
    settings: &Settings,
    progress: &mut dyn Progress,
) -> Result<Run, (Option<Run>, BenchError)> {
    if plan.prepared.tasks.is_empty() {
        let why: Vec<String> = (plan.prepared.not_measured.iter())
            .map(|n| format!("{}: {} ({})", n.trial, n.reason, n.mend))
            .collect();
        let why = format!(
            "nothing of this scenario can be measured here: {}",
            why.join("; ")
        );
        return Err((None, BenchError::Unmet(why)));
    }
    let interrupt = alone(progress).map_err(|error| (None, error))?;
    let (run, mut manifest, mut record) = begin(&plan, settings).map_err(|error| (None, error))?;
    progress.began(&run, manifest.trials_planned);
    let tasks = plan.prepared.tasks;
    let mut result = (plan.prepared.open)().and_then(|bench| {
        let mut rounds = Rounds {
            run: &run,
            tasks: &tasks,
            interrupt: &interrupt,
            manifest: &mut manifest,
            record: &mut record,
            began: Instant::now(),
            expected_ns: plan_ns(&tasks, plan.rounds),
        };
        rounds.all(bench, plan.rounds, progress)
    });
    manifest.status = match &result {
        Ok(()) => Status::Complete,
        Err(BenchError::Interrupted) => Status::Interrupted,
        Err(_) => Status::Failed,
    };
    manifest.failure = result.as_ref().err().map(ToString::to_string);
    manifest.finished = Some(utc_now());
    let written = run
        .write_series(&record)
        .and_then(|()| run.write_manifest(&manifest));
    if result.is_ok() {
        result = written.map_err(BenchError::Record);
    }
    match result {
        Ok(()) => Ok(run),
        Err(error) => Err((Some(run), error)),
    }
}

fn plan_ns(tasks: &[super::Task], rounds: u32) -> i64 {
    let round: i64 = tasks.iter().map(|task| task.guess_ns).sum();
    round.saturating_mul(rounds.into())
}

fn begin(
    plan: &SeriesPlan,
    settings: &Settings,
) -> Result<(Run, Manifest, SeriesRecord), BenchError> {
    let prepared = &plan.prepared;
    let mut provenance = Provenance::collect(&settings.version);
    provenance.engines = engine::found(&engine::Options::default());
    let tasks = u32::try_from(prepared.tasks.len()).unwrap_or(u32::MAX);
    let manifest = Manifest {
        schema: RUN_SCHEMA,
        timecell_version: settings.version.clone(),
        status: Status::Running,
        started: utc_now(),
        finished: None,
        trials_planned: plan.rounds.saturating_mul(tasks),
        trials_done: 0,
        requirements: prepared.requirements.clone(),
        not_measured: prepared.not_measured.clone(),
        resumed: Vec::new(),
        failure: None,
    };
    let mut record = SeriesRecord {
        schema: SERIES_SCHEMA,
        scenario: plan.scenario.to_owned(),
        question: plan.question.to_owned(),
        conditions: prepared.conditions.clone(),
        rounds_planned: plan.rounds,
        baseline_subject: prepared.baseline.clone(),
        series: Vec::new(),
        not_measured: prepared.not_measured.clone(),
    };
    // In the order of the plan, whoever comes first in the first round.
    for task in &prepared.tasks {
        record.of(&task.subject, &task.part, None, Quantity::Ns);
    }
    let run = Run::create_series(&settings.out, &stamp(), &record, &provenance, &manifest)?;
    Ok((run, manifest, record))
}

/// A run under way.
struct Rounds<'a> {
    run: &'a Run,
    tasks: &'a [super::Task],
    interrupt: &'a Interrupt,
    manifest: &'a mut Manifest,
    record: &'a mut SeriesRecord,
    began: Instant,
    expected_ns: i64,
}

impl Rounds<'_> {
    fn all(
        &mut self,
        mut bench: Box<dyn Bench>,
        rounds: u32,
        progress: &mut dyn Progress,
    ) -> Result<(), BenchError> {
        let mut written = Instant::now();
        let mut told: Option<Instant> = None;
        let mut number = 0;
        for round in 1..=rounds {
            for turn in 0..self.tasks.len() {
                // Each begins in turn: what stands before a task in the round has an effect on it.
                let at = (turn + round as usize - 1) % self.tasks.len();
                number += 1;
                let task = &self.tasks[at];
                let name = format!("{}, {}", task.subject, task.part);
                // A measurement may take a millisecond; nobody reads that fast.
                if told.is_none_or(|told| told.elapsed() > TOLD_EVERY) {
                    progress.trial(number, round, &name, self.left_ns(number - 1));
                    told = Some(Instant::now());
                }
                let readings = bench.measure(&Turn {
                    task: at,
                    number,
                    interrupt: self.interrupt,
                });
                if self.interrupt.came() {
                    return Err(BenchError::Interrupted);
                }
                self.keep(at, round, number, readings, progress);
                if written.elapsed() > WRITTEN_EVERY {
                    self.run.write_series(self.record)?;
                    self.run.write_manifest(self.manifest)?;
                    written = Instant::now();
                }
            }
        }
        Ok(())
    }

    fn keep(
        &mut self,
        at: usize,
        round: u32,
        order: u32,
        readings: Result<Vec<super::Reading>, String>,
        progress: &mut dyn Progress,
    ) {
        let task = &self.tasks[at];
        self.manifest.trials_done += 1;
        match readings {
            Ok(readings) => {
                for reading in readings {
                    let of = reading.of.as_deref();
                    let series = self
                        .record
                        .of(&task.subject, &reading.part, of, reading.unit);
                    series.unit = reading.unit;
                    series.values.push(Value {
                        round,
                        order,
                        value: reading.value,
                    });
                }
            }
            Err(why) => {
                progress.note(&format!(
                    "{}, {}, round {round}: {why}",
                    task.subject, task.part
                ));
                let series = self
                    .record
                    .of(&task.subject, &task.part, None, Quantity::Ns);
                series.failures.push(Failure { round, order, why });
            }
        }
    }

    /// Expected at first, extrapolated from what was seen as the run goes on.
    fn left_ns(&self, done: u32) -> i64 {
        if done == 0 {
            return self.expected_ns;
        }
        let seen = i64::try_from(self.began.elapsed().as_nanos()).unwrap_or(i64::MAX);
        let total = self.manifest.trials_planned;
        seen / i64::from(done) * i64::from(total.saturating_sub(done))
    }
}
