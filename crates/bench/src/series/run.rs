//! Runs every task in turn, round after round, from plan to record.

use std::time::{Duration, Instant};

use record::plan::PlanRecord;
use record::series::{Failure, Quantity, SeriesRecord};
use record::{Document, Kind, series};
use serde_json::Value;

use super::bench::{Bench, Reading, SeriesPlan, Task, Turn};
use super::footprint::NO_CLASS;
use crate::BenchError;
use crate::session::{
    Finished, Grows, Opening, Progress, Settings, Study, TimeLeft, conduct, in_turn, nothing_of,
};

/// How often the record is written while the run goes on, at most: a power cut loses no more than this.
const WRITTEN_EVERY: Duration = Duration::from_secs(10);

/// How often progress is reported, at most.
const TOLD_EVERY: Duration = Duration::from_millis(1500);

impl Grows for SeriesRecord {
    const GROWING: &'static [&'static str] = &["series"];

    fn last_trial(&self) -> u32 {
        let values = self.series.iter().flat_map(|series| &series.values);
        let failures = self.series.iter().flat_map(|series| &series.failures);
        let orders = (values.map(|value| value.order)).chain(failures.map(|one| one.order));
        orders.max().unwrap_or(0)
    }

    fn compared(&self) -> Value {
        let mut all = serde_json::to_value(self).unwrap_or_default();
        for condition in all["conditions"].as_array_mut().into_iter().flatten() {
            let text = condition["text"].as_str();
            if text.is_some_and(|text| text.starts_with(NO_CLASS)) {
                condition["text"] = NO_CLASS.into();
            }
        }
        all
    }
}

/// Runs the plan, or the rest of it where a run is resumed. Returns the run with its record complete, also when some measurements failed.
///
/// Everything made on the way is removed before this returns, on errors and signals too.
///
/// # Errors
/// Why the run ended, [`BenchError::Interrupted`] after a signal, together with the run if it had begun: measurements until then are on
/// record.
pub fn run_series(plan: SeriesPlan, settings: &Settings, progress: &mut dyn Progress) -> Finished {
    let prepared = &plan.prepared;
    if prepared.tasks.is_empty() {
        let why = nothing_of("nothing of this scenario", &prepared.needs.not_measured);
        return Err((None, why));
    }
    let mut record = SeriesRecord {
        schema: SeriesRecord::SCHEMA,
        scenario: plan.scenario.to_owned(),
        question: plan.question.to_owned(),
        conditions: prepared.conditions.clone(),
        rounds_planned: plan.rounds,
        baseline_subject: prepared.baseline.clone(),
        series: Vec::new(),
        not_measured: prepared.needs.not_measured.clone(),
        sweep: prepared.sweep.clone(),
    };
    // In the order of the plan, whichever comes first in the first round.
    for task in &prepared.tasks {
        record.of(&task.subject, &task.part, None, Quantity::Ns);
    }
    let tasks = u32::try_from(prepared.tasks.len()).unwrap_or(u32::MAX);
    let opening = Opening {
        kind: Kind::Series,
        name: plan.scenario,
        trials: plan.rounds.saturating_mul(tasks),
        requirements: &plan.prepared.needs.requirements,
        not_measured: &plan.prepared.needs.not_measured,
        engines: Some(engine::Options::default()),
    };
    let trials = prepared.tasks.iter().map(Task::name).collect();
    let planned = PlanRecord {
        found: prepared.found.clone(),
        ..PlanRecord::new(plan.scenario, &plan.options, trials)
    };
    let expected_ns = plan.expected_ns();
    let (open, tasks) = (plan.prepared.open, &plan.prepared.tasks);
    conduct(
        &opening,
        &planned,
        record,
        settings,
        progress,
        |study| open(&study.session.run),
        |bench, study| {
            study.left = TimeLeft::new(expected_ns);
            rounds(study, bench.as_mut(), tasks, plan.rounds)
        },
    )
}

/// A measurement may take a millisecond: not every one is reported, and they are not written one by one.
fn rounds(
    study: &mut Study<'_, SeriesRecord>,
    bench: &mut dyn Bench,
    tasks: &[Task],
    rounds: u32,
) -> Result<(), BenchError> {
    let mut written = Instant::now();
    let mut told: Option<Instant> = None;
    for ((round, at), number) in in_turn(rounds, tasks.len()).zip(1..) {
        let task = &tasks[at];
        if study.is_done(number, task.guess_ns) {
            continue;
        }
        if told.is_none_or(|told| told.elapsed() > TOLD_EVERY) {
            (study.progress).trial(number, round, &task.name(), study.left.ns());
            told = Some(Instant::now());
        }
        let mut remarks = Vec::new();
        let readings = bench.measure(&mut Turn {
            task: at,
            number,
            interrupt: &study.session.interrupt,
            remarks: &mut remarks,
        });
        for remark in remarks {
            study.session.remark(remark, study.progress);
        }
        study.session.unless_interrupted()?;
        if let Err(why) = &readings {
            let what = format!("{}, {}, round {round}", task.subject, task.part);
            study.progress.failed(&what, why);
        }
        keep(&mut study.record, task, (round, number), readings);
        study.session.manifest.trials_done += 1;
        study.left.past(task.guess_ns);
        if written.elapsed() > WRITTEN_EVERY {
            study.write()?;
            written = Instant::now();
        }
    }
    Ok(())
}

fn keep(
    record: &mut SeriesRecord,
    task: &Task,
    (round, order): (u32, u32),
    readings: Result<Vec<Reading>, String>,
) {
    match readings {
        Ok(readings) => {
            for reading in readings {
                let of = reading.of.as_deref();
                let of_part = record.of(&task.subject, &reading.part, of, reading.unit);
                of_part.unit = reading.unit;
                of_part.values.push(series::Value {
                    round,
                    order,
                    value: reading.value,
                });
            }
        }
        Err(why) => {
            let series = record.of(&task.subject, &task.part, None, Quantity::Ns);
            series.failures.push(Failure { round, order, why });
        }
    }
}
