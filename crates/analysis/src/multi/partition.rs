//! Packing tasks onto bins, such as cpus.

use std::cmp::Ordering;

use super::fraction::RatioSum;
use crate::Task;

/// Whether a bin holds its tasks: an exact uniprocessor test on the bin's resource (a cpu, a vCPU, a reservation).
///
/// Any `Fn(&[Task]) -> bool` is one, for bins that are all alike; implement the trait where they differ. The tasks
/// come in the order of the whole set, so that a set in order of priority gives bins in order of priority. It must
/// answer yes only if the deadlines hold: a partition is only as certain as this test.
pub trait BinTest {
    /// Whether these tasks hold their deadlines in the bin with that index.
    fn holds(&self, bin: usize, tasks: &[Task]) -> bool;
}

impl<F: Fn(&[Task]) -> bool> BinTest for F {
    fn holds(&self, _bin: usize, tasks: &[Task]) -> bool {
        self(tasks)
    }
}

/// Which of the bins that can hold a task gets it; ties go to the lowest index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fit {
    /// The first.
    First,
    /// The one with the greatest utilisation.
    Best,
    /// The one with the least utilisation.
    Worst,
    /// The one that got the last task, or the next one after it; never one before.
    Next,
}

/// In which order the tasks are placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Order {
    /// As they are given.
    AsGiven,
    /// By decreasing utilisation; equal ones as they are given.
    Decreasing,
}

/// Which task is in which bin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    /// For each bin the indices of its tasks, ascending.
    pub bins: Vec<Vec<usize>>,
    /// Indices of the tasks that no bin could hold, ascending.
    pub homeless: Vec<usize>,
}

impl Partition {
    /// Whether every task has a bin.
    ///
    /// ```
    /// use timecell_analysis::{Task, multi::{Fit, Order, partition}};
    ///
    /// // 0.6 of each of two cpus holds two of three.
    /// let found = partition(&[Task::new(6, 10); 3], 2, Fit::First, Order::AsGiven, &|bin: &[Task]| bin.len() < 2);
    /// assert!(!found.is_complete());
    /// assert_eq!(found.homeless, [2]);
    /// ```
    pub fn is_complete(&self) -> bool {
        self.homeless.is_empty()
    }
}

/// Places tasks into `bins` bins, one after the other, each where the test says that it fits.
///
/// The bin-packing heuristics of Johnson (1974) with an exact test for each bin instead of a capacity: first, best,
/// worst and next fit, each also decreasing. No heuristic finds every partition that exists; those it returns are
/// certain as far as the test is. A task that fits nowhere is homeless, and the rest are placed all the same.
/// Utilisations are compared exactly (to 2^-64 where the exact sum leaves 128 bits: that moves a choice, not a verdict).
///
/// A reservation of budget Q every P is a task with C = Q and T = P here, so that the same function puts cells on cpus.
///
/// ```
/// use timecell_analysis::{Task, multi::{Fit, Order, partition}};
///
/// let sizes = [8, 5, 7, 6, 2, 4, 1].map(|size| Task::new(size, 10));
/// let fits = |bin: &[Task]| bin.iter().map(|task| task.wcet).sum::<u64>() <= 10;
/// let found = partition(&sizes, 4, Fit::First, Order::AsGiven, &fits);
/// assert_eq!(found.bins, [vec![0, 4], vec![1, 5, 6], vec![2], vec![3]]);
/// assert!(found.is_complete());
/// ```
pub fn partition(
    tasks: &[Task],
    bins: usize,
    fit: Fit,
    order: Order,
    test: &impl BinTest,
) -> Partition {
    let mut indices: Vec<usize> = (0..tasks.len()).collect();
    if order == Order::Decreasing {
        indices.sort_by(|&left, &right| by_utilisation(&tasks[right], &tasks[left]));
    }
    let mut filling = Filling::new(tasks, bins);
    let mut loads = vec![RatioSum::default(); bins];
    let mut current = 0;
    for index in indices {
        let fitting = |bin: &usize| filling.fits(*bin, index, test);
        let chosen = match fit {
            Fit::First => (0..bins).find(fitting),
            Fit::Next => (current..bins).find(fitting),
            Fit::Best => (0..bins).filter(fitting).reduce(|kept, bin| {
                match order_of(&loads[bin], &loads[kept]) {
                    Ordering::Greater => bin,
                    _ => kept,
                }
            }),
            Fit::Worst => (0..bins).filter(fitting).reduce(|kept, bin| {
                match order_of(&loads[bin], &loads[kept]) {
                    Ordering::Less => bin,
                    _ => kept,
                }
            }),
        };
        if let Some(bin) = chosen {
            loads[bin].add(tasks[index].wcet, tasks[index].period);
            current = bin;
        }
        filling.place(index, chosen);
    }
    filling.done()
}

/// Exact where it can be, else by the bounds.
fn order_of(left: &RatioSum, right: &RatioSum) -> Ordering {
    left.compare(right)
        .unwrap_or_else(|| left.low().cmp(&right.low()))
}

fn by_utilisation(left: &Task, right: &Task) -> Ordering {
    let cross = |a: &Task, b: &Task| u128::from(a.wcet) * u128::from(b.period);
    cross(left, right).cmp(&cross(right, left))
}

/// A partition in the making.
pub(super) struct Filling<'a> {
    tasks: &'a [Task],
    partition: Partition,
}

impl<'a> Filling<'a> {
    pub fn new(tasks: &'a [Task], bins: usize) -> Filling<'a> {
        Filling {
            tasks,
            partition: Partition {
                bins: vec![vec![]; bins],
                homeless: vec![],
            },
        }
    }

    /// The tasks of a bin with one more, in the order of the set.
    pub fn with(&self, bin: usize, index: usize) -> Vec<Task> {
        let there = &self.partition.bins[bin];
        let at = there.partition_point(|&other| other < index);
        there[..at]
            .iter()
            .chain([&index])
            .chain(&there[at..])
            .map(|&each| self.tasks[each])
            .collect()
    }

    pub fn fits(&self, bin: usize, index: usize, test: &impl BinTest) -> bool {
        test.holds(bin, &self.with(bin, index))
    }

    pub fn place(&mut self, index: usize, bin: Option<usize>) {
        let there = match bin {
            Some(bin) => &mut self.partition.bins[bin],
            None => &mut self.partition.homeless,
        };
        let at = there.partition_point(|&other| other < index);
        there.insert(at, index);
    }

    pub fn done(self) -> Partition {
        self.partition
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn full(bin: &[Task]) -> bool {
        RatioSum::of(bin.iter().map(|task| (task.wcet, task.period)))
            .compare_to(super::super::fraction::Fraction::new(1, 1))
            .is_some_and(Ordering::is_le)
    }

    fn sizes(sizes: &[u64]) -> Vec<Task> {
        sizes.iter().map(|&size| Task::new(size, 10)).collect()
    }

    #[test]
    fn decreasing_orders_place_the_great_ones_first() {
        let tasks = sizes(&[3, 7, 5, 5]);
        let given = partition(&tasks, 2, Fit::First, Order::AsGiven, &full);
        assert_eq!(given.bins, [vec![0, 1], vec![2, 3]]);
        let tasks = sizes(&[4, 4, 6, 6]);
        let given = partition(&tasks, 2, Fit::First, Order::AsGiven, &full);
        assert_eq!((given.is_complete(), given.homeless), (false, vec![3]));
        let decreasing = partition(&tasks, 2, Fit::First, Order::Decreasing, &full);
        assert_eq!(decreasing.bins, [vec![0, 2], vec![1, 3]]);
    }

    #[test]
    fn next_fit_never_goes_back() {
        let found = partition(&sizes(&[6, 6, 3]), 3, Fit::Next, Order::AsGiven, &full);
        assert_eq!(found.bins, [vec![0], vec![1, 2], vec![]]);
        let found = partition(&sizes(&[2, 9, 2, 1]), 2, Fit::Next, Order::AsGiven, &full);
        assert_eq!(found.bins, [vec![0], vec![1, 3]]);
        assert_eq!(found.homeless, [2]);
    }

    #[test]
    fn exactly_equal_loads_go_to_the_lowest_index() {
        // 1/3 + 1/6 in bin 0, 1/2 in bin 1.
        let tasks = [
            Task::new(2, 6),
            Task::new(8, 16),
            Task::new(1, 6),
            Task::new(1, 100),
        ];
        let found = partition(&tasks, 2, Fit::Worst, Order::AsGiven, &full);
        assert_eq!(found.bins, [vec![0, 2, 3], vec![1]]);
    }

    #[test]
    fn bins_may_differ() {
        struct Sizes([u64; 2]);
        impl BinTest for Sizes {
            fn holds(&self, bin: usize, tasks: &[Task]) -> bool {
                tasks.iter().map(|task| task.wcet).sum::<u64>() <= self.0[bin]
            }
        }
        let found = partition(
            &sizes(&[6, 4]),
            2,
            Fit::First,
            Order::AsGiven,
            &Sizes([5, 9]),
        );
        assert_eq!(found.bins, [vec![1], vec![0]]);
    }

    #[test]
    fn no_bins_hold_nothing() {
        let found = partition(&sizes(&[6, 4]), 0, Fit::Best, Order::Decreasing, &full);
        assert_eq!((found.bins.len(), found.homeless), (0, vec![0, 1]));
    }

    proptest! {
        #[test]
        fn every_bin_passes_its_test_and_no_task_is_lost(
            sets in proptest::collection::vec((1u64..30, 10u64..60), 0..12),
            bins in 0usize..5,
            which in 0usize..8,
        ) {
            let tasks: Vec<Task> = sets.into_iter().map(|(c, t)| Task::new(c, t)).collect();
            let fit = [Fit::First, Fit::Best, Fit::Worst, Fit::Next][which / 2];
            let order = [Order::AsGiven, Order::Decreasing][which % 2];
            let found = partition(&tasks, bins, fit, order, &full);
            for bin in &found.bins {
                let there: Vec<Task> = bin.iter().map(|&index| tasks[index]).collect();
                prop_assert!(full(&there));
            }
            let mut all: Vec<usize> = found.bins.concat();
            all.extend(&found.homeless);
            all.sort_unstable();
            prop_assert_eq!(all, (0..tasks.len()).collect::<Vec<_>>());
            // First, best and worst fit leave a task out only if it fits nowhere at the end.
            if fit != Fit::Next {
                for &index in &found.homeless {
                    for bin in &found.bins {
                        let mut there: Vec<Task> = bin.iter().map(|&index| tasks[index]).collect();
                        there.push(tasks[index]);
                        prop_assert!(!full(&there));
                    }
                }
            }
        }
    }
}
