//! Response times beside the prediction of cpu sharing.

use super::cell::{Cell, Ran};
use record::scale::Sharing;
use stats::Closed;
use std::collections::BTreeMap;

/// How jobs recur.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    /// Cpu time of a job that has a cpu to itself, ns.
    pub demand_alone_ns: f64,
    /// Time between the end of a job and the next release, ns.
    pub think_ns: f64,
}

/// Cpu time of a job over all cells, ns; `None` without a job.
pub(super) fn demand(cells: &[Cell]) -> Option<f64> {
    let jobs: u64 = cells.iter().map(|cell| cell.jobs).sum();
    let time: u128 = cells.iter().map(|cell| u128::from(cell.cpu_time_ns)).sum();
    (jobs > 0 && time > 0).then(|| time as f64 / jobs as f64)
}

/// The cells of one round in the time in which all of them ran: before it, some had not started, and after it, the rest had the cpus to
/// themselves.
///
/// Every cpu is a closed system of the cells that are pinned to it. Of a round of several trials, the one with most jobs is used.
/// `None` where there was no such time, or no job in it.
pub(super) fn study(cells: &[Cell], asked: Asked) -> Option<Sharing> {
    let mut jobs_of = BTreeMap::<u32, u64>::new();
    for part in cells.iter().flat_map(|cell| &cell.parts) {
        *jobs_of.entry(part.trial).or_default() += part.jobs;
    }
    let (trial, _) = jobs_of.into_iter().rev().max_by_key(|(_, jobs)| *jobs)?;
    let of_trial = |cell| {
        let cell: &Cell = cell;
        let part = cell.parts.iter().find(|part| part.trial == trial)?;
        Some((cell.cpu, part))
    };
    let parts: Vec<(u32, &Ran)> = cells.iter().filter_map(of_trial).collect();
    let from = parts.iter().map(|(_, part)| part.ran.0).max()?;
    let until = parts.iter().map(|(_, part)| part.ran.1).min()?;
    let window_ns = until.checked_sub(from).filter(|window| *window > 0)?;
    let demand_ns = demand(cells)?;
    let (mut jobs, mut all, mut weighted) = (0.0, 0.0, 0.0);
    for (_, part) in &parts {
        let weight = part.stride as f64;
        let inside = |job: &&super::cell::Job| job.release_ns >= from && job.end_ns <= until;
        for job in part.kept.iter().filter(inside) {
            jobs += weight;
            weighted += weight * (job.end_ns - job.release_ns) as f64;
        }
        all += weight * part.kept.len() as f64;
    }
    if jobs == 0.0 {
        return None;
    }
    let mut of_cpu = BTreeMap::<u32, u32>::new();
    for (cpu, _) in &parts {
        *of_cpu.entry(*cpu).or_default() += 1;
    }
    let predicted = predict(asked, &of_cpu.values().copied().collect::<Vec<_>>())?;
    Some(Sharing {
        demand_ns,
        demand_alone_ns: asked.demand_alone_ns,
        window_ns,
        jobs_in_window: (jobs / all).min(1.0),
        response_ns: weighted / jobs,
        utilization: (jobs * demand_ns / window_ns as f64 / of_cpu.len() as f64).min(1.0),
        ..predicted
    })
}

/// The prediction for so many cells on each cpu. Means are over jobs: a cell on a fuller cpu has fewer of them.
pub(super) fn predict(asked: Asked, cells_of_cpus: &[u32]) -> Option<Sharing> {
    let closed = Closed::new(asked.demand_alone_ns, asked.think_ns, 1)?;
    let mut means = [0.0; 3];
    let mut rates = [0.0; 3];
    let mut busy = 0.0;
    for &cells in cells_of_cpus {
        let predicted = closed.predict(cells)?;
        let times = [
            predicted.floor_ns,
            predicted.sharing_ns,
            predicted.ceiling_ns,
        ];
        for ((mean, rate), time) in means.iter_mut().zip(&mut rates).zip(times) {
            let jobs_per_ns = f64::from(cells) / (asked.think_ns + time);
            *mean += jobs_per_ns * time;
            *rate += jobs_per_ns;
        }
        busy += predicted.utilization;
    }
    let [floor_ns, sharing_ns, ceiling_ns] = [0, 1, 2].map(|at| means[at] / rates[at]);
    floor_ns.is_finite().then_some(Sharing {
        demand_ns: asked.demand_alone_ns,
        demand_alone_ns: asked.demand_alone_ns,
        window_ns: 0,
        jobs_in_window: 0.0,
        response_ns: sharing_ns,
        floor_ns,
        sharing_ns,
        ceiling_ns,
        utilization: 0.0,
        predicted_utilization: busy / cells_of_cpus.len() as f64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One cell on one cpu and three on the other, demand 2, rest 10: responses 2 and 102/37 (see [`Closed`]), of
    /// 1 / 12 and 3 / (10 + 102/37) jobs in a unit of time.
    #[test]
    fn means_are_over_jobs_of_all_cpus() {
        let asked = Asked {
            demand_alone_ns: 2.0,
            think_ns: 10.0,
        };
        let predicted = predict(asked, &[1, 3]).unwrap();
        let (slow, few, many) = (102.0 / 37.0, 1.0 / 12.0, 3.0 / (10.0 + 102.0 / 37.0));
        let mean = (few * 2.0 + many * slow) / (few + many);
        assert!((predicted.sharing_ns - mean).abs() < 1e-12);
        assert_eq!(predicted.floor_ns, 2.0);
        let utilization = (few * 2.0 + many * 2.0) / 2.0;
        assert!((predicted.predicted_utilization - utilization).abs() < 1e-12);
        assert!(predict(asked, &[]).is_none());
    }
}
