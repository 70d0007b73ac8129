//! The study of cells whose priority order is searched for.

use std::borrow::Cow;

use analysis::inside::{Inside, NoOrder, OptimalOrder, fixed_priority, optimal_order};
use analysis::{Task, Verdict};
use model::taskset::{Order, Policy, TaskCell};
use serde::Serialize;

use super::judge::{CellSupply, task};
use super::special::{late, name, names};
use super::study::CellStudy;
use text::units::exact;

/// The priorities that Audsley's algorithm found, or the level at which it failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OrderStudy {
    /// Places of the tasks in the file, the most urgent first; none if there is no such order, or it is undecided.
    pub order: Option<Vec<usize>>,
    /// The level at which no task fits.
    pub refused: Option<NoLevel>,
}

/// The level of priority at which no task meets its deadline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NoLevel {
    /// The level; 1 is the most urgent.
    pub level: usize,
    /// Places of the tasks that were tried there, and how each misses.
    pub tried: Vec<analysis::Witness>,
    /// Places of the tasks that fit below it, the most urgent first.
    pub below: Vec<usize>,
}

fn search(cell: &TaskCell) -> Option<OptimalOrder> {
    let tasks: Vec<Task> = cell.tasks.iter().map(task).collect();
    Some(optimal_order(&tasks, &CellSupply::of(cell)?))
}

impl OrderStudy {
    pub(super) fn of(cell: &TaskCell) -> Option<OrderStudy> {
        let (order, refused) = match search(cell)? {
            OptimalOrder::Found(order) => (Some(order), None),
            OptimalOrder::None(NoOrder {
                level,
                below,
                tried,
            }) => (
                None,
                Some(NoLevel {
                    level,
                    tried,
                    below,
                }),
            ),
            OptimalOrder::Undecided(_) => (None, None),
        };
        Some(OrderStudy { order, refused })
    }

    pub(super) fn lines(&self, cell: &CellStudy) -> Vec<String> {
        let said = match (&self.order, &self.refused) {
            (Some(order), _) => format!("{}, the most urgent first", names(cell, order)),
            (None, Some(none)) => {
                let tried: Vec<usize> = none.tried.iter().map(|witness| witness.task).collect();
                format!(
                    "none exists; at level {} of {} (1 is the most urgent) no task fits; tried: {}; below it: {}",
                    none.level,
                    cell.tasks.len(),
                    names(cell, &tried),
                    names(cell, &none.below)
                )
            }
            (None, None) => "undecided".to_owned(),
        };
        vec![format!("order   {}: {said}", cell.name)]
    }

    /// How each task that was tried misses.
    pub(super) fn reasons(&self, cell: &CellStudy) -> Vec<String> {
        let tried = self.refused.iter().flat_map(|none| &none.tried);
        tried
            .map(|witness| {
                format!(
                    "tried   {} at that level: {} of work by {}, but {} of cpu time",
                    name(cell, witness.task),
                    exact(witness.demand),
                    exact(witness.instant),
                    exact(witness.supply)
                )
            })
            .collect()
    }
}

/// The tests' answer on a cell whose order is searched for, tasks numbered as in the file.
pub(super) fn judge(cell: &TaskCell) -> Option<Inside> {
    let found = search(cell)?;
    let supply = CellSupply::of(cell)?;
    let mut responses = vec![None; cell.tasks.len()];
    let order = sequence(&found);
    let tasks: Vec<Task> = order.iter().map(|&i| task(&cell.tasks[i])).collect();
    let known = match &found {
        OptimalOrder::Found(_) => 0,
        // The tasks below the level keep their bounds in any order above.
        OptimalOrder::None(none) => none.level,
        OptimalOrder::Undecided(_) => order.len(),
    };
    let inside = fixed_priority(&tasks, &supply);
    for (&place, bound) in order.iter().zip(inside.responses).skip(known) {
        responses[place] = bound;
    }
    let verdict = match found {
        OptimalOrder::Found(_) => inside.verdict,
        OptimalOrder::None(none) => match none.tried.into_iter().next() {
            Some(witness) => Verdict::Unschedulable(witness),
            None => Verdict::Schedulable,
        },
        OptimalOrder::Undecided(why) => Verdict::Undecided(why),
    };
    let missed = late(&verdict);
    Some(Inside {
        verdict,
        responses,
        missed,
    })
}

/// The order found; if there is none, one with the first task that was tried at its level.
fn sequence(found: &OptimalOrder) -> Vec<usize> {
    match found {
        OptimalOrder::Found(order) => order.clone(),
        OptimalOrder::None(none) => {
            let tried = none.tried.iter().map(|witness| witness.task);
            tried.rev().chain(none.below.iter().copied()).collect()
        }
        OptimalOrder::Undecided(_) => Vec::new(),
    }
}

/// The cell with the order found as priorities; cells with other orders, and those without an answer, unchanged.
pub(super) fn settled(cell: &TaskCell) -> Cow<'_, TaskCell> {
    if cell.policy != Policy::Fixed(Order::Audsley) {
        return Cow::Borrowed(cell);
    }
    let order = search(cell).map(|found| sequence(&found));
    let Some(order) = order.filter(|order| order.len() == cell.tasks.len()) else {
        return Cow::Borrowed(cell);
    };
    let mut settled = cell.clone();
    settled.policy = Policy::Fixed(Order::Priority);
    for (priority, &place) in order.iter().rev().enumerate() {
        settled.tasks[place].priority = i64::try_from(priority).ok();
    }
    Cow::Owned(settled)
}
