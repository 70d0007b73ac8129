//! From the record to the numbers in `summary.json`.
//!
//! Rounds are pooled for each cell of each trial, and compared with the baseline round by round. A trial that failed is counted and named
//! but its samples are not pooled, because its cells did not run under the requested conditions. Nothing is judged against a threshold
//! here.

mod beside;
mod cell;
mod deadlines;
mod drawing;
mod failures;
mod histograms;
mod loads;
mod overloads;
mod pass;
mod points;
mod reserved;
mod skews;
mod source;
mod tails;
mod tasks;
mod turns;
mod unmeasured;
mod until;

pub(crate) use cell::out_of_band;
pub use drawing::{CellData, CpuHistogram, Drawing, Moved, RoundData, Scatter, Stretch};
pub(crate) use histograms::{binned, logs, round_quantiles};
pub(crate) use source::{Source, compare_rounds};
pub use turns::{Standing, foresee};
pub(crate) use unmeasured::study as not_measured;
pub use until::{Known, jobs_until};
pub(crate) use until::{confidence as confidence_of_looks, with_looks};

use std::ops::{Deref, DerefMut};

use host::provenance::Provenance;
use model::{Experiment, Keep};

use record::RecordError;
use record::run::{Manifest, Run};
use record::summary::{CellSummary, Metric, RunSummary, SUMMARY_SCHEMA};

/// A studied run of jobs: its summary, and the data of its pictures.
#[derive(Debug, Clone)]
pub struct JobsStudy {
    /// The summary; a study dereferences to it.
    pub summary: RunSummary,
    /// The plan.
    pub plan: Experiment,
    /// How it went.
    pub manifest: Manifest,
    /// Where and when.
    pub provenance: Provenance,
    /// Data of pictures beyond the summary.
    pub drawing: Drawing,
}

impl JobsStudy {
    /// The summary of a drawn cell.
    pub fn summary_of(&self, cell: &CellData) -> &CellSummary {
        &self.summary.cells[cell.index]
    }
}

impl Deref for JobsStudy {
    type Target = RunSummary;

    fn deref(&self) -> &RunSummary {
        &self.summary
    }
}

impl DerefMut for JobsStudy {
    fn deref_mut(&mut self) -> &mut RunSummary {
        &mut self.summary
    }
}

/// Studies a run. Opens each samples file once and holds the samples of one cell in memory at a time; in addition, of the primary metric
/// those of the baseline, and of all cells if trials took turns or some kept their cpus free.
///
/// # Errors
/// When a file of the record cannot be read, is cut short, malformed, or of a newer schema.
pub fn study(run: &Run) -> Result<JobsStudy, RecordError> {
    let source = Source::open(run)?;
    let manifest = run.manifest()?;
    let plan = &source.plan;
    let primary = metrics(plan.workload.work)[0];
    let read = match plan.keep {
        Keep::Samples => pass::all(&source)?,
        Keep::Histograms { .. } => histograms::study(&source)?,
    };
    let cells = read.cells;
    let measured = || cells.iter().filter(|cell| !cell.metrics.is_empty());
    let summary = RunSummary {
        schema: SUMMARY_SCHEMA,
        run: run.name(),
        experiment: plan.name.clone(),
        baseline: plan.baseline.clone(),
        primary,
        real_time: measured().all(|cell| cell.real_time),
        task: beside::compared(&source),
        beside: beside::study(&source)?,
        loads: loads::study(&source),
        skews: skews::study(&source),
        tails: read.tails,
        not_measured: unmeasured::study(&source, &manifest)?,
        unmet: manifest
            .requirements
            .iter()
            .filter(|requirement| !requirement.met)
            .cloned()
            .collect(),
        failures: failures::study(&source, &cells, manifest.failure.as_deref(), &run.damage()?),
        overloads: overloads::study(&source, &cells)?,
        points: read.points,
        cells,
        // A gap would count.
        lasted_ns: (manifest.resumed.is_empty())
            .then(|| lasted_ns(&source))
            .flatten(),
        resumed: manifest.resumed.clone(),
    };
    Ok(JobsStudy {
        drawing: Drawing::of(&source, &summary, read.drawn, read.counted),
        summary,
        manifest,
        provenance: run.provenance()?,
        plan: source.plan,
    })
}

/// From the first release to the last, plus the time between two releases for the last trial.
fn lasted_ns(source: &Source) -> Option<i64> {
    let trials = source.plan.trials.iter();
    let records = trials.flat_map(|trial| source.records(&trial.name));
    let mut releases: Vec<i64> = records.filter_map(|record| record.go_unix_ns).collect();
    // Trials that took turns were released together.
    releases.sort_unstable();
    releases.dedup();
    let spans = i64::try_from(releases.len().checked_sub(1)?).ok()?;
    let between = releases.last()?.checked_sub(*releases.first()?)?;
    (spans > 0).then(|| between / spans * (spans + 1))
}

/// The metrics of a job of this work, the one that is compared first.
pub fn metrics(work: model::Work) -> &'static [Metric] {
    Metric::of_work(work)
}
