//! What figures and tables of loads and periods are made of, beyond the summary.

use crate::conditions;
use crate::study::{self, Source};
use host::isolate::Isolated;
use model::Keep;
use record::RecordError;
use record::summary::{CounterSummary, Per, PointSummary, RunSummary};
use std::collections::BTreeMap;

/// Values from which on a correlation may choose what is drawn.
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

/// One counter in all windows, or in all activations.
pub(crate) struct Scatter {
    pub name: String,
    pub per: Per,
    pub window_ns: i64,
    /// Load and period, then what was counted and the largest value in ns, or the activation's own.
    pub clouds: Vec<(String, Vec<(u64, i64)>)>,
}

/// What one trial moved off its cpus.
pub(crate) struct Moved {
    pub isolated: Isolated,
}

pub(crate) struct OfConditions {
    pub histograms: Vec<CpuHistogram>,
    /// Over windows, and over activations.
    pub scatters: Vec<Scatter>,
    /// Cost of reading the counters once for each activation, ns: smallest and largest of all cells.
    pub reading_cost_ns: Option<(u64, u64)>,
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
        scatters: [Per::Window, Per::Activation]
            .into_iter()
            .filter_map(|per| scatter(source, summary, per).transpose())
            .collect::<Result<_, _>>()?,
        reading_cost_ns: reading_cost(source),
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

/// The counter over `per` whose rank correlation is farthest from 0, in the cells where it is.
fn scatter(
    source: &Source,
    summary: &RunSummary,
    per: Per,
) -> Result<Option<Scatter>, RecordError> {
    let strength = |counter: &CounterSummary| -> f64 {
        let known = counter.spearman.filter(|_| counter.windows >= ENOUGH);
        known.map_or(0.0, f64::abs)
    };
    let of = |point: &'_ PointSummary| -> Vec<CounterSummary> {
        let counters = point.counters.iter();
        counters.filter(|c| c.per == per).cloned().collect()
    };
    let all: Vec<CounterSummary> = summary.points.iter().flat_map(of).collect();
    let strongest = all
        .iter()
        .max_by(|a, b| strength(a).total_cmp(&strength(b)));
    let Some(strongest) = strongest.filter(|counter| strength(counter) > 0.0) else {
        return Ok(None);
    };
    let name = &strongest.name;
    let own = |point: &PointSummary| {
        let counters = of(point).into_iter().filter(|c| c.name == *name);
        counters.map(|c| strength(&c)).fold(0.0, f64::max)
    };
    // The strongest, so that what the caption speaks of is seen.
    let mut drawn: Vec<&PointSummary> = summary.points.iter().collect();
    drawn.sort_by(|a, b| own(b).total_cmp(&own(a)));
    drawn.truncate(CLOUDS);
    let mut clouds = Vec::new();
    for point in drawn {
        let mut pairs = study::pairs(source, &point.trial, &point.cell, summary.primary)?;
        let Some(pairs) = pairs.remove(&(per, name.clone())) else {
            continue;
        };
        let kept = if point.isolated { ", kept free" } else { "" };
        let period = conditions::period(point.period_ns);
        clouds.push((
            format!("{} {period}, cpu {}{kept}", point.load, point.cpu),
            thinned(pairs),
        ));
    }
    let window_ns = (source.trials.iter())
        .find_map(|trial| Some(trial.counters.first()?.window_ns))
        .unwrap_or(0);
    Ok(Some(Scatter {
        name: name.clone(),
        per,
        window_ns,
        clouds,
    }))
}

/// The largest values, and of the others every so many-th: a quarter of the marks is for the tail.
fn thinned(mut pairs: Vec<(u64, i64)>) -> Vec<(u64, i64)> {
    if pairs.len() <= MARKS {
        return pairs;
    }
    let largest = MARKS / 4;
    let below = pairs.len() - largest;
    // In the order of values, every so many-th is a fair share of each range of values.
    pairs.sort_unstable_by_key(|pair| pair.1);
    let tail = pairs.split_off(below);
    let step = pairs.len().div_ceil(MARKS - largest).max(1);
    pairs.into_iter().step_by(step).chain(tail).collect()
}

/// What a reading cost the threads that counted their activations, ns: smallest and largest of the run.
fn reading_cost(source: &Source) -> Option<(u64, u64)> {
    let cells = source.trials.iter().flat_map(|trial| &trial.counters);
    let costs = cells
        .filter_map(|cell| Some(cell.activations.as_ref()?.reading_cost_ns))
        .filter(|cost| *cost > 0);
    costs.fold(None, |known, cost| match known {
        None => Some((cost, cost)),
        Some((least, most)) => Some((cost.min(least), cost.max(most))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thinned_cloud_keeps_its_largest_values() {
        let pairs: Vec<(u64, i64)> = (0..10_000)
            .map(|i| (i, (i as i64 * 7_919) % 10_000))
            .collect();
        let kept = thinned(pairs.clone());
        assert!(kept.len() <= MARKS, "{}", kept.len());
        for value in 9_900..10_000 {
            assert!(kept.iter().any(|pair| pair.1 == value), "{value}");
        }
        assert!(kept.iter().all(|pair| pairs.contains(pair)));
        assert_eq!(thinned(vec![(1, 2)]), [(1, 2)]);
    }
}
