//! The experiment in one line.

use model::{Class, Duration, Experiment, Pacing, ProgramLoad, Work, Workload};
use text::words::{count, plural};

/// Such as `5 trials x 3 rounds x 5,000 jobs of mac (100,000 steps), period 1ms on an absolute grid, FIFO 80, cpu 1`.
pub fn line(plan: &Experiment) -> String {
    let load = &plan.workload;
    if let Some(tasks) = &plan.tasks {
        let threads = tasks
            .cells
            .iter()
            .map(|cell| cell.tasks.len())
            .sum::<usize>();
        return format!(
            "{} x {} x {} of a set of {} in {}, threads of class {}",
            plural(plan.trials.len() as u64, "trial"),
            plural(plan.rounds.into(), "round"),
            tasks.duration,
            plural(threads as u64, "task"),
            plural(tasks.cells.len() as u64, "cell"),
            tasks.policy.name()
        );
    }
    let work = work(load);
    if load.work == Work::Endless {
        return format!(
            "{} x {} x {} of {work}, {}",
            plural(plan.trials.len() as u64, "trial"),
            plural(plan.rounds.into(), "round"),
            joined(&plan.periods()),
            class(plan.scheduling.class),
        );
    }
    let reports = (load.program.as_ref()).is_some_and(ProgramLoad::reports);
    let pacing = match load.pacing {
        Pacing::Periodic if reports => "as it releases them",
        Pacing::Periodic if plan.turns.is_some() => "on the grid of turns",
        Pacing::Periodic => "on an absolute grid",
        Pacing::Relative => "after the end of the job before",
    };
    let cpus = match plan.cpus().as_slice() {
        [] => "cpu chosen on the machine".to_owned(),
        [one] => format!("cpu {one}"),
        many => format!("cpus {}", list(many)),
    };
    let jobs = match plan.jobs() {
        (least, most) if least == most => plural(most.into(), "job"),
        (least, most) => format!("{} to {}", count(least.into()), plural(most.into(), "job")),
    };
    let deadline = match load.deadline {
        Some(deadline) => format!(", deadline {deadline}"),
        None => String::new(),
    };
    format!(
        "{} x {} x {jobs} of {work}, {} {pacing}{deadline}, {}, {cpus}",
        plural(plan.trials.len() as u64, "trial"),
        plural(plan.rounds.into(), "round"),
        periods(&plan.periods()),
        class(plan.scheduling.class),
    )
}

/// `period 1ms`, or `periods 100us, 1ms`.
fn periods(periods: &[Duration]) -> String {
    let word = match periods.len() {
        1 => "period",
        _ => "periods",
    };
    format!("{word} {}", joined(periods))
}

fn joined(times: &[Duration]) -> String {
    let texts: Vec<String> = times.iter().map(ToString::to_string).collect();
    texts.join(", ")
}

/// `mac (100,000 steps)`.
pub fn work(workload: &Workload) -> String {
    match workload.work {
        Work::Mac { steps } => format!("mac ({} steps)", count(steps.into())),
        Work::Timer => "timer (wake-up only)".to_owned(),
        Work::Busy => "busy work".to_owned(),
        Work::Program | Work::Endless => {
            let program = workload.program.as_ref();
            program.map_or_else(|| "the programs of its cells".to_owned(), ProgramLoad::told)
        }
    }
}

/// The task of one cell, such as `./app (each job an execution), period 1ms, deadline 800us, 500 jobs, FIFO 90`.
pub fn task(task: &Workload, priority: Option<u8>) -> String {
    let priority = priority.map(|priority| format!(", FIFO {priority}"));
    if task.work == Work::Endless {
        return format!(
            "{}, for {}{}",
            work(task),
            task.period,
            priority.unwrap_or_default()
        );
    }
    let deadline = (task.deadline).map(|deadline| format!(", deadline {deadline}"));
    format!(
        "{}, period {}{}, {}{}",
        work(task),
        task.period,
        deadline.unwrap_or_default(),
        plural(task.jobs.into(), "job"),
        priority.unwrap_or_default()
    )
}

/// `FIFO 80` or `OTHER`.
fn class(class: Class) -> String {
    match class {
        Class::Fifo { priority } => format!("FIFO {priority}"),
        Class::Other => "OTHER (best effort)".to_owned(),
    }
}

/// Numbers separated by commas.
pub fn list(numbers: &[u32]) -> String {
    let texts: Vec<String> = numbers.iter().map(u32::to_string).collect();
    texts.join(", ")
}
