//! The experiment file: TOML to [`Experiment`] and back.

use std::fmt::Write as _;

use toml::de::DeTable;

use crate::reader::{Source, Table, nearest};
use crate::{
    Class, Duration, Experiment, InputError, Keep, Limits, Pacing, SCHEMA, Scheduling, TaskLoad,
    Work, Workload, loads, task_parse, trials,
};

const TOP: [&str; 13] = [
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
];
const WORKLOAD: [&str; 10] = [
    "kind", "jobs", "period", "pacing", "steps", "policy", "margin", "duration", "tasks", "task",
];
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
        let trials = trials::trials(&top, keep)?;
        let (workload, tasks) = workload(&top, keep)?;
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
            scheduling: scheduling(&top)?,
            baseline,
            rootless_user,
            counters: top.boolean("counters")?.unwrap_or(false),
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
        if self.counters {
            let _ = writeln!(out, "counters = true");
        }
        let workload = &self.workload;
        let _ = writeln!(out, "\n[workload]\nkind = \"{}\"", workload.work.name());
        if let Work::Mac { steps } = workload.work {
            let _ = writeln!(out, "steps = {steps}");
        }
        if let Some(tasks) = &self.tasks {
            task_parse::write(&mut out, tasks);
        } else {
            let _ = writeln!(out, "jobs = {}", workload.jobs);
            let _ = writeln!(out, "period = \"{}\"", workload.period);
            let pacing = match workload.pacing {
                Pacing::Periodic => "periodic",
                Pacing::Relative => "relative",
            };
            let _ = writeln!(out, "pacing = \"{pacing}\"");
        }
        let _ = match self.scheduling.class {
            Class::Fifo { priority } => writeln!(
                out,
                "\n[scheduling]\nclass = \"fifo\"\npriority = {priority}"
            ),
            Class::Other => writeln!(out, "\n[scheduling]\nclass = \"other\""),
        };
        let _ = writeln!(out, "cpus = {:?}", self.scheduling.cpus);
        for trial in &self.trials {
            let cells: Vec<String> = trial.cells.iter().map(|c| quoted(c.name())).collect();
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

fn small(value: Option<i64>, default: u32) -> u32 {
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
    let table = top
        .table("workload", &WORKLOAD)?
        .ok_or_else(|| top.missing("workload", "{ kind = \"mac\" }"))?;
    let kinds = [
        ("mac", Work::Mac { steps: 0 }),
        ("timer", Work::Timer),
        ("taskset", Work::Busy),
    ];
    let kind = choice(&table, "kind", &kinds)?.ok_or_else(|| table.missing("kind", "\"mac\""))?;
    let (of_others, whose) = if kind == Work::Busy {
        (
            &["jobs", "period", "pacing", "steps"][..],
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
    let timer = kind == Work::Timer;
    let steps = table.integer("steps", &Limits::STEPS)?;
    if timer && steps.is_some() {
        return Err(table.fault("steps", "a `timer` job has no steps", "remove the line"));
    }
    let period = period_of(&table, "period")?.unwrap_or(Duration::from_ns(1_000_000));
    let pacing = choice(
        &table,
        "pacing",
        &[
            ("periodic", Pacing::Periodic),
            ("relative", Pacing::Relative),
        ],
    )?;
    let workload = Workload {
        work: if timer {
            Work::Timer
        } else {
            Work::Mac {
                steps: small(steps, 100_000),
            }
        },
        jobs: small(table.integer("jobs", &keep.jobs())?, 5_000),
        period,
        pacing: pacing.unwrap_or(Pacing::Periodic),
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
mod tests {
    use super::*;
    use crate::{EngineKind, LoadForm, LoadKind, LoadPlan, TrialPlan};
    use proptest::prelude::*;

    const GOOD: &str = r#"schema = 1
name = "mine"

[workload]
kind = "mac"

[[trial]]
cells = ["bare"]

[[trial]]
name = "pair"
cells = ["podman", "podman-rootless"]
"#;

    fn error(text: &str) -> String {
        Experiment::parse("mine.toml", text)
            .expect_err("must be refused")
            .to_string()
    }

    #[test]
    fn fills_in_the_defaults_of_the_thesis() {
        let experiment = Experiment::parse("mine.toml", GOOD).unwrap();
        assert_eq!(experiment.workload.work, Work::Mac { steps: 100_000 });
        assert_eq!(experiment.workload.jobs, 5_000);
        assert_eq!(experiment.workload.period.ns(), 1_000_000);
        assert_eq!(experiment.scheduling.class, Class::Fifo { priority: 80 });
        assert_eq!(experiment.baseline, "bare");
        assert_eq!(experiment.rounds, 3);
        assert_eq!(experiment.most_cells(), 2);
    }

    #[test]
    fn a_fault_names_its_line_and_the_mend() {
        let with = |from: &str, to: &str| error(&GOOD.replace(from, to));
        let kind = "kind = \"mac\"";
        for (message, expected) in [
            (
                with(kind, "kind = \"mac\"\nperoid = \"1ms\""),
                "mine.toml:6: unknown key `peroid` in [workload]; did you mean `period`?",
            ),
            (
                with(kind, "kind = \"mac\"\nperiod = \"-1ms\""),
                "mine.toml:6: `period`: `-1ms` is negative; a duration is zero or more",
            ),
            (
                with(kind, "kind = \"mac\"\nperiod = 5"),
                "mine.toml:6: `period` has no unit; write it as a text with a unit, such as \"5ms\"",
            ),
            (
                with(kind, "kind = \"mac\"\nperiod = \"0ms\""),
                "mine.toml:6: `period` is 0ns; it must be 10us to 1h",
            ),
            (
                with(kind, "kind = \"mca\""),
                "mine.toml:5: unknown kind `mca`; did you mean `mac`? it is one of mac, timer, taskset",
            ),
            (
                with(
                    "[[trial]]\ncells",
                    "[scheduling]\npriority = 0\n[[trial]]\ncells",
                ),
                "mine.toml:8: `priority` is 0; it must be a whole number of 1 to 99",
            ),
            (
                with(
                    "[[trial]]\ncells",
                    "[scheduling]\npriority = 100\n[[trial]]\ncells",
                ),
                "mine.toml:8: `priority` is 100; it must be a whole number of 1 to 99",
            ),
            (
                with("\"podman\"", "\"podmna\""),
                "mine.toml:12: unknown engine `podmna`; did you mean `podman`? the engines are \
                 bare, embedded, crun, runc, podman, podman-rootless, docker",
            ),
            (
                with("schema = 1", "schema = 99"),
                "mine.toml:1: schema 99 is newer than this timecell, which reads up to 1; use a newer timecell",
            ),
            (
                with("name = \"mine\"", "name = \"../etc\""),
                "mine.toml:2: the name `../etc` cannot be part of a directory name; \
                 use 1 to 64 letters, digits, `-` and `_`",
            ),
            (
                with("name = \"pair\"\n", ""),
                "mine.toml:10: [[trial]] has no `name`; add a line such as `name = \"two-rootful\"`",
            ),
        ] {
            assert_eq!(message, expected);
        }
        assert!(error("schema = 1\nname = [").starts_with("mine.toml:2: not TOML: "));
        assert!(error("").contains("has no `schema`"));
    }

    #[test]
    fn histograms_are_asked_for_at_the_top_and_allow_for_a_day() {
        let with = |lines: &str| {
            GOOD.replace("name = \"mine\"", &format!("name = \"mine\"\n{lines}"))
                .replace("kind = \"mac\"", "kind = \"mac\"\njobs = 864_000_000")
        };
        let keep = |lines: &str| Experiment::parse("mine.toml", &with(lines)).map(|e| e.keep);
        assert_eq!(keep("record = \"histogram\"").unwrap(), Keep::MINUTES);
        assert_eq!(
            keep("record = \"histogram\"\ninterval = \"10s\"").unwrap(),
            Keep::Histograms {
                interval: Duration::from_ns(10_000_000_000)
            }
        );
        assert!(error(&with("")).contains("it must be a whole number of 1 to 100000000"));
        assert_eq!(
            error(&with("interval = \"10s\"")),
            "mine.toml:3: only histograms have an interval; add `record = \"histogram\"`, or remove the line"
        );
        assert_eq!(
            error(&with("record = \"histogram\"\ninterval = \"1ms\"")),
            "mine.toml:4: `interval` is 1ms; it must be 1s to 1h"
        );
    }

    #[test]
    fn a_huge_matrix_is_refused_before_it_takes_memory() {
        let text = GOOD.replace(
            "cells = [\"bare\"]",
            "cells = [\"bare\", \"bare\"]\ncopies = 4096\nname = \"x\"",
        );
        assert!(error(&text).contains("this trial has 8192 cells"));
    }

    fn loads() -> impl Strategy<Value = LoadPlan> {
        let kind = prop::sample::select(LoadKind::ALL.to_vec());
        let form =
            prop::sample::select(vec![None, Some(LoadForm::BuiltIn), Some(LoadForm::Program)]);
        let engine = prop::sample::select(vec![
            None,
            Some(EngineKind::Embedded),
            Some(EngineKind::Crun),
        ]);
        let word = "[^\\pC]{1,9}";
        (
            kind,
            form,
            engine,
            prop::collection::vec(any::<u32>(), 0..3),
            prop::collection::vec(word, 1..3),
            prop::option::of("[a-z]{5,9}"),
        )
            .prop_map(|(kind, form, cell, cpus, command, name)| {
                let custom = kind == LoadKind::Custom;
                let mut load = LoadPlan::new(kind);
                load.cpus = cpus;
                if let Some(name) = name {
                    load.name = name;
                }
                if custom {
                    load.command = command;
                    load.form = form.filter(|form| *form == LoadForm::Program);
                } else {
                    load.cell = cell;
                    load.form = form.filter(|form| cell.is_none() || *form == LoadForm::BuiltIn);
                }
                load
            })
    }

    fn experiments() -> impl Strategy<Value = Experiment> {
        let engine = prop::sample::select(EngineKind::ALL.to_vec());
        let trial = (
            prop::collection::vec(engine, 1..5),
            prop::collection::vec(loads(), 0..3),
            prop::option::of(Limits::PERIOD_NS),
            prop::option::of(1u32..=100_000_000),
            any::<bool>(),
            (prop::collection::vec(any::<u32>(), 0..3), any::<bool>()),
        );
        let trials = prop::collection::vec(trial, 1..5);
        let work = prop_oneof![
            (1u32..=1_000_000_000).prop_map(|steps| Work::Mac { steps }),
            Just(Work::Timer)
        ];
        let class = prop_oneof![
            (1u8..=99).prop_map(|priority| Class::Fifo { priority }),
            Just(Class::Other)
        ];
        (
            "[a-zA-Z0-9_-]{1,64}",
            "\\PC{0,40}",
            1u32..=10_000,
            work,
            (1u32..=100_000_000, Limits::PERIOD_NS),
            class,
            prop::collection::vec(any::<u32>(), 0..4),
            trials,
            any::<bool>(),
            prop::option::of(Limits::INTERVAL_NS),
        )
            .prop_map(
                |(
                    name,
                    question,
                    rounds,
                    work,
                    (jobs, period),
                    class,
                    cpus,
                    trials,
                    periodic,
                    interval,
                )| {
                    Experiment {
                        name,
                        question,
                        rounds,
                        workload: Workload {
                            work,
                            jobs,
                            period: Duration::from_ns(period),
                            pacing: if periodic {
                                Pacing::Periodic
                            } else {
                                Pacing::Relative
                            },
                        },
                        keep: interval.map_or(Keep::Samples, |ns| Keep::Histograms {
                            interval: Duration::from_ns(ns),
                        }),
                        tasks: None,
                        scheduling: Scheduling { class, cpus },
                        baseline: "t0".to_owned(),
                        rootless_user: periodic.then(|| "ann".to_owned()),
                        counters: periodic,
                        trials: trials
                            .into_iter()
                            .enumerate()
                            .map(
                                |(
                                    i,
                                    (cells, mut loads, period, jobs, isolate, (cpus, per_cpu)),
                                )| {
                                    for (i, load) in loads.iter_mut().enumerate().skip(1) {
                                        load.name = format!("load-{i}");
                                    }
                                    TrialPlan {
                                        name: format!("t{i}"),
                                        cells,
                                        loads,
                                        period: period.map(Duration::from_ns),
                                        jobs,
                                        isolate,
                                        cpus,
                                        per_cpu,
                                        competitors: 0,
                                    }
                                },
                            )
                            .collect(),
                    }
                },
            )
    }

    proptest! {
        #[test]
        fn writing_and_reading_give_the_same(experiment in experiments()) {
            let text = experiment.to_toml();
            prop_assert_eq!(Experiment::parse("x", &text).map_err(|e| e.to_string()), Ok(experiment));
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,200}") {
            let _ = Experiment::parse("x", &text);
        }

        #[test]
        fn no_mutilated_file_panics(at in 0usize..160, with in "\\PC{0,8}") {
            let mut text = GOOD.to_owned();
            let at = at.min(text.len());
            text.replace_range(at..(at + 3).min(GOOD.len()), &with);
            if let Err(error) = Experiment::parse("x", &text) {
                prop_assert!(!error.what.is_empty());
                prop_assert!(error.line.is_some_and(|l| l >= 1 && l <= text.lines().count() + 1));
            }
        }
    }
}
