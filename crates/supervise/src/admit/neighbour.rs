//! Grants of others on this machine.

use std::collections::BTreeSet;
use std::path::PathBuf;

use analysis::{Ns, Task};
use model::Enforcer;
use model::mission::{Band, CellClass};
use record::supply::MeasuredSupply;
use serde::{Deserialize, Serialize};

use super::asked::Asked;
use super::cpu::Candidate;
use super::{Facts, HeldMemory, supervisor};

/// [`Neighbour::short`] of anything held without a mission; no mission's name has parentheses.
pub(crate) const HELD: &str = "(held)";

/// Another holder on this machine with its grants; admission counts all of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Neighbour {
    /// Its name, such as "mission `a`".
    pub who: String,
    /// The same in tables, before the name of a cell: `a`.
    pub short: String,
    /// The real-time cells that it holds.
    pub cells: Vec<HeldCell>,
    /// Supplies that these rest on.
    pub supplies: Vec<MeasuredSupply>,
    /// Cpus on which it measures, and where nobody else may be.
    pub measured_cpus: Vec<u32>,
    /// Cpus that have left Linux, or will, for its partitions.
    pub partition_cpus: Vec<u32>,
    /// Memory of the machine that its cells may use.
    pub memory: HeldMemory,
    /// The part of it that they have taken and nobody can have from them, bytes.
    pub memory_taken_bytes: u64,
}

impl Neighbour {
    /// Whether it has this cpu for anything.
    pub(super) fn has(&self, cpu: u32) -> bool {
        let mut granted = self.cells.iter().flat_map(HeldCell::cpus);
        granted.any(|own| own == cpu)
            || self.measured_cpus.contains(&cpu)
            || self.partition_cpus.contains(&cpu)
    }
}

/// The grant to a cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Written")]
pub struct HeldCell {
    /// Its name.
    pub cell: String,
    /// Its enforcer.
    pub enforcer: Enforcer,
    /// Its grant: one hold, or several where it is held on several cpus.
    pub holds: Vec<Hold>,
    /// Its tasks, the most urgent first.
    pub tasks: Vec<HeldTask>,
    /// Whether it is no cell but the supervisor itself.
    pub supervisor: bool,
    /// Whether nothing runs in it but its tasks, on which its guarantee may rest.
    pub only_tasks: bool,
}

/// The same as it is written: an earlier timecell has one hold, without the list.
#[derive(Deserialize)]
struct Written {
    cell: String,
    enforcer: Enforcer,
    #[serde(default)]
    holds: Vec<Hold>,
    #[serde(flatten)]
    only: Option<Hold>,
    tasks: Vec<HeldTask>,
    #[serde(default)]
    supervisor: bool,
    #[serde(default)]
    only_tasks: bool,
}

impl From<Written> for HeldCell {
    fn from(written: Written) -> HeldCell {
        let mut holds = written.holds;
        holds.extend(written.only);
        HeldCell {
            cell: written.cell,
            enforcer: written.enforcer,
            holds,
            tasks: written.tasks,
            supervisor: written.supervisor,
            only_tasks: written.only_tasks,
        }
    }
}

/// One hold of a grant: threads that share a budget.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// The control group with these threads; `None`: all threads of the cell.
    pub threads: Option<PathBuf>,
    /// Their cpus, ascending.
    pub cpus: Vec<u32>,
    /// Budget on each of these cpus that the kernel enforces, ns; `None`: none.
    pub budget_ns: Option<Ns>,
    /// Period of that budget, ns.
    pub period_ns: Option<Ns>,
    /// Their reservation on each cpu, and its period, ns, enforced by the kernel or not.
    pub reservation_ns: Option<(Ns, Ns)>,
    /// Their class.
    #[serde(with = "class_name")]
    pub class: CellClass,
    /// Their SCHED_FIFO or SCHED_RR priorities, lowest and highest.
    pub priorities: Option<(u8, u8)>,
}

/// A task of a cell, with the latency that its admission allowed for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldTask {
    /// Its name.
    pub name: String,
    /// Its times, ns.
    #[serde(flatten)]
    pub task: Task,
}

impl HeldCell {
    /// The grant to a candidate on these cpus.
    pub(super) fn of(candidate: &Candidate<'_>, cpus: &[u32]) -> HeldCell {
        let asked = candidate.asked;
        let tasks = asked.names.iter().zip(&asked.work.tasks);
        HeldCell {
            cell: asked.name.clone(),
            enforcer: asked.enforcer,
            holds: vec![Hold {
                threads: None,
                cpus: cpus.to_vec(),
                budget_ns: candidate.budget.map(|(budget, _)| budget),
                period_ns: candidate.budget.map(|(_, period)| period),
                reservation_ns: asked.reservation,
                class: match asked.round_robin {
                    true => CellClass::RoundRobin,
                    false => asked.class,
                },
                priorities: (asked.band.filter(|_| asked.class == CellClass::Fifo))
                    .map(|band| (band.lowest, band.highest)),
            }],
            supervisor: asked.is_supervisor,
            only_tasks: asked.only_tasks,
            tasks: tasks
                .map(|(name, task)| HeldTask {
                    name: name.clone(),
                    task: *task,
                })
                .collect(),
        }
    }

    /// The cpus of all its holds, ascending.
    pub fn cpus(&self) -> Vec<u32> {
        let cpus = self.holds.iter().flat_map(|hold| &hold.cpus).copied();
        cpus.collect::<BTreeSet<u32>>().into_iter().collect()
    }

    /// Checks one that was read from a file.
    ///
    /// # Errors
    /// Why it cannot have been granted, a clause.
    pub fn check(&self) -> Result<(), String> {
        let fault = |what: &str| Err(format!("the cell `{}` has {what}", self.cell));
        if self.holds.is_empty() {
            return fault("no hold");
        }
        for hold in &self.holds {
            if let Err(what) = hold.check(self.enforcer) {
                return fault(what);
            }
            if self.supervisor && hold.reservation_ns.is_none() {
                return fault("no reservation, though it is a supervisor");
            }
        }
        for task in &self.tasks {
            if let Err(error) = task.task.check() {
                return fault(&format!("an impossible task `{}`: {error}", task.name));
            }
        }
        Ok(())
    }

    fn asked(&self, hold: &Hold, at: usize, neighbour: &Neighbour) -> Asked {
        if let (true, Some(reservation)) = (self.supervisor, hold.reservation_ns) {
            let name = format!("{}/{}", neighbour.short, self.cell);
            let holder = format!("the supervisor of {}", neighbour.who);
            return supervisor::asked(at, name, holder, hold.cpus.clone(), reservation);
        }
        Asked {
            name: format!("{}/{}", neighbour.short, self.cell),
            holder: Some(match neighbour.short == HELD {
                // Its name is in that already.
                true => neighbour.who.clone(),
                false => format!("`{}` of {}", self.cell, neighbour.who),
            }),
            owner: Some(neighbour.who.clone()),
            ..self.wanted(hold, at)
        }
    }

    /// The same for a hold that nobody has yet, as admission takes it.
    pub(super) fn wanted(&self, hold: &Hold, at: usize) -> Asked {
        Asked {
            at,
            name: self.cell.clone(),
            is_supervisor: false,
            owner: None,
            holder: None,
            enforcer: self.enforcer,
            class: hold.class.analysed(),
            round_robin: hold.class == CellClass::RoundRobin,
            cpus: hold.cpus.clone(),
            band: (hold.priorities).map(|(lowest, highest)| Band { lowest, highest }),
            reservation: hold.reservation_ns,
            only_tasks: self.only_tasks,
            is_assumed: false,
            silent_for: None,
            work: super::search::Work {
                tasks: self.tasks.iter().map(|task| task.task).collect(),
                policy: match hold.class {
                    CellClass::Deadline => analysis::inside::Policy::Edf,
                    _ => analysis::inside::Policy::FixedPriority,
                },
            },
            order: (0..self.tasks.len()).collect(),
            declared: None,
            wished: None,
            names: self.tasks.iter().map(|task| task.name.clone()).collect(),
        }
    }
}

impl Hold {
    /// Fails with a value that no hold of this enforcer can have.
    pub(crate) fn check(&self, enforcer: Enforcer) -> Result<(), &'static str> {
        if self.cpus.is_empty() || self.cpus.len() > 4096 {
            return Err("no cpus, or too many");
        }
        if (self.threads.as_ref()).is_some_and(|group| !group.is_absolute()) {
            return Err("an impossible control group");
        }
        let times = [(self.budget_ns, self.period_ns)].into_iter().chain(
            self.reservation_ns
                .map(|(part, whole)| (Some(part), Some(whole))),
        );
        for time in times {
            match time {
                (None, None) => {}
                (Some(part), Some(whole))
                    if part > 0 && part <= whole && whole <= analysis::MAX_NS => {}
                _ => return Err("an impossible budget"),
            }
        }
        let in_order =
            |(lowest, highest): (u8, u8)| 1 <= lowest && lowest <= highest && highest <= 99;
        if !self.priorities.is_none_or(in_order) {
            return Err("impossible priorities");
        }
        if self.class.analysed() == CellClass::Fifo && self.priorities.is_none() {
            return Err("no priority");
        }
        let is_capped = enforcer == Enforcer::Freezer && self.budget_ns.is_some();
        match self.class == CellClass::Other && !is_capped {
            true => Err("the class `other`, which is never granted anything"),
            false => Ok(()),
        }
    }
}

/// The holds of all neighbours, as admission takes them; they are numbered from `first` on.
pub(super) fn all(facts: &Facts, first: usize) -> Vec<(Asked, Option<(Ns, Ns)>)> {
    let holds = (facts.beside.iter()).flat_map(|neighbour| {
        let cells = neighbour.cells.iter();
        cells.flat_map(move |cell| cell.holds.iter().map(move |hold| (neighbour, cell, hold)))
    });
    holds
        .enumerate()
        .map(|(place, (neighbour, cell, hold))| {
            let budget = hold.budget_ns.zip(hold.period_ns);
            (cell.asked(hold, first + place, neighbour), budget)
        })
        .collect()
}

/// The neighbour that measures on this cpu.
pub(super) fn measuring(facts: &Facts, cpu: u32) -> Option<&Neighbour> {
    (facts.beside.iter()).find(|neighbour| neighbour.measured_cpus.contains(&cpu))
}

mod class_name {
    use super::{CellClass, Deserialize};
    use serde::{Deserializer, Serializer, de::Error as _};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
    pub fn serialize<S: Serializer>(class: &CellClass, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(class.name())
    }

    pub fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<CellClass, D::Error> {
        let name = String::deserialize(from)?;
        let known = CellClass::NAMES.iter().find(|(known, _)| *known == name);
        known
            .map(|(_, class)| *class)
            .ok_or_else(|| D::Error::custom(format!("`{name}` is not a class")))
    }
}
