//! Reservations as SCHED_DEADLINE threads.

use std::collections::BTreeSet;

use analysis::Task;
use analysis::linux::{Bandwidth, DeadlineParams, RootDomain};
use model::taskset::{CellTask, Policy, Reservation, TaskCell};

use super::super::judge::ns;
use super::Bound;
use super::ask::Asked;
use text::words::plural;

/// Each cpu as a separate root domain, which exclusive cpusets make it; without a placement all cpus as one.
pub(super) fn bounds(asked: &Asked) -> (Vec<Bound>, Vec<String>) {
    let Some(on) = &asked.on else {
        let note = "no placement of the cells is known, so the cpus are treated as one root \
                    domain in which threads may migrate";
        let cells = asked.on_cpu(0);
        let all = bound(
            asked.limit,
            asked.cpus,
            &cells,
            plural(asked.cpus as u64, "cpu"),
        );
        return (vec![all], vec![note.to_owned()]);
    };
    let used: BTreeSet<usize> = on.iter().flatten().copied().collect();
    let bounds: Vec<Bound> = used
        .into_iter()
        .map(|cpu| bound(asked.limit, 1, &asked.on_cpu(cpu), format!("cpu {cpu}")))
        .collect();
    let mut notes = Vec::new();
    let refused = bounds.iter().any(|bound| !bound.refusals.is_empty());
    if refused && asked.cpus > 1 {
        let each = asked.cells.iter().zip(on);
        let each = each.flat_map(|(cell, cpus)| std::iter::repeat_n(cell, cpus.len()));
        let whole = bound(
            asked.limit,
            asked.cpus,
            &each.collect::<Vec<_>>(),
            String::new(),
        );
        if whole.refusals.is_empty() {
            notes.push(format!(
                "the kernel would admit them in one root domain of {} cpus, but then nothing keeps a cell on its cpu",
                asked.cpus
            ));
        }
    }
    (bounds, notes)
}

fn bound(limit: Bandwidth, cpus: usize, cells: &[&TaskCell], of: String) -> Bound {
    let domain = RootDomain {
        share: limit,
        ..RootDomain::of_cpus(cpus).with_fair_server()
    };
    let mut threads: Vec<DeadlineParams> = Vec::new();
    let mut refusals = Vec::new();
    for cell in cells {
        let Some(reservation) = cell.reservation else {
            continue;
        };
        threads.push(DeadlineParams {
            runtime: ns(reservation.budget),
            deadline: ns(reservation.deadline),
            period: ns(reservation.period),
        });
        if let Err(refusal) = domain.admits(&threads) {
            // A refused reservation takes nothing, so the next may still fit.
            let index = threads.len() - 1;
            threads.pop();
            let why = refusal.to_string();
            let why = why
                .strip_prefix(&format!("reservation {index}: "))
                .unwrap_or(&why);
            refusals.push(format!("cell {}: {why} ({})", cell.name, refusal.errno()));
        }
    }
    let asked: Vec<&TaskCell> = cells.to_vec();
    Bound {
        of,
        asked: asked.iter().fold(0, |sum: u64, cell| {
            let ratio = cell
                .reservation
                .map_or(0, |r| analysis::linux::to_ratio(ns(r.period), ns(r.budget)));
            sum.saturating_add(ratio)
        }),
        cells: asked.iter().map(|cell| cell.name.clone()).collect(),
        available: domain
            .available()
            .map(|available| available.saturating_sub(domain.given())),
        refusals,
    }
}

/// The threads of a cell without a reservation, one for each task that its deadline schedules, on its cpus alone; `None`: it has none.
pub(super) fn of_threads(cell: &TaskCell, limit: Bandwidth) -> Option<Bound> {
    let by_deadline = |task: &&CellTask| match cell.policy {
        Policy::Edf | Policy::GlobalEdf(_) => true,
        Policy::EdfOverFixed => task.priority.is_none(),
        _ => false,
    };
    let threads: Vec<TaskCell> = (cell.tasks.iter().filter(by_deadline))
        .map(|task| TaskCell {
            name: task.name.clone(),
            policy: Policy::Edf,
            reservation: Some(Reservation {
                budget: task.wcet,
                period: task.period,
                deadline: task.deadline,
            }),
            server: None,
            tasks: Vec::new(),
        })
        .collect();
    let all: Vec<&TaskCell> = threads.iter().collect();
    let cpus = cell.policy.cpus().unwrap_or(1) as usize;
    (!all.is_empty()).then(|| bound(limit, cpus, &all, cell.name.clone()))
}

/// Whether SCHED_DEADLINE, with its default settings, admits these reservations on one cpu.
pub(in super::super) fn admits(reservations: &[Task]) -> bool {
    let threads = reservations.iter().map(|task| DeadlineParams {
        runtime: task.wcet,
        deadline: task.deadline,
        period: task.period,
    });
    let domain = RootDomain::of_cpus(1).with_fair_server();
    domain.admits(&threads.collect::<Vec<_>>()).is_ok()
}
