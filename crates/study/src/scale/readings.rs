//! The figures of a scale study that can be judged: for each number of cells the means of all their jobs, their skew, and failures.

use record::scale::{ScalePoint, ScaleSummary, StatColumns};
use record::summary::Metric;

use crate::judge::{
    Absent, Count, Figure, Measured, Reading, Readings, Statistic, Subject, Unit, Why, no_class,
    of_skews,
};
use crate::kind::Kind;
use text::words::plural;

/// The figures of a scale study, number by number of each engine.
pub(crate) fn scale_readings(summary: &ScaleSummary) -> Readings {
    let points = summary
        .points
        .iter()
        .map(|point| Subject::new(&point.trial, readings(point)).also([point.engine.to_string()]));
    let absent =
        (summary.not_measured.iter()).map(|absent| Subject::absent(&absent.trial, &absent.reason));
    Readings::new(Kind::Scale, points.chain(absent).collect())
}

fn readings(point: &ScalePoint) -> Vec<Reading> {
    let of_planned = format!("of {}", plural(point.planned, "activation"));
    let counts = [
        (Count::Skipped, point.skipped, of_planned.clone()),
        (
            Count::Lost,
            point.lost_with_cells.saturating_add(point.unexplained),
            of_planned,
        ),
        (
            Count::Failed,
            point.failed_cells.into(),
            format!("of {}", plural(point.count.into(), "cell")),
        ),
    ];
    let mut all: Vec<Reading> = (counts.into_iter())
        .map(|(count, number, remark)| match count {
            // Nothing is skipped if nothing ran.
            Count::Skipped | Count::Lost if point.rounds == 0 && number == 0 => {
                Reading::new(Figure::Count(count), Unit::Count, Err(no_round()))
            }
            _ => Reading::count(Figure::Count(count), number).remarked(remark),
        })
        .collect();
    for (metric, columns) in [
        (Metric::ExecutionTime, &point.cells.execution),
        (Metric::ResponseTime, &point.cells.response),
    ] {
        let figure = Figure::Job(metric, Statistic::Mean);
        all.push(Reading::new(figure, Unit::Ns, mean(point, columns)));
    }
    // A single cell has none.
    if point.count > 1 {
        let class = (!point.real_time).then_some(point.class.as_str());
        all.extend(of_skews(&point.skew_ns, class));
    }
    all
}

/// The mean over all jobs of all cells.
fn mean(point: &ScalePoint, columns: &StatColumns) -> Result<Measured, Absent> {
    let jobs: u64 = point.cells.jobs.iter().sum();
    if jobs == 0 || columns.mean_ns.is_empty() {
        return Err(no_round());
    }
    if !point.real_time {
        return Err(no_class(&point.class));
    }
    let of_cells = columns.mean_ns.iter().zip(&point.cells.jobs);
    let sum: f64 = of_cells
        .map(|(&mean, &jobs)| mean as f64 * jobs as f64)
        .sum();
    Ok(Measured::fact(sum / jobs as f64))
}

fn no_round() -> Absent {
    (Why::NoGoodRound, "it has no good round".to_owned())
}
