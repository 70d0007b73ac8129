//! What a run has that a published figure could stand beside.

use model::{EngineKind, Experiment, Work};
use record::series::{Quantity, SeriesSummary};
use record::summary::{Metric, RunSummary};

use super::source::{About, Kind};

/// One number of a run.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Own {
    pub about: About,
    pub kind: Kind,
    /// The cell's or trial's name in tables.
    pub label: String,
    /// `None` where any engine corresponds.
    pub engine: Option<EngineKind>,
    /// What a run of single measurements calls it.
    pub subject: Option<String>,
    /// Cells of the trial.
    pub cells: u32,
    pub load: String,
    pub period_us: Option<u64>,
    pub real_time: bool,
    /// ns, or bytes.
    pub value: f64,
}

/// The numbers of a run, cell by cell.
pub(super) fn numbers(summary: &RunSummary, plan: &Experiment) -> Vec<Own> {
    let mut all = Vec::new();
    for cell in &summary.cells {
        let Some(trial) = plan.trials.iter().find(|trial| trial.name == cell.trial) else {
            continue;
        };
        let period_us = u64::try_from(plan.workload_of(trial).period.ns() / 1_000).ok();
        for metric in &cell.metrics {
            let about = match metric.metric {
                Metric::WakeupLatency => About::WakeupLatency,
                // The published jobs are multiply-accumulate steps too.
                Metric::ExecutionTime if matches!(plan.workload.work, Work::Mac { .. }) => {
                    About::ExecutionTime
                }
                Metric::ExecutionTime | Metric::ResponseTime => continue,
            };
            let s = &metric.summary;
            let quantile = |p| s.quantile(p).and_then(|q| q.value_ns).map(|ns| ns as f64);
            for (kind, value) in [
                (Kind::Min, Some(s.min_ns as f64)),
                (Kind::Median, Some(s.median_ns as f64)),
                (Kind::Mean, Some(s.mean_ns)),
                (Kind::Sd, s.sd_ns),
                (Kind::P95, quantile(0.95)),
                (Kind::P99, quantile(0.99)),
                (Kind::Max, Some(s.max_ns as f64)),
            ] {
                all.extend(value.map(|value| Own {
                    about,
                    kind,
                    label: cell.label.clone(),
                    engine: Some(cell.engine),
                    subject: None,
                    cells: trial.cells.len() as u32,
                    load: trial.load_name(),
                    period_us,
                    real_time: cell.real_time,
                    value,
                }));
            }
        }
    }
    for skew in &summary.skews {
        let trial = plan.trials.iter().find(|trial| trial.name == skew.trial);
        let values: Vec<i64> = skew
            .skew_ns
            .iter()
            .filter_map(|&ns| i64::try_from(ns).ok())
            .collect();
        all.extend(stats::median_of(&values).map(|median| Own {
            about: About::StartSkew,
            kind: Kind::Value,
            label: format!("{} (median of {} rounds)", skew.trial, values.len()),
            engine: None,
            subject: None,
            cells: skew.cells,
            load: trial.map_or_else(|| "idle".to_owned(), |trial| trial.load_name()),
            period_us: None,
            real_time: true,
            value: median as f64,
        }));
    }
    all
}

/// The numbers of a run of single measurements: those of the scenario `startup`, from the request until nothing is left.
pub(super) fn single(summary: &SeriesSummary) -> Vec<Own> {
    if summary.scenario != "startup" {
        return Vec::new();
    }
    let whole = |f: &&record::series::SeriesFigure| {
        f.of.is_none() && f.part == "request to gone" && f.unit == Quantity::Ns
    };
    let mut all = Vec::new();
    for figure in summary.figures.iter().filter(whole) {
        for (kind, value) in [
            (Kind::Median, figure.median as f64),
            (Kind::Mean, figure.mean),
            (Kind::Max, figure.worst as f64),
        ] {
            all.push(Own {
                about: About::Startup,
                kind,
                label: format!("{}, {} rounds", figure.subject, figure.count),
                engine: None,
                subject: Some(figure.subject.clone()),
                cells: 1,
                load: "idle".to_owned(),
                period_us: None,
                real_time: true,
                value,
            });
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::series::{SERIES_SUMMARY_SCHEMA, SeriesFigure};

    #[test]
    fn of_a_start_up_run_the_whole_counts_and_its_shares_do_not() {
        let figure = |part: &str, of: Option<&str>| SeriesFigure {
            subject: "podman, rootfs".to_owned(),
            part: part.to_owned(),
            of: of.map(str::to_owned),
            unit: Quantity::Ns,
            count: 5,
            failed: 0,
            least: 1,
            median: 2,
            median_interval: None,
            mean: 2.5,
            sd: None,
            p90: None,
            p99: None,
            worst: 9,
            against_baseline: None,
            rounds_compared: 0,
        };
        let mut summary = SeriesSummary {
            schema: SERIES_SUMMARY_SCHEMA,
            run: "r".to_owned(),
            scenario: "startup".to_owned(),
            baseline_subject: None,
            figures: vec![
                figure("request to gone", None),
                figure("create", Some("request to gone")),
                figure("request to first instruction", None),
            ],
            not_measured: Vec::new(),
            unmet: Vec::new(),
            failures: Vec::new(),
        };
        let all = single(&summary);
        let values: Vec<(Kind, f64)> = all.iter().map(|own| (own.kind, own.value)).collect();
        assert_eq!(
            values,
            [(Kind::Median, 2.0), (Kind::Mean, 2.5), (Kind::Max, 9.0)]
        );
        assert_eq!(all[0].subject.as_deref(), Some("podman, rootfs"));
        summary.scenario = "other".to_owned();
        assert!(single(&summary).is_empty());
    }
}
