//! Periodic threads of busy work in one cell: their samples files, their arguments, and the kept results.

use std::path::PathBuf;

use host::sched::Class;
use probe::{DeadlineArgs, ProbeArgs, SetArgs, TaskArgs, prepare_samples};
use record::run::Run;

use crate::launch::Stage;

/// One thread.
#[derive(Debug, Clone)]
pub(crate) struct Thread<'a> {
    /// Its name, which its samples file has too.
    pub name: &'a str,
    pub class: Class,
    pub period_ns: u64,
    /// Activations.
    pub jobs: u32,
    /// How long a job computes, ns.
    pub work_ns: i64,
    /// Whether a job checks its own cpu time so that it never takes more.
    pub bounded: bool,
}

/// Activations of a period whose deadlines are within a time; one at least.
pub(crate) fn jobs_within(length_ns: i64, period_ns: u64) -> u32 {
    let jobs = length_ns.unsigned_abs() / period_ns.max(1);
    u32::try_from(jobs).unwrap_or(u32::MAX).max(1)
}

/// Makes room for the threads' samples.
pub(crate) fn prepare(stage: &Stage, threads: &[Thread<'_>]) -> Result<(), String> {
    for thread in threads {
        let path = samples(stage, thread);
        prepare_samples(&path, thread.jobs.into())
            .map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

/// The arguments of the cell whose threads have the slots from `first` on; `cpus` are those that SCHED_DEADLINE threads may use, the
/// others are pinned to `cpu`.
pub(crate) fn words(threads: &[Thread<'_>], first: usize, cpu: u32, cpus: &[u32]) -> SetArgs {
    let task = |(place, thread): (usize, &Thread<'_>)| {
        let (fifo, deadline) = match thread.class.clone() {
            Class::Fifo { priority } => (Some(priority), None),
            Class::Deadline {
                runtime_ns,
                deadline_ns,
                period_ns,
            } => (
                None,
                Some(DeadlineArgs {
                    runtime_ns,
                    deadline_ns,
                    period_ns,
                    cpus: cpus.to_vec(),
                }),
            ),
            _ => (None, None),
        };
        TaskArgs {
            probe: ProbeArgs {
                control: "/cell/control".into(),
                slot: first + place,
                samples: Some(format!("/cell/{}.samples", thread.name).into()),
                period_ns: i64::try_from(thread.period_ns).unwrap_or(i64::MAX),
                jobs: thread.jobs,
                fifo,
                deadline,
                cpu,
                ..ProbeArgs::default()
            },
            wcet_ns: thread.work_ns,
            bounded: thread.bounded,
        }
    };
    SetArgs {
        cpu,
        tasks: threads.iter().enumerate().map(task).collect(),
    }
}

/// Moves the samples of a good trial's threads into the run; none stay in shared memory either way.
pub(crate) fn keep(
    stage: &Stage,
    threads: &[Thread<'_>],
    run: &Run,
    trial: u32,
    good: bool,
) -> Result<(), String> {
    let mut kept = Ok(());
    for thread in threads {
        let path = samples(stage, thread);
        if good {
            let this = run.keep_task(trial, thread.name, &path);
            kept = kept.and(this.map_err(|error| error.to_string()));
        }
        let _ = std::fs::remove_file(&path);
    }
    kept
}

fn samples(stage: &Stage, thread: &Thread<'_>) -> PathBuf {
    stage.shared.join(format!("{}.samples", thread.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_end_within_the_time_and_there_is_always_one() {
        let ms = 1_000_000;
        assert_eq!(jobs_within(4_000 * ms, 17 * ms.unsigned_abs()), 235);
        assert_eq!(jobs_within(ms, 997 * ms.unsigned_abs()), 1);
        assert_eq!(jobs_within(ms, 0), 1_000_000);
    }

    #[test]
    fn each_thread_has_its_slot_and_its_class() {
        let thread = |name, class| Thread {
            name,
            class,
            period_ns: 17_000_000,
            jobs: 3,
            work_ns: 2_700_000,
            bounded: true,
        };
        let deadline = Class::Deadline {
            runtime_ns: 1,
            deadline_ns: 2,
            period_ns: 3,
        };
        let threads = [
            thread("a", Class::Fifo { priority: 80 }),
            thread("b", deadline),
        ];
        let set = words(&threads, 4, 1, &[0, 1]);
        assert_eq!(set.tasks[1].probe.slot, 5);
        assert_eq!(
            (set.tasks[0].probe.fifo, set.tasks[1].probe.fifo),
            (Some(80), None)
        );
        let deadline = set.tasks[1].probe.deadline.as_ref().unwrap();
        assert_eq!(deadline.cpus, [0, 1]);
        assert_eq!(SetArgs::from_words(&set.to_words()[2..]), Ok(set.clone()));
    }
}
