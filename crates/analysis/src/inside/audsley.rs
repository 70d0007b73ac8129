//! The optimal order of priorities inside a reservation.

use std::cmp::Reverse;

use super::fixed_priority::{response, witness};
use super::in_range;
use crate::budget::{Budget, STEPS};
use crate::{Supply, Task, Undecided, Witness};

/// An order of priorities inside a reservation, or why there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OptimalOrder {
    /// Indices into the set, the highest priority first; every task meets its deadline.
    Found(Vec<usize>),
    /// No order lets every task meet its deadline.
    None(NoOrder),
    /// The search gave up; never to be read as either.
    Undecided(Undecided),
}

/// The level of priority at which no task meets its deadline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoOrder {
    /// The level, counted from the highest, which is 1: so many tasks are left for the levels down to it.
    pub level: usize,
    /// The tasks that were found places below it, the highest of them first.
    pub below: Vec<usize>,
    /// Of each task left, how it misses at this level with all others that are left above it, in the order in which they
    /// were tried.
    pub tried: Vec<Witness>,
}

/// A priority order with which every task meets its deadline inside a reservation, if there is one.
///
/// Audsley, "Optimal priority assignment and feasibility of static priority tasks with arbitrary start times" (University
/// of York, YCS 164, 1991): the lowest level goes to any task that meets its deadline there, and so on upwards. Optimal
/// with the test of [`super::fixed_priority`], since it depends on which tasks are above and not on their order, and no
/// task fails by moving up (Davis & Burns, Real-Time Systems 47(1), 2011); jitter, deadlines beyond the period and
/// blocking that does not depend on the order included. Longest deadlines less jitter are tried first, so that the
/// deadline-monotonic order comes out where it is optimal. At most n (n + 1) / 2 tests.
///
/// Undecided if a test on the way was, and no other task fits; all tests together take [`STEPS`] steps at most.
///
/// ```
/// use timecell_analysis::{Task, inside::{OptimalOrder, optimal_order}, reservation::Dedicated};
///
/// // Deadlines beyond the periods: no monotonic order is optimal.
/// let tasks = [Task::new(52, 100).due(110), Task::new(52, 140).due(154)];
/// assert_eq!(optimal_order(&tasks, &Dedicated), OptimalOrder::Found(vec![1, 0]));
///
/// let tasks = [Task::new(3, 5), Task::new(3, 6)];
/// let OptimalOrder::None(none) = optimal_order(&tasks, &Dedicated) else { panic!("U > 1") };
/// assert_eq!((none.level, none.tried.len()), (2, 2));
/// ```
pub fn optimal_order(tasks: &[Task], supply: &impl Supply) -> OptimalOrder {
    if let Err(why) = in_range(tasks) {
        return OptimalOrder::Undecided(why);
    }
    let key = |&index: &usize| {
        let task = &tasks[index];
        let window = i128::from(task.deadline) - i128::from(task.jitter);
        (Reverse(window), Reverse(index))
    };
    let mut left: Vec<usize> = (0..tasks.len()).collect();
    left.sort_by_key(key);
    let mut steps = Budget::new(STEPS);
    let mut below = Vec::new();
    while !left.is_empty() {
        let mut tried = Vec::new();
        let mut doubt = None;
        let mut chosen = None;
        for candidate in 0..left.len() {
            // The candidate last, all others that are left above it.
            let mut above: Vec<usize> = left.clone();
            let own = above.remove(candidate);
            above.push(own);
            let pool: Vec<Task> = above.iter().map(|&index| tasks[index]).collect();
            let last = pool.len() - 1;
            match response(&pool, last, supply, &mut steps) {
                Ok(Ok(_)) => {
                    chosen = Some(candidate);
                    break;
                }
                Ok(Err(miss)) => {
                    tried.push(renumbered(witness(&pool, last, miss, supply), &above));
                }
                Err(why) => {
                    doubt.get_or_insert(why);
                }
            }
        }
        match (chosen, doubt) {
            (Some(candidate), _) => below.push(left.remove(candidate)),
            (None, Some(why)) => return OptimalOrder::Undecided(why),
            (None, None) => {
                below.reverse();
                return OptimalOrder::None(NoOrder {
                    level: left.len(),
                    below,
                    tried,
                });
            }
        }
    }
    below.reverse();
    OptimalOrder::Found(below)
}

fn renumbered(mut witness: Witness, order: &[usize]) -> Witness {
    witness.task = order[witness.task];
    for part in &mut witness.parts {
        part.task = order[part.task];
    }
    witness
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fp::{self, Assignment};
    use crate::inside::fixed_priority;
    use crate::reservation::{Dedicated, Periodic};

    fn permutations(count: usize) -> Vec<Vec<usize>> {
        if count == 0 {
            return vec![vec![]];
        }
        let mut all = vec![];
        for shorter in permutations(count - 1) {
            for place in 0..count {
                let mut longer = shorter.clone();
                longer.insert(place, count - 1);
                all.push(longer);
            }
        }
        all
    }

    fn holds(tasks: &[Task], order: &[usize], supply: &impl Supply) -> bool {
        let ordered: Vec<Task> = order.iter().map(|&index| tasks[index]).collect();
        fixed_priority(&ordered, supply).verdict.is_schedulable()
    }

    fn sets() -> impl Strategy<Value = Vec<Task>> {
        let task = (1u64..5, 0u64..20, 1u64..20, 0u64..4, 0u64..3).prop_map(
            |(wcet, slack, period, jitter, blocking)| {
                Task::new(wcet, period)
                    .due(wcet + slack)
                    .jittered(jitter)
                    .blocked(blocking)
            },
        );
        prop::collection::vec(task, 1..5)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn it_agrees_with_every_order_tried(tasks in sets(), budget in 1u64..6, idle in 0u64..5) {
            let supply = Periodic::new(budget, budget + idle).unwrap();
            let any = permutations(tasks.len()).iter().any(|order| holds(&tasks, order, &supply));
            match optimal_order(&tasks, &supply) {
                OptimalOrder::Found(order) => prop_assert!(holds(&tasks, &order, &supply)),
                OptimalOrder::None(none) => {
                    prop_assert!(!any);
                    prop_assert_eq!(none.level, none.tried.len());
                    prop_assert_eq!(none.level + none.below.len(), tasks.len());
                    for witness in &none.tried {
                        prop_assert!(witness.demand > witness.supply);
                        prop_assert!(witness.parts.iter().all(|part| !none.below.contains(&part.task)));
                    }
                }
                OptimalOrder::Undecided(why) => prop_assert!(false, "{why}"),
            }
        }

        #[test]
        fn on_a_whole_cpu_it_is_the_order_of_fp(tasks in sets()) {
            let found = optimal_order(&tasks, &Dedicated);
            match fp::optimal_order(&tasks) {
                Assignment::Order(order) => prop_assert_eq!(found, OptimalOrder::Found(order)),
                Assignment::None => prop_assert!(matches!(found, OptimalOrder::None(_))),
                Assignment::Undecided(why) => prop_assert!(false, "{why}"),
            }
        }
    }

    #[test]
    fn times_out_of_range_are_undecided() {
        let zero = [Task::new(0, 5)];
        assert!(matches!(
            optimal_order(&zero, &Dedicated),
            OptimalOrder::Undecided(_)
        ));
        assert_eq!(optimal_order(&[], &Dedicated), OptimalOrder::Found(vec![]));
    }
}
