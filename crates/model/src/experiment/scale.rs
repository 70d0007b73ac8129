//! `[scale]`: how does a machine cope with more and more cells? Engines and counts, and the trials that follow from them.

use super::{trial::TrialPlan, work::Limits};
use crate::{Bytes, Duration, Enforcer, EngineKind};

/// Numbers of cells that run together, as in the study that stopped at 100 (zcu102 thesis, 4.1.6), and an order of
/// magnitude more.
pub const COUNTS: [u32; 15] = [
    1, 2, 10, 16, 20, 32, 50, 64, 80, 100, 128, 256, 512, 1024, 2048,
];

/// A scale study: growing numbers of cells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scale {
    /// The engines; a trial has cells of one engine only.
    pub engines: Vec<EngineKind>,
    /// Cells that run together, ascending.
    pub counts: Vec<u32>,
    /// Share of the cells of one trial that may fail, in thousandths; if more do, larger counts of that engine are skipped.
    pub failure_limit: u32,
    /// Cells that are created at the same time.
    pub parallel: u32,
    /// Approximate number of jobs of all cells of one trial; a cell has at least [`Scale::LEAST_JOBS`] and at most the
    /// workload's.
    pub total_jobs: u32,
    /// Enforcer that holds every cell to an equal share of the cpu time the kernel may grant; `None`: only the class applies.
    pub reserve: Option<Enforcer>,
    /// Memory that is left to the rest of the machine: if less is available, no more cells are made and the running ones
    /// are stopped. `None`: a twentieth of the machine's, at least 128 MiB and at most half of it.
    pub memory_reserve: Option<Bytes>,
    /// The cells are stopped when ordinary work has not run for longer than this, [`Scale::STARVATION_NS`].
    pub starvation_limit: Duration,
}

impl Scale {
    /// The enforcers that may hold the cells of a study, by their names in files and options; `none`: only the class
    /// applies.
    pub fn reserves() -> Vec<(&'static str, Option<Enforcer>)> {
        let held = Enforcer::OF_SCALE.iter().copied().map(Some);
        let named = |reserve| (Scale::reserve_name(reserve), reserve);
        std::iter::once(None).chain(held).map(named).collect()
    }

    /// The name of one of [`Scale::reserves`].
    pub fn reserve_name(reserve: Option<Enforcer>) -> &'static str {
        reserve.map_or("none", Enforcer::name)
    }

    /// Minimum number of jobs of every cell if the workload has as many: enough for a 99th percentile.
    pub const LEAST_JOBS: u32 = 300;
    /// Bounds of `parallel`.
    pub const PARALLEL: std::ops::RangeInclusive<i64> = 1..=256;
    /// Default of `starvation_limit`.
    pub const STARVATION_LIMIT: Duration = Duration::from_ns(5_000_000_000);
    /// Bounds of `starvation_limit`, ns. Real-time throttling alone keeps ordinary work waiting for 950 ms; other watchdogs
    /// restart a machine after a minute.
    pub const STARVATION_NS: std::ops::RangeInclusive<i64> = 1_000_000_000..=60_000_000_000;
    /// Bounds of `total_jobs`.
    pub const TOTAL_JOBS: std::ops::RangeInclusive<i64> = 1..=*Limits::JOBS.end();

    /// Jobs of each of `count` cells if the workload has `jobs`.
    pub fn jobs(&self, count: u32, jobs: u32) -> u32 {
        (self.total_jobs / count.max(1))
            .max(Scale::LEAST_JOBS)
            .min(jobs)
    }

    /// The trials: every engine with ascending counts, one engine after the other.
    pub fn trials(&self, jobs: u32) -> Vec<TrialPlan> {
        let counts = |kind: EngineKind| {
            self.counts.iter().map(move |&count| TrialPlan {
                jobs: Some(self.jobs(count, jobs)),
                ..TrialPlan::of(
                    Scale::trial_name(kind, count),
                    vec![kind; usize::try_from(count).unwrap_or(1)],
                )
            })
        };
        self.engines.iter().copied().flat_map(counts).collect()
    }

    /// Such as `embedded-64`.
    pub fn trial_name(kind: EngineKind, count: u32) -> String {
        format!("{kind}-{count}")
    }
}

/// A fault, and the remedy.
pub(super) type Fault = (String, String);

pub(super) fn check_engines(engines: &[EngineKind]) -> Result<(), Fault> {
    if engines.is_empty() {
        return Err((
            "no engine is given".to_owned(),
            "name at least one, such as \"embedded\"".to_owned(),
        ));
    }
    let twice = (engines.iter().enumerate()).find(|(at, kind)| engines[..*at].contains(kind));
    match twice {
        Some((_, kind)) => Err((
            format!("the engine {kind} is named twice"),
            "name it once".to_owned(),
        )),
        None => Ok(()),
    }
}

pub(super) fn check_counts(counts: &[u32]) -> Result<(), Fault> {
    let range = Limits::CELLS;
    let wanted = format!(
        "give ascending numbers from {} to {}, such as 1, 2, 10",
        range.start(),
        range.end()
    );
    if let Some(odd) = counts.iter().find(|n| !range.contains(&i64::from(**n))) {
        return Err((format!("a trial cannot have {odd} cells"), wanted));
    }
    if counts.is_empty() || !counts.is_sorted_by(|a, b| a < b) {
        return Err(("the counts do not ascend".to_owned(), wanted));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scale() -> Scale {
        Scale {
            engines: vec![EngineKind::Crun, EngineKind::Bare],
            counts: vec![1, 2, 64],
            failure_limit: 10,
            parallel: 8,
            total_jobs: 100_000,
            reserve: None,
            memory_reserve: None,
            starvation_limit: Scale::STARVATION_LIMIT,
        }
    }

    #[test]
    fn every_engine_has_its_counts_ascending_and_fewer_jobs_the_more_cells() {
        let trials = scale().trials(5_000);
        let names: Vec<&str> = trials.iter().map(|t| t.name.as_str()).collect();
        assert_eq!(
            names,
            ["crun-1", "crun-2", "crun-64", "bare-1", "bare-2", "bare-64"]
        );
        assert_eq!(trials[2].cells, [EngineKind::Crun; 64]);
        let jobs: Vec<Option<u32>> = trials.iter().take(3).map(|t| t.jobs).collect();
        assert_eq!(jobs, [Some(5_000), Some(5_000), Some(1_562)]);
        assert_eq!(scale().jobs(4_096, 5_000), 300);
        assert_eq!(scale().jobs(4_096, 50), 50);
    }
}
