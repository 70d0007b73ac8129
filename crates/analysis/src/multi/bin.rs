//! The bins of a packing of tasks: whole cpus, or reservations.

use std::cmp::Ordering;

use super::partition::BinTest;
use crate::inside::{self, Policy};
use crate::utilization::compare_with_one;
use crate::{Supply, Task, edf, fp};

/// A bin that is a whole cpu, tested exactly: response times or processor demand. Times in ns.
///
/// With [`Policy::FixedPriority`] the set that is divided must be in order of priority, highest first.
///
/// ```
/// use timecell_analysis::{Task, inside::Policy, multi::{DedicatedCpu, Fit, Order, partition}};
///
/// // Both cpus are full under EDF; rate-monotonic priorities cannot fill them.
/// let tasks = [Task::new(2, 5), Task::new(2, 5), Task::new(4, 7), Task::new(4, 7)];
/// let edf = partition(&tasks, 2, Fit::Worst, Order::AsGiven, &DedicatedCpu(Policy::Edf));
/// assert!(edf.is_complete());
/// let fixed = partition(&tasks, 2, Fit::Worst, Order::AsGiven, &DedicatedCpu(Policy::FixedPriority));
/// assert_eq!(fixed.homeless, [2, 3]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DedicatedCpu(pub Policy);

impl BinTest for DedicatedCpu {
    fn holds(&self, _bin: usize, tasks: &[Task]) -> bool {
        match self.0 {
            Policy::FixedPriority => fp::verdict(tasks).is_schedulable(),
            // The fast test is exact where it answers, and no witness is needed of an overload.
            Policy::Edf => edf::decide(tasks).unwrap_or_else(|| {
                compare_with_one(tasks) != Ordering::Greater && edf::verdict(tasks).is_schedulable()
            }),
        }
    }
}

/// Bins that are reservations, one for each vCPU, tested by [`inside::test`]. Times in ns.
///
/// ```
/// use timecell_analysis::{Task, inside::Policy, multi::{Fit, Order, Reservations, partition}, reservation::Periodic};
///
/// let vcpus = Reservations {
///     policy: Policy::Edf,
///     supplies: vec![Periodic::new(1, 5)?, Periodic::new(4, 5)?],
/// };
/// let tasks = [Task::new(10, 20), Task::new(2, 40)];
/// let found = partition(&tasks, 2, Fit::First, Order::AsGiven, &vcpus);
/// assert_eq!(found.bins, [vec![1], vec![0]]);
/// # Ok::<(), timecell_analysis::reservation::ReservationError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reservations<S> {
    /// How tasks are scheduled inside each.
    pub policy: Policy,
    /// The supply of each; a bin beyond them holds nothing.
    pub supplies: Vec<S>,
}

impl<S: Supply> BinTest for Reservations<S> {
    fn holds(&self, bin: usize, tasks: &[Task]) -> bool {
        self.supplies.get(bin).is_some_and(|supply| {
            inside::test(tasks, self.policy, supply)
                .verdict
                .is_schedulable()
        })
    }
}
