//! Enforcement: the kernel mechanisms that hold cells to their grants, one file each behind one trait. They are put
//! around a cell's process from outside; programs in the cell need not know of them and cannot undo them. Admission
//! decides the grants.

mod best_effort;
mod cpuset_only;
mod deadline;
mod error;
mod evl_quota;
mod evl_tp;
mod freezer;
mod hcbs;
mod inside;
mod jailhouse;
mod leave;
mod mechanism;
mod partition;
mod rt_cgroup;

pub use best_effort::BestEffort;
pub use cpuset_only::{CpusetOnly, beyond};
pub use deadline::Deadline;
pub use error::EnforceError;
pub use evl_quota::sweep as sweep_quotas;
pub use freezer::sweep as sweep_freezers;
pub(crate) use hcbs::in_us;
pub use hcbs::sweep as sweep_servers;
pub use inside::Inside;
pub use jailhouse::sweep as sweep_jailhouse;
pub use leave::leave_real_time;
pub use mechanism::{Mechanism, Mechanisms};
pub(crate) use partition::of_this_machine as partitions;
pub use partition::{Left, sweep as sweep_partitions};
pub use rt_cgroup::{MissionGroups, RtCgroup, sweep as sweep_groups};

use host::sched::Class;

use crate::admit::Grant;

/// A step that may take seconds because others may not answer: done outside the loop, which must not wait.
pub type Step = Box<dyn FnOnce() -> Result<(), EnforceError> + Send>;

/// The counts of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counted {
    /// Periods that have ended. A cell that wants nothing begins none.
    pub periods: u64,
    /// Those whose budget was used up.
    pub exhausted: u64,
    /// The largest use beyond a budget, ns.
    pub overrun_ns: i64,
    /// The process that counts, by its pid: another one may have come late, and use meanwhile is charged all the same.
    pub by: i32,
}

impl Counted {
    /// The counts of one cell before, and after it was held again.
    fn both(before: Option<Counted>, after: Option<Counted>) -> Option<Counted> {
        let (Some(one), Some(other)) = (before, after) else {
            return before.or(after);
        };
        Some(Counted {
            periods: one.periods.saturating_add(other.periods),
            exhausted: one.exhausted.saturating_add(other.exhausted),
            overrun_ns: one.overrun_ns.max(other.overrun_ns),
            by: other.by,
        })
    }
}

/// The enforcer of one cell.
pub trait Enforce: Send {
    /// Its guarantee, one sentence for the user.
    fn guarantee(&self) -> String;

    /// Puts a process with all its threads under it: cpus, budget, class and priority. It must not run its program yet:
    /// processes that it starts before are not held.
    ///
    /// # Errors
    /// The kernel's refusal; the process is then as it was, or partly held, and must not continue.
    fn hold(&self, pid: i32) -> Result<(), EnforceError>;

    /// A variable for the environment of its program, by which its threads enter the mechanism by themselves; `None`: they are put there.
    fn variable(&self) -> Option<(String, String)> {
        None
    }

    /// Looks after the cell while it runs: new threads in it are held, and anything no longer held as it was is held again.
    /// Returns notes for the user, as clauses.
    fn tend(&mut self, _inside: &Inside) -> Vec<String> {
        Vec::new()
    }

    /// In how long the cell needs attention next, ns; `None`: never, the enforcement set up at its start is permanent.
    fn tend_again_ns(&self) -> Option<i64> {
        None
    }

    /// Parts of the cell that are not held by now, as clauses; these are threads of it.
    fn unheld(&self, _threads: &[(i32, Class)]) -> Vec<String> {
        Vec::new()
    }

    /// The class that a thread, by its id on the host, gets back when the cell's next budget comes; `None`: it has its own.
    /// Readers of a thread's class look here first.
    fn gets_back(&self, _thread: i32) -> Option<Class> {
        None
    }

    /// The step that releases the mechanism that would restore the class of a cell's threads when the cell is shed to
    /// best effort; if it fails, the cell must not continue. `None`: nothing would restore it.
    fn shed(&mut self) -> Option<Step> {
        None
    }

    /// The step that takes back the release by [`Enforce::shed`], before the threads get their class back; `None`:
    /// nothing was released. Not before the step of [`Enforce::shed`] is done.
    fn unshed(&mut self) -> Option<Step> {
        None
    }

    /// The counts of its budget in this life; `None`: nobody counts.
    fn counted(&self) -> Option<Counted> {
        None
    }

    /// How long the kernel may still count the holdings of a cell's processes after they have ended, ns. For that long
    /// its groups are left alone, and it is not restarted.
    fn settle_ns(&self) -> i64 {
        0
    }

    /// Lets the mechanism go but for the needs of the cell's next life; every process under it has ended.
    ///
    /// # Errors
    /// The part that could not be removed.
    fn release(&mut self) -> Result<(), EnforceError>;
}

/// The priority that the first thread of a cell gets: that of its most urgent task, without tasks the highest that it may have;
/// `None`: no FIFO class was granted.
fn first_priority(grant: &Grant) -> Option<u8> {
    let band = grant.band?;
    let of_tasks = grant.tasks.iter().filter_map(|task| task.priority).max();
    Some(of_tasks.unwrap_or(band.highest))
}
