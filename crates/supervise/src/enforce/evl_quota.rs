//! Budgets held by quota groups of EVL, which threads out of band enter by themselves: a variable of their environment names the groups.

use host::evl_quota::{self, GROUPS, Kept, Owned};
use host::evl_tp;
use host::root::Root;
use host::sched::Class;
use model::mission::Cell;

use super::evl_tp::ByFrames;
use super::{CpusetOnly, Enforce, EnforceError, Left, Mechanism};
use crate::admit::Grant;
use crate::ledger::{self, Ledger, LedgerError};
use crate::names;

/// Groups that are kept for a mission's cells, as long as it runs. They outlive the supervisor.
#[derive(Debug)]
pub(super) struct ByQuota {
    owned: Owned,
}

/// Removes the quota groups and time partitions of missions of which nothing runs any more, by the ledger: EVL keeps them. Those of running supervisors are
/// not reported.
///
/// # Errors
/// When the ledger cannot be locked, read or understood; nothing is removed then.
pub fn sweep(ledger: &Ledger) -> Result<Vec<Left>, LedgerError> {
    if !ledger::is_root() {
        return Ok(Vec::new());
    }
    let locked = ledger.lock()?;
    let entries = locked.entries_everywhere()?;
    let mut left = Vec::new();
    let quotas: fn(&str) -> Box<dyn Mechanism> = |mission| Box::new(ByQuota::of(mission));
    let frames: fn(&str) -> Box<dyn Mechanism> = |mission| Box::new(ByFrames::of(mission));
    for (called, owners, mechanism) in [
        ("quota groups", evl_quota::owners(), quotas),
        ("time partitions", evl_tp::owners(), frames),
    ] {
        let missions = (owners.iter()).filter_map(|owner| names::mission_of_quotas(owner));
        for mission in missions.filter(|mission| !ledger::anything_runs(&entries, mission)) {
            let removed = mechanism(mission).keep_only(&[]);
            let what = format!("{called} of EVL of mission `{mission}`");
            left.push(Left::removed(&what, removed.map_err(|why| why.to_string())));
        }
    }
    Ok(left)
}

impl ByQuota {
    pub(super) fn of(mission: &str) -> ByQuota {
        ByQuota {
            owned: Owned::by(&names::quotas_of(mission)),
        }
    }

    fn groups(&self, grant: &Grant) -> Result<Kept, EnforceError> {
        let (Some(budget), Some(period)) = (grant.budget_ns, grant.period_ns) else {
            return Err(not_granted(grant, "budget"));
        };
        let percent = evl_quota::percent(budget, period).map_err(EnforceError::Percent)?;
        let made = self.owned.make(&grant.cell, &grant.cpus, percent);
        made.map_err(|why| EnforceError::OfCell(grant.cell.clone(), why))
    }
}

pub(super) fn not_granted(grant: &Grant, what: &'static str) -> EnforceError {
    EnforceError::NotGranted {
        cell: grant.cell.clone(),
        what,
    }
}

impl Mechanism for ByQuota {
    fn make(&self, grant: &Grant, _: &Cell) -> Result<Box<dyn Enforce>, EnforceError> {
        Ok(match grant.budget_ns {
            Some(_) => Box::new(Quota::of(grant, self.groups(grant)?)),
            None => Box::new(CpusetOnly::new(grant)),
        })
    }

    fn adopt(&self, grant: &Grant, cell: &Cell, _: bool) -> Result<Box<dyn Enforce>, EnforceError> {
        // New ones would not hold its threads.
        match self.owned.of(&grant.cell)? {
            None if grant.budget_ns.is_some() => {
                Err(not_granted(grant, "quota group that is left"))
            }
            _ => self.make(grant, cell),
        }
    }

    fn keep(&self, grants: &[Grant]) -> Result<(), EnforceError> {
        let mut held = grants.iter().filter(|grant| grant.budget_ns.is_some());
        held.try_for_each(|grant| self.groups(grant).map(drop))
    }

    fn keep_only(&self, places: &[String]) -> Result<(), EnforceError> {
        Ok(self.owned.retain(|kept| places.contains(&kept.place))?)
    }

    fn forget(&self, place: &str) {
        let _ = self.owned.remove(place);
    }
}

/// The quota groups of a cell, one on each of its cpus.
struct Quota {
    kept: Kept,
    /// Cpus and class of its threads in band.
    in_band: CpusetOnly,
}

impl Quota {
    fn of(grant: &Grant, kept: Kept) -> Quota {
        Quota {
            kept,
            in_band: CpusetOnly::new(grant),
        }
    }
}

impl Enforce for Quota {
    fn guarantee(&self) -> String {
        let each: Vec<String> = (self.kept.groups.iter())
            .map(|group| format!("{} of cpu {}", group.number, group.cpu))
            .collect();
        format!(
            "{} % of every second of its cpus for its threads out of band that enter EVL's quota group {}; nothing holds its others",
            self.kept.percent,
            each.join(" or ")
        )
    }

    fn hold(&self, pid: i32) -> Result<(), EnforceError> {
        self.in_band.hold(pid)
    }

    fn variable(&self) -> Option<(String, String)> {
        Some((GROUPS.to_owned(), evl_quota::listed(&self.kept.groups)))
    }

    fn unheld(&self, threads: &[(i32, Class)]) -> Vec<String> {
        let tids: Vec<i32> = threads.iter().map(|(tid, _)| *tid).collect();
        let own = ("quota", &*self.kept.groups);
        let mut unheld = evl_quota::outside(&Root::live(), &tids, own, "quota groups");
        if !self.kept.is_there() {
            unheld.push("others have removed or changed its quota groups".to_owned());
        }
        unheld.extend(self.in_band.unheld(threads));
        unheld
    }

    /// The groups stay for the cell's next life.
    fn release(&mut self) -> Result<(), EnforceError> {
        Ok(())
    }
}
