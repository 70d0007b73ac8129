//! A studied run of any kind: its answers to commands. Each kind answers from its own summary; judging, comparing and steps after a
//! measurement are written once, on top of these answers.

use record::RecordError;
use record::isolation::IsolationSummary;
use record::run::Run;
use record::scale::ScaleSummary;
use record::series::SeriesSummary;
use record::supply::SupplySummary;
use serde::Serialize;

use crate::compare::{Compared, compare_readings, compare_with};
use crate::jobs::JobsStudy;
use crate::judge::{self, Judged, Ratios, Readings, Threshold};
use crate::kind::Kind;
use crate::published::Beside;
use crate::{isolation, scale, series, supply};

/// The summary of a run, and its uses.
pub trait Studied {
    /// The kind of the run.
    fn kind(&self) -> Kind;

    /// The summary for machines, as `summary.json` holds it.
    fn json(&self) -> serde_json::Value;

    /// Keeps the summary in the run.
    ///
    /// # Errors
    /// When it cannot be written.
    fn keep(&self, run: &Run) -> Result<(), RecordError>;

    /// Published figures beside its own; of kinds of which some are published.
    ///
    /// # Errors
    /// When a file of the record cannot be read.
    fn beside(&self, _run: &Run) -> Result<Option<Beside>, RecordError> {
        Ok(None)
    }

    /// Its figures that can be judged, without ratios to a baseline.
    fn readings(&self) -> Readings;

    /// Judges it; ratios of jobs are to another run's where one is given.
    ///
    /// # Errors
    /// When a file of the record cannot be read.
    fn judged(
        &self,
        _run: &Run,
        thresholds: &[Threshold],
        _ratios: Option<Ratios>,
    ) -> Result<Judged, RecordError> {
        Ok(judge::judge(&self.readings(), thresholds))
    }

    /// Compares another run with it.
    ///
    /// # Errors
    /// When a file of either record cannot be read.
    fn compared(&self, run: &Run, first: &Run) -> Result<Compared, RecordError> {
        compare_readings(first, run, &self.readings()).map(Compared::Readings)
    }

    /// Whether something failed, so that the measurement counts as failed.
    fn has_failed(&self) -> bool;
}

/// Studies a run of any kind.
///
/// # Errors
/// When a file of the record cannot be read, is cut short, malformed, or of a newer schema.
pub fn studied(run: &Run) -> Result<Box<dyn Studied>, RecordError> {
    Ok(match Kind::of(run)? {
        Kind::Jobs | Kind::Files => Box::new(crate::study(run)?),
        Kind::Scale => Box::new(scale::scale_study(run)?),
        Kind::Series => Box::new(series::series_study(run)?),
        Kind::Supply => Box::new(supply::supply_study(run)?),
        Kind::Isolation => Box::new(isolation::isolation_study(run)?),
    })
}

fn json_of(summary: &impl Serialize) -> serde_json::Value {
    serde_json::to_value(summary).unwrap_or_default()
}

impl Studied for JobsStudy {
    fn kind(&self) -> Kind {
        Kind::Jobs
    }

    fn json(&self) -> serde_json::Value {
        json_of(&self.summary)
    }

    fn keep(&self, run: &Run) -> Result<(), RecordError> {
        run.write_summary(&self.summary)
    }

    fn compared(&self, run: &Run, first: &Run) -> Result<Compared, RecordError> {
        compare_with(first, run, self).map(|jobs| Compared::Jobs(Box::new(jobs)))
    }

    fn beside(&self, run: &Run) -> Result<Option<Beside>, RecordError> {
        crate::published::beside(run, self).map(Some)
    }

    fn readings(&self) -> Readings {
        judge::jobs_readings(self, &Ratios::default())
    }

    fn judged(
        &self,
        run: &Run,
        thresholds: &[Threshold],
        ratios: Option<Ratios>,
    ) -> Result<Judged, RecordError> {
        let ratios = match ratios {
            Some(ratios) => ratios,
            None => judge::within(run, self, thresholds)?,
        };
        judge::judge_run(run, self, thresholds, &ratios)
    }

    fn has_failed(&self) -> bool {
        !self.failures.is_empty() || self.cells.iter().any(|cell| cell.unexplained > 0)
    }
}

impl Studied for ScaleSummary {
    fn kind(&self) -> Kind {
        Kind::Scale
    }

    fn json(&self) -> serde_json::Value {
        json_of(self)
    }

    fn keep(&self, run: &Run) -> Result<(), RecordError> {
        run.write_summary(self)
    }

    fn beside(&self, run: &Run) -> Result<Option<Beside>, RecordError> {
        scale::scale_beside(run, self).map(Some)
    }

    fn readings(&self) -> Readings {
        scale::scale_readings(self)
    }

    /// A failed cell is a fact in a study that goes on. The study has failed if a number of cells failed or was cut off, if nothing
    /// succeeded, or if jobs are lost without an explanation.
    fn has_failed(&self) -> bool {
        let mut points = self.points.iter();
        let nothing = self.engines.iter().all(|engine| engine.largest.is_none());
        nothing
            || points.any(|point| {
                point.unexplained > 0 || point.failure.is_some() || !point.cut_off.is_empty()
            })
    }
}

impl Studied for SeriesSummary {
    fn kind(&self) -> Kind {
        Kind::Series
    }

    fn json(&self) -> serde_json::Value {
        json_of(self)
    }

    fn keep(&self, run: &Run) -> Result<(), RecordError> {
        run.write_summary(self)
    }

    fn beside(&self, run: &Run) -> Result<Option<Beside>, RecordError> {
        crate::published::series_beside(run, self).map(Some)
    }

    fn readings(&self) -> Readings {
        series::series_readings(self)
    }

    fn has_failed(&self) -> bool {
        !self.failures.is_empty()
    }
}

impl Studied for SupplySummary {
    fn kind(&self) -> Kind {
        Kind::Supply
    }

    fn json(&self) -> serde_json::Value {
        json_of(self)
    }

    fn keep(&self, run: &Run) -> Result<(), RecordError> {
        run.write_summary(self)
    }

    fn readings(&self) -> Readings {
        supply::supply_readings(self)
    }

    fn has_failed(&self) -> bool {
        !self.failures.is_empty()
    }
}

impl Studied for IsolationSummary {
    fn kind(&self) -> Kind {
        Kind::Isolation
    }

    fn json(&self) -> serde_json::Value {
        json_of(self)
    }

    fn keep(&self, run: &Run) -> Result<(), RecordError> {
        run.write_summary(self)
    }

    fn readings(&self) -> Readings {
        isolation::isolation_readings(self)
    }

    fn has_failed(&self) -> bool {
        !self.failures.is_empty()
    }
}
