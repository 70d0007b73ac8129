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

choice! {
    /// How a change of modes is analysed and carried out.
    pub enum ModePolicy {
        /// Adaptive mixed criticality with fixed priorities, response-time bound (Baruah, Burns, Davis, RTSS 2011).
        AmcRtb = "amc-rtb",
    }
}
