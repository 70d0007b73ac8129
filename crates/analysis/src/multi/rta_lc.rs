//! Response times under global fixed priorities, with few carry-in jobs.

use super::covered::{Extras, clamp, covered};
use super::walk::{MAX_WORK, Piece, capped, walk};
use crate::{Ns, Part, Task, Undecided, Verdict, Witness};

/// The result of [`rta_lc`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LcBounds {
    /// Whether every deadline is shown to hold.
    pub verdict: Verdict,
    /// Bounds on the response times in ns, in the order of the tasks; `None` from the first task that is not shown
    /// to hold its deadline, since those below rest on it.
    pub responses: Vec<Option<Ns>>,
}

/// Global fixed priority on `cpus` cpus with limited carry-in, tasks in order of priority, highest first.
///
/// Sufficient only; exact on one cpu. Guan, Stigge, Yi & Yu, "New response time bounds for fixed priority
/// multiprocessor scheduling" (RTSS 2009), RTA-LC for constrained deadlines: R is the least x with
/// `floor(Ω(x) / m) + C = x`, where at most m - 1 tasks carry work into the busy interval. Dominates
/// [`super::bcl_fp`]. Times in ns.
///
/// The least x is found by the paper's iteration and by walking the linear pieces of Ω, whichever goes farther, so that the number of steps depends on how many jobs fall
/// in the interval and not on how many nanoseconds.
///
/// # Undecided
/// Deadlines beyond the period, jitter or blocking; more than a million pieces for one task, or two hundred
/// million terms in all.
///
/// ```
/// use timecell_analysis::{Task, multi::rta_lc};
///
/// let tasks = [Task::new(2, 10), Task::new(3, 10), Task::new(4, 12)];
/// let bounds = rta_lc(&tasks, 2);
/// assert!(bounds.verdict.is_schedulable());
/// assert_eq!(bounds.responses, [Some(2), Some(3), Some(6)]);
/// ```
pub fn rta_lc(tasks: &[Task], cpus: u32) -> LcBounds {
    let mut bounds = LcBounds {
        verdict: Verdict::Schedulable,
        responses: vec![None; tasks.len()],
    };
    if let Err(verdict) = covered(tasks, cpus, Extras::None) {
        bounds.verdict = verdict;
        return bounds;
    }
    let mut above: Vec<Above> = Vec::with_capacity(tasks.len());
    let mut left = MAX_WORK;
    for (k, task) in tasks.iter().enumerate() {
        match response(&above, task, cpus, &mut left) {
            Ok(Some(response)) => {
                bounds.responses[k] = Some(response);
                above.push(Above {
                    wcet: task.wcet,
                    period: task.period,
                    response,
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

/// A task of higher priority, with C <= R <= T.
struct Above {
    wcet: Ns,
    period: Ns,
    response: Ns,
}

impl Above {
    /// W^NC of Guan et al.: work in an interval of `x` that starts with a release.
    fn without_carry_in(&self, x: Ns) -> Piece {
        let (whole, rest) = (x / self.period, x % self.period);
        let start = x - rest;
        let work = whole * self.wcet;
        if rest < self.wcet {
            Piece {
                value: work + rest,
                rises: true,
                until: start + self.wcet,
            }
        } else {
            Piece {
                value: work + self.wcet,
                rises: false,
                until: start + self.period,
            }
        }
    }

    /// W^CI: the same with a job carried in that ends at its response time.
    fn with_carry_in(&self, x: Ns) -> Piece {
        let Some(after) = x.checked_sub(self.wcet) else {
            // The bound is the whole carried-in job, even before it can have run: the cap on interference corrects it.
            return Piece {
                value: self.wcet,
                rises: false,
                until: self.wcet,
            };
        };
        let (whole, rest) = (after / self.period, after % self.period);
        let start = x - rest;
        let work = (whole + 1) * self.wcet;
        let quiet = self.period - self.response;
        if rest < quiet {
            Piece {
                value: work,
                rises: false,
                until: start + quiet,
            }
        } else if rest - quiet < self.wcet - 1 {
            Piece {
                value: work + (rest - quiet),
                rises: true,
                until: start + quiet + self.wcet - 1,
            }
        } else {
            Piece {
                value: work + self.wcet - 1,
                rises: false,
                until: start + self.period,
            }
        }
    }
}

/// Ω at x as (value, slope, next x where a piece may end).
fn omega(above: &[Above], x: Ns, own: Ns, carriers: usize) -> (u128, u128, Ns) {
    let (mut value, mut slope, mut until) = (0u128, 0i128, Ns::MAX);
    // (gain, change of slope): the greatest gains count; of equal ones the steeper, which is greatest further on. A
    // job carried in never does less work than none, so that no gain is negative.
    let mut gains: Vec<(Ns, i128)> = Vec::with_capacity(above.len());
    for task in above {
        let without = capped(task.without_carry_in(x), x, own);
        let with = capped(task.with_carry_in(x), x, own);
        value += u128::from(without.value);
        slope += i128::from(without.rises);
        until = until.min(without.until).min(with.until);
        gains.push((
            with.value.saturating_sub(without.value),
            i128::from(with.rises) - i128::from(without.rises),
        ));
    }
    gains.sort_unstable_by(|left, right| right.cmp(left));
    for (gain, steeper) in gains.into_iter().take(carriers) {
        if gain == 0 && steeper <= 0 {
            break;
        }
        value += u128::from(gain);
        slope += steeper;
    }
    (value, slope.max(0).unsigned_abs(), until)
}

fn response(
    above: &[Above],
    task: &Task,
    cpus: u32,
    left: &mut u64,
) -> Result<Option<Ns>, Undecided> {
    let carriers = cpus as usize - 1;
    walk(task, cpus, above.len(), left, |x| {
        omega(above, x, task.wcet, carriers)
    })
}

fn witness(above: &[Above], task: &Task, k: usize, cpus: u32) -> Witness {
    let instant = task.deadline;
    let own = task.wcet;
    let (work, _, _) = omega(above, instant, own, cpus as usize - 1);
    let busy = u128::from(cpus) * u128::from(own - 1) + 1;
    let mut parts: Vec<Part> = above
        .iter()
        .enumerate()
        .map(|(index, each)| {
            let piece = capped(each.with_carry_in(instant), instant, own);
            Part {
                task: index,
                jobs: piece.value.div_ceil(each.wcet),
                demand: piece.value,
            }
        })
        .collect();
    parts.push(Part {
        task: k,
        jobs: 1,
        demand: clamp(busy),
    });
    Witness {
        task: k,
        instant,
        demand: clamp(work + busy),
        supply: clamp(u128::from(cpus) * u128::from(instant)),
        parts,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The paper's iteration, one addition at a time.
    fn by_iteration(tasks: &[Task], cpus: u64) -> Vec<Option<Ns>> {
        let mut found: Vec<Option<Ns>> = vec![];
        for (k, task) in tasks.iter().enumerate() {
            let own = task.wcet;
            let mut x = own;
            let response = loop {
                if x > task.deadline {
                    break None;
                }
                let cap = x - own + 1;
                let mut gains = vec![];
                let mut total = 0;
                for (each, response) in tasks[..k].iter().zip(&found) {
                    let (c, t) = (each.wcet, each.period);
                    let without = (x / t * c + (x % t).min(c)).min(cap);
                    let after = x.saturating_sub(c);
                    let alpha = (after % t).saturating_sub(t - response.unwrap()).min(c - 1);
                    let with = (after / t * c + c + alpha).min(cap);
                    total += without;
                    gains.push(with.saturating_sub(without));
                }
                gains.sort_unstable();
                total += gains.iter().rev().take(cpus as usize - 1).sum::<u64>();
                let next = total / cpus + own;
                if next <= x {
                    break Some(x);
                }
                x = next;
            };
            found.push(response);
            if response.is_none() {
                found.resize(tasks.len(), None);
                break;
            }
        }
        found
    }

    fn sets() -> impl Strategy<Value = Vec<Task>> {
        let task = (1u64..40, 1u64..40, 0u64..60)
            .prop_map(|(c, more, rest)| Task::new(c, c + more + rest).due(c + more));
        proptest::collection::vec(task, 1..8)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]
        #[test]
        fn the_walk_finds_what_the_iteration_finds(tasks in sets(), cpus in 1u32..5) {
            prop_assert_eq!(rta_lc(&tasks, cpus).responses, by_iteration(&tasks, cpus.into()));
        }

        #[test]
        fn it_shows_what_bcl_shows(tasks in sets(), cpus in 1u32..5) {
            if super::super::bcl_fp(&tasks, cpus).is_schedulable() {
                prop_assert!(rta_lc(&tasks, cpus).verdict.is_schedulable());
            }
        }

        #[test]
        fn more_cpus_never_turn_yes_to_no(tasks in sets(), cpus in 1u32..5) {
            if rta_lc(&tasks, cpus).verdict.is_schedulable() {
                prop_assert!(rta_lc(&tasks, cpus + 1).verdict.is_schedulable());
            }
        }
    }

    #[test]
    fn long_times_take_few_steps() {
        let second = 1_000_000_000;
        let above = Task::new(4 * second, 10 * second);
        let tasks = [above, above, Task::new(second, 10 * second)];
        let bounds = rta_lc(&tasks, 2);
        assert_eq!(
            bounds.responses,
            [Some(4 * second), Some(4 * second), Some(5 * second)]
        );
    }

    #[test]
    fn an_interval_with_too_many_jobs_is_undecided() {
        let tasks = [
            Task::new(1, 2),
            Task::new(1, 2),
            Task::new(crate::MAX_NS / 2, crate::MAX_NS),
        ];
        let bounds = rta_lc(&tasks, 2);
        assert!(
            matches!(
                bounds.verdict,
                Verdict::Undecided(Undecided::TooManySteps { .. })
            ),
            "{:?}",
            bounds.verdict
        );
    }
}
