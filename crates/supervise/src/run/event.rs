//! Events of a running mission.

use std::fmt;
use text::units::time;

use crate::cause::{Cause, ended};
use crate::control::{TaskStatus, bound_in_force, bound_withdrawn};
use crate::end::End;
use crate::enforce::Counted;
use crate::incident::Incident;
use crate::state::{Limit, Mode};

/// A cell's use in one life.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Used {
    /// Cpu time of all its processes, ns; `None`: the kernel does not say.
    pub cpu_ns: Option<i64>,
    /// How long its program ran, ns.
    pub lasted_ns: i64,
    /// Its application's reports of its tasks.
    pub tasks: Vec<TaskStatus>,
    /// Its enforcer's counts; `None`: nothing counts.
    pub counted: Option<Counted>,
}

/// An event while a mission is kept running.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A cell runs.
    Started {
        /// Its name.
        cell: String,
        /// How often it has been started by then.
        generation: u64,
        /// Its first process.
        pid: i32,
        /// The guarantee of its hold, one sentence.
        guarantee: String,
        /// From asking for it until its program was executed, ns.
        took_ns: i64,
    },
    /// A running cell of an earlier supervisor was adopted.
    Adopted {
        /// Its name.
        cell: String,
        /// Its first process.
        pid: i32,
    },
    /// The hold of a cell has changed, or does not cover all of it.
    Held {
        /// Its name.
        cell: String,
        /// The change, a clause.
        what: String,
    },
    /// A cell could not be started.
    NotStarted {
        /// Its name.
        cell: String,
        /// Why.
        why: String,
    },
    /// A cell's program has ended.
    Ended {
        /// Its name.
        cell: String,
        /// How.
        end: End,
        /// Why, where its end alone does not tell.
        cause: Option<Cause>,
        /// Whether it was told to.
        asked: bool,
    },
    /// Its use in the life that has ended; the end itself is reported when its remains are removed.
    Used {
        /// Its name.
        cell: String,
        /// The use.
        used: Box<Used>,
    },
    /// It has come up against a limit, for the first time in this life.
    LimitReached {
        /// Its name.
        cell: String,
        /// Which.
        limit: Limit,
    },
    /// The bound of a task counts no more, or counts again.
    Bound {
        /// Name of the cell.
        cell: String,
        /// Name of the task.
        task: String,
        /// The bound on its response time, ns.
        bound_ns: u64,
        /// Why it counts no more, a clause; `None`: it counts again.
        withdrawn: Option<String>,
    },
    /// It will be restarted.
    Restarts {
        /// Its name.
        cell: String,
        /// In how long, ns.
        wait_ns: i64,
    },
    /// It stays stopped.
    Stays {
        /// Its name.
        cell: String,
        /// Why.
        why: String,
    },
    /// Something of a cell could not be removed.
    Left {
        /// Its name.
        cell: String,
        /// The remains.
        what: String,
    },
    /// It has ended its first job.
    Ready {
        /// Its name.
        cell: String,
        /// Since its program began, ns.
        took_ns: i64,
    },
    /// It has not become ready in its time, and was killed.
    NotReady {
        /// Its name.
        cell: String,
        /// Since its program began, ns.
        waited_ns: i64,
    },
    /// Its jobs cannot be watched.
    Unwatched {
        /// Its name.
        cell: String,
        /// Why.
        what: String,
    },
    /// Something went wrong with a cell, and something was done about it, or nothing.
    Incident(Box<Incident>),
    /// The `notify` program could not be run for an incident.
    NotNotified {
        /// Name of the cell.
        cell: String,
        /// Why.
        why: String,
    },
    /// It was shed in favour of others.
    Shed {
        /// Its name.
        cell: String,
        /// The effect on it, a clause.
        how: &'static str,
    },
    /// It was shed, and resumes.
    Unshed {
        /// Its name.
        cell: String,
    },
    /// The mission has another mode.
    Mode {
        /// Which.
        to: Mode,
        /// Why, a clause.
        why: String,
        /// How long the change has taken, ns.
        took_ns: i64,
    },
    /// A note on the mission as a whole.
    Note {
        /// A sentence.
        text: String,
    },
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = |ns: i64| time(ns as f64);
        match self {
            Event::Started {
                cell,
                generation,
                pid,
                guarantee,
                took_ns,
            } => write!(
                f,
                "{cell}: runs (pid {pid}, start {generation}, {}): {guarantee}",
                time(*took_ns)
            ),
            Event::Adopted { cell, pid } => {
                write!(f, "{cell}: runs on, adopted (pid {pid})")
            }
            Event::Held { cell, what } => write!(f, "{cell}: {what}"),
            Event::NotStarted { cell, why } => write!(f, "{cell}: could not be started: {why}"),
            Event::Ended {
                cell,
                end,
                cause,
                asked,
            } => {
                write!(f, "{cell}: {}", ended(*end, cause.as_ref()))?;
                match end.is_failure() && !asked {
                    true => write!(f, "; `timecell logs {cell}` shows what it wrote"),
                    false => Ok(()),
                }
            }
            Event::Used { cell, used } => match used.cpu_ns {
                Some(ns) => write!(f, "{cell}: used {} of cpu time", time(ns)),
                None => write!(
                    f,
                    "{cell}: the kernel does not report the cpu time that it used"
                ),
            },
            Event::LimitReached { cell, limit } => write!(f, "{cell}: {limit}"),
            Event::Bound {
                cell,
                task,
                bound_ns,
                withdrawn: Some(why),
            } => f.write_str(&bound_withdrawn(cell, task, *bound_ns, why)),
            Event::Bound {
                cell,
                task,
                bound_ns,
                withdrawn: None,
            } => f.write_str(&bound_in_force(cell, task, *bound_ns)),
            Event::Restarts { cell, wait_ns: 0 } => write!(f, "{cell}: restarting"),
            Event::Restarts { cell, wait_ns } => {
                write!(f, "{cell}: restarting in {}", time(*wait_ns))
            }
            Event::Stays { cell, why } => write!(f, "{cell}: stays stopped: {why}"),
            Event::Left { cell, what } => write!(f, "{cell}: left behind: {what}"),
            Event::Ready { cell, took_ns } => write!(
                f,
                "{cell}: is ready, its first job ended {} after the start",
                time(*took_ns)
            ),
            Event::NotReady { cell, waited_ns } => write!(
                f,
                "{cell}: no job ended within {}, so it is killed",
                time(*waited_ns)
            ),
            Event::Unwatched { cell, what } => {
                write!(f, "{cell}: its jobs are not watched: {what}")
            }
            Event::Incident(incident) => write!(f, "incident: {incident}"),
            Event::NotNotified { cell, why } => {
                write!(f, "{cell}: the `notify` program could not be run: {why}")
            }
            Event::Shed { cell, how } => write!(f, "{cell}: is shed: {how}"),
            Event::Unshed { cell } => write!(f, "{cell}: no longer shed, resumes"),
            Event::Mode { to, why, took_ns } => {
                let to = match to {
                    Mode::Low => "low",
                    Mode::High => "high",
                };
                write!(f, "mode: {to}, because {why} ({})", time(*took_ns))
            }
            Event::Note { text } => f.write_str(text),
        }
    }
}
