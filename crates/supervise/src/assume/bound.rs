//! Whether the bounds of a cell's tasks stand.

use serde::{Deserialize, Serialize};

use super::Deviation;

/// For how long every assumption must have held before a bound counts, ns; less the jitter of two looks a second apart.
const WHOLE_NS: i64 = 1_000_000_000 - 50_000_000;

/// Whether a bound stands.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum State {
    /// Its cell has begun, and not every assumption has held for a second yet.
    #[default]
    Pending,
    /// Every assumption that is checked has held for a second.
    InForce,
    /// An assumption does not hold, or has not for a whole second again.
    Withdrawn {
        /// The deviation, a clause.
        why: String,
        /// Whether it cannot be undone in this life of the cell.
        for_good: bool,
    },
}

/// A bound that changes its state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// The task, by its place in the cell.
    pub task: usize,
    /// Why it is withdrawn; `None`: it is in force again.
    pub withdrawn: Option<String>,
}

/// The bounds of a cell's tasks over one life of it.
#[derive(Debug, Default)]
pub struct Bounds {
    of: Vec<Bound>,
}

#[derive(Debug, Clone, Default)]
struct Bound {
    state: State,
    /// Since when every assumption holds, CLOCK_MONOTONIC ns; `None`: one does not.
    since_ns: Option<i64>,
}

impl Bounds {
    /// Of a cell with so many tasks that begins.
    pub fn new(tasks: usize) -> Bounds {
        Bounds {
            of: vec![Bound::default(); tasks],
        }
    }

    /// The state of each.
    pub fn states(&self) -> impl Iterator<Item = &State> {
        self.of.iter().map(|bound| &bound.state)
    }

    /// Takes the deviation that a look has found of each task, in their order. While a cell `begins`, its bounds wait for its threads.
    /// Returns those that change: a bound that comes into force for the first time is no news.
    pub fn look(
        &mut self,
        deviations: impl IntoIterator<Item = Option<Deviation>>,
        begins: bool,
        now_ns: i64,
    ) -> Vec<Changed> {
        let each = self.of.iter_mut().zip(deviations).enumerate();
        each.filter_map(|(task, (bound, deviation))| {
            let changed = bound.look(deviation, begins, now_ns)?;
            Some(Changed {
                task,
                withdrawn: changed,
            })
        })
        .collect()
    }
}

impl Bound {
    /// `Some(None)`: it is in force again.
    fn look(
        &mut self,
        deviation: Option<Deviation>,
        begins: bool,
        now_ns: i64,
    ) -> Option<Option<String>> {
        if let State::Withdrawn { for_good: true, .. } = self.state {
            return None;
        }
        let Some(deviation) = deviation else {
            let since_ns = *self.since_ns.get_or_insert(now_ns);
            if self.state == State::InForce || now_ns - since_ns < WHOLE_NS {
                return None;
            }
            let before = std::mem::replace(&mut self.state, State::InForce);
            return (before != State::Pending).then_some(None);
        };
        let has_held = self.since_ns.take().is_some();
        if begins && self.state == State::Pending && deviation.comes_with_beginning(has_held) {
            return None;
        }
        let is_told = matches!(self.state, State::Withdrawn { .. });
        let Deviation {
            found, for_good, ..
        } = deviation;
        self.state = State::Withdrawn {
            why: found.clone(),
            for_good,
        };
        (!is_told || for_good).then_some(Some(found))
    }
}
