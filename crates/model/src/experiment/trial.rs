//! Trials: cells that run together, and what each of them has of its own.

use super::program::ProgramLoad;
use super::work::Work;
use crate::{Duration, Enforcer, EngineKind, LoadPlan, load};

/// One point of the matrix: cells that run together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrialPlan {
    /// Name in tables; unique in the experiment.
    pub name: String,
    /// The engine of each cell.
    pub cells: Vec<EngineKind>,
    /// What the task of each cell has of its own; empty where none has anything.
    pub own: Vec<OwnTask>,
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
    pub reserve: Option<Enforcer>,
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

/// What the task of one cell has in place of the trial's; all `None`: nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnTask {
    /// What tables call the cell; unique in the trial.
    pub name: Option<String>,
    /// What a job does: the steps of `mac`, or a program.
    pub work: Option<Work>,
    /// The program, for [`Work::Program`].
    pub program: Option<ProgramLoad>,
    /// Time between releases.
    pub period: Option<Duration>,
    /// When a job must have ended, after its release.
    pub deadline: Option<Duration>,
    /// Activations; `None`: as many as take as long as the trial's.
    pub jobs: Option<u32>,
    /// Priority of SCHED_FIFO.
    pub priority: Option<u8>,
}

impl TrialPlan {
    /// Gives its cells so many jobs again as take as long as the trial.
    pub(crate) fn forget_own_jobs(&mut self) {
        for own in &mut self.own {
            own.jobs = None;
        }
    }
}
