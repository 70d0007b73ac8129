//! The jobs of an experiment's cells, the record of them, and the bounds of both.

use super::ExecutionStage;
use super::program::{ProgramJobs, ProgramLoad};
use crate::{Duration, InputError};

/// Bounds on the requests of an experiment; faults are reported with their line.
pub struct Limits;

impl Limits {
    /// Jobs in one trial of one cell: at 32 bytes each, the largest takes 3.2 GB of shared memory.
    pub const JOBS: std::ops::RangeInclusive<i64> = 1..=100_000_000;
    /// Jobs in one trial of one cell if histograms are kept instead of samples: a little more than a day at 25 us.
    pub const JOBS_OF_HISTOGRAMS: std::ops::RangeInclusive<i64> = 1..=4_000_000_000;
    /// Length of one interval of a histogram log, ns: 1 s to 1 h.
    pub const INTERVAL_NS: std::ops::RangeInclusive<i64> = 1_000_000_000..=3_600_000_000_000;
    /// Steps of one `mac` job.
    pub const STEPS: std::ops::RangeInclusive<i64> = 1..=1_000_000_000;
    /// Rounds of an experiment.
    pub const ROUNDS: std::ops::RangeInclusive<i64> = 1..=10_000;
    /// Priorities of SCHED_FIFO, see sched(7).
    pub const PRIORITY: std::ops::RangeInclusive<i64> = 1..=99;
    /// Cells in one trial.
    pub const CELLS: std::ops::RangeInclusive<i64> = 1..=4_096;
    /// Trials that one matrix may make.
    pub const TRIALS: std::ops::RangeInclusive<i64> = 1..=4_096;
    /// Periods in nanoseconds: 10 us (a sleep and a wake-up must fit) to 1 h.
    pub const PERIOD_NS: std::ops::RangeInclusive<i64> = 10_000..=3_600_000_000_000;
}

choice! {
    /// When the next job is released.
    pub enum Pacing {
        /// On an absolute grid: release k is at start + k * period. Activations that pass without a job count as skipped.
        Periodic = "periodic",
        /// One period after the end of the job before, as the program of the zcu102 thesis does (its appendix A).
        Relative = "relative",
    }
}

/// The steps of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// `steps` multiply-accumulate steps on a volatile: the thesis's dummy workload (100,000 steps).
    Mac {
        /// Steps of one job.
        steps: u32,
    },
    /// Nothing: the job is the wake-up itself, as in cyclictest.
    Timer,
    /// Multiply-accumulate steps for as long as the wcet of the job's task, calibrated in the cell.
    Busy,
    /// The user's program: [`Workload::program`].
    Program,
    /// A program that neither ends nor reports its jobs: it runs for one period in each round and is then stopped.
    Endless,
}

impl Work {
    /// The name used in files and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Work::Mac { .. } => "mac",
            Work::Timer => "timer",
            Work::Busy => "taskset",
            Work::Program | Work::Endless => "program",
        }
    }
}

/// The real-time task of every cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workload {
    /// The steps of a job.
    pub work: Work,
    /// Activations per cell and trial; executed and skipped jobs add up to it.
    pub jobs: u32,
    /// Time between releases.
    pub period: Duration,
    /// How releases are laid out in time.
    pub pacing: Pacing,
    /// Relative deadline: time from the release by which a job must have ended. `None`: at the next release if jobs are
    /// periodic.
    pub deadline: Option<Duration>,
    /// The program that does the jobs, for [`Work::Program`].
    pub program: Option<ProgramLoad>,
    /// The stage on which the task runs.
    pub stage: ExecutionStage,
}

impl Workload {
    /// Relative deadline, ns from the release; `None`: no deadline.
    pub fn deadline_ns(&self) -> Option<i64> {
        let has_jobs = self.pacing == Pacing::Periodic && self.work != Work::Endless;
        let next = || has_jobs.then_some(self.period);
        self.deadline.or_else(next).map(Duration::ns)
    }
}

/// The record of the jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Keep {
    /// Every sample: 32 bytes for each job.
    #[default]
    Samples,
    /// A histogram of each metric for each interval, and the worst jobs: bounded space per interval, for any number of jobs.
    Histograms {
        /// Length of one interval, which is also the most that a power cut loses.
        interval: Duration,
    },
}

impl Keep {
    /// One histogram a minute.
    pub const MINUTES: Keep = Keep::Histograms {
        interval: Duration::from_ns(60_000_000_000),
    };

    /// Maximum number of jobs of one cell in one trial.
    pub const fn jobs(self) -> std::ops::RangeInclusive<i64> {
        match self {
            Keep::Samples => Limits::JOBS,
            Keep::Histograms { .. } => Limits::JOBS_OF_HISTOGRAMS,
        }
    }
}

/// The requested scheduling class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// SCHED_FIFO with a priority of 1 to 99.
    Fifo {
        /// Static priority, 99 is the highest.
        priority: u8,
    },
    /// SCHED_OTHER, best effort: results are labelled "not real-time".
    Other,
}

/// How the cells are scheduled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scheduling {
    /// Requested class; the class that a cell really had is recorded too.
    pub class: Class,
    /// Cpus for the cells: cell i is pinned to `cpus[i % len]`. Empty: one cpu, chosen on the machine (an isolated one if
    /// there is one, else the highest).
    pub cpus: Vec<u32>,
}

/// How long an endless program runs in each round, ns.
pub(super) const RUN_OF_ENDLESS: i64 = 500_000_000;

impl ProgramLoad {
    /// The work, as changed by the cell's own steps or program.
    pub fn work(&self) -> Work {
        match self.jobs {
            ProgramJobs::Executions | ProgramJobs::Reported => Work::Program,
            ProgramJobs::Endless => Work::Endless,
        }
    }
}

/// The number given by an option, checked against its bounds; `what` names it in messages.
pub(super) fn checked(
    option: &str,
    what: &str,
    value: i64,
    range: &std::ops::RangeInclusive<i64>,
) -> Result<u32, InputError> {
    u32::try_from(value)
        .ok()
        .filter(|_| range.contains(&value))
        .ok_or_else(|| {
            InputError::new(
                option,
                format!("the {what} is {value}"),
                format!("it must be {} to {}", range.start(), range.end()),
            )
        })
}
