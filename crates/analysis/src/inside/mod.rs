//! Tasks inside a reservation: do their deadlines hold when the cpu comes only as a [`Supply`] promises, and how long
//! do they take to respond? Fixed priorities and EDF, each for any supply. The supplies themselves live in
//! [`reservation`](crate::reservation), the search for the least of them in [`least_budget`](crate::least_budget).
//!
//! ```
//! use timecell_analysis::{Task, inside, reservation::Periodic};
//!
//! // In us: 7 ms every 50 ms and 9 ms every 75 ms under EDF fit into 2.8 ms every 10 ms, but not into 2.7 ms.
//! let tasks = [Task::new(7_000, 50_000), Task::new(9_000, 75_000)];
//! assert!(inside::edf(&tasks, &Periodic::new(2_800, 10_000)?).verdict.is_schedulable());
//! assert!(!inside::edf(&tasks, &Periodic::new(2_700, 10_000)?).verdict.is_schedulable());
//! # Ok::<(), timecell_analysis::reservation::ReservationError>(())
//! ```

mod audsley;
mod edf;
mod fixed_priority;

pub use audsley::{NoOrder, OptimalOrder, optimal_order};
pub use edf::{edf, edf_demand};
pub use fixed_priority::fixed_priority;

pub(crate) use edf::{Terms, busy_window, response as edf_response, search};

use serde::{Deserialize, Serialize};

use crate::budget::{Budget, STEPS};
use crate::{Ns, Supply, Task, TaskError, Undecided, Verdict};

/// How the tasks of one cell are scheduled among themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// Preemptive fixed priorities; the order of the slice is the order of priority, highest first.
    FixedPriority,
    /// Preemptive, earliest deadline first.
    Edf,
}

/// The bounds and verdict on a task set inside a reservation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inside {
    /// Whether all deadlines hold, and if not, why.
    pub verdict: Verdict,
    /// A bound on the response time of each task in ns, counted from the arrival (its own jitter is included). `None`
    /// where there is no bound within the deadline.
    pub responses: Vec<Option<Ns>>,
    /// The tasks that are shown to miss their deadlines, in no order; empty unless the verdict is a refusal. Of the others without a bound nothing is known.
    pub missed: Vec<usize>,
}

/// The test of a policy: [`fixed_priority`] or [`edf`].
///
/// ```
/// use timecell_analysis::{Task, inside::{Policy, test}, reservation::Periodic};
///
/// let tasks = [Task::new(1, 10), Task::new(3, 20)];
/// let reservation = Periodic::new(2, 5)?;
/// assert!(test(&tasks, Policy::FixedPriority, &reservation).verdict.is_schedulable());
/// assert!(test(&tasks, Policy::Edf, &reservation).verdict.is_schedulable());
/// # Ok::<(), timecell_analysis::reservation::ReservationError>(())
/// ```
pub fn test(tasks: &[Task], policy: Policy, supply: &impl Supply) -> Inside {
    match policy {
        Policy::FixedPriority => fixed_priority(tasks, supply),
        Policy::Edf => edf(tasks, supply),
    }
}

/// Only the verdict of [`test()`], without the response times that take longer under EDF, and with a limit on the steps.
///
/// ```
/// use timecell_analysis::{Task, inside::{Policy, verdict_within}, reservation::Periodic};
///
/// let tasks = [Task::new(1, 10), Task::new(3, 20)];
/// assert!(verdict_within(&tasks, Policy::Edf, &Periodic::new(2, 5)?, 1_000).is_schedulable());
/// # Ok::<(), timecell_analysis::reservation::ReservationError>(())
/// ```
pub fn verdict_within(tasks: &[Task], policy: Policy, supply: &impl Supply, steps: u64) -> Verdict {
    match policy {
        Policy::FixedPriority => fixed_priority::within(tasks, supply, Budget::new(steps)).verdict,
        Policy::Edf => edf::verdict(tasks, supply, &mut Budget::new(steps)),
    }
}

/// Only whether all deadlines hold: the verdict of [`test()`] without witness and response times, for searches.
///
/// Under EDF it is faster by orders of magnitude, and decides a little more: a load of exactly the rate of a reservation
/// that is not the whole cpu is refused, where no job has longer than its period, even if the hyperperiod leaves the range
/// and no witness can be named.
///
/// # Errors
/// [`Undecided`] as the verdict would be.
///
/// ```
/// use timecell_analysis::{Task, inside::{Policy, holds}, reservation::Periodic};
///
/// let tasks = [Task::new(1, 10), Task::new(3, 20)];
/// assert_eq!(holds(&tasks, Policy::Edf, &Periodic::new(1, 5)?), Ok(false));
/// # Ok::<(), timecell_analysis::reservation::ReservationError>(())
/// ```
pub fn holds(tasks: &[Task], policy: Policy, supply: &impl Supply) -> Result<bool, Undecided> {
    holds_within(tasks, policy, supply, STEPS)
}

/// [`holds`] with another limit on the steps.
///
/// # Errors
/// As [`holds`].
///
/// ```
/// use timecell_analysis::{Task, Undecided, inside::{Policy, holds_within}, reservation::Periodic};
///
/// let tasks = [Task::new(1, 10), Task::new(3, 20)];
/// let answer = holds_within(&tasks, Policy::Edf, &Periodic::new(2, 5)?, 1);
/// assert_eq!(answer, Err(Undecided::TooManySteps { steps: 1 }));
/// # Ok::<(), timecell_analysis::reservation::ReservationError>(())
/// ```
pub fn holds_within(
    tasks: &[Task],
    policy: Policy,
    supply: &impl Supply,
    steps: u64,
) -> Result<bool, Undecided> {
    holds_by(tasks, policy, supply, &mut Budget::new(steps))
}

pub(crate) fn holds_by(
    tasks: &[Task],
    policy: Policy,
    supply: &impl Supply,
    steps: &mut Budget,
) -> Result<bool, Undecided> {
    match policy {
        Policy::FixedPriority => fixed_priority::fits(tasks, supply, steps),
        Policy::Edf => edf::holds(tasks, supply, steps),
    }
}

/// Times that no analysis here takes. A wcet beyond the deadline is taken: it is a missed deadline like any other.
pub(crate) fn in_range(tasks: &[Task]) -> Result<(), Undecided> {
    for (index, task) in tasks.iter().enumerate() {
        match task.check() {
            Ok(()) | Err(TaskError::BeyondDeadline { .. }) => {}
            Err(error) => {
                return Err(Undecided::NotCovered(format!("task {index}: {error}")));
            }
        }
    }
    Ok(())
}
