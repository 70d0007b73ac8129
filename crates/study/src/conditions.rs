//! Cells by the conditions they ran under: figures with bars and small panels for each load and period.

use model::EngineKind;
use record::summary::{CellSummary, PointSummary, RunSummary};

/// Points with their cells, in the run's order.
pub struct Conditions<'a> {
    /// Each point and its cell; only cells that were measured.
    pub points: Vec<(&'a PointSummary, &'a CellSummary)>,
    /// Loads in the order of the experiment.
    pub loads: Vec<&'a str>,
    /// Engines in the order of the experiment.
    pub engines: Vec<EngineKind>,
    /// Periods in ns, ascending.
    pub periods: Vec<i64>,
    /// Whether some cpus were kept free and some were not.
    pub both: bool,
}

/// `None` where there is one load and one period only.
pub fn of(summary: &RunSummary) -> Option<Conditions<'_>> {
    let points: Vec<(&PointSummary, &CellSummary)> = summary
        .points
        .iter()
        .filter_map(|point| Some((point, summary.cells.get(point.index)?)))
        .filter(|(_, cell)| !cell.metrics.is_empty())
        .collect();
    let mut loads: Vec<&str> = Vec::new();
    let mut engines: Vec<EngineKind> = Vec::new();
    let mut periods: Vec<i64> = Vec::new();
    for (point, cell) in &points {
        if !loads.contains(&point.load.as_str()) {
            loads.push(&point.load);
        }
        if !engines.contains(&cell.engine) {
            engines.push(cell.engine);
        }
        if !periods.contains(&point.period_ns) {
            periods.push(point.period_ns);
        }
    }
    periods.sort_unstable();
    let isolated = points.iter().filter(|(point, _)| point.isolated).count();
    let both = isolated > 0 && isolated < points.len();
    (loads.len() * periods.len() > 1 || both).then_some(Conditions {
        points,
        loads,
        engines,
        periods,
        both,
    })
}

impl Conditions<'_> {
    /// The largest value of the primary metric over all cpus, ns; `None` where nothing was measured.
    pub fn max_ns(&self, load: &str, period_ns: i64, isolated: bool) -> Option<i64> {
        self.at(load, period_ns, isolated)
            .filter_map(|(_, cell)| Some(cell.metrics.first()?.summary.max_ns))
            .max()
    }

    /// The cells of one condition.
    pub fn at<'b>(
        &'b self,
        load: &'b str,
        period_ns: i64,
        isolated: bool,
    ) -> impl Iterator<Item = (&'b PointSummary, &'b CellSummary)> {
        self.points.iter().copied().filter(move |(point, _)| {
            point.load == load && point.period_ns == period_ns && point.isolated == isolated
        })
    }
}

/// A period as people write it.
pub fn period(ns: i64) -> String {
    text::units::exact(ns.unsigned_abs())
}
