//! Proofs that no scheduler can hold the deadlines.

use std::cmp::Ordering;

use super::covered::{Extras, clamp, covered};
use super::fraction::{Fraction, RatioSum};
use super::mpr::Mpr;
use crate::{Ns, Part, Task, Verdict, Witness};

/// A proof that no scheduler whatsoever can hold the deadlines on `cpus` cpus, if there is a simple one.
///
/// Necessary conditions (Baruah, Rosier & Howell 1990, for m cpus): the utilisation is at most m, every C fits in its
/// D less its jitter, and the demand bound at every relative deadline t is at most m t. `None` proves nothing. Times
/// in ns, deadlines constrained; of other sets it says nothing.
///
/// ```
/// use timecell_analysis::{Task, multi::overloaded};
///
/// let heavy = [Task::new(7, 10), Task::new(7, 10), Task::new(7, 10)];
/// assert!(overloaded(&heavy, 2).is_some());
/// assert!(overloaded(&heavy, 3).is_none());
/// ```
pub fn overloaded(tasks: &[Task], cpus: u32) -> Option<Witness> {
    let whole = Fraction::new(cpus.into(), 1);
    overloaded_by_deadlines(tasks, cpus).or_else(|| in_the_long_run(tasks, cpus, whole))
}

/// The part of [`overloaded`] that looks at deadlines.
fn overloaded_by_deadlines(tasks: &[Task], cpus: u32) -> Option<Witness> {
    match covered(tasks, cpus, Extras::JitterAndBlocking) {
        Ok(()) => {}
        Err(Verdict::Unschedulable(witness)) => return Some(witness),
        Err(_) => return None,
    }
    let mut instants: Vec<(usize, u64)> = tasks
        .iter()
        .enumerate()
        .map(|(index, task)| (index, task.deadline))
        .collect();
    instants.sort_by_key(|&(_, deadline)| deadline);
    // Quadratic: large sets are judged by their utilisation alone.
    if tasks.len() > 2_000 {
        instants.clear();
    }
    for (index, instant) in instants {
        let parts = due_by(tasks, instant);
        let demand: u128 = parts.iter().map(|part| u128::from(part.demand)).sum();
        let supply = u128::from(cpus) * u128::from(instant);
        if demand > supply {
            return Some(Witness {
                task: index,
                instant,
                demand: clamp(demand),
                supply: clamp(supply),
                parts,
            });
        }
    }
    for (index, task) in tasks.iter().enumerate() {
        let window = task.deadline.saturating_sub(task.jitter);
        if task.wcet > window {
            return Some(Witness {
                task: index,
                instant: window,
                demand: task.wcet,
                supply: window,
                parts: vec![Part {
                    task: index,
                    jobs: 1,
                    demand: task.wcet,
                }],
            });
        }
    }
    None
}

/// A proof that no scheduler whatsoever can hold the deadlines inside a multiprocessor periodic resource, if there is a
/// simple one.
///
/// The proof of [`overloaded`] for the cpus themselves, and besides: the utilisation is more than Θ / Π. If every cpu has the same
/// budget, its supply can be as little as sbf, and then also a demand bound above sbf at a relative deadline is a proof.
/// `None` proves nothing. Times in ns.
///
/// ```
/// use timecell_analysis::{Task, multi::{Mpr, overloaded_inside}};
///
/// let tasks = [Task::new(7, 10), Task::new(7, 10)];
/// assert!(overloaded_inside(&tasks, &Mpr::new(5, 6, 2).unwrap()).is_some()); // 14/10 > 6/5
/// assert!(overloaded_inside(&tasks, &Mpr::new(5, 10, 2).unwrap()).is_none());
/// ```
pub fn overloaded_inside(tasks: &[Task], resource: &Mpr) -> Option<Witness> {
    let cpus = resource.cpus();
    if let Some(witness) = overloaded_by_deadlines(tasks, cpus) {
        return Some(witness);
    }
    covered(tasks, cpus, Extras::JitterAndBlocking).ok()?;
    let equal = resource.total().is_multiple_of(u64::from(cpus));
    // Quadratic: large sets are judged by their utilisation alone.
    let deadlines = tasks
        .iter()
        .enumerate()
        .filter(|_| equal && tasks.len() <= 2_000);
    for (index, task) in deadlines {
        let parts = due_by(tasks, task.deadline);
        let demand: u128 = parts.iter().map(|part| u128::from(part.demand)).sum();
        let supply = resource.supply(task.deadline);
        if demand > supply {
            return Some(Witness {
                task: index,
                instant: task.deadline,
                demand: clamp(demand),
                supply: clamp(supply),
                parts,
            });
        }
    }
    let rate = Fraction::new(resource.total().into(), resource.period().into());
    in_the_long_run(tasks, cpus, rate)
}

/// Jobs that are released and due within `instant`.
fn due_by(tasks: &[Task], instant: Ns) -> Vec<Part> {
    let due = tasks.iter().enumerate();
    due.filter(|(_, task)| task.deadline <= instant)
        .map(|(index, task)| {
            let jobs = (instant - task.deadline) / task.period + 1;
            Part {
                task: index,
                jobs,
                demand: clamp(u128::from(jobs) * u128::from(task.wcet)),
            }
        })
        .collect()
}

/// A utilisation beyond the rate of the tasks' supply: over any long time t the demand nears U t, for which the longest
/// period stands. No single jobs make that up, so that there are no parts.
fn in_the_long_run(tasks: &[Task], cpus: u32, rate: Fraction) -> Option<Witness> {
    covered(tasks, cpus, Extras::JitterAndBlocking).ok()?;
    let utilisation = RatioSum::of(tasks.iter().map(|task| (task.wcet, task.period)));
    if utilisation.compare_to(rate) != Some(Ordering::Greater) {
        return None;
    }
    let longest = tasks.iter().enumerate();
    let (task, longest) = longest.max_by_key(|(_, task)| task.period)?;
    let instant = u128::from(longest.period);
    let demand = tasks.iter().fold(0u128, |sum, task| {
        sum + (instant * u128::from(task.wcet)).div_ceil(task.period.into())
    });
    Some(Witness {
        task,
        instant: longest.period,
        demand: clamp(demand),
        supply: clamp(instant * rate.num / rate.den),
        parts: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_run_overload_is_seen_where_no_deadline_shows_it() {
        // The demand is 5 by 10 and 13 by 15, but U = 1/2 + 8/15 > 1.
        let tasks = [Task::new(5, 10), Task::new(8, 15)];
        let witness = overloaded(&tasks, 1).unwrap();
        assert!(witness.demand > witness.supply);
        assert_eq!(overloaded(&tasks, 2), None);
    }

    #[test]
    fn a_full_cpu_is_no_overload() {
        assert_eq!(overloaded(&[Task::new(5, 10), Task::new(10, 20)], 1), None);
        assert_eq!(overloaded(&[], 0), None);
        assert!(overloaded(&[Task::new(1, 2)], 0).is_some());
    }

    #[test]
    fn jitter_that_leaves_no_room_is_an_overload() {
        assert!(overloaded(&[Task::new(5, 10).jittered(6)], 4).is_some());
        assert_eq!(overloaded(&[Task::new(5, 10).jittered(5)], 1), None);
    }
}
