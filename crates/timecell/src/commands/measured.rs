//! `timecell report FILE...`: draws files of other tools, with timecell's runs beside them.

use std::path::{Path, PathBuf};

use host::given_file;
use model::{InputError, Work};
use record::import::measured::{Measured, Options, import_from};
use record::run::Run;
use record::summary::Metric;
use report::Extras;
use study::Kind;

use crate::cli::Report;
use crate::commands::common::{style, write_page};
use crate::commands::judge::Asked;
use crate::exit::{CommandError, Ended};
use crate::out;

/// Draws the files, after the runs.
pub fn run(options: &Report, runs: &[&PathBuf], files: &[&PathBuf]) -> Result<Ended, CommandError> {
    let asked = Asked::of(&options.judge)?;
    let mut measured = Vec::new();
    for dir in runs {
        measured.push(run_of_ours(&Run::open(dir)?)?);
    }
    for path in files {
        let unit = options.unit.map(Into::into);
        measured.push(file(path, options, Options { unit })?);
    }
    let found = asked.judge_readings(&study::measured_readings(&measured));
    if options.json {
        let summary = study::measured_summary(&measured);
        let mut json = serde_json::to_value(&summary).unwrap_or_default();
        found.add_to(&mut json);
        out::print(&serde_json::to_string_pretty(&json).unwrap_or_default());
        return Ok(found.ended(Ended::Fine));
    }
    let page = options
        .output
        .clone()
        .unwrap_or_else(|| PathBuf::from("measured.html"));
    let extras = Extras {
        judged: found.judged.as_ref(),
        ..Extras::default()
    };
    let written = write_page(
        &page,
        &report::measured_html(&measured, extras),
        options.force,
    )?;
    out::print(&report::measured_table(&measured, style()));
    out::print_some(&found.tables());
    out::print(&written);
    Ok(found.ended(Ended::Fine))
}

/// A run in the form of a file: wake-up latencies, and execution times if its jobs do work.
fn run_of_ours(run: &Run) -> Result<Measured, CommandError> {
    if run.has_no_experiment() {
        let what = format!("{} has no distribution of jobs", Kind::of(run)?.name());
        return Err(InputError::new(run.name(), what, "name a run of periodic jobs").into());
    }
    let metrics: &[Metric] = match run.experiment()?.workload.work {
        Work::Mac { .. } | Work::Program => &[Metric::WakeupLatency, Metric::ExecutionTime],
        Work::Timer => &[Metric::WakeupLatency],
        Work::Endless => &[Metric::StartTime, Metric::ExitTime],
        Work::Busy => &[Metric::ResponseTime, Metric::WakeupLatency],
    };
    Ok(record::export::measured(run, metrics)?)
}

/// Whether a path stands for standard input.
pub fn is_input(path: &Path) -> bool {
    path == Path::new("-")
}

/// A file, or standard input.
fn file(path: &Path, report: &Report, options: Options) -> Result<Measured, InputError> {
    if is_input(path) {
        let input = std::io::stdin().lock();
        return import_from(report.format, "standard input", input, options);
    }
    let name = path.display().to_string();
    let file = given_file::open(path).map_err(|what| InputError::new(&name, what, ""))?;
    import_from(report.format, &name, file, options)
}
