//! Budgets held by the hierarchical constant bandwidth servers of cgroup v2 (`cpu.rt.max`), which only patched kernels have.

mod sweep;

use host::cgroup;
use host::hcbs::{self, Top};
use host::rtgroup::Budget;
use host::sched::Class;
use model::mission::Cell;
use text::units::exact;

pub use sweep::sweep;

use super::inside::of_deadline;
use super::rt_cgroup::place;
use super::{CpusetOnly, Enforce, EnforceError, Mechanism};
use crate::admit::Grant;
use crate::names;

/// The budgets of a mission. Their reservation by the group at the top outlives the supervisor and the lives of the cells, so that
/// nobody else takes their room meanwhile; each budget is that of the group around a cell's own, and goes with it.
#[derive(Debug)]
pub(super) struct ByServer {
    mission: String,
}

impl ByServer {
    pub(super) fn of(mission: &str) -> ByServer {
        ByServer {
            mission: mission.to_owned(),
        }
    }

    /// The prefix of the names of its cells' groups.
    fn owner(&self) -> String {
        names::cells_of(&self.mission)
    }

    /// The group around a cell's own.
    fn group(&self, place: &str) -> String {
        names::cell_id(&self.mission, place)
    }

    fn cell(&self, grant: &Grant) -> Result<Server, EnforceError> {
        Ok(Server {
            owner: self.owner(),
            group: self.group(&grant.cell),
            budget: granted(grant)?,
            grant: grant.clone(),
        })
    }
}

/// The budget of a grant as the file takes it: no less and no later than granted.
fn granted(grant: &Grant) -> Result<Budget, EnforceError> {
    let of_grant = grant.budget_ns.zip(grant.period_ns);
    let (budget_ns, period_ns) = of_grant.ok_or_else(|| EnforceError::NotGranted {
        cell: grant.cell.clone(),
        what: "budget",
    })?;
    Ok(in_us(budget_ns, period_ns))
}

/// A budget in whole microseconds that is no less and comes no later.
pub(crate) fn in_us(budget_ns: u64, period_ns: u64) -> Budget {
    Budget {
        runtime_us: i64::try_from(budget_ns.div_ceil(1_000)).unwrap_or(i64::MAX),
        period_us: period_ns / 1_000,
    }
}

impl Mechanism for ByServer {
    fn make(&self, grant: &Grant, _: &Cell) -> Result<Box<dyn Enforce>, EnforceError> {
        Ok(match grant.budget_ns {
            Some(_) => Box::new(self.cell(grant)?),
            None => Box::new(CpusetOnly::new(grant)),
        })
    }

    /// Its group has its budget, which somebody may have changed; even if its threads have no class at the moment.
    fn adopt(&self, grant: &Grant, cell: &Cell, _: bool) -> Result<Box<dyn Enforce>, EnforceError> {
        if grant.budget_ns.is_some() {
            self.cell(grant)?.give()?;
        }
        self.make(grant, cell)
    }

    fn keep(&self, grants: &[Grant]) -> Result<(), EnforceError> {
        let with_budget = grants.iter().filter(|grant| grant.budget_ns.is_some());
        let groups = with_budget.map(|grant| Ok((self.group(&grant.cell), granted(grant)?)));
        let groups: Vec<(String, Budget)> = groups.collect::<Result<_, EnforceError>>()?;
        if groups.is_empty() {
            return Ok(());
        }
        Ok(Top::of_this_machine()?.change(&self.owner(), |all| {
            let shares =
                (groups.into_iter()).map(|(group, budget)| (group, budget.per_second_up_us()));
            all.extend(shares);
        })?)
    }

    fn keep_only(&self, places: &[String]) -> Result<(), EnforceError> {
        let Ok(top) = Top::of_this_machine() else {
            return Ok(());
        };
        if !crate::ledger::is_root() {
            return Ok(());
        }
        let kept: Vec<String> = places.iter().map(|place| self.group(place)).collect();
        let mut result = Ok(());
        for group in top.groups(&self.owner()) {
            match freezer::hold::is_populated(&group) {
                _ if kept.iter().any(|kept| group.ends_with(kept)) => {}
                true => result = result.and(Err(EnforceError::Populated(group))),
                // The creator of cells removes it.
                false => hcbs::give_up(top.root(), &group),
            }
        }
        if top.has(&self.owner())? {
            let changed = top.change(&self.owner(), |all| {
                all.retain(|group, _| kept.contains(group));
            });
            result = result.and(changed.map_err(EnforceError::from));
        }
        result
    }

    fn forget(&self, place: &str) {
        let Ok(top) = Top::of_this_machine() else {
            return;
        };
        if top.has(&self.owner()).unwrap_or(false) {
            // A share that could not be given back is when the next is.
            let _ = top.change(&self.owner(), |all| {
                all.remove(&self.group(place));
            });
        }
    }
}

/// A cell around which there is a group with a budget: on each cpu all its FIFO threads together get it in every period and no more, by a
/// server of SCHED_DEADLINE.
#[derive(Debug)]
struct Server {
    /// The one that reserves for it.
    owner: String,
    group: String,
    budget: Budget,
    grant: Grant,
}

impl Server {
    /// Gives the group its budget. Groups have the file only where the group at the top hands the controller down.
    fn give(&self) -> Result<(), EnforceError> {
        self.give_below(&Top::of_this_machine()?)
    }

    fn give_below(&self, top: &Top) -> Result<(), EnforceError> {
        // Remains of an earlier life are cleared with their reservation, perhaps after the mission has reserved for this one.
        let share_us = self.budget.per_second_up_us();
        if !top.has_for(&self.owner, &self.group, share_us)? {
            top.change(&self.owner, |all| {
                let reserved = all.entry(self.group.clone()).or_default();
                *reserved = share_us.max(*reserved);
            })?;
        }
        let group = top.path().join(&self.group);
        cgroup::hand_down(top.root(), top.path(), &group, "cpu", hcbs::MAX)?;
        Ok(hcbs::give(top.root(), top.path(), &group, self.budget)?)
    }
}

impl Enforce for Server {
    fn guarantee(&self) -> String {
        format!(
            "{} of cpu {} in every {} and no more, held by cpu.rt.max of the group around it",
            exact(self.budget.runtime_us.unsigned_abs() * 1_000),
            host::cpus::format_list(&self.grant.cpus),
            exact(self.budget.period_us * 1_000),
        )
    }

    /// The budget first: the kernel gives none to a group with real-time threads.
    fn hold(&self, pid: i32) -> Result<(), EnforceError> {
        self.give()?;
        place(&self.grant, pid)
    }

    /// The budget of its next life does not come before the period is over in which it had this one.
    fn settle_ns(&self) -> i64 {
        i64::try_from(self.budget.period_us.saturating_mul(1_000)).unwrap_or(i64::MAX)
    }

    fn unheld(&self, threads: &[(i32, Class)]) -> Vec<String> {
        of_deadline(
            threads,
            "whose runtime comes on top of the budget of cpu.rt.max",
        )
    }

    /// Its group is gone with its budget by now, and its reservation stays for its next life.
    fn release(&mut self) -> Result<(), EnforceError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use host::root::Root;
    use model::Enforcer;

    use super::*;
    use crate::admit::Basis;

    #[test]
    fn budgets_are_whole_microseconds_and_no_less_than_granted() {
        let of = |budget, period| {
            let budget = in_us(budget, period);
            (budget.runtime_us, budget.period_us)
        };
        assert_eq!(of(30_000_000, 100_000_000), (30_000, 100_000));
        assert_eq!(of(1_001, 10_999), (2, 10));
    }

    #[test]
    fn what_was_forgotten_with_an_earlier_life_is_reserved_again() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(dir.path());
        let file = |path: &str, text: &str| {
            let path = root.path(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        file(
            "/proc/self/mountinfo",
            "41 31 0:38 / /c rw - cgroup2 cgroup2 rw\n",
        );
        file("/c/cpu.rt.max", "0 1000000");
        file("/c/cgroup.controllers", "cpu\n");
        file("/c/cgroup.subtree_control", "cpu\n");
        file("/c/timecell-cell-m.a/cpu.rt.max", "0 100000");
        let top = Top::at(root.clone(), &dir.path().join("run")).unwrap();
        let server = |runtime_us| Server {
            owner: "timecell-cell-m.".to_owned(),
            group: "timecell-cell-m.a".to_owned(),
            budget: Budget {
                runtime_us,
                period_us: 100_000,
            },
            grant: Grant {
                cell: "a".to_owned(),
                enforcer: Enforcer::Hcbs,
                cpus: vec![1],
                budget_ns: Some(30_000_000),
                period_ns: Some(100_000_000),
                band: None,
                round_robin: false,
                partition: None,
                basis: Basis::WholeCpu,
                rate: 0.3,
                delay_ns: None,
                postponed_ns: 0,
                tasks: Vec::new(),
            },
        };
        server(30_000).give_below(&top).unwrap();
        assert_eq!(root.read("/c/cpu.rt.max").unwrap(), "300000 1000000");
        let given = root.read("/c/timecell-cell-m.a/cpu.rt.max").unwrap();
        assert_eq!(given, "30000 100000");
        // An update has reserved more for its next life.
        top.change("timecell-cell-m.", |all| {
            all.insert("timecell-cell-m.a".to_owned(), 500_000);
        })
        .unwrap();
        server(30_000).give_below(&top).unwrap();
        assert_eq!(root.read("/c/cpu.rt.max").unwrap(), "500000 1000000");
    }
}
