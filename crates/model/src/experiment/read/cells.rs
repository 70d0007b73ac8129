//! Reading the cells of a trial, and their own tasks.

use std::collections::HashSet;

use crate::experiment::OwnTask;
use crate::file::{Faults, Node, Value};
use crate::{
    Class, Counters, EngineKind, Experiment, Keep, Pacing, ProgramJobs, ProgramLoad, ReportedTask,
    TrialPlan, Work,
};

/// Keys that say which program does the jobs.
pub(super) const OF_PROGRAMS: [&str; 4] = ["program", "reports", "endless", "reported"];

/// Engines and own tasks of a trial's cells; the latter empty if no cell has one.
pub(super) fn cells(table: &Node<'_>, faults: &mut Faults<'_>) -> (Vec<EngineKind>, Vec<OwnTask>) {
    let items = table.any("cells").and_then(|cells| cells.items());
    let mut names = HashSet::new();
    let mut cell = |item: &Value<'_>| match item.table() {
        Some(own) => {
            let engine: EngineKind = own.some_text("engine")?.parse().ok()?;
            let own = self::own(&own, faults);
            if let Some(name) = own
                .name
                .as_ref()
                .filter(|name| !names.insert((*name).clone()))
            {
                let what = format!("this trial has two cells named `{name}`");
                faults.report_at(&item.place.key("name"), what, "give each a different name");
            }
            Some((engine, own))
        }
        None => Some((item.text()?.parse::<EngineKind>().ok()?, OwnTask::default())),
    };
    let cells = items.iter().flatten().filter_map(&mut cell);
    let (engines, own): (Vec<EngineKind>, Vec<OwnTask>) = cells.unzip();
    if table.says("copies") && !names.is_empty() {
        let what = "`copies` would give several cells the same name";
        faults.report(&table.place, &["copies"], what, "remove it, or the names");
    }
    let has_own = own.iter().any(|own| *own != OwnTask::default());
    if has_own && table.says("competitors") {
        let what = "in a task set, cells have the tasks of the set";
        faults.report(&table.place, &["cells"], what, "name engines only");
    }
    (engines, if has_own { own } else { Vec::new() })
}

fn own(table: &Node<'_>, faults: &mut Faults<'_>) -> OwnTask {
    let is_program = OF_PROGRAMS.iter().any(|key| table.says(key));
    let program = match is_program {
        true => program(table, faults),
        false => None,
    };
    let steps = table.count("steps");
    if is_program && steps.is_some() {
        let what = "a program has no steps";
        faults.report(&table.place, &["steps"], what, "remove one of the two");
    }
    OwnTask {
        name: table.some_text("name"),
        work: match steps {
            Some(steps) => Some(Work::Mac { steps }),
            None => program.as_ref().map(ProgramLoad::work),
        },
        program,
        period: table.time("period"),
        deadline: table.time("deadline"),
        jobs: table.count("jobs"),
        priority: table.count("priority").and_then(|n| u8::try_from(n).ok()),
    }
}

/// Own tasks of a trial that do not fit the rest of the experiment.
pub(super) fn own_fault(experiment: &Experiment, trial: &TrialPlan) -> Option<(String, String)> {
    let (workload, class) = (&experiment.workload, experiment.scheduling.class);
    let own = &trial.own;
    let is_endless = |work: Work| work == Work::Endless;
    let mixed = (own.iter())
        .any(|own| is_endless(own.work.unwrap_or(workload.work)) != is_endless(workload.work));
    let has_jobs = |own: &OwnTask| own.jobs.is_some() || own.deadline.is_some();
    let reports = |own: &OwnTask| (own.program.as_ref()).is_some_and(ProgramLoad::reports);
    let without = own.is_empty() || own.iter().any(|own| own.work.is_none());
    let (what, fix) = if workload.work == Work::Busy && !own.is_empty() {
        (
            "in a task set, cells have the tasks of the set",
            "name engines only",
        )
    } else if workload.work == Work::Timer && own.iter().any(|own| own.work.is_some()) {
        (
            "with kind \"timer\", whose jobs take no time, no cell can have its own work",
            "set `kind` of [workload] to \"mac\" or \"program\"",
        )
    } else if mixed {
        (
            "an endless program cannot be measured together with programs that end or report their jobs",
            "make all of them endless, or none",
        )
    } else if is_endless(workload.work) && own.iter().any(has_jobs) {
        (
            "an endless program has neither jobs nor a deadline",
            "remove them; `period` sets how long it runs in each round",
        )
    } else if class == Class::Other && own.iter().any(|own| own.priority.is_some()) {
        (
            "class \"other\" has no priority",
            "remove `priority`, or set class = \"fifo\"",
        )
    } else if workload.pacing == Pacing::Relative && own.iter().any(reports) {
        (
            "jobs that a program reports must be periodic",
            "set pacing = \"periodic\"",
        )
    } else if workload.work == Work::Program && workload.program.is_none() && without {
        (
            "a cell has no `program`, and [workload] names none",
            "add a line such as `program = [\"./app\"]` to [workload], or to each cell",
        )
    } else {
        return None;
    };
    Some((format!("trial `{}`: {what}", trial.name), fix.to_owned()))
}

/// Virtual machines of a trial that cannot do as the rest of the experiment asks: the record of a cell's jobs comes out of the
/// machine once it is complete, and no program goes into it.
pub(super) fn machine_fault(
    experiment: &Experiment,
    trial: &TrialPlan,
) -> Option<(String, String)> {
    if !trial.cells.iter().any(|engine| engine.is_machine()) {
        return None;
    }
    let works = || (trial.own.iter()).filter_map(|own| own.work);
    let fits = |work: Work| matches!(work, Work::Mac { .. } | Work::Timer | Work::Busy);
    let (what, fix) = if experiment.keep != Keep::Samples {
        ("keep every sample", "set record = \"samples\"")
    } else if experiment.counters != Counters::None {
        ("have no counters to read", "remove `counters`")
    } else if !works().chain([experiment.workload.work]).all(fits) {
        (
            "run no program",
            "set `kind` of [workload] to \"mac\", \"timer\" or \"taskset\"",
        )
    } else if experiment.scale.is_some() {
        ("are not for scale studies", "name another engine")
    } else if trial.isolate {
        ("are not kept alone on their cpu", "remove `isolate`")
    } else {
        return None;
    };
    Some((
        format!("trial `{}`: cells of engine `qemu` {what}", trial.name),
        fix.to_owned(),
    ))
}

/// The tasks whose jobs a program reports.
fn reported(table: &Node<'_>, jobs: ProgramJobs, faults: &mut Faults<'_>) -> Vec<ReportedTask> {
    if jobs != ProgramJobs::Reported && table.says("reported") {
        let what = "`reported` needs `reports = true`";
        faults.report(
            &table.place,
            &["reported"],
            what,
            "add it, or remove the line",
        );
    }
    let tasks: Vec<ReportedTask> = (table.tables("reported").iter())
        .filter_map(|task| {
            Some(ReportedTask {
                name: task.text("name"),
                period: task.time("period")?,
            })
        })
        .collect();
    let twice = (tasks.iter().enumerate())
        .find(|(at, task)| tasks[..*at].iter().any(|other| other.name == task.name));
    if let Some((_, task)) = twice {
        let what = format!("`reported` names `{}` twice", task.name);
        faults.report(&table.place, &["reported"], what, "remove one of them");
    }
    tasks
}

/// The program that a table names; `None` if it is not valid.
pub(super) fn program(table: &Node<'_>, faults: &mut Faults<'_>) -> Option<ProgramLoad> {
    let place = table.place.key("program");
    let jobs = match (table.boolean("reports"), table.boolean("endless")) {
        (false, false) => ProgramJobs::Executions,
        (true, false) => ProgramJobs::Reported,
        (false, true) => ProgramJobs::Endless,
        (true, true) => {
            let what = "a program that reports its jobs cannot be `endless`";
            faults.report(&table.place, &["endless"], what, "remove it, or `reports`");
            ProgramJobs::Reported
        }
    };
    let (what, fix) = match table.says("program") {
        true => match ProgramLoad::new(table.texts("program"), jobs) {
            Ok(program) => {
                let tasks = reported(table, jobs, faults);
                return Some(ProgramLoad { tasks, ..program });
            }
            Err(fault) => fault,
        },
        false => table.lacks("program", "[\"./app\"]"),
    };
    faults.report_at(&place, what, fix);
    faults.doubt(&place);
    None
}
