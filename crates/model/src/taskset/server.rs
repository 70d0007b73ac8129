//! Servers: how a reservation is enforced among others on its cpu.

choice! {
    /// How a reservation is kept among others on its cpu: the fate of unused budget, and the time of its refill.
    pub enum ServerKind {
        /// Refilled every period, keeps its budget until the period ends.
        Deferrable = "deferrable",
        /// Refilled every period, loses its budget as soon as it has nothing to do.
        Polling = "polling",
        /// Each part of the budget comes back one period after it became usable.
        Sporadic = "sporadic",
        /// Refilled every period, idles its budget away when it has nothing to do.
        Periodic = "periodic",
        /// Constant bandwidth server with hard reservation, scheduled by EDF above all fixed priorities.
        ConstantBandwidth = "cbs",
    }
}

impl ServerKind {
    /// Whether all budget comes at fixed instants, one period apart.
    pub const fn is_refilled_periodically(self) -> bool {
        matches!(
            self,
            ServerKind::Deferrable | ServerKind::Polling | ServerKind::Periodic
        )
    }
}

choice! {
    /// How the refills of the servers on one cpu are aligned.
    #[derive(Default)]
    pub enum Refill {
        /// Each at its own instants.
        #[default]
        Apart = "apart",
        /// All at the same instants, which requires equal periods.
        Together = "together",
    }
}

/// The server that keeps a cell's reservation among those of other cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CellServer {
    /// The fate of unused budget.
    pub kind: ServerKind,
    /// Priority on its cpu; a larger number is more urgent; `None` for constant bandwidth, and for a server that shares its
    /// cpu with no other of fixed priority.
    pub priority: Option<i64>,
    /// The cpu, if the file says it.
    pub cpu: Option<u32>,
}

impl CellServer {
    /// The cpu it is on, from 0.
    pub fn on_cpu(&self) -> u32 {
        self.cpu.unwrap_or(0)
    }
}
