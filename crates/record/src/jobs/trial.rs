//! One trial's record, apart from its samples: `trials/<n>/trial.json`.

use model::EngineKind;
use serde::{Deserialize, Serialize};

pub use super::parts::{Part, cell_id};
pub use crate::ground::crowd::CrowdRecord;
pub use crate::ground::{Achieved, LoadRecord};

use crate::document::Document;
use crate::ground::{Budget, Machine, Reacted};

/// Schema of `trial.json`.
pub const TRIAL_SCHEMA: u64 = 1;

/// The end of the name of a cell that is an emulated machine.
pub const EMULATED: &str = " (emulated)";

/// [`TrialRecord::failure`] or [`TrialRecord::cut_off`] of a trial that the user ended.
pub const INTERRUPTED: &str = "interrupted";

/// One trial: the cells that ran together once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialRecord {
    /// [`TRIAL_SCHEMA`].
    pub schema: u64,
    /// Number in the order of execution, from 1; the directory's name.
    pub number: u32,
    /// The trial's name in the experiment.
    pub name: String,
    /// Round, from 1.
    pub round: u32,
    /// The instant that the barrier published, CLOCK_MONOTONIC ns; `None` if it never opened.
    pub go_ns: Option<i64>,
    /// The same instant on the wall clock, ns since 1970 UTC; `None` if it never opened, or in records of versions that
    /// did not keep it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub go_unix_ns: Option<i64>,
    /// Time from the first cell's creation until all were armed, ns.
    pub arming_ns: Option<i64>,
    /// The cells, in the experiment's order.
    pub cells: Vec<CellRecord>,
    /// Loads beside them; empty: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loads: Vec<LoadRecord>,
    /// Work moved off the cells' cpus, and the rest; `None` if it was not requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<host::isolate::Isolated>,
    /// Counters read beside each cell; empty if none were requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counters: Vec<CellCounters>,
    /// Why the trial failed; `None` when it is good.
    pub failure: Option<String>,
    /// The trial whose remaining jobs these are, by its number: it was cut off and the run was resumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<u32>,
    /// Why the trial ended before its jobs were done although nothing in it failed, such as a power cut or an interrupt. The record until
    /// then counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_off: Option<String>,
    /// The record of a scale study's trial besides its cells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crowd: Option<CrowdRecord>,
    /// Its part in the turns of its round; `None` if it had the cpus to itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<TurnsRecord>,
    /// The enforcement of its cells' budgets; `None`: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holds: Option<HoldsRecord>,
    /// While they run: the trials that this record joins, in the order of their cells. Empty in a run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arms: Vec<Arm>,
}

impl Document for TrialRecord {
    const FILE: &'static str = "trial.json";
    const SCHEMA: u64 = TRIAL_SCHEMA;
}

/// How and where the cells of a trial were held to budgets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HoldsRecord {
    /// The machine, as far as supplies depend on it.
    pub machine: Machine,
    /// Each cell that was held.
    pub cells: Vec<HeldCell>,
}

/// A cell that was held.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HeldCell {
    /// Name of the cell in the set.
    pub cell: String,
    /// Its number in the trial, from 1: that of its tasks.
    pub cell_number: u32,
    /// The cpu on which it was held.
    pub cpu: u32,
    /// The enforcer and the budget.
    pub by: HeldBy,
    /// How precisely the budget was enforced; `None` if the kernel enforces, or if the cell was never held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reacted: Option<Reacted>,
}

/// A cell's enforcer and budget, and where the budget comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldBy {
    /// The enforcer and the budget.
    pub held: Budget,
    /// Whether the experiment sets the budget; else it is the least that is certain to suffice.
    pub given: bool,
}

/// The process that sets class and cpu.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SetBy {
    /// The cell itself, with a capability that it was granted.
    Cell,
    /// The coordinator, from outside, by pid.
    Coordinator,
    /// The coordinator those of the threads that execute the virtual cpus, and inside the machine the cell its own.
    Guest,
}

/// The virtual machine that is a cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineRecord {
    /// Name of its board, or the path of the board's file.
    pub board: String,
    /// Release of its kernel.
    pub kernel: String,
    /// Number of its virtual cpus.
    pub vcpus: u32,
    /// Its memory, bytes.
    pub memory_bytes: u64,
    /// Whether KVM executes it; else QEMU's translator does, and its times are not representative.
    pub kvm: bool,
    /// Why KVM does not, where it was tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_not_kvm: Option<String>,
    /// From the start of QEMU until the guest answered, ns.
    pub boot_ns: i64,
    /// The guest's CLOCK_MONOTONIC minus the host's before the jobs, ns. The instants of its samples are on the host's clock: this was
    /// taken from each.
    pub clock_offset_ns: i64,
    /// How far that can be wrong: half the time that asking took, ns.
    pub clock_error_ns: i64,
    /// The same difference after the jobs, less the one before, ns.
    pub clock_drift_ns: i64,
    /// QEMU's threads that execute no virtual cpu, after the jobs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub helpers: Vec<HelperRecord>,
}

/// A thread of QEMU that executes no virtual cpu, as the kernel reports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HelperRecord {
    /// Its name.
    pub name: String,
    /// Its class, such as `OTHER`.
    pub class: String,
    /// Cpus that it may use.
    pub cpus: Vec<u32>,
}

impl HelperRecord {
    /// Those of a QEMU whose virtual cpus are executed by `vcpus`; the threads of virtual cpus may also be known by their names.
    pub fn of(qemu: i32, vcpus: &[i32]) -> Vec<HelperRecord> {
        let threads = host::process::threads(qemu).into_iter();
        let others = threads.filter(|thread| !vcpus.contains(thread));
        let known = |thread| {
            Some(HelperRecord {
                name: host::process::name(thread)?,
                class: host::sched::get_class(thread).ok()?.to_string(),
                cpus: host::sched::get_affinity(thread).ok()?,
            })
        };
        let is_helper = |helper: &HelperRecord| !helper.name.starts_with("CPU ");
        others.filter_map(known).filter(is_helper).collect()
    }

    /// Their classes and cpus, each once, such as `OTHER on cpu 0`.
    pub fn together(all: &[HelperRecord]) -> String {
        let mut kinds: Vec<String> = Vec::new();
        for helper in all {
            let plural = if helper.cpus.len() == 1 { "" } else { "s" };
            let cpus = host::cpus::format_list(&helper.cpus);
            let kind = format!("{} on cpu{plural} {cpus}", helper.class);
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        kinds.join(", ")
    }
}

/// One cell of a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellRecord {
    /// Identity inside the trial, such as `1-podman`; the samples file is `<id>.samples`.
    pub id: String,
    /// The engine that made the cell.
    pub engine: EngineKind,
    /// Cpu that the cell is pinned to.
    pub cpu: u32,
    /// Cpus that it may use if it is not pinned because it is a SCHED_DEADLINE thread; empty if it is pinned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpus: Vec<u32>,
    /// Requested class, such as `FIFO 80`.
    pub class_wanted: String,
    /// Class that the kernel reported once the cell was armed.
    pub class_got: Option<String>,
    /// The process that set class and affinity.
    pub set_by: SetBy,
    /// Whether the class is a real-time one; `false` labels every result "not real-time".
    pub real_time: bool,
    /// Wall time from the request to the engine until the payload's first message, ns.
    pub create_ns: Option<i64>,
    /// The cell's first clock reading after the barrier's instant, CLOCK_MONOTONIC ns.
    pub started_ns: Option<i64>,
    /// The virtual machine, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineRecord>,
    /// Remarks that affect the result, such as memory that could not be locked.
    pub notes: Vec<String>,
    /// Why the cell failed; `None` when it is good.
    pub failure: Option<String>,
    /// The task of this thread, if the cell runs a task set: then every thread has its own entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskRecord>,
    /// Tasks of a program that reports its jobs: the first is the one that is compared, each other has a samples file of its own. Empty: the
    /// one that the program opened first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reported: Vec<ReportedRecord>,
}

impl CellRecord {
    /// What belongs behind its name everywhere: whether it is a virtual machine whose instructions were translated.
    pub fn caution(&self) -> &'static str {
        match self.machine.as_ref().is_some_and(|machine| !machine.kvm) {
            true => EMULATED,
            false => "",
        }
    }

    /// The names of its samples files, that of the task that is compared first.
    pub fn samples_names(&self) -> Vec<String> {
        let beside = (2..=self.reported.len()).map(|number| beside_id(&self.id, number));
        [self.id.clone()].into_iter().chain(beside).collect()
    }
}

/// The name of the samples file of the task of this number, from 2, of a cell's program.
pub fn beside_id(id: &str, number: usize) -> String {
    format!("{id}.task-{number}")
}

/// A task of a program that reports its jobs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedRecord {
    /// The name under which the program opens it.
    pub name: String,
    /// Time between its releases, ns.
    pub period_ns: i64,
}

/// One task of a set that was run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskRecord {
    /// Its name.
    pub name: String,
    /// Name of its cell in the set; threads of one cell of the trial share it and `cell_number`.
    pub cell: String,
    /// Number of its cell in the trial, from 1.
    pub cell_number: u32,
    /// Whether it competes with the set instead of being part of it.
    #[serde(default)]
    pub competes: bool,
    /// Worst-case execution time, ns.
    pub wcet_ns: i64,
    /// Time between releases, ns.
    pub period_ns: i64,
    /// Relative deadline, ns.
    pub deadline_ns: i64,
    /// Activations planned.
    pub jobs: u32,
    /// Cpus that the thread may use.
    pub cpus: Vec<u32>,
    /// The result of calibrating its work.
    pub calibration: Option<CalibrationRecord>,
}

/// How long a step of work took at the start of a cell, in cpu time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CalibrationRecord {
    /// The minimum of all tries, ps.
    pub step_ps: u64,
    /// Number of tries.
    pub tries: u32,
    /// The difference of the two smallest, in millionths of the smallest.
    pub spread_ppm: u32,
}

/// Counters that were read beside one cell, at regular intervals, from outside.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellCounters {
    /// The cell's identity in the trial.
    pub cell: String,
    /// Planned time between two readings, ns.
    pub window_ns: i64,
    /// Events of each column, such as `cache misses of the cell`.
    pub names: Vec<String>,
    /// When each row was read, CLOCK_MONOTONIC ns.
    pub at_ns: Vec<i64>,
    /// The counts since the first reading; one list for each name.
    pub counts: Vec<Vec<u64>>,
    /// Events without a counter and why, such as `no PMU here`.
    pub lacking: Vec<String>,
    /// The counts of the cell's own thread for each activation; `None` if it did not count. They are in its samples file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activations: Option<ActivationCounters>,
}

/// A thread's counts for each of its activations, in one trial.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActivationCounters {
    /// The event of each column, such as `cache misses`.
    pub names: Vec<String>,
    /// Cost of one reading: the mean over the activations, each of which paid it after its end, ns; 0 in the record of a
    /// cell that did not end normally.
    pub reading_cost_ns: u64,
    /// The same before the release, on which the decision was based: the median of some readings after short sleeps, ns.
    pub reading_cost_before_ns: u64,
    /// Share of the thread's cpu time in which the counters counted, in millionths: less than 1,000,000 if the PMU was
    /// shared, and then each count is only a part.
    pub counted_ppm: u32,
}

/// The part that a trial had in a round whose trials took turns on their cpus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnsRecord {
    /// Jobs of a turn: job `i` belongs to turn `i / jobs`, both from 0. The same turn of all trials of the round is a lap.
    pub jobs: u32,
    /// Jobs at the beginning of each turn that are not compared.
    pub settle: u32,
    /// Trials that took turns.
    pub arms: u32,
    /// Index of this trial among them, from 0.
    pub arm: u32,
    /// Seed of the order; trials with the same seed took turns with each other.
    pub seed: u64,
}

/// One of the trials that a record joins while they run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arm {
    /// Its number, name and predecessor, as in [`TrialRecord`].
    pub number: u32,
    /// See there.
    pub name: String,
    /// See there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<u32>,
    /// Number of the joint record's cells that are its own, in their order.
    pub cells: usize,
}
