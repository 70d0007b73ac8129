//! The density bound of global EDF.

use std::cmp::Ordering;

use super::covered::{Extras, clamp, covered};
use super::fraction::{Fraction, RatioSum};
use crate::{Part, Task, Undecided, Verdict, Witness};

/// Global EDF on `cpus` cpus, by density: sum δ <= m - (m - 1) max δ, where δ = C / D.
///
/// Sufficient only. Goossens, Funk & Baruah, "Priority-driven scheduling of periodic task systems on
/// multiprocessors" (Real-Time Systems 2003), with densities for constrained deadlines (Bertogna, Cirinei
/// & Lipari, ECRTS 2005). Compared exactly. On one cpu it is the density test. Times in ns.
///
/// A refusal's witness scales the densest task's deadline: demand is sum δ D rounded up, supply m D - (m - 1) C.
///
/// # Undecided
/// Deadlines beyond the period, jitter or blocking; sums too close to the bound for 128-bit fractions.
///
/// ```
/// use timecell_analysis::{Task, multi::gfb};
///
/// let tasks = [Task::new(5, 10), Task::new(5, 10), Task::new(5, 10)];
/// assert!(gfb(&tasks, 2).is_schedulable()); // 3/2 <= 2 - 1/2
/// assert!(!gfb(&[tasks.as_slice(), &[Task::new(1, 10)]].concat(), 2).is_schedulable());
/// ```
pub fn gfb(tasks: &[Task], cpus: u32) -> Verdict {
    if let Err(verdict) = covered(tasks, cpus, Extras::None) {
        return verdict;
    }
    let density = |task: &Task| Fraction {
        num: task.wcet.into(),
        den: task.deadline.into(),
    };
    let Some((index, densest)) = tasks
        .iter()
        .enumerate()
        .max_by(|(_, left), (_, right)| density(left).compare(density(right)))
    else {
        return Verdict::Schedulable;
    };
    let full = u128::from(cpus) * u128::from(densest.deadline);
    let held_back = (u128::from(cpus) - 1) * u128::from(densest.wcet);
    let bound = Fraction {
        num: full - held_back,
        den: densest.deadline.into(),
    };
    let sum = RatioSum::of(tasks.iter().map(|task| (task.wcet, task.deadline)));
    match sum.compare_to(bound) {
        None => Verdict::Undecided(Undecided::Overflow),
        Some(Ordering::Less | Ordering::Equal) => Verdict::Schedulable,
        Some(Ordering::Greater) => {
            let instant = densest.deadline;
            let parts: Vec<Part> = tasks
                .iter()
                .enumerate()
                .map(|(task, each)| Part {
                    task,
                    jobs: instant.div_ceil(each.deadline),
                    demand: clamp(
                        (u128::from(instant) * u128::from(each.wcet))
                            .div_ceil(u128::from(each.deadline)),
                    ),
                })
                .collect();
            Verdict::Unschedulable(Witness {
                task: index,
                instant,
                demand: clamp(parts.iter().map(|part| u128::from(part.demand)).sum()),
                supply: clamp(full - held_back),
                parts,
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MAX_NS;

    #[test]
    fn the_bound_itself_passes() {
        let full = [Task::new(1, 3), Task::new(1, 3), Task::new(1, 3)];
        assert!(gfb(&full, 1).is_schedulable());
        let over = [Task::new(1, 3), Task::new(1, 3), Task::new(334, 1000)];
        let Verdict::Unschedulable(witness) = gfb(&over, 1) else {
            panic!("the sum is 1.0006...");
        };
        assert!(witness.demand > witness.supply);
    }

    #[test]
    fn the_ends_of_the_range_do_not_overflow() {
        let long = vec![Task::new(MAX_NS, MAX_NS); 10_000];
        assert!(!gfb(&long, 9_999).is_schedulable());
        assert!(!gfb(&long[..3], u32::MAX).is_schedulable());
        assert!(gfb(&long[..1], u32::MAX).is_schedulable());
        assert!(gfb(&[], 0).is_schedulable());
        assert!(!gfb(&long[..1], 0).is_schedulable());
    }

    #[test]
    fn what_it_does_not_take_is_undecided() {
        for task in [
            Task::new(1, 10).due(11),
            Task::new(1, 10).jittered(1),
            Task::new(1, 10).blocked(1),
            Task::new(0, 10),
        ] {
            assert!(matches!(gfb(&[task], 4), Verdict::Undecided(_)));
        }
        assert!(matches!(
            gfb(&[Task::new(5, 10).due(4)], 4),
            Verdict::Unschedulable(_)
        ));
    }
}
