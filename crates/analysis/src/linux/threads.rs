//! Tasks as threads of SCHED_DEADLINE on one cpu: the runtime that each is given, and whether all hold together.

use crate::inside::{Inside, edf};
use crate::reservation::Dedicated;
use crate::{Ns, Task};

use super::DeadlineParams;

/// Of ten parts of its runtime, those that a thread of SCHED_DEADLINE is trusted to have for its own work: the kernel bills
/// interrupts to it too.
const OWN_WORK: (Ns, Ns) = (9, 10);

/// The thread of a task, whose runtime is more than its work by the kernel's further bill, in whole us.
///
/// ```
/// use timecell_analysis::{Task, linux::thread_of};
///
/// let thread = thread_of(&Task::new(9_000_000, 100_000_000).due(50_000_000));
/// assert_eq!((thread.runtime, thread.deadline, thread.period), (10_000_000, 50_000_000, 100_000_000));
/// ```
pub fn thread_of(task: &Task) -> DeadlineParams {
    let work = u128::from(task.wcet) * u128::from(OWN_WORK.1);
    let runtime = work.div_ceil(u128::from(OWN_WORK.0)).div_ceil(1_000) * 1_000;
    DeadlineParams {
        runtime: Ns::try_from(runtime).unwrap_or(Ns::MAX),
        deadline: task.deadline.min(task.period),
        period: task.period,
    }
}

/// The most own work that a job of a thread of SCHED_DEADLINE can do within so much `runtime`, ns: the rest may be billed to
/// it for others. [`thread_of`] turned around, rounded down.
///
/// ```
/// assert_eq!(timecell_analysis::linux::own_work(10_000_000), 9_000_000);
/// ```
pub fn own_work(runtime: Ns) -> Ns {
    let work = u128::from(runtime) * u128::from(OWN_WORK.0) / u128::from(OWN_WORK.1);
    Ns::try_from(work).unwrap_or(Ns::MAX)
}

/// Whether the threads of one cpu meet their deadlines, each given its runtime by earliest deadline first, where the kernel
/// looks at runtimes every `tick` ns only: each of the others may overrun its runtime by a tick before it is stopped. 0 where
/// runtimes end by a timer (HRTICK_DL).
///
/// ```
/// use timecell_analysis::{Task, linux::{thread_of, threads_hold}};
///
/// let ms = 1_000_000;
/// let threads = [1, 2].map(|_| thread_of(&Task::new(4 * ms, 10 * ms)));
/// assert!(threads_hold(&threads, 0).verdict.is_schedulable());
/// assert!(!threads_hold(&threads, 4 * ms).verdict.is_schedulable());
/// ```
pub fn threads_hold(threads: &[DeadlineParams], tick: Ns) -> Inside {
    let overruns = tick.saturating_mul((threads.len() as Ns).saturating_sub(1));
    let tasks: Vec<Task> = (threads.iter())
        .map(|thread| thread.task().blocked(overruns))
        .collect();
    edf(&tasks, &Dedicated)
}
