//! Two runs side by side, as one HTML file.

use super::text;
use crate::figure::Figure;
use crate::grid::Table;
use crate::html::{Section, document};
use ::text::words::clean;
use maud::{Markup, html};
use study::{Difference, RunComparison};

/// The comparison as one HTML file, under the same promises as [`crate::html()`].
pub fn compare_html(comparison: &RunComparison) -> String {
    let cells = Section {
        id: "cells",
        heading: format!("Cells in both runs: {}", comparison.metric.title()),
        body: html! { (cells(comparison)) (picture(comparison)) },
    };
    let runs = [&comparison.first.run, &comparison.second.run];
    let differ = [
        ("machine", comparison.machine.as_slice()),
        ("experiment", &comparison.experiment),
    ];
    whole(runs, &comparison.cautions, cells, differ)
}

/// A page on two runs: the comparison, and lists of differences, each with its name.
pub(super) fn whole(
    runs: [&String; 2],
    cautions: &[String],
    compared: Section,
    differ: [(&'static str, &[Difference]); 2],
) -> String {
    let [first, second] = runs.map(|run| clean(run));
    let head = html! {
        p.kicker { "timecell report, two runs" }
        h1 { (first) " and " (second) }
        (warnings(cautions))
    };
    let of = |(id, list): (&'static str, &[Difference])| Section {
        id,
        heading: format!("What differs in the {id}"),
        body: match list {
            [] if id == "machine" => html! { p { "Nothing that was recorded." } },
            [] => html! { p { "Nothing." } },
            list => html! { (differences(id, list)) },
        },
    };
    let sections: Vec<Section> = std::iter::once(compared).chain(differ.map(of)).collect();
    document("Two runs - timecell", &head, &sections)
}

/// The comparison as a section of the second run's page.
pub(super) fn section(comparison: &RunComparison) -> Section {
    let body = html! {
        (comparison_of(&comparison.first.run)) "; the metric is " (comparison.metric.title()) "."
    };
    let differ = [
        ("machine", comparison.machine.as_slice()),
        ("experiment", &comparison.experiment),
    ];
    within(
        &comparison.first.run,
        &comparison.cautions,
        &html! {
            p.quiet { (body) }
            (cells(comparison))
            (picture(comparison))
        },
        differ,
    )
}

/// Which of the two is which.
pub(super) fn comparison_of(first: &str) -> String {
    format!("The first is run {}, the second is this one", clean(first))
}

/// The comparison with run `first` as a section of a page.
pub(super) fn within(
    first: &str,
    cautions: &[String],
    compared: &Markup,
    differ: [(&'static str, &[Difference]); 2],
) -> Section {
    Section {
        id: "baseline",
        heading: format!("Against run {}", clean(first)),
        body: html! {
            (warnings(cautions))
            (compared)
            @for (what, list) in differ {
                (differences(what, list))
            }
        },
    }
}

fn warnings(cautions: &[String]) -> Markup {
    html! {
        @for caution in cautions { p.banner role="note" { strong { "Caution:" } " " (clean(caution)) } }
    }
}

/// Labels in one run only.
pub(super) fn only(only: [&[String]; 2]) -> Markup {
    html! {
        @for (place, only) in ["first", "second"].into_iter().zip(only) {
            @if !only.is_empty() { p { "Only in the " (place) " run: " (clean(&only.join(", "))) "." } }
        }
    }
}

/// The pictures of the comparison as SVG files: file name and content, readable by themselves. Empty if no cell of both runs can be
/// compared.
pub fn compare_figures(comparison: &RunComparison) -> Vec<(String, String)> {
    let note = format!(
        "timecell runs {} and {}",
        comparison.first.run, comparison.second.run
    );
    crate::figure::documents(drawn(comparison), &note)
}

/// The intervals of all ratios; nothing where there is none.
fn picture(comparison: &RunComparison) -> Markup {
    html! {
        @if let Some(figure) = drawn(comparison) {
            figure { (crate::figure::inline(&figure)) figcaption { (figure.caption) } }
        }
    }
}

fn drawn(comparison: &RunComparison) -> Option<Figure> {
    let rows: Vec<(String, &stats::Comparison)> = comparison
        .pairs
        .iter()
        .filter_map(|pair| {
            let label = clean(&pair.label);
            let name = match pair.real_time {
                true => label,
                false => format!("{label} (not rt)"),
            };
            Some((name, pair.comparison.as_ref()?))
        })
        .collect();
    crate::figure::ratios(&rows, "the first run", "ratios-of-runs")
}

fn cells(comparison: &RunComparison) -> Markup {
    let table = text::table(&comparison.pairs);
    html! {
        @if table.is_empty() { p { "No cell is in both runs." } } @else {
            p.quiet { "Ratios are of the second run to the first, with 95 % intervals over rounds. " (super::RATIO_OF_ROUNDS) "." }
            (table)
        }
        (only([&comparison.only_first, &comparison.only_second]))
    }
}

fn differences<'d>(what: &str, list: &'d [Difference]) -> Table<&'d Difference> {
    Table::new(format!("What differs in the {what}"), list)
        .stacked()
        .head("what", |row| row.what.as_str())
        .text("first", |row| row.first.as_str())
        .text("second", |row| row.second.as_str())
}
