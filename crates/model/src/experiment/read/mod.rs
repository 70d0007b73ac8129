//! From a surveyed experiment file to [`Experiment`], with the faults that only show when its parts are taken together. The
//! top level is here; trials, loads, task sets and scale studies have their own files.

mod cells;
mod loads;
mod scale;
mod tasks;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_of_keys;
mod trials;

use cells::{OF_PROGRAMS, program};

use super::keys::{CLASSES, KEPT, WORKS};
use super::turns::ten_thousandths;
use super::work::RUN_OF_ENDLESS;
use super::{
    Class, Counters, ExecutionStage, Experiment, Keep, Pacing, ProgramLoad, SCHEMA, Scheduling,
    TaskLoad, TrialPlan, Turns, Work, Workload, held, keys,
};
use crate::file::{self, Faults, Format, Node, Table};
use crate::{Duration, InputErrors, Machine, Threshold};

/// The format of the file, for its reader.
pub(crate) const FORMAT: Format = Format {
    name: "experiment",
    schema: SCHEMA,
    most_bytes: Experiment::FILE_BYTES,
    top: &keys::TOP,
    narrower: keys::narrower,
};

/// Keys of `[workload]` that only one kind of it has.
const OF_JOBS: [&str; 5] = ["jobs", "period", "pacing", "steps", "deadline"];
const OF_SETS: [&str; 6] = [
    "policy",
    "margin",
    "duration",
    "tasks",
    "task",
    "reservation",
];
impl Experiment {
    /// The longest file, bytes.
    pub const FILE_BYTES: usize = 256 << 20;

    /// Reads an experiment file; `name` is its name in messages, usually its path.
    ///
    /// ```
    /// use timecell_model::Experiment;
    ///
    /// let text = r#"
    ///     schema = 1
    ///     name = "mine"
    ///     [workload]
    ///     kind = "mac"
    ///     peroid = "1ms"
    ///     [[trial]]
    ///     cells = ["podmna"]
    /// "#;
    /// let faults = Experiment::parse("mine.toml", text).unwrap_err();
    /// assert_eq!(faults.iter().count(), 2);
    /// assert!(faults.to_string().starts_with("mine.toml:6: unknown key `peroid` in [workload]; did you"));
    /// ```
    ///
    /// # Errors
    /// Every fault, each with its line and how to fix it. A text that is not TOML has only its faults as TOML.
    pub fn parse(name: &str, text: &str) -> Result<Experiment, InputErrors> {
        file::read(&FORMAT, name, text, experiment).map(|(experiment, _)| experiment)
    }

    /// The JSON Schema (draft 2020-12) of the experiment file.
    pub fn schema() -> serde_json::Value {
        file::schema(&FORMAT)
    }
}

fn experiment(top: &Node<'_>, faults: &mut Faults<'_>) -> Experiment {
    let keep = keep(top, faults);
    let (workload, tasks) = workload(top, keep, faults);
    let scale = scale::scale(top, keep, workload.work, faults);
    let trials = match &scale {
        Some(scale) => scale.trials(workload.jobs),
        None => trials::trials(top, faults),
    };
    let experiment = Experiment {
        name: top.text("name"),
        question: top.text("question"),
        rounds: top.count("rounds").unwrap_or(1),
        keep,
        scheduling: scheduling(top, faults),
        baseline: (top.some_text("baseline"))
            .or_else(|| Some(trials.first()?.name.clone()))
            .unwrap_or_default(),
        rootless_user: top.some_text("rootless_user"),
        machine: machine(top),
        counters: counters(top),
        turns: turns(top, keep, &workload, faults),
        until: until(top, faults),
        scale,
        workload,
        tasks,
        trials,
    };
    together(top, &experiment, faults);
    experiment
}

/// The table `machine` of the file, or of a trial.
fn machine(table: &Node<'_>) -> Machine {
    table
        .table("machine")
        .map(|own| Machine::of(&own))
        .unwrap_or_default()
}

/// The meaning of the file's tables together.
fn together(top: &Node<'_>, experiment: &Experiment, faults: &mut Faults<'_>) {
    let workload = top.place.key("workload");
    let is_known = faults.is_clear(&workload) && faults.is_clear(&workload.key("kind"));
    let is_set = experiment.tasks.is_some();
    if is_known && is_set {
        let what = "the cells of a task set cannot take turns";
        if experiment.turns.is_some() {
            faults.report(&top.place, &["turns"], what, "remove [turns]");
        }
        let what = "the jobs of a task set are recorded one by one";
        if experiment.keep != Keep::Samples {
            faults.report(&top.place, &["record"], what, "remove the line");
        }
    }
    let written = match experiment.scale {
        Some(_) => 0,
        None => top.tables("trial").len(),
    };
    let place = |at: usize| match at {
        at if at < written => top.place.key("trial").item(at),
        _ if experiment.scale.is_some() => top.place.key("scale"),
        _ => top.place.key("matrix"),
    };
    if is_known && faults.is_whole(&workload) && faults.is_whole(&top.place.key("scheduling")) {
        for (at, trial) in experiment.trials.iter().enumerate() {
            let fault = cells::own_fault(experiment, trial)
                .or_else(|| cells::machine_fault(experiment, trial))
                .or_else(|| experiment.stage_fault(trial))
                .or_else(|| set_fault(experiment, trial))
                .or_else(|| held::fault(experiment.tasks.as_ref()?, trial));
            if let Some((what, fix)) = fault.filter(|_| faults.is_whole(&place(at))) {
                faults.report_at(&place(at), what, fix);
                // Trials that one table makes have their fault in common.
                if at >= written {
                    break;
                }
            }
        }
    }
    let names: Vec<&str> = experiment.trials.iter().map(|t| t.name.as_str()).collect();
    let is_whole = ["trial", "matrix", "scale"].map(|key| faults.is_whole(&top.place.key(key)));
    if !names.is_empty() && !names.contains(&experiment.baseline.as_str()) && is_whole == [true; 3]
    {
        let what = format!("the baseline `{}` is not a trial", experiment.baseline);
        let fix = format!("the trials are {}", names.join(", "));
        faults.report(&top.place, &["baseline"], what, fix);
    }
}

/// Settings of a trial that only a task set has, or that a task set cannot have.
fn set_fault(experiment: &Experiment, trial: &TrialPlan) -> Option<(String, String)> {
    let name = &trial.name;
    let fault = |what: String, fix: &str| Some((what, fix.to_owned()));
    match experiment.tasks {
        Some(_) if trial.cells.len() > 1 || trial.period.is_some() || trial.jobs.is_some() => {
            fault(
                format!("trial `{name}` has its own cells, period or jobs"),
                "with a task set, name one engine; cells and periods come from the set",
            )
        }
        None if trial.competitors > 0 => fault(
            format!("trial `{name}` has `competitors`, which only a task set has"),
            "set kind = \"taskset\", or use a load",
        ),
        None if trial.reserve.is_some() || !trial.parts.is_empty() => fault(
            format!("trial `{name}` has `reserve` or `parts`, which only a task set has"),
            "set kind = \"taskset\", or remove `reserve` and `parts`",
        ),
        _ => None,
    }
}

fn keep(top: &Node<'_>, faults: &mut Faults<'_>) -> Keep {
    let histograms = top.choice("record", &KEPT) == Some(true);
    let interval = top.time("interval");
    if interval.is_some() && !histograms {
        faults.report(
            &top.place,
            &["interval", "record"],
            "only histograms have an interval",
            "add `record = \"histogram\"`, or remove the line",
        );
    }
    match (histograms, interval) {
        (_, Some(interval)) => Keep::Histograms { interval },
        (true, None) => Keep::MINUTES,
        (false, None) => Keep::Samples,
    }
}

fn workload(top: &Node<'_>, keep: Keep, faults: &mut Faults<'_>) -> (Workload, Option<TaskLoad>) {
    let table = top.below("workload");
    let Some(kind) = table.choice("kind", &WORKS) else {
        let unknown = Workload {
            work: Work::Timer,
            jobs: 1,
            period: Duration::from_ns(1_000_000),
            pacing: Pacing::Periodic,
            deadline: None,
            program: None,
            stage: ExecutionStage::InBand,
        };
        return (unknown, None);
    };
    let is_set = kind == Work::Busy;
    let mut refuse = |keys: &[&str], whose: &str, fix: &str| {
        for key in keys.iter().filter(|key| table.says(key)) {
            let what = format!("`{key}` has no meaning for {whose}");
            faults.report(&table.place, &[key], what, fix);
        }
    };
    let name = format!("kind \"{}\"", kind.name());
    if is_set {
        let whose = format!("{name}, whose tasks have their own");
        refuse(&OF_JOBS, &whose, "remove the line");
    } else {
        let whose = format!("{name}, which is not a task set");
        refuse(&OF_SETS, &whose, "remove the line");
    }
    if kind != Work::Program {
        let fix = "remove the line, or set kind = \"program\"";
        refuse(&OF_PROGRAMS, &name, fix);
    }
    if is_set {
        let tasks = tasks::task_load(&table, faults);
        return (tasks.workload(), Some(tasks));
    }
    let program = match kind {
        // Without one, each cell has its own.
        Work::Program if OF_PROGRAMS.iter().any(|key| table.says(key)) => program(&table, faults),
        _ => None,
    };
    let work = match (&program, kind) {
        (Some(program), _) => program.work(),
        (None, Work::Mac { .. }) => Work::Mac {
            steps: table.count("steps").unwrap_or(100_000),
        },
        (None, kind) => kind,
    };
    if !matches!(kind, Work::Mac { .. }) && table.says("steps") {
        let what = format!("a `{}` job has no steps", kind.name());
        faults.report(&table.place, &["steps"], what, "remove the line");
    }
    let is_endless = work == Work::Endless;
    if is_endless {
        for key in ["jobs", "pacing", "deadline"] {
            if table.says(key) {
                let what = format!("`{key}` has no meaning for an endless program");
                let fix = "remove the line; `period` is how long it runs in each round";
                faults.report(&table.place, &[key], what, fix);
            }
        }
        if keep != Keep::Samples {
            let what = "an endless program cannot be recorded as histograms";
            faults.report(&top.place, &["record"], what, "remove the line");
        }
    }
    let pacing = table
        .choice("pacing", &Pacing::NAMES)
        .unwrap_or(Pacing::Periodic);
    let reports = (program.as_ref()).is_some_and(ProgramLoad::reports);
    if reports && pacing == Pacing::Relative {
        let what = "jobs that a program reports must be periodic";
        faults.report(&table.place, &["pacing"], what, "remove the line");
    }
    let usual = if is_endless {
        RUN_OF_ENDLESS
    } else {
        1_000_000
    };
    let jobs = table.count("jobs");
    let workload = Workload {
        work,
        jobs: jobs.filter(|_| !is_endless).unwrap_or(1),
        period: table.time("period").unwrap_or(Duration::from_ns(usual)),
        pacing,
        deadline: table.time("deadline"),
        program,
        stage: stage(&table).unwrap_or_default(),
    };
    (workload, None)
}

fn stage(table: &Node<'_>) -> Option<ExecutionStage> {
    table.choice("stage", &ExecutionStage::NAMES)
}

fn scheduling(top: &Node<'_>, faults: &mut Faults<'_>) -> Scheduling {
    let table = top.below("scheduling");
    let is_other = table.choice("class", &CLASSES) == Some(true);
    if is_other && table.says("priority") {
        faults.report(
            &table.place,
            &["priority", "class"],
            "class \"other\" has no priority",
            "remove the line or set class = \"fifo\"",
        );
    }
    let priority = table.count("priority").and_then(|p| u8::try_from(p).ok());
    Scheduling {
        class: match is_other {
            true => Class::Other,
            false => Class::Fifo {
                priority: priority.unwrap_or(80),
            },
        },
        cpus: table.counts("cpus"),
    }
}

fn counters(top: &Node<'_>) -> Counters {
    let value = top.any("counters");
    let text = value.as_ref().and_then(|value| value.text());
    match (value.and_then(|value| value.boolean()), text) {
        (Some(true), _) => Counters::WhereCheap,
        (_, Some("window")) => Counters::Windows,
        (_, Some("activation")) => Counters::Activations,
        _ => Counters::None,
    }
}

/// The settings of `[turns]`; `None` if there are none.
fn turns(
    top: &Node<'_>,
    keep: Keep,
    workload: &Workload,
    faults: &mut Faults<'_>,
) -> Option<Turns> {
    let table = top.table("turns")?;
    for (met, what, fix) in [
        (
            keep == Keep::Samples,
            "turns are compared job by job",
            "remove `record`, or [turns]",
        ),
        (
            workload.pacing == Pacing::Periodic,
            "turns need periodic jobs",
            "set pacing = \"periodic\", or remove [turns]",
        ),
        (
            workload.work != Work::Endless,
            "an endless program cannot take turns",
            "remove [turns]",
        ),
        (
            !top.says("scale"),
            "the trials of a scale study cannot take turns",
            "remove [turns]",
        ),
    ] {
        if !met {
            faults.report_at(&table.place, what, fix);
        }
    }
    let decide = table.number("decide");
    Some(Turns {
        length: table.time_or_zero("length"),
        settle: table.count("settle").unwrap_or_default(),
        catch_up: table.count("catch_up").unwrap_or_default(),
        decide: decide.and_then(|share| ten_thousandths(share).ok()),
    })
}

/// The conditions that `until` names.
fn until(top: &Node<'_>, faults: &mut Faults<'_>) -> Vec<Threshold> {
    let mut conditions = Vec::new();
    for (at, text) in top.texts("until").iter().enumerate() {
        match text.parse() {
            Ok(condition) => conditions.push(condition),
            Err(error) => {
                let what = format!("`{}`: {error}", text.escape_debug());
                faults.report_at(&top.place.key("until").item(at), what, "");
            }
        }
    }
    let decides = top.table("turns").is_some_and(|turns| turns.says("decide"));
    for (other, is_there) in [
        ("[scale]", top.says("scale")),
        ("`decide` in [turns]", decides),
    ] {
        if is_there && top.says("until") {
            faults.report(
                &top.place,
                &["until"],
                format!("`until` cannot be combined with {other}"),
                "remove one of the two",
            );
        }
    }
    conditions
}
