//! Trials: cells that run together, and the settings of each.

use super::ExecutionStage;
use super::program::ProgramLoad;
use super::work::Work;
use crate::{Duration, Enforcer, EngineKind, LoadPlan, Machine, load};

/// One point of the matrix: cells that run together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrialPlan {
    /// Name in tables; unique in the experiment.
    pub name: String,
    /// The engine of each cell.
    pub cells: Vec<EngineKind>,
    /// The own settings of each cell's task; empty if no cell has any.
    pub own: Vec<OwnTask>,
    /// Loads that disturb them; empty: none, which is called `idle`.
    pub loads: Vec<LoadPlan>,
    /// Time between releases; `None`: the workload's.
    pub period: Option<Duration>,
    /// Activations of each cell; `None`: the workload's.
    pub jobs: Option<u32>,
    /// The stage on which its tasks run; `None`: the workload's.
    pub stage: Option<ExecutionStage>,
    /// Whether the cells' cpus are kept free of other work.
    pub isolate: bool,
    /// Utilisation of the cell that competes with each cell of a task set, in thousandths of a cpu; 0: none does.
    pub competitors: u32,
    /// Enforcer that holds the cells of a task set to their reservations; `None`: none.
    pub reserve: Option<Enforcer>,
    /// Cells of the task set that run; empty: all.
    pub parts: Vec<String>,
    /// Cpus for the cells; empty: the experiment's.
    pub cpus: Vec<u32>,
    /// Whether `cells` runs once on every cpu. A plan replaces it by one cell for each cpu.
    pub per_cpu: bool,
    /// The virtual machine of its cells of engine `qemu`, where it is not the experiment's.
    pub machine: Machine,
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
            stage: None,
            isolate: false,
            competitors: 0,
            reserve: None,
            parts: Vec::new(),
            cpus: Vec::new(),
            per_cpu: false,
            machine: Machine::default(),
        }
    }

    /// Whether this trial is the same as another in everything but its name.
    pub fn repeats(&self, other: &TrialPlan) -> bool {
        let same = TrialPlan {
            name: self.name.clone(),
            ..other.clone()
        };
        self.name != other.name && *self == same
    }

    /// The index of the cell with this name in records, such as 0 for `1-crun`.
    pub fn place_of(&self, id: &str) -> Option<usize> {
        let (number, _) = id.split_once('-')?;
        let place = number.parse::<usize>().ok()?.checked_sub(1)?;
        (place < self.cells.len()).then_some(place)
    }

    /// The engines of its cells, and of those that its loads run in.
    pub fn engines(&self) -> impl Iterator<Item = EngineKind> {
        let of_loads = self.loads.iter().filter_map(|load| load.cell);
        self.cells.iter().copied().chain(of_loads)
    }

    /// Its loads in one word, such as `cpu+disk`; `idle` for none.
    pub fn load_name(&self) -> String {
        load::names(&self.loads)
    }
}

/// The settings of one cell's task that replace the trial's; all `None`: no replacement.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnTask {
    /// Name of the cell in tables; unique in the trial.
    pub name: Option<String>,
    /// The steps of a job: those of `mac`, or a program.
    pub work: Option<Work>,
    /// The program, for [`Work::Program`].
    pub program: Option<ProgramLoad>,
    /// Time between releases.
    pub period: Option<Duration>,
    /// Relative deadline: time from the release by which a job must have ended.
    pub deadline: Option<Duration>,
    /// Activations; `None`: as many as fill the time of the trial's.
    pub jobs: Option<u32>,
    /// Priority of SCHED_FIFO.
    pub priority: Option<u8>,
}

impl TrialPlan {
    /// Gives its cells as many jobs again as fill the time of the trial.
    pub(crate) fn forget_own_jobs(&mut self) {
        for own in &mut self.own {
            own.jobs = None;
        }
    }
}
