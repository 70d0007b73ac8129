//! A studied run of any kind as it is shown: tables, page and pictures.

use record::RecordError;
use record::isolation::IsolationSummary;
use record::run::{Resumption, Run};
use record::scale::ScaleSummary;
use record::series::SeriesSummary;
use record::supply::SupplySummary;
use study::{JobsStudy, Kind, Studied};
use text::style::Style;
use text::words::{clean, plural, resumed};

use crate::html::Extras;
use crate::{isolation, scale, series, supply};

/// The summary of a run, and how it is shown.
pub trait Drawn: Studied {
    /// The terminal's tables.
    fn table(&self, style: Style) -> String;

    /// Its failures, as sentences.
    fn failures(&mut self) -> &mut Vec<String>;

    /// Leaves out of the tables all failures for reasons that the reader has seen already; returns a sentence that counts them, if any.
    fn without_seen(&mut self, reasons: &[String]) -> Option<String> {
        let failures = self.failures();
        let all = failures.len();
        failures.retain(|failure| !reasons.iter().any(|why| failure.contains(why.as_str())));
        let seen = all - failures.len();
        (seen > 0).then(|| {
            let count = plural(seen as u64, "failure");
            format!("failed: {count} for reasons noted above; the report lists each")
        })
    }

    /// The page, one HTML file.
    ///
    /// # Errors
    /// When a file of the record cannot be read.
    fn page(&self, run: &Run, extras: Extras) -> Result<String, RecordError>;

    /// Its pictures as SVG files: name and content.
    ///
    /// # Errors
    /// When a file of the record cannot be read.
    fn pictures(&self, run: &Run) -> Result<Vec<(String, String)>, RecordError>;
}

/// Studies a run of any kind, to be shown.
///
/// # Errors
/// When a file of the record cannot be read, is cut short, malformed, or of a newer schema.
pub fn studied(run: &Run) -> Result<Box<dyn Drawn>, RecordError> {
    Ok(match Kind::of(run)? {
        Kind::Jobs | Kind::Files => Box::new(study::study(run)?),
        Kind::Scale => Box::new(study::scale_study(run)?),
        Kind::Series => Box::new(study::series_study(run)?),
        Kind::Supply => Box::new(study::supply_study(run)?),
        Kind::Isolation => Box::new(study::isolation_study(run)?),
    })
}

/// A note for each time in which nothing was measured because the run had ended and was resumed, a line each.
pub fn gap_notes(gaps: &[Resumption]) -> String {
    let note = |gap| format!("note: {}", clean(&resumed(gap)));
    gaps.iter().map(note).collect::<Vec<_>>().join("\n")
}

/// A note for each remark on the run that explains results, a line each.
pub fn remark_notes(remarks: &[String]) -> String {
    let note = |remark: &String| format!("note: {}", clean(remark));
    remarks.iter().map(note).collect::<Vec<_>>().join("\n")
}

impl Drawn for JobsStudy {
    fn table(&self, style: Style) -> String {
        crate::table(self, style)
    }

    fn failures(&mut self) -> &mut Vec<String> {
        &mut self.summary.failures
    }

    fn page(&self, _run: &Run, extras: Extras) -> Result<String, RecordError> {
        Ok(crate::html_with(self, extras))
    }

    fn pictures(&self, _run: &Run) -> Result<Vec<(String, String)>, RecordError> {
        Ok(crate::figures(self))
    }
}

impl Drawn for ScaleSummary {
    fn table(&self, style: Style) -> String {
        scale::scale_table(self, style)
    }

    fn failures(&mut self) -> &mut Vec<String> {
        &mut self.failures
    }

    fn page(&self, run: &Run, extras: Extras) -> Result<String, RecordError> {
        scale::scale_html(run, self, extras)
    }

    fn pictures(&self, _run: &Run) -> Result<Vec<(String, String)>, RecordError> {
        Ok(scale::scale_figures(self))
    }
}

impl Drawn for SeriesSummary {
    fn table(&self, style: Style) -> String {
        series::series_table(self, style)
    }

    fn failures(&mut self) -> &mut Vec<String> {
        &mut self.failures
    }

    fn page(&self, run: &Run, extras: Extras) -> Result<String, RecordError> {
        series::series_html(run, self, extras)
    }

    fn pictures(&self, run: &Run) -> Result<Vec<(String, String)>, RecordError> {
        series::series_figures(run, self)
    }
}

impl Drawn for SupplySummary {
    fn table(&self, style: Style) -> String {
        supply::supply_table(self, style)
    }

    fn failures(&mut self) -> &mut Vec<String> {
        &mut self.failures
    }

    fn page(&self, run: &Run, extras: Extras) -> Result<String, RecordError> {
        supply::supply_html(run, self, extras)
    }

    fn pictures(&self, _run: &Run) -> Result<Vec<(String, String)>, RecordError> {
        Ok(supply::supply_figures(self))
    }
}

impl Drawn for IsolationSummary {
    fn table(&self, style: Style) -> String {
        isolation::isolation_table(self, style)
    }

    fn failures(&mut self) -> &mut Vec<String> {
        &mut self.failures
    }

    fn page(&self, run: &Run, extras: Extras) -> Result<String, RecordError> {
        isolation::isolation_html(run, self, extras)
    }

    fn pictures(&self, _run: &Run) -> Result<Vec<(String, String)>, RecordError> {
        Ok(isolation::isolation_figures(self))
    }
}
