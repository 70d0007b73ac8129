//! The report as one HTML file: no network, no script, nothing beside it. A section is one file with
//! `section(&Page) -> Option<Section>` and one line in [`SECTIONS`].

mod asked;
mod banner;
mod cells;
mod conditions;
mod doctor;
mod figures;
mod found;
mod histograms;
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

pub(crate) use doctor::checks as checks_section;
pub(crate) use lacking::table as absent_table;
pub(crate) use machine::facts;
pub(crate) use page::{document, time_cell};
pub(crate) use tables::region;

use crate::data::Data;
use crate::figure::{self, Figure};
use crate::published::Beside;
use maud::{Markup, html};
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

/// The report of a run as one HTML file, a few hundred kilobytes at most.
///
/// # Errors
/// When a file of the record cannot be read.
pub fn html(run: &Run, summary: &RunSummary) -> Result<String, RecordError> {
    page(run, summary, None)
}

/// The same page with a section on published figures.
///
/// # Errors
/// When a file of the record cannot be read.
pub fn html_beside(
    run: &Run,
    summary: &RunSummary,
    beside: &Beside,
) -> Result<String, RecordError> {
    page(run, summary, Some(beside))
}

fn page(run: &Run, summary: &RunSummary, beside: Option<&Beside>) -> Result<String, RecordError> {
    let data = Data::gather(run, summary)?;
    let figures = figure::draw(&data);
    let page = Page { data, figures };
    let mut sections: Vec<Section> = SECTIONS.iter().filter_map(|make| make(&page)).collect();
    if let Some(beside) = beside {
        // After what was measured here, before how.
        let after = sections
            .iter()
            .position(|section| section.id == "lacking" || section.id == "doctor");
        let at = after.unwrap_or(sections.len());
        sections.insert(at, crate::published::section(beside));
    }
    let title = format!("{} - timecell", summary.experiment);
    let head = html! {
        p.kicker { "timecell report" }
        h1 { (summary.experiment) }
        p.meta {
            "run " code { (summary.run) } ", started " (page.data.manifest.started)
            @if let Some(finished) = &page.data.manifest.finished { ", finished " (finished) }
            ", " (page.data.provenance.one_line())
        }
        (banner::banners(&page))
    };
    Ok(document(&title, &head, &sections))
}
