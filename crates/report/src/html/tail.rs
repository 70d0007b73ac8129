//! Tails: curves where the jobs pass the tests, else the reason; periodic spikes and states.

use super::drawn;
use super::section::{Page, Section};
use crate::figure::TAIL;
use crate::grid::{Cell, Table};
use crate::tails::{chance, curve_name, images, jobs, jobs_ns, states_alone, states_text};
use maud::{Markup, html};
use record::summary::{Metric, TailSummary};
use stats::{CurvePoint, Spikes, TAIL_JOBS};
use text::units::{Scale, percent, time};
use text::words::{clean, count, sentence};

pub(super) fn section(page: &Page) -> Option<Section> {
    let summary = &page.data.summary;
    let tails: Vec<&TailSummary> = (summary.tails.iter())
        .filter(|tail| tail.tail.jobs >= TAIL_JOBS)
        .collect();
    let body = if tails.is_empty() {
        let most = summary.tails.iter().map(|tail| tail.tail.jobs).max()?;
        html! { p {
            "Fitting the tail of a distribution needs " (count(TAIL_JOBS)) " jobs per cell; largest: " (count(most)) "."
        } }
    } else {
        measured(page, &tails)
    };
    Some(Section {
        id: "tail",
        heading: "Tail".to_owned(),
        body,
    })
}

fn measured(page: &Page, tails: &[&TailSummary]) -> Markup {
    let figure = page.figures.iter().find(|figure| figure.name == TAIL);
    html! {
        p {
            "A curve is given only where long jobs are independent, share one distribution and follow the laws of extremes; otherwise the \
             reasons stand in its place. It describes the inputs and the conditions of this run, and bounds nothing beyond them."
            @if let Some(most) = tails.iter().filter_map(|tail| tail.tail.kept).max() {
                " The run kept histograms, so the curve rests on the worst jobs alone, at most " (count(most)) " of each cell, and on the record \
                 of each interval. No worst job is missing, so the fit and its tests are the same; but states shorter than a few \
                 intervals, and periods much shorter than the distance between two of the worst jobs, could not be seen."
            }
        }
        @for tail in tails {
            @if let Some(states) = states_alone(&page.data.summary, tail) {
                p { strong { (clean(&tail.label)) } ": the " (tail.metric.title()) " " (states_text(states, tail)) "." }
            }
        }
        (spikes(tails))
        @if let Some(figure) = figure { (drawn(std::slice::from_ref(figure))) }
        (table(tails))
    }
}

fn spikes<'a>(tails: &[&'a TailSummary]) -> Table<(&'a TailSummary, &'a Spikes)> {
    let spiky = tails
        .iter()
        .filter_map(|tail| Some((*tail, tail.tail.spikes.as_ref()?)));
    Table::new("Spikes that come periodically", spiky)
        .detail()
        .head("cell", |(tail, _)| tail.label.as_str())
        .text("metric", |(tail, _)| tail.metric.title())
        .number("period\nin jobs", |(tail, one)| {
            Cell::from(jobs_ns(one.period_jobs, tail).map(time)).below(jobs(one.period_jobs))
        })
        .number("height\nmedian of all jobs", |(_, one)| {
            Cell::from(time(one.height_ns as f64)).below(time(one.median_ns as f64))
        })
        .number("length", |(_, one)| jobs(one.jobs_per_spike))
        .number("share of jobs", |(_, one)| percent(one.share))
        .number("keep to it\nof all spikes", |(_, one)| {
            Cell::from(one.in_phase).below(count(one.spikes))
        })
        .number("by chance", |(_, one)| chance(one.chance))
        .text("would look the same", |(tail, one)| {
            images(one, tail).unwrap_or_else(|| "unknown: jobs are unevenly spaced".to_owned())
        })
}

fn table<'a>(tails: &[&'a TailSummary]) -> Table<&'a TailSummary> {
    let peaks = |tail: &TailSummary| {
        let peaks = tail.tail.peaks.as_ref();
        peaks.filter(|_| !tail.tail.curve.is_empty()).copied()
    };
    let caption = "Time that a job exceeds with the given probability, 95 % band below it; or why there is none";
    Table::new(caption, tails.iter().copied())
        .detail()
        .head("cell", |tail| tail.label.as_str())
        .text("curve", |tail| match tail.metric {
            Metric::WakeupLatency => "wake-up latency".to_owned(),
            metric => format!("{} ({})", curve_name(metric), metric.title()),
        })
        .number("jobs", |tail| {
            let kept = tail
                .tail
                .kept
                .map(|kept| format!("the worst {}", count(kept)));
            Cell::from(tail.tail.jobs).below(kept.unwrap_or_default())
        })
        .number("1 in all jobs", |tail| peaks(tail).and(exceeded(tail, 1.0)))
        .number("1 in ten times as many", |tail| {
            peaks(tail).and(exceeded(tail, 10.0))
        })
        .number("shape\n95 % interval", |tail| {
            let peaks = peaks(tail)?;
            let ends = format!("{:.2}..{:.2}", peaks.shape_low, peaks.shape_high);
            Some(Cell::from(format!("{:.2}", peaks.shape)).below(ends))
        })
        .number("threshold\njobs above; clusters", |tail| {
            let peaks = peaks(tail)?;
            let above = format!("{}; {}", count(peaks.exceedances), count(peaks.clusters));
            Some(Cell::from(time(peaks.threshold_ns)).below(above))
        })
        .number("fit\np-values: peaks; maxima", |tail| {
            let maxima = tail.tail.blocks.as_ref();
            let maxima = maxima.map_or("-".to_owned(), |blocks| format!("{:.2}", blocks.p_value));
            Some(format!("{:.2}; {maxima}", peaks(tail)?.p_value))
        })
        .text("no curve, because", |tail| {
            let refusals = tail.tail.refusals.iter().filter(|_| peaks(tail).is_none());
            Cell::lines(refusals.map(|refusal| sentence(&refusal.to_string())))
        })
        .if_any()
}

/// The point of the curve that is next to one in so many times all jobs.
fn exceeded(tail: &TailSummary, times: f64) -> Option<Cell> {
    let probability = 1.0 / (tail.tail.jobs as f64 * times);
    let distance = |point: &&CurvePoint| (point.probability / probability).ln().abs();
    let points = tail.tail.curve.iter();
    let point = points.min_by(|a, b| distance(a).total_cmp(&distance(b)))?;
    let scale = Scale::of([point.low_ns, point.value_ns, point.high_ns]);
    let (value, ends) = scale.with_ends(point.value_ns, [point.low_ns, point.high_ns]);
    Some(Cell::from(value).below(ends))
}
