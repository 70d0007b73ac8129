//! One metric compared turn by turn, over all jobs and within the states that the machine was in.

use super::tables::{breakable, detail, name, told};
use crate::conclusion::in_it;
use crate::in_turns::{against, compared, p99_needs};
use maud::{Markup, html};
use record::summary::{Metric, RunSummary};
use stats::WithinStates;
use text::words::{capital, clean, fewer_rounds_of_p99};

/// The table of a metric; `None` if no cell took turns. It leaves out ratios to the run's baseline that the main table has.
pub(super) fn table(summary: &RunSummary, metric: Metric) -> Option<Markup> {
    let rows = compared(summary, metric);
    if rows.is_empty() {
        return None;
    }
    let one = against(&rows);
    let states = rows.iter().any(|(_, turns)| turns.within.is_some());
    let ratios = metric != summary.primary || one != Some(summary.baseline.as_str());
    if !ratios && !states {
        return None;
    }
    let title = format!(
        "{} in turns, against {}",
        capital(metric.title()),
        one.map_or_else(|| "its own each".to_owned(), clean)
    );
    Some(detail(
        &title,
        rows.len(),
        html! {
            thead { tr {
                th scope="col" { "cell" }
                @if one.is_none() { th scope="col" { "against" } }
                @if ratios {
                    th scope="col" { "median" br; span.below { "ratio, 95% interval" } }
                    th scope="col" { "p99" br; span.below { "ratio, 95% interval" } }
                }
                @if states {
                    th scope="col" { "in the fast state" br; span.below { "ratio of medians" } }
                    th scope="col" { "in the slow state" br; span.below { "ratio of medians" } }
                    th scope="col" { "jobs in the slow state" br; span.below { "here / there, 95% interval" } }
                }
            } }
            tbody { @for (cell, turns) in &rows {
                @let c = &turns.comparison;
                tr {
                    th scope="row" { (name(cell)) }
                    @if one.is_none() { td { (breakable(&clean(&turns.against))) } }
                    @if ratios {
                        td.verdict { (told(&c.ratio_of_medians, c.rounds)) }
                        td.verdict { @match &c.ratio_of_p99 {
                            Some(p99) => { (told(p99, c.rounds_of_p99)) (fewer_rounds_of_p99(c)) }
                            None => { span.quiet { (p99_needs(turns)) } }
                        } }
                    }
                    @if states { (within(turns.within.as_ref(), c.rounds)) }
                }
            } }
        },
    ))
}

fn within(states: Option<&WithinStates>, rounds: u32) -> Markup {
    html! {
        @match states {
            Some(within) => {
                @for ratio in [&within.fast, &within.slow] {
                    td.verdict { @match ratio {
                        Some(ratio) => { (told(ratio, rounds)) }
                        None => { span.quiet { "too few turns" } }
                    } }
                }
                td.num {
                    (in_it(&within.slow_share_of_other)) " / " br;
                    (in_it(&within.slow_share_of_baseline))
                }
            }
            None => { td colspan="3" { span.quiet { "one state" } } }
        }
    }
}
