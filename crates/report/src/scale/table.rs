//! The terminal's tables of a scale study.

use super::findings::{crowd, findings, memory, part, rate};
use super::words::{even, percent};
use record::scale::{Between, ScalePoint, ScaleSummary};
use stats::Even;
use study::{mean_response, median_of};
use text::grid::{Column, Text, render};
use text::style::{Style, Tone};
use text::units::Scale;
use text::words::{clean, count, not_measured, ratio};

/// A table for each engine, a row for each number of cells; then what was found, what was not measured and what
/// failed. Ends with a line break.
pub fn scale_table(summary: &ScaleSummary, style: Style) -> String {
    let mut out = String::new();
    for engine in &summary.engines {
        let points: Vec<&ScalePoint> = summary.of(engine.engine).collect();
        if points.is_empty() {
            continue;
        }
        out += &format!("{}: cells that run together\n\n", engine.engine);
        out += &render(&columns(&points), style);
        out.push('\n');
    }
    let mut sentences: Vec<String> = findings(summary)
        .into_iter()
        .flat_map(|(engine, all)| all.into_iter().map(move |text| format!("{engine}: {text}")))
        .collect();
    sentences.extend(summary.not_measured.iter().map(not_measured));
    for requirement in &summary.unmet {
        sentences.push(format!("{}: {}", requirement.what, requirement.reason));
    }
    sentences.extend(
        summary
            .failures
            .iter()
            .map(|failure| format!("failed: {failure}")),
    );
    for sentence in sentences {
        out.push_str(&style.wrap(&clean(&sentence), 4));
        out.push('\n');
    }
    out
}

fn columns(points: &[&ScalePoint]) -> Vec<Column> {
    let plain = |heading: &str, text: &dyn Fn(&ScalePoint) -> String| {
        Column::plain(heading, points.iter().map(|point| text(point)).collect()).right()
    };
    let times = |heading: &str, value: &dyn Fn(&ScalePoint) -> Option<f64>| {
        // Each value in its own unit: from the first row to the last they grow a thousandfold.
        let text = |point: &&ScalePoint| value(point).map_or("-".to_owned(), short);
        Column::plain(heading, points.iter().map(text).collect()).right()
    };
    let execution = |of: fn(&Between) -> Option<f64>| {
        move |point: &ScalePoint| point.execution.as_ref().and_then(of)
    };
    let mut columns = vec![
        plain("cells", &|point| count(point.count.into())),
        Column::new("finished", points.iter().map(|p| finished(p)).collect()).right(),
    ];
    if points.iter().any(|point| crowd(point).is_some()) {
        columns.push(plain("created/s", &|point| {
            crowd(point)
                .and_then(rate)
                .map_or("-".to_owned(), |rate| format!("{rate:.0}"))
        }));
        columns.push(plain("memory", &|point| {
            let memory = crowd(point).and_then(memory);
            memory.map_or("-".to_owned(), |[a, b]| format!("{:.2} MB", (a + b) / 1e6))
        }));
    }
    if points.iter().any(|point| part(point).is_some()) {
        columns.push(plain("reserved", &|point| {
            part(point).unwrap_or_else(|| "-".to_owned())
        }));
    }
    columns.push(times(
        "execution",
        &execution(|b| Some(b.mean.median_ns as f64)),
    ));
    columns.push(times(
        "p99",
        &execution(|b| Some(b.p99.as_ref()?.median_ns as f64)),
    ));
    columns.push(plain("CV", &|point| {
        let spread = point.execution.as_ref().map(|b| b.spread);
        spread
            .and_then(|spread| spread.coefficient_of_variation)
            .map_or("-".to_owned(), percent)
    }));
    columns.push(times("response", &mean_response));
    if points.iter().any(|point| point.sharing.is_some()) {
        columns.push(plain("/ predicted", &|point| {
            let of = |s: record::scale::Sharing| ratio(s.response_ns / s.sharing_ns);
            point.sharing.map_or("-".to_owned(), of)
        }));
        columns.push(plain("cpus used", &|point| {
            point
                .sharing
                .map_or("-".to_owned(), |s| percent(s.utilization))
        }));
    }
    let fair = |point: &&ScalePoint| {
        let fairness = point.response.as_ref().and_then(|b| b.fairness);
        fairness.map_or(Text("-".to_owned(), Tone::Plain), |fairness| {
            let tone = match fairness.verdict {
                Even::Uneven => Tone::Caution,
                Even::Even | Even::Nearly => Tone::Plain,
            };
            Text(even(&fairness).to_owned(), tone)
        })
    };
    let alike = match points.iter().any(|point| point.pinned) {
        true => "cells of a cpu",
        false => "cells",
    };
    columns.push(Column::new(alike, points.iter().map(fair).collect()));
    columns.push(times("start skew", &|point| median_of(&point.skew_ns)));
    if points
        .iter()
        .any(|point| point.rounds > 0 && !point.real_time)
    {
        let label = |point: &&ScalePoint| match point.real_time || point.rounds == 0 {
            true => Text(String::new(), Tone::Plain),
            false => Text("not real-time".to_owned(), Tone::Caution),
        };
        columns.push(Column::new("", points.iter().map(label).collect()));
    }
    columns
}

/// A time with three digits.
pub(super) fn short(ns: f64) -> String {
    Scale::of([ns]).show(ns)
}

fn finished(point: &ScalePoint) -> Text {
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
    Text(text, tone)
}
