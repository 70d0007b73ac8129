//! The terminal's tables of a scale study.

use super::findings::{crowd, findings, memory, part, rate};
use super::words;
use crate::grid::{Cell, Table};
use model::EngineKind;
use record::scale::{ScalePoint, ScaleSummary};
use stats::{Even, Fairness};
use study::{mean_response, median_of};
use text::style::{Style, Tone};
use text::units::{percent, time};
use text::words::{count, not_measured, ratio};

/// A table for each engine, a row for each number of cells; then findings, unmeasured trials and failures. Ends with a
/// line break.
pub fn scale_table(summary: &ScaleSummary, style: Style) -> String {
    let tables = (summary.engines.iter()).map(|engine| table(summary, engine.engine).block(style));
    let mut sentences: Vec<String> = findings(summary)
        .into_iter()
        .flat_map(|(engine, all)| all.into_iter().map(move |text| format!("{engine}: {text}")))
        .collect();
    sentences.extend(summary.not_measured.iter().map(not_measured));
    let unmet = summary.unmet.iter();
    sentences.extend(unmet.map(|need| format!("{}: {}", need.what, need.reason)));
    let failures = summary.failures.iter();
    sentences.extend(failures.map(|failure| format!("failed: {failure}")));
    tables.collect::<String>() + &style.sentences(&sentences)
}

fn table(summary: &ScaleSummary, engine: EngineKind) -> Table<&ScalePoint> {
    let points = || summary.of(engine);
    let alike = match points().any(|point| point.pinned) {
        true => "cells of a cpu",
        false => "cells",
    };
    // Each value in its own unit: from the first row to the last they grow a thousandfold.
    Table::new(format!("{engine}: cells that run together"), points())
        .number("cells", |point| point.count)
        .number("finished", |point| finished(point))
        .number("created/s", |point| {
            crowd(point).and_then(rate).map(|rate| format!("{rate:.0}"))
        })
        .if_any()
        .number("memory", |point| {
            let memory = crowd(point).and_then(memory);
            memory.map(|[a, b]| megabytes(a + b))
        })
        .if_any()
        .number("reserved", |point| part(point))
        .if_any()
        .number("execution", |point| {
            Some(time(point.execution.as_ref()?.mean.median_ns as f64))
        })
        .number("p99", |point| {
            let p99 = point.execution.as_ref()?.p99.as_ref()?;
            Some(time(p99.median_ns as f64))
        })
        .number("CV", |point| {
            let spread = point.execution.as_ref()?.spread;
            spread.coefficient_of_variation.map(percent)
        })
        .number("response", |point| mean_response(point).map(time))
        .number("/ predicted", |point| {
            let sharing = point.sharing?;
            Some(ratio(sharing.response_ns / sharing.sharing_ns))
        })
        .if_any()
        .number("cpus used", |point| {
            Some(percent(point.sharing?.utilization))
        })
        .if_any()
        .text(alike, |point| {
            point.response.as_ref()?.fairness.as_ref().map(even)
        })
        .number("start skew", |point| median_of(&point.skew_ns).map(time))
        .labelled(|point| point.real_time || point.rounds == 0)
}

/// A verdict on fairness in its colour.
pub(super) fn even(fairness: &Fairness) -> Cell {
    let tone = match fairness.verdict {
        Even::Uneven => Tone::Caution,
        Even::Even | Even::Nearly => Tone::Plain,
    };
    Cell::new(words::even(fairness), tone)
}

pub(super) fn megabytes(bytes: f64) -> String {
    format!("{:.2} MB", bytes / 1e6)
}

fn finished(point: &ScalePoint) -> Cell {
    let rounds = point.crowds.len().max(1) as u32;
    let finished = match point.crowds.as_slice() {
        [] => point.cells.number.len() as u32,
        crowds => crowds.iter().map(|crowd| crowd.finished).sum(),
    };
    let all = point.count.saturating_mul(rounds.max(point.rounds));
    let tone = if finished < all || point.unexplained > 0 {
        Tone::Bad
    } else {
        Tone::Plain
    };
    let text = if finished < all {
        format!("{} of {}", count(finished.into()), count(all.into()))
    } else {
        "all".to_owned()
    };
    Cell::new(text, tone)
}
