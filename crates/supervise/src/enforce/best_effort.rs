//! Cells without a guarantee.

use std::sync::{Mutex, PoisonError};

use host::confine::{Keeps, confine};
use host::sched::Class;

use super::cpuset_only::above;
use super::{Enforce, EnforceError, Inside};

/// Only cpus, for a cell without a guarantee: it gets the time that the others leave there.
#[derive(Debug)]
pub struct BestEffort {
    cpus: Vec<u32>,
    /// Why only its affinity keeps it there, until that is reported.
    untold: Mutex<Option<String>>,
}

impl BestEffort {
    /// For a cell that may use these cpus.
    pub fn new(cpus: &[u32]) -> BestEffort {
        BestEffort {
            cpus: cpus.to_vec(),
            untold: Mutex::new(None),
        }
    }

    fn note(&self, keeps: &Keeps) {
        let what = match keeps {
            Keeps::Cpuset(_) => None,
            Keeps::Affinity(_) => Some(format!(
                "is confined to cpu {} by {keeps}",
                host::cpus::format_list(&self.cpus)
            )),
        };
        *self.untold.lock().unwrap_or_else(PoisonError::into_inner) = what;
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
            self.note(&confine(pid, &self.cpus)?);
        }
        Ok(())
    }

    fn tend(&mut self, _: &Inside) -> Vec<String> {
        let untold = self.untold.get_mut();
        let untold = untold.unwrap_or_else(PoisonError::into_inner);
        untold.take().into_iter().collect()
    }

    fn unheld(&self, threads: &[(i32, Class)]) -> Vec<String> {
        above(threads, None)
    }

    fn release(&mut self) -> Result<(), EnforceError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_the_affinity_keeps_is_told_once() {
        let mut held = BestEffort::new(&[1]);
        let inside = Inside {
            pid: 1,
            groups: Vec::new(),
        };
        held.note(&Keeps::Cpuset("/c/cell".into()));
        assert_eq!(held.tend(&inside), Vec::<String>::new());
        held.note(&Keeps::Affinity("there is no cpuset controller".to_owned()));
        assert_eq!(
            held.tend(&inside),
            ["is confined to cpu 1 by its affinity alone, because there is no cpuset controller"]
        );
        assert_eq!(held.tend(&inside), Vec::<String>::new());
    }
}
