use std::cmp::Ordering;

use super::fraction::{Fraction, ONE, RatioSum};
use super::partition::{BinTest, Filling, Partition};
use crate::{Ns, Task};

/// Steps of a request-bound function that are looked at for one task.
const MAX_STEPS: usize = 100_000;

/// The "Ovh" heuristic as **reconstructed** from published partitions; not its authors' definition.
///
/// Abeni, Biondi & Bini (2022) name the heuristic; its text is not at hand. The rule here reproduces both partitions
/// of the ten tasks in Abeni (2024), Table 4, on two and on four vCPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ovh {
    /// The delay Δ of the bounded-delay reservation that a vCPU is assumed to be, ns. The published partitions come
    /// out for 0.26 ms to 0.58 ms at least.
    pub delay: Ns,
}

impl Default for Ovh {
    /// Δ = 0.5 ms.
    fn default() -> Ovh {
        Ovh { delay: 500_000 }
    }
}

/// Places tasks into `bins` vCPUs so that each wastes as little bandwidth as can be: the reconstructed "Ovh".
///
/// Tasks by increasing period; each goes to the vCPU, among those that the test says can hold it, on which
/// `α(S) - U(S)` is least afterwards, ties to the lowest index. α(S) is the least rate of a bounded-delay reservation
/// with delay Δ in which S holds its deadlines under rate-monotonic priorities: for every task some t <= D with
/// `rbf(t) <= α (t - Δ)`. A set that no rate suits comes last. Differences are compared exactly where 128 bits hold
/// them, else to 2^-64; at most a hundred thousand steps of each request-bound function count. Both move a choice and
/// never a verdict: what is certain of the result is what the test says, as in [`super::partition`]. Times in ns.
///
/// ```
/// use analysis::{Task, multi::{Ovh, partition_ovh}};
///
/// let ms = 1_000_000;
/// let tasks = [Task::new(2 * ms, 10 * ms), Task::new(3 * ms, 10 * ms), Task::new(30 * ms, 100 * ms)];
/// let found = partition_ovh(&tasks, 2, Ovh::default(), &|bin: &[Task]| bin.len() <= 2);
/// assert!(found.is_complete());
/// ```
pub fn partition_ovh(tasks: &[Task], bins: usize, ovh: Ovh, test: &impl BinTest) -> Partition {
    let mut indices: Vec<usize> = (0..tasks.len()).collect();
    indices.sort_by_key(|&index| tasks[index].period);
    let mut filling = Filling::new(tasks, bins);
    for index in indices {
        let mut chosen: Option<(usize, Waste)> = None;
        for bin in 0..bins {
            let there = filling.with(bin, index);
            if !test.holds(bin, &there) {
                continue;
            }
            let waste = Waste::of(there, ovh.delay);
            if chosen
                .as_ref()
                .is_none_or(|(_, least)| waste.compare(least) == Ordering::Less)
            {
                chosen = Some((bin, waste));
            }
        }
        filling.place(index, chosen.map(|(bin, _)| bin));
    }
    filling.done()
}

/// α(S) - U(S), both kept apart; no α where no rate is enough.
struct Waste {
    rate: Option<Fraction>,
    utilisation: RatioSum,
}

impl Waste {
    fn of(mut tasks: Vec<Task>, delay: Ns) -> Waste {
        tasks.sort_by_key(|task| task.period);
        Waste {
            rate: least_rate(&tasks, delay),
            utilisation: RatioSum::of(tasks.iter().map(|task| (task.wcet, task.period))),
        }
    }

    fn compare(&self, other: &Waste) -> Ordering {
        let (left, right) = match (self.rate, other.rate) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => return Ordering::Greater,
            (Some(_), None) => return Ordering::Less,
            (Some(left), Some(right)) => (left, right),
        };
        let exact = |rate: Fraction, sum: &RatioSum| rate.minus(sum.exact()?);
        match (
            exact(left, &self.utilisation),
            exact(right, &other.utilisation),
        ) {
            (Some(left), Some(right)) => left.compare(right),
            _ => self.rounded(left).cmp(&other.rounded(right)),
        }
    }

    fn rounded(&self, rate: Fraction) -> u128 {
        let scaled = rate
            .num
            .checked_mul(ONE)
            .map_or(u128::MAX, |scaled| scaled / rate.den);
        scaled.saturating_sub(self.utilisation.low())
    }
}

/// The least α with, for every task, some t <= D where rbf(t) <= α (t - Δ); tasks in order of priority.
fn least_rate(tasks: &[Task], delay: Ns) -> Option<Fraction> {
    let mut greatest = Fraction::ZERO;
    for (i, task) in tasks.iter().enumerate() {
        let above = &tasks[..i];
        // rbf is level between multiples of the periods, so that the quotient is least at the end of a level.
        let mut least: Option<Fraction> = None;
        let mut t = 0;
        for _ in 0..MAX_STEPS {
            t = above
                .iter()
                .map(|other| {
                    let period = other.period.max(1);
                    (t / period + 1).saturating_mul(period)
                })
                .min()
                .unwrap_or(Ns::MAX)
                .min(task.deadline);
            if t > delay {
                let work = above.iter().fold(u128::from(task.wcet), |sum, other| {
                    sum.saturating_add(
                        u128::from(t.div_ceil(other.period.max(1))) * u128::from(other.wcet),
                    )
                });
                let rate = Fraction::new(work, (t - delay).into());
                if least.is_none_or(|least| rate.compare(least) == Ordering::Less) {
                    least = Some(rate);
                }
            }
            if t >= task.deadline {
                break;
            }
        }
        let least = least?;
        if least.compare(greatest) == Ordering::Greater {
            greatest = least;
        }
    }
    Some(greatest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lone_task_needs_its_work_before_its_deadline() {
        let rate = least_rate(&[Task::new(3, 10).due(8)], 2).unwrap();
        assert_eq!(rate.compare(Fraction::new(1, 2)), Ordering::Equal);
        assert!(
            least_rate(&[Task::new(3, 10).due(8)], 8).is_none(),
            "no supply before the deadline is certain"
        );
    }

    #[test]
    fn the_best_instant_counts() {
        // Second task: at 10 demand 5 over 9, at 20 demand 7 over 19, at 25 demand 9 over 24: 7/19 is least.
        let tasks = [Task::new(2, 10), Task::new(3, 25)];
        let rate = least_rate(&tasks, 1).unwrap();
        assert_eq!(rate.compare(Fraction::new(7, 19)), Ordering::Equal);
    }

    #[test]
    fn only_vcpus_that_hold_a_task_count() {
        let tasks = [Task::new(1, 10); 3];
        let found = partition_ovh(&tasks, 2, Ovh::default(), &|bin: &[Task]| bin.len() <= 1);
        assert_eq!(found.bins, [vec![0], vec![1]]);
        assert_eq!(found.homeless, [2]);
    }

    #[test]
    fn far_apart_periods_end() {
        let tasks = [
            Task::new(1, 2),
            Task::new(1, crate::MAX_NS),
            Task::new(1, 0),
        ];
        let found = partition_ovh(&tasks, 2, Ovh { delay: 1 }, &|_: &[Task]| true);
        assert!(found.is_complete());
    }
}
