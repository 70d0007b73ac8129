//! What disturbed the cells, and how hard: a load that did little proves little.

use super::section::{Page, Section};
use super::tables::detail;
use crate::loads::{number, span};
use maud::{Markup, html};
use record::summary::LoadSummary;
use text::words::clean;

pub(super) fn section(page: &Page) -> Option<Section> {
    let loads = &page.data.summary.loads;
    (!loads.is_empty()).then(|| Section {
        id: "loads",
        heading: "Loads".to_owned(),
        body: html! {
            p.quiet {
                "What ran beside the cells and what it achieved while they were measured, least to most over rounds. A trial whose load \
                 ended early or did nothing has failed and is left out of the figures."
            }
            (achieved(loads))
            (detail("Each round", loads.len(), each_round(loads)))
            (detail("How each load was run", loads.len(), how(loads)))
        },
    })
}

fn achieved(loads: &[LoadSummary]) -> Markup {
    super::tables::region(
        "Achieved rates",
        html! {
            thead { tr {
                th scope="col" { "trial" } th scope="col" { "load" } th scope="col" { "form" }
                th scope="col" { "achieved" } th.num scope="col" { "missed seconds" } th.num scope="col" { "failed rounds" }
            } }
            tbody { @for load in loads {
                tr {
                    th scope="row" { (clean(&load.trial)) }
                    td { (clean(&load.name)) @if load.place != "host" { br; span.below { "in " (clean(&load.place)) } } }
                    td { (clean(&load.form)) }
                    td { @for one in &load.achieved {
                        (clean(&one.quantity)) " " strong { (span(&one.values)) } " " (clean(&one.unit)) br;
                    } @if load.achieved.is_empty() { span.bad { "nothing was measured" } } }
                    td.num { (load.missed_seconds.map_or("-".to_owned(), |n| n.to_string())) }
                    td.num { @if load.failed > 0 { span.bad { (load.failed) } } @else { "0" } " of " (load.rounds) }
                }
            } }
        },
    )
}

fn each_round(loads: &[LoadSummary]) -> Markup {
    html! {
        thead { tr { th scope="col" { "trial" } th scope="col" { "load" } th scope="col" { "quantity" } th scope="col" { "round: value" } } }
        tbody { @for load in loads { @for one in &load.achieved {
            tr {
                th scope="row" { (clean(&load.trial)) }
                td { (clean(&load.name)) }
                td { (clean(&one.quantity)) ", " (clean(&one.unit)) }
                td { @for (round, value) in one.rounds.iter().zip(&one.values) { (round) ": " (number(*value)) "  " } }
            }
        } } }
    }
}

fn how(loads: &[LoadSummary]) -> Markup {
    html! {
        thead { tr { th scope="col" { "trial" } th scope="col" { "load" } th scope="col" { "cpus" } th scope="col" { "command" } } }
        tbody { @for load in loads {
            tr {
                th scope="row" { (clean(&load.trial)) }
                td { (clean(&load.name)) }
                td { (study::plan::list(&load.cpus)) }
                td { code { (clean(&load.command)) } }
            }
        } }
    }
}
