//! The experiment file: TOML to [`Experiment`] and back.

use std::fmt::Write as _;

use toml::de::DeTable;

use crate::reader::{Source, Table, nearest};
use crate::{
    Class, Counters, Duration, Experiment, InputError, Keep, Limits, Pacing, SCHEMA, Scheduling,
    TaskLoad, Work, Workload, loads, own, program, scale_parse, task_held, task_parse, trials,
    turns, until,
};

const TOP: [&str; 16] = [
    "schema",
    "name",
    "question",
    "rounds",
    "baseline",
    "rootless_user",
    "counters",
    "record",
    "interval",
    "workload",
    "scheduling",
    "trial",
    "matrix",
    "scale",
    "turns",
    "until",
];
/// Keys of `[workload]` beside those that only one kind of it has.
const OF_MOST: [&str; 6] = ["kind", "jobs", "period", "pacing", "steps", "deadline"];
/// How long an endless program runs in each round, ns.
pub(crate) const RUN_OF_ENDLESS: i64 = 500_000_000;
const SCHEDULING: [&str; 3] = ["class", "priority", "cpus"];

impl Experiment {
    /// Reads an experiment file; `name` is what messages call it, usually its path.
    ///
    /// # Errors
    /// The first fault, with its line and what would be right.
    pub fn parse(name: &str, text: &str) -> Result<Experiment, InputError> {
        let source = Source { name, text };
        let document = DeTable::parse(text).map_err(|error| {
            let offset = error.span().map_or(0, |span| span.start);
            let message = error.message().replace('\n', ", ");
            source.error(offset, format!("not TOML: {message}"), "")
        })?;
        let top = Table::new(source, "the top level", 0, document.get_ref(), &TOP)?;
        schema(&top)?;
        let name = top
            .text("name")?
            .ok_or_else(|| top.missing("name", "\"mine\""))?;
        if !is_name(name) {
            return Err(top.fault(
                "name",
                format!("the name `{name}` cannot be part of a directory name"),
                "use 1 to 64 letters, digits, `-` and `_`",
            ));
        }
        let keep = keep(&top)?;
        let (workload, tasks) = workload(&top, keep)?;
        let scale = scale_parse::scale(&top, keep, workload.work)?;
        let turns = turns::turns(&top, keep, &workload)?;
        let trials = match &scale {
            Some(scale) => scale.trials(workload.jobs),
            None => trials::trials(&top, keep)?,
        };
        let scheduling = scheduling(&top)?;
        own::check(&top, &workload, scheduling.class, &trials)?;
        if tasks.is_some() && turns.is_some() {
            return Err(top.fault(
                "turns",
                "the cells of a task set run all the time",
                "remove [turns]",
            ));
        }
        if tasks.is_some() && keep != Keep::Samples {
            return Err(top.fault(
                "record",
                "a task set's jobs are kept one by one",
                "remove the line",
            ));
        }
        if let Some(trial) = trials.iter().find(|t| t.competitors > 0)
            && tasks.is_none()
        {
            return Err(top.fault(
                "workload",
                format!(
                    "only a task set has competitors, as trial `{}` asks",
                    trial.name
                ),
                "set kind = \"taskset\", or use a load",
            ));
        }
        if let Some(trial) = trials.iter().find(|t| {
            tasks.is_some() && (t.cells.len() > 1 || t.period.is_some() || t.jobs.is_some())
        }) {
            return Err(top.fault(
                "trial",
                format!(
                    "trial `{}` has cells, a period or jobs of its own",
                    trial.name
                ),
                "with a task set a trial names one engine, and the set has the cells and periods",
            ));
        }
        task_held::check(&top, tasks.as_ref(), &trials)?;
        let baseline = top.text("baseline")?.unwrap_or(&trials[0].name).to_owned();
        if !trials.iter().any(|trial| trial.name == baseline) {
            let names: Vec<&str> = trials.iter().map(|t| t.name.as_str()).collect();
            return Err(top.fault(
                "baseline",
                format!("the baseline `{baseline}` is no trial"),
                format!("the trials are {}", names.join(", ")),
            ));
        }
        let rootless_user = top.text("rootless_user")?.map(str::to_owned);
        if rootless_user.as_deref().is_some_and(|user| !is_name(user)) {
            return Err(top.fault("rootless_user", "`rootless_user` is no user name", ""));
        }
        Ok(Experiment {
            name: name.to_owned(),
            question: top.text("question")?.unwrap_or_default().to_owned(),
            rounds: small(top.integer("rounds", &Limits::ROUNDS)?, 3),
            workload,
            keep,
            tasks,
            scheduling,
            baseline,
            rootless_user,
            counters: Counters::of(&top)?,
            scale,
            turns,
            until: until::until(&top)?,
            trials,
        })
    }

    /// Writes the experiment as a file that [`Experiment::parse`] reads back to the same value.
    pub fn to_toml(&self) -> String {
        let mut out = String::new();
        let _ = writeln!(out, "schema = {SCHEMA}");
        let _ = writeln!(out, "name = {}", quoted(&self.name));
        let _ = writeln!(out, "question = {}", quoted(&self.question));
        let _ = writeln!(out, "rounds = {}", self.rounds);
        let _ = writeln!(out, "baseline = {}", quoted(&self.baseline));
        if let Some(user) = &self.rootless_user {
            let _ = writeln!(out, "rootless_user = {}", quoted(user));
        }
        if let Keep::Histograms { interval } = self.keep {
            let _ = writeln!(out, "record = \"histogram\"\ninterval = \"{interval}\"");
        }
        if !self.until.is_empty() {
            let conditions: Vec<String> = self.until.iter().map(|text| quoted(text)).collect();
            let _ = writeln!(out, "until = [{}]", conditions.join(", "));
        }
        if let Some(counters) = self.counters.written() {
            let _ = writeln!(out, "counters = {counters}");
        }
        let workload = &self.workload;
        let _ = writeln!(out, "\n[workload]\nkind = \"{}\"", workload.work.name());
        if let Work::Mac { steps } = workload.work {
            let _ = writeln!(out, "steps = {steps}");
        }
        if let Some(program) = &workload.program {
            program::write(&mut out, program);
        }
        if let Some(tasks) = &self.tasks {
            task_parse::write(&mut out, tasks);
        } else {
            let is_endless = workload.work == Work::Endless;
            if !is_endless {
                let _ = writeln!(out, "jobs = {}", workload.jobs);
            }
            let _ = writeln!(out, "period = \"{}\"", workload.period);
            let pacing = match workload.pacing {
                Pacing::Periodic => "periodic",
                Pacing::Relative => "relative",
            };
            if !is_endless {
                let _ = writeln!(out, "pacing = \"{pacing}\"");
            }
            if let Some(deadline) = workload.deadline {
                let _ = writeln!(out, "deadline = \"{deadline}\"");
            }
        }
        let _ = match self.scheduling.class {
            Class::Fifo { priority } => writeln!(
                out,
                "\n[scheduling]\nclass = \"fifo\"\npriority = {priority}"
            ),
            Class::Other => writeln!(out, "\n[scheduling]\nclass = \"other\""),
        };
        let _ = writeln!(out, "cpus = {:?}", self.scheduling.cpus);
        if let Some(scale) = &self.scale {
            // The trials follow from it.
            scale_parse::write(&mut out, scale);
            return out;
        }
        if let Some(turns) = self.turns {
            turns::write(&mut out, turns);
        }
        for trial in &self.trials {
            let cells = trial.cells.iter().enumerate();
            let cells: Vec<String> = cells
                .map(|(place, engine)| own::to_toml(*engine, trial.own.get(place)))
                .collect();
            let _ = writeln!(
                out,
                "\n[[trial]]\nname = {}\ncells = [{}]",
                quoted(&trial.name),
                cells.join(", ")
            );
            if !trial.loads.is_empty() {
                let loads: Vec<String> = trial.loads.iter().map(loads::to_toml).collect();
                let _ = writeln!(out, "loads = [{}]", loads.join(", "));
            }
            if let Some(period) = trial.period {
                let _ = writeln!(out, "period = \"{period}\"");
            }
            if let Some(jobs) = trial.jobs {
                let _ = writeln!(out, "jobs = {jobs}");
            }
            if trial.isolate {
                let _ = writeln!(out, "isolate = true");
            }
            if trial.competitors > 0 {
                let share = f64::from(trial.competitors) / 1000.0;
                let _ = writeln!(out, "competitors = {share:?}");
            }
            task_held::write_trial(&mut out, trial);
            if !trial.cpus.is_empty() {
                let _ = writeln!(out, "cpus = {:?}", trial.cpus);
            }
            if trial.per_cpu {
                let _ = writeln!(out, "per_cpu = true");
            }
        }
        out
    }
}

pub(crate) fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

pub(crate) fn is_name(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}

pub(crate) fn small(value: Option<i64>, default: u32) -> u32 {
    value.map_or(default, |n| u32::try_from(n).unwrap_or(u32::MAX))
}

fn schema(top: &Table<'_>) -> Result<(), InputError> {
    let schema = top
        .integer("schema", &(1..=i64::MAX))?
        .ok_or_else(|| top.missing("schema", &SCHEMA.to_string()))?;
    if schema > SCHEMA {
        return Err(top.fault(
            "schema",
            format!("schema {schema} is newer than this timecell, which reads up to {SCHEMA}"),
            "use a newer timecell",
        ));
    }
    Ok(())
}

pub(crate) fn choice<T: Copy>(
    table: &Table<'_>,
    key: &str,
    choices: &[(&str, T)],
) -> Result<Option<T>, InputError> {
    let Some(text) = table.text(key)? else {
        return Ok(None);
    };
    let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
    match choices.iter().find(|(name, _)| *name == text) {
        Some((_, value)) => Ok(Some(*value)),
        None => {
            let near = nearest(text, &names)
                .map(|name| format!("did you mean `{name}`? "))
                .unwrap_or_default();
            Err(table.fault(
                key,
                format!("unknown {key} `{text}`"),
                format!("{near}it is one of {}", names.join(", ")),
            ))
        }
    }
}

/// A period inside its limits.
pub(crate) fn period_of(table: &Table<'_>, key: &str) -> Result<Option<Duration>, InputError> {
    match table.duration(key)? {
        Some(period) if !Limits::PERIOD_NS.contains(&period.ns()) => {
            Err(table.fault(key, format!("`{key}` is {period}"), "it must be 10us to 1h"))
        }
        period => Ok(period),
    }
}

fn keep(top: &Table<'_>) -> Result<Keep, InputError> {
    let histograms = choice(top, "record", &[("samples", false), ("histogram", true)])?;
    let Some(interval) = top.duration("interval")? else {
        return Ok(match histograms {
            Some(true) => Keep::MINUTES,
            _ => Keep::Samples,
        });
    };
    if histograms != Some(true) {
        return Err(top.fault(
            "interval",
            "only histograms have an interval".to_owned(),
            "add `record = \"histogram\"`, or remove the line",
        ));
    }
    if !Limits::INTERVAL_NS.contains(&interval.ns()) {
        return Err(top.fault(
            "interval",
            format!("`interval` is {interval}"),
            "it must be 1s to 1h",
        ));
    }
    Ok(Keep::Histograms { interval })
}

fn workload(top: &Table<'_>, keep: Keep) -> Result<(Workload, Option<TaskLoad>), InputError> {
    let keys = [&OF_MOST[..], &task_parse::KEYS, &program::KEYS].concat();
    let table = top
        .table("workload", &keys)?
        .ok_or_else(|| top.missing("workload", "{ kind = \"mac\" }"))?;
    let kinds = [
        ("mac", Work::Mac { steps: 0 }),
        ("timer", Work::Timer),
        ("taskset", Work::Busy),
        ("program", Work::Program),
    ];
    let kind = choice(&table, "kind", &kinds)?.ok_or_else(|| table.missing("kind", "\"mac\""))?;
    let (of_others, whose) = if kind == Work::Busy {
        (
            &["jobs", "period", "pacing", "steps", "deadline"][..],
            "whose tasks have their own",
        )
    } else {
        (&task_parse::KEYS[..], "which is no task set")
    };
    if let Some(key) = of_others.iter().find(|key| table.has(key)) {
        return Err(table.fault(
            key,
            format!("`{key}` says nothing of kind \"{}\", {whose}", kind.name()),
            "remove the line",
        ));
    }
    if kind == Work::Busy {
        let tasks = task_parse::task_load(&table)?;
        return Ok((tasks.workload(), Some(tasks)));
    }
    if kind != Work::Program
        && let Some(key) = program::KEYS.iter().find(|key| table.has(key))
    {
        return Err(table.fault(
            key,
            format!("`{key}` says nothing of kind \"{}\"", kind.name()),
            "remove the line, or set kind = \"program\"",
        ));
    }
    let program = match kind {
        // Without one, each cell has its own.
        Work::Program if program::KEYS.iter().any(|key| table.has(key)) => {
            Some(program::program(&table)?)
        }
        _ => None,
    };
    let steps = table.integer("steps", &Limits::STEPS)?;
    let is_mac = matches!(kind, Work::Mac { .. });
    if !is_mac && steps.is_some() {
        return Err(table.fault(
            "steps",
            format!("a `{}` job has no steps", kind.name()),
            "remove the line",
        ));
    }
    let work = program.as_ref().map_or(kind, program::ProgramLoad::work);
    let is_endless = work == Work::Endless;
    let of_jobs = ["jobs", "pacing", "deadline"];
    if let Some(key) = of_jobs.iter().find(|key| is_endless && table.has(key)) {
        return Err(table.fault(
            key,
            format!("`{key}` says nothing of a program that is endless"),
            "remove the line; `period` is how long it runs in each round",
        ));
    }
    if is_endless && keep != Keep::Samples {
        let what = "what is measured of an endless program is no histogram";
        return Err(top.fault("record", what, "remove the line"));
    }
    let usual = if is_endless {
        RUN_OF_ENDLESS
    } else {
        1_000_000
    };
    let period = period_of(&table, "period")?.unwrap_or(Duration::from_ns(usual));
    let pacing = choice(
        &table,
        "pacing",
        &[
            ("periodic", Pacing::Periodic),
            ("relative", Pacing::Relative),
        ],
    )?;
    let reports = (program.as_ref()).is_some_and(program::ProgramLoad::reports);
    if reports && pacing == Some(Pacing::Relative) {
        return Err(table.fault(
            "pacing",
            "the jobs that a program reports are periodic",
            "remove the line",
        ));
    }
    let workload = Workload {
        work: match work {
            Work::Mac { .. } => Work::Mac {
                steps: small(steps, 100_000),
            },
            other => other,
        },
        jobs: match is_endless {
            true => 1,
            false => small(table.integer("jobs", &keep.jobs())?, 5_000),
        },
        period,
        pacing: pacing.unwrap_or(Pacing::Periodic),
        deadline: period_of(&table, "deadline")?,
        program,
    };
    Ok((workload, None))
}

fn scheduling(top: &Table<'_>) -> Result<Scheduling, InputError> {
    let Some(table) = top.table("scheduling", &SCHEDULING)? else {
        return Ok(Scheduling {
            class: Class::Fifo { priority: 80 },
            cpus: Vec::new(),
        });
    };
    let other = choice(&table, "class", &[("fifo", false), ("other", true)])?.unwrap_or(false);
    let priority = table.integer("priority", &Limits::PRIORITY)?;
    if other && priority.is_some() {
        return Err(table.fault(
            "priority",
            "class \"other\" has no priority",
            "remove the line or set class = \"fifo\"",
        ));
    }
    let cpus = table.cpus("cpus")?.unwrap_or_default();
    let class = if other {
        Class::Other
    } else {
        let priority = priority.and_then(|p| u8::try_from(p).ok()).unwrap_or(80);
        Class::Fifo { priority }
    };
    Ok(Scheduling { class, cpus })
}

#[cfg(test)]
mod tests;
