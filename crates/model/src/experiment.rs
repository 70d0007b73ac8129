//! What an experiment file says.

use crate::{Duration, EngineKind, LoadPlan, ProgramLoad, TaskLoad, load};

/// Version of the experiment file that this timecell reads and writes.
pub const SCHEMA: i64 = 1;

/// Bounds on what an experiment may ask for; each is checked with the line it stands on.
pub struct Limits;

impl Limits {
    /// Jobs in one trial of one cell: at 32 bytes each, the largest takes 3.2 GB of shared memory.
    pub const JOBS: std::ops::RangeInclusive<i64> = 1..=100_000_000;
    /// Jobs in one trial of one cell where histograms are kept instead of samples: a day at 25 us, and some.
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
    /// Trials that one matrix may amount to.
    pub const TRIALS: std::ops::RangeInclusive<i64> = 1..=4_096;
    /// Periods in nanoseconds: 10 us (a sleep and a wake-up must fit) to 1 h.
    pub const PERIOD_NS: std::ops::RangeInclusive<i64> = 10_000..=3_600_000_000_000;
}

/// When the next job is released.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pacing {
    /// On an absolute grid: release k is at start + k * period. Activations that pass unserved are counted as missed.
    Periodic,
    /// One period after the end of the job before, as the program of the zcu102 thesis does (its appendix A).
    Relative,
}

/// What a job does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// `steps` multiply-accumulate steps on a volatile: the thesis's dummy workload (100,000 steps).
    Mac {
        /// Steps of one job.
        steps: u32,
    },
    /// Nothing: the job is the wake-up itself, as in cyclictest.
    Timer,
    /// As long as the wcet of the task whose job it is: multiply-accumulate steps, calibrated in the cell.
    Busy,
    /// What a program of the user's does: [`Workload::program`].
    Program,
    /// Such a program that neither ends nor tells its jobs: it runs for a period, once in a round, and is then ended.
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
    /// What a job does.
    pub work: Work,
    /// Activations per cell and trial; executed and missed jobs add up to it.
    pub jobs: u32,
    /// Time between releases.
    pub period: Duration,
    /// How releases are laid out in time.
    pub pacing: Pacing,
    /// When a job must have ended, after its release. `None`: at the next release, if they are periodic.
    pub deadline: Option<Duration>,
    /// The program that does the jobs, for [`Work::Program`].
    pub program: Option<ProgramLoad>,
}

impl Workload {
    /// When a job must have ended, ns after its release; `None` if it may take as long as it likes.
    pub fn deadline_ns(&self) -> Option<i64> {
        let has_jobs = self.pacing == Pacing::Periodic && self.work != Work::Endless;
        let next = || has_jobs.then_some(self.period);
        self.deadline.or_else(next).map(Duration::ns)
    }
}

/// What is kept of the jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Keep {
    /// Every sample: 32 bytes for each job.
    #[default]
    Samples,
    /// A histogram of each metric for each interval, and the worst jobs: the same room for a run of any length.
    Histograms {
        /// Length of one interval; what a power cut takes away at most.
        interval: Duration,
    },
}

impl Keep {
    /// One histogram a minute.
    pub const MINUTES: Keep = Keep::Histograms {
        interval: Duration::from_ns(60_000_000_000),
    };

    /// Jobs that one cell may be asked for in one trial.
    pub const fn jobs(self) -> std::ops::RangeInclusive<i64> {
        match self {
            Keep::Samples => Limits::JOBS,
            Keep::Histograms { .. } => Limits::JOBS_OF_HISTOGRAMS,
        }
    }
}

/// The scheduling class that is asked for.
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
    /// Class asked for; what a cell really got is recorded beside it.
    pub class: Class,
    /// Cpus for the cells: cell i is pinned to `cpus[i % len]`. Empty: one cpu, chosen on the machine
    /// (an isolated one if there is any, else the highest).
    pub cpus: Vec<u32>,
}

/// One point of the matrix: cells that run together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrialPlan {
    /// Name in tables; unique in the experiment.
    pub name: String,
    /// The engine of each cell.
    pub cells: Vec<EngineKind>,
    /// What the task of each cell has of its own; empty where none has anything.
    pub own: Vec<crate::OwnTask>,
    /// What disturbs them; empty: nothing, which is called `idle`.
    pub loads: Vec<LoadPlan>,
    /// Time between releases, where it is not the workload's.
    pub period: Option<Duration>,
    /// Activations of each cell, where they are not the workload's.
    pub jobs: Option<u32>,
    /// Whether the cells' cpus are kept free of other work.
    pub isolate: bool,
    /// Utilisation of the cell that competes with each cell of a task set, in thousandths of a cpu; 0: none does.
    pub competitors: u32,
    /// What holds the cells of a task set to their reservations; `None`: nothing does.
    pub reserve: Option<crate::Enforcer>,
    /// Cells of the task set that run; empty: all.
    pub parts: Vec<String>,
    /// Cpus for the cells, where they are not the experiment's.
    pub cpus: Vec<u32>,
    /// Whether `cells` runs once on every cpu. A plan replaces it by one cell for each cpu.
    pub per_cpu: bool,
}

impl TrialPlan {
    /// Cells alone: no load, the workload's own period and jobs.
    pub fn of(name: impl Into<String>, cells: Vec<EngineKind>) -> TrialPlan {
        TrialPlan {
            name: name.into(),
            cells,
            own: Vec::new(),
            loads: Vec::new(),
            period: None,
            jobs: None,
            isolate: false,
            competitors: 0,
            reserve: None,
            parts: Vec::new(),
            cpus: Vec::new(),
            per_cpu: false,
        }
    }

    /// Whether this is another trial over again: alike in everything but its name.
    pub fn repeats(&self, other: &TrialPlan) -> bool {
        let same = TrialPlan {
            name: self.name.clone(),
            ..other.clone()
        };
        self.name != other.name && *self == same
    }

    /// The place of the cell that records call so, such as 0 for `1-crun`.
    pub fn place_of(&self, id: &str) -> Option<usize> {
        let (number, _) = id.split_once('-')?;
        let place = number.parse::<usize>().ok()?.checked_sub(1)?;
        (place < self.cells.len()).then_some(place)
    }

    /// Its loads in one word, such as `cpu+disk`; `idle` for none.
    pub fn load_name(&self) -> String {
        load::names(&self.loads)
    }
}

/// An experiment file, resolved: every default is filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Experiment {
    /// Name; becomes part of the run's directory name. Letters, digits, `-` and `_`.
    pub name: String,
    /// The question the experiment answers; the report opens with it.
    pub question: String,
    /// How often every trial is repeated, interleaved A B C A B C.
    pub rounds: u32,
    /// The real-time task.
    pub workload: Workload,
    /// What is kept of its jobs.
    pub keep: Keep,
    /// The task set that every trial runs; `Some` where the work is [`Work::Busy`].
    pub tasks: Option<TaskLoad>,
    /// Class and cpus.
    pub scheduling: Scheduling,
    /// The trial that the others are compared with: the first one unless named.
    pub baseline: String,
    /// The unprivileged user who runs rootless cells; `None`: found on the machine.
    pub rootless_user: Option<String>,
    /// Which counters of the machine are kept beside the jobs.
    pub counters: crate::Counters,
    /// The study of growing numbers of cells that the trials are the points of.
    pub scale: Option<crate::Scale>,
    /// How trials that differ in nothing but their cells take turns; `None`: one runs after the other.
    pub turns: Option<crate::Turns>,
    /// What the run goes on to find out, at most for all its rounds: conditions as thresholds are written. Empty: all rounds
    /// take place.
    pub until: Vec<String>,
    /// The matrix.
    pub trials: Vec<TrialPlan>,
}

impl Experiment {
    /// Whether the measuring threads may count their own activations, so that room for the counts is kept: where it is
    /// asked for and every sample is kept. A study of growing numbers of cells does not count.
    pub fn counts_activations(&self) -> bool {
        let asked = matches!(
            self.counters,
            crate::Counters::WhereCheap | crate::Counters::Activations
        );
        asked && self.keep == Keep::Samples && self.scale.is_none()
    }

    /// Engines used, each once, in table order.
    pub fn engines(&self) -> Vec<EngineKind> {
        EngineKind::ALL
            .into_iter()
            .filter(|kind| self.trials.iter().any(|trial| trial.cells.contains(kind)))
            .collect()
    }

    /// The workload of a trial: the experiment's with the trial's own period and jobs. Cells may have [tasks of their
    /// own](Experiment::task_of).
    pub fn workload_of(&self, trial: &TrialPlan) -> Workload {
        Workload {
            period: trial.period.unwrap_or(self.workload.period),
            jobs: trial.jobs.unwrap_or(self.workload.jobs),
            ..self.workload.clone()
        }
    }

    /// Times between releases of its trials, ascending, each once.
    pub fn periods(&self) -> Vec<Duration> {
        let mut periods: Vec<Duration> = (self.trials.iter())
            .flat_map(|trial| self.tasks_of(trial))
            .map(|task| task.period)
            .collect();
        periods.sort_unstable();
        periods.dedup();
        periods
    }

    /// The fewest and the most activations that a cell of any trial has in a round.
    pub fn jobs(&self) -> (u32, u32) {
        let tasks = || self.trials.iter().flat_map(|trial| self.tasks_of(trial));
        let jobs = || tasks().map(|task| task.jobs);
        let own = self.workload.jobs;
        (jobs().min().unwrap_or(own), jobs().max().unwrap_or(own))
    }

    /// Cpus that its trials name themselves or take from the experiment, ascending, each once; empty: none is named.
    pub fn cpus(&self) -> Vec<u32> {
        let mut cpus: Vec<u32> = (self.trials.iter())
            .flat_map(|trial| match trial.cpus.as_slice() {
                [] => &self.scheduling.cpus,
                own => own,
            })
            .copied()
            .collect();
        cpus.sort_unstable();
        cpus.dedup();
        cpus
    }

    /// The trial of this name.
    pub fn trial(&self, name: &str) -> Option<&TrialPlan> {
        self.trials.iter().find(|trial| trial.name == name)
    }

    /// The largest number of cells that run together.
    pub fn most_cells(&self) -> usize {
        self.trials.iter().map(|t| t.cells.len()).max().unwrap_or(0)
    }
}
