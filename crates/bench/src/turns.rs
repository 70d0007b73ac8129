//! How trials that run as one take turns: all cells exist, and each trial has the cpus in its turns.

use model::Timetable;
use probe::TurnsArgs;
use record::trial::{Arm, TurnsRecord};

/// How the trials that were joined take turns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedTurns {
    pub(crate) jobs: u32,
    /// Periods by which a turn is longer than its jobs.
    pub(crate) extra: u32,
    pub(crate) settle: u32,
    pub(crate) seed: u64,
    pub(crate) arms: Vec<Arm>,
    /// The stage of each arm.
    pub(crate) stages: Vec<model::ExecutionStage>,
}

impl PlannedTurns {
    /// The arguments of a cell of the joint trial.
    pub(crate) fn args(&self, cell: usize) -> TurnsArgs {
        TurnsArgs {
            jobs: self.jobs,
            extra: self.extra,
            arms: self.count(),
            arm: self.arm_of(cell),
            seed: self.seed,
        }
    }

    /// Its record; the arm is each part's own.
    pub(crate) fn record(&self) -> TurnsRecord {
        TurnsRecord {
            jobs: self.jobs,
            settle: self.settle,
            arms: self.count(),
            arm: 0,
            seed: self.seed,
        }
    }

    /// How long it takes until every arm has had turns for so many jobs, ns.
    pub(crate) fn whole_ns(&self, jobs: u32, period_ns: i64) -> i64 {
        self.timetable(period_ns).whole_ns(jobs)
    }

    /// The cells of each arm, as places in the joint trial.
    pub(crate) fn cells(&self) -> impl Iterator<Item = std::ops::Range<usize>> + '_ {
        self.arms.iter().scan(0, |next, arm| {
            let first = *next;
            *next += arm.cells;
            Some(first..*next)
        })
    }

    fn timetable(&self, period_ns: i64) -> Timetable {
        self.args(0).timetable(period_ns)
    }

    /// The stage of the cell at this place of the joint trial.
    pub(crate) fn stage_of(&self, cell: usize) -> model::ExecutionStage {
        self.stages[self.arm_of(cell) as usize]
    }

    fn arm_of(&self, cell: usize) -> u32 {
        let arm = self.cells().position(|cells| cells.contains(&cell));
        arm.unwrap_or(0) as u32
    }

    fn count(&self) -> u32 {
        self.arms.len() as u32
    }
}
