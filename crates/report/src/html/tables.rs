//! Common to tables over cells.

use crate::grid::Table;
use crate::table::quantiles;
use record::summary::{CellSummary, Metric, MetricSummary, RunSummary};
use stats::Summary;
use text::words::{needs, ratio};

/// Cells with the metric that a table is about.
pub(super) type Row<'a> = (&'a CellSummary, &'a MetricSummary);

/// The cells that have this metric.
pub(super) fn rows(summary: &RunSummary, metric: Metric) -> Vec<Row<'_>> {
    let of = |cell: &'_ CellSummary| cell.metrics.iter().position(|m| m.metric == metric);
    (summary.cells.iter())
        .filter_map(|cell| Some((cell, &cell.metrics[of(cell)?])))
        .collect()
}

/// Quantiles and the largest value.
pub(super) fn with_quantiles<'a>(table: Table<Row<'a>>) -> Table<Row<'a>> {
    quantiles(table, |row| Some(row.1)).times("max", |(_, m)| Some(m.summary.max_ns as f64))
}

/// Mean and deviation.
pub(super) fn with_moments<'a>(table: Table<Row<'a>>) -> Table<Row<'a>> {
    table
        .times("mean", |(_, m)| Some(m.summary.mean_ns))
        .times("sd", |(_, m)| m.summary.sd_ns)
}

/// A tail ratio, or how many samples it needs.
pub(super) fn tail(summary: &Summary, value: Option<f64>, probability: f64) -> Option<String> {
    let few = summary
        .quantile(probability)
        .filter(|q| q.value_ns.is_none());
    value.map(ratio).or_else(|| few.map(needs))
}
