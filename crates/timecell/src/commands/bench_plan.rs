//! The text of a plan before it runs: the machine, the measurement, and `--dry-run`'s list of trials.

use bench::{Plan, PlannedTrial};
use model::{Class, Duration, Enforcer, Experiment, Pacing, ProgramLoad, Turns, Work};
use record::trial::HeldBy;
use report::grouped;

use crate::commands::bench_until;
use crate::commands::common::{host_line, not_measured, requirements};
use crate::progress::about;

/// The first two lines: the machine, and the measurement.
pub fn header(plan: &Plan) -> String {
    let mut text = format!(
        "{}plan    {}   {}about {}\n",
        host_line(),
        plan_line(&plan.experiment, plan.trials.len()),
        match plan.experiment.looks().len() {
            1 => "",
            _ => "at most ",
        },
        about(plan.expected_ns())
    );
    text.extend(bench_until::line(&plan.experiment, plan.expected_ns()));
    for limit in bench::ahead(plan) {
        text.push_str(&format!("limit   {limit}\n"));
    }
    text
}

fn plan_line(experiment: &Experiment, trials: usize) -> String {
    let workload = &experiment.workload;
    if let Some(tasks) = &experiment.tasks {
        let threads: usize = tasks.cells.iter().map(|cell| cell.tasks.len()).sum();
        return format!(
            "{trials} trials x {} rounds x {} of {threads} tasks in {} cells (class {})",
            experiment.rounds,
            tasks.duration,
            tasks.cells.len(),
            tasks.policy.name()
        );
    }
    let reserve = experiment.scale.as_ref().and_then(|scale| scale.reserve);
    let class = match experiment.scheduling.class {
        Class::Fifo { .. } if reserve == Some(Enforcer::Deadline) => {
            "DEADLINE, equal shares".to_owned()
        }
        Class::Fifo { priority } => format!("FIFO {priority}"),
        Class::Other => "OTHER, not real-time".to_owned(),
    };
    let pacing = match workload.pacing {
        Pacing::Periodic => "period",
        Pacing::Relative => "pause",
    };
    let work = match workload.work {
        Work::Mac { steps } => format!("mac, {} steps", grouped(steps)),
        Work::Timer => "timer".to_owned(),
        Work::Busy => "busy work".to_owned(),
        Work::Program | Work::Endless => {
            let program = workload.program.as_ref();
            program.map_or_else(|| "the programs of its cells".to_owned(), ProgramLoad::told)
        }
    };
    let turns = match experiment.turns {
        Some(turns) => format!(", in turns of {}", turn(turns, &experiment.periods())),
        None => String::new(),
    };
    let all = experiment.cpus();
    let cpus = format!(
        "{} {}",
        if all.len() == 1 { "cpu" } else { "cpus" },
        host::cpus::format_list(&all)
    );
    let jobs = match experiment.jobs() {
        (least, most) if least == most => grouped(most),
        (least, most) => format!("{} to {}", grouped(least), grouped(most)),
    };
    let periods: Vec<String> = (experiment.periods().iter())
        .map(ToString::to_string)
        .collect();
    if workload.work == Work::Endless {
        return format!(
            "{trials} trials x {} rounds x {} of {work} ({class}, {cpus})",
            experiment.rounds,
            periods.join(", "),
        );
    }
    let deadline = match workload.deadline {
        Some(deadline) => format!(", deadline {deadline}"),
        None => String::new(),
    };
    format!(
        "{trials} trials x {} rounds x {jobs} jobs of {work} ({pacing} {}{deadline}, {class}, {cpus}{turns})",
        experiment.rounds,
        periods.join(", "),
    )
}

/// Every trial with its cells, loads and length.
pub fn dry(plan: &Plan) -> String {
    let mut text = String::from("trials of each round, in this order\n");
    let named = plan.trials.iter().map(|trial| &trial.name);
    let absent = plan.not_measured.iter().map(|absent| &absent.trial);
    let width = named.chain(absent).map(String::len).max().unwrap_or(0);
    let width = width.max(16);
    for trial in &plan.trials {
        let cells: Vec<String> = (trial.cells.iter())
            .map(|(kind, cpu)| match plan.deadline() {
                true => format!("{kind} on any cpu"),
                false => format!("{kind} on cpu {cpu}"),
            })
            .collect();
        let loads: Vec<String> = (trial.loads.iter())
            .map(|load| format!("{} ({}, {})", load.plan.name, load.form, load.place()))
            .collect();
        let under = if loads.is_empty() {
            String::new()
        } else {
            format!(" under {}", loads.join(", "))
        };
        let own = if !trial.own.is_empty() {
            own_tasks(trial)
        } else if trial.workload == plan.experiment.workload {
            String::new()
        } else {
            let jobs = grouped(trial.workload.jobs);
            format!(", {jobs} jobs of {}", trial.workload.period)
        };
        let alone = if trial.isolate {
            ", cpus kept free of other work"
        } else {
            ""
        };
        let cells = if trial.tasks.is_empty() {
            condensed(&cells)
        } else {
            threads(trial)
        };
        text.push_str(&format!(
            "  {:<width$}  {cells}{under}{own}{alone}\n",
            trial.name
        ));
    }
    text.push_str(&not_measured(&plan.not_measured, width));
    text.push_str(&requirements(&plan.requirements));
    text.push_str(&format!(
        "\nshared memory for one trial {}, run directory up to {}\n",
        model::mib(plan.trial_bytes() + (1 << 20)),
        model::mib(plan.run_bytes() + (1 << 20))
    ));
    text
}

/// Every cell that has its own task, one per line.
fn own_tasks(trial: &PlannedTrial) -> String {
    let lines = trial
        .own
        .iter()
        .zip(&trial.cells)
        .map(|(own, (engine, _))| {
            let name = own.name.clone().unwrap_or_else(|| engine.to_string());
            format!(
                "\n    {name}  {}",
                study::plan::task(&own.workload, own.priority)
            )
        });
    lines.collect()
}

/// Every thread of a task set, one per line.
fn threads(trial: &PlannedTrial) -> String {
    let engine = trial.cells[0].0;
    let lines = trial.tasks.iter().map(|planned| {
        let task = &planned.task;
        format!(
            "\n    cell {} ({engine}, {})  {:<12}{} every {}, deadline {}, {}, cpu {}{}",
            planned.cell,
            planned.cell_name,
            task.name,
            task.wcet,
            task.period,
            task.deadline,
            planned.class,
            host::cpus::format_list(&planned.cpus),
            planned.held.map_or(String::new(), |by| held(&by))
        )
    });
    format!("{} threads{}", trial.tasks.len(), lines.collect::<String>())
}

/// The enforcer and reservation of a cell, after a comma.
fn held(by: &HeldBy) -> String {
    let time = |ns: u64| Duration::from_ns(i64::try_from(ns).unwrap_or(i64::MAX));
    format!(
        ", held by {} to {} every {}{}",
        by.held.enforcer.name(),
        time(by.held.budget_ns),
        time(by.held.period_ns),
        if by.given {
            ""
        } else {
            ", the least that is certain to suffice"
        }
    )
}

/// Equal neighbours merged, such as `3 x podman on cpu 1`.
fn condensed(cells: &[String]) -> String {
    cells
        .chunk_by(|a, b| a == b)
        .map(|same| match same.len() {
            1 => same[0].clone(),
            n => format!("{n} x {}", same[0]),
        })
        .collect::<Vec<_>>()
        .join(", ")
}

/// The length of a turn, which a long period extends.
fn turn(turns: Turns, periods: &[Duration]) -> String {
    match periods {
        [period] => {
            let jobs = turns.jobs(*period);
            let lasts = Duration::from_ns(period.ns().saturating_mul(i64::from(jobs)));
            match lasts > turns.length {
                true => format!("{jobs} jobs ({lasts})"),
                false => turns.length.to_string(),
            }
        }
        _ => turns.length.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_cells_are_condensed() {
        let cells = ["a", "a", "b"].map(str::to_owned);
        assert_eq!(condensed(&cells), "2 x a, b");
    }
}
