//! The least changes that make servers fit.

use std::collections::BTreeSet;

use analysis::Witness;
use model::Duration;
use model::taskset::{TaskCell, TaskSet};
use serde::Serialize;

use super::super::fix::{Fix, GRID_NS, fixes_where};
use super::super::study::Outcome;
use super::group::Group;

/// Maximum number of servers of a demand that are changed, one at a time.
const MOST_PARTS: usize = 16;

/// Maximum number of other cpus that are tried.
const MOST_CPUS: u32 = 64;

/// The least change of one number of a server after which its cell holds, and every cell beside it that held before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum ServerFix {
    /// The budget of a cell's server, lowered.
    Budget {
        /// The cell.
        cell: String,
        /// Its budget now.
        from_ns: i64,
        /// Its new budget.
        to_ns: i64,
    },
    /// The period of a cell's server, lengthened.
    Period {
        /// The cell.
        cell: String,
        /// Its period now.
        from_ns: i64,
        /// Its new period.
        to_ns: i64,
    },
    /// The deadline of a cell's reservation, extended.
    Deadline {
        /// The cell.
        cell: String,
        /// Its deadline now.
        from_ns: i64,
        /// Its new deadline.
        to_ns: i64,
    },
    /// The priority of a cell's server, raised.
    Priority {
        /// The cell.
        cell: String,
        /// Its priority now.
        from: i64,
        /// Its new priority.
        to: i64,
    },
    /// Another cpu for a cell.
    Cpu {
        /// The cell.
        cell: String,
        /// Its cpu now.
        from: u32,
        /// Its new cpu.
        to: u32,
    },
}

impl ServerFix {
    /// The change relative to the number changed, for sorting the smallest first.
    fn weight(&self) -> f64 {
        match self {
            ServerFix::Budget { from_ns, to_ns, .. }
            | ServerFix::Period { from_ns, to_ns, .. }
            | ServerFix::Deadline { from_ns, to_ns, .. } => {
                (to_ns - from_ns).abs() as f64 / (*from_ns).max(1) as f64
            }
            ServerFix::Priority { .. } => f64::MAX,
            ServerFix::Cpu { .. } => f64::INFINITY,
        }
    }
}

/// Which cells of a cpu hold.
fn holding(set: &TaskSet, cpu: u32) -> BTreeSet<usize> {
    let answers = Group::on_cpu(set, cpu).answers().into_iter();
    answers
        .filter(|answer| {
            answer.server.bound().is_some() && Outcome::of(&answer.inside.verdict) == Outcome::Holds
        })
        .map(|answer| answer.place)
        .collect()
}

/// Which cells of a cpu have servers that get their budgets.
fn supplied(set: &TaskSet, cpu: u32) -> BTreeSet<usize> {
    let group = Group::on_cpu(set, cpu);
    let responses = group.server_responses().into_iter().enumerate();
    responses
        .filter(|(_, response)| response.bound().is_some())
        .filter_map(|(place, _)| Some(group.cell(place)?.0))
        .collect()
}

fn is_faulty(set: &TaskSet, cell: usize) -> bool {
    let cell = &set.cells[cell];
    set.servers_fault().is_some()
        || cell.server_fault().is_some()
        || cell.reservation.is_none_or(|r| r.fault().is_some())
        || cell.tasks.iter().any(|task| task.fault().is_some())
}

/// One search for fixes: a cell that does not hold, and those beside it that do.
struct Search<'a> {
    set: &'a TaskSet,
    cell: usize,
    cpu: u32,
    held: BTreeSet<usize>,
}

impl<'a> Search<'a> {
    fn new(set: &'a TaskSet, cell: usize) -> Option<Search<'a>> {
        let cpu = set.cells.get(cell)?.server?.on_cpu();
        Some(Search {
            set,
            cell,
            cpu,
            held: holding(set, cpu),
        })
    }

    /// The set with one cell changed.
    fn with(&self, cell: usize, change: impl FnOnce(&mut TaskCell)) -> TaskSet {
        let mut set = self.set.clone();
        change(&mut set.cells[cell]);
        set
    }

    /// Whether the cell holds in the changed set, and on its old cpu every other that held before.
    fn fixed(&self, changed: &TaskSet, cell: usize) -> bool {
        if is_faulty(changed, cell) || is_faulty(changed, self.cell) {
            return false;
        }
        let mut now = holding(changed, self.cpu);
        let cpu = changed.cells[self.cell].server.map(|s| s.on_cpu());
        if let Some(other) = cpu.filter(|&cpu| cpu != self.cpu) {
            let before = holding(self.set, other);
            let there = holding(changed, other);
            if !before.is_subset(&there) {
                return false;
            }
            now.extend(there);
        }
        now.contains(&self.cell) && self.held.is_subset(&now)
    }

    /// The fewest steps, at most `most`, after which the server gets its budget; `changed` can only help it.
    fn least(&self, most: i64, changed: impl Fn(i64) -> TaskSet) -> Option<i64> {
        let good = |steps| supplied(&changed(steps), self.cpu).contains(&self.cell);
        if most < 1 {
            return None;
        }
        let (mut low, mut high) = (0, 1);
        while !good(high) {
            if high == most {
                return None;
            }
            low = high;
            high = high.saturating_mul(4).min(most);
        }
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if good(middle) {
                high = middle;
            } else {
                low = middle;
            }
        }
        Some(high)
    }

    fn budget(&self, cell: usize) -> Option<ServerFix> {
        let from_ns = self.set.cells[cell].reservation?.budget.ns();
        let lower = |steps| {
            self.with(cell, |cell| {
                if let Some(reservation) = &mut cell.reservation {
                    reservation.budget = Duration::from_ns(from_ns - steps * GRID_NS);
                }
            })
        };
        let steps = self.least((from_ns - 1) / GRID_NS, lower)?;
        self.fixed(&lower(steps), cell).then(|| ServerFix::Budget {
            cell: self.set.cells[cell].name.clone(),
            from_ns,
            to_ns: from_ns - steps * GRID_NS,
        })
    }

    fn period(&self, cell: usize) -> Option<ServerFix> {
        let from_ns = self.set.cells[cell].reservation?.period.ns();
        let lengthen = |steps: i64| {
            self.with(cell, |cell| {
                if let Some(reservation) = &mut cell.reservation {
                    let to = Duration::from_ns(from_ns.saturating_add(steps * GRID_NS));
                    if reservation.deadline == reservation.period {
                        reservation.deadline = to;
                    }
                    reservation.period = to;
                }
            })
        };
        let most = from_ns.saturating_mul(63) / GRID_NS;
        let steps = self.least(most, lengthen)?;
        self.fixed(&lengthen(steps), cell)
            .then(|| ServerFix::Period {
                cell: self.set.cells[cell].name.clone(),
                from_ns,
                to_ns: from_ns.saturating_add(steps * GRID_NS),
            })
    }

    fn deadline(&self) -> Option<ServerFix> {
        let reservation = self.set.cells[self.cell].reservation?;
        let (from_ns, last) = (reservation.deadline.ns(), reservation.period.ns());
        let postpone = |steps: i64| {
            self.with(self.cell, |cell| {
                if let Some(reservation) = &mut cell.reservation {
                    reservation.deadline =
                        Duration::from_ns(from_ns.saturating_add(steps * GRID_NS));
                }
            })
        };
        let steps = self.least((last - from_ns) / GRID_NS, postpone)?;
        self.fixed(&postpone(steps), self.cell)
            .then(|| ServerFix::Deadline {
                cell: self.set.cells[self.cell].name.clone(),
                from_ns,
                to_ns: from_ns.saturating_add(steps * GRID_NS),
            })
    }

    /// Just above each of the more urgent servers, the least urgent first.
    fn priority(&self, above: &[usize]) -> Option<ServerFix> {
        let cell = &self.set.cells[self.cell];
        let from = cell.server?.priority?;
        let above = above
            .iter()
            .filter_map(|&other| self.set.cells[other].server?.priority);
        let mut above: Vec<i64> = above.filter(|&other| other > from).collect();
        above.sort_unstable();
        let to = above.into_iter().map(|other| other + 1).find(|&to| {
            let raised = self.with(self.cell, |cell| {
                if let Some(server) = &mut cell.server {
                    server.priority = Some(to);
                }
            });
            self.fixed(&raised, self.cell)
        })?;
        let cell = cell.name.clone();
        Some(ServerFix::Priority { cell, from, to })
    }

    /// Other cpus of the machine, or, if the file does not say how many there are, other cpus with servers.
    fn cpu(&self) -> Option<ServerFix> {
        let cell = &self.set.cells[self.cell];
        let servers = self.set.cells.iter().filter_map(|cell| cell.server);
        let last = servers.map(|server| server.on_cpu()).max().unwrap_or(0);
        let cpus = self.set.cpus.unwrap_or(last + 1).min(MOST_CPUS);
        let to = (0..cpus).filter(|&cpu| cpu != self.cpu).find(|&to| {
            let moved = self.with(self.cell, |cell| {
                if let Some(server) = &mut cell.server {
                    server.cpu = Some(to);
                }
            });
            self.fixed(&moved, self.cell)
        })?;
        Some(ServerFix::Cpu {
            cell: cell.name.clone(),
            from: self.cpu,
            to,
        })
    }
}

/// Fixes of a server that is not guaranteed to get its budget, the smallest change first: with each change, which was
/// tested, the cell holds, tasks included, and no cell that held before fails. `parts` are the cells that make up the
/// demand.
pub(super) fn server_fixes(set: &TaskSet, cell: usize, parts: &[usize]) -> Vec<ServerFix> {
    let Some(search) = Search::new(set, cell) else {
        return Vec::new();
    };
    let parts = &parts[..parts.len().min(MOST_PARTS)];
    let mut found: Vec<ServerFix> = Vec::new();
    for &part in parts {
        found.extend(search.budget(part));
        found.extend(search.period(part));
    }
    found.extend(search.deadline());
    found.extend(search.priority(parts));
    found.extend(search.cpu());
    found.sort_by(|a, b| a.weight().total_cmp(&b.weight()));
    found
}

/// Fixes of a task that is late inside a server that gets its budget; every change was tested on the whole cpu.
pub(super) fn task_fixes(set: &TaskSet, cell: usize, witness: &Witness) -> Vec<Fix> {
    let Some(search) = Search::new(set, cell) else {
        return Vec::new();
    };
    let holds = |changed: &TaskCell| {
        let changed = search.with(cell, |cell| *cell = changed.clone());
        Some(search.fixed(&changed, cell))
    };
    let parts: Vec<usize> = witness.parts.iter().map(|part| part.task).collect();
    let raise = most_budget(&search);
    fixes_where(&set.cells[cell], witness.task, &parts, raise, &holds)
}

/// By how many ns the budget can rise, on the grid, while every server of the cpu that gets its budget still does.
fn most_budget(search: &Search<'_>) -> i64 {
    let Some(reservation) = search.set.cells[search.cell].reservation else {
        return 0;
    };
    let budget = reservation.budget.ns();
    let before = supplied(search.set, search.cpu);
    let good = |steps: i64| {
        let raised = search.with(search.cell, |cell| {
            if let Some(reservation) = &mut cell.reservation {
                reservation.budget = Duration::from_ns(budget + steps * GRID_NS);
            }
        });
        before.is_subset(&supplied(&raised, search.cpu))
    };
    let (mut low, mut high) = (0, (reservation.deadline.ns() - budget) / GRID_NS + 1);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if good(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low * GRID_NS
}
