//! Enforcement: the kernel mechanisms that hold cells to what admission granted them, one file each behind one trait. They are
//! put around a cell's process from outside; what is inside the cell need not know and may not undo it. Deciding who gets
//! what is admission's.

mod cpuset_only;
mod error;
mod rt_cgroup;

pub use cpuset_only::CpusetOnly;
pub use error::EnforceError;
pub use rt_cgroup::{MissionGroup, RtCgroup};

use crate::admit::Grant;

/// What holds one cell.
pub trait Enforce: Send {
    /// What it guarantees, one sentence for the user.
    fn guarantee(&self) -> String;

    /// Puts a process with all its threads under it: cpus, budget, class and priority. It must not run its program yet: what
    /// it starts before is not held.
    ///
    /// # Errors
    /// What the kernel refused; the process is then as it was, or held by part of it, and must not be let go on.
    fn hold(&self, pid: i32) -> Result<(), EnforceError>;

    /// Lets the mechanism go; every process under it has ended.
    ///
    /// # Errors
    /// What could not be removed.
    fn release(&mut self) -> Result<(), EnforceError>;
}

/// The highest priority of a grant, which its first thread gets; `None`: no FIFO class was granted.
fn first_priority(grant: &Grant) -> Option<u8> {
    grant.band.map(|band| band.highest)
}
