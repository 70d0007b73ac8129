//! A scale study beside published figures.

use super::study::median_of;
use crate::published::{About, Beside, Kind, Own, beside_own};
use record::RecordError;
use record::run::Run;
use record::scale::{ScalePoint, ScaleSummary};
use stats::BoxPlot;

/// Sets a scale study beside the published figures.
///
/// # Errors
/// When a file of the record cannot be read.
pub fn scale_beside(run: &Run, summary: &ScaleSummary) -> Result<Beside, RecordError> {
    let machine = run.provenance()?.one_line();
    let own: Vec<Own> = summary.points.iter().flat_map(numbers).collect();
    Ok(beside_own(&own, machine))
}

/// The counterparts of Table 4.4 and Figs. 4.21 to 4.24 of the zcu102 thesis, of any engine: its cells were made by rootless Podman, and
/// are compared by their number.
fn numbers(point: &ScalePoint) -> Vec<Own> {
    let cells = point.cells.number.len();
    let own = |about, kind, value: f64| Own {
        about,
        kind,
        label: point.trial.clone(),
        engine: None,
        subject: None,
        part: Some("cells".to_owned()),
        mix: Vec::new(),
        threads: None,
        preempt_rt: None,
        cells: point.count,
        load: "idle".to_owned(),
        period_us: None,
        size: None,
        real_time: point.real_time,
        value,
    };
    let mut all = Vec::new();
    for (between, which) in [(&point.execution, ""), (&point.response, ", response time")] {
        let Some(between) = between.as_ref().filter(|_| cells > 1) else {
            continue;
        };
        // The thesis's execution times grow with the number of cells. Ours, in a FIFO class, do not: cells of one priority queue before
        // they start, which is in the response time.
        let own = |about, kind, value| Own {
            label: format!("{}{which}", point.trial),
            ..own(about, kind, value)
        };
        let spread = between.spread.coefficient_of_variation;
        all.extend(spread.map(|cv| own(About::BetweenCells, Kind::Value, cv)));
        let medians: [(Kind, Option<&BoxPlot>); 4] = [
            (Kind::Mean, Some(&between.mean)),
            (Kind::Sd, between.sd.as_ref()),
            (Kind::P95, between.p95.as_ref()),
            (Kind::P99, between.p99.as_ref()),
        ];
        for (kind, plot) in medians {
            let median = plot.map(|plot| plot.median_ns as f64);
            all.extend(median.map(|ns| own(About::MedianCell, kind, ns)));
        }
    }
    let skew = median_of(&point.skew_ns);
    all.extend(skew.map(|ns| own(About::StartSkew, Kind::Value, ns)));
    all
}
