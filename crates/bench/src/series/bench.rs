//! A scenario of single measurements: its options, its declaration before anything is done, and how it measures.

use std::collections::BTreeMap;
use std::path::PathBuf;

use engine::User;
use model::{EngineKind, InputError, InputErrors, Limits, Requirement};
use record::run::Run;
use record::series::{Quantity, Swept};
use record::{Condition, NotMeasured};
use serde::{Deserialize, Serialize};

use crate::BenchError;
use crate::here::allowed_cpus;
use crate::needs::Needs;
use crate::series::{HEARTBEAT_NS, Sweep};
use crate::session::Interrupt;

/// One scenario of this kind.
#[derive(Debug)]
pub struct SeriesScenario {
    /// Its name on the command line.
    pub name: &'static str,
    /// The question it answers.
    pub question: &'static str,
    /// Rounds unless asked otherwise, and with `--quick`.
    pub rounds: (u32, u32),
    /// Its own option, if any.
    pub own: OwnOption,
    pub(crate) prepare: fn(&SeriesOptions) -> Result<Prepared, InputErrors>,
}

/// An option of one scenario only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnOption {
    /// None.
    Nothing,
    /// [`SeriesOptions::cpus`].
    Cpus,
    /// [`SeriesOptions::heartbeat_timeout_ns`].
    Heartbeat,
    /// [`SeriesOptions::sweep`].
    Sweep,
    /// [`SeriesOptions::mission`], which is required and takes the place of engines.
    Mission,
}

/// The user's options. `plan.json` of a run has them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SeriesOptions {
    /// Rounds; `None`: the scenario's own number.
    pub rounds: Option<i64>,
    /// Few rounds: shows that everything works, but gives no figures to rely on.
    pub quick: bool,
    /// Only subjects of these engines; empty: all.
    pub engines: Vec<EngineKind>,
    /// Cpus that the threads of `nqueens` may use; empty: all.
    pub cpus: Vec<u32>,
    /// User of rootless cells; `None`: found on the machine.
    pub rootless_user: Option<String>,
    /// A heartbeat older than this is missing, ns; for `recovery`.
    pub heartbeat_timeout_ns: i64,
    /// Sizes of cells; for `startup`.
    pub sweep: Sweep,
    /// Absolute path of the mission file; for `mission`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mission: Option<PathBuf>,
}

impl Default for SeriesOptions {
    fn default() -> SeriesOptions {
        SeriesOptions {
            rounds: None,
            quick: false,
            engines: Vec::new(),
            cpus: Vec::new(),
            rootless_user: None,
            heartbeat_timeout_ns: HEARTBEAT_NS,
            sweep: Sweep::default(),
            mission: None,
        }
    }
}

impl SeriesOptions {
    /// These options with the user of rootless cells by name, so that a run that another user resumes keeps that user.
    fn with_user(&self) -> SeriesOptions {
        let found = || self.user().ok().map(|user| user.name);
        SeriesOptions {
            rootless_user: self.rootless_user.clone().or_else(found),
            ..self.clone()
        }
    }

    /// Whether subjects of this engine are wanted. Virtual machines, which take seconds to boot, are if they are named.
    pub(crate) fn wants(&self, kind: EngineKind) -> bool {
        self.engines.contains(&kind) || (self.engines.is_empty() && !kind.is_machine())
    }

    /// The user of rootless cells, or the requirement that is unmet.
    pub(crate) fn user(&self) -> Result<User, Box<Requirement>> {
        engine::users::choose(self.rootless_user.as_deref())
    }
}

/// A scenario's declaration before anything is done.
pub(crate) struct Prepared {
    /// Measurements, in the order of the report.
    pub tasks: Vec<Task>,
    /// Their needs, and those not measured.
    pub needs: Needs,
    /// Of the measurement.
    pub conditions: Vec<Condition>,
    /// Choices left to the machine that no condition names.
    pub found: BTreeMap<String, String>,
    /// The subject that others are compared with.
    pub baseline: Option<String>,
    /// The sizes of subjects, in a sweep.
    pub sweep: Vec<Swept>,
    /// Sets everything up.
    pub open: Opening,
}

/// Makes of a plan a scenario that is set up, for this run.
pub(crate) type Opening = Box<dyn FnOnce(&Run) -> Result<Box<dyn Bench>, BenchError>>;

/// One thing that is measured once in every round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// The subject.
    pub subject: String,
    /// The part that a failure belongs to.
    pub part: String,
    /// How long one measurement should take, ns; only for the estimate of the whole.
    pub guess_ns: i64,
}

/// A value that a measurement gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reading {
    pub part: String,
    pub of: Option<String>,
    pub unit: Quantity,
    pub value: i64,
}

impl Task {
    /// The measurement, in one line.
    pub(super) fn name(&self) -> String {
        format!("{}, {}", self.subject, self.part)
    }
}

impl Reading {
    /// A figure that is not a share of another.
    pub(crate) fn whole(part: impl Into<String>, unit: Quantity, value: i64) -> Reading {
        Reading {
            part: part.into(),
            of: None,
            unit,
            value,
        }
    }

    /// A share of the figure `of`.
    pub(crate) fn share(
        part: impl Into<String>,
        of: impl Into<String>,
        unit: Quantity,
        value: i64,
    ) -> Reading {
        Reading {
            of: Some(of.into()),
            ..Reading::whole(part, unit, value)
        }
    }
}

/// Where and when a measurement takes place.
pub(crate) struct Turn<'a> {
    /// Place of the task in the list.
    pub task: usize,
    /// Number of the measurement in the run, from 1.
    pub number: u32,
    /// To be checked in every wait.
    pub interrupt: &'a Interrupt,
    /// Takes remarks that explain the values; they go on record.
    pub remarks: &'a mut Vec<String>,
}

/// A scenario that is set up. Dropping it leaves the machine as it was.
pub(crate) trait Bench {
    /// Measures one task once. The error, one sentence, goes on record; the run goes on.
    fn measure(&mut self, turn: &mut Turn<'_>) -> Result<Vec<Reading>, String>;
}

/// A run's plan.
pub struct SeriesPlan {
    /// Name of the scenario.
    pub scenario: &'static str,
    /// The question it answers.
    pub question: &'static str,
    /// How often every task is measured.
    pub rounds: u32,
    pub(super) options: SeriesOptions,
    pub(crate) prepared: Prepared,
}

impl SeriesPlan {
    /// The plan of a scenario. Changes nothing on the machine.
    ///
    /// # Errors
    /// When the number of rounds is out of range, something is named that this host does not have, or the mission file is faulty.
    pub fn new(
        scenario: &SeriesScenario,
        options: &SeriesOptions,
    ) -> Result<SeriesPlan, InputErrors> {
        let (usual, quick) = scenario.rounds;
        let own = if options.quick { quick } else { usual };
        let rounds = options.rounds.unwrap_or(own.into());
        if !Limits::ROUNDS.contains(&rounds) {
            return Err(InputError::new(
                "--rounds",
                format!("the number of rounds is {rounds}"),
                format!(
                    "it must be {} to {}",
                    Limits::ROUNDS.start(),
                    Limits::ROUNDS.end()
                ),
            )
            .into());
        }
        let allowed = allowed_cpus();
        if let Some(absent) = options.cpus.iter().find(|cpu| !allowed.contains(cpu)) {
            return Err(InputError::new(
                "--cpus",
                format!(
                    "cpu {absent} does not exist, is offline, or may not be used by this process"
                ),
                format!("the usable cpus are {}", host::cpus::format_list(&allowed)),
            )
            .into());
        }
        let memory = host::file::text("/proc/meminfo").unwrap_or_default();
        if let Some(bytes) = host::process::bytes(&memory, "MemTotal") {
            options.sweep.fits(bytes)?;
        }
        let mut prepared = (scenario.prepare)(options)?;
        let measured = |subject: &str| prepared.tasks.iter().any(|t| t.subject == subject);
        if prepared.baseline.as_deref().is_some_and(|b| !measured(b)) {
            prepared.baseline = prepared.tasks.first().map(|task| task.subject.clone());
        }
        Ok(SeriesPlan {
            scenario: scenario.name,
            question: scenario.question,
            rounds: u32::try_from(rounds).unwrap_or(u32::MAX),
            options: options.with_user(),
            prepared,
        })
    }

    /// The tasks of every round.
    pub fn tasks(&self) -> &[Task] {
        &self.prepared.tasks
    }

    /// Tasks left out, and why.
    pub fn not_measured(&self) -> &[NotMeasured] {
        &self.prepared.needs.not_measured
    }

    /// The scenario's requirements, met and unmet.
    pub fn requirements(&self) -> &[Requirement] {
        &self.prepared.needs.requirements
    }

    /// The subject that others are compared with.
    pub fn baseline(&self) -> Option<&str> {
        self.prepared.baseline.as_deref()
    }

    /// How long the run should take, ns.
    pub fn expected_ns(&self) -> i64 {
        let round: i64 = self.prepared.tasks.iter().map(|task| task.guess_ns).sum();
        round.saturating_mul(self.rounds.into())
    }
}
