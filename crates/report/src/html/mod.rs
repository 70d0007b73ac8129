//! The report as one HTML file: no network, no script, nothing beside it. A section is one file with
//! `section(&Page) -> Option<Section>` and one line in [`SECTIONS`].

mod asked;
mod banner;
mod beside;
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
mod section;
mod selves;
mod tables;
mod tail;
mod tasks;

pub(crate) use asked::First;
pub(crate) use banner::{ended, failures, gaps, remarks};
pub(crate) use doctor::checks as checks_section;
pub(crate) use figures::{drawn, pictures};
pub(crate) use found::{found, list};
pub(crate) use frame::{Own, finished, framed};
pub(crate) use lacking::{absences, missing, not_measured};
pub(crate) use machine::provenance_section;
pub use page::is_page;
pub(crate) use page::{document, run_head};
pub(crate) use rerun::{again, with_experiment};
pub use section::Extras;
pub(crate) use section::{Page, Section};

use crate::figure;
use study::JobsStudy;

/// Every section, in the order of the page.
const SECTIONS: [fn(&Page) -> Option<Section>; 19] = [
    asked::section,
    cells::section,
    found::section,
    tasks::section,
    conditions::section,
    cells::spread,
    beside::section,
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

/// The report of a run as one HTML file, a few hundred kilobytes at most.
pub fn html(study: &JobsStudy) -> String {
    html_with(study, Extras::default())
}

/// The same page with the sections of `extras`.
pub fn html_with(study: &JobsStudy, extras: Extras) -> String {
    let page = Page {
        data: study,
        figures: figure::draw(study),
    };
    let sections = SECTIONS.iter().filter_map(|make| make(&page)).collect();
    let head = run_head(
        &study.experiment,
        &study.run,
        &study.manifest,
        &study.provenance,
        &banner::banners(&page),
    );
    finished(&study.experiment, &head, sections, extras)
}
