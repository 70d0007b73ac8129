//! The question and the plan.

use super::{Page, Section};
use crate::plan;
use crate::words::clean;
use maud::html;

pub(super) fn section(page: &Page) -> Option<Section> {
    let experiment = &page.data.plan;
    let trials: Vec<String> = experiment
        .trials
        .iter()
        .map(|trial| {
            let mut engines: Vec<(model::EngineKind, usize)> = Vec::new();
            for &engine in &trial.cells {
                match engines.iter_mut().find(|(kind, _)| *kind == engine) {
                    Some((_, times)) => *times += 1,
                    None => engines.push((engine, 1)),
                }
            }
            let parts: Vec<String> = engines
                .iter()
                .map(|(engine, times)| match times {
                    1 => engine.to_string(),
                    _ => format!("{times} x {engine}"),
                })
                .collect();
            let made = parts.join(" + ");
            if made == trial.name {
                made
            } else {
                format!("{} ({made})", clean(&trial.name))
            }
        })
        .collect();
    Some(Section {
        id: "asked",
        heading: "What was asked".to_owned(),
        body: html! {
            @if !experiment.question.is_empty() { p.question { (clean(&experiment.question)) } }
            dl {
                dt { "plan" } dd { (plan::line(experiment)) }
                dt { "trials" } dd { (trials.join(", ")) }
                dt { "baseline" } dd { (clean(&experiment.baseline)) }
                dt { "measured" } dd { (page.data.summary.primary.title()) ", the tables' and figures' subject" }
            }
        },
    })
}
