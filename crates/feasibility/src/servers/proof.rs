//! Proofs that servers ask for more than their cpu gives.

use analysis::inside::Inside;
use analysis::server::{Kind, Server};
use analysis::{Ns, Part, Task, Undecided, Verdict, Witness};
use model::taskset::TaskCell;

use super::super::judge::{judge, renumbered, task};
use super::super::special::late;
use super::super::study::urgent_first;

/// Longest interval that is searched for a demand beyond the most that a server can give, ns.
const LONGEST: u128 = 1 << 63;

/// Whether a server whose bound exceeds its deadline is proved to lack its budget at times.
///
/// Constant bandwidth: the sum of budget/period exceeds one cpu. Refilled together: the budgets do not fit into one period.
/// Otherwise there is a critical instant, at which all servers above are refilled with work pending; a deferrable one that
/// is the most urgent may have kept its budget until just before its refill. Servers below such a one may not be able to do
/// the same, so nothing is proved unless the budgets together exceed the cpu.
pub(super) fn is_proved_short(servers: &[Server], index: usize, together: bool) -> bool {
    let Some((server, above)) = servers.get(..=index).and_then(|all| all.split_last()) else {
        return false;
    };
    if server.kind == Kind::ConstantBandwidth || together {
        return true;
    }
    let critical = above.iter().enumerate().all(|(place, server)| {
        server.jitter() == 0 || (place == 0 && server.kind == Kind::Deferrable)
    });
    let budgets: Vec<Task> = servers[..=index]
        .iter()
        .map(|server| Task::new(server.budget, server.period))
        .collect();
    critical || analysis::utilization::compare_with_one(&budgets).is_gt()
}

/// The proofs about the tasks inside a server, and without one the test's count against them.
///
/// The tests of servers are sufficient: if they do not show that a deadline holds, that does not prove a miss. It does for
/// the most urgent server of its cpu if it serves at fixed instants and loses unused budget; if the tasks miss a
/// deadline on a whole cpu; and if their work exceeds the most that any server with this budget gives.
pub(super) fn certain(
    servers: &[Server],
    index: usize,
    cell: &TaskCell,
    inside: Inside,
) -> (Inside, Option<Witness>) {
    if inside.verdict.is_schedulable() {
        return (inside, None);
    }
    let whole = whole_cpu(cell);
    let Some(server) = servers.get(index) else {
        return (inside, None);
    };
    let blocked = cell.tasks.iter().any(|task| task.blocking.ns() > 0);
    if let Some(whole) = &whole
        && index == 0
        && !blocked
        && whole.verdict.is_schedulable()
        && never_waits(server, cell, whole)
    {
        return (whole.clone(), None);
    }
    let first = index == 0 && matches!(server.kind, Kind::Polling | Kind::Periodic);
    if first && !blocked && matches!(inside.verdict, Verdict::Unschedulable(_)) {
        return (inside, None);
    }
    let unblocked = if blocked {
        whole_cpu(&without_blocking(cell))
    } else {
        whole
    };
    if let Some(whole) =
        unblocked.filter(|whole| matches!(whole.verdict, Verdict::Unschedulable(_)))
    {
        let responses = inside.responses;
        return (Inside { responses, ..whole }, None);
    }
    if let Some(witness) = overload(server, cell) {
        let verdict = Verdict::Unschedulable(witness);
        let missed = late(&verdict);
        return (
            Inside {
                verdict,
                missed,
                ..inside
            },
            None,
        );
    }
    match inside.verdict {
        Verdict::Unschedulable(witness) => {
            let why = "the test, which is only sufficient, does not show that every deadline \
                       holds, and no miss is proved";
            let verdict = Verdict::Undecided(Undecided::NotCovered(why.to_owned()));
            (
                Inside {
                    verdict,
                    responses: inside.responses,
                    missed: Vec::new(),
                },
                Some(witness),
            )
        }
        _ => (inside, None),
    }
}

/// The exact answer on a whole cpu.
fn whole_cpu(cell: &TaskCell) -> Option<Inside> {
    judge(&TaskCell {
        reservation: None,
        server: None,
        ..cell.clone()
    })
}

fn without_blocking(cell: &TaskCell) -> TaskCell {
    let mut cell = cell.clone();
    for task in &mut cell.tasks {
        task.blocking = model::Duration::from_ns(0);
    }
    cell
}

/// Whether the most urgent server of its cpu, which keeps its budget while idle, always has some left.
///
/// Its work within one period belongs to jobs that arrive in that time or not longer before it than they take to
/// respond. As long as the budget lasts they respond as on a whole cpu; if all that work is no more than the budget, it
/// lasts for ever.
fn never_waits(server: &Server, cell: &TaskCell, whole: &Inside) -> bool {
    if !matches!(server.kind, Kind::Deferrable | Kind::Sporadic) {
        return false;
    }
    let work = cell
        .tasks
        .iter()
        .zip(&whole.responses)
        .try_fold(0u128, |sum, (each, response)| {
            let task = task(each);
            let window = u128::from(server.period) + u128::from((*response)?);
            let jobs = window.div_ceil(u128::from(task.period.max(1)));
            sum.checked_add(jobs.checked_mul(u128::from(task.wcet))?)
        });
    work.is_some_and(|work| work <= u128::from(server.budget))
}

/// An instant by which the tasks at least as urgent as some task must have done more than the most that a server gives: its
/// budget in each period that the interval touches. All tasks arrive at once, and then as often as allowed.
fn overload(server: &Server, cell: &TaskCell) -> Option<Witness> {
    let tasks = urgent_first(cell);
    let all = tasks.len().checked_sub(1)?;
    let lasts = match cell.policy.order() {
        Some(_) => 0..=all,
        // No task is always more urgent than another, so all count.
        None => all..=all,
    };
    lasts.into_iter().find_map(|last| {
        let witness = beyond(server, &tasks[..=last])?;
        Some(renumbered(witness, &cell.by_urgency()))
    })
}

fn beyond(server: &Server, tasks: &[Task]) -> Option<Witness> {
    let due = |task: &Task, instant: u128| match instant.checked_sub(task.deadline.into()) {
        Some(after) => after / u128::from(task.period.max(1)) + 1,
        None => 0,
    };
    let most = |instant: u128| {
        let periods = instant.div_ceil(u128::from(server.period.max(1))) + 1;
        instant.min(periods.saturating_mul(server.budget.into()))
    };
    let demand = |instant: u128| {
        tasks.iter().fold(0u128, |sum, task| {
            sum.saturating_add(due(task, instant).saturating_mul(task.wcet.into()))
        })
    };
    let mut instant: u128 = tasks.iter().map(|task| task.deadline.into()).max()?;
    while demand(instant) <= most(instant) {
        instant = instant.max(1) * 2;
        if instant > LONGEST {
            return None;
        }
    }
    let narrow = |time: u128| Ns::try_from(time).unwrap_or(Ns::MAX);
    Some(Witness {
        task: tasks.len() - 1,
        instant: narrow(instant),
        demand: narrow(demand(instant)),
        supply: narrow(most(instant)),
        parts: (tasks.iter().enumerate())
            .map(|(place, task)| Part {
                task: place,
                jobs: narrow(due(task, instant)),
                demand: narrow(due(task, instant).saturating_mul(task.wcet.into())),
            })
            .filter(|part| part.jobs > 0)
            .collect(),
    })
}
