//! What the tables over cells share.

use super::time_cell;
use maud::{Markup, html};
use record::summary::{CellSummary, MetricSummary};
use stats::{Quantile, Ratio, Share, Summary, Verdict};
use text::units::Scale;
use text::words::{clean, count, ends, judged, needs, ratio, times, verdict};

/// The quantiles that have a column.
const SHOWN: [(f64, &str); 5] = [
    (0.5, "median"),
    (0.95, "p95"),
    (0.99, "p99"),
    (0.999, "p99.9"),
    (0.9999, "p99.99"),
];

/// Cells with the metric that a table is about.
type Rows<'a> = [(&'a CellSummary, &'a MetricSummary)];

/// With more rows than this, tables of detail are folded.
const FOLDED: usize = 24;

/// A [`region`] of detail: folded when it has many rows.
pub(crate) fn detail(caption: &str, rows: usize, body: Markup) -> Markup {
    if rows <= FOLDED {
        return region(caption, body);
    }
    html! {
        details {
            summary { (caption) ", " (count(rows as u64)) " rows" }
            (region(caption, body))
        }
    }
}

/// A table that scrolls by itself where the page is narrow.
pub(crate) fn region(caption: &str, body: Markup) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label=(caption) {
            table { caption { (caption) } (body) }
        }
    }
}

/// The cell's name, with its label if it was not real-time.
pub(super) fn name(cell: &CellSummary) -> Markup {
    html! {
        (breakable(&clean(&cell.label)))
        @if !cell.real_time { br; span.caution { "not real-time" } }
        @if let Some(does) = &cell.does { br; span.below { (clean(does)) } }
    }
}

/// A label that may break after its slashes: a narrow column breaks it somewhere, and `embedded/t au0` reads badly.
pub(super) fn breakable(label: &str) -> Markup {
    html! {
        @for (place, part) in label.split_inclusive('/').enumerate() { @if place > 0 { wbr; } (part) }
    }
}

/// Headings of [`quantiles`].
pub(super) fn quantile_heads() -> Markup {
    html! { @for (_, name) in SHOWN { th.num scope="col" { (name) } } }
}

/// The quantiles of one row, in the units of their columns.
pub(super) fn quantiles(rows: &Rows, row: usize) -> Markup {
    let column = |probability| {
        let all = rows
            .iter()
            .filter_map(|(_, m)| m.summary.quantile(probability));
        // Not the ends: one round with a stall would set the unit of all.
        Scale::of(all.filter_map(|q: &Quantile| Some(q.value_ns? as f64)))
    };
    html! { @for (probability, _) in SHOWN { (quantile(rows[row].1, probability, column(probability))) } }
}

fn quantile(metric: &MetricSummary, probability: f64, scale: Scale) -> Markup {
    let Some(q) = metric.summary.quantile(probability) else {
        return time_cell("-", "");
    };
    match (q.value_ns, q.low_ns, q.high_ns) {
        (Some(value), Some(low), Some(high)) => {
            let (value, ends) = scale.with_ends(value as f64, [low as f64, high as f64]);
            time_cell(&value, &ends)
        }
        _ => html! { td.num { span.quiet { (needs(q)) } } },
    }
}

/// Headings of [`shape`].
pub(super) fn shape_heads() -> Markup {
    html! {
        th.num scope="col" { "mean" } th.num scope="col" { "sd" }
        th.num scope="col" { "CV" br; span.below { "sd / mean" } }
        th.num scope="col" { "p95 / median" } th.num scope="col" { "p99 / median" }
        th.num scope="col" { "correlation" br; span.below { "of neighbours" } }
        th.num scope="col" { "samples" }
    }
}

/// Moments, tail ratios and correlation of one row.
pub(super) fn shape(rows: &Rows, row: usize) -> Markup {
    let mean = Scale::of(rows.iter().map(|(_, m)| m.summary.mean_ns));
    let sd = Scale::of(rows.iter().filter_map(|(_, m)| m.summary.sd_ns));
    let m = rows[row].1;
    let s = &m.summary;
    html! {
        (time_cell(&mean.show(s.mean_ns), ""))
        (time_cell(&s.sd_ns.map_or("-".to_owned(), |ns| sd.show(ns)), ""))
        (time_cell(&s.coefficient_of_variation.map_or("-".to_owned(), ratio), ""))
        (tail(s, s.tail_ratio_p95, 0.95)) (tail(s, s.tail_ratio_p99, 0.99))
        (time_cell(&m.lag1_autocorrelation.map_or("-".to_owned(), |r| format!("{:.2}", r + 0.0).replace("-0.00", "0.00")), ""))
        (time_cell(&count(s.count), ""))
    }
}

/// Headings of [`short_shape`].
pub(super) fn short_shape_heads() -> Markup {
    html! {
        th.num scope="col" { "mean" } th.num scope="col" { "sd" } th.num scope="col" { "p99 / median" }
    }
}

/// The part of [`shape`] that fits beside quantiles.
pub(super) fn short_shape(rows: &Rows, row: usize) -> Markup {
    let mean = Scale::of(rows.iter().map(|(_, m)| m.summary.mean_ns));
    let sd = Scale::of(rows.iter().filter_map(|(_, m)| m.summary.sd_ns));
    let s = &rows[row].1.summary;
    html! {
        (time_cell(&mean.show(s.mean_ns), ""))
        (time_cell(&s.sd_ns.map_or("-".to_owned(), |ns| sd.show(ns)), ""))
        (tail(s, s.tail_ratio_p99, 0.99))
    }
}

/// A tail ratio, or how many samples it needs.
fn tail(summary: &Summary, value: Option<f64>, probability: f64) -> Markup {
    match (value, summary.quantile(probability)) {
        (None, Some(few)) if few.value_ns.is_none() => {
            html! { td.num { span.quiet { (needs(few)) } } }
        }
        _ => time_cell(&value.map_or("-".to_owned(), ratio), ""),
    }
}

/// A ratio, its interval, and what it says.
pub(super) fn told(ratio: &Ratio, rounds: u32) -> Markup {
    let class = match judged(ratio, rounds) {
        Verdict::Larger => "slower",
        Verdict::Smaller => "faster",
        Verdict::WithinNoise | Verdict::TooWide | Verdict::Undecided => "quiet",
    };
    html! { (times(ratio, rounds)) span class=(class) { (verdict(ratio, rounds)) } }
}

/// A count of something that should not occur.
pub(super) fn lost(n: u64) -> Markup {
    html! { td.num { @if n > 0 { span.bad { (count(n)) } } @else { "0" } } }
}

/// The same, and the interval of its share.
pub(super) fn lost_with_share(n: u64, share: Option<&Share>) -> Markup {
    html! {
        td.num {
            @if n > 0 { span.bad { (count(n)) } } @else { "0" }
            @if let Some(ends) = share.and_then(ends) { br; span.below { (ends) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_break_behind_slashes_only() {
        assert_eq!(
            breakable("embedded/tau0").into_string(),
            "embedded/<wbr>tau0"
        );
        assert_eq!(
            breakable("podman-rootless").into_string(),
            "podman-rootless"
        );
    }
}
