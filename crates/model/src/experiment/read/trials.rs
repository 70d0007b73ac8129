//! Reading `[[trial]]` and `[matrix]`.

use std::collections::HashSet;

use super::cells::cells;
use super::loads;
use crate::experiment::task_load::MOST_COMPETITION;
use crate::experiment::task_reserves;
use crate::file::{Faults, Node, Value, is_name};
use crate::{Duration, EngineKind, Limits, LoadPlan, TrialPlan};

/// Every trial, those of the matrix after those written out.
pub(super) fn trials(top: &Node<'_>, faults: &mut Faults<'_>) -> Vec<TrialPlan> {
    let tables = top.tables("trial");
    let matrix = top.table("matrix");
    if !["trial", "matrix", "scale"].iter().any(|key| top.says(key)) {
        let what = "there is no [[trial]]";
        let fix = "add one that names its cells, or a [matrix]";
        if faults.is_clear(&top.place.key("trial")) {
            faults.report_at(&top.place, what, fix);
        }
    }
    let mut names = HashSet::new();
    let mut trials: Vec<TrialPlan> = Vec::with_capacity(tables.len());
    for table in &tables {
        let trial = trial(table, faults);
        let is_new = names.insert(trial.name.clone());
        if !is_new && (table.says("name") || faults.is_whole(&table.place)) {
            let what = format!("there are two trials named `{}`", trial.name);
            faults.report(&table.place, &["name"], what, "give each a different name");
        }
        trials.push(trial);
    }
    if let Some(table) = &matrix {
        for trial in points(table, faults) {
            if !names.insert(trial.name.clone()) && faults.is_whole(&top.place.key("trial")) {
                let what = format!("there are two trials named `{}`", trial.name);
                let fix = "remove the duplicate, or give a load its own `name`";
                faults.report(&table.place, &["cells"], what, fix);
            }
            trials.push(trial);
        }
    }
    trials
}

fn trial(table: &Node<'_>, faults: &mut Faults<'_>) -> TrialPlan {
    let (engines, own) = cells(table, faults);
    let copies = table.count("copies").unwrap_or(1) as usize;
    let count = engines.len().saturating_mul(copies);
    if count > 0 && !Limits::CELLS.contains(&(count as i64)) {
        let what = format!("this trial has {count} cells");
        let fix = format!("a trial has 1 to {} cells", Limits::CELLS.end());
        faults.report(&table.place, &["cells", "copies"], what, fix);
    }
    // Too many were told of, and need no memory.
    let copies = if count as i64 > *Limits::CELLS.end() {
        1
    } else {
        copies
    };
    let loads = loads::of_trial(table, faults);
    let name = table.some_text("name").unwrap_or_else(|| {
        if count > 1 {
            let (what, fix) = table.lacks("name", "\"two-rootful\"");
            faults.report(&table.place, &["name", "cells", "copies"], what, fix);
            faults.doubt(&table.place.key("name"));
        }
        let parts = engines.first().map(|engine| engine.name());
        let parts = parts
            .into_iter()
            .chain(loads.iter().map(|load| load.name.as_str()));
        let name = parts.collect::<Vec<&str>>().join("-");
        if name.len() > 64 {
            let what = format!(
                "its engine and its loads would name this trial `{name}`, which is too long"
            );
            faults.report(
                &table.place,
                &["cells"],
                what,
                "give it a `name` of up to 64 characters",
            );
        }
        name
    });
    TrialPlan {
        name,
        cells: engines.repeat(copies),
        own: vec![own; copies].concat(),
        loads,
        period: table.time("period"),
        jobs: table.count("jobs"),
        stage: super::stage(table),
        isolate: table.boolean("isolate"),
        // Utilisation of the competing cells, written as a fraction of a cpu.
        competitors: table.number("competitors").map_or(0, |share| {
            ((share * 1000.0).round() as u32).min(MOST_COMPETITION)
        }),
        reserve: table.choice("reserve", &task_reserves()).flatten(),
        parts: table.texts("parts"),
        cpus: table.counts("cpus"),
        per_cpu: table.boolean("per_cpu"),
        machine: super::machine(table),
    }
}

/// The cross product of the matrix: cells outermost, so that the trials that are compared first run close together in time.
/// Empty if any of it cannot be read.
fn points(table: &Node<'_>, faults: &mut Faults<'_>) -> Vec<TrialPlan> {
    let items = |key: &str| table.any(key).and_then(|list| list.items());
    let engines = |list: &Value<'_>| {
        let names = list.items().unwrap_or_default();
        (names.iter().filter_map(|name| name.text()?.parse().ok())).collect::<Vec<EngineKind>>()
    };
    let cells: Vec<Vec<EngineKind>> = items("cells").iter().flatten().map(engines).collect();
    let loads = items("loads").map_or_else(
        || vec![None],
        |items| {
            items
                .iter()
                .map(|item| Some(loads::point(item, faults)))
                .collect()
        },
    );
    let periods: Vec<Option<Duration>> = items("periods").map_or_else(
        || vec![None],
        |items| items.iter().map(|item| item.text()?.parse().ok()).collect(),
    );
    let isolate: Vec<bool> = items("isolate").map_or_else(
        || vec![false],
        |items| items.iter().filter_map(Value::boolean).collect(),
    );
    let duration = table.time("duration");
    if duration.is_some() && !table.says("periods") {
        faults.report(
            &table.place,
            &["duration"],
            "`duration` of [matrix] needs `periods`",
            "add `periods`, or set `jobs` of [workload]",
        );
    }
    if !faults.is_whole(&table.place) {
        return Vec::new();
    }
    let count = [loads.len(), periods.len(), isolate.len()];
    let count = count
        .iter()
        .fold(cells.len(), |all, n| all.saturating_mul(*n));
    if !Limits::TRIALS.contains(&(count as i64)) {
        let what = format!("the matrix has {count} trials");
        let fix = format!("a matrix has 1 to {} trials", Limits::TRIALS.end());
        faults.report(&table.place, &["cells"], what, fix);
        return Vec::new();
    }
    for period in duration.and(Some(&periods)).into_iter().flatten().flatten() {
        let jobs = duration.map_or(0, |duration| duration.ns()) / period.ns().max(1);
        if !Limits::JOBS.contains(&jobs) {
            let (least, most) = (Limits::JOBS.start(), Limits::JOBS.end());
            let duration = duration.unwrap_or(*period);
            let what = format!("{duration} has room for {jobs} periods of {period}");
            let fix = format!("a trial has {least} to {most} jobs");
            faults.report(&table.place, &["duration"], what, fix);
        }
    }
    let mut trials = Vec::with_capacity(count);
    for engines in &cells {
        for load in &loads {
            for period in &periods {
                for &isolate in &isolate {
                    let name = point_name(engines, load.as_deref(), *period, isolate);
                    if !is_name(&name) {
                        let what =
                            format!("the matrix makes a trial named `{name}`, which is too long");
                        let fix = "write it as a [[trial]] with a `name` of up to 64 characters";
                        faults.report(&table.place, &["cells"], what, fix);
                    }
                    let jobs = duration.zip(*period).map(|(duration, period)| {
                        u32::try_from(duration.ns() / period.ns().max(1)).unwrap_or(1)
                    });
                    trials.push(TrialPlan {
                        loads: load.clone().unwrap_or_default(),
                        period: *period,
                        jobs,
                        isolate,
                        per_cpu: table.boolean("per_cpu"),
                        ..TrialPlan::of(name, engines.clone())
                    });
                }
            }
        }
    }
    trials
}

/// Such as `crun-ipc-100us` or `2xpodman_docker-idle-isolated`.
fn point_name(
    engines: &[EngineKind],
    loads: Option<&[LoadPlan]>,
    period: Option<Duration>,
    isolate: bool,
) -> String {
    let cells: Vec<String> = engines
        .chunk_by(|a, b| a == b)
        .map(|same| match same.len() {
            1 => same[0].name().to_owned(),
            n => format!("{n}x{}", same[0]),
        })
        .collect();
    let mut parts = vec![cells.join("_")];
    parts.extend(
        loads
            .map(crate::load::names)
            .map(|name| name.replace('+', "_")),
    );
    parts.extend(period.map(|period| period.to_string()));
    parts.extend(isolate.then(|| "isolated".to_owned()));
    parts.join("-")
}

#[cfg(test)]
mod tests {
    use crate::{EngineKind, Experiment, LoadForm, LoadKind};

    fn parse(trials: &str) -> Result<Experiment, String> {
        let head = "schema = 1\nname = \"x\"\n[workload]\nkind = \"timer\"\n";
        Experiment::parse("x.toml", &format!("{head}{trials}")).map_err(|e| e.to_string())
    }

    fn refused(trials: &str) -> String {
        parse(trials).expect_err("must be refused")
    }

    #[test]
    fn a_matrix_is_the_cross_product_with_names_that_speak() {
        let experiment = parse(
            "[matrix]\ncells = [[\"bare\"], [\"crun\", \"crun\", \"podman\"]]\nloads = [\"idle\", [\"cpu\", \"disk\"]]\n\
             periods = [\"100us\", \"1.5ms\"]\nisolate = [false, true]\n",
        )
        .unwrap();
        let names: Vec<&str> = experiment.trials.iter().map(|t| t.name.as_str()).collect();
        assert_eq!(names.len(), 16);
        assert_eq!(names[0], "bare-idle-100us");
        assert_eq!(names[1], "bare-idle-100us-isolated");
        assert_eq!(names[6], "bare-cpu_disk-1500us");
        assert_eq!(names[15], "2xcrun_podman-cpu_disk-1500us-isolated");
        let last = &experiment.trials[15];
        assert_eq!(last.load_name(), "cpu+disk");
        assert_eq!(experiment.workload_of(last).period.ns(), 1_500_000);
        assert!(last.isolate && experiment.trials[0].loads.is_empty());
        assert_eq!(experiment.baseline, "bare-idle-100us");
    }

    #[test]
    fn a_matrix_stands_beside_trials_and_only_speaks_of_what_it_varies() {
        let experiment = parse(
            "[[trial]]\ncells = [\"crun\"]\nload = \"ipc\"\n[matrix]\ncells = [[\"bare\"]]\n",
        )
        .unwrap();
        let names: Vec<&str> = experiment.trials.iter().map(|t| t.name.as_str()).collect();
        assert_eq!(names, ["crun-ipc", "bare"]);
    }

    #[test]
    fn a_duration_gives_every_period_its_own_number_of_jobs() {
        let experiment = parse(
            "[matrix]\ncells = [[\"bare\"]]\nperiods = [\"100us\", \"10ms\"]\nduration = \"2s\"\nper_cpu = true\n",
        )
        .unwrap();
        let jobs: Vec<Option<u32>> = experiment.trials.iter().map(|t| t.jobs).collect();
        assert_eq!(jobs, [Some(20_000), Some(200)]);
        assert!(experiment.trials.iter().all(|trial| trial.per_cpu));
        let message =
            refused("[matrix]\ncells = [[\"bare\"]]\nperiods = [\"10ms\"]\nduration = \"1ms\"\n");
        assert!(
            message.contains("1ms has room for 0 periods of 10ms"),
            "{message}"
        );
        let message = refused("[matrix]\ncells = [[\"bare\"]]\nduration = \"1s\"\n");
        assert!(
            message.contains("`duration` of [matrix] needs `periods`"),
            "{message}"
        );
    }

    #[test]
    fn a_load_is_a_name_or_a_table() {
        let experiment = parse(
            "[[trial]]\ncells = [\"bare\"]\nloads = [\"net-icmp\", { kind = \"custom\", name = \"mine\", \
             command = [\"sh\", \"-c\", \"x\"], cpus = [0, 1] }, { kind = \"cpu\", in = \"cell\" }]\nperiod = \"100us\"\n\
             jobs = 7\nisolate = true\n",
        )
        .unwrap();
        let trial = &experiment.trials[0];
        assert_eq!(trial.name, "bare-net-icmp-mine-cpu");
        assert_eq!(trial.loads[0].kind, LoadKind::NetIcmp);
        assert_eq!(trial.loads[1].command, ["sh", "-c", "x"]);
        assert_eq!(trial.loads[1].cpus, [0, 1]);
        assert_eq!(trial.loads[2].cell, Some(EngineKind::Embedded));
        assert_eq!(trial.loads[2].form, None::<LoadForm>);
        let workload = experiment.workload_of(trial);
        assert_eq!((workload.period.ns(), workload.jobs), (100_000, 7));
    }

    #[test]
    fn a_load_in_a_cell_may_be_held_to_a_budget() {
        let held = "[[trial]]\ncells = [\"bare\"]\nloads = [{ kind = \"cpu\", in = \"cell\", engine = \"qemu\", \
                    budget = \"1.5ms\", period = \"10ms\" }]\n";
        let experiment = parse(held).unwrap();
        let trial = &experiment.trials[0];
        let own = trial.loads[0]
            .reservation
            .map(|(budget, period)| (budget.ns(), period.ns()));
        assert_eq!(own, Some((1_500_000, 10_000_000)));
        let engines: Vec<EngineKind> = trial.engines().collect();
        assert_eq!(engines, [EngineKind::Bare, EngineKind::Qemu]);
        assert_eq!(
            Experiment::parse("again", &experiment.to_toml()),
            Ok(experiment)
        );
    }

    #[test]
    fn a_faulty_load_or_matrix_names_its_line_and_the_fix() {
        let trial = |line: &str| refused(&format!("[[trial]]\ncells = [\"bare\"]\n{line}\n"));
        for (message, expected) in [
            (
                trial("load = \"icp\""),
                "x.toml:7: unknown load `icp`; did you mean `ipc`? the loads are idle, cpu, ipc, memory, disk, \
                 net-icmp, net-tcp, net-dev, video, custom",
            ),
            (
                trial("loads = [\"cpu\", \"idle\"]"),
                "x.toml:7: `idle` is the absence of load and cannot be combined with loads; remove it or the others",
            ),
            (
                trial("loads = [\"cpu\", \"cpu\"]"),
                "x.toml:7: this trial has two loads named `cpu`; give one a different `name`",
            ),
            (
                trial("load = \"custom\""),
                "x.toml:7: the load `custom` needs a command; write { kind = \"custom\", command = [\"stress\", \
                 \"-c\", \"1\"] }",
            ),
            (
                trial("load = { kind = \"cpu\", command = [\"x\"] }"),
                "x.toml:7: the load `cpu` takes no command; remove the line or set kind = \"custom\"",
            ),
            (
                trial("load = { kind = \"cpu\", form = \"program\", in = \"cell\" }"),
                "x.toml:7: a cell contains nothing but timecell, so only built-in loads can run \
                 in it; set form = \"built-in\" or in = \"host\"",
            ),
            (
                trial(
                    "load = { kind = \"ipc\", in = \"cell\", budget = \"1ms\", period = \"10ms\" }",
                ),
                "x.toml:7: only the load `cpu` in a cell can be held to a budget; set kind = \"cpu\" and in = \"cell\", or \
                 remove the lines",
            ),
            (
                trial("load = { kind = \"cpu\", in = \"cell\", budget = \"1ms\" }"),
                "x.toml:7: a load that is held has both `budget` and `period`; add the other, or remove both",
            ),
            (
                trial(
                    "load = { kind = \"cpu\", in = \"cell\", budget = \"2ms\", period = \"1ms\" }",
                ),
                "x.toml:7: the budget of 2ms exceeds its period of 1ms; give at most the period",
            ),
            (
                trial("load = { kind = \"cpu\", cpu = [1] }"),
                "x.toml:7: unknown key `cpu` in a load; did you mean `cpus`?",
            ),
            (
                trial("isolate = 1"),
                "x.toml:7: `isolate` is of type integer; it must be true or false",
            ),
            (
                refused("[matrix]\ncells = [\"bare\"]"),
                "x.toml:6: an item of `cells` is of type string; it must be a list such as [\"bare\"]",
            ),
            (
                refused("[matrix]\ncells = [[\"bare\"]]\nperiods = [\"1us\"]"),
                "x.toml:7: an item of `periods` is 1us; it must be 10us to 1h",
            ),
            (
                refused("[matrix]\ncells = [[\"bare\"]]\nloads = []"),
                "x.toml:7: `loads` is empty; give at least one, or remove the line",
            ),
            (
                refused("[matrix]\ncells = [[\"bare\"], [\"bare\"]]"),
                "x.toml:6: there are two trials named `bare`; remove the duplicate, or give a \
                 load its own `name`",
            ),
        ] {
            assert_eq!(message, expected);
        }
        let named = "n".repeat(60);
        let load = format!("load = {{ kind = \"custom\", name = \"{named}\", command = [\"x\"] }}");
        assert_eq!(
            trial(&load),
            format!(
                "x.toml:6: its engine and its loads would name this trial `bare-{named}`, which is too long; give it a `name` of up to 64 \
                 characters"
            )
        );
    }

    #[test]
    fn a_huge_matrix_is_refused_before_it_takes_memory() {
        let periods = |count| "\"1ms\", ".repeat(count);
        let matrix = |periods: String| {
            refused(&format!(
                "[matrix]\ncells = [[\"bare\"], [\"crun\"]]\nperiods = [{periods}]"
            ))
        };
        let message = matrix(periods(2_500));
        assert!(message.contains("the matrix has 5000 trials"), "{message}");
        let message = matrix(periods(5_000));
        assert!(message.contains("`periods` has 5000 items"), "{message}");
    }
}
