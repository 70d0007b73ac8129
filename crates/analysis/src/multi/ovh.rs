//! The heuristic "Ovh", reconstructed: packing tasks onto virtual cpus.

use std::cmp::Ordering;

use super::fraction::{Fraction, ONE, RatioSum};
use super::partition::{BinTest, Filling, Partition};
use crate::{Ns, Task};

/// Terms of request-bound functions that one call may add up; beyond, each is looked at once.
const MAX_WORK: u64 = 5_000_000;

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
/// `rbf(t) <= α (t - Δ)`. A set that no rate suits comes last. Times in ns.
///
/// Differences are compared exactly where 128 bits hold them, else to 2^-64; once request-bound functions have cost
/// five million additions, only the value of each at its deadline counts. Both move a choice and never a verdict: only
/// the answer of the test is certain of the result, as in [`super::partition`].
///
/// ```
/// use timecell_analysis::{Task, multi::{Ovh, partition_ovh}};
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
    let mut vcpus = vec![Vcpu::default(); bins];
    let mut left = MAX_WORK;
    for index in indices {
        let mut chosen: Option<(usize, Vcpu)> = None;
        for (bin, vcpu) in vcpus.iter().enumerate() {
            if !filling.fits(bin, index, test) {
                continue;
            }
            let with = vcpu.with(tasks[index], ovh.delay, &mut left);
            if chosen
                .as_ref()
                .is_none_or(|(_, least)| with.compare(least) == Ordering::Less)
            {
                chosen = Some((bin, with));
            }
        }
        let bin = chosen.map(|(bin, with)| {
            vcpus[bin] = with;
            bin
        });
        filling.place(index, bin);
    }
    filling.done()
}

/// The tasks of one vCPU by increasing period, and their waste: α(S) - U(S), both kept apart.
#[derive(Clone)]
struct Vcpu {
    tasks: Vec<Task>,
    /// None where no rate is enough.
    rate: Option<Fraction>,
    utilisation: RatioSum,
}

impl Default for Vcpu {
    fn default() -> Vcpu {
        Vcpu {
            tasks: vec![],
            rate: Some(Fraction::ZERO),
            utilisation: RatioSum::default(),
        }
    }
}

impl Vcpu {
    /// With a task of a period that is no shorter: it does not delay those before it, so that their rates stay.
    fn with(&self, task: Task, delay: Ns, left: &mut u64) -> Vcpu {
        let mut with = self.clone();
        let own = least_rate(&self.tasks, &task, delay, left);
        with.rate = match (self.rate, own) {
            (Some(rate), Some(own)) if own.compare(rate) == Ordering::Greater => Some(own),
            (Some(rate), Some(_)) => Some(rate),
            _ => None,
        };
        with.tasks.push(task);
        with.utilisation.add(task.wcet, task.period);
        with
    }

    fn compare(&self, other: &Vcpu) -> Ordering {
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

/// The least α with some t <= D where rbf(t) <= α (t - Δ), for a task below those of `above`.
fn least_rate(above: &[Task], task: &Task, delay: Ns, left: &mut u64) -> Option<Fraction> {
    // rbf is level between multiples of the periods, so that the quotient is least at the end of a level.
    let mut least: Option<Fraction> = None;
    let mut t = 0;
    loop {
        t = above
            .iter()
            .map(|other| {
                let period = other.period.max(1);
                (t / period + 1).saturating_mul(period)
            })
            .min()
            .unwrap_or(Ns::MAX)
            .min(task.deadline);
        let cost = above.len() as u64 + 1;
        let last = *left < cost;
        *left = left.saturating_sub(cost);
        if last {
            t = task.deadline;
        }
        if t > delay {
            let work = above.iter().fold(u128::from(task.wcet), |sum, other| {
                sum.saturating_add(
                    u128::from(t.div_ceil(other.period.max(1))) * u128::from(other.wcet),
                )
            });
            let rate = Fraction {
                num: work,
                den: (t - delay).into(),
            };
            if least.is_none_or(|least| rate.compare(least) == Ordering::Less) {
                least = Some(rate);
            }
        }
        if t >= task.deadline {
            return least;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lone_task_needs_its_work_before_its_deadline() {
        let alone = |delay| least_rate(&[], &Task::new(3, 10).due(8), delay, &mut 100);
        let rate = alone(2).unwrap();
        assert_eq!(rate.compare(Fraction::new(1, 2)), Ordering::Equal);
        assert!(
            alone(8).is_none(),
            "no supply before the deadline is certain"
        );
    }

    #[test]
    fn the_best_instant_counts() {
        // Second task: at 10 demand 5 over 9, at 20 demand 7 over 19, at 25 demand 9 over 24: 7/19 is least.
        let rate = least_rate(&[Task::new(2, 10)], &Task::new(3, 25), 1, &mut 100).unwrap();
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
