//! Whether a cell meets its deadlines with the supply that it is guaranteed.

use analysis::inside::{self, Inside};
use analysis::reservation::{Dedicated, ExplicitDeadline};
use analysis::server::ServerSupply;
use analysis::{Ns, Supply, Task, Verdict, Witness};
use model::Duration;
use model::taskset::{CellTask, Order, Policy, TaskCell};

use super::{global, mixed, ordered, over_fixed};

/// The guaranteed supply of a cell.
pub(super) enum CellSupply {
    Whole,
    Part(ExplicitDeadline),
    Served(ServerSupply),
}

impl CellSupply {
    /// The supply of a cell without a server; `None` if its reservation is invalid.
    pub fn of(cell: &TaskCell) -> Option<CellSupply> {
        let Some(reservation) = &cell.reservation else {
            return Some(CellSupply::Whole);
        };
        ExplicitDeadline::new(
            ns(reservation.budget),
            ns(reservation.period),
            ns(reservation.deadline),
        )
        .ok()
        .map(CellSupply::Part)
    }
}

impl Supply for CellSupply {
    fn sbf(&self, t: Ns) -> Ns {
        match self {
            CellSupply::Whole => Dedicated.sbf(t),
            CellSupply::Part(reservation) => reservation.sbf(t),
            CellSupply::Served(server) => server.sbf(t),
        }
    }

    fn inverse(&self, work: Ns) -> Option<Ns> {
        match self {
            CellSupply::Whole => Dedicated.inverse(work),
            CellSupply::Part(reservation) => reservation.inverse(work),
            CellSupply::Served(server) => server.inverse(work),
        }
    }

    fn rate(&self) -> (Ns, Ns) {
        match self {
            CellSupply::Whole => Dedicated.rate(),
            CellSupply::Part(reservation) => reservation.rate(),
            CellSupply::Served(server) => server.rate(),
        }
    }

    fn cycle(&self) -> Option<Ns> {
        match self {
            CellSupply::Whole => Dedicated.cycle(),
            CellSupply::Part(reservation) => reservation.cycle(),
            CellSupply::Served(server) => server.cycle(),
        }
    }

    fn delay(&self) -> Option<Ns> {
        match self {
            CellSupply::Whole => Dedicated.delay(),
            CellSupply::Part(reservation) => reservation.delay(),
            CellSupply::Served(server) => server.delay(),
        }
    }
}

/// A time of crate `model`, which is never negative.
pub(super) fn ns(time: Duration) -> Ns {
    time.ns().unsigned_abs()
}

/// A task of crate `model` as one of crate `analysis`.
pub(super) fn task(task: &CellTask) -> Task {
    Task::new(ns(task.wcet), ns(task.period))
        .due(ns(task.deadline))
        .jittered(ns(task.jitter))
        .blocked(ns(task.blocking))
}

fn policy(cell: &TaskCell) -> inside::Policy {
    match cell.policy.order() {
        Some(_) => inside::Policy::FixedPriority,
        None => inside::Policy::Edf,
    }
}

/// The tests' answer on a cell, tasks numbered as in the file; `None` if its reservation is invalid.
pub(super) fn judge(cell: &TaskCell) -> Option<Inside> {
    match cell.policy {
        Policy::Fixed(Order::Audsley) => return ordered::judge(cell),
        Policy::AmcRtb(_) | Policy::EdfVd => return Some(mixed::judge(cell)),
        Policy::GlobalFixed(..) | Policy::GlobalEdf(_) => return global::judge(cell),
        Policy::EdfOverFixed => return Some(over_fixed::judge(cell)),
        Policy::Fixed(_) | Policy::Edf => {}
    }
    let order = cell.by_urgency();
    let tasks: Vec<Task> = order.iter().map(|&i| task(&cell.tasks[i])).collect();
    let judged = inside::test(&tasks, policy(cell), &CellSupply::of(cell)?);
    let mut responses = vec![None; tasks.len()];
    for (&place, bound) in order.iter().zip(judged.responses) {
        responses[place] = bound;
    }
    let verdict = match judged.verdict {
        Verdict::Unschedulable(witness) => Verdict::Unschedulable(renumbered(witness, &order)),
        other => other,
    };
    let missed = judged.missed.iter().map(|&task| order[task]).collect();
    Some(Inside {
        verdict,
        responses,
        missed,
    })
}

pub(super) fn renumbered(mut witness: Witness, order: &[usize]) -> Witness {
    let place = |task: usize| order.get(task).copied().unwrap_or(task);
    witness.task = place(witness.task);
    for part in &mut witness.parts {
        part.task = place(part.task);
    }
    witness
}

/// Whether every deadline of a cell holds, by the verdict alone; `None` if that is undecided within `steps`.
pub(super) fn holds(cell: &TaskCell, steps: u64) -> Option<bool> {
    let faulty = cell.tasks.iter().any(|task| task.fault().is_some())
        || cell
            .reservation
            .is_some_and(|r| r.fault_on(cell.policy.cpus().unwrap_or(1)).is_some());
    if faulty {
        return Some(false);
    }
    if cell.policy.cpus().is_some() {
        return global::shown(cell);
    }
    let given = matches!(cell.policy, Policy::Edf | Policy::Fixed(_));
    if !given || cell.policy.order() == Some(Order::Audsley) {
        return match judge(cell)?.verdict {
            Verdict::Schedulable => Some(true),
            Verdict::Unschedulable(_) => Some(false),
            Verdict::Undecided(_) => None,
        };
    }
    let order = cell.by_urgency();
    let tasks: Vec<Task> = order.iter().map(|&i| task(&cell.tasks[i])).collect();
    inside::holds_within(&tasks, policy(cell), &CellSupply::of(cell)?, steps).ok()
}
