//! The frame that the pages of all kinds of runs stand in: how the run ended, verdicts, the comparison with a baseline, published figures,
//! checks and provenance. A kind adds its own sections.

use maud::{Markup, html};
use record::RecordError;
use record::run::Run;

use super::lacking::Lacks;
use super::section::{Extras, Section};
use super::{
    checks_section, document, ended, failures, gaps, missing, provenance_section, remarks, run_head,
};

/// The contents of a page that depend on the kind of run.
pub(crate) struct Own<'a> {
    /// The name of the experiment: the page's heading.
    pub name: &'a str,
    /// The run's name.
    pub run: &'a str,
    /// The name of a part of the run, such as `trial`.
    pub of: &'static str,
    /// The name of a thing that is measured, such as `budget`.
    pub what: &'static str,
    /// Failures, absent measurements, and unmet requirements.
    pub lacks: Lacks<'a>,
    /// Further content of the section on missing things.
    pub more: Markup,
    /// How to repeat it.
    pub again: Section,
    /// Further warnings that stand before any number.
    pub banners: Markup,
    /// Its own sections, in order.
    pub sections: Vec<Section>,
}

/// The whole page of a run.
///
/// # Errors
/// When a file of the record cannot be read.
pub(crate) fn framed(run: &Run, own: Own, extras: Extras) -> Result<String, RecordError> {
    let manifest = run.manifest()?;
    let provenance = run.provenance()?;
    let mut sections = own.sections;
    sections.push(missing(own.what, own.lacks, &own.more));
    sections.extend(checks_section(&provenance));
    sections.push(provenance_section(&provenance));
    sections.push(own.again);
    let banners = html! {
        (ended(&manifest, own.of, true))
        (gaps(&manifest))
        (remarks(&manifest))
        (own.banners)
        (failures(own.lacks.0))
    };
    let head = run_head(own.name, own.run, &manifest, &provenance, &banners);
    Ok(finished(own.name, &head, sections, extras))
}

/// The page of these sections, with those of `extras` among them.
pub(crate) fn finished(
    name: &str,
    head: &Markup,
    mut sections: Vec<Section>,
    extras: Extras,
) -> String {
    let place = |sections: &[Section], ids: &[&str]| {
        sections
            .iter()
            .position(|section| ids.contains(&section.id))
    };
    // Right after the findings.
    let found = place(&sections, &["found", "values", "files"]);
    let found = found.or(place(&sections, &["asked"]));
    let found = found.map_or(0, |found| found + 1);
    let judged = extras.judged.and_then(crate::judge::section);
    let compared = extras.compared.map(crate::compare::section);
    sections.splice(found..found, judged.into_iter().chain(compared));
    if let Some(beside) = extras.beside {
        // After our results, before the methods.
        let after = place(&sections, &["lacking", "doctor"]).unwrap_or(sections.len());
        sections.insert(after, crate::published::section(beside));
    }
    document(&format!("{name} - timecell"), head, &sections)
}
