//! Cells with cpus and a class, but no enforced budget.

use host::sched::Class;
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

/// The threads with a real-time class beyond the highest priority that was granted, each with a clause; `None`: no such class was.
pub fn beyond(
    threads: &[(i32, Class)],
    highest: Option<u8>,
) -> impl Iterator<Item = (i32, String)> {
    let granted = highest.map_or_else(
        || "none".to_owned(),
        |highest| format!("at most FIFO {highest}"),
    );
    let is_above = move |class: &Class| {
        let priority = class.priority();
        class.is_real_time() && priority.is_none_or(|own| Some(own) > highest)
    };
    (threads.iter().filter(move |(_, class)| is_above(class))).map(move |(tid, class)| {
        let clause = format!("its thread {tid} has class {class}, and it was granted {granted}");
        (*tid, clause)
    })
}

/// The same, the clauses alone.
pub(super) fn above(threads: &[(i32, Class)], highest: Option<u8>) -> Vec<String> {
    beyond(threads, highest).map(|(_, clause)| clause).collect()
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

    fn unheld(&self, threads: &[(i32, Class)]) -> Vec<String> {
        above(threads, self.grant.band.map(|band| band.highest))
    }

    fn release(&mut self) -> Result<(), EnforceError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_beyond_their_grant_are_told() {
        let fifo = |priority| Class::Fifo { priority };
        let threads = [(1, Class::Other), (2, fifo(50)), (3, fifo(80))];
        let told = above(&threads, Some(50));
        assert_eq!(
            told,
            ["its thread 3 has class FIFO 80, and it was granted at most FIFO 50"]
        );
        let told = above(&threads, None);
        assert_eq!(told.len(), 2);
        assert!(
            told[0].ends_with("class FIFO 50, and it was granted none"),
            "{told:?}"
        );
    }
}
