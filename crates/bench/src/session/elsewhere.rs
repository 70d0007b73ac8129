//! Keeping the coordinator off the cpus of its cells.

use host::sched;

/// Keeps the coordinator off the cells' cpus, if possible; restored on drop.
pub(crate) struct Elsewhere {
    before: Option<Vec<u32>>,
}

impl Elsewhere {
    pub(crate) fn than(cells: &[u32]) -> Elsewhere {
        let Ok(before) = sched::get_affinity(0) else {
            return Elsewhere { before: None };
        };
        let rest: Vec<u32> = before
            .iter()
            .copied()
            .filter(|c| !cells.contains(c))
            .collect();
        let moved = !rest.is_empty() && sched::set_affinity(0, &rest).is_ok();
        Elsewhere {
            before: moved.then_some(before),
        }
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = sched::set_affinity(0, before);
        }
    }
}
