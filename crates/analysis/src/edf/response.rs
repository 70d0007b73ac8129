//! Worst-case response times under EDF.

use std::cmp::Ordering;

use crate::budget::{Budget, STEPS};
use crate::fp::Response;
use crate::inside::{busy_window, edf_response, in_range};
use crate::reservation::Dedicated;
use crate::{Task, Undecided, utilization};

/// Worst-case response times under EDF on a dedicated cpu, counted from the arrival. Exact for sporadic tasks that can be
/// preempted anywhere, with release jitter and deadlines of any length; with blocking safe, and a deadline that is said to
/// be missed may hold.
///
/// Spuri ("Analysis of deadline scheduled real-time systems", INRIA RR-2772, 1996, section 4): the longest response of a
/// task is in a busy period of jobs due no later than its own, which starts with the others' first jobs at their latest
/// release, and in which its own deadline meets that of another job; all such places within the longest busy period are
/// tried. A bound beyond the deadline is not computed to its end: [`Response::Misses`] has none here.
///
/// The number of places is that of jobs in the longest busy period. After [`STEPS`] steps a task and all behind it are
/// [`Response::Undecided`], as is a set whose busy period has no end in range: at a utilisation of exactly 1 with
/// blocking, jitter, or periods without a common multiple in range. At a utilisation above 1 every task misses.
///
/// ```
/// use timecell_analysis::{Task, edf::response_times, fp::Response};
///
/// // The response of the first task is not longest when all tasks are released together.
/// let tasks = [Task::new(2, 6), Task::new(2, 7), Task::new(3, 9).due(8)];
/// let responses = response_times(&tasks);
/// assert_eq!(responses, [Response::Meets(5), Response::Meets(6), Response::Meets(7)]);
/// ```
pub fn response_times(tasks: &[Task]) -> Vec<Response> {
    response_times_within(tasks, STEPS)
}

/// [`response_times`] with another limit on the steps.
///
/// ```
/// use timecell_analysis::{Task, Undecided, edf::response_times_within, fp::Response};
///
/// let tasks = [Task::new(999_999_999, 1_000_000_000), Task::new(1, 1 << 59)];
/// let responses = response_times_within(&tasks, 10);
/// assert_eq!(responses[0], Response::Undecided(Undecided::TooManySteps { steps: 10 }));
/// ```
pub fn response_times_within(tasks: &[Task], steps: u64) -> Vec<Response> {
    let undecided = |why: Undecided| vec![Response::Undecided(why); tasks.len()];
    if let Err(why) = in_range(tasks) {
        return undecided(why);
    }
    if utilization::compare_with_one(tasks) == Ordering::Greater {
        return vec![Response::Misses(None); tasks.len()];
    }
    let mut left = Budget::new(steps);
    let window = match busy_window(tasks, &Dedicated, &mut left) {
        Ok(window) => window,
        Err(why) => return undecided(why),
    };
    tasks
        .iter()
        .map(
            |task| match edf_response(tasks, task, window, &Dedicated, &mut left) {
                Ok(Some(bound)) => Response::Meets(bound),
                Ok(None) => Response::Misses(None),
                Err(why) => Response::Undecided(why),
            },
        )
        .collect()
}
