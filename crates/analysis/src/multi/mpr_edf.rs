//! Global EDF inside a multiprocessor periodic resource.

use std::cmp::Ordering;

use super::covered::{Extras, clamp, covered};
use super::fraction::{Fraction, ONE, RatioSum};
use super::mpr::Mpr;
use crate::{Ns, Part, Task, Undecided, Verdict, Witness};

/// Instants that one verdict may look at before it gives up.
const MAX_STEPS: u64 = 2_000_000;

/// Terms of the demand that one verdict may add up, so that sets of thousands of tasks end too.
const MAX_WORK: u64 = 200_000_000;

/// No instant looked at lies beyond this, so that the sums of each step stay in range.
const MAX_INSTANT: Ns = 1 << 61;

/// Global EDF inside a multiprocessor periodic resource.
///
/// Sufficient only. Shin, Easwaran & Lee, "Hierarchical scheduling framework for virtual clustering of
/// multiprocessors" (ECRTS 2008), Theorem 1, made strict: for every task k and every t = A + D_k the interference that
/// can delay a job with that deadline, each task's share at most t - C_k + 1, plus m (C_k - 1) + 1, is at most sbf(t).
/// At most m - 1 tasks carry work in. The theorem as printed has t - C_k and m C_k: it lets the interference be exactly
/// the slack where more is demanded, and so accepts sets that miss, such as (C, T, D) = (2, 8, 2) and (1, 2, 2) on one
/// whole cpu. Instants are looked at up to where the linear bounds of demand and supply cross (as they do, with
/// `m C_k` added in the numerator), and between breakpoints both sides are straight, so that nothing is missed. Times
/// in ns; monotone in Θ.
///
/// # Undecided
/// Deadlines beyond the period, jitter or blocking; a utilisation equal to Θ / Π or so close to it that the instants
/// would be more than two million, or two hundred million terms.
///
/// ```
/// use timecell_analysis::{Task, multi::{Mpr, mpr_edf}};
///
/// let tasks = [Task::new(2, 20), Task::new(3, 30), Task::new(10, 40)];
/// assert!(mpr_edf(&tasks, &Mpr::new(5, 8, 2).unwrap()).is_schedulable());
/// assert!(!mpr_edf(&tasks, &Mpr::new(5, 2, 2).unwrap()).is_schedulable());
/// ```
pub fn mpr_edf(tasks: &[Task], resource: &Mpr) -> Verdict {
    if let Err(verdict) = covered(tasks, resource.cpus(), Extras::None) {
        return verdict;
    }
    if tasks.is_empty() {
        return Verdict::Schedulable;
    }
    let rate = Fraction::new(resource.total().into(), resource.period().into());
    let utilisation = RatioSum::of(tasks.iter().map(|task| (task.wcet, task.period)));
    match utilisation.compare_to(rate) {
        None => return Verdict::Undecided(Undecided::Overflow),
        Some(Ordering::Greater) => {
            return Verdict::Unschedulable(long_run(tasks, resource));
        }
        Some(Ordering::Equal) => {
            return Verdict::Undecided(Undecided::NotCovered(
                "the utilisation equals the rate of the resource, but the test needs some room"
                    .into(),
            ));
        }
        Some(Ordering::Less) => {}
    }
    let Some(shared) = Shared::of(tasks, resource, &utilisation) else {
        return Verdict::Undecided(Undecided::Overflow);
    };
    let most_steps = MAX_STEPS.min(MAX_WORK / tasks.len() as u64);
    let mut steps = 0;
    let mut largest = Vec::with_capacity(tasks.len());
    for (k, task) in tasks.iter().enumerate() {
        let Some(end) = shared.end(task, resource) else {
            return Verdict::Undecided(Undecided::Overflow);
        };
        let mut t = task.deadline;
        loop {
            let (demand, next) = interference(tasks, k, t, resource.cpus(), &mut largest);
            if demand > resource.supply(t) {
                return Verdict::Unschedulable(witness(tasks, k, t, resource));
            }
            let next = u128::from(next).min(resource.next_start(t));
            if next >= end {
                break;
            }
            steps += 1;
            if steps >= most_steps || next > MAX_INSTANT.into() {
                return Verdict::Undecided(Undecided::TooManySteps { steps });
            }
            t = clamp(next);
        }
    }
    Verdict::Schedulable
}

/// The terms that the ends of the searches of all tasks share.
struct Shared {
    /// C of the m - 1 tasks that may carry most in, ns.
    carried_in: u128,
    /// sum (T - D) U, rounded up, ns.
    early: u128,
    /// 2 Θ/Π (Π - Θ/m), rounded up, ns.
    starved: u128,
    /// Θ/Π - U in units of 2^-64, rounded down.
    room: u128,
}

impl Shared {
    /// `None` when a product leaves the range or no room is left after rounding.
    fn of(tasks: &[Task], resource: &Mpr, utilisation: &RatioSum) -> Option<Shared> {
        let mut wcets: Vec<Ns> = tasks.iter().map(|task| task.wcet).collect();
        wcets.sort_unstable_by(|left, right| right.cmp(left));
        let carriers = resource.cpus() as usize - 1;
        let (total, period) = (u128::from(resource.total()), u128::from(resource.period()));
        let whole = u128::from(resource.cpus()) * period;
        Some(Shared {
            carried_in: wcets
                .iter()
                .take(carriers)
                .map(|&wcet| u128::from(wcet))
                .sum(),
            early: tasks
                .iter()
                .map(|task| {
                    (u128::from(task.period - task.deadline) * u128::from(task.wcet))
                        .div_ceil(task.period.into())
                })
                .sum(),
            starved: (2 * total).checked_mul(whole - total)?.div_ceil(whole),
            room: total
                .checked_mul(ONE)
                .map(|scaled| scaled / period)?
                .checked_sub(utilisation.high())
                .filter(|&room| room > 0)?,
        })
    }

    /// From this instant on the supply is enough for any behaviour of the tasks.
    fn end(&self, task: &Task, resource: &Mpr) -> Option<u128> {
        let own = u128::from(resource.cpus()) * u128::from(task.wcet);
        let load = self.carried_in + own + self.early + self.starved;
        Some(load.checked_mul(ONE)?.div_ceil(self.room))
    }
}

/// The left side of the condition at t = A + D_k, and the next instant where it may turn.
fn interference(tasks: &[Task], k: usize, t: Ns, cpus: u32, gains: &mut Vec<Ns>) -> (u128, Ns) {
    let own = &tasks[k];
    let mut total = u128::from(cpus) * u128::from(own.wcet - 1) + 1;
    let mut next = Ns::MAX;
    gains.clear();
    for (index, task) in tasks.iter().enumerate() {
        let share = Share::of(task, t);
        // The job of task k itself is counted apart, and its earlier jobs delay it only before its arrival.
        let (done, cap) = if index == k {
            (own.wcet, own.deadline)
        } else {
            (0, own.wcet - 1)
        };
        let work = share.work - done;
        let limit = t - cap;
        let without = work.min(limit);
        total += u128::from(without);
        gains.push((work + share.carried_in).min(limit) - without);
        for turn in [
            share.start,
            share.start + task.wcet,
            share.start + task.deadline,
            work + cap,
            work + task.wcet + cap,
        ] {
            if turn > t {
                next = next.min(turn);
            }
        }
    }
    let carriers = cpus as usize - 1;
    if carriers < gains.len() && carriers > 0 {
        gains.select_nth_unstable_by(carriers - 1, |left, right| right.cmp(left));
    }
    total += gains
        .iter()
        .take(carriers)
        .map(|&gain| u128::from(gain))
        .sum::<u128>();
    (total, next)
}

/// The work of a task that is due by t, at most.
struct Share {
    jobs: u64,
    /// Arrival of the first of those jobs, counted back from t: N T.
    start: Ns,
    /// N C.
    work: Ns,
    /// Work of the job before, if it is still there: min(C, t - N T).
    carried_in: Ns,
}

impl Share {
    fn of(task: &Task, t: Ns) -> Share {
        let jobs = (t + task.period - task.deadline) / task.period;
        let start = jobs * task.period;
        Share {
            jobs,
            start,
            work: jobs * task.wcet,
            carried_in: t.saturating_sub(start).min(task.wcet),
        }
    }
}

fn witness(tasks: &[Task], k: usize, t: Ns, resource: &Mpr) -> Witness {
    let own = &tasks[k];
    let (demand, _) = interference(tasks, k, t, resource.cpus(), &mut vec![]);
    // Of the work carried in, that of the m - 1 tasks that carry most in counts.
    let mut carried: Vec<(Ns, usize)> = Vec::with_capacity(tasks.len());
    let mut parts: Vec<Part> = Vec::with_capacity(tasks.len());
    for (index, task) in tasks.iter().enumerate() {
        let share = Share::of(task, t);
        let (done, limit) = if index == k {
            (own.wcet, t - own.deadline)
        } else {
            (0, t - (own.wcet - 1))
        };
        let without = (share.work - done).min(limit);
        let with = (share.work - done + share.carried_in).min(limit);
        carried.push((with - without, index));
        parts.push(Part {
            task: index,
            jobs: share.jobs,
            demand: if index == k {
                let busy = u128::from(resource.cpus()) * u128::from(own.wcet - 1) + 1;
                clamp(busy + u128::from(without))
            } else {
                without
            },
        });
    }
    carried.sort_unstable_by(|left, right| right.cmp(left));
    let carriers = carried.iter().take(resource.cpus() as usize - 1);
    for &(gain, index) in carriers.filter(|(gain, _)| *gain > 0) {
        parts[index].demand = parts[index].demand.saturating_add(gain);
        parts[index].jobs += 1;
    }
    parts.retain(|part| part.demand > 0);
    Witness {
        task: k,
        instant: t,
        demand: clamp(demand),
        supply: resource.sbf(t),
        parts,
    }
}

/// More work than supply in the long run, shown over the longest period.
fn long_run(tasks: &[Task], resource: &Mpr) -> Witness {
    let (task, instant) = tasks
        .iter()
        .enumerate()
        .map(|(index, task)| (index, task.period))
        .max_by_key(|&(_, period)| period)
        .unwrap_or((0, 1));
    let demand = tasks.iter().fold(0u128, |sum, each| {
        sum + (u128::from(instant) * u128::from(each.wcet)).div_ceil(each.period.into())
    });
    Witness {
        task,
        instant,
        demand: clamp(demand),
        supply: clamp(
            u128::from(resource.total()) * u128::from(instant) / u128::from(resource.period()),
        ),
        parts: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_witness_adds_up() {
        for total in [9, 12, 14, 17] {
            let tasks = [Task::new(10, 40), Task::new(12, 50), Task::new(20, 60)];
            let resource = Mpr::new(10, total, 2).unwrap();
            let Verdict::Unschedulable(witness) = mpr_edf(&tasks, &resource) else {
                continue;
            };
            let sum: Ns = witness.parts.iter().map(|part| part.demand).sum();
            assert!(
                witness.parts.is_empty() || sum == witness.demand,
                "{witness:?}"
            );
            assert!(witness.demand > witness.supply);
        }
        let over = Mpr::new(10, 1, 2).unwrap();
        let Verdict::Unschedulable(witness) = mpr_edf(&[Task::new(10, 40)], &over) else {
            panic!("more work than supply");
        };
        assert!(witness.parts.is_empty(), "no jobs make up an average");
    }

    /// The condition at every instant up to far beyond where demand and supply cross.
    fn at_every_instant(tasks: &[Task], resource: &Mpr) -> bool {
        let m = u64::from(resource.cpus());
        (0..tasks.len()).all(|k| {
            let own = tasks[k];
            (own.deadline..own.deadline + 3_000).all(|t| {
                let a = t - own.deadline;
                let mut gains = vec![];
                let mut total = m * (own.wcet - 1) + 1;
                for (i, task) in tasks.iter().enumerate() {
                    let n = (t + task.period - task.deadline) / task.period;
                    let w = n * task.wcet;
                    let ci = task.wcet.min(t.saturating_sub(n * task.period));
                    let (low, high) = if i == k {
                        ((w - own.wcet).min(a), (w + ci - own.wcet).min(a))
                    } else {
                        {
                            let cap = t - own.wcet + 1;
                            (w.min(cap), (w + ci).min(cap))
                        }
                    };
                    total += low;
                    gains.push(high - low);
                }
                gains.sort_unstable();
                total += gains.iter().rev().take(m as usize - 1).sum::<u64>();
                total <= resource.sbf(t)
            })
        })
    }

    fn sets() -> impl Strategy<Value = Vec<Task>> {
        let task = (1u64..6, 0u64..15, 0u64..20)
            .prop_map(|(c, more, rest)| Task::new(c, c + more + rest).due(c + more));
        proptest::collection::vec(task, 1..5)
    }

    fn resources() -> impl Strategy<Value = Mpr> {
        (1u64..12, 1u32..4)
            .prop_flat_map(|(period, cpus)| {
                (Just(period), 1..=period * u64::from(cpus), Just(cpus))
            })
            .prop_map(|(period, total, cpus)| Mpr::new(period, total, cpus).unwrap())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]
        #[test]
        fn no_instant_between_breakpoints_matters(tasks in sets(), resource in resources()) {
            match mpr_edf(&tasks, &resource) {
                Verdict::Schedulable => prop_assert!(at_every_instant(&tasks, &resource)),
                Verdict::Unschedulable(witness) => {
                    prop_assert!(witness.demand > witness.supply);
                    prop_assert!(!at_every_instant(&tasks, &resource) || tasks_overload(&tasks, &resource));
                }
                Verdict::Undecided(_) => {}
            }
        }

        #[test]
        fn more_never_turns_yes_to_no(tasks in sets(), resource in resources()) {
            if mpr_edf(&tasks, &resource).is_schedulable() {
                if let Ok(more) = Mpr::new(resource.period(), resource.total() + 1, resource.cpus()) {
                    prop_assert!(mpr_edf(&tasks, &more).is_schedulable());
                }
                let lighter: Vec<Task> = tasks.iter().map(|task| Task { wcet: task.wcet.div_ceil(2), ..*task }).collect();
                prop_assert!(mpr_edf(&lighter, &resource).is_schedulable());
            }
        }
    }

    fn tasks_overload(tasks: &[Task], resource: &Mpr) -> bool {
        let rate = Fraction::new(resource.total().into(), resource.period().into());
        let sum = RatioSum::of(tasks.iter().map(|task| (task.wcet, task.period)));
        sum.compare_to(rate) == Some(Ordering::Greater)
    }

    #[test]
    fn interference_of_exactly_the_slack_is_no_excuse() {
        let tasks = [Task::new(2, 8).due(2), Task::new(1, 2)];
        assert!(!mpr_edf(&tasks, &Mpr::new(1, 1, 1).unwrap()).is_schedulable());
    }

    #[test]
    fn a_full_resource_is_undecided_and_an_overfull_one_refused() {
        let tasks = [Task::new(1, 2), Task::new(1, 2)];
        assert!(matches!(
            mpr_edf(&tasks, &Mpr::new(10, 10, 2).unwrap()),
            Verdict::Undecided(_)
        ));
        let Verdict::Unschedulable(witness) = mpr_edf(&tasks, &Mpr::new(10, 9, 2).unwrap()) else {
            panic!("U = 1 > 9/10");
        };
        assert!(witness.demand > witness.supply);
    }

    #[test]
    fn little_room_and_long_times_end() {
        let max = crate::MAX_NS;
        for tasks in [
            vec![Task::new(1, 2), Task::new(max / 2 - 1, max)],
            vec![Task::new(max, max); 3],
            vec![Task::new(1, max); 3],
        ] {
            for resource in [
                Mpr::new(max, max, 1).unwrap(),
                Mpr::new(1, 4, 4).unwrap(),
                Mpr::new(max, u64::MAX, u32::MAX).unwrap(),
            ] {
                mpr_edf(&tasks, &resource);
            }
        }
    }
}
