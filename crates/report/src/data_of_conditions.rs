//! What figures and tables of loads and periods are made of, beyond the summary.

use crate::conditions;
use crate::study::{self, Source};
use host::isolate::Isolated;
use model::Keep;
use record::RecordError;
use record::summary::{PointSummary, RunSummary};
use std::collections::BTreeMap;

/// Windows from which on a correlation may choose what is drawn.
const ENOUGH: u64 = 30;
/// Clouds of one scatter at most, the first of the run, and marks of each.
const CLOUDS: usize = 8;
const MARKS: usize = 400;

/// Jobs of one cpu under one condition.
pub(crate) struct CpuHistogram {
    pub load: String,
    pub period_ns: i64,
    pub cpu: u32,
    pub isolated: bool,
    /// Lower end in ns, ten to a decade, and jobs; empty bins are left out.
    pub bins: Vec<(f64, u64)>,
}

/// One counter in all windows.
pub(crate) struct Scatter {
    pub name: String,
    pub window_ns: i64,
    /// Load and period, then what was counted and the largest value in ns.
    pub clouds: Vec<(String, Vec<(u64, i64)>)>,
}

/// What one trial moved off its cpus.
pub(crate) struct Moved {
    pub isolated: Isolated,
}

pub(crate) struct OfConditions {
    pub histograms: Vec<CpuHistogram>,
    pub scatter: Option<Scatter>,
    pub moved: Vec<Moved>,
    pub lacking: Vec<String>,
}

pub(crate) fn gather(source: &Source, summary: &RunSummary) -> Result<OfConditions, RecordError> {
    let mut lacking: Vec<String> = Vec::new();
    for what in (source.trials.iter()).flat_map(|t| t.counters.iter().flat_map(|c| &c.lacking)) {
        if !lacking.contains(what) {
            lacking.push(what.clone());
        }
    }
    Ok(OfConditions {
        histograms: histograms(source, summary)?,
        scatter: scatter(source, summary)?,
        moved: (source.trials.iter())
            .filter_map(|trial| {
                Some(Moved {
                    isolated: trial.isolation.clone()?,
                })
            })
            .collect(),
        lacking,
    })
}

fn histograms(source: &Source, summary: &RunSummary) -> Result<Vec<CpuHistogram>, RecordError> {
    let mut histograms = Vec::new();
    let wanted = conditions::of(summary).is_some() && source.plan.keep == Keep::Samples;
    for point in summary.points.iter().filter(|_| wanted) {
        let mut bins: BTreeMap<i32, u64> = BTreeMap::new();
        for (_, values) in source.rounds(&point.trial, &point.cell, summary.primary)? {
            for value in values.into_iter().filter(|&value| value > 0) {
                *bins
                    .entry(((value as f64).log10() * 10.0).floor() as i32)
                    .or_default() += 1;
            }
        }
        histograms.push(CpuHistogram {
            load: point.load.clone(),
            period_ns: point.period_ns,
            cpu: point.cpu,
            isolated: point.isolated,
            bins: bins
                .into_iter()
                .map(|(bin, jobs)| (10f64.powf(f64::from(bin) / 10.0), jobs))
                .collect(),
        });
    }
    Ok(histograms)
}

fn scatter(source: &Source, summary: &RunSummary) -> Result<Option<Scatter>, RecordError> {
    let strength = |name: &str| -> f64 {
        let all = summary.points.iter().flat_map(|point| &point.counters);
        all.filter(|counter| counter.name == name && counter.windows >= ENOUGH)
            .filter_map(|counter| Some(counter.spearman?.abs()))
            .fold(0.0, f64::max)
    };
    let names = summary
        .points
        .iter()
        .flat_map(|p| p.counters.iter().map(|c| &c.name));
    let Some(name) = names.max_by(|a, b| strength(a).total_cmp(&strength(b))) else {
        return Ok(None);
    };
    if strength(name) == 0.0 {
        return Ok(None);
    }
    let mut drawn: Vec<&PointSummary> = summary.points.iter().collect();
    let own = |point: &PointSummary| {
        let counters = point
            .counters
            .iter()
            .filter(|c| c.name == *name && c.windows >= ENOUGH);
        counters
            .filter_map(|c| Some(c.spearman?.abs()))
            .fold(0.0, f64::max)
    };
    // The strongest, so that what the caption speaks of is seen.
    drawn.sort_by(|a, b| own(b).total_cmp(&own(a)));
    drawn.truncate(CLOUDS);
    let mut clouds = Vec::new();
    for point in drawn {
        let mut windows = study::windows(source, &point.trial, &point.cell, summary.primary)?;
        let Some(mut windows) = windows.remove(name) else {
            continue;
        };
        let step = windows.len().div_ceil(MARKS).max(1);
        windows = windows.into_iter().step_by(step).collect();
        let kept = if point.isolated { ", kept free" } else { "" };
        let period = conditions::period(point.period_ns);
        clouds.push((
            format!("{} {period}, cpu {}{kept}", point.load, point.cpu),
            windows,
        ));
    }
    let window_ns = (source.trials.iter())
        .find_map(|trial| Some(trial.counters.first()?.window_ns))
        .unwrap_or(0);
    Ok(Some(Scatter {
        name: name.clone(),
        window_ns,
        clouds,
    }))
}
