//! Two runs side by side, as one HTML file.

use crate::figure::Figure;
use crate::html::{Section, document, time_cell};
use maud::{Markup, html};
use stats::Verdict;
use study::{Difference, Pair, RunComparison};
use text::units::Scale;
use text::words::{clean, times, verdict};

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

/// A page on two runs: what is compared, and lists of what differs, each with its name.
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
            list => differences(list),
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

/// What is compared with run `first` as a section of a page.
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
                @if !list.is_empty() { p { "What differs in the " (what) ":" } (differences(list)) }
            }
        },
    }
}

fn warnings(cautions: &[String]) -> Markup {
    html! {
        @for caution in cautions { p.banner role="note" { strong { "Caution:" } " " (clean(caution)) } }
    }
}

/// What only one of the two has.
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
        (only([&comparison.only_first, &comparison.only_second]))
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
    let class = match text::words::judged(ratio, rounds) {
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
