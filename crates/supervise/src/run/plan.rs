//! A mission with its admission, ready to run.

use std::collections::BTreeSet;

use model::mission::{Cell, Mission, MissionFile};
use model::{Enforcer, EngineKind};
use record::supply::MeasuredSupply;

use super::spec;
use crate::admit::{Admission, Facts, Grant, HeldMemory, Outcome, admit};
use crate::state::Text;

/// The sources of a mission.
#[derive(Debug)]
pub struct Inputs {
    /// The mission file.
    pub file: MissionFile,
    /// Its text.
    pub text: String,
    /// Measurements of the kernel's supply.
    pub measured: Vec<MeasuredSupply>,
    /// How late the kernel may wake a task, ns.
    pub latency_ns: u64,
}

/// A mission and its admission.
#[derive(Debug)]
pub struct Plan {
    /// The sources.
    pub inputs: Inputs,
    /// The admission.
    pub admission: Admission,
}

impl Inputs {
    /// The mission.
    pub fn mission(&self) -> &Mission {
        self.file.mission()
    }

    /// The file as the journal keeps it.
    pub(super) fn noted(&self) -> Text {
        let text = Text::new(self.text.as_str());
        match std::path::absolute(self.file.name()) {
            Ok(path) => text.at(path.display().to_string()),
            Err(_) => text,
        }
    }

    /// Asks admission.
    pub fn admitted(self, facts: &Facts) -> Plan {
        let admission = admit(self.mission(), facts, &self.measured, self.latency_ns);
        Plan {
            inputs: self,
            admission,
        }
    }

    /// Asks admission whether this can take the place of the running mission, and leaves cells that stay the same as they are: on
    /// their cpus, with their budgets and priorities, unless those cpus are not the mission's any more.
    /// The enforcer of cells that leave it to timecell stays the same.
    pub(super) fn admitted_after(self, before: &Plan, facts: &Facts, anew: &[String]) -> Plan {
        let facts = Facts {
            runs_under: before.admission.usual(),
            ..facts.clone()
        };
        let mut pinned = self.mission().clone();
        for cell in &mut pinned.cells {
            let same = !anew.contains(&cell.name) && is_same(before, &self, &cell.name);
            let grant = before.admission.grant(&cell.name).filter(|_| same);
            if let Some(grant) = grant
                && has_cpus_of(self.mission(), grant)
            {
                pin(cell, grant);
            }
        }
        let admission = admit(&pinned, &facts, &self.measured, self.latency_ns);
        Plan {
            inputs: self,
            admission,
        }
    }
}

/// The machine's memory that the cells of an admitted mission may use: each its limit, or that with which it `runs` since an
/// earlier admission, whichever is more.
pub(super) fn memory(
    mission: &Mission,
    admission: &Admission,
    runs: &dyn Fn(&str) -> Option<u64>,
) -> HeldMemory {
    let Some(share) = &admission.memory else {
        return HeldMemory::default();
    };
    let cells = mission.cells.iter();
    cells.fold(HeldMemory::default(), |memory, cell| {
        let declared = cell.rights.memory.map(model::Bytes::bytes);
        let limit = declared.or(share.default_bytes).unwrap_or(0);
        memory.and(declared, limit.max(runs(&cell.name).unwrap_or(0)))
    })
}

/// Whether a grant is on cpus of this mission.
fn has_cpus_of(mission: &Mission, grant: &Grant) -> bool {
    mission.cpus.is_empty() || grant.cpus.iter().all(|cpu| mission.cpus.contains(cpu))
}

/// Asks for exactly the grant.
pub(super) fn pin(cell: &mut Cell, grant: &Grant) {
    let time = |ns: u64| i64::try_from(ns).ok().map(model::Duration::from_ns);
    // Threads of SCHED_DEADLINE that run on any cpu were not granted these cpus, and cannot be kept to them.
    let roams =
        grant.enforcer == Enforcer::Deadline && cell.cpus.is_empty() && grant.cpus.len() > 1;
    if !roams {
        cell.cpus.clone_from(&grant.cpus);
    }
    cell.priorities = grant.band.or(cell.priorities);
    let cpus = u64::try_from(cell.cpus.len().max(1)).unwrap_or(1);
    let budget = grant.budget_ns.and_then(|ns| time(ns.saturating_mul(cpus)));
    if let (Some(budget), Some(period)) = (budget, grant.period_ns.and_then(time)) {
        cell.reservation = Some(model::taskset::Reservation {
            budget,
            period,
            deadline: period,
        });
        cell.budget_high = None;
    }
}

/// Whether a cell of this name is in both, with the same definition; its description may differ.
pub(super) fn is_same(before: &Plan, after: &Inputs, name: &str) -> bool {
    let (old, new) = (before.inputs.mission(), after.mission());
    let (Some(cell), Some(new_cell)) = (old.cell(name), new.cell(name)) else {
        return false;
    };
    // A file elsewhere may mean other files by the same relative paths.
    let made =
        |file: &MissionFile, cell| spec::of(file, cell, None, None, std::path::Path::new(name));
    let told = model::mission::Cell {
        description: new_cell.description.clone(),
        ..cell.clone()
    };
    told == *new_cell
        && old.enforcer == new.enforcer
        && made(&before.inputs.file, cell) == made(&after.file, new_cell)
}

impl Plan {
    /// Whether a cell continues unchanged when this plan replaces another.
    pub(super) fn leaves(&self, before: &Plan, name: &str) -> bool {
        let held = match (before.admission.grant(name), self.admission.grant(name)) {
            (Some(old), Some(new)) => old.holds_as(new),
            (None, None) => {
                let (old, new) = (&before.admission, &self.admission);
                let cpus = [old.best_effort(name), new.best_effort(name)];
                let within = [old, new].map(|one| one.partition_of(cpus[1].unwrap_or_default()));
                cpus[0] == cpus[1] && within[0] == within[1]
            }
            _ => false,
        };
        held && is_same(before, &self.inputs, name)
    }

    /// Why it is refused, a sentence each, with its line, and where to look for a fix.
    pub fn refusals(&self) -> Vec<String> {
        let file = &self.inputs.file;
        let mut all = Vec::new();
        for outcome in &self.admission.cells {
            let Outcome::Refused(refused) = outcome else {
                continue;
            };
            let mut why = format!(
                "{}:{}: {}: {}",
                file.name(),
                file.line(&refused.place),
                refused.cell,
                refused.why
            );
            if let Some(late) = &refused.witness {
                why.push_str(&format!("; {late}"));
            }
            all.push(why);
        }
        all.extend(self.admission.refusals.iter().cloned());
        all.push(format!(
            "`timecell admit {}` looks for changes that would be admitted",
            file.name()
        ));
        all
    }
}

/// Cells whose definition in this file is not that of the text that was admitted before, or cannot be compared with it.
pub(super) fn outdated(before: Option<&Text>, file: &MissionFile) -> BTreeSet<String> {
    let Some(text) = before else {
        return BTreeSet::new();
    };
    let path = text.path.as_deref().unwrap_or(file.name());
    let Ok(old) = MissionFile::parse(path, &text.text) else {
        // Written by another version; the running cells are taken to be the meant ones.
        return BTreeSet::new();
    };
    // That a cell is a plain process is in no text.
    let is_of_processes = |cell: &Cell| cell.engine == EngineKind::Bare;
    let old = match file.mission().cells.iter().any(is_of_processes) {
        true => old.of_processes(),
        false => old,
    };
    let made =
        |file: &MissionFile, cell| spec::of(file, cell, None, None, std::path::Path::new("place"));
    (file.mission().cells.iter())
        .filter(|cell| match old.mission().cell(&cell.name) {
            Some(known) => known != *cell || made(&old, known) != made(file, cell),
            None => true,
        })
        .map(|cell| cell.name.clone())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_started_again_by_the_same_words_is_the_same() {
        let text = |more: &str| {
            format!(
                "schema = 1\nname = \"m\"\n[[cell]]\nname = \"a\"\nimage = {{ binary = \"/bin/true\" }}\n{more}\
                 class = \"other\"\n"
            )
        };
        let file = |more: &str| MissionFile::parse("x", &text(more)).unwrap();
        let before = Text::new(text(""));
        let changed = ["a".to_owned()].into();
        for is_process in [false, true] {
            let file = |more: &str| match is_process {
                true => file(more).of_processes(),
                false => file(more),
            };
            assert_eq!(outdated(Some(&before), &file("")), BTreeSet::new());
            assert_eq!(outdated(Some(&before), &file("args = [\"b\"]\n")), changed);
        }
        assert_eq!(outdated(None, &file("")), BTreeSet::new());
    }
    #[test]
    fn files_of_a_partition_are_the_same_from_wherever_the_mission_is_read() {
        let text = |at: &str| {
            format!(
                "schema = 1\nname = \"m\"\njailhouse.system = \"board.cell\"\n[[cell]]\nname = \"a\"\nengine = \"jailhouse\"\n\
                 image = {{ inmate = \"a.bin\" }}\nclass = \"other\"\n[cell.partition]\ncpus = [3]\n\
                 memory = [{{ at = 0x1000, size = \"4KiB\" }}]\nload = [{{ file = \"a.dtb\", at = {at} }}]\n"
            )
        };
        let here = std::env::current_dir().unwrap().join("m.toml");
        let before = Text::new(text("0x10")).at(here.display().to_string());
        let file = |at: &str| MissionFile::parse("m.toml", &text(at)).unwrap();
        assert_eq!(outdated(Some(&before), &file("0x10")), BTreeSet::new());
        assert_eq!(
            outdated(Some(&before), &file("0x20")),
            ["a".to_owned()].into()
        );
    }
}
