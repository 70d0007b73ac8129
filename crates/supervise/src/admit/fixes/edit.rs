//! One change of a mission file.

use std::fmt;

use analysis::Ns;
use model::Duration;
use model::Enforcer;
use model::mission::{CellClass, Mission, Supervisor, SupervisorClass};
use model::taskset::Reservation;
use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};

use super::super::Facts;

/// One key of a mission file set to another value, or a cell or another mission removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edit {
    /// The mission's `cpus`.
    MissionCpus(Vec<u32>),
    /// The mission's `enforcer`; `None`: `auto`.
    Enforcer(Option<Enforcer>),
    /// The mission's `supervisor`.
    Supervisor(Supervisor),
    /// A cell's `cpus`; empty: the key is left out.
    Cpus(String, Vec<u32>),
    /// A cell's `class`.
    Class(String, CellClass),
    /// A cell's `priorities` are left out.
    NoPriorities(String),
    /// A cell's `reservation` as budget and period, ns; `None`: the key is left out.
    Reservation(String, Option<(Ns, Ns)>),
    /// A time of a task of a cell, ns.
    Time(String, String, Time, Ns),
    /// A cell is left out, with all references to it.
    LeaveOut(String),
    /// Somebody else on the machine ends first, such as "mission `a`".
    End(String),
}

/// A time of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Time {
    /// Its relative deadline.
    Deadline,
    /// Its period.
    Period,
    /// Its execution time, in low mode.
    Wcet,
    /// Its execution time in high mode.
    WcetHigh,
}

impl Time {
    /// The key in the file.
    const fn key(self) -> &'static str {
        match self {
            Time::Deadline => "deadline",
            Time::Period => "period",
            Time::Wcet => "wcet",
            Time::WcetHigh => "wcet_hi",
        }
    }
}

/// A time of a mission file.
fn time(ns: Ns) -> Duration {
    Duration::from_ns(i64::try_from(ns).unwrap_or(i64::MAX))
}

impl Edit {
    /// Changes the mission, or the facts of the machine.
    pub(super) fn apply(&self, mission: &mut Mission, facts: &mut Facts) {
        match self {
            Edit::MissionCpus(cpus) => mission.cpus.clone_from(cpus),
            Edit::Enforcer(enforcer) => mission.enforcer = *enforcer,
            Edit::Supervisor(own) => mission.supervisor.clone_from(own),
            Edit::LeaveOut(name) => {
                mission.cells.retain(|cell| cell.name != *name);
                mission.shed.retain(|shed| shed != name);
                for cell in &mut mission.cells {
                    cell.after.retain(|other| other != name);
                }
            }
            Edit::End(who) => facts.end(who),
            Edit::Cpus(name, ..)
            | Edit::Class(name, ..)
            | Edit::NoPriorities(name)
            | Edit::Reservation(name, ..)
            | Edit::Time(name, ..) => {
                let Some(cell) = mission.cells.iter_mut().find(|cell| cell.name == *name) else {
                    return;
                };
                match self {
                    Edit::Cpus(_, cpus) => cell.cpus.clone_from(cpus),
                    Edit::Class(_, class) => cell.class = Some(*class),
                    Edit::NoPriorities(_) => cell.priorities = None,
                    Edit::Reservation(_, None) => {
                        (cell.reservation, cell.budget_high) = (None, None)
                    }
                    Edit::Reservation(_, Some((budget, period))) => {
                        cell.reservation = Some(Reservation {
                            budget: time(*budget),
                            period: time(*period),
                            deadline: time(*period),
                        });
                        cell.budget_high = None;
                    }
                    Edit::Time(_, task, which, ns) => {
                        let timing = cell.tasks.iter_mut().map(|task| &mut task.timing);
                        for timing in timing.filter(|timing| timing.name == *task) {
                            match which {
                                Time::Deadline => timing.deadline = time(*ns),
                                Time::Period => timing.period = time(*ns),
                                Time::Wcet => timing.wcet = time(*ns),
                                Time::WcetHigh => timing.wcet_high = Some(time(*ns)),
                            }
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    /// The kind of change that it is, unless it takes a budget away, which is a kind of its own in any edit.
    pub(super) const fn kind(&self) -> &'static str {
        match self {
            Edit::MissionCpus(_) | Edit::Cpus(..) => "cpus",
            Edit::Reservation(..) => "budget",
            Edit::Enforcer(_) | Edit::Class(..) => "enforcer",
            Edit::NoPriorities(_) => "priorities",
            Edit::Supervisor(own) => match own.class {
                SupervisorClass::Fifo => "supervisor",
                SupervisorClass::Other => super::ORDINARY,
            },
            Edit::Time(_, _, Time::Deadline, _) => "deadline",
            Edit::Time(_, _, Time::Period, _) => "period",
            Edit::Time(_, _, Time::Wcet | Time::WcetHigh, _) => "wcet",
            Edit::LeaveOut(_) | Edit::End(_) => "fewer",
        }
    }

    /// Whether it sets the same key as the other.
    pub(super) fn replaces(&self, other: &Edit) -> bool {
        self.key().is_some()
            && (self.cell(), self.task(), self.key()) == (other.cell(), other.task(), other.key())
    }

    /// The task that is edited, where one is.
    fn task(&self) -> Option<&str> {
        match self {
            Edit::Time(_, task, ..) => Some(task),
            _ => None,
        }
    }

    /// The cell that is edited, where one is.
    pub(in super::super) fn cell(&self) -> Option<&str> {
        match self {
            Edit::MissionCpus(_) | Edit::Enforcer(_) | Edit::Supervisor(_) | Edit::End(_) => None,
            Edit::Cpus(name, ..)
            | Edit::Class(name, ..)
            | Edit::NoPriorities(name)
            | Edit::Reservation(name, ..)
            | Edit::Time(name, ..)
            | Edit::LeaveOut(name) => Some(name),
        }
    }

    /// The key of the file; `None`: all of a cell, or nothing of the file.
    fn key(&self) -> Option<&'static str> {
        match self {
            Edit::MissionCpus(_) | Edit::Cpus(..) => Some("cpus"),
            Edit::Enforcer(_) => Some("enforcer"),
            Edit::Supervisor(_) => Some("supervisor"),
            Edit::Class(..) => Some("class"),
            Edit::NoPriorities(_) => Some("priorities"),
            Edit::Reservation(..) => Some("reservation"),
            Edit::Time(_, _, which, _) => Some(which.key()),
            Edit::LeaveOut(_) | Edit::End(_) => None,
        }
    }

    /// Its new value as it stands in the file; `None`: it is left out.
    fn value(&self) -> Option<String> {
        match self {
            Edit::MissionCpus(cpus) | Edit::Cpus(_, cpus) => {
                (!cpus.is_empty()).then(|| format!("{cpus:?}"))
            }
            Edit::Enforcer(enforcer) => {
                Some(format!("\"{}\"", enforcer.map_or("auto", Enforcer::name)))
            }
            Edit::Supervisor(own) => Some(supervisor(own)),
            Edit::Class(_, class) => Some(format!("\"{}\"", class.name())),
            Edit::Reservation(_, Some((budget, period))) => Some(format!(
                "{{ budget = \"{}\", period = \"{}\" }}",
                time(*budget),
                time(*period)
            )),
            Edit::Time(_, _, _, ns) => Some(format!("\"{}\"", time(*ns))),
            Edit::NoPriorities(_)
            | Edit::Reservation(_, None)
            | Edit::LeaveOut(_)
            | Edit::End(_) => None,
        }
    }
}

/// The keys of `supervisor` that are not as they are without it.
fn supervisor(own: &Supervisor) -> String {
    let standard = Supervisor::default();
    let class = (own.class != standard.class).then(|| format!("class = \"{}\"", own.class.name()));
    let of_fifo = own.class == SupervisorClass::Fifo;
    let budget =
        (of_fifo && own.budget != standard.budget).then(|| format!("budget = \"{}\"", own.budget));
    let period =
        (of_fifo && own.period != standard.period).then(|| format!("period = \"{}\"", own.period));
    let cpus = (!own.cpus.is_empty()).then(|| format!("cpus = {:?}", own.cpus));
    let keys: Vec<String> = [class, budget, period, cpus]
        .into_iter()
        .flatten()
        .collect();
    match keys.as_slice() {
        [] => "{}".to_owned(),
        keys => format!("{{ {} }}", keys.join(", ")),
    }
}

impl fmt::Display for Edit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self, self.key(), self.value()) {
            (Edit::LeaveOut(name), ..) => return write!(f, "remove cell `{name}`"),
            (Edit::End(who), ..) => return write!(f, "end {who} first"),
            (_, Some(key), Some(value)) => write!(f, "{key} = {value}")?,
            (_, key, _) => write!(f, "remove `{}`", key.unwrap_or_default())?,
        }
        match self {
            Edit::Time(cell, task, ..) => write!(f, " in task `{task}` of `{cell}`"),
            _ => match self.cell() {
                Some(cell) => write!(f, " in `{cell}`"),
                None => write!(f, " in the mission"),
            },
        }
    }
}

impl Serialize for Edit {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut object = to.serialize_struct("Edit", 5)?;
        object.serialize_field("cell", &self.cell())?;
        object.serialize_field("task", &self.task())?;
        object.serialize_field("key", &self.key())?;
        object.serialize_field("value", &self.value())?;
        object.serialize_field("text", &self.to_string())?;
        object.end()
    }
}
