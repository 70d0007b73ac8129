//! The tests of Bertogna, Cirinei and Lipari for global scheduling.

use super::covered::{Extras, clamp, covered};
use crate::{Ns, Part, Task, Verdict, Witness};

/// Rounds of growing slacks before the search for more ends.
const MAX_ROUNDS: usize = 100;

/// Global fixed priority on `cpus` cpus, tasks in order of priority, highest first.
///
/// Sufficient only. Bertogna, Cirinei & Lipari, "Schedulability analysis of global scheduling algorithms on
/// multiprocessor platforms" (IEEE TPDS 2009), the test without slacks, in integer time: task k holds its deadline if
/// `sum over hp min(W_i(D), D - C + 1) < m (D - C + 1)`, where `W_i(t) = N C_i + min(C_i, t + D_i - C_i - N T_i)` and
/// `N = floor((t + D_i - C_i) / T_i)`. Jitter shortens the window to D - J and blocking B widens C to C + B on the left
/// of the window only: the workload bound already holds for any execution between an arrival and its deadline.
/// Times in ns; quadratic in the number of tasks.
///
/// A refusal's witness is the first task that fails: demand is `sum min(...) + m (C - 1) + 1`, supply m D.
///
/// # Undecided
/// Deadlines beyond the period, times out of range.
///
/// ```
/// use timecell_analysis::{Task, multi::bcl_fp};
///
/// let tasks = [Task::new(2, 10), Task::new(3, 10), Task::new(4, 12)];
/// assert!(bcl_fp(&tasks, 2).is_schedulable());
/// ```
pub fn bcl_fp(tasks: &[Task], cpus: u32) -> Verdict {
    if let Err(verdict) = covered(tasks, cpus, Extras::JitterAndBlocking) {
        return verdict;
    }
    all(tasks.len(), |k| fp_task(tasks, k, cpus))
}

/// Whether task `k` holds its deadline under global fixed priority, given that those before it hold theirs.
///
/// One task of [`bcl_fp`], with the same limits. A `k` beyond the set is schedulable: there is no such deadline.
///
/// ```
/// use timecell_analysis::{Task, multi::bcl_fp_task};
///
/// let tasks = [Task::new(9, 10), Task::new(9, 10), Task::new(5, 10)];
/// assert!(bcl_fp_task(&tasks, 1, 2).is_schedulable());
/// assert!(!bcl_fp_task(&tasks, 2, 2).is_schedulable());
/// ```
pub fn bcl_fp_task(tasks: &[Task], k: usize, cpus: u32) -> Verdict {
    if let Err(verdict) = covered(tasks, cpus, Extras::JitterAndBlocking) {
        return verdict;
    }
    if k >= tasks.len() {
        return Verdict::Schedulable;
    }
    match fp_task(tasks, k, cpus) {
        None => Verdict::Schedulable,
        Some(witness) => Verdict::Unschedulable(witness),
    }
}

/// Global EDF on `cpus` cpus.
///
/// Sufficient only. Bertogna, Cirinei & Lipari, "Improved schedulability analysis of EDF on multiprocessor platforms"
/// (ECRTS 2005), in integer time: task k holds its deadline if
/// `sum over i != k of min(E_i(D), D - C + 1) < m (D - C + 1)`, where `E_i(t) = floor(t / T_i) C_i + min(C_i, t mod T_i)`:
/// jobs that are due with k at the latest. Jitter and blocking as in [`bcl_fp`]. Incomparable with [`super::gfb`]:
/// each shows sets that the other does not. Times in ns; quadratic in the number of tasks.
///
/// # Undecided
/// Deadlines beyond the period, times out of range.
///
/// ```
/// use timecell_analysis::{Task, multi::{bcl_edf, gfb}};
///
/// // One heavy task among light ones.
/// let tasks = [Task::new(9, 10), Task::new(1, 10), Task::new(1, 20)];
/// assert!(bcl_edf(&tasks, 2).is_schedulable());
/// assert!(gfb(&tasks, 2).is_schedulable());
/// ```
pub fn bcl_edf(tasks: &[Task], cpus: u32) -> Verdict {
    if let Err(verdict) = covered(tasks, cpus, Extras::JitterAndBlocking) {
        return verdict;
    }
    all(tasks.len(), |k| {
        let others = (0..tasks.len()).filter(|&i| i != k);
        task_misses(tasks, k, cpus, others, |i, t| edf_workload(&tasks[i], t, 0)).err()
    })
}

/// [`bcl_edf`] again and again, each time with the slack that the time before has shown.
///
/// Sufficient only; shows all that [`bcl_edf`] shows and much more where periods differ. Bertogna, Cirinei & Lipari 2009,
/// the iterative test: a task that ends S before it is due carries less work into the windows of others,
/// `E_i(t) = floor(t / T_i) C_i + min(C_i, max(0, t mod T_i - S_i))`. All slacks start at 0 and only grow. Times in ns; at
/// most a hundred rounds, each quadratic in the number of tasks.
///
/// # Undecided
/// Deadlines beyond the period, times out of range.
///
/// ```
/// use timecell_analysis::{Task, multi::{bcl_edf, bcl_edf_with_slack}};
///
/// let tasks = [Task::new(2, 10), Task::new(20, 100), Task::new(20, 100)];
/// assert!(!bcl_edf(&tasks, 2).is_schedulable());
/// assert!(bcl_edf_with_slack(&tasks, 2).is_schedulable());
/// ```
pub fn bcl_edf_with_slack(tasks: &[Task], cpus: u32) -> Verdict {
    if let Err(verdict) = covered(tasks, cpus, Extras::JitterAndBlocking) {
        return verdict;
    }
    let mut slacks: Vec<Ns> = vec![0; tasks.len()];
    let mut failure = None;
    for _ in 0..MAX_ROUNDS {
        failure = None;
        let mut grown = false;
        for k in 0..tasks.len() {
            let others = (0..tasks.len()).filter(|&i| i != k);
            match task_misses(tasks, k, cpus, others, |i, t| {
                edf_workload(&tasks[i], t, slacks[i])
            }) {
                Ok(slack) => {
                    grown |= slack > slacks[k];
                    slacks[k] = slack.max(slacks[k]);
                }
                Err(witness) => {
                    failure.get_or_insert(witness);
                }
            }
        }
        if failure.is_none() || !grown {
            break;
        }
    }
    match failure {
        None => Verdict::Schedulable,
        Some(witness) => Verdict::Unschedulable(witness),
    }
}

fn all(count: usize, fails: impl Fn(usize) -> Option<Witness>) -> Verdict {
    match (0..count).find_map(fails) {
        None => Verdict::Schedulable,
        Some(witness) => Verdict::Unschedulable(witness),
    }
}

fn fp_task(tasks: &[Task], k: usize, cpus: u32) -> Option<Witness> {
    task_misses(tasks, k, cpus, 0..k, |i, t| {
        carried_in_workload(&tasks[i], t)
    })
    .err()
}

/// Most work of `task` in a window of `t`, when every job ends by its deadline: (jobs, work).
///
/// The densest packing starts with a job that runs just before its deadline and goes on with jobs that run at once.
pub(super) fn carried_in_workload(task: &Task, t: Ns) -> (u64, u128) {
    let reach = t + task.deadline - task.wcet;
    let whole = reach / task.period;
    let rest = (reach - whole * task.period).min(task.wcet);
    let jobs = whole + u64::from(rest > 0);
    (
        jobs,
        u128::from(whole) * u128::from(task.wcet) + u128::from(rest),
    )
}

/// Most work in a window of `t` of jobs that are due by its end, when each ends `slack` before it is due at the least:
/// (jobs, work).
pub(super) fn edf_workload(task: &Task, t: Ns, slack: Ns) -> (u64, u128) {
    let whole = t / task.period;
    let rest = (t % task.period).saturating_sub(slack).min(task.wcet);
    let jobs = whole + u64::from(rest > 0);
    (
        jobs,
        u128::from(whole) * u128::from(task.wcet) + u128::from(rest),
    )
}

/// The slack of task `k` at the least, or a witness if the interference may use it up.
fn task_misses(
    tasks: &[Task],
    k: usize,
    cpus: u32,
    others: impl Iterator<Item = usize>,
    workload: impl Fn(usize, Ns) -> (u64, u128),
) -> Result<Ns, Witness> {
    let task = &tasks[k];
    let window = task.deadline.saturating_sub(task.jitter);
    let own = task.wcet + task.blocking;
    let room = u128::from(cpus) * u128::from(window);
    let busy = u128::from(cpus) * u128::from(own - 1) + 1;
    let mut parts = vec![];
    let mut total = 0;
    if let Some(slack) = window.checked_sub(own) {
        let enough = u128::from(slack) + 1;
        for index in others {
            let (jobs, work) = workload(index, window);
            let share = work.min(enough);
            total += share;
            parts.push(Part {
                task: index,
                jobs,
                demand: clamp(share),
            });
        }
        if total + busy <= room {
            // Less than m (slack + 1), and so the quotient is at most the slack.
            return Ok(slack - clamp(total / u128::from(cpus)));
        }
    }
    parts.push(Part {
        task: k,
        jobs: 1,
        demand: clamp(busy),
    });
    Err(Witness {
        task: k,
        instant: window,
        demand: clamp(total + busy),
        supply: clamp(room),
        parts,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_carried_in_is_counted() {
        let task = Task::new(3, 10);
        // A window of 10 may see a job that ends with its deadline, 3, and 7 later the next.
        assert_eq!(carried_in_workload(&task, 3), (1, 3));
        assert_eq!(carried_in_workload(&task, 4), (2, 4));
        assert_eq!(carried_in_workload(&task, 10), (2, 6));
        assert_eq!(edf_workload(&task, 12, 0), (2, 5));
        assert_eq!(edf_workload(&task, 12, 1), (2, 4));
    }

    #[test]
    fn blocking_and_jitter_take_from_the_slack() {
        let above = Task::new(2, 10);
        // Two cpus, one task above: the room for it is the rest of the window, of any length.
        assert!(bcl_fp(&[above, Task::new(8, 10).blocked(2)], 2).is_schedulable());
        assert!(!bcl_fp(&[above, Task::new(8, 10).blocked(3)], 2).is_schedulable());
        assert!(bcl_fp(&[above, Task::new(8, 10).jittered(2)], 2).is_schedulable());
        assert!(!bcl_fp(&[above, Task::new(8, 10).jittered(3)], 2).is_schedulable());
        assert!(!bcl_edf(&[above, Task::new(8, 10).jittered(3)], 2).is_schedulable());
    }

    #[test]
    fn dhalls_set_is_not_shown() {
        // m light tasks with a shorter period and one heavy: global RM and EDF both miss.
        let mut tasks = vec![Task::new(2, 100); 4];
        tasks.push(Task::new(101, 101));
        assert!(!bcl_fp(&tasks, 4).is_schedulable());
        assert!(!bcl_edf(&tasks, 4).is_schedulable());
    }

    #[test]
    fn the_ends_of_the_range_do_not_overflow() {
        let long = Task::new(crate::MAX_NS, crate::MAX_NS)
            .jittered(crate::MAX_NS)
            .blocked(crate::MAX_NS);
        assert!(!bcl_fp(&[long; 3], u32::MAX).is_schedulable());
        assert!(!bcl_edf(&[long; 3], u32::MAX).is_schedulable());
        let fits = Task::new(1, crate::MAX_NS);
        assert!(bcl_fp(&[fits; 50], u32::MAX).is_schedulable());
        assert!(bcl_edf(&[], 0).is_schedulable());
    }
}
