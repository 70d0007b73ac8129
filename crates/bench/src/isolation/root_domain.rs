//! A separate root domain for the trial, in which SCHED_DEADLINE threads are bound to a cpu.

use std::path::Path;

use host::isolate::Isolation;
use model::Enforcer;

use super::setting::Setting;
use crate::together::Around;

/// Where the cells of a trial run. For SCHED_DEADLINE threads the cpu is a root domain of its own, so that they can be bound to it; put back
/// on drop.
pub(super) struct OwnDomain {
    isolation: Option<Isolation>,
    /// The cpus that the threads are bound to: the trial's alone, or all where such threads have no domain of their own.
    pub cpus: Vec<u32>,
    /// The outcome, one sentence; `None`: no root domain was wanted.
    pub found: Option<String>,
}

impl OwnDomain {
    /// Splits the cpu off if the enforcer needs it; if that fails, the reason is in `found`.
    pub(super) fn of(
        enforcer: Option<Enforcer>,
        setting: &Setting,
        around: &Around<'_>,
    ) -> OwnDomain {
        let cpu = setting.spot.cpu;
        let own = |isolation, found| OwnDomain {
            isolation,
            cpus: vec![cpu],
            found,
        };
        if enforcer != Some(Enforcer::Deadline) {
            return own(None, None);
        }
        let journal = around.stage.place.isolation_journal(around.number);
        let why = match Isolation::split(&[cpu], &journal) {
            Ok(isolation) if isolation.is_split() => {
                let found = format!("cpu {cpu} is a root domain of its own");
                return own(Some(isolation), Some(found));
            }
            Ok(isolation) => isolation.found().balancing.clone(),
            Err(error) => error.to_string(),
        };
        OwnDomain {
            isolation: None,
            cpus: setting.spot.allowed.clone(),
            found: Some(format!("cpu {cpu} is not a root domain of its own: {why}")),
        }
    }

    /// The cgroup that the cells must join, if there is one.
    pub(super) fn group(&self) -> Option<&Path> {
        self.isolation.as_ref().and_then(Isolation::group)
    }

    /// Restores everything; failures are the error.
    pub(super) fn end(self) -> Result<(), String> {
        let left = self.isolation.map(Isolation::end).unwrap_or_default();
        match left.as_slice() {
            [] => Ok(()),
            left => Err(format!("could not be restored: {}", left.join("; "))),
        }
    }
}
