//! The cells' loads, and their work: a load that did little proves little.

use super::section::{Page, Section};
use crate::grid::{Cell, Table};
use crate::loads::number;
use maud::html;
use record::summary::{AchievedSummary, LoadSummary};
use text::style::Tone;

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
            (each_round(loads))
            (how(loads))
        },
    })
}

fn achieved(loads: &[LoadSummary]) -> Table<&LoadSummary> {
    Table::new("Achieved rates", loads)
        .head("trial", |load| load.trial.as_str())
        .text("load", |load| {
            let elsewhere = (load.place != "host").then(|| format!("in {}", load.place));
            Cell::from(load.name.as_str()).below(elsewhere.unwrap_or_default())
        })
        .text("form", |load| load.form.as_str())
        .text("achieved", |load| {
            let nothing = || Cell::new("nothing was measured", Tone::Bad);
            let all = || Cell::lines(load.achieved.iter().map(crate::loads::achieved));
            if load.achieved.is_empty() {
                nothing()
            } else {
                all()
            }
        })
        .number("missed seconds", |load| load.missed_seconds)
        .number("failed rounds", |load| {
            let tone = if load.failed > 0 {
                Tone::Bad
            } else {
                Tone::Plain
            };
            Cell::new(format!("{} of {}", load.failed, load.rounds), tone)
        })
}

fn each_round(loads: &[LoadSummary]) -> Table<(&LoadSummary, &AchievedSummary)> {
    let rows = loads
        .iter()
        .flat_map(|load| load.achieved.iter().map(move |one| (load, one)));
    Table::new("Each round", rows)
        .detail()
        .head("trial", |(load, _)| load.trial.as_str())
        .text("load", |(load, _)| load.name.as_str())
        .text("quantity", |(_, one)| {
            format!("{}, {}", one.quantity, one.unit)
        })
        .text("round: value", |(_, one)| {
            let rounds = one.rounds.iter().zip(&one.values);
            let each = rounds.map(|(round, value)| format!("{round}: {}", number(*value)));
            each.collect::<Vec<_>>().join("  ")
        })
}

fn how(loads: &[LoadSummary]) -> Table<&LoadSummary> {
    Table::new("How each load was run", loads)
        .detail()
        .head("trial", |load| load.trial.as_str())
        .text("load", |load| load.name.as_str())
        .text("cpus", |load| study::plan::list(&load.cpus))
        .text("command", |load| Cell::code(&load.command))
}
