//! Round after round, every task in turn, from plan to record.

use std::time::{Duration, Instant};

use record::series::{Failure, Quantity, SeriesRecord, Value};
use record::{Document, Kind};

use super::bench::{Bench, Reading, SeriesPlan, Task, Turn};
use crate::BenchError;
use crate::session::{
    Finished, Opening, Progress, Settings, Study, TimeLeft, conduct, in_turn, nothing_of,
};

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
    };
    // In the order of the plan, whoever comes first in the first round.
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
    let expected_ns = plan.expected_ns();
    let (open, tasks) = (plan.prepared.open, &plan.prepared.tasks);
    conduct(
        opening,
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

/// A measurement may take a millisecond: neither is all of it told nor each written by itself.
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
        if told.is_none_or(|told| told.elapsed() > TOLD_EVERY) {
            let name = format!("{}, {}", task.subject, task.part);
            (study.progress).trial(number, round, &name, study.left.ns());
            told = Some(Instant::now());
        }
        let readings = bench.measure(&Turn {
            task: at,
            number,
            interrupt: &study.session.interrupt,
        });
        study.session.unless_interrupted()?;
        if let Err(why) = &readings {
            study.progress.note(&format!(
                "{}, {}, round {round}: {why}",
                task.subject, task.part
            ));
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
                let series = record.of(&task.subject, &reading.part, of, reading.unit);
                series.unit = reading.unit;
                series.values.push(Value {
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
