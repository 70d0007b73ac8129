//! Tails: curves where the jobs pass the tests, else the reason; periodic spikes and regimes.

use super::section::{Page, Section};
use super::tables::detail;
use super::time_cell;
use crate::figure::{TAIL, inline};
use crate::tails::{chance, curve_name, images, jobs, jobs_ns, regimes_text};
use maud::{Markup, html};
use record::summary::TailSummary;
use stats::{Pareto, Spikes, TAIL_JOBS};
use text::units::{Scale, time};
use text::words::{capital, clean, count};

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
                 of each interval. No worst job is missing, so the fit and its tests are the same; but regimes shorter than a few \
                 intervals, and periods much shorter than the distance between two of the worst jobs, could not be seen."
            }
        }
        @for tail in tails {
            @if let Some(regimes) = &tail.tail.regimes {
                p { strong { (clean(&tail.label)) } ": the " (tail.metric.title()) " " (regimes_text(regimes, tail)) "." }
            }
        }
        @let spiky = tails.iter().filter_map(|tail| Some((*tail, tail.tail.spikes.as_ref()?)));
        @let spiky: Vec<(&TailSummary, &Spikes)> = spiky.collect();
        @if !spiky.is_empty() { (detail("Spikes that come periodically", spiky.len(), spikes(&spiky))) }
        @if let Some(figure) = figure {
            div.figures {
                figure {
                    h3 { (figure.title) }
                    div.scroll { (inline(figure)) }
                    figcaption { (figure.caption) }
                }
            }
        }
        (detail("Time that a job exceeds with the given probability, 95% band below it; or why there is none",
            tails.len(), table(tails)))
    }
}

fn spikes(spiky: &[(&TailSummary, &Spikes)]) -> Markup {
    html! {
        thead { tr {
            th scope="col" { "cell" } th scope="col" { "metric" }
            th.num scope="col" { "period" br; span.below { "in jobs" } }
            th.num scope="col" { "height" br; span.below { "median of all jobs" } }
            th.num scope="col" { "length" } th.num scope="col" { "share of jobs" }
            th.num scope="col" { "keep to it" br; span.below { "of all spikes" } }
            th.num scope="col" { "by chance" }
            th scope="col" { "would look the same" }
        } }
        tbody { @for (tail, one) in spiky { tr {
            th scope="row" { (clean(&tail.label)) }
            td { (tail.metric.title()) }
            (time_cell(&jobs_ns(one.period_jobs, tail).map_or_else(String::new, time), &jobs(one.period_jobs)))
            (time_cell(&time(one.height_ns as f64), &time(one.median_ns as f64)))
            (time_cell(&jobs(one.jobs_per_spike), ""))
            (time_cell(&format!("{:.2}%", one.share * 100.0), ""))
            (time_cell(&count(one.in_phase), &count(one.spikes)))
            (time_cell(&chance(one.chance), ""))
            td { (images(one, tail).unwrap_or_else(|| "unknown: jobs are unevenly spaced".to_owned())) }
        } } }
    }
}

fn table(tails: &[&TailSummary]) -> Markup {
    html! {
        thead { tr {
            th scope="col" { "cell" } th scope="col" { "curve" }
            th.num scope="col" { "jobs" }
            th.num scope="col" { "1 in all jobs" } th.num scope="col" { "1 in ten times as many" }
            th.num scope="col" { "shape" br; span.below { "95% interval" } }
            th.num scope="col" { "threshold" br; span.below { "jobs above; clusters" } }
            th.num scope="col" { "fit" br; span.below { "p-values: peaks; maxima" } }
        } }
        tbody { @for tail in tails { tr {
            th scope="row" { (clean(&tail.label)) }
            td { (name(tail)) }
            td.num {
                (count(tail.tail.jobs))
                @if let Some(kept) = tail.tail.kept { br; span.below { "the worst " (count(kept)) } }
            }
            @match (&tail.tail.peaks, tail.tail.curve.is_empty()) {
                (Some(peaks), false) => (given(tail, peaks)),
                _ => td colspan="5" {
                    @for refusal in &tail.tail.refusals { div { (capital(&refusal.to_string())) "." } }
                },
            }
        } } }
    }
}

fn name(tail: &TailSummary) -> String {
    match tail.metric {
        record::summary::Metric::WakeupLatency => "wake-up latency".to_owned(),
        metric => format!("{} ({})", curve_name(metric), metric.title()),
    }
}

fn given(tail: &TailSummary, peaks: &Pareto) -> Markup {
    let once = 1.0 / tail.tail.jobs as f64;
    let near = |probability: f64| {
        let distance = |p: f64| (p / probability).ln().abs();
        let points = tail.tail.curve.iter();
        points.min_by(|a, b| distance(a.probability).total_cmp(&distance(b.probability)))
    };
    let maxima = tail.tail.blocks.as_ref();
    let maxima = maxima.map_or("-".to_owned(), |blocks| format!("{:.2}", blocks.p_value));
    let threshold = Scale::of([peaks.threshold_ns]).show(peaks.threshold_ns);
    html! {
        @for probability in [once, once / 10.0] {
            @if let Some(point) = near(probability) {
                @let scale = Scale::of([point.low_ns, point.value_ns, point.high_ns]);
                @let (value, ends) = scale.with_ends(point.value_ns, [point.low_ns, point.high_ns]);
                (time_cell(&value, &ends))
            }
        }
        (time_cell(&format!("{:.2}", peaks.shape), &format!("{:.2}..{:.2}", peaks.shape_low, peaks.shape_high)))
        (time_cell(&threshold, &format!("{}; {}", count(peaks.exceedances), count(peaks.clusters))))
        (time_cell(&format!("{:.2}; {maxima}", peaks.p_value), ""))
    }
}
