//! A root domain of the trial's own, in which SCHED_DEADLINE threads are bound to a cpu.

use std::path::Path;

use host::isolate::Isolation;

use super::setting::Setting;
use crate::place::Place;

/// The cpu of the trial as a root domain of its own, so that SCHED_DEADLINE threads can be bound to it; put back on drop.
pub(super) struct OwnDomain {
    isolation: Option<Isolation>,
    /// The cpus that such threads are bound to: the trial's alone, or all where there is no domain of its own.
    pub cpus: Vec<u32>,
    /// What became of it, one sentence.
    pub found: String,
}

impl OwnDomain {
    /// Splits the cpu off; where that cannot be, the reason is in `found`.
    pub(super) fn of(setting: &Setting, place: &Place, trial: u32) -> OwnDomain {
        let journal = place.isolation_journal(trial);
        let none = |why: String| OwnDomain {
            isolation: None,
            cpus: setting.spot.allowed.clone(),
            found: format!(
                "cpu {} is not a root domain of its own: {why}",
                setting.spot.cpu
            ),
        };
        match Isolation::split(&[setting.spot.cpu], &journal) {
            Ok(isolation) if isolation.is_split() => OwnDomain {
                cpus: vec![setting.spot.cpu],
                found: format!("cpu {} is a root domain of its own", setting.spot.cpu),
                isolation: Some(isolation),
            },
            Ok(isolation) => none(isolation.found().balancing.clone()),
            Err(error) => none(error.to_string()),
        }
    }

    /// The cgroup that the cells must join, if there is one.
    pub(super) fn group(&self) -> Option<&Path> {
        self.isolation.as_ref().and_then(Isolation::group)
    }

    /// Puts everything back; the first thing that could not be is the error.
    pub(super) fn end(self) -> Result<(), String> {
        let left = self.isolation.map(Isolation::end).unwrap_or_default();
        match left.as_slice() {
            [] => Ok(()),
            left => Err(format!("could not be put back: {}", left.join("; "))),
        }
    }
}
