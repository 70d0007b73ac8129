//! The results for cells whose policy needs more than response times.

use analysis::{Verdict, Witness};
use model::taskset::{Order, Policy, TaskCell};
use serde::Serialize;

use super::global::GlobalStudy;
use super::mixed::MixedStudy;
use super::ordered::OrderStudy;
use super::study::CellStudy;

/// Results on a cell beyond response times, if its policy has any.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Special {
    /// The priorities that were searched for.
    Order(OrderStudy),
    /// Two levels of criticality.
    Mixed(MixedStudy),
    /// Several cpus.
    Global(GlobalStudy),
}

impl Special {
    /// `None` for fixed priorities that the file gives, and for EDF.
    pub(super) fn of(cell: &TaskCell, fixing: bool) -> Option<Special> {
        match cell.policy {
            Policy::Fixed(Order::Audsley) => OrderStudy::of(cell).map(Special::Order),
            Policy::Fixed(_) | Policy::Edf | Policy::EdfOverFixed => None,
            Policy::AmcRtb(_) | Policy::EdfVd => Some(Special::Mixed(MixedStudy::of(cell))),
            Policy::GlobalFixed(..) | Policy::GlobalEdf(_) => {
                Some(Special::Global(GlobalStudy::of(cell, fixing)))
            }
        }
    }

    /// The test's count against a deadline that is neither shown to hold nor proved to be missed.
    pub(super) fn doubt(&self) -> Option<&Witness> {
        match self {
            Special::Order(_) => None,
            Special::Mixed(mixed) => mixed.refusal.as_ref().map(|refusal| &refusal.witness),
            Special::Global(global) => global.doubt.as_ref(),
        }
    }

    /// Which analysis answers, and its claim; `None` if it is the usual one.
    pub(super) fn proof(&self, cell: &TaskCell) -> Option<String> {
        match self {
            Special::Order(_) => None,
            Special::Mixed(_) => Some(super::mixed::proof(cell).to_owned()),
            Special::Global(global) => Some(global.proof()),
        }
    }

    /// Lines for the table.
    pub(super) fn lines(&self, cell: &CellStudy) -> Vec<String> {
        match self {
            Special::Order(order) => order.lines(cell),
            Special::Mixed(mixed) => mixed.lines(cell),
            Special::Global(global) => global.lines(cell),
        }
    }

    /// Lines for the explanation.
    pub(super) fn reasons(&self, cell: &CellStudy) -> Vec<String> {
        match self {
            Special::Order(order) => order.reasons(cell),
            Special::Mixed(mixed) => mixed.reasons(cell),
            Special::Global(global) => global.reasons(cell),
        }
    }
}

/// The task that a verdict proves to miss its deadline; these tests say nothing about the others.
pub(super) fn late(verdict: &Verdict) -> Vec<usize> {
    match verdict {
        Verdict::Unschedulable(witness) => vec![witness.task],
        _ => Vec::new(),
    }
}

/// The name of a task by its place.
pub(super) fn name(cell: &CellStudy, place: usize) -> &str {
    cell.tasks.get(place).map_or("?", |task| &task.name)
}

/// The names of tasks by their places, or `none`.
pub(super) fn names(cell: &CellStudy, places: &[usize]) -> String {
    if places.is_empty() {
        return "none".to_owned();
    }
    let names: Vec<&str> = places.iter().map(|&place| name(cell, place)).collect();
    names.join(", ")
}
