//! Orders of fixed priorities, the optimal one among them.

use std::cmp::{Ordering, Reverse};

use crate::budget::{Budget, STEPS};
use crate::{Task, Undecided, utilization};

use super::Response;
use super::response::{legal, once, preemptive};

/// A priority order found, or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Assignment {
    /// Indices into the set, the highest priority first; every task meets its deadline.
    Order(Vec<usize>),
    /// No order lets every task meet its deadline.
    None,
    /// The search gave up; never to be read as either.
    Undecided(Undecided),
}

/// The rate-monotonic order: indices by period, the shortest (highest priority) first; ties keep their order.
///
/// Liu & Layland (1973): optimal if D = T for all, without jitter and blocking.
///
/// ```
/// use timecell_analysis::{Task, fp::rate_monotonic};
///
/// assert_eq!(rate_monotonic(&[Task::new(1, 9), Task::new(1, 4)]), [1, 0]);
/// ```
pub fn rate_monotonic(tasks: &[Task]) -> Vec<usize> {
    by_key(tasks, |task| task.period)
}

/// The deadline-monotonic order: indices by relative deadline, the shortest first; ties keep their order.
///
/// Leung & Whitehead (1982): optimal if D <= T for all, without jitter and blocking.
///
/// ```
/// use timecell_analysis::{Task, fp::deadline_monotonic};
///
/// assert_eq!(deadline_monotonic(&[Task::new(1, 4), Task::new(1, 9).due(3)]), [1, 0]);
/// ```
pub fn deadline_monotonic(tasks: &[Task]) -> Vec<usize> {
    by_key(tasks, |task| task.deadline)
}

/// The order by deadline less jitter: indices, the shortest first; ties keep their order.
///
/// Zuhily & Burns (2007): optimal if D <= T for all, with jitter, without blocking that depends on the order.
///
/// ```
/// use timecell_analysis::{Task, fp::deadline_minus_jitter_monotonic};
///
/// assert_eq!(deadline_minus_jitter_monotonic(&[Task::new(1, 4), Task::new(1, 9).jittered(6)]), [1, 0]);
/// ```
pub fn deadline_minus_jitter_monotonic(tasks: &[Task]) -> Vec<usize> {
    by_key(tasks, |task| {
        i128::from(task.deadline) - i128::from(task.jitter)
    })
}

fn by_key<K: Ord>(tasks: &[Task], key: impl Fn(&Task) -> K) -> Vec<usize> {
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    order.sort_by_key(|&index| key(&tasks[index]));
    order
}

/// Audsley's priority assignment with any test of one task below others: indices, the highest priority first, or `None`
/// if no order passes.
///
/// Audsley (1991): lowest priority first, give it to any task that passes there with all others above. Optimal for
/// tests that depend on the set of higher tasks but not on their order, and that a task cannot fail by being moved up
/// (Davis & Burns 2011); [`super::response_time`] is one, tests that use the response times of others are not. At most
/// n(n+1)/2 tests for n tasks; longer deadlines are tried first.
///
/// ```
/// use timecell_analysis::{Task, fp::{audsley, response_time}};
///
/// // Deadlines beyond the periods: no monotonic order is optimal.
/// let tasks = [Task::new(52, 100).due(110), Task::new(52, 140).due(154)];
/// let order = audsley(&tasks, |task, higher| response_time(task, higher).meets());
/// assert_eq!(order, Some(vec![1, 0]));
/// ```
pub fn audsley(
    tasks: &[Task],
    mut passes: impl FnMut(&Task, &[Task]) -> bool,
) -> Option<Vec<usize>> {
    let search = search(tasks, |task, higher| Ok::<_, ()>(passes(task, higher)));
    search.unwrap_or(None)
}

/// A priority order in which every task meets its deadline, if there is one. Exact for preemptive tasks with jitter,
/// blocking that does not depend on the order, and deadlines of any length.
///
/// Audsley (1991) with the exact response times of [`super::response_times`], tried in the order of deadline less jitter,
/// so that sets for which that order is optimal take one test for each task. An order is only refused if no test on
/// the way was undecided.
///
/// ```
/// use timecell_analysis::{Task, fp::{Assignment, optimal_order}};
///
/// assert_eq!(optimal_order(&[Task::new(2, 9), Task::new(2, 4)]), Assignment::Order(vec![1, 0]));
/// assert_eq!(optimal_order(&[Task::new(3, 5), Task::new(3, 5)]), Assignment::None);
/// ```
pub fn optimal_order(tasks: &[Task]) -> Assignment {
    let mut budget = Budget::new(STEPS);
    if let Some(why) = tasks.iter().find_map(|task| legal(task).err()) {
        return Assignment::Undecided(why);
    }
    let load = utilization::compare_with_one(tasks);
    if load == Ordering::Greater {
        return Assignment::None;
    }
    let mut doubt = None;
    let found = search(tasks, |task, higher| {
        // Counts also tests that fail at once, and the copying around them.
        budget.spend(higher.len() + 1)?;
        let level = preemptive(task, higher);
        let load = match load {
            Ordering::Less => Ordering::Less,
            _ => level.load(),
        };
        let start = once(task.blocking, higher, task.wcet);
        match level.analyse(load, start, true, &mut budget).response {
            Response::Meets(_) => Ok(true),
            Response::Misses(_) => Ok(false),
            Response::Undecided(why) => {
                doubt.get_or_insert(why);
                Ok(false)
            }
        }
    });
    match (found, doubt) {
        (Ok(Some(order)), _) => Assignment::Order(order),
        (Ok(None), None) => Assignment::None,
        (Ok(None), Some(why)) | (Err(why), _) => Assignment::Undecided(why),
    }
}

/// Fills the order from the lowest priority up.
fn search<E>(
    tasks: &[Task],
    mut passes: impl FnMut(&Task, &[Task]) -> Result<bool, E>,
) -> Result<Option<Vec<usize>>, E> {
    let key = |task: &Task| -> Reverse<i128> {
        Reverse(i128::from(task.deadline) - i128::from(task.jitter))
    };
    // Candidates and their tasks run in step; the longest deadline is first.
    let mut candidates: Vec<usize> = (0..tasks.len()).collect();
    candidates.sort_by_key(|&index| (key(&tasks[index]), Reverse(index)));
    let mut pool: Vec<Task> = candidates.iter().map(|&index| tasks[index]).collect();
    let mut order = Vec::with_capacity(tasks.len());
    while !pool.is_empty() {
        let mut chosen = None;
        for index in 0..pool.len() {
            let task = pool.remove(index);
            let fits = passes(&task, &pool);
            pool.insert(index, task);
            if fits? {
                chosen = Some(index);
                break;
            }
        }
        let Some(index) = chosen else {
            return Ok(None);
        };
        pool.remove(index);
        order.push(candidates.remove(index));
    }
    order.reverse();
    Ok(Some(order))
}
