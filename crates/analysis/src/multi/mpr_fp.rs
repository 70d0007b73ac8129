//! Global fixed priorities inside a multiprocessor periodic resource.

use super::bcl::carried_in_workload;
use super::covered::{Extras, clamp, covered};
use super::mpr::Mpr;
use crate::{Part, Task, Verdict, Witness};

/// Global fixed priority inside a multiprocessor periodic resource, tasks in order of priority, highest first.
///
/// Sufficient only. The workload bounds of [`super::bcl_fp`] against the supply bound of the resource, as in the HCBS
/// document of the kernel (sections 3.3 to 3.5), with the 1 that its inequality lacks in integer time: task k holds its
/// deadline if `sum over hp min(W_i(D), D - C + 1) + m (C - 1) + 1 <= sbf(D)`. This is the test for rt-cgroups and HCBS
/// cells, whose tasks run under SCHED_FIFO. Times in ns.
///
/// # Undecided
/// Deadlines beyond the period, jitter or blocking.
///
/// ```
/// use timecell_analysis::{Task, multi::{Mpr, mpr_fp}};
///
/// let tasks = [Task::new(1, 20), Task::new(2, 30)];
/// assert!(mpr_fp(&tasks, &Mpr::new(5, 8, 2).unwrap()).is_schedulable());
/// assert!(!mpr_fp(&tasks, &Mpr::new(5, 1, 2).unwrap()).is_schedulable());
/// ```
pub fn mpr_fp(tasks: &[Task], resource: &Mpr) -> Verdict {
    let cpus = resource.cpus();
    if let Err(verdict) = covered(tasks, cpus, Extras::None) {
        return verdict;
    }
    for (k, task) in tasks.iter().enumerate() {
        let enough = u128::from(task.deadline - task.wcet) + 1;
        let shares = tasks[..k].iter().map(|above| {
            let (jobs, work) = carried_in_workload(above, task.deadline);
            (jobs, work.min(enough))
        });
        let busy = u128::from(cpus) * u128::from(task.wcet - 1) + 1;
        let demand = shares.clone().map(|(_, work)| work).sum::<u128>() + busy;
        let supply = resource.supply(task.deadline);
        if demand > supply {
            let mut parts: Vec<Part> = shares
                .enumerate()
                .map(|(index, (jobs, work))| Part {
                    task: index,
                    jobs,
                    demand: clamp(work),
                })
                .collect();
            parts.push(Part {
                task: k,
                jobs: 1,
                demand: clamp(busy),
            });
            return Verdict::Unschedulable(Witness {
                task: k,
                instant: task.deadline,
                demand: clamp(demand),
                supply: clamp(supply),
                parts,
            });
        }
    }
    Verdict::Schedulable
}

#[cfg(test)]
mod tests {
    use super::super::bcl_fp;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_dedicated_resource_is_so_many_cpus(
            sets in proptest::collection::vec((1u64..20, 0u64..20, 0u64..40), 1..7),
            cpus in 1u32..4,
            period in 1u64..10,
        ) {
            let tasks: Vec<Task> = sets
                .into_iter()
                .map(|(c, more, rest)| Task::new(c, c + more + rest).due(c + more))
                .collect();
            let whole = Mpr::new(period, period * u64::from(cpus), cpus).unwrap();
            prop_assert_eq!(mpr_fp(&tasks, &whole), bcl_fp(&tasks, cpus));
        }
    }
}
