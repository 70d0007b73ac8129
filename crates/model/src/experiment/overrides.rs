//! The options that override an experiment file.

use super::{ExecutionStage, ProgramLoad, TaskPolicy};
use crate::{Duration, Enforcer, EngineKind, LoadKind, Threshold};

/// Options of `timecell bench` that override the file. `None` and empty leave the file's value.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Overrides {
    /// Smoke run: see [`super::quick`].
    pub quick: bool,
    /// The program that does the jobs, instead of the experiment's work.
    pub program: Option<ProgramLoad>,
    /// Length of one cell's measurement; sets jobs = duration / period.
    pub duration: Option<Duration>,
    /// Activations per cell and trial.
    pub jobs: Option<i64>,
    /// Time between releases.
    pub period: Option<Duration>,
    /// Relative deadline: time from the release by which a job must have ended.
    pub deadline: Option<Duration>,
    /// Cpus for the cells.
    pub cpus: Vec<u32>,
    /// SCHED_FIFO priority.
    pub priority: Option<i64>,
    /// SCHED_FIFO (`true`, at the file's priority, or 80) or best effort (`false`) instead of the class in the file.
    pub fifo: Option<bool>,
    /// Repetitions of every trial.
    pub rounds: Option<i64>,
    /// Relative precision with which every ratio is to be known; `rounds` is then the maximum.
    pub decide: Option<f64>,
    /// Periods that the program, which reports its jobs, needs in each turn to catch up.
    pub catch_up: Option<u32>,
    /// Trials run one after the other: the program cannot take turns.
    pub whole_rounds: bool,
    /// Conditions until whose decision the run continues; `rounds` is then the maximum.
    pub until: Vec<Threshold>,
    /// Additional loads that run beside the cells of every trial.
    pub loads: Vec<LoadKind>,
    /// Keep only trials whose cells all use these engines.
    pub engines: Vec<EngineKind>,
    /// Keep histograms, one each minute, instead of samples.
    pub histogram: bool,
    /// Keep histograms, one per interval of this length.
    pub interval: Option<Duration>,
    /// How the threads of a task set are scheduled.
    pub task_policy: Option<TaskPolicy>,
    /// The stage on which tasks run; out of band, beside the trials in band.
    pub stage: Option<ExecutionStage>,
    /// The user who runs rootless cells.
    pub rootless_user: Option<String>,
    /// Numbers of cells of a scale study.
    pub counts: Vec<u32>,
    /// Enforcer that holds each cell of a scale study to its share, or those of a task set to their reservations.
    pub reserve: Option<Option<Enforcer>>,
}
