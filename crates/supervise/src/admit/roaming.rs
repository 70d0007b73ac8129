//! Whether threads of SCHED_DEADLINE that may run on several cpus meet their deadlines.

use analysis::linux::DeadlineParams;
use analysis::multi::bcl_edf_with_slack;
use analysis::{Ns, Task, Verdict};

/// Whether threads of SCHED_DEADLINE that run on any of `cpus` cpus all have their runtimes by their deadlines, though each
/// may run a `tick` longer than its own before the kernel sees it.
///
/// No more threads than cpus: none ever waits for another. Else by global earliest deadline first (Bertogna, Cirinei and
/// Lipari, ECRTS 2005, with slacks). A thread's overdraw is taken off its next budget, so that all others together take at
/// most a tick each in any window beyond their runtimes, which counts as blocking.
pub(super) fn test(threads: &[DeadlineParams], cpus: usize, tick: Ns) -> Verdict {
    let alone = threads.len() <= cpus;
    let overrun = match alone {
        true => 0,
        false => tick.saturating_mul(threads.len() as Ns - 1),
    };
    let tasks: Vec<Task> = threads
        .iter()
        .map(|thread| thread.task().blocked(overrun))
        .collect();
    if alone && tasks.iter().all(|task| task.check().is_ok()) {
        return Verdict::Schedulable;
    }
    bcl_edf_with_slack(&tasks, u32::try_from(cpus).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Ns = 1_000_000;

    fn holds(threads: &[(Ns, Ns)], cpus: usize, tick: Ns) -> bool {
        let threads: Vec<DeadlineParams> = (threads.iter())
            .map(|&(runtime, period)| DeadlineParams::new(runtime * MS, period * MS))
            .collect();
        test(&threads, cpus, tick * MS).is_schedulable()
    }

    #[test]
    fn as_many_threads_as_cpus_do_not_meet() {
        assert!(holds(&[(1, 1), (9, 10)], 2, 4));
        assert!(!holds(&[(1, 1), (9, 10)], 1, 4));
        assert!(!holds(&[(11, 10)], 2, 4));
    }

    #[test]
    fn more_threads_wait_for_each_other_and_for_what_others_overdraw() {
        let three = [(10, 100), (10, 100), (10, 100)];
        assert!(holds(&three, 2, 4));
        // Each of the others may keep a cpu for a tick: 80 ms and 10 ms of its own do not fit twice.
        assert!(!holds(&three, 2, 45));
        assert!(!holds(&[(60, 100), (60, 100), (90, 100)], 2, 0));
    }
}
