//! The report of a run of single measurements as one HTML file.

use super::{answer, draw, table, wholes};
use crate::figure::Figure;
use crate::html::{Extras, First, Own, Section, again, drawn, framed, pictures};
use maud::html;
use record::RecordError;
use record::run::Run;
use record::series::{SeriesRecord, SeriesSummary};
use text::words::{clean, sentence};

/// The report as one HTML file, with the sections of `extras`.
///
/// # Errors
/// When a file of the record cannot be read.
pub fn series_html(
    run: &Run,
    summary: &SeriesSummary,
    extras: Extras,
) -> Result<String, RecordError> {
    let record: SeriesRecord = run.read()?;
    let figures = draw(&record, summary);
    let (first, further) = figures.split_at(figures.len().min(1));
    let mut sections = vec![question(&record, summary, first)];
    sections.extend(tables(summary));
    sections.extend(pictures("Figures", further));
    sections.extend(made_of(summary));
    let own = Own {
        name: &summary.scenario,
        run: &summary.run,
        of: "measurement",
        what: "subject",
        lacks: (&summary.failures, &summary.not_measured, &summary.unmet),
        more: html! {},
        again: again(&summary.run, &summary.scenario, Some("--csv")),
        banners: html! {},
        sections,
    };
    framed(run, own, extras)
}

fn question(record: &SeriesRecord, summary: &SeriesSummary, picture: &[Figure]) -> Section {
    let rounds = record.rounds_planned;
    let mut facts = vec![
        ("rounds", format!("{rounds}, every subject once per round")),
        ("subjects", record.subjects().join(", ")),
    ];
    facts.extend(
        summary
            .baseline_subject
            .iter()
            .map(|name| ("baseline", name.clone())),
    );
    let first = First {
        question: &record.question,
        answer: answer(summary),
        picture: drawn(picture),
    };
    first.section(facts, &record.conditions)
}

fn tables(summary: &SeriesSummary) -> Option<Section> {
    let parts = wholes(summary);
    (!parts.is_empty()).then(|| Section {
        id: "values",
        heading: "What was found".to_owned(),
        body: html! {
            p.quiet {
                "Below each median stands its 95 % interval; \"needs n\" is the number of values that it takes. A percentile that no \
                 subject has enough values for has no column. The worst value is what was seen, a lower bound of the worst case."
            }
            @for note in &summary.notes { p { (sentence(&clean(note))) } }
            @for part in parts { (table::values(summary, part)) }
        },
    })
}

/// The shares of every part that has some.
fn made_of(summary: &SeriesSummary) -> Option<Section> {
    let parts = wholes(summary);
    let has_shares = |part: &&str| (summary.figures.iter()).any(|f| f.of.as_deref() == Some(*part));
    parts.iter().any(has_shares).then(|| Section {
        id: "shares",
        heading: "What it is made of".to_owned(),
        body: html! {
            p.quiet {
                "Medians over rounds, which need not add up to that of the whole, with the means, which do; means alone where some share has \
                 too few values for a median. The worst value is what was seen."
            }
            @for part in parts { (table::shares_of(summary, part)) }
        },
    })
}
