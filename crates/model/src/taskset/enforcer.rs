//! The mechanisms of Linux that hold cells to their reservations.

use serde::{Deserialize, Serialize};

/// The mechanism of Linux that is to hold cells to their reservations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Enforcer {
    /// SCHED_DEADLINE.
    #[default]
    Deadline,
    /// Real-time groups of the cpu controller, cgroup v1.
    RtCgroup,
    /// Hierarchical constant bandwidth servers, `cpu.rt.max` of cgroup v2.
    Hcbs,
}

impl Enforcer {
    /// Every enforcer and its name in files and options.
    pub const NAMES: [(&'static str, Enforcer); 3] = [
        ("deadline", Enforcer::Deadline),
        ("rt-cgroup", Enforcer::RtCgroup),
        ("hcbs", Enforcer::Hcbs),
    ];

    /// The name used in files and options.
    pub fn name(self) -> &'static str {
        let named = Enforcer::NAMES.iter().find(|(_, each)| *each == self);
        named.map_or("deadline", |(name, _)| name)
    }
}
