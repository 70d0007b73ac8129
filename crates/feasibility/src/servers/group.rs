//! The servers on one cpu.

use analysis::inside::{self, Inside};
use analysis::server::{
    Analysis, Cell, Kind, LocalTask, Refill, Response, Server, ServerSupply, analyze,
};
use analysis::{Ns, Task, Undecided, Verdict, Witness};
use model::taskset::{self, ServerKind, TaskCell, TaskSet};

use super::super::judge::{ns, renumbered, task};
use super::proof;

/// The servers on one cpu, the most urgent first: constant bandwidth, then by falling priority.
pub(in super::super) struct Group<'a> {
    cells: Vec<(usize, &'a TaskCell)>,
    servers: Vec<Server>,
    refill: Refill,
}

/// The answer on one cell of a group.
pub(in super::super) struct Answer {
    /// Index of the cell in the set.
    pub place: usize,
    /// When its server has had its budget after a refill; a witness numbers servers by their places in the group.
    pub server: Response,
    /// The tasks inside, numbered as in the file.
    pub inside: Inside,
    /// The test's count against a deadline inside that is neither shown to hold nor proved to be missed.
    pub doubt: Option<Witness>,
    /// Whether the server is proved to lack its budget at times, if it is not shown to get it.
    pub proved_short: bool,
}

impl<'a> Group<'a> {
    /// The servers on a cpu.
    pub fn on_cpu(set: &'a TaskSet, cpu: u32) -> Group<'a> {
        let cells = set.cells.iter().enumerate();
        let mut cells: Vec<_> = cells
            .filter(|(_, cell)| {
                cell.reservation.is_some()
                    && cell.server.is_some_and(|server| server.on_cpu() == cpu)
            })
            .collect();
        // Stable, so that equals stay in the order of the file.
        cells.sort_by_key(|(_, cell)| {
            let priority = cell
                .server
                .filter(|server| kind(server.kind) != Kind::ConstantBandwidth);
            priority.map(|server| std::cmp::Reverse(server.priority))
        });
        Group {
            servers: cells.iter().filter_map(|(_, cell)| server(cell)).collect(),
            cells,
            refill: match set.refill {
                taskset::Refill::Apart => Refill::Apart,
                taskset::Refill::Together => Refill::Together,
            },
        }
    }

    /// The cell at a place in the group, and its index in the set.
    pub fn cell(&self, place: usize) -> Option<(usize, &'a TaskCell)> {
        self.cells.get(place).copied()
    }

    /// The guaranteed supply inside the cell with this index in the set, if its server and those above get their budgets.
    pub fn supply(&self, cell: usize) -> Option<ServerSupply> {
        let place = self.cells.iter().position(|(index, _)| *index == cell)?;
        ServerSupply::new(&self.servers, place, self.refill).ok()
    }

    /// The same for a cell whose server holds, and therefore those above it.
    pub fn supply_of_held(&self, cell: usize) -> Option<ServerSupply> {
        let place = self.cells.iter().position(|(index, _)| *index == cell)?;
        ServerSupply::below_proved(&self.servers, place, self.refill).ok()
    }

    /// The server of the cell with this index in the set and those before it as tasks: budgets as work, with the jitter of
    /// late use. `None` if there is no such curve, as for constant bandwidth.
    pub fn as_tasks(&self, cell: usize) -> Option<(Vec<Task>, Task)> {
        let place = self.cells.iter().position(|(index, _)| *index == cell)?;
        let (above, own) = (self.servers.get(..place)?, self.servers.get(place)?);
        let constant = |server: &Server| server.kind == Kind::ConstantBandwidth;
        if above.iter().any(constant) || constant(own) {
            return None;
        }
        let own_work = Task::new(own.budget, own.period).due(own.deadline);
        if self.refill == Refill::Together {
            let first = above.iter().fold(own.blocking, |sum, server| {
                sum.saturating_add(server.budget)
            });
            return Some((Vec::new(), own_work.blocked(first)));
        }
        let jittered =
            |server: &Server| Task::new(server.budget, server.period).jittered(server.jitter());
        Some((
            above.iter().map(jittered).collect(),
            own_work.blocked(own.blocking),
        ))
    }

    /// The servers alone: when each has had its budget.
    pub fn server_responses(&self) -> Vec<Response> {
        let bare = self.servers.iter().map(|&server| Cell {
            server,
            tasks: Vec::new(),
        });
        let analysis = analyze(&bare.collect::<Vec<_>>(), self.refill);
        analysis.cells.into_iter().map(|cell| cell.server).collect()
    }

    /// Every server, and every task inside.
    pub fn answers(&self) -> Vec<Answer> {
        let orders: Vec<Vec<usize>> = self
            .cells
            .iter()
            .map(|(_, cell)| cell.by_urgency())
            .collect();
        let cells = self.cells.iter().zip(&self.servers).zip(&orders);
        let cells = cells.map(|(((_, cell), &server), order)| Cell {
            server,
            tasks: match cell.policy.order() {
                Some(_) => local(cell, order),
                None => Vec::new(),
            },
        });
        let analysis = analyze(&cells.collect::<Vec<_>>(), self.refill);
        let failed = first_failed(&analysis);
        let answers = self.cells.iter().zip(analysis.cells).enumerate();
        answers
            .map(|(place, (&(index, cell), found))| {
                let inside = match failed {
                    Some(at) if place >= at => Inside {
                        verdict: Verdict::Undecided(self.uncounted(place, at)),
                        responses: vec![None; cell.tasks.len()],
                        missed: Vec::new(),
                    },
                    _ => match cell.policy.order() {
                        Some(_) => fixed(&found.tasks, &orders[place]),
                        None => self.edf(place, cell),
                    },
                };
                let (inside, doubt) = proof::certain(&self.servers, place, cell, inside);
                let together = self.refill == Refill::Together;
                Answer {
                    place: index,
                    inside,
                    doubt,
                    proved_short: proof::is_proved_short(&self.servers, place, together),
                    server: match failed {
                        Some(at) if place > at => Response::Undecided(self.uncounted(place, at)),
                        _ => found.server,
                    },
                }
            })
            .collect()
    }

    /// Why there is no answer on tasks inside or cells below a server that fails.
    fn uncounted(&self, place: usize, failed: usize) -> Undecided {
        Undecided::NotCovered(if place == failed {
            "its server is not guaranteed to get its budget".to_owned()
        } else {
            let name = &self.cells[failed].1.name;
            format!(
                "the server of cell {name}, which is more urgent, is not guaranteed to get its budget"
            )
        })
    }

    fn edf(&self, place: usize, cell: &TaskCell) -> Inside {
        let tasks: Vec<Task> = cell.tasks.iter().map(task).collect();
        match ServerSupply::below_proved(&self.servers, place, self.refill) {
            Ok(supply) => inside::test(&tasks, inside::Policy::Edf, &supply),
            Err(verdict) => Inside {
                verdict,
                responses: vec![None; tasks.len()],
                missed: Vec::new(),
            },
        }
    }
}

/// The first server that is not guaranteed to get its budget.
fn first_failed(analysis: &Analysis) -> Option<usize> {
    let cells = &analysis.cells;
    cells.iter().position(|cell| cell.server.bound().is_none())
}

/// Fixed priorities inside: the first task that is late decides, else the first that is undecided.
fn fixed(found: &[Response], order: &[usize]) -> Inside {
    let mut responses: Vec<Option<Ns>> = vec![None; found.len()];
    for (&place, response) in order.iter().zip(found) {
        responses[place] = response.bound();
    }
    let exceeded = order.iter().zip(found);
    let missed = exceeded
        .filter(|(_, response)| matches!(response, Response::Exceeded(_)))
        .map(|(&place, _)| place)
        .collect();
    let late = found.iter().find_map(|response| match response {
        Response::Exceeded(witness) => {
            Some(Verdict::Unschedulable(renumbered(witness.clone(), order)))
        }
        _ => None,
    });
    let open = || {
        found.iter().find_map(|response| match response {
            Response::Undecided(why) => Some(Verdict::Undecided(why.clone())),
            _ => None,
        })
    };
    Inside {
        verdict: late.or_else(open).unwrap_or(Verdict::Schedulable),
        responses,
        missed,
    }
}

fn local(cell: &TaskCell, order: &[usize]) -> Vec<LocalTask> {
    let tasks = order.iter().map(|&place| task(&cell.tasks[place]));
    tasks.map(LocalTask::unbound).collect()
}

/// A cell with a server but no reservation is refused by the readers of files.
fn server(cell: &TaskCell) -> Option<Server> {
    let (server, reservation) = (cell.server?, cell.reservation?);
    Some(
        Server::new(
            kind(server.kind),
            ns(reservation.budget),
            ns(reservation.period),
        )
        .due(ns(reservation.deadline)),
    )
}

fn kind(kind: ServerKind) -> Kind {
    match kind {
        ServerKind::Deferrable => Kind::Deferrable,
        ServerKind::Polling => Kind::Polling,
        ServerKind::Sporadic => Kind::Sporadic,
        ServerKind::Periodic => Kind::Periodic,
        ServerKind::ConstantBandwidth => Kind::ConstantBandwidth,
    }
}
