//! The report as one HTML file: no network, no script, nothing beside it. A section is one file with
//! `section(&Page) -> Option<Section>` and one line in [`SECTIONS`].

mod asked;
mod banner;
mod cells;
mod conditions;
mod doctor;
mod figures;
mod found;
mod frame;
mod histograms;
mod in_turns;
mod lacking;
mod limits;
mod loads;
mod machine;
mod others;
mod page;
mod repetitions;
mod rerun;
mod selves;
mod tables;
mod tail;
mod tasks;

pub(crate) use banner::{ended, failures};
pub(crate) use doctor::checks as checks_section;
pub(crate) use figures::pictures;
pub(crate) use frame::{Own, finished, framed};
pub(crate) use lacking::{failure_list, not_measured_table, table as absent_table, unmet_table};
pub(crate) use machine::{facts, provenance_section};
pub(crate) use page::{document, run_head, time_cell};
pub(crate) use tables::{detail, region};

use crate::compare::Compared;
use crate::data::Data;
use crate::figure::{self, Figure};
use crate::judge::Judged;
use crate::published::Beside;
use maud::Markup;
use record::RecordError;
use record::run::Run;
use record::summary::RunSummary;

/// Every section, in the order of the page.
const SECTIONS: [fn(&Page) -> Option<Section>; 17] = [
    asked::section,
    found::section,
    tasks::section,
    conditions::section,
    cells::section,
    loads::section,
    histograms::section,
    repetitions::section,
    figures::section,
    tail::section,
    others::section,
    selves::section,
    lacking::section,
    doctor::section,
    machine::section,
    rerun::section,
    limits::section,
];

/// What sections are made of.
pub(crate) struct Page<'a> {
    pub data: Data<'a>,
    pub figures: Vec<Figure>,
}

/// One section of the page.
pub(crate) struct Section {
    /// Where links within the page point.
    pub id: &'static str,
    pub heading: String,
    pub body: Markup,
}

/// What stands on the page beside what the run itself says.
#[derive(Clone, Copy, Default)]
pub struct Extras<'a> {
    /// Published figures.
    pub beside: Option<&'a Beside>,
    /// Verdicts on thresholds.
    pub judged: Option<&'a Judged>,
    /// The run as the second one, compared with a baseline run.
    pub compared: Option<&'a Compared>,
}

/// The report of a run as one HTML file, a few hundred kilobytes at most.
///
/// # Errors
/// When a file of the record cannot be read.
pub fn html(run: &Run, summary: &RunSummary) -> Result<String, RecordError> {
    html_with(run, summary, Extras::default())
}

/// The same page with whatever sections there are of `extras`.
///
/// # Errors
/// When a file of the record cannot be read.
pub fn html_with(run: &Run, summary: &RunSummary, extras: Extras) -> Result<String, RecordError> {
    let data = Data::gather(run, summary)?;
    let figures = figure::draw(&data);
    let page = Page { data, figures };
    let sections = SECTIONS.iter().filter_map(|make| make(&page)).collect();
    let head = run_head(
        &summary.experiment,
        &summary.run,
        &page.data.manifest,
        &page.data.provenance,
        &banner::banners(&page),
    );
    Ok(finished(&summary.experiment, &head, sections, extras))
}
