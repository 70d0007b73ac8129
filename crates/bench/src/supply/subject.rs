//! Subjects of every round.

use record::Budget;

use super::options::Reservation;

/// One thing that is measured once in every round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subject {
    /// The thread's budget; `None`: nothing.
    pub held: Option<Budget>,
}

impl Subject {
    /// Its name: `rt-cgroup 30ms/100ms`, `no budget`.
    pub fn name(&self) -> String {
        (self.held.as_ref()).map_or("no budget".to_owned(), name_of)
    }
}

/// A budget's name: `rt-cgroup 30ms/100ms`.
pub(super) fn name_of(held: &Budget) -> String {
    let reservation = Reservation {
        budget_ns: held.budget_ns,
        period_ns: held.period_ns,
    };
    format!("{} {reservation}", held.enforcer.name())
}
