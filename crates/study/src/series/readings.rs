//! The figures of a run of single measurements that can be judged: times, memory, and creation times.

use crate::judge::{Figure, Measured, Reading, Readings, Statistic, Subject, Unit, Why};
use crate::kind::Kind;
use record::series::{Quantity, SeriesFigure, SeriesSummary};
use stats::needed_count;

/// The figures of a run of single measurements, part by part of each subject.
pub(crate) fn series_readings(summary: &SeriesSummary) -> Readings {
    let measured = summary.figures.iter().map(|figure| {
        let label = format!("{}/{}", figure.subject, figure.part);
        Subject::new(label, readings(figure)).also([figure.subject.clone()])
    });
    let absent = summary.not_measured.iter();
    let absent = absent.map(|absent| Subject::absent(&absent.trial, &absent.reason));
    Readings {
        to: summary.baseline_subject.clone().unwrap_or_default(),
        ..Readings::new(Kind::Series, measured.chain(absent).collect())
    }
}

fn readings(figure: &SeriesFigure) -> Vec<Reading> {
    let own: fn(Statistic) -> Figure = match figure.unit {
        Quantity::Ns => Figure::Time,
        Quantity::Bytes => Figure::Memory,
        Quantity::Millicelsius | Quantity::Count => return Vec::new(),
    };
    let unit = match figure.unit {
        Quantity::Bytes => Unit::Bytes,
        _ => Unit::Ns,
    };
    let reading = |name, statistic| Reading::new(name, unit, found(figure, statistic));
    let mut all = Vec::new();
    // A share of another part is judged with that part.
    if figure.of.is_none() {
        all.extend(Statistic::ALL.map(|statistic| reading(own(statistic), statistic)));
    }
    if figure.unit == Quantity::Ns && figure.part == "create" {
        all.push(reading(Figure::CreationMedian, Statistic::Median));
    }
    all
}

fn found(figure: &SeriesFigure, statistic: Statistic) -> Result<Measured, (Why, String)> {
    let measured = match statistic {
        Statistic::Min => Some(Measured::fact(figure.least as f64)),
        Statistic::Max => Some(Measured::fact(figure.worst as f64)),
        Statistic::Mean => Some(Measured::fact(figure.mean)),
        Statistic::Sd => figure.sd.map(Measured::fact),
        Statistic::Median => figure.median_interval.map(|(low, high)| {
            Measured::estimate(figure.median as f64, Some((low as f64, high as f64)), "")
        }),
        Statistic::P90 => figure.p90.map(|value| Measured::fact(value as f64)),
        Statistic::P99 => figure.p99.map(|value| Measured::fact(value as f64)),
        Statistic::P95 | Statistic::P999 | Statistic::P9999 => {
            let name = statistic.name();
            let reason = format!("{name} of single measurements is not computed");
            return Err((Why::NoFigure, reason));
        }
    };
    measured.ok_or_else(|| {
        let needed = match statistic.probability() {
            Some(p) => needed_count(p, stats::DEFAULT_CONFIDENCE).unwrap_or(u64::MAX),
            None => 2,
        };
        let reason = format!("needs {needed} values, has {}", figure.count);
        (Why::TooFew, reason)
    })
}
