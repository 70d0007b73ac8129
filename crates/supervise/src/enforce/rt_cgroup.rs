//! Budgets held by the real-time groups of cgroup v1.

use std::path::{Path, PathBuf};

use host::root::Root;
use host::rtgroup::{Budget, RtGroup, RtGroupError, remove_group, remove_group_with_inner};
use host::sched::{self, Class};
use model::mission::Cell;
use text::units::exact;

use super::inside::of_deadline;
use super::{CpusetOnly, Enforce, EnforceError, Left, Mechanism, first_priority};
use crate::admit::Grant;
use crate::ledger::{self, Ledger, LedgerError};
use crate::names;

/// The real-time groups of a mission's cells, side by side at the top of the hierarchy. They outlive the supervisor, so
/// that cells keep their budgets when that is killed, and the lives of their cells, so that nobody else takes their
/// room meanwhile and a restarted program gets no fresh budget.
///
/// There is no group around them with the room of all: the kernel would charge it too, and stop all cells when together they
/// have overdrawn it, which the tick lets them do (see `analysis::linux::TickSupply`).
#[derive(Debug, Clone)]
pub struct MissionGroups {
    prefix: String,
    top: PathBuf,
}

/// Removes the real-time groups of missions of which nothing runs any more, by the ledger: each keeps its budget from everybody else, also
/// once the mission's directory is gone and `down` cannot end it. Those of running supervisors are not reported.
///
/// # Errors
/// When the ledger cannot be locked, read or understood; nothing is removed then.
pub fn sweep(ledger: &Ledger) -> Result<Vec<Left>, LedgerError> {
    // They are root's.
    let Some(top) = host::rtgroup::detect().ok().filter(|_| ledger::is_root()) else {
        return Ok(Vec::new());
    };
    // A creator enters itself first, which nobody can do while the ledger is locked: an empty one is not about to be used.
    let locked = ledger.lock()?;
    let groups = Root::live().dirs_in(&top);
    let entries = locked.entries_everywhere()?;
    let mut left = Vec::new();
    for group in groups {
        let Some(mission) = names::mission_of_group(&group) else {
            continue;
        };
        if ledger::anything_runs(&entries, mission) {
            continue;
        }
        let what = format!("real-time group `{group}` of mission `{mission}`");
        let removed = remove_group_with_inner(&top.join(&group)).map_err(|why| why.to_string());
        let cells =
            || engine::remove_empty(&names::cells_of(mission)).map_err(|why| why.to_string());
        left.push(Left::removed(&what, removed.and_then(|()| cells())));
    }
    Ok(left)
}

impl MissionGroups {
    /// Those of this mission, on a machine that has such groups.
    ///
    /// # Errors
    /// When it has none.
    pub fn of(mission: &str) -> Result<MissionGroups, EnforceError> {
        Ok(MissionGroups {
            prefix: crate::names::groups_of(mission),
            top: host::rtgroup::detect()?,
        })
    }

    /// The directories that are there.
    pub fn all(&self) -> Vec<PathBuf> {
        let names = Root::live().names_in(&self.top);
        let own = names
            .into_iter()
            .filter(|name| name.starts_with(&self.prefix));
        own.map(|name| self.top.join(name)).collect()
    }

    /// Makes the groups of these grants that are not there.
    ///
    /// # Errors
    /// When the kernel refuses one; those before it stay.
    pub fn make(&self, grants: &[Grant]) -> Result<(), EnforceError> {
        for grant in grants.iter().filter(|grant| grant.budget_ns.is_some()) {
            if !self.path(&grant.cell).is_dir() {
                self.create(grant)?;
            }
        }
        Ok(())
    }

    /// Removes all groups but those of these places.
    ///
    /// # Errors
    /// Of the first that stays, because processes are left in it.
    pub fn keep_only(&self, places: &[String]) -> Result<(), EnforceError> {
        let kept: Vec<PathBuf> = places.iter().map(|place| self.path(place)).collect();
        let mut result = Ok(());
        for path in self.all() {
            if !kept.contains(&path) {
                // One with processes in it is waited for by trying again.
                result = result.and(host::rtgroup::remove_if_empty(&path));
            }
        }
        Ok(result?)
    }

    /// Removes the group of a cell that is gone; one that cannot be removed goes with the mission's others.
    pub fn forget(&self, place: &str) {
        let _ = remove_group(&self.path(place));
    }

    /// The group of a cell that is to be started: the one that is there if it has this budget and is empty, else a new one.
    ///
    /// # Errors
    /// When no budget was granted, the kernel refuses it, or processes are left in the group.
    pub fn cell(&self, grant: &Grant) -> Result<RtCgroup, EnforceError> {
        let path = self.path(&grant.cell);
        let fits = path.is_dir()
            && host::rtgroup::budget_of(&Root::live(), &path)? == granted(grant)?
            && host::rtgroup::processes_in(&path).is_empty();
        if !fits {
            remove_group(&path)?;
            self.create(grant)?;
        }
        Ok(RtCgroup {
            path,
            grant: grant.clone(),
        })
    }

    /// Adopts the group of a cell whose supervisor is gone.
    ///
    /// # Errors
    /// When there is none.
    pub fn adopt_cell(&self, grant: &Grant) -> Result<RtCgroup, EnforceError> {
        let path = self.path(&grant.cell);
        if !path.is_dir() {
            return Err(RtGroupError::Absent(format!("{} is gone", path.display())).into());
        }
        Ok(RtCgroup {
            path,
            grant: grant.clone(),
        })
    }

    fn path(&self, place: &str) -> PathBuf {
        self.top.join(format!("{}{place}", self.prefix))
    }

    fn create(&self, grant: &Grant) -> Result<(), EnforceError> {
        let budget = granted(grant)?;
        let name = format!("{}{}", self.prefix, grant.cell);
        RtGroup::create(&name, budget.runtime_us.unsigned_abs(), budget.period_us)?.keep();
        Ok(())
    }
}

fn granted(grant: &Grant) -> Result<Budget, EnforceError> {
    let (Some(budget), Some(period)) = (grant.budget_ns, grant.period_ns) else {
        return Err(EnforceError::NotGranted {
            cell: grant.cell.clone(),
            what: "budget",
        });
    };
    Ok(Budget {
        runtime_us: i64::try_from(budget / 1_000).unwrap_or(i64::MAX),
        period_us: period / 1_000,
    })
}

/// A real-time group (cgroup v1, CONFIG_RT_GROUP_SCHED): all FIFO threads of the cell together get their budget on each cpu in
/// every period and no more.
#[derive(Debug)]
pub struct RtCgroup {
    path: PathBuf,
    grant: Grant,
}

/// Groups that are kept for a mission's cells, as long as it runs.
#[derive(Debug)]
pub(super) struct ByGroup {
    mission: String,
}

impl ByGroup {
    pub(super) fn of(mission: &str) -> ByGroup {
        ByGroup {
            mission: mission.to_owned(),
        }
    }

    /// Looked for each time: it takes three small files, and a machine without them is told when they are needed.
    fn groups(&self) -> Result<MissionGroups, EnforceError> {
        MissionGroups::of(&self.mission)
    }
}

impl Mechanism for ByGroup {
    fn make(&self, grant: &Grant, _: &Cell) -> Result<Box<dyn Enforce>, EnforceError> {
        Ok(match grant.budget_ns {
            Some(_) => Box::new(self.groups()?.cell(grant)?),
            None => Box::new(CpusetOnly::new(grant)),
        })
    }

    fn adopt(&self, grant: &Grant, _: &Cell, _: bool) -> Result<Box<dyn Enforce>, EnforceError> {
        Ok(match grant.budget_ns {
            Some(_) => Box::new(self.groups()?.adopt_cell(grant)?),
            None => Box::new(CpusetOnly::new(grant)),
        })
    }

    fn keep(&self, grants: &[Grant]) -> Result<(), EnforceError> {
        match grants.iter().any(|grant| grant.budget_ns.is_some()) {
            true => self.groups()?.make(grants),
            false => Ok(()),
        }
    }

    fn keep_only(&self, places: &[String]) -> Result<(), EnforceError> {
        self.groups()
            .map_or(Ok(()), |groups| groups.keep_only(places))
    }

    fn forget(&self, place: &str) {
        if let Ok(groups) = self.groups() {
            groups.forget(place);
        }
    }
}

impl Enforce for RtCgroup {
    fn guarantee(&self) -> String {
        let time = |ns: Option<u64>| exact(ns.unwrap_or(0));
        format!(
            "{} of cpu {} in every {} and no more, held by the real-time group {}",
            time(self.grant.budget_ns),
            host::cpus::format_list(&self.grant.cpus),
            time(self.grant.period_ns),
            self.path.display()
        )
    }

    fn hold(&self, pid: i32) -> Result<(), EnforceError> {
        join(&self.path, pid)?;
        place(&self.grant, pid)
    }

    fn unheld(&self, threads: &[(i32, Class)]) -> Vec<String> {
        let mut unheld = of_deadline(
            threads,
            "which runs before its other threads, outside any real-time group's budget",
        );
        let group = self.path.display();
        let granted = granted(&self.grant).ok();
        match host::rtgroup::budget_of(&Root::live(), &self.path) {
            Err(_) => unheld.push(format!("its real-time group {group} is gone")),
            Ok(budget) if Some(&budget) != granted.as_ref() => {
                unheld.push(format!("others have made the budget of {group} {budget}"))
            }
            Ok(_) => {}
        }
        unheld
    }

    /// The group stays for the cell's next life.
    fn release(&mut self) -> Result<(), EnforceError> {
        Ok(())
    }
}

/// Puts a process into a group.
pub(super) fn join(group: &Path, pid: i32) -> Result<(), EnforceError> {
    host::cgroup::enter(group, pid).map_err(|error| RtGroupError::Io {
        action: "writing",
        path: error.path.display().to_string(),
        reason: error.source.to_string(),
    })?;
    Ok(())
}

/// Cpus, class and priority of a cell's process.
pub(super) fn place(grant: &Grant, pid: i32) -> Result<(), EnforceError> {
    sched::set_affinity(pid, &grant.cpus)?;
    if let Some(priority) = first_priority(grant) {
        sched::set_class(pid, &grant.class_at(priority))?;
    }
    Ok(())
}
