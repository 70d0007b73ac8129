//! Servers: how a reservation is enforced among others on its cpu.

/// How a reservation is kept among others on its cpu: what becomes of unused budget, and when it is refilled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ServerKind {
    /// Refilled every period, keeps its budget until the period ends.
    Deferrable,
    /// Refilled every period, loses its budget as soon as it has nothing to do.
    Polling,
    /// Each part of the budget comes back one period after it became usable.
    Sporadic,
    /// Refilled every period, idles its budget away when it has nothing to do.
    Periodic,
    /// Constant bandwidth server with hard reservation, scheduled by EDF above all fixed priorities.
    ConstantBandwidth,
}

impl ServerKind {
    /// All kinds, with their names in files.
    pub const NAMES: [(&'static str, ServerKind); 5] = [
        ("deferrable", ServerKind::Deferrable),
        ("polling", ServerKind::Polling),
        ("sporadic", ServerKind::Sporadic),
        ("periodic", ServerKind::Periodic),
        ("cbs", ServerKind::ConstantBandwidth),
    ];

    /// The name used in files and tables.
    pub fn name(self) -> &'static str {
        let named = ServerKind::NAMES.iter().find(|(_, kind)| *kind == self);
        named.map_or("cbs", |(name, _)| name)
    }

    /// Whether all budget comes at fixed instants, one period apart.
    pub const fn is_refilled_periodically(self) -> bool {
        matches!(
            self,
            ServerKind::Deferrable | ServerKind::Polling | ServerKind::Periodic
        )
    }
}

/// How the refills of the servers on one cpu are aligned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Refill {
    /// Each at its own instants.
    #[default]
    Apart,
    /// All at the same instants, which requires equal periods.
    Together,
}

impl Refill {
    /// All choices, with their names in files.
    pub const NAMES: [(&'static str, Refill); 2] =
        [("apart", Refill::Apart), ("together", Refill::Together)];
}

/// The server that keeps a cell's reservation among those of other cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CellServer {
    /// What becomes of unused budget.
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
