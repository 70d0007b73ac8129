//! The recurrence of one task behind those before it.

use std::cmp::Ordering;

use crate::budget::Budget;
use crate::{Ns, Part, Task, Undecided, Witness, utilization};

use super::Response;

/// One task, its sources of delay, and how its window is computed: the general recurrence, of which the preemptive one is
/// the case `tail = 0`.
pub(super) struct Level<'a> {
    pub(super) task: &'a Task,
    /// The tasks of higher priority, in any order.
    pub(super) higher: &'a [Task],
    /// All blocking: the task's own and that of sections of lower tasks.
    pub(super) blocking: Ns,
    /// Work at the end of a job that cannot be preempted, but for the first nanosecond of it.
    pub(super) tail: Ns,
}

/// A job that misses its deadline.
pub(super) struct Late {
    /// The job's index in the busy period.
    job: u64,
}

/// Steps to find the first late job of an overload.
const FIRST_LATE: u64 = 1 << 20;

/// The findings of a level's analysis.
pub(super) struct Found {
    pub(super) response: Response,
    /// The first late job, if one was found.
    pub(super) late: Option<Late>,
    /// The window of the first job: a start for the next level.
    pub(super) first_window: Option<Ns>,
}

impl Level<'_> {
    /// Work that must be done before the `job`-th job has only its tail left, of the work released in a window of `t`.
    fn demand(&self, job: u64, t: Ns) -> Result<u128, Undecided> {
        let own = (u128::from(job) + 1) * u128::from(self.task.wcet);
        let mut sum = u128::from(self.blocking) + own - u128::from(self.tail);
        for task in self.higher {
            sum = sum
                .checked_add(released(task, t)?)
                .ok_or(Undecided::Overflow)?;
        }
        Ok(sum)
    }

    /// The least window of the `job`-th job, or `None` if it is longer than `limit`. `start` is a lower bound.
    fn window(
        &self,
        job: u64,
        start: Ns,
        limit: u128,
        budget: &mut Budget,
    ) -> Result<Option<Ns>, Undecided> {
        let mut window = start.max(1);
        loop {
            if u128::from(window) > limit {
                return Ok(None);
            }
            budget.spend(self.higher.len() + 1)?;
            let next = self.demand(job, window)?;
            if next <= u128::from(window) {
                return Ok(Some(window));
            }
            if next > limit {
                return Ok(None);
            }
            window = Ns::try_from(next).map_err(|_| Undecided::Overflow)?;
        }
    }

    /// The longest time for which this and higher tasks keep the cpu busy. Only where it is known to exist.
    fn busy_period(&self, budget: &mut Budget) -> Result<Ns, Undecided> {
        let mut busy = 1;
        loop {
            budget.spend(self.higher.len() + 1)?;
            let mut sum = u128::from(self.blocking);
            for task in self.higher.iter().chain([self.task]) {
                sum = sum
                    .checked_add(released(task, busy)?)
                    .ok_or(Undecided::Overflow)?;
            }
            if sum <= u128::from(busy) {
                return Ok(busy);
            }
            busy = Ns::try_from(sum).map_err(|_| Undecided::Overflow)?;
        }
    }

    fn members(&self) -> impl Iterator<Item = &Task> + Clone {
        self.higher.iter().chain([self.task])
    }

    /// How the utilisation of this level compares with 1.
    pub(super) fn load(&self) -> Ordering {
        utilization::compare_fractions_with_one(self.members().map(|task| (task.wcet, task.period)))
    }

    /// The worst response over all jobs of the busy period. `start` is a lower bound of the first window. With
    /// `first_miss` it ends at the first late job, whose bound is then not the worst.
    pub(super) fn analyse(
        &self,
        load: Ordering,
        start: Ns,
        first_miss: bool,
        budget: &mut Budget,
    ) -> Found {
        let mut late = None;
        let mut first_window = None;
        let worst = if load == Ordering::Greater && first_miss {
            // Some job is late; the first one is the best witness if it comes soon.
            let mut part = budget.part(FIRST_LATE);
            let worst = self.worst(load, start, true, &mut part, &mut late, &mut first_window);
            budget.join(part);
            if worst.is_err() {
                late = self.late_under_overload(budget);
            }
            worst
        } else {
            self.worst(
                load,
                start,
                first_miss,
                budget,
                &mut late,
                &mut first_window,
            )
        };
        let response = match (worst, &late) {
            (Ok(Some(worst)), None) => Response::Meets(worst),
            (Ok(worst), Some(_)) => Response::Misses(worst),
            // Some job must be late, whether or not it was reached.
            (Ok(None), None) => Response::Misses(None),
            (Err(_), Some(_)) => Response::Misses(None),
            (Err(why), None) => Response::Undecided(why),
        };
        Found {
            response,
            late,
            first_window,
        }
    }

    /// A late job at a utilisation above 1: looked for after ever longer times.
    fn late_under_overload(&self, budget: &mut Budget) -> Option<Late> {
        let task = self.task;
        // Share of the cpu that higher tasks leave, in units of 2^-64, rounded up.
        let taken: u128 = self
            .higher
            .iter()
            .map(|task| (u128::from(task.wcet) << 64) / u128::from(task.period))
            .sum();
        let left = (1u128 << 64).checked_sub(taken).filter(|&left| left > 0)?;
        (0..=62).find_map(|bit| {
            let job = (1u64 << bit) / task.period;
            let due = u128::from(job) * u128::from(task.period) + u128::from(task.deadline);
            let limit = due.checked_sub(u128::from(task.jitter) + u128::from(self.tail))?;
            let own = (u128::from(job) + 1)
                .checked_mul(u128::from(task.wcet))?
                .checked_sub(u128::from(self.tail))?;
            // Higher tasks take at least their share: a window near the least, for few steps from there.
            if own >> 63 > 0 {
                return None;
            }
            let start = Ns::try_from((own << 64) / left).unwrap_or(Ns::MAX);
            match self.window(job, start, limit, budget) {
                Ok(None) => Some(Late { job }),
                _ => None,
            }
        })
    }

    /// The worst response, or `None` if there is no bound or the search ended at a miss.
    fn worst(
        &self,
        load: Ordering,
        start: Ns,
        first_miss: bool,
        budget: &mut Budget,
        late: &mut Option<Late>,
        first_window: &mut Option<Ns>,
    ) -> Result<Option<Ns>, Undecided> {
        let task = self.task;
        if load == Ordering::Greater && !first_miss {
            *late = Some(Late { job: 0 });
            return Ok(None);
        }
        // At full load, blocking or jitter leaves a backlog that never drains; the windows then repeat after one
        // hyperperiod, and its jobs are all that need to be looked at.
        let endless = load == Ordering::Equal
            && (self.blocking > 0 || self.members().any(|task| task.jitter > 0));
        let jobs = if endless {
            let members: Vec<Task> = self.members().copied().collect();
            utilization::hyperperiod(&members).map(|hyperperiod| hyperperiod / task.period)
        } else {
            None
        };
        let busy = if self.tail > 0 && load != Ordering::Greater && !endless {
            Some(self.busy_period(budget)?)
        } else {
            None
        };
        let jitter = u128::from(task.jitter);
        let mut worst = 0u128;
        let mut start = start;
        for job in 0.. {
            let arrival = u128::from(job) * u128::from(task.period);
            let latest =
                (arrival + u128::from(task.deadline)).checked_sub(jitter + u128::from(self.tail));
            let limit = if first_miss {
                latest.unwrap_or(0)
            } else {
                u128::MAX
            };
            let Some(window) = self.window(job, start, limit, budget)? else {
                *late = Some(Late { job });
                return Ok(None);
            };
            first_window.get_or_insert(window);
            let finish = u128::from(window) + u128::from(self.tail);
            if latest.is_none_or(|latest| u128::from(window) > latest) {
                late.get_or_insert(Late { job });
                if first_miss {
                    return Ok(None);
                }
            }
            worst = worst.max((finish + jitter).saturating_sub(arrival));
            let next_release = (arrival + u128::from(task.period)).saturating_sub(jitter);
            let done = match busy {
                Some(busy) => next_release >= u128::from(busy),
                None => self.tail == 0 && finish <= next_release,
            };
            if done || jobs.is_some_and(|jobs| job + 1 >= jobs) {
                return Ns::try_from(worst)
                    .map(Some)
                    .map_err(|_| Undecided::Overflow);
            }
            start = window.checked_add(task.wcet).ok_or(Undecided::Overflow)?;
        }
        Ok(None)
    }

    /// Why the job is late: the demand in the longest window that would still meet its deadline.
    pub(super) fn witness(&self, index: usize, late: &Late) -> Option<Witness> {
        let task = self.task;
        let due = u128::from(late.job) * u128::from(task.period) + u128::from(task.deadline);
        let instant = due.saturating_sub(u128::from(task.jitter) + u128::from(self.tail));
        let instant = Ns::try_from(instant).ok()?;
        let demand = self.demand(late.job, instant).ok()?;
        let jobs = late.job + 1;
        let own = u128::from(jobs) * u128::from(task.wcet) - u128::from(self.tail);
        let mut parts: Vec<Part> = self
            .higher
            .iter()
            .enumerate()
            .filter_map(|(index, task)| {
                let demand = released(task, instant).ok()?;
                Some(Part {
                    task: index,
                    jobs: Ns::try_from(demand / u128::from(task.wcet)).ok()?,
                    demand: saturate(demand),
                })
            })
            .filter(|part| part.jobs > 0)
            .collect();
        parts.push(Part {
            task: index,
            jobs,
            demand: saturate(own),
        });
        Some(Witness {
            task: index,
            instant,
            demand: saturate(demand),
            supply: instant,
            parts,
        })
    }
}

/// Work of a task released in a window of `t`, the first release delayed by all of its jitter.
fn released(task: &Task, t: Ns) -> Result<u128, Undecided> {
    if t == 0 {
        return Ok(0);
    }
    let span = t.checked_add(task.jitter).ok_or(Undecided::Overflow)?;
    Ok(u128::from(span.div_ceil(task.period)) * u128::from(task.wcet))
}

pub(super) fn saturate(value: u128) -> Ns {
    Ns::try_from(value).unwrap_or(Ns::MAX)
}
