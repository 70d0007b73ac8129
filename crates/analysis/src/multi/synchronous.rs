//! Running a set from the synchronous arrival until a job is late.

use serde::{Deserialize, Serialize};

use super::Inside;
use super::covered::{Extras, covered};
use crate::{Ns, Part, Task, Witness};

/// A job that is not done by its deadline, all times in ns since all tasks arrived at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LateJob {
    /// Index of its task.
    pub task: usize,
    /// Which of the task's jobs it is, counted from 1.
    pub job: u64,
    /// When it arrives.
    pub arrival: Ns,
    /// When it is due.
    pub due: Ns,
    /// Its execution time.
    pub wcet: Ns,
    /// The part of it that was done when it is due.
    pub done: Ns,
}

impl LateJob {
    /// The same as a witness: the job alone is its demand, and the part done is the supply.
    pub fn witness(&self) -> Witness {
        Witness {
            task: self.task,
            instant: self.due,
            demand: self.wcet,
            supply: self.done,
            parts: vec![Part {
                task: self.task,
                jobs: 1,
                demand: self.wcet,
            }],
        }
    }
}

/// Each task's job that is there, if any.
struct Active {
    arrival: Ns,
    due: Ns,
    job: u64,
    left: Ns,
}

/// The first job that misses its deadline when all tasks arrive at once and then as often as they may, each job for its
/// whole wcet, under global preemptive scheduling on `cpus` cpus; tasks in order of priority, highest first, which also
/// breaks ties of deadlines under EDF.
///
/// That run is legal for sporadic tasks, so that a miss in it is a proof. None is no proof of the contrary: on several cpus
/// it need not be the worst one (Dhall & Liu 1978 for a counterexample; Davis & Burns, "A survey of hard real-time
/// scheduling for multiprocessor systems", ACM Computing Surveys 43(4), 2011, section 2.3). Looked at until the run
/// repeats or `work` steps of a task are spent. Deadlines at most the periods and no blocking, else `None`; times in ns.
///
/// ```
/// use timecell_analysis::{Task, multi::{Inside, late_in_synchronous_run}};
///
/// // Two light tasks in front of a heavy one on two cpus: it starts too late, though 1.3 of 2 cpus are used.
/// let tasks = [Task::new(2, 10), Task::new(2, 10), Task::new(10, 11)];
/// let late = late_in_synchronous_run(&tasks, 2, Inside::GlobalEdf, 10_000).unwrap();
/// assert_eq!((late.task, late.due, late.wcet, late.done), (2, 11, 10, 9));
/// ```
pub fn late_in_synchronous_run(
    tasks: &[Task],
    cpus: u32,
    policy: Inside,
    work: u64,
) -> Option<LateJob> {
    let blocked = tasks.iter().any(|task| task.blocking > 0);
    if blocked || covered(tasks, cpus, Extras::JitterAndBlocking).is_err() {
        return None;
    }
    let mut jobs: Vec<Active> = tasks
        .iter()
        .map(|task| Active {
            arrival: 0,
            due: task.deadline,
            job: 1,
            left: task.wcet,
        })
        .collect();
    let mut now: Ns = 0;
    let mut ready: Vec<usize> = Vec::with_capacity(tasks.len());
    let each = tasks.len().max(1) as u64;
    for _ in 0..work / each {
        ready.clear();
        ready.extend((0..tasks.len()).filter(|&i| jobs[i].left > 0 && jobs[i].arrival <= now));
        if policy == Inside::GlobalEdf {
            ready.sort_by_key(|&i| jobs[i].due);
        }
        let running = &ready[..ready.len().min(cpus as usize)];
        let done = running.iter().map(|&i| now + jobs[i].left).min();
        let due = ready.iter().map(|&i| jobs[i].due).min();
        let arrival = jobs
            .iter()
            .map(|job| job.arrival)
            .filter(|&at| at > now)
            .min();
        let next = [done, due, arrival].into_iter().flatten().min()?;
        for &i in running {
            jobs[i].left -= next - now;
        }
        now = next;
        if let Some(&task) = ready
            .iter()
            .find(|&&i| jobs[i].left > 0 && jobs[i].due <= now)
        {
            let (job, wcet) = (&jobs[task], tasks[task].wcet);
            return Some(LateJob {
                task,
                job: job.job,
                arrival: job.arrival,
                due: job.due,
                wcet,
                done: wcet - job.left,
            });
        }
        for (job, task) in jobs.iter_mut().zip(tasks).filter(|(job, _)| job.left == 0) {
            // The next one; it is not ready before it arrives.
            job.arrival = job.arrival.checked_add(task.period)?;
            job.due = job.arrival.checked_add(task.deadline)?;
            job.job += 1;
            job.left = task.wcet;
        }
        // Everything arrives at once again: from here on the run repeats.
        if jobs.iter().all(|job| job.arrival == now) {
            return None;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::multi::{bcl_fp, gfb, rta_bc_edf, rta_lc};
    use crate::{edf, fp};
    use proptest::prelude::*;

    const WORK: u64 = 1 << 20;

    fn sets() -> impl Strategy<Value = Vec<Task>> {
        prop::collection::vec((1u64..6, 0u64..6, 0u64..4), 1..6).prop_map(|sets| {
            sets.into_iter()
                .map(|(c, more, rest)| Task::new(c, c + more + rest).due(c + more))
                .collect()
        })
    }

    #[test]
    fn what_it_does_not_cover_proves_nothing() {
        let late = |task: Task| late_in_synchronous_run(&[task, task], 1, Inside::GlobalEdf, WORK);
        assert!(late(Task::new(3, 5)).is_some());
        assert_eq!(late(Task::new(3, 5).due(7)), None);
        assert_eq!(late(Task::new(3, 5).blocked(1)), None);
        assert_eq!(
            late_in_synchronous_run(&[], 1, Inside::GlobalEdf, WORK),
            None
        );
        let tasks = [Task::new(3, 5), Task::new(3, 5)];
        assert_eq!(
            late_in_synchronous_run(&tasks, 1, Inside::GlobalEdf, 0),
            None
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        /// On one cpu the synchronous run is the worst one, and the exact tests agree with it.
        #[test]
        fn on_one_cpu_it_is_exact(tasks in sets()) {
            let edf = late_in_synchronous_run(&tasks, 1, Inside::GlobalEdf, WORK);
            prop_assert_eq!(edf.is_none(), edf::verdict(&tasks).is_schedulable(), "{:?}", edf);
            let fixed = late_in_synchronous_run(&tasks, 1, Inside::GlobalFixedPriority, WORK);
            prop_assert_eq!(fixed.is_none(), fp::verdict(&tasks).is_schedulable(), "{:?}", fixed);
        }

        /// Nothing that a test shows to hold misses, and every miss is short of its work.
        #[test]
        fn it_never_contradicts_a_test(tasks in sets(), cpus in 1u32..4) {
            let edf = late_in_synchronous_run(&tasks, cpus, Inside::GlobalEdf, WORK);
            let shown = gfb(&tasks, cpus).is_schedulable() || rta_bc_edf(&tasks, cpus).verdict.is_schedulable();
            prop_assert!(!(shown && edf.is_some()), "{:?}", edf);
            let fixed = late_in_synchronous_run(&tasks, cpus, Inside::GlobalFixedPriority, WORK);
            let shown = bcl_fp(&tasks, cpus).is_schedulable() || rta_lc(&tasks, cpus).verdict.is_schedulable();
            prop_assert!(!(shown && fixed.is_some()), "{:?}", fixed);
            for late in [edf, fixed].into_iter().flatten() {
                prop_assert!(late.done < late.wcet && late.due == late.arrival + tasks[late.task].deadline);
            }
        }
    }
}
