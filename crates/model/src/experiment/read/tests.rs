//! Experiment files: their defaults, their faults, and reading back written ones.

use super::*;
use crate::{Bytes, EngineKind, Limits, LoadForm, LoadKind, LoadPlan};
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
fn machines_are_a_trials_own_or_the_experiments() {
    let text = GOOD.replace(
        "[[trial]]\ncells = [\"bare\"]",
        "[machine]\nboard = \"q35\"\nvcpus = 2\n[[trial]]\ncells = [\"qemu\"]\nmachine = { vcpus = 4 }",
    );
    let read = Experiment::parse("mine.toml", &text).unwrap();
    let machines = read.trials.iter().map(|trial| read.machine_of(trial));
    let found: Vec<_> = machines
        .map(|of| (of.board().to_owned(), of.vcpus))
        .collect();
    let all = |vcpus| ("q35".to_owned(), Some(vcpus));
    assert_eq!(found, [all(4), all(2)]);
    assert_eq!(Experiment::parse("again", &read.to_toml()), Ok(read));
    for (line, said) in [
        (
            "record = \"histogram\"\n",
            "cells of engine `qemu` keep every sample",
        ),
        ("counters = true\n", "have no counters"),
    ] {
        let found = error(
            &text
                .replace("[workload]", &format!("{line}[workload]"))
                .replace("[machine]\nboard = \"q35\"\nvcpus = 2\n", ""),
        );
        assert!(found.contains(said), "{found}");
    }
    let found = error(&text.replace("vcpus = 4", "vcpu = 4, memory = \"1MiB\""));
    assert!(
        found.contains("did you mean `vcpus`") && found.contains("at least 64MiB"),
        "{found}"
    );
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
fn a_fault_names_its_line_and_the_fix() {
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
            "mine.toml:5: unknown kind `mca`; did you mean `mac`? it is one of mac, timer, taskset, program",
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
             bare, embedded, crun, runc, podman, podman-rootless, docker, qemu",
        ),
        (
            with("schema = 1", "schema = 99"),
            "mine.toml:1: schema 99 is newer than this timecell, which reads up to 1; use a newer timecell",
        ),
        (
            with("name = \"mine\"", "name = \"../etc\""),
            "mine.toml:2: `name` is `../etc`, which cannot be part of a directory name; \
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
fn trials_that_one_table_makes_have_their_fault_once() {
    let head = "schema = 1\nname = \"mine\"\n";
    let set = "[workload]\nkind = \"taskset\"\n[[workload.task]]\nname = \"a\"\nwcet = \"1ms\"\nperiod = \"10ms\"\n";
    let program = "[workload]\nkind = \"program\"\n";
    let scale = "[scale]\nengines = [\"bare\", \"crun\"]\n";
    let points = "[matrix]\ncells = [[\"bare\"], [\"crun\"]]\nperiods = [\"1ms\", \"2ms\"]\n";
    let trial = "[[trial]]\ncells = [\"bare\"]\nperiod = \"1ms\"\n";
    for (text, expected) in [
        (
            format!("{head}{set}{scale}"),
            "mine.toml:9: a task set has a fixed number of cells; set kind = \"mac\" or \"timer\"",
        ),
        (
            format!("{head}{program}{scale}"),
            "mine.toml:5: trial `bare-1`: a cell has no `program`, and [workload] names none; \
             add a line such as `program = [\"./app\"]` to [workload], or to each cell",
        ),
        (
            format!("{head}{set}{points}"),
            "mine.toml:9: trial `bare-1ms` has its own cells, period or jobs; with a task set, \
             name one engine; cells and periods come from the set",
        ),
    ] {
        assert_eq!(error(&text), expected, "{text}");
    }
    // Each that is written out has its own, and the matrix behind them one.
    let other = trial.replace("bare", "crun");
    let told = error(&format!("{head}{set}{trial}{other}{points}"));
    let lines: Vec<&str> = told.lines().map(|line| &line[..13]).collect();
    assert_eq!(lines, ["mine.toml:9: ", "mine.toml:12:", "mine.toml:15:"]);
}

#[test]
fn the_range_of_jobs_is_that_of_what_is_kept() {
    let of = |lines: &str, jobs: &str| {
        let text = GOOD.replace("kind = \"mac\"", &format!("kind = \"mac\"\njobs = {jobs}"));
        let text = text.replace("name = \"mine\"", &format!("name = \"mine\"\n{lines}"));
        Experiment::parse("mine.toml", &text)
            .map_or_else(|error| error.to_string(), |_| String::new())
    };
    for jobs in ["0", "-1", "\"5\"", "100_000_001"] {
        for samples in ["", "record = \"samples\""] {
            let told = of(samples, jobs);
            assert!(
                told.ends_with("must be a whole number of 1 to 100000000"),
                "{told}"
            );
        }
    }
    let told = of("record = \"histogram\"", "0");
    assert!(
        told.ends_with("must be a whole number of 1 to 4000000000"),
        "{told}"
    );
    // The intended record is not known.
    for unclear in ["record = \"histogrm\"", "recrod = \"histogram\""] {
        let told = of(unclear, "100_000_001");
        assert!(
            told.contains("did you mean") && !told.contains("jobs"),
            "{told}"
        );
    }
    let told = error(&GOOD.replace(
        "cells = [\"bare\"]",
        "cells = [{ engine = \"bare\", jobs = 0 }]\njobs = 0",
    ));
    assert_eq!(told.matches("1 to 100000000").count(), 2, "{told}");
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
fn counters_are_kept_by_window_or_by_activation() {
    let with = |value: &str| {
        GOOD.replace(
            "name = \"mine\"",
            &format!("name = \"mine\"\ncounters = {value}"),
        )
    };
    for (value, expected) in [
        ("false", Counters::None),
        ("true", Counters::WhereCheap),
        ("\"window\"", Counters::Windows),
        ("\"activation\"", Counters::Activations),
    ] {
        let read = Experiment::parse("mine.toml", &with(value)).unwrap();
        assert_eq!(read.counters, expected);
    }
    assert_eq!(
        error(&with("\"job\"")),
        "mine.toml:3: unknown kind of counters `job`; it is true, false or one of window, activation"
    );
    assert!(error(&with("1")).contains("true, false, \"window\" or \"activation\""));
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
    let form = prop::sample::select(vec![None, Some(LoadForm::BuiltIn), Some(LoadForm::Program)]);
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
    let engine = prop::sample::select(EngineKind::OF_BENCH.to_vec())
        // Of which much is refused.
        .prop_filter("a machine", |engine| !engine.is_machine());
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
        prop::sample::select(vec![
            Counters::None,
            Counters::Windows,
            Counters::WhereCheap,
            Counters::Activations,
        ]),
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
                counters,
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
                        deadline: periodic.then_some(Duration::from_ns(period)),
                        program: None,
                        stage: crate::ExecutionStage::InBand,
                    },
                    keep: interval.map_or(Keep::Samples, |ns| Keep::Histograms {
                        interval: Duration::from_ns(ns),
                    }),
                    tasks: None,
                    scheduling: Scheduling { class, cpus },
                    baseline: "t0".to_owned(),
                    rootless_user: periodic.then(|| "ann".to_owned()),
                    machine: Machine {
                        board: periodic.then(|| "./mine.toml".to_owned()),
                        vcpus: Some(1 + rounds % 512),
                        ..Machine::default()
                    },
                    counters,
                    scale: None,
                    until: Vec::new(),
                    turns: (interval.is_none() && periodic).then_some(Turns {
                        length: Duration::from_ns(12_000_000),
                        settle: rounds % 101,
                        catch_up: rounds % 1_001,
                        decide: (rounds > 5_000).then_some(rounds),
                    }),
                    trials: trials
                        .into_iter()
                        .enumerate()
                        .map(
                            |(i, (cells, mut loads, period, jobs, isolate, (cpus, per_cpu)))| {
                                for (i, load) in loads.iter_mut().enumerate().skip(1) {
                                    load.name = format!("load-{i}");
                                }
                                TrialPlan {
                                    name: format!("t{i}"),
                                    cells,
                                    own: Vec::new(),
                                    loads,
                                    period: period.map(Duration::from_ns),
                                    jobs,
                                    stage: isolate.then_some(crate::ExecutionStage::InBand),
                                    isolate,
                                    cpus,
                                    per_cpu,
                                    competitors: 0,
                                    reserve: None,
                                    parts: Vec::new(),
                                    machine: Machine {
                                        memory: isolate.then(|| Bytes::new(1 << 30)),
                                        kernel: per_cpu.then(|| "linux-image-amd64".to_owned()),
                                        accel: per_cpu.then_some(crate::Accel::Tcg),
                                        ..Machine::default()
                                    },
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
            for fault in &error {
                prop_assert!(!fault.what.is_empty());
                prop_assert!(fault.line.is_some_and(|l| l >= 1 && l <= text.lines().count() + 1));
            }
        }
    }
}
