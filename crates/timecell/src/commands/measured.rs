//! `timecell report FILE...`: files of other tools, with runs of ours beside them.

use std::io::Read;
use std::path::{Path, PathBuf};

use model::{InputError, Work};
use record::import::measured::{MOST_BYTES, Measured, Options, import};
use record::run::{Run, write_atomically};
use record::summary::Metric;

use crate::cli::Report;
use crate::commands::report::style;
use crate::exit::{CommandError, Ended};
use crate::out;

/// Draws the files, after the runs.
pub fn run(options: &Report, runs: &[&PathBuf], files: &[&PathBuf]) -> Result<Ended, CommandError> {
    let mut measured = Vec::new();
    for dir in runs {
        measured.push(run_of_ours(&Run::open(dir)?)?);
    }
    for path in files {
        let name = path.display().to_string();
        let bytes = read(path).map_err(|what| InputError::new(&name, what, ""))?;
        let unit = options.unit.map(Into::into);
        measured.push(import(options.format, &name, &bytes, Options { unit })?);
    }
    if options.json {
        let summary = report::measured_summary(&measured);
        out::print(&serde_json::to_string_pretty(&summary).unwrap_or_default());
        return Ok(Ended::Fine);
    }
    let page = options
        .output
        .clone()
        .unwrap_or_else(|| PathBuf::from("measured.html"));
    write_atomically(&page, report::measured_html(&measured).as_bytes())?;
    out::print(&report::measured_table(&measured, style()));
    out::print(&format!("report  {}", page.display()));
    Ok(Ended::Fine)
}

/// A run as if it were a file: wake-up latencies, and execution times where its jobs do work.
fn run_of_ours(run: &Run) -> Result<Measured, CommandError> {
    if run.has_no_experiment() {
        let what = "a run of single measurements has no distribution of jobs";
        return Err(InputError::new(run.name(), what, "name a run of periodic jobs").into());
    }
    let metrics: &[Metric] = match run.experiment()?.workload.work {
        Work::Mac { .. } => &[Metric::WakeupLatency, Metric::ExecutionTime],
        Work::Timer => &[Metric::WakeupLatency],
        Work::Busy => &[Metric::ResponseTime, Metric::WakeupLatency],
    };
    Ok(record::export::measured(run, metrics)?)
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    let read = file.take(MOST_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|error| error.to_string())?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err("the file is larger than 1 GB".to_owned());
    }
    Ok(bytes)
}
