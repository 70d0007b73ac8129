//! The question, the answer in one sentence, and the plan.

use super::figures;
use super::section::{Page, Section};
use crate::findings;
use maud::{Markup, html};
use record::series::Condition;
use study::plan;
use text::words::clean;

/// Conditions of a trial's cells.
fn beside(trial: &model::TrialPlan, workload: &model::Workload) -> String {
    let mut text = String::new();
    if !trial.loads.is_empty() {
        text += &format!(" under {}", trial.load_name());
    }
    if let Some(period) = trial.period.filter(|period| *period != workload.period) {
        text += &format!(", period {period}");
    }
    if let Some(jobs) = trial.jobs.filter(|jobs| *jobs != workload.jobs) {
        text += &format!(", {}", text::words::plural(jobs.into(), "job"));
    }
    if trial.isolate {
        text += ", cpus kept free of other work";
    }
    text
}

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
            let made = parts.join(" + ") + &beside(trial, &experiment.workload);
            if made == trial.name {
                made
            } else {
                format!("{} ({made})", trial.name)
            }
        })
        .collect();
    // The terminal's plan counts the trials that can run here; the reason of the others stands with the results.
    let not_measured = match page.data.summary.not_measured.len() {
        0 => String::new(),
        n => format!("; {n} of these trials could not be measured"),
    };
    let facts = [
        ("plan", plan::line(experiment) + &not_measured),
        ("trials", trials.join(", ")),
        ("baseline", experiment.baseline.clone()),
        ("metric", page.data.summary.primary.title().to_owned()),
    ];
    let first = First {
        question: &experiment.question,
        answer: findings(&page.data.summary).into_iter().next(),
        picture: figures::main(page),
    };
    Some(first.section(facts, &[]))
}

/// The beginning of a page.
pub(crate) struct First<'a> {
    /// The question of the run.
    pub question: &'a str,
    /// Its answer, a sentence.
    pub answer: Option<String>,
    /// One picture of it.
    pub picture: Markup,
}

impl First<'_> {
    /// With the plan of the run, and its conditions, folded.
    pub(crate) fn section<'f>(
        self,
        facts: impl IntoIterator<Item = (&'f str, String)>,
        conditions: &[Condition],
    ) -> Section {
        Section {
            id: "asked",
            heading: "Question and answer".to_owned(),
            body: html! {
                @if !self.question.is_empty() { p.question { (clean(self.question)) } }
                @if let Some(answer) = &self.answer { p.answer { (clean(answer)) } }
                (self.picture)
                details { summary { "The plan" } (list(facts, conditions)) }
            },
        }
    }
}

fn list<'a>(
    facts: impl IntoIterator<Item = (&'a str, String)>,
    conditions: &[Condition],
) -> Markup {
    html! {
        dl {
            @for (name, text) in facts { dt { (name) } dd { (clean(&text)) } }
            @for condition in conditions { dt { (clean(&condition.name)) } dd { (clean(&condition.text)) } }
        }
    }
}
