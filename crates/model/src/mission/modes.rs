//! The two modes of a mission.

use crate::Duration;

/// Two modes, as in mixed-criticality scheduling. In low mode every cell runs and keeps to its low budget; when a cell of high
/// criticality needs more, the mission goes to high mode: cells of low criticality are shed, and those of high criticality
/// may use `wcet_hi` and `budget_hi`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Modes {
    /// How the switch is analysed.
    pub policy: ModePolicy,
    /// How long the real-time cpus must be idle before the mission returns to low mode; 0: at the first idle instant.
    pub return_after: Duration,
}

/// How a change of modes is analysed and carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ModePolicy {
    /// Adaptive mixed criticality with fixed priorities, response-time bound (Baruah, Burns, Davis, RTSS 2011).
    AmcRtb,
}

impl ModePolicy {
    /// All policies, with their names in files.
    pub const NAMES: [(&'static str, ModePolicy); 1] = [("amc-rtb", ModePolicy::AmcRtb)];

    /// The name used in files and tables.
    pub const fn name(self) -> &'static str {
        match self {
            ModePolicy::AmcRtb => "amc-rtb",
        }
    }
}
