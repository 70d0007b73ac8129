//! The second stage of a supply study: whether the measured supply says anything about deadlines. For each budget two sets of two tasks
//! are run inside it, and without it to learn the host's own misses: one that the textbook's supply accepts and the measured one refuses,
//! and one that the measured one accepts.

mod choose;
mod run;
mod trial;

use record::{Budget, Condition, NotMeasured};

use super::subject::name_of;
use crate::held;

pub(super) use run::try_sets;

/// Guess of the time that making and removing a cell takes, and calibrating its work, ns.
const CELL_GUESS_NS: i64 = 100_000_000;
/// Runs of a budget in each round: two sets, each inside it and without it.
const RUNS: u32 = 4;

/// The attempts of a run.
#[derive(Debug, Clone)]
pub(super) struct Trying {
    /// Of each run of a set, ns.
    pub length_ns: i64,
    /// The measured budgets that can hold two tasks.
    pub budgets: Vec<Budget>,
    /// Those that cannot, with the reason.
    pub without: Vec<NotMeasured>,
}

impl Trying {
    /// Of these budgets, which are measured.
    pub(super) fn of(length_ns: i64, measured: impl Iterator<Item = Budget>) -> Trying {
        let mut trying = Trying {
            length_ns,
            budgets: Vec::new(),
            without: Vec::new(),
        };
        for held in measured {
            let name = held.enforcer.name();
            match held::by(held.enforcer).and_then(|holder| holder.unshared()) {
                None => trying.budgets.push(held),
                Some(_) if trying.without.iter().any(|one| one.trial == name) => {}
                Some(why) => trying.without.push(NotMeasured {
                    trial: name.to_owned(),
                    reason: why.to_owned(),
                    fix: String::new(),
                }),
            }
        }
        trying
    }

    /// The runs of every round, as far as the measured supply tells the textbook's apart.
    pub(super) fn names(&self) -> Vec<String> {
        let each = |held: &Budget| {
            let name = name_of(held);
            format!(
                "{name}: the textbook's set and the measured supply's, each with and without the budget"
            )
        };
        self.budgets.iter().map(each).collect()
    }

    /// Runs in each round, at most.
    pub(super) fn runs(&self) -> u32 {
        u32::try_from(self.budgets.len())
            .unwrap_or(u32::MAX)
            .saturating_mul(RUNS)
    }

    /// How long one takes, ns.
    pub(super) fn run_ns(&self) -> i64 {
        self.length_ns + CELL_GUESS_NS
    }

    pub(super) fn condition(&self) -> Condition {
        Condition::new(
            "tried sets",
            format!(
                "two periodic SCHED_FIFO threads in one plain process, released together, {} s each: one that takes 0.9 of the \
                 budget, and one that every {} ms takes up to 0.4 of what is granted meanwhile; deadlines at the ends of the \
                 periods; each set also without the budget",
                self.length_ns as f64 / 1e9,
                choose::BACKGROUND_NS / 1_000_000
            ),
        )
    }
}
