//! Servers: how a reservation is kept among others on its cpu.

use std::collections::HashMap;

use super::{Fault, Order, Policy, TaskCell, TaskSet};

/// How a reservation is kept among others on its cpu: what becomes of budget that is not needed, and when there is new.
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
    /// Constant bandwidth server with hard reservation, dispatched by EDF above all fixed priorities.
    ConstantBandwidth,
}

impl ServerKind {
    /// Every kind and its name in files.
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

/// How the refills of the servers on one cpu lie to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Refill {
    /// Each at instants of its own.
    #[default]
    Apart,
    /// All at the same instants, which takes equal periods: the lock-step case.
    Together,
}

impl Refill {
    /// Every choice and its name in files.
    pub const NAMES: [(&'static str, Refill); 2] =
        [("apart", Refill::Apart), ("together", Refill::Together)];
}

/// What keeps a cell's reservation among those of other cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CellServer {
    /// What becomes of budget.
    pub kind: ServerKind,
    /// Priority on its cpu, a larger number is more urgent; `None` for constant bandwidth, and for a server that has
    /// no other of fixed priority beside it.
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

impl TaskCell {
    /// The first thing that makes the cell's server none, apart from others on its cpu.
    pub fn server_fault(&self) -> Option<Fault> {
        let server = self.server?;
        let Some(reservation) = &self.reservation else {
            return Some(Fault::new(
                "server",
                format!("cell `{}` has a server and no reservation", self.name),
                "add reservation = { budget = ..., period = ... }",
            ));
        };
        match self.policy {
            Policy::Fixed(Order::Audsley) => {
                return Some(Fault::new(
                    "order",
                    "an order is not sought inside a server".to_owned(),
                    "remove the server, or set an order of priority, dm, rm or file",
                ));
            }
            Policy::Fixed(_) | Policy::Edf => {}
            policy => {
                return Some(Fault::new(
                    "server",
                    format!(
                        "policy \"{}\" is not analysed inside a server",
                        policy.name()
                    ),
                    "remove the server or set policy = \"fp\" or \"edf\"",
                ));
            }
        }
        if server.kind != ServerKind::ConstantBandwidth {
            return None;
        }
        if server.priority.is_some() {
            return Some(Fault::new(
                "priority",
                "a server of kind `cbs` has no priority: such servers are dispatched by EDF, above all others"
                    .to_owned(),
                "remove the line",
            ));
        }
        (reservation.deadline != reservation.period).then(|| {
            Fault::new(
                "server",
                format!(
                    "the reservation's deadline of {} is shorter than its period, which the analysis of `cbs` does not cover",
                    reservation.deadline
                ),
                "remove the deadline or the server",
            )
        })
    }
}

impl TaskSet {
    /// The first thing that makes servers of one cpu unclear, and the cell it shows in.
    pub fn servers_fault(&self) -> Option<(usize, Fault)> {
        let servers = || {
            let cells = self.cells.iter().enumerate();
            cells.filter_map(|(place, cell)| Some((place, cell, cell.server?)))
        };
        let several_cpus = servers().any(|(_, _, server)| server.on_cpu() > 0);
        let mut by_priority: HashMap<(u32, Option<i64>), usize> = HashMap::new();
        let mut first_on: HashMap<u32, usize> = HashMap::new();
        for (place, cell, server) in servers() {
            let cpu = server.on_cpu();
            let found = |key, what, mend: &str| Some((place, Fault::new(key, what, mend)));
            if several_cpus && server.cpu.is_none() {
                return found(
                    "cpu",
                    format!(
                        "the servers are on several cpus, and cell `{}` does not say on which",
                        cell.name
                    ),
                    "add a line such as `cpu = 0`",
                );
            }
            if self.cpus.is_some_and(|cpus| cpu >= cpus) {
                let last = self.cpus.unwrap_or(1).saturating_sub(1);
                return found(
                    "cpu",
                    format!("`cpu` is {cpu}"),
                    &format!(
                        "cpus = {} at the top: cpus are counted from 0 to {last}",
                        last + 1
                    ),
                );
            }
            if self.refill == Refill::Together {
                if !server.kind.is_refilled_periodically() {
                    return found(
                        "server",
                        format!(
                            "a server of kind `{}` has no refill in common with others",
                            server.kind.name()
                        ),
                        "refill = \"together\" goes with deferrable, polling and periodic",
                    );
                }
                let other = &self.cells[*first_on.entry(cpu).or_insert(place)];
                if other.reservation.map(|r| r.period) != cell.reservation.map(|r| r.period) {
                    return found(
                        "reservation",
                        format!(
                            "cells `{}` and `{}` on cpu {cpu} have different periods",
                            other.name, cell.name
                        ),
                        "servers that are refilled together have one period",
                    );
                }
            }
            if server.kind == ServerKind::ConstantBandwidth {
                continue;
            }
            let crowd = || {
                servers().filter(|(_, _, s)| {
                    s.on_cpu() == cpu && s.kind != ServerKind::ConstantBandwidth
                })
            };
            if server.priority.is_none() && crowd().count() > 1 {
                return found(
                    "priority",
                    format!(
                        "there are several servers on cpu {cpu}, and that of cell `{}` has no priority",
                        cell.name
                    ),
                    "add a line such as `priority = 10`; a larger number is more urgent",
                );
            }
            if let Some(&other) = by_priority.get(&(cpu, server.priority)) {
                return found(
                    "priority",
                    format!(
                        "the servers of cells `{}` and `{}` on cpu {cpu} both have priority {}",
                        self.cells[other].name,
                        cell.name,
                        server.priority.unwrap_or_default()
                    ),
                    "who goes first among equals is not analysed; give each its own priority",
                );
            }
            by_priority.insert((cpu, server.priority), place);
        }
        None
    }
}
