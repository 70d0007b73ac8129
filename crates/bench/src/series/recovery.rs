//! `recovery`: how soon a cell runs again after its payload was killed, stopped answering, or lost its runtime.
//!
//! The coordinator acts as a supervisor: it notices the fault (by the end of a process, or by a missing heartbeat), removes the rest of
//! the cell, and recreates it. The new payload's first clock reading ends the time.

use std::collections::BTreeMap;

use engine::{Cell, CellSpec, Rights};
use model::{EngineKind, Helper, InputErrors};
use probe::{Life, clock};
use record::series::Quantity;
use record::{Condition, NotMeasured};

use super::bench::{
    Bench, OwnOption, Prepared, Reading, SeriesOptions, SeriesScenario, Task, Turn,
};
use super::cells::{self, Form, Subject};
use crate::cells::CREATION_NS;
use crate::launch::{Stage, page_in_cell};
use host::pidfd;

pub(super) const SCENARIO: SeriesScenario = SeriesScenario {
    name: "recovery",
    question: "How soon does a cell run again after its payload is killed, stops answering, or loses its runtime?",
    rounds: (20, 2),
    own: OwnOption::Heartbeat,
    prepare,
};

/// Time between heartbeats, ns.
pub const BEAT_NS: i64 = 1_000_000;
/// Longest time for a process to be seen ended, ms.
const DEATH: std::time::Duration = std::time::Duration::from_secs(10);

model::choice! {
    /// The fault of a cell.
    enum Fault: part {
        /// SIGKILL to the payload.
        Kill = "payload killed",
        /// The payload spins and no longer answers.
        Wedge = "payload wedged",
        /// SIGKILL to the process that keeps the cell: conmon, or the runtime that waits for the payload.
        Helper = "runtime killed",
    }
}

struct Recovery {
    tasks: Vec<(Subject, Fault)>,
    timeout_ns: i64,
    stage: Stage,
}

fn prepare(options: &SeriesOptions) -> Result<Prepared, InputErrors> {
    let mut found = cells::find(options, false);
    let timeout_ns = options.heartbeat_timeout_ns;
    let mut tasks = Vec::new();
    for subject in &found.subjects {
        for fault in Fault::ALL {
            // A cell needs a helper to lose it; a detached runtime has ended long before, and a cell that is attached to one differs
            // from a detached one in nothing but that.
            let takes_part = match (fault, subject.form) {
                (Fault::Helper, _) => subject.has_helper(),
                (_, Form::Detached) => true,
                (_, Form::Attached) => false,
            };
            if takes_part {
                tasks.push((subject.clone(), fault));
            }
        }
    }
    found
        .needs
        .not_measured
        .extend(without_helper(&found.subjects));
    let listed = tasks
        .iter()
        .map(|(subject, fault)| Task {
            subject: subject.name.clone(),
            part: fault.part().to_owned(),
            guess_ns: 2 * subject.kind.creation_ns(),
        })
        .collect();
    Ok(Prepared {
        tasks: listed,
        needs: found.needs,
        conditions: conditions(timeout_ns),
        found: BTreeMap::new(),
        sweep: Vec::new(),
        baseline: Some("bare".to_owned()),
        open: Box::new(move |run| {
            Ok(Box::new(Recovery {
                tasks,
                timeout_ns,
                stage: Stage::of_run(run)?,
            }))
        }),
    })
}

/// Cells without a process that could be killed apart from the payload, and without a substitute.
fn without_helper(subjects: &[Subject]) -> Vec<NotMeasured> {
    let reason = |kind: EngineKind| match kind.helper() {
        Helper::Never(reason) => Some(reason),
        Helper::Always | Helper::Attached => None,
    };
    subjects
        .iter()
        .filter_map(|subject| {
            Some(NotMeasured {
                trial: format!("{}, {}", subject.name, Fault::Helper.part()),
                reason: reason(subject.kind)?.to_owned(),
                fix: String::new(),
            })
        })
        .collect()
}

fn conditions(timeout_ns: i64) -> Vec<Condition> {
    let ms = |ns: i64| ns as f64 / 1e6;
    vec![
        Condition::new(
            "payload",
            format!(
                "our own static binary; it beats every {} ms on a shared page",
                ms(BEAT_NS)
            ),
        ),
        Condition::new(
            "detection",
            format!(
                "of a death by pidfd; of a wedged payload by a heartbeat older than {} ms (--heartbeat-timeout), \
                 counted from the last heartbeat",
                ms(timeout_ns)
            ),
        ),
        Condition::new(
            "removal",
            "processes killed and waited for, container, cgroups and state removed",
        ),
        Condition::new(
            "restart",
            "from the request for a new cell to its payload's first clock reading",
        ),
        Condition::new(
            "runtime killed",
            "conmon for podman; for the OCI runtimes the process that waits for the payload when they are not \
             detached, with the cell named \"attached\"; \"payload lived on\" is 1 where the payload survived it",
        ),
        Condition::new(
            "scheduling",
            "no real-time class, any cpu; the coordinator too",
        ),
    ]
}

impl Bench for Recovery {
    fn measure(&mut self, turn: &mut Turn<'_>) -> Result<Vec<Reading>, String> {
        let (subject, fault) = &self.tasks[turn.task];
        let words = Life::beating(&page_in_cell(), BEAT_NS);
        let spec = |again: u32| {
            let name = format!("{}-{again}-{}", turn.number, subject.kind);
            self.stage
                .spec(
                    &name,
                    subject.kind,
                    subject.user.as_ref(),
                    words.clone(),
                    Rights::default(),
                )
                .map_err(|error| error.to_string())
        };
        let case = Case {
            turn,
            life: &self.stage.life,
            subject,
            fault: *fault,
            timeout_ns: self.timeout_ns,
        };
        let (first, second) = (spec(1)?, spec(2)?);
        let readings = case.run(&first, &second);
        for spec in [first, second] {
            let _ = std::fs::remove_dir_all(&spec.work_dir);
        }
        readings
    }
}

/// One cell, one fault, one recovery.
struct Case<'a> {
    turn: &'a Turn<'a>,
    life: &'a Life,
    subject: &'a Subject,
    fault: Fault,
    timeout_ns: i64,
}

/// When the fault struck and was noticed, CLOCK_MONOTONIC ns.
struct Struck {
    at: i64,
    noticed: i64,
    /// Whether the payload ran when the death of its runtime was noticed.
    lived_on: Option<bool>,
}

impl Case<'_> {
    fn run(&self, first: &CellSpec, second: &CellSpec) -> Result<Vec<Reading>, String> {
        self.life.reset();
        let mut cell = self.subject.create(first)?;
        let struck = self
            .until("the payload sends heartbeats", || {
                self.life.beat_ns().is_some()
            })
            .and_then(|()| self.strike(cell.as_ref()));
        // In any case, nothing of the first cell may be left.
        let removed = cell.remove().map_err(|error| error.to_string());
        let removed_ns = clock::now();
        let struck = struck?;
        removed?;
        self.life.reset();
        let mut cell = self.subject.create(second)?;
        let runs = self.until("the new payload runs", || self.life.first_ns().is_some());
        let first_ns = self.life.first_ns();
        cell.remove().map_err(|error| error.to_string())?;
        runs?;
        Ok(self.readings(&struck, removed_ns, first_ns.unwrap_or(removed_ns)))
    }

    fn readings(&self, struck: &Struck, removed_ns: i64, first_ns: i64) -> Vec<Reading> {
        let whole = self.fault.part();
        let share = |name: &str, ns: i64| {
            Reading::share(format!("{whole}: {name}"), whole, Quantity::Ns, ns)
        };
        let mut readings = vec![
            Reading::whole(whole, Quantity::Ns, first_ns - struck.at),
            share("detection", struck.noticed - struck.at),
            share("removal", removed_ns - struck.noticed),
            share("restart", first_ns - removed_ns),
        ];
        if let Some(lived_on) = struck.lived_on {
            let lived_on = i64::from(lived_on);
            readings.push(Reading::whole(
                "payload lived on",
                Quantity::Count,
                lived_on,
            ));
        }
        readings
    }

    fn strike(&self, cell: &dyn Cell) -> Result<Struck, String> {
        let payload = pidfd::open(cell.pid()).map_err(|error| format!("the payload: {error}"))?;
        match self.fault {
            Fault::Kill => {
                let (at, noticed) = killed(&payload)?;
                Ok(Struck {
                    at,
                    noticed,
                    lived_on: None,
                })
            }
            Fault::Wedge => self.wedged(),
            Fault::Helper => {
                let helpers = cell.processes();
                // Rootless podman also keeps a process that holds its namespaces open.
                let keeper = helpers.iter().find(|helper| helper.name == "conmon");
                let keeper = keeper
                    .or(helpers.first())
                    .ok_or("this cell has no helper process")?;
                let keeper = pidfd::open(keeper.pid).map_err(|error| error.to_string())?;
                let (at, noticed) = killed(&keeper)?;
                Ok(Struck {
                    at,
                    noticed,
                    lived_on: Some(!pidfd::ended_within(&payload, std::time::Duration::ZERO)),
                })
            }
        }
    }

    fn wedged(&self) -> Result<Struck, String> {
        self.life.wedge();
        let until = clock::now() + CREATION_NS;
        while clock::now() < until && !self.turn.interrupt.came() {
            let Some(last) = self.life.beat_ns() else {
                return Err("the payload sent no heartbeat".to_owned());
            };
            clock::sleep_until(last + self.timeout_ns);
            let noticed = clock::now();
            if self.life.beat_ns() == Some(last) && noticed >= last + self.timeout_ns {
                return Ok(Struck {
                    at: last,
                    noticed,
                    lived_on: None,
                });
            }
        }
        Err("could not wedge the payload".to_owned())
    }

    /// Waits for a payload; its own stamps tell when it wrote.
    fn until(&self, what: &str, holds: impl Fn() -> bool) -> Result<(), String> {
        const LOOK_NS: i64 = 200_000;
        let until = clock::now() + CREATION_NS;
        while !holds() {
            if self.turn.interrupt.came() {
                return Err("interrupted".to_owned());
            }
            if clock::now() > until {
                return Err(format!(
                    "not within {} s: {what}",
                    CREATION_NS / 1_000_000_000
                ));
            }
            clock::sleep_for(LOOK_NS);
        }
        Ok(())
    }
}

/// Kills a process; when, and when its end was seen.
fn killed(process: &std::os::fd::OwnedFd) -> Result<(i64, i64), String> {
    let at = clock::now();
    pidfd::kill(process).map_err(|error| format!("cannot kill a process: {error}"))?;
    if pidfd::ended_within(process, DEATH) {
        Ok((at, clock::now()))
    } else {
        Err(format!(
            "a killed process did not end within {} ms",
            DEATH.as_millis()
        ))
    }
}
