//! Cells that were promised nothing.

use host::confine::confine;

use super::{Enforce, EnforceError};

/// Cpus and nothing else, for a cell that was promised nothing: it gets what the others leave there.
#[derive(Debug)]
pub struct BestEffort {
    cpus: Vec<u32>,
}

impl BestEffort {
    /// For a cell that may use these cpus.
    pub fn new(cpus: &[u32]) -> BestEffort {
        BestEffort {
            cpus: cpus.to_vec(),
        }
    }
}

impl Enforce for BestEffort {
    fn guarantee(&self) -> String {
        format!(
            "best effort on cpu {}, nothing is guaranteed",
            host::cpus::format_list(&self.cpus)
        )
    }

    fn hold(&self, pid: i32) -> Result<(), EnforceError> {
        // One that may use all is held to nothing: its groups and its affinity are as the machine has them.
        let all = host::cpus::online().unwrap_or_default();
        if all.iter().any(|cpu| !self.cpus.contains(cpu)) {
            confine(pid, &self.cpus)?;
        }
        Ok(())
    }

    fn release(&mut self) -> Result<(), EnforceError> {
        Ok(())
    }
}
