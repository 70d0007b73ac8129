//! Reservations held by the freezer: the kernel reserves nothing, and only its limit on real-time threads applies. The cells get
//! less than the textbook supply because the thread that holds them may wake late.

use std::collections::BTreeSet;

use analysis::Supply;
use analysis::inside;
use analysis::linux::{FreezerSupply, Reaction, to_ratio};
use analysis::reservation::ReservationError;
use model::taskset::{Order, Policy, TaskCell, TaskSet};

use super::super::judge::{self, ns};
use super::super::study::Outcome;
use super::Bound;
use super::ask::Asked;
use text::units::exact;

/// The kernel's limit on each cpu for the threads of its cells and the thread that holds them.
pub(super) fn bounds(asked: &Asked) -> Vec<Bound> {
    let Some(on) = &asked.on else {
        return vec![bound(asked, "every cpu".to_owned(), &asked.on_cpu(0))];
    };
    let used: BTreeSet<usize> = on.iter().flatten().copied().collect();
    (used.into_iter())
        .map(|cpu| bound(asked, format!("cpu {cpu}"), &asked.on_cpu(cpu)))
        .collect()
}

fn bound(asked: &Asked, of: String, cells: &[&TaskCell]) -> Bound {
    let available = asked.limit.runtime.map(|_| asked.limit.ratio());
    let (mut sum, mut refusals) = (0u64, Vec::new());
    for cell in cells {
        let Some(own) = cell.reservation else {
            continue;
        };
        let period = ns(own.period);
        let held = ns(own.budget).saturating_add(Reaction::COST);
        sum = sum.saturating_add(to_ratio(period, held));
        if available.is_some_and(|available| sum > available) {
            refusals.push(format!(
                "cell {}: it brings the cpu to the limit at which the kernel stops all real-time threads",
                cell.name
            ));
        }
    }
    Bound {
        of,
        cells: cells.iter().map(|cell| cell.name.clone()).collect(),
        asked: sum,
        available,
        refusals,
    }
}

/// Whether the deadlines inside the reservations are shown to hold with the guaranteed supply of such budgets, with a note on
/// each cell's supply. Never answers that one is missed: the guaranteed supply is a lower bound.
pub(super) fn inside(set: &TaskSet, reaction: Reaction) -> (Outcome, Vec<String>) {
    let notice = if reaction.noticed { "" } else { " no" };
    let mut notes = vec![
        format!(
            "assumes that the thread that freezes and thaws wakes up to {} late, that cells \
             overrun their budgets by up to {}, and that they give{notice} notice of their \
             first use (`--reaction`, or from a run given by `--supply`); figures from another \
             machine are no bound for this one",
            exact(reaction.late),
            exact(reaction.overrun)
        ),
        format!(
            "that thread's own time is counted above, {} in each period of each cell; it runs \
             before all cells, and the supply below holds as long as each budget still fits \
             into its period",
            exact(Reaction::COST)
        ),
    ];
    let mut all = Outcome::Holds;
    for cell in &set.cells {
        let Some(own) = cell.reservation else {
            continue;
        };
        let (outcome, what) = match FreezerSupply::new(ns(own.budget), ns(own.period), reaction) {
            Err(ReservationError::Zero(_)) => (
                Outcome::Undecided,
                "none of its budget is guaranteed: the lateness takes all of it".to_owned(),
            ),
            Err(why) => (Outcome::Undecided, format!("no supply is known: {why}")),
            Ok(supply) => {
                let (part, whole) = supply.behind.rate();
                let given = format!(
                    "{:.2} % of its cpu after {} is guaranteed, wherever in its period the budget comes",
                    part as f64 * 100.0 / whole as f64,
                    supply.behind.delay().map_or_else(String::new, exact)
                );
                (deadlines(cell, &supply.behind), given)
            }
        };
        let said = outcome.by_a_lower_bound();
        notes.push(format!("cell {}: {what}; {said}", cell.name));
        all = all.worst(outcome);
    }
    (all, notes)
}

/// Whether the deadlines of a cell are shown to hold with this supply.
pub(super) fn deadlines(cell: &TaskCell, supply: &impl Supply) -> Outcome {
    let policy = match cell.policy {
        Policy::Edf => inside::Policy::Edf,
        Policy::Fixed(order) if order != Order::Audsley => inside::Policy::FixedPriority,
        Policy::Fixed(_)
        | Policy::AmcRtb(_)
        | Policy::EdfVd
        | Policy::EdfOverFixed
        | Policy::GlobalFixed(..)
        | Policy::GlobalEdf(_) => {
            return Outcome::Undecided;
        }
    };
    let tasks: Vec<_> = (cell.by_urgency().into_iter())
        .map(|at| judge::task(&cell.tasks[at]))
        .collect();
    match inside::holds(&tasks, policy, supply) {
        Ok(true) => Outcome::Holds,
        Ok(false) | Err(_) => Outcome::Undecided,
    }
}
