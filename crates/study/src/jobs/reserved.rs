//! Reservations of a measured task set: the analysis of each, by the textbook and by the minimum supply of its enforcer.

use std::collections::BTreeMap;

use analysis::inside::fixed_priority;
use analysis::linux::{Means, own_work};
use analysis::reservation::{Dedicated, Periodic};
use analysis::{Ns, Supply, Task};
use feasibility::means;
use record::summary::HeldSummary;
use record::trial::{CellRecord, HeldCell, HoldsRecord, TaskRecord, TrialRecord};

/// A whole cpu, in the units that utilisations are rounded up to.
const WHOLE: u128 = 1_000_000_000;

/// The analysis of one task whose cell was held.
pub(crate) struct OfTask {
    /// The textbook's bound in the reservation, ns.
    pub bound_ns: Option<i64>,
    pub held: HeldSummary,
}

/// A thread of a set.
type Thread<'a> = (&'a CellRecord, &'a TaskRecord);

/// Analysis and enforcers of the tasks of a trial, by the identities of their threads; empty if nothing held them.
pub(crate) fn study(rounds: &[&TrialRecord]) -> BTreeMap<String, OfTask> {
    let first = rounds
        .iter()
        .find_map(|record| Some((record, record.holds.as_ref()?)));
    let Some((record, holds)) = first else {
        return BTreeMap::new();
    };
    let threads: Vec<Thread<'_>> = (record.cells.iter())
        .filter_map(|cell| Some((cell, cell.task.as_ref()?)))
        .collect();
    let mut found = BTreeMap::new();
    for cell in &holds.cells {
        let own: Vec<&Thread<'_>> = (threads.iter())
            .filter(|(_, task)| task.cell_number == cell.cell_number)
            .collect();
        let tasks: Vec<Task> = own.iter().map(|(_, task)| of(task)).collect();
        let [textbook, certain] = responses(cell, &tasks, holds, &threads);
        let reacted = || {
            let all = rounds.iter().filter_map(|record| record.holds.as_ref());
            all.flat_map(|holds| &holds.cells)
                .filter(|other| other.cell_number == cell.cell_number)
                .filter_map(|other| other.reacted.as_ref())
        };
        for (((thread, _), bound), certain) in own.into_iter().zip(textbook).zip(certain) {
            let held = HeldSummary {
                by: cell.by,
                cpu: cell.cpu,
                certain_ns: certain,
                latest_look_ns: reacted().map(|one| one.late.most_ns).max(),
                most_overrun_ns: reacted().map(|one| one.overruns.most_ns).max(),
            };
            let of_task = OfTask {
                bound_ns: bound,
                held,
            };
            found.insert(thread.id.clone(), of_task);
        }
    }
    found
}

/// The bounds of the tasks of a cell, ns: by the textbook, and by the minimum supply.
fn responses(
    cell: &HeldCell,
    tasks: &[Task],
    holds: &HoldsRecord,
    threads: &[Thread<'_>],
) -> [Vec<Option<i64>>; 2] {
    let none = || vec![None; tasks.len()];
    let (budget, period) = (cell.by.held.budget_ns, cell.by.held.period_ns);
    let Some(means) = means(cell.by.held.enforcer, &holds.machine) else {
        return [none(), none()];
    };
    let comes = |with_overheads: bool| match means {
        Means::Deadline(tick) => roams(holds, threads, if with_overheads { tick } else { 0 }),
        Means::Hcbs(tick) => served(cell, holds, if with_overheads { tick } else { 0 }),
        Means::RtCgroup(_) | Means::Freezer(_) => {
            comes(cell, holds, threads, with_overheads.then_some(means))
        }
    };
    // In a virtual machine its kernel works at the expense of the budget, too.
    let in_machine = threads.iter().any(|(cell, _)| cell.engine.is_machine());
    let by_thread = matches!(means, Means::Deadline(_)) && !in_machine;
    let due = |own_work: Ns| match tasks {
        [task] if by_thread => due(task, own_work, period),
        _ => None,
    };
    let textbook = match Periodic::new(budget, period) {
        Ok(supply) if comes(false) => earlier(within(tasks, &supply), due(budget)),
        _ => none(),
    };
    let certain = match means.certain(budget, period) {
        _ if !comes(true) => none(),
        Ok(supply) => earlier(within(tasks, &supply), due(own_work(budget))),
        Err(_) => earlier(none(), due(own_work(budget))),
    };
    [textbook, certain]
}

/// The bound of a task alone in a thread of SCHED_DEADLINE, ns: every job finds a whole runtime, and one that takes no more than so much
/// `own_work` of that ends by the thread's deadline, which is one period of it after the release. `None` if jobs may take longer, or come
/// more often than runtimes.
fn due(task: &Task, own_work: Ns, period: Ns) -> Option<i64> {
    let is_whole = task.wcet <= own_work && task.period >= period;
    is_whole.then(|| i64::try_from(period).unwrap_or(i64::MAX))
}

/// The bounds, or the other one where that is earlier.
fn earlier(bounds: Vec<Option<i64>>, other: Option<i64>) -> Vec<Option<i64>> {
    let least = |bound: Option<i64>| bound.into_iter().chain(other).min();
    bounds.into_iter().map(least).collect()
}

fn within(tasks: &[Task], supply: &impl Supply) -> Vec<Option<i64>> {
    let as_signed = |bound: Ns| i64::try_from(bound).unwrap_or(i64::MAX);
    let found = fixed_priority(tasks, supply).responses;
    found
        .into_iter()
        .map(|bound| bound.map(as_signed))
        .collect()
}

fn of(task: &TaskRecord) -> Task {
    let ns = |time: i64| time.max(0).unsigned_abs();
    Task {
        deadline: ns(task.deadline_ns),
        ..Task::new(ns(task.wcet_ns), ns(task.period_ns))
    }
}

/// Whether a cell gets its budget within each of its periods, below the work before it on its cpu: competitors, and more urgent held
/// cells. Response time analysis of the budget as if it were a task (Davis and Burns, RTSS 2005), each cell above a deferrable server;
/// with the mechanism's overdraft, and its cost for all cells of the cpu, where they count.
fn comes(
    cell: &HeldCell,
    holds: &HoldsRecord,
    threads: &[Thread<'_>],
    overheads: Option<Means>,
) -> bool {
    let urgency = |number: u32| {
        let of_cell = threads
            .iter()
            .filter(|(_, task)| task.cell_number == number);
        of_cell
            .filter_map(|(cell, _)| priority(&cell.class_wanted))
            .max()
    };
    let own = cell.by.held;
    let above: Vec<(Ns, Ns)> = (holds.cells.iter())
        .filter(|other| {
            // Of two equally urgent ones either may come first.
            let before = urgency(other.cell_number);
            let is_before = before.is_some() && before >= urgency(cell.cell_number);
            other.cpu == cell.cpu && other.cell_number != cell.cell_number && is_before
        })
        .map(|other| (other.by.held.budget_ns, other.by.held.period_ns))
        .collect();
    let overdraw = overheads.map_or(0, |means| means.held(0, 1).overdraw);
    let competitors = (threads.iter())
        .filter(|(record, task)| task.competes && record.cpu == cell.cpu)
        .map(|(_, task)| of(task));
    // The holder of the cells runs before all of them, on behalf of the less urgent ones too.
    let all_held = (holds.cells.iter())
        .filter(|other| other.cpu == cell.cpu)
        .map(|other| (other.by.held.budget_ns, other.by.held.period_ns));
    let costs = overheads.map_or_else(Vec::new, |means| means.costs(all_held));
    let late = |budget: Ns, period: Ns, jitter: Ns| Task {
        jitter,
        ..Task::new(budget, period)
    };
    let servers = above.iter().map(|&(budget, period)| {
        // The overdraft is paid back: counted with the refills, the saved budget is a whole one at most.
        let saved = if overdraw > 0 {
            period
        } else {
            period.saturating_sub(budget)
        };
        late(budget, period, saved)
    });
    let mut all: Vec<Task> = competitors.collect();
    all.extend(
        costs
            .iter()
            .map(|held| late(held.budget, held.period, held.period)),
    );
    all.extend(servers);
    if all.is_empty() {
        // Alone it has its budget whenever it asks: its overdraft is in its supply.
        return true;
    }
    all.push(Task {
        deadline: own.period_ns,
        blocking: overdraw.saturating_mul(above.len() as Ns),
        ..Task::new(own.budget_ns.saturating_add(overdraw), own.period_ns)
    });
    matches!(
        fixed_priority(&all, &Dedicated).responses.last(),
        Some(Some(_))
    )
}

/// Whether the server of a cell gets its budget within each of its periods beside the others on its cpu, each of which may run a `tick`
/// longer than its budget. A competitor is not held and runs after all of them.
fn served(cell: &HeldCell, holds: &HoldsRecord, tick: Ns) -> bool {
    let of = |cell: &HeldCell| (cell.by.held.budget_ns, cell.by.held.period_ns);
    let others: Vec<(Ns, Ns)> = (holds.cells.iter())
        .filter(|other| other.cpu == cell.cpu && other.cell_number != cell.cell_number)
        .map(of)
        .collect();
    Means::Hcbs(tick).comes(of(cell), &others, &[])
}

/// The priority of a class such as `FIFO 79`.
pub(crate) fn priority(class: &str) -> Option<u8> {
    class.strip_prefix("FIFO ")?.parse().ok()
}

/// Whether threads of SCHED_DEADLINE that move between cpus get their budgets within their periods, each of which may run a `tick` longer
/// than its budget. No more threads than cpus: none ever waits for another. Else the utilisation bound of Goossens, Funk and Baruah
/// (Real-Time Systems 25, 2003) for global EDF, sum <= m - (m - 1) most, a tick of each other thread counted to every budget.
fn roams(holds: &HoldsRecord, threads: &[Thread<'_>], tick: Ns) -> bool {
    let cpus = threads.iter().map(|(_, task)| task.cpus.len()).max();
    let cpus = cpus.unwrap_or(1).max(1);
    let others = holds.cells.len().saturating_sub(1) as Ns;
    let is_apart = holds.cells.len() <= cpus;
    let overrun = if is_apart {
        0
    } else {
        tick.saturating_mul(others)
    };
    let part = |cell: &HeldCell| {
        let held = cell.by.held;
        let budget = u128::from(held.budget_ns) + u128::from(overrun);
        (budget * WHOLE).div_ceil(u128::from(held.period_ns.max(1)))
    };
    let parts: Vec<u128> = holds.cells.iter().map(part).collect();
    let (cpus, most) = (cpus as u128, parts.iter().copied().max().unwrap_or(0));
    let fits = parts.iter().sum::<u128>() + (cpus - 1) * most <= cpus * WHOLE;
    most <= WHOLE && (is_apart || fits)
}

#[cfg(test)]
mod tests;
