//! The data of pictures and tables of loads and periods, beyond the summary.

use super::super::pass::CellSamples;
use super::super::points::{self, Pairs};
use super::super::source::Source;
use crate::conditions;
use host::isolate::Isolated;
use record::summary::{CounterSummary, Metric, Per, PointSummary, RunSummary};
use std::collections::BTreeMap;

/// Number of values from which a correlation may decide the picture.
const ENOUGH: u64 = 30;
/// Clouds of one scatter at most, the first of the run, and marks of each.
const CLOUDS: usize = 8;
const MARKS: usize = 400;

/// Jobs of one cpu under one condition.
#[derive(Debug, Clone)]
pub struct CpuHistogram {
    /// The load beside them.
    pub load: String,
    /// Their period.
    pub period_ns: i64,
    /// The cpu.
    pub cpu: u32,
    /// Whether it was kept free of other work.
    pub isolated: bool,
    /// Lower end in ns, ten to a decade, and jobs; empty bins are left out.
    pub bins: Vec<(f64, u64)>,
}

/// One counter in all windows, or in all activations.
#[derive(Debug, Clone)]
pub struct Scatter {
    /// The counter.
    pub name: String,
    /// The span of a count.
    pub per: Per,
    /// Length of a window, ns.
    pub window_ns: i64,
    /// Load and period, then the count and the largest value in ns, or the activation's own.
    pub clouds: Vec<(String, Vec<(u64, i64)>)>,
}

/// Moves off the cpus of one trial.
#[derive(Debug, Clone)]
pub struct Moved {
    /// Its isolation.
    pub isolated: Isolated,
}

/// Data of one cell for the pictures of its conditions.
#[derive(Default)]
pub(in crate::jobs) struct OfPoint {
    /// Its counters summed up.
    pub counters: Vec<CounterSummary>,
    /// Their values beside the metric, thinned.
    clouds: Pairs,
    /// As [`CpuHistogram::bins`].
    bins: Vec<(f64, u64)>,
}

impl OfPoint {
    /// From the samples of a cell and one metric of them.
    pub fn of(samples: &CellSamples, id: &str, metric: Metric) -> OfPoint {
        let mut counters = BTreeMap::new();
        points::pairs(samples, id, metric, |of, pairs| {
            let own = (points::counter(&of, &pairs), thinned(pairs));
            counters.insert(of, own);
        });
        let mut bins: BTreeMap<i32, u64> = BTreeMap::new();
        let good = samples.good().flat_map(|part| part.jobs.values(metric));
        for value in good.filter(|&value| value > 0) {
            *bins
                .entry(((value as f64).log10() * 10.0).floor() as i32)
                .or_default() += 1;
        }
        OfPoint {
            counters: counters
                .values()
                .map(|(counter, _)| counter.clone())
                .collect(),
            clouds: (counters.into_iter())
                .map(|(of, (_, cloud))| (of, cloud))
                .collect(),
            bins: bins
                .into_iter()
                .map(|(bin, jobs)| (10f64.powf(f64::from(bin) / 10.0), jobs))
                .collect(),
        }
    }
}

pub(super) fn histograms(summary: &RunSummary, read: Vec<OfPoint>) -> Vec<CpuHistogram> {
    let wanted = conditions::of(summary).is_some();
    let points = summary.points.iter().zip(read).filter(|_| wanted);
    points
        .map(|(point, read)| CpuHistogram {
            load: point.load.clone(),
            period_ns: point.period_ns,
            cpu: point.cpu,
            isolated: point.isolated,
            bins: read.bins,
        })
        .collect()
}

/// The counter over `per` whose rank correlation is farthest from 0, in the cells where it is.
pub(super) fn scatter(
    source: &Source,
    summary: &RunSummary,
    read: &[OfPoint],
    per: Per,
) -> Option<Scatter> {
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
    let strongest = strongest.filter(|counter| strength(counter) > 0.0)?;
    let name = &strongest.name;
    let own = |point: &PointSummary| {
        let counters = of(point).into_iter().filter(|c| c.name == *name);
        counters.map(|c| strength(&c)).fold(0.0, f64::max)
    };
    // The strongest, so that the caption's correlation is seen.
    let mut drawn: Vec<(&PointSummary, &OfPoint)> = summary.points.iter().zip(read).collect();
    drawn.sort_by(|(a, _), (b, _)| own(b).total_cmp(&own(a)));
    drawn.truncate(CLOUDS);
    let mut clouds = Vec::new();
    for (point, read) in drawn {
        let Some(pairs) = read.clouds.get(&(per, name.clone())) else {
            continue;
        };
        let kept = if point.isolated { ", kept free" } else { "" };
        let period = conditions::period(point.period_ns);
        clouds.push((
            format!("{} {period}, cpu {}{kept}", point.load, point.cpu),
            pairs.clone(),
        ));
    }
    let window_ns = (source.trials.iter())
        .find_map(|trial| Some(trial.counters.first()?.window_ns))
        .unwrap_or(0);
    Some(Scatter {
        name: name.clone(),
        per,
        window_ns,
        clouds,
    })
}

/// The largest values, and every n-th of the others: a quarter of the marks is for the tail.
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

/// The cost of a reading to the threads that counted their activations, ns: smallest and largest of the run.
pub(super) fn reading_cost(source: &Source) -> Option<(u64, u64)> {
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
