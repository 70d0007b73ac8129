//! The curve of a demand, and where it comes closest to the supply.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use analysis::inside::edf_demand;
use analysis::{Ns, Supply, Task};
use model::taskset::{Policy, TaskCell};

use super::MOST_POINTS;
use crate::drawn::{Mark, Touch};
use crate::judge::{CellSupply, task};

/// Maximum number of deadlines among which the tightest is searched for, and of steps along a busy window.
pub(super) const MOST_TRIED: usize = 1 << 16;

/// The demand shown in a picture.
pub(super) enum Demand {
    /// The first jobs of one task, and all more urgent work released before t.
    Fixed {
        higher: Vec<Task>,
        own: Task,
        jobs: u64,
    },
    /// All jobs released and due within t.
    Edf(Vec<Task>),
}

impl Demand {
    pub(super) fn of(cell: &TaskCell, subject: usize) -> Demand {
        if cell.policy == Policy::Edf {
            return Demand::Edf(cell.tasks.iter().map(task).collect());
        }
        let order = cell.by_urgency();
        let higher = order.iter().take_while(|&&place| place != subject);
        Demand::Fixed {
            higher: higher.map(|&place| task(&cell.tasks[place])).collect(),
            own: task(&cell.tasks[subject]),
            jobs: 1,
        }
    }

    /// The same with `many` jobs of the task itself.
    pub(super) fn with_jobs(mut self, many: u64) -> Demand {
        if let Demand::Fixed { jobs, .. } = &mut self {
            *jobs = many.max(1);
        }
        self
    }

    /// Demand just after `t`.
    pub(super) fn at(&self, t: Ns) -> Ns {
        match self {
            Demand::Edf(tasks) => {
                let blocking = tasks
                    .iter()
                    .filter(|task| task.deadline.saturating_sub(task.jitter) <= t);
                let blocking = blocking.map(|task| task.blocking).max().unwrap_or(0);
                edf_demand(tasks, t).saturating_add(blocking)
            }
            Demand::Fixed { higher, own, jobs } => {
                let own = own.wcet.saturating_mul(*jobs).saturating_add(own.blocking);
                higher.iter().fold(own, |sum, task| {
                    let jobs = t.saturating_add(task.jitter) / task.period.max(1) + 1;
                    sum.saturating_add(jobs.saturating_mul(task.wcet))
                })
            }
        }
    }

    /// When the last of the task's jobs must be done, ns after the start of its busy window, in which its first job was
    /// released after all of its jitter.
    pub(super) fn due(&self) -> Option<Ns> {
        match self {
            Demand::Edf(_) => None,
            Demand::Fixed { own, jobs, .. } => due(own, jobs - 1),
        }
    }

    /// The deciding point: the deadline with the smallest margin, or the job with this response time. Without a response time,
    /// the first late job. `None` if neither is among the first `tried`.
    pub(super) fn settle(
        self,
        supply: &CellSupply,
        response: Option<Ns>,
        tried: usize,
    ) -> (Demand, Option<Mark>) {
        match self {
            Demand::Edf(tasks) => {
                let mark = tightest(&tasks, supply, tried);
                (Demand::Edf(tasks), mark)
            }
            Demand::Fixed { .. } => self.follow(supply, response, tried),
        }
    }

    /// Follows the busy window from job to job (Lehoczky, "Fixed priority scheduling of periodic task sets with
    /// arbitrary deadlines", RTSS 1990).
    fn follow(
        mut self,
        supply: &CellSupply,
        response: Option<Ns>,
        tried: usize,
    ) -> (Demand, Option<Mark>) {
        let Demand::Fixed { own, .. } = &self else {
            return (self, None);
        };
        let own = *own;
        let mut t = 1;
        let mut job = 0;
        for _ in 0..tried {
            let Some(due) = due(&own, job) else { break };
            let work = self.at(t - 1);
            match supply.inverse(work) {
                Some(next) if next > t && next <= due => t = next,
                Some(next) if next <= due => {
                    let arrival = job.saturating_mul(own.period);
                    let taken = t.saturating_add(own.jitter).saturating_sub(arrival);
                    if response == Some(taken) {
                        let mark = Mark {
                            instant: t,
                            demand: work,
                            supply: supply.sbf(t),
                            touch: Touch::Met,
                        };
                        return (self, Some(mark));
                    }
                    if taken <= own.period {
                        break;
                    }
                    job += 1;
                    self = self.with_jobs(job + 1);
                }
                _ => {
                    let mark = Mark {
                        instant: due,
                        demand: self.at(due.saturating_sub(1)),
                        supply: supply.sbf(due),
                        touch: Touch::Doubt,
                    };
                    return (self, Some(mark));
                }
            }
        }
        (self.with_jobs(1), None)
    }

    /// Instants at which the demand can step, and the demand from there on. If there are too many to be seen, some of them,
    /// and `also`.
    pub(super) fn steps(&self, until: Ns, also: Option<Ns>) -> Vec<(Ns, Ns)> {
        let (tasks, edf) = match self {
            Demand::Edf(tasks) => (tasks, true),
            Demand::Fixed { higher, .. } => (higher, false),
        };
        let many = tasks.iter().fold(0u64, |sum, task| {
            sum.saturating_add(until / task.period.max(1) + 1)
        });
        let mut instants = vec![0];
        if many > MOST_POINTS as u64 {
            let step = (until / MOST_POINTS as u64).max(1);
            instants.extend((1..=MOST_POINTS as u64).map(|k| k.saturating_mul(step)));
            instants.extend(also);
        } else {
            for task in tasks {
                let first = if edf {
                    task.deadline.saturating_sub(task.jitter)
                } else {
                    task.period - task.jitter % task.period.max(1)
                };
                let later = std::iter::successors(Some(first), |t| t.checked_add(task.period));
                instants.extend(later.take_while(|&t| t <= until).take(MOST_POINTS));
            }
        }
        instants.retain(|&t| t <= until);
        instants.sort_unstable();
        instants.dedup();
        instants.into_iter().map(|t| (t, self.at(t))).collect()
    }

    /// The deadlines that count: that of the task's last job, or under EDF all of them as far as they can be distinguished.
    pub(super) fn deadlines(&self, until: Ns) -> Vec<Ns> {
        let Demand::Edf(tasks) = self else {
            return self.due().into_iter().collect();
        };
        let wide = (until / MOST_POINTS as u64).max(1);
        let mut seen = BTreeMap::new();
        for task in tasks {
            let stride = (wide / task.period.max(1)).max(1);
            let mut job = 0;
            while let Some(due) = due(task, job).filter(|&due| due <= until) {
                seen.entry(due / wide).or_insert(due);
                job += stride;
            }
            if seen.len() > MOST_POINTS {
                break;
            }
        }
        seen.into_values().collect()
    }
}

/// When a job must be done, ns after an instant at which the first was released after all of its jitter.
fn due(task: &Task, job: u64) -> Option<Ns> {
    let due = job.checked_mul(task.period)?.checked_add(task.deadline)?;
    Some(due.saturating_sub(task.jitter))
}

/// The first deadline with the smallest margin of supply over demand.
fn tightest(tasks: &[Task], supply: &CellSupply, tried: usize) -> Option<Mark> {
    let first = tasks.iter().enumerate();
    let mut coming: BinaryHeap<Reverse<(Ns, usize, u64)>> = first
        .filter_map(|(place, task)| Some(Reverse((due(task, 0)?, place, 0))))
        .collect();
    let (mut work, mut blocking): (Ns, Ns) = (0, 0);
    let mut least: Option<(i128, Mark)> = None;
    for _ in 0..tried.max(tasks.len()) {
        let Some(Reverse((instant, place, job))) = coming.pop() else {
            break;
        };
        let task = &tasks[place];
        work = work.saturating_add(task.wcet);
        blocking = blocking.max(task.blocking);
        if let Some(next) = due(task, job + 1) {
            coming.push(Reverse((next, place, job + 1)));
        }
        if coming
            .peek()
            .is_some_and(|Reverse((next, ..))| *next == instant)
        {
            continue;
        }
        let (demand, given) = (work.saturating_add(blocking), supply.sbf(instant));
        let spare = i128::from(given) - i128::from(demand);
        if least.as_ref().is_none_or(|(known, _)| spare < *known) {
            let touch = if spare < 0 {
                Touch::Doubt
            } else {
                Touch::Nearest
            };
            let mark = Mark {
                instant,
                demand,
                supply: given,
                touch,
            };
            least = Some((spare, mark));
        }
    }
    least.map(|(_, mark)| mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Ns = 1_000_000;

    #[test]
    fn the_tightest_deadline_is_where_the_demand_touches_the_supply() {
        let tasks = [
            Task::new(2 * MS, 6 * MS).due(4 * MS),
            Task::new(2 * MS, 8 * MS).due(5 * MS),
            Task::new(3 * MS, 9 * MS).due(7 * MS),
        ];
        let mark = tightest(&tasks, &CellSupply::Whole, MOST_TRIED).expect("a deadline");
        assert_eq!(
            (mark.instant, mark.demand, mark.supply),
            (7 * MS, 7 * MS, 7 * MS)
        );
        assert_eq!(mark.touch, Touch::Nearest);
    }

    #[test]
    fn a_later_job_is_found_by_its_response_time() {
        // Lehoczky's example: t2 = 62/100 below t1 = 26/70 takes longest, 118 ms, at its fifth job.
        let demand = |deadline: Ns| Demand::Fixed {
            higher: vec![Task::new(26 * MS, 70 * MS)],
            own: Task::new(62 * MS, 100 * MS).due(deadline),
            jobs: 1,
        };
        let (held, mark) = demand(120 * MS).settle(&CellSupply::Whole, Some(118 * MS), 99);
        let mark = mark.expect("a job");
        assert_eq!((mark.instant, mark.demand), (518 * MS, 518 * MS));
        assert_eq!(mark.touch, Touch::Met);
        assert_eq!(held.due(), Some(520 * MS));
        let (late, mark) = demand(117 * MS).settle(&CellSupply::Whole, None, 99);
        let mark = mark.expect("a job");
        assert_eq!(
            (mark.instant, mark.demand, mark.supply),
            (517 * MS, 518 * MS, 517 * MS)
        );
        assert_eq!((late.due(), mark.touch), (Some(517 * MS), Touch::Doubt));
    }

    #[test]
    fn jitter_brings_deadlines_forward_and_none_is_left_out() {
        let own = Task::new(MS, 12 * MS).due(5 * MS).jittered(MS);
        let fixed = Demand::Fixed {
            higher: Vec::new(),
            own,
            jobs: 1,
        };
        assert_eq!(fixed.deadlines(50 * MS), [4 * MS]);
        assert_eq!(
            Demand::Edf(vec![own]).deadlines(30 * MS),
            [4 * MS, 16 * MS, 28 * MS]
        );
        let many = Demand::Edf(vec![Task::new(1, 1_000)]).deadlines(3_000 * MS);
        assert!(many.len() <= MOST_POINTS + 1 && *many.last().expect("some") > 2_990 * MS);
    }

    #[test]
    fn many_tasks_take_no_more_points_than_one() {
        let tasks = vec![Task::new(1, 1_000_000); 1_000];
        let steps = Demand::Edf(tasks).steps(3_000 * MS, Some(7));
        assert!(steps.len() <= MOST_POINTS + 2 && steps.iter().any(|&(t, _)| t == 7));
    }
}
