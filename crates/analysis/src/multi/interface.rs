//! The least multiprocessor periodic resource for a task set.

use std::ops::RangeInclusive;

use super::mpr::{Mpr, MprError};
use super::{mpr_edf, mpr_fp};
use crate::{Ns, Task, Verdict};

/// How a guest schedules its tasks on all its cpus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Inside {
    /// Global EDF, by [`mpr_edf`].
    GlobalEdf,
    /// Global fixed priority, as SCHED_FIFO threads in an rt-cgroup, by [`mpr_fp`]; tasks in order of priority.
    GlobalFixedPriority,
}

impl Inside {
    fn test(self, tasks: &[Task], resource: &Mpr) -> Verdict {
        match self {
            Inside::GlobalEdf => mpr_edf(tasks, resource),
            Inside::GlobalFixedPriority => mpr_fp(tasks, resource),
        }
    }
}

/// The least cpu time Θ, a multiple of `grid`, with which the tasks are shown to hold their deadlines inside a
/// resource with this `period` on `cpus` cpus; `None` if not even all of the cpus are enough for the test.
///
/// Exact with respect to the test, which is sufficient: both tests are monotone in Θ, so Θ is found by bisection
/// (Shin, Easwaran & Lee 2008). A Θ that is undecided counts as not shown, so that the answer is always
/// certain to be enough. Times in ns; at most 96 tests.
///
/// # Errors
/// Those of [`Mpr::new`], and a grid of 0.
///
/// ```
/// use timecell_analysis::{Task, multi::{Inside, least_theta, mpr_edf}};
///
/// let tasks = [Task::new(2, 20), Task::new(3, 30), Task::new(10, 40)];
/// let least = least_theta(&tasks, 5, 2, 1, Inside::GlobalEdf).unwrap().unwrap();
/// assert!(mpr_edf(&tasks, &least).is_schedulable());
/// assert!(least.total() > 1 && least.total() < 10);
/// ```
pub fn least_theta(
    tasks: &[Task],
    period: Ns,
    cpus: u32,
    grid: Ns,
    inside: Inside,
) -> Result<Option<Mpr>, MprError> {
    if grid == 0 {
        return Err(MprError::Zero("grid"));
    }
    Mpr::new(period, 1, cpus)?;
    let all = period.saturating_mul(cpus.into());
    let holds = |steps: Ns| -> Result<Option<Mpr>, MprError> {
        let resource = Mpr::new(period, steps * grid, cpus)?;
        Ok(inside
            .test(tasks, &resource)
            .is_schedulable()
            .then_some(resource))
    };
    let mut most = all / grid;
    if most == 0 {
        return Ok(None);
    }
    let Some(mut found) = holds(most)? else {
        return Ok(None);
    };
    let mut least = 1;
    while least < most {
        let middle = least + (most - least) / 2;
        match holds(middle)? {
            Some(resource) => {
                found = resource;
                most = middle;
            }
            None => least = middle + 1,
        }
    }
    Ok(Some(found))
}

/// The interface of a cell: the fewest of `cpus` for which a Θ is enough, and the least such Θ.
///
/// Fewer cpus first, because less concurrency costs less (Shin, Easwaran & Lee 2008). The rest as in
/// [`least_theta`].
///
/// # Errors
/// As [`least_theta`].
///
/// ```
/// use timecell_analysis::{Task, multi::{Inside, least_interface}};
///
/// let tasks = [Task::new(8, 10), Task::new(8, 10)];
/// let interface = least_interface(&tasks, 2, 1..=4, 1, Inside::GlobalFixedPriority).unwrap().unwrap();
/// assert_eq!(interface.cpus(), 2);
/// ```
pub fn least_interface(
    tasks: &[Task],
    period: Ns,
    cpus: RangeInclusive<u32>,
    grid: Ns,
    inside: Inside,
) -> Result<Option<Mpr>, MprError> {
    for count in cpus {
        // Beyond one cpu for each task there is no more concurrency to gain.
        if count as usize > tasks.len().max(1) {
            break;
        }
        if let Some(found) = least_theta(tasks, period, count, grid, inside)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_no_resource_is_an_error() {
        let tasks = [Task::new(1, 10)];
        assert_eq!(
            least_theta(&tasks, 5, 2, 0, Inside::GlobalEdf),
            Err(MprError::Zero("grid"))
        );
        assert!(least_theta(&tasks, 0, 2, 1, Inside::GlobalEdf).is_err());
        assert_eq!(
            least_theta(&tasks, 5, 1, 6, Inside::GlobalEdf),
            Ok(None),
            "no multiple of the grid fits"
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]
        #[test]
        fn one_step_less_is_not_enough(
            sets in proptest::collection::vec((1u64..5, 5u64..40), 1..5),
            period in 2u64..8,
            cpus in 1u32..4,
            edf in any::<bool>(),
        ) {
            let tasks: Vec<Task> = sets.into_iter().map(|(c, t)| Task::new(c, t)).collect();
            let inside = if edf { Inside::GlobalEdf } else { Inside::GlobalFixedPriority };
            let shown = |total| {
                Mpr::new(period, total, cpus).is_ok_and(|resource| inside.test(&tasks, &resource).is_schedulable())
            };
            let by_search = (1..=period * u64::from(cpus)).find(|&total| shown(total));
            let found = least_theta(&tasks, period, cpus, 1, inside).unwrap();
            prop_assert_eq!(found.map(|resource| resource.total()), by_search);
        }
    }
}
