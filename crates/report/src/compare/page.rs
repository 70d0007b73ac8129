//! Two runs side by side, as one HTML file.

use super::{Difference, Pair, RunComparison};
use crate::figure::Figure;
use crate::html::{Section, document, time_cell};
use crate::units::Scale;
use crate::words::{clean, times, verdict};
use maud::{Markup, html};
use stats::Verdict;

/// The comparison as one HTML file, under the same promises as [`crate::html()`].
pub fn compare_html(comparison: &RunComparison) -> String {
    let head = html! {
        p.kicker { "timecell report, two runs" }
        h1 { (clean(&comparison.first.run)) " and " (clean(&comparison.second.run)) }
        @for caution in &comparison.cautions { p.banner role="note" { strong { "Caution:" } " " (clean(caution)) } }
    };
    let mut sections = vec![Section {
        id: "cells",
        heading: format!("Cells that both have: {}", comparison.metric.title()),
        body: html! { (cells(comparison)) (picture(comparison)) },
    }];
    for (id, heading, none, list) in [
        (
            "machine",
            "What differs in the machine",
            "Nothing that was recorded.",
            &comparison.machine,
        ),
        (
            "experiment",
            "What differs in the experiment",
            "Nothing.",
            &comparison.experiment,
        ),
    ] {
        let body = if list.is_empty() {
            html! { p { (none) } }
        } else {
            differences(list)
        };
        sections.push(Section {
            id,
            heading: heading.to_owned(),
            body,
        });
    }
    document("Two runs - timecell", &head, &sections)
}

/// The comparison as a section of the second run's page.
pub(crate) fn section(comparison: &RunComparison) -> Section {
    Section {
        id: "baseline",
        heading: format!("Against run {}", clean(&comparison.first.run)),
        body: html! {
            @for caution in &comparison.cautions { p.banner role="note" { strong { "Caution:" } " " (clean(caution)) } }
            p.quiet {
                "First is run " (clean(&comparison.first.run)) ", second is this one; compared is the "
                (comparison.metric.title()) "."
            }
            (cells(comparison))
            (picture(comparison))
            @for (what, list) in [("machine", &comparison.machine), ("experiment", &comparison.experiment)] {
                @if !list.is_empty() { p { "What differs in the " (what) ":" } (differences(list)) }
            }
        },
    }
}

/// The figures of the comparison as SVG files of their own: file name and content, readable when opened alone. None
/// where no cell of both runs can be compared.
pub fn compare_figures(comparison: &RunComparison) -> Vec<(String, String)> {
    let note = format!(
        "timecell runs {} and {}",
        comparison.first.run, comparison.second.run
    );
    let figure = drawn(comparison).into_iter();
    figure
        .map(|figure| {
            let name = format!("{}.svg", figure.name);
            (name, crate::figure::alone(&figure, &note))
        })
        .collect()
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
    let pairs = &comparison.pairs;
    let scale = Scale::of(pairs.iter().flat_map(|p| p.medians_ns).map(|ns| ns as f64));
    html! {
        @if pairs.is_empty() { p { "No cell is in both runs." } } @else {
            div.scroll {
                table {
                    caption { "Ratios are of the second run to the first, with 95% intervals over rounds. " (super::RATIO_OF_ROUNDS) "." }
                    thead { tr {
                        th scope="col" { "cell" }
                        th.num scope="col" { "first median" } th.num scope="col" { "second median" }
                        th scope="col" { "ratio of medians" } th scope="col" { "ratio of p99" }
                    } }
                    tbody { @for pair in pairs { (row(pair, scale)) } }
                }
            }
        }
        @for (place, only) in [("first", &comparison.only_first), ("second", &comparison.only_second)] {
            @if !only.is_empty() { p { "Only in the " (place) " run: " (clean(&only.join(", "))) "." } }
        }
    }
}

fn row(pair: &Pair, scale: Scale) -> Markup {
    html! {
        tr {
            th scope="row" {
                (clean(&pair.label))
                @if !pair.real_time { br; span.caution { "not real-time" } }
            }
            @for ns in pair.medians_ns { (time_cell(&scale.show(ns as f64), "")) }
            @match &pair.comparison {
                Some(c) => {
                    (ratio(Some(&c.ratio_of_medians), c.rounds))
                    (ratio(c.ratio_of_p99.as_ref(), c.rounds))
                }
                None => td colspan="2" { "not comparable: " (clean(pair.problem.as_deref().unwrap_or("no rounds"))) }
            }
        }
    }
}

fn ratio(ratio: Option<&stats::Ratio>, rounds: u32) -> Markup {
    let Some(ratio) = ratio else {
        return html! { td { span.quiet { "too few samples" } } };
    };
    let class = match crate::words::judged(ratio, rounds) {
        Verdict::Larger => "slower",
        Verdict::Smaller => "faster",
        Verdict::WithinNoise | Verdict::TooWide | Verdict::Undecided => "quiet",
    };
    html! { td.verdict { (times(ratio, rounds)) span class=(class) { (verdict(ratio, rounds)) } } }
}

fn differences(list: &[Difference]) -> Markup {
    html! {
        div.scroll {
            table.stack {
                thead { tr { th scope="col" { "what" } th scope="col" { "first" } th scope="col" { "second" } } }
                tbody {
                    @for difference in list {
                        tr {
                            th scope="row" { (clean(&difference.what)) }
                            td data-label="first" { (clean(&difference.first)) }
                            td data-label="second" { (clean(&difference.second)) }
                        }
                    }
                }
            }
        }
    }
}
