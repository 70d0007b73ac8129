//! Cells with cpus and a class, but no enforced budget.

use model::mission::Cell;

use super::rt_cgroup::{join, place};
use super::{Enforce, EnforceError, Mechanism, first_priority};
use crate::admit::Grant;

/// Cpus and a class only: no budget is enforced.
#[derive(Debug)]
pub struct CpusetOnly {
    grant: Grant,
}

impl CpusetOnly {
    /// For a cell of this grant.
    pub fn new(grant: &Grant) -> CpusetOnly {
        CpusetOnly {
            grant: grant.clone(),
        }
    }
}

/// Nothing is kept for cells that have no budget.
#[derive(Debug)]
pub(super) struct ByCpus;

impl Mechanism for ByCpus {
    fn make(&self, grant: &Grant, _: &Cell) -> Result<Box<dyn Enforce>, EnforceError> {
        Ok(Box::new(CpusetOnly::new(grant)))
    }
}

impl Enforce for CpusetOnly {
    fn guarantee(&self) -> String {
        format!(
            "cpu {} and its priority; no budget is enforced, so lower priorities can starve",
            host::cpus::format_list(&self.grant.cpus)
        )
    }

    fn hold(&self, pid: i32) -> Result<(), EnforceError> {
        // Where there are real-time groups, the cell's own has no budget, and lets nobody into the class.
        if first_priority(&self.grant).is_some()
            && let Ok(top) = host::rtgroup::detect()
        {
            join(&top, pid)?;
        }
        place(&self.grant, pid)
    }

    fn release(&mut self) -> Result<(), EnforceError> {
        Ok(())
    }
}
