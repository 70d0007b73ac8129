//! Response times under global scheduling (Bertogna and Cirinei).

use super::bcl::edf_workload;
use super::covered::{Extras, clamp, covered};
use super::walk::{MAX_WORK, Piece, capped, walk};
use crate::{Ns, Part, Task, Undecided, Verdict, Witness};

/// Rounds of falling response times under EDF before the search for more ends.
const MAX_ROUNDS: usize = 100;

/// The result of [`rta_bc_fp`] or [`rta_bc_edf`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BcBounds {
    /// Whether every deadline is shown to hold.
    pub verdict: Verdict,
    /// Bounds on the response times in ns, in the order of the tasks. `None` where nothing is shown: under fixed priority
    /// from the first task that is not shown to hold its deadline, under EDF for all tasks if that happens to any.
    pub responses: Vec<Option<Ns>>,
}

/// Global fixed priority on `cpus` cpus by response times, tasks in order of priority, highest first.
///
/// Sufficient only. Bertogna & Cirinei, "Response-time analysis for globally scheduled symmetric multiprocessor platforms"
/// (RTSS 2007), theorem 6 with the slacks of section 4.2: R is the least x with
/// `C + floor(sum over hp min(W_i(x), x - C + 1) / m) = x`, where `W_i(x) = N C_i + min(C_i, x + R_i - C_i - N T_i)` and
/// `N = floor((x + R_i - C_i) / T_i)`. [`super::rta_lc`] dominates it, since it lets only m - 1 tasks carry work in; shows
/// all that [`super::bcl_fp`] shows of tasks without jitter and blocking. Times in ns.
///
/// # Undecided
/// Deadlines beyond the period, jitter or blocking; more than a million pieces for one task, or two hundred million
/// terms in all.
///
/// ```
/// use timecell_analysis::{Task, multi::rta_bc_fp};
///
/// let tasks = [Task::new(2, 10), Task::new(3, 10), Task::new(4, 12)];
/// let bounds = rta_bc_fp(&tasks, 2);
/// assert!(bounds.verdict.is_schedulable());
/// assert_eq!(bounds.responses, [Some(2), Some(3), Some(6)]);
/// ```
pub fn rta_bc_fp(tasks: &[Task], cpus: u32) -> BcBounds {
    let mut bounds = BcBounds {
        verdict: Verdict::Schedulable,
        responses: vec![None; tasks.len()],
    };
    if let Err(verdict) = covered(tasks, cpus, Extras::None) {
        bounds.verdict = verdict;
        return bounds;
    }
    let mut above: Vec<Other> = Vec::with_capacity(tasks.len());
    let mut left = MAX_WORK;
    for (k, task) in tasks.iter().enumerate() {
        match response(&above, task, cpus, &mut left) {
            Ok(Some(response)) => {
                bounds.responses[k] = Some(response);
                above.push(Other {
                    index: k,
                    task: *task,
                    response,
                    most: None,
                });
            }
            Ok(None) => {
                bounds.verdict = Verdict::Unschedulable(witness(&above, task, k, cpus));
                return bounds;
            }
            Err(undecided) => {
                bounds.verdict = Verdict::Undecided(undecided);
                return bounds;
            }
        }
    }
    bounds
}

/// Global EDF on `cpus` cpus by response times.
///
/// Sufficient only. Bertogna & Cirinei (RTSS 2007), theorem 7: as [`rta_bc_fp`] with all other tasks, each of which also
/// interferes by no more than `E_i(D) = floor(D / T_i) C_i + min(C_i, max(0, D mod T_i - D_i + R_i))`, the work of its jobs that
/// are due with k at the latest. All R start at D and fall round by round; the bounds hold once every task has one, since
/// the first deadline to be missed would have to be missed without any before it. Shows all that
/// [`super::bcl_edf_with_slack`] shows of tasks without jitter and blocking. Times in ns; at most a hundred rounds.
///
/// # Undecided
/// As [`rta_bc_fp`].
///
/// ```
/// use timecell_analysis::{Task, multi::rta_bc_edf};
///
/// let tasks = [Task::new(2, 10), Task::new(20, 100), Task::new(20, 100)];
/// let bounds = rta_bc_edf(&tasks, 2);
/// assert!(bounds.verdict.is_schedulable());
/// assert!(bounds.responses[0] < Some(10));
/// ```
pub fn rta_bc_edf(tasks: &[Task], cpus: u32) -> BcBounds {
    let none = vec![None; tasks.len()];
    let without = |verdict| BcBounds {
        verdict,
        responses: none.clone(),
    };
    if let Err(verdict) = covered(tasks, cpus, Extras::None) {
        return without(verdict);
    }
    let mut bounds: Vec<Ns> = tasks.iter().map(|task| task.deadline).collect();
    let mut left = MAX_WORK;
    let mut failure = None;
    for _ in 0..MAX_ROUNDS {
        failure = None;
        let mut fell = false;
        for (k, task) in tasks.iter().enumerate() {
            let others = others(tasks, k, &bounds);
            match response(&others, task, cpus, &mut left) {
                Ok(Some(response)) => {
                    fell |= response < bounds[k];
                    bounds[k] = response.min(bounds[k]);
                }
                Ok(None) => {
                    failure.get_or_insert_with(|| witness(&others, task, k, cpus));
                }
                Err(undecided) => return without(Verdict::Undecided(undecided)),
            }
        }
        if !fell {
            break;
        }
    }
    match failure {
        None => BcBounds {
            verdict: Verdict::Schedulable,
            responses: bounds.into_iter().map(Some).collect(),
        },
        Some(witness) => without(Verdict::Unschedulable(witness)),
    }
}

/// A task that may delay the one in question, with C <= R <= T.
struct Other {
    index: usize,
    task: Task,
    response: Ns,
    /// The work by which it delays at the most, however long the window is.
    most: Option<Ns>,
}

/// All tasks but `k` under EDF.
fn others(tasks: &[Task], k: usize, bounds: &[Ns]) -> Vec<Other> {
    let deadline = tasks[k].deadline;
    let all = tasks.iter().zip(bounds).enumerate();
    all.filter(|&(index, _)| index != k)
        .map(|(index, (task, &response))| {
            let slack = task.deadline - response;
            Other {
                index,
                task: *task,
                response,
                most: Some(clamp(edf_workload(task, deadline, slack).1)),
            }
        })
        .collect()
}

impl Other {
    /// The work of jobs that end by their response times in a window of `x`.
    fn work(&self, x: Ns) -> Piece {
        let (wcet, period) = (self.task.wcet, self.task.period);
        let reach = x + (self.response - wcet);
        let (whole, rest) = (reach / period, reach % period);
        let piece = if rest < wcet {
            Piece {
                value: whole * wcet + rest,
                rises: true,
                until: x + (wcet - rest),
            }
        } else {
            Piece {
                value: (whole + 1) * wcet,
                rises: false,
                until: x + (period - rest),
            }
        };
        match self.most {
            Some(most) if piece.value >= most => Piece {
                value: most,
                rises: false,
                until: Ns::MAX,
            },
            Some(most) if piece.rises => Piece {
                until: piece.until.min(x + (most - piece.value)),
                ..piece
            },
            _ => piece,
        }
    }
}

fn response(
    others: &[Other],
    task: &Task,
    cpus: u32,
    left: &mut u64,
) -> Result<Option<Ns>, Undecided> {
    walk(task, cpus, others.len() + 1, left, |x| {
        let mut sum = (0, 0, Ns::MAX);
        for other in others {
            let piece = capped(other.work(x), x, task.wcet);
            sum.0 += u128::from(piece.value);
            sum.1 += u128::from(piece.rises);
            sum.2 = sum.2.min(piece.until);
        }
        sum
    })
}

fn witness(others: &[Other], task: &Task, k: usize, cpus: u32) -> Witness {
    let instant = task.deadline;
    let busy = u128::from(cpus) * u128::from(task.wcet - 1) + 1;
    let mut parts: Vec<Part> = others
        .iter()
        .map(|other| {
            let piece = capped(other.work(instant), instant, task.wcet);
            Part {
                task: other.index,
                jobs: piece.value.div_ceil(other.task.wcet),
                demand: piece.value,
            }
        })
        .collect();
    parts.push(Part {
        task: k,
        jobs: 1,
        demand: clamp(busy),
    });
    let total: u128 = parts[..parts.len() - 1]
        .iter()
        .map(|part| u128::from(part.demand))
        .sum();
    Witness {
        task: k,
        instant,
        demand: clamp(total + busy),
        supply: clamp(u128::from(cpus) * u128::from(instant)),
        parts,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The paper's iteration for one task, one addition at a time.
    fn by_iteration(others: &[(Task, Ns, Ns)], task: &Task, cpus: u64) -> Option<Ns> {
        let own = task.wcet;
        let mut x = own;
        while x <= task.deadline {
            let mut total = 0;
            for (other, response, most) in others {
                let reach = x + response - other.wcet;
                let jobs = reach / other.period;
                let rest = (reach - jobs * other.period).min(other.wcet);
                total += (jobs * other.wcet + rest).min(*most).min(x - own + 1);
            }
            let next = own + total / cpus;
            if next <= x {
                return Some(x);
            }
            x = next;
        }
        None
    }

    fn fp_by_iteration(tasks: &[Task], cpus: u64) -> Vec<Option<Ns>> {
        let mut above = vec![];
        let mut found = vec![];
        for task in tasks {
            let Some(response) = by_iteration(&above, task, cpus) else {
                break;
            };
            above.push((*task, response, Ns::MAX));
            found.push(Some(response));
        }
        found.resize(tasks.len(), None);
        found
    }

    fn edf_by_iteration(tasks: &[Task], cpus: u64) -> Vec<Option<Ns>> {
        let mut bounds: Vec<Ns> = tasks.iter().map(|task| task.deadline).collect();
        loop {
            let before = bounds.clone();
            let mut all = true;
            for (k, task) in tasks.iter().enumerate() {
                let others: Vec<(Task, Ns, Ns)> = (0..tasks.len())
                    .filter(|&i| i != k)
                    .map(|i| {
                        let (c, t) = (tasks[i].wcet, tasks[i].period);
                        let carried =
                            (task.deadline % t).saturating_sub(tasks[i].deadline - bounds[i]);
                        (tasks[i], bounds[i], task.deadline / t * c + carried.min(c))
                    })
                    .collect();
                match by_iteration(&others, task, cpus) {
                    Some(response) => bounds[k] = bounds[k].min(response),
                    None => all = false,
                }
            }
            if bounds == before {
                return bounds
                    .into_iter()
                    .map(|bound| all.then_some(bound))
                    .collect();
            }
        }
    }

    fn sets() -> impl Strategy<Value = Vec<Task>> {
        let task = (1u64..30, 1u64..40, 0u64..60)
            .prop_map(|(c, more, rest)| Task::new(c, c + more + rest).due(c + more));
        proptest::collection::vec(task, 1..8)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]
        #[test]
        fn the_walk_finds_what_the_iteration_finds(tasks in sets(), cpus in 1u32..5) {
            prop_assert_eq!(rta_bc_fp(&tasks, cpus).responses, fp_by_iteration(&tasks, cpus.into()));
            prop_assert_eq!(rta_bc_edf(&tasks, cpus).responses, edf_by_iteration(&tasks, cpus.into()));
        }

        #[test]
        fn it_shows_what_bcl_shows_and_no_more_than_limited_carry_in(tasks in sets(), cpus in 1u32..5) {
            let fp = rta_bc_fp(&tasks, cpus);
            let limited = super::super::rta_lc(&tasks, cpus);
            if super::super::bcl_fp(&tasks, cpus).is_schedulable() {
                prop_assert!(fp.verdict.is_schedulable());
            }
            for (ours, least) in fp.responses.iter().zip(&limited.responses) {
                if let Some(bound) = ours {
                    prop_assert!(least.is_some_and(|least| least <= *bound));
                }
            }
            if super::super::bcl_edf_with_slack(&tasks, cpus).is_schedulable() {
                prop_assert!(rta_bc_edf(&tasks, cpus).verdict.is_schedulable());
            }
        }

        #[test]
        fn a_witness_demands_more_than_there_is(tasks in sets(), cpus in 1u32..5) {
            for bounds in [rta_bc_fp(&tasks, cpus), rta_bc_edf(&tasks, cpus)] {
                if let Verdict::Unschedulable(witness) = bounds.verdict {
                    prop_assert!(witness.demand > witness.supply);
                    let sum: Ns = witness.parts.iter().map(|part| part.demand).sum();
                    prop_assert_eq!(sum, witness.demand);
                }
            }
        }
    }

    #[test]
    fn long_times_take_few_steps() {
        let second = 1_000_000_000;
        let above = Task::new(4 * second, 10 * second);
        let tasks = [above, above, Task::new(second, 10 * second)];
        let found = rta_bc_fp(&tasks, 2).responses;
        assert_eq!(found[2], Some(5 * second));
        assert!(rta_bc_edf(&tasks, 2).verdict.is_schedulable());
    }

    #[test]
    fn the_ends_of_the_range_do_not_overflow() {
        let long = Task::new(crate::MAX_NS, crate::MAX_NS);
        for cpus in [1, 2, u32::MAX] {
            rta_bc_fp(&[long; 3], cpus);
            rta_bc_edf(&[long; 3], cpus);
        }
        assert!(rta_bc_fp(&[long; 3], 3).verdict.is_schedulable());
        assert!(!rta_bc_edf(&[long; 3], 2).verdict.is_schedulable());
        assert!(rta_bc_edf(&[], 0).verdict.is_schedulable());
    }
}
