//! The faults of a task set, whichever file it came from.

use std::collections::HashMap;

use super::{CellTask, Limits, Order, Policy, Refill, Reservation, ServerKind, TaskCell, TaskSet};
use crate::Duration;

/// The fix for a time beyond [`Limits::LONGEST_NS`].
pub(super) const TOO_LONG: &str = "it must be at most 36 years, the range of exact analysis";

/// A fault of a task, a reservation or a cell, wherever it was read from: TOML or another tool's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The field in question, as task-set files call it.
    pub key: &'static str,
    /// The fault.
    pub what: String,
    /// How to fix it; empty when `what` says it.
    pub fix: String,
}

impl Fault {
    pub(super) fn new(key: &'static str, what: String, fix: &str) -> Fault {
        let fix = fix.to_owned();
        Fault { key, what, fix }
    }
}

fn fault(key: &'static str, what: String, fix: impl Into<String>) -> Option<Fault> {
    let fix = fix.into();
    Some(Fault { key, what, fix })
}

fn out_of_range(key: &'static str, time: Duration, may_be_zero: bool) -> Option<Fault> {
    if time.ns() == 0 && !may_be_zero {
        return fault(key, format!("`{key}` is zero"), "it must be at least 1ns");
    }
    if time.ns() > Limits::LONGEST_NS {
        return fault(key, format!("`{key}` is {time}"), TOO_LONG);
    }
    None
}

impl CellTask {
    /// The first fault that makes this task invalid: a time out of range, or a wcet above the deadline.
    pub fn fault(&self) -> Option<Fault> {
        let times = [
            ("wcet", self.wcet, false),
            ("period", self.period, false),
            ("deadline", self.deadline, false),
            ("jitter", self.jitter, true),
            ("blocking", self.blocking, true),
        ];
        for (key, time, may_be_zero) in times {
            if let Some(found) = out_of_range(key, time, may_be_zero) {
                return Some(found);
            }
        }
        if self.wcet > self.deadline {
            return fault(
                "wcet",
                format!(
                    "the wcet of task `{}` is {}, longer than its deadline of {}",
                    self.name, self.wcet, self.deadline
                ),
                "the wcet must be at most the deadline: otherwise a job misses it even alone",
            );
        }
        self.high_fault()
    }

    /// The fault of the execution time in high mode.
    pub(crate) fn high_fault(&self) -> Option<Fault> {
        let high = self.wcet_high?;
        if high < self.wcet {
            return fault(
                "wcet_hi",
                format!(
                    "`wcet_hi` of task `{}` is {high}, less than its wcet of {}",
                    self.name, self.wcet
                ),
                "`wcet_hi` must be at least the wcet",
            );
        }
        if high > self.deadline {
            return fault(
                "wcet_hi",
                format!(
                    "`wcet_hi` of task `{}` is {high}, longer than its deadline of {}",
                    self.name, self.deadline
                ),
                "`wcet_hi` must be at most the deadline: otherwise a job misses it even alone",
            );
        }
        None
    }
}

impl Reservation {
    /// The first fault that makes this reservation invalid on one cpu: anything but 0 < budget <= deadline <= period.
    pub fn fault(&self) -> Option<Fault> {
        self.fault_on(1)
    }

    /// The same for a budget that is the sum over `cpus` cpus: anything but 0 < budget <= cpus x deadline, and deadline <=
    /// period.
    pub fn fault_on(&self, cpus: u32) -> Option<Fault> {
        let times = [
            ("budget", self.budget),
            ("period", self.period),
            ("deadline", self.deadline),
        ];
        for (key, time) in times {
            if let Some(found) = out_of_range(key, time, false) {
                return Some(found);
            }
        }
        if self.deadline > self.period {
            return fault(
                "deadline",
                format!(
                    "the reservation's deadline of {} exceeds its period of {}",
                    self.deadline, self.period
                ),
                "the deadline must be at most the period",
            );
        }
        if cpus > 1 {
            let most = self.period.ns().saturating_mul(cpus.into());
            return (self.budget.ns() > most).then(|| Fault {
                key: "budget",
                what: format!(
                    "the budget of {} exceeds what {cpus} cpus supply in a period of {}",
                    self.budget, self.period
                ),
                fix: format!(
                    "it is the sum over all cpus and must be at most {}",
                    Duration::from_ns(most)
                ),
            });
        }
        if self.budget > self.deadline {
            let (limit, name) = if self.deadline == self.period {
                (self.period, "period")
            } else {
                (self.deadline, "deadline")
            };
            return fault(
                "budget",
                format!(
                    "the budget of {} exceeds the reservation's {name} of {limit}",
                    self.budget
                ),
                format!("the budget must be at most the {name}"),
            );
        }
        None
    }
}

impl TaskCell {
    /// The first fault in the cell's priorities. Tasks and the reservation have their own faults.
    pub fn priority_fault(&self) -> Option<(usize, Fault)> {
        if self.policy.order() != Some(Order::Priority) {
            return None;
        }
        let mut seen = HashMap::new();
        for (place, task) in self.tasks.iter().enumerate() {
            let Some(priority) = task.priority else {
                return fault(
                    "priority",
                    format!("task `{}` has no priority", task.name),
                    "give every task of the cell one, or none and an `order`",
                )
                .map(|found| (place, found));
            };
            if let Some(other) = seen.insert(priority, place) {
                return fault(
                    "priority",
                    format!(
                        "tasks `{}` and `{}` both have priority {priority}",
                        self.tasks[other].name, task.name
                    ),
                    "the order among equals is not analysed; give each a different priority",
                )
                .map(|found| (place, found));
            }
        }
        None
    }
}

impl TaskCell {
    /// The first fault of the cell's server, regardless of others on its cpu.
    pub fn server_fault(&self) -> Option<Fault> {
        let server = self.server?;
        let Some(reservation) = &self.reservation else {
            return Some(Fault::new(
                "server",
                format!("cell `{}` has a server but no reservation", self.name),
                "add reservation = { budget = ..., period = ... }",
            ));
        };
        match self.policy {
            Policy::Fixed(Order::Audsley) => {
                return Some(Fault::new(
                    "order",
                    "no priority order is searched for inside a server".to_owned(),
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
                "a server of kind `cbs` has no priority: EDF schedules these servers, above all others"
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
    /// The first fault among the servers of one cpu, and the cell in which it shows.
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
            let found = |key, what, fix: &str| Some((place, Fault::new(key, what, fix)));
            if several_cpus && server.cpu.is_none() {
                return found(
                    "cpu",
                    format!(
                        "the servers are on several cpus, but cell `{}` does not say on which",
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
                            "a server of kind `{}` is not refilled together with others",
                            server.kind.name()
                        ),
                        "refill = \"together\" is for deferrable, polling and periodic servers",
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
                        "servers that are refilled together must have the same period",
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
                        "there are several servers on cpu {cpu}, but that of cell `{}` has no priority",
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
                    "the order among equals is not analysed; give each a different priority",
                );
            }
            by_priority.insert((cpu, server.priority), place);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ns(ns: i64) -> Duration {
        Duration::from_ns(ns)
    }

    #[test]
    fn tasks_are_checked() {
        let key = |task: CellTask| task.fault().map(|f| f.key);
        let good = CellTask::new("t", ns(1), ns(2));
        assert_eq!(key(good.clone()), None);
        assert_eq!(
            key(CellTask {
                wcet: ns(0),
                ..good.clone()
            }),
            Some("wcet")
        );
        assert_eq!(
            key(CellTask {
                period: ns(i64::MAX),
                ..good.clone()
            }),
            Some("period")
        );
        assert_eq!(
            key(CellTask {
                jitter: ns(i64::MAX),
                ..good.clone()
            }),
            Some("jitter")
        );
        assert_eq!(
            key(CellTask {
                wcet: ns(3),
                ..good.clone()
            }),
            Some("wcet")
        );
        let arbitrary = CellTask {
            wcet: ns(3),
            deadline: ns(5),
            ..good
        };
        assert_eq!(
            key(arbitrary),
            None,
            "more than the period is legal with a late deadline"
        );
    }

    #[test]
    fn reservations_are_checked() {
        let key = |budget, period, deadline| {
            let reservation = Reservation {
                budget: ns(budget),
                period: ns(period),
                deadline: ns(deadline),
            };
            reservation.fault().map(|f| f.key)
        };
        assert_eq!(key(5, 10, 10), None);
        assert_eq!(key(10, 10, 10), None);
        assert_eq!(key(0, 10, 10), Some("budget"));
        assert_eq!(key(11, 10, 10), Some("budget"));
        assert_eq!(key(5, 10, 4), Some("budget"));
        assert_eq!(key(5, 10, 11), Some("deadline"));
    }
}
