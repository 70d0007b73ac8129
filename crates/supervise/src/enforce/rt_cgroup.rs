use std::path::{Path, PathBuf};

use host::rtgroup::{RtGroup, RtGroupError, remove_group, remove_group_with_inner};
use host::sched::{self, Class};

use super::{Enforce, EnforceError, first_priority};
use crate::admit::Grant;

/// Period of a mission's own group, us: what its cells hold together is counted in it.
const MISSION_PERIOD_US: u64 = 1_000_000;

/// The real-time group around all cells of a mission; theirs are inside. It outlives the supervisor, so that cells keep their
/// budgets when that is killed.
#[derive(Debug)]
pub struct MissionGroup {
    name: String,
    path: PathBuf,
}

impl MissionGroup {
    /// Name of the group of a mission, below the top of the hierarchy.
    pub fn name_of(mission: &str) -> String {
        format!("timecell-mission-{mission}")
    }

    /// Makes the group with room for `grants`, or takes over that of a supervisor that is gone.
    ///
    /// # Errors
    /// When the kernel refuses the budget.
    pub fn open(mission: &str, grants: &[&Grant]) -> Result<MissionGroup, EnforceError> {
        let name = MissionGroup::name_of(mission);
        let path = host::rtgroup::detect()?.join(&name);
        if !path.is_dir() {
            let needed = grants
                .iter()
                .filter_map(|grant| share_us(grant))
                .fold(0, u64::saturating_add);
            RtGroup::create(&name, needed.clamp(1, MISSION_PERIOD_US), MISSION_PERIOD_US)?.keep();
        }
        Ok(MissionGroup { name, path })
    }

    /// What the group of this mission has of every second, us; 0 where there is none.
    pub fn held_us(mission: &str) -> u64 {
        let Ok(top) = host::rtgroup::detect() else {
            return 0;
        };
        let path = top.join(MissionGroup::name_of(mission));
        let budget = host::rtgroup::budget_of(&host::root::Root::live(), &path);
        budget.map_or(0, |budget| budget.per_second_us())
    }

    /// Gives the group as much as these grants and `more_us` of every second need together; where it has more, that is taken from
    /// it only if `shrink` says so.
    ///
    /// # Errors
    /// When the kernel refuses; less it may refuse for as long as it counts cells that are gone.
    pub fn fit(&self, grants: &[&Grant], more_us: u64, shrink: bool) -> Result<(), EnforceError> {
        let needed = grants
            .iter()
            .map(|grant| MissionGroup::share_us(grant))
            .fold(more_us, u64::saturating_add)
            .clamp(1, MISSION_PERIOD_US);
        let has = host::rtgroup::budget_of(&host::root::Root::live(), &self.path)?;
        let larger = needed > has.per_second_us();
        if has.per_second_us() == needed || !(larger || shrink) {
            return Ok(());
        }
        // Making it larger has to wait until the kernel forgets what others gave back; making it smaller can be tried again.
        Ok(host::rtgroup::resize(&self.path, needed, larger)?)
    }

    /// Removes the group of a cell that is gone; what cannot be removed goes with the mission's.
    pub fn forget(&self, place: &str) {
        let _ = remove_group(&self.path.join(place));
    }

    /// What a grant holds of every second, us, rounded up; 0 without a budget.
    pub fn share_us(grant: &Grant) -> u64 {
        share_us(grant).unwrap_or(0)
    }

    /// Makes a cell's group inside; one that an earlier instance left empty is made anew.
    ///
    /// # Errors
    /// When no budget was granted, the kernel refuses it, or processes are left in the group.
    pub fn cell(&self, grant: &Grant) -> Result<RtCgroup, EnforceError> {
        let (Some(budget), Some(period)) = (grant.budget_ns, grant.period_ns) else {
            return Err(EnforceError::NotGranted {
                cell: grant.cell.clone(),
                what: "budget",
            });
        };
        remove_group(&self.path.join(&grant.cell))?;
        let name = format!("{}/{}", self.name, grant.cell);
        let path = RtGroup::create(&name, budget / 1_000, period / 1_000)?.keep();
        Ok(RtCgroup {
            path,
            grant: grant.clone(),
        })
    }

    /// Takes over the group of a cell whose supervisor is gone.
    ///
    /// # Errors
    /// When there is none.
    pub fn adopt_cell(&self, grant: &Grant) -> Result<RtCgroup, EnforceError> {
        let path = self.path.join(&grant.cell);
        if !path.is_dir() {
            return Err(RtGroupError::Absent(format!("{} is gone", path.display())).into());
        }
        Ok(RtCgroup {
            path,
            grant: grant.clone(),
        })
    }

    /// Removes the group with all inside; the cells have ended.
    ///
    /// # Errors
    /// When processes are left in it.
    pub fn remove(self) -> Result<(), EnforceError> {
        Ok(remove_group_with_inner(&self.path)?)
    }
}

/// What a grant holds of every second, us, rounded up.
fn share_us(grant: &Grant) -> Option<u64> {
    let (budget, period) = (grant.budget_ns?, grant.period_ns?);
    let scaled =
        (u128::from(budget) * u128::from(MISSION_PERIOD_US)).div_ceil(u128::from(period.max(1)));
    u64::try_from(scaled).ok()
}

/// A real-time group (cgroup v1, CONFIG_RT_GROUP_SCHED): all FIFO threads of the cell together get their budget on each cpu in
/// every period and no more.
#[derive(Debug)]
pub struct RtCgroup {
    path: PathBuf,
    grant: Grant,
}

impl Enforce for RtCgroup {
    fn guarantee(&self) -> String {
        let ms = |ns: Option<u64>| ns.unwrap_or(0) as f64 / 1e6;
        format!(
            "{:.3} ms of cpu {} in every {:.3} ms and no more, held by the real-time group {}",
            ms(self.grant.budget_ns),
            host::cpus::format_list(&self.grant.cpus),
            ms(self.grant.period_ns),
            self.path.display()
        )
    }

    fn hold(&self, pid: i32) -> Result<(), EnforceError> {
        join(&self.path, pid)?;
        place(&self.grant, pid)
    }

    fn release(&mut self) -> Result<(), EnforceError> {
        Ok(remove_group(&self.path)?)
    }
}

/// Puts a process into a group.
pub(super) fn join(group: &Path, pid: i32) -> Result<(), EnforceError> {
    let procs = group.join("cgroup.procs");
    std::fs::write(&procs, pid.to_string()).map_err(|error| RtGroupError::Io {
        action: "writing",
        path: procs.display().to_string(),
        reason: error.to_string(),
    })?;
    Ok(())
}

/// Cpus, class and priority of a cell's process.
pub(super) fn place(grant: &Grant, pid: i32) -> Result<(), EnforceError> {
    sched::set_affinity(pid, &grant.cpus)?;
    if let Some(priority) = first_priority(grant) {
        sched::set_class(pid, &Class::Fifo { priority })?;
    }
    Ok(())
}
