//! The tasks of a program beside the one that is compared.

use record::RecordError;
use record::summary::{BesideSummary, Metric};
use record::trial::{CellRecord, beside_id};
use stats::{Sorted, Summary};

use super::cell::label;
use super::source::{Source, cell};

/// The one that is compared, if it has the same name in all cells.
pub(super) fn compared(source: &Source) -> Option<String> {
    let cells = || source.trials.iter().flat_map(|trial| &trial.cells);
    let name = |cell: &CellRecord| Some(cell.reported.first()?.name.clone());
    let first = cells().find_map(name)?;
    (cells().all(|cell| name(cell).as_ref() == Some(&first))).then_some(first)
}

/// The others, in the order of trials, cells and tasks. Reads their samples, those of one task at a time.
pub(super) fn study(source: &Source) -> Result<Vec<BesideSummary>, RecordError> {
    let mut found = Vec::new();
    for trial in &source.plan.trials {
        let records = source.good(&trial.name);
        for id in source.cell_ids(&trial.name) {
            let recorded = records.iter().find_map(|record| cell(record, &id));
            let tasks = recorded.map_or(&[][..], |cell| &cell.reported);
            for (at, task) in tasks.iter().enumerate().skip(1) {
                let mut own = BesideSummary {
                    trial: trial.name.clone(),
                    cell: id.clone(),
                    label: label(trial, &id),
                    task: task.name.clone(),
                    period_ns: task.period_ns,
                    executed: 0,
                    skipped: 0,
                    late: 0,
                    execution: None,
                    response: None,
                };
                let (mut executions, mut responses) = (Vec::new(), Vec::new());
                for record in &records {
                    if let Some(samples) = source.samples(record, &beside_id(&id, at + 1))? {
                        own.skipped += samples.header.skipped;
                        let jobs = samples.samples.iter();
                        executions.extend(jobs.clone().map(|job| job.of(Metric::ExecutionTime)));
                        responses.extend(jobs.map(|job| job.of(Metric::ResponseTime)));
                    }
                }
                own.executed = responses.len() as u64;
                own.late = responses.iter().filter(|ns| **ns > task.period_ns).count() as u64;
                own.execution = Summary::of(&Sorted::new(executions));
                own.response = Summary::of(&Sorted::new(responses));
                found.push(own);
            }
        }
    }
    Ok(found)
}
