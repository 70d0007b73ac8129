//! The two modes of a mission.

use crate::Duration;
use crate::file::table;

table! {
    /// Two modes: in low mode all cells run; when a cell of criticality `hi` needs more than its low budget, those of criticality `lo` are shed.
    ///
    /// In high mode, cells of high criticality may use `wcet_hi` and `budget_hi`, as in mixed-criticality scheduling.
    pub struct Modes(Copy): "modes", "[modes]" {
        /// how the switch is analysed: adaptive mixed criticality, response-time bound
        policy: ModePolicy, Default "\"amc-rtb\"";
        /// how long the real-time cpus must be idle before the mission returns to low mode
        ///
        /// 0: at the first idle instant.
        return_after: Duration, Default "\"0ms\"";
    }
}

choice! {
    /// How a change of modes is analysed and carried out.
    pub enum ModePolicy {
        /// Adaptive mixed criticality with fixed priorities, response-time bound (Baruah, Burns, Davis, RTSS 2011).
        AmcRtb = "amc-rtb",
    }
}
