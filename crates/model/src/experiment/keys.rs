//! The keys of the experiment file, each declared once. The reader, the JSON Schema and the tables of the documentation all follow
//! these declarations.

use toml::de::DeTable;

use super::turns::{LENGTH_NS, MOST_CATCH_UP, MOST_SETTLE};
use super::until::MOST as MOST_CONDITIONS;
use crate::file::{Faults, Kind, Place, Shape, Table, keys, names, names_of};
use crate::task_load::TaskPolicy;
use crate::{
    Choice, Enforcer, EngineKind, ExecutionStage, Limits, LoadForm, LoadKind, Machine, Pacing,
    Scale, Work, taskset,
};

pub(super) const KEPT: [(&str, bool); 2] = [("samples", false), ("histogram", true)];
pub(super) const WORKS: [(&str, Work); 4] = [
    ("mac", Work::Mac { steps: 0 }),
    ("timer", Work::Timer),
    ("taskset", Work::Busy),
    ("program", Work::Program),
];
pub(super) const CLASSES: [(&str, bool); 2] = [("fifo", false), ("other", true)];
/// Whether it runs in a cell.
pub(super) const PLACES: [(&str, bool); 2] = [("host", false), ("cell", true)];

const fn within(range: std::ops::RangeInclusive<i64>) -> Kind {
    Kind::Within {
        least_ns: *range.start(),
        most_ns: *range.end(),
    }
}

const fn whole(range: std::ops::RangeInclusive<i64>) -> Kind {
    Kind::Integer {
        least: *range.start(),
        most: *range.end(),
    }
}

const ENGINE: Kind = Kind::Choice(&names_of!([], EngineKind::OF_BENCH));
const PERIOD: Kind = within(Limits::PERIOD_NS);
const STAGE: Kind = Kind::Choice(ExecutionStage::WORDS);
const JOBS: Kind = whole(Limits::JOBS_OF_HISTOGRAMS);
static JOBS_OF_SAMPLES: Kind = whole(Limits::JOBS);
const STEPS: Kind = whole(Limits::STEPS);
const SOME_TIME: Kind = Kind::Time { least_ns: 1 };
const RT_PRIORITY: Kind = whole(Limits::PRIORITY);
const PRIORITY: Kind = whole(i32::MIN as i64..=i32::MAX as i64);
const CPUS: Kind = Kind::List {
    of: &whole(0..=u32::MAX as i64),
    least: 0,
    most: 4_096,
    unique: false,
};
const WORDS: Kind = Kind::List {
    of: &Kind::Word,
    least: 1,
    most: 256,
    unique: false,
};
const LOAD: Kind = Kind::Any(
    &[Kind::Choice(LoadKind::WITH_IDLE), Kind::Table(&LOADS)],
    "a load such as \"cpu\" or { kind = \"custom\", command = [\"stress\", \"-c\", \"1\"] }",
);
const LOAD_LIST: Kind = list(&LOAD);
const ENGINES: Kind = Kind::List {
    of: &ENGINE,
    least: 1,
    most: *Limits::CELLS.end() as usize,
    unique: false,
};

const fn list(of: &'static Kind) -> Kind {
    Kind::List {
        of,
        least: 1,
        most: *Limits::CELLS.end() as usize,
        unique: false,
    }
}

/// Fewer jobs are allowed if every sample is kept. An `interval`, or a `record` that was not understood, may mean
/// histograms.
pub(super) fn narrower(key: &str, top: &DeTable<'_>, faults: &Faults<'_>) -> Option<&'static Kind> {
    let get = |key: &str| top.iter().find(|(name, _)| name.get_ref() == key);
    let are_samples = || {
        let kept = get("record").map_or(Some("samples"), |(_, kept)| kept.get_ref().as_str());
        let is_clear = faults.is_clear(&Place::top().key("record"));
        kept == Some("samples") && is_clear && get("interval").is_none()
    };
    (key == "jobs" && are_samples()).then_some(&JOBS_OF_SAMPLES)
}

/// The top level of the file.
pub(super) static TOP: Shape = Shape {
    title: "the top level",
    name: "experiment",
    doc: "Trials, each of them cells that run together, and what runs in them.",
    choice: false,
    keys: keys! {
        "schema": whole(1..=i64::MAX), Required "1", "version of this format; newer ones are refused";
        "name": Kind::Part, Required "\"mine\"", "name of the experiment; part of the run directory's name";
        "question": Kind::Text, Default "\"\"", "the question that the experiment answers; shown at the top of the report";
        "rounds": whole(Limits::ROUNDS), Default "3", "number of repetitions of every trial";
        "baseline": Kind::Text, Without "the first trial", "name of the trial with which the others are compared";
        "record": Kind::Choice(&names(&KEPT)), Default "\"samples\"", "what is kept of the jobs";
        "interval": within(Limits::INTERVAL_NS), Without "60s", "time covered by one histogram; only with `record = \"histogram\"`";
        "rootless_user": Kind::Part, Without "chosen on the machine", "user who runs rootless cells";
        "until": Kind::List { of: &Kind::Text, least: 0, most: MOST_CONDITIONS, unique: false }, Default "[]",
            "conditions on quantiles of times; the run continues until they are decided, at most for all its rounds; not with `[scale]` or `decide`";
        "counters": Kind::Any(&[Kind::Boolean, Kind::Choice(&["window", "activation"])], "true, false, \"window\" or \"activation\""),
            Default "false",
            "whether and how counters are read: by the measuring threads at each activation, or beside the cells every 10 ms; `true`: the former where it is cheap";
        "machine": Kind::Table(Machine::SHAPE), Without "a `microvm` or `virt`", "the virtual machine of every cell of engine `qemu`";
        "workload": Kind::Table(&WORKLOAD), Required "{ kind = \"mac\" }", "the task of every cell";
        "scheduling": Kind::Table(&SCHEDULING), Without "its defaults", "class and cpus";
        "trial": Kind::Tables { of: &TRIAL, most: *Limits::TRIALS.end() as usize }, Without "none",
            "trials written out; at least one, unless there is a `[matrix]` or `[scale]`";
        "matrix": Kind::Table(&MATRIX), Without "none", "trials as a cross product";
        "scale": Kind::Table(&SCALE), Without "none", "a study of growing numbers of cells, instead of trials";
        "turns": Kind::Table(&TURNS), Without "one trial after the other",
            "trials take turns; not with histograms, `relative` pacing, a task set, an `endless` program or `[scale]`";
    },
};

static WORKLOAD: Shape = Shape {
    title: "[workload]",
    name: "workload",
    doc: "The task of every cell.",
    choice: false,
    keys: keys! {
        "kind": Kind::Choice(&names(&WORKS)), Required "\"mac\"", "what a job does";
        "jobs": JOBS, Default "5000",
            "activations of each cell in each round; each takes 32 bytes of shared memory during the trial; at most 100,000,000 unless histograms are kept";
        "period": PERIOD, Without "1ms, 500ms of an `endless` program", "time between releases";
        "pacing": Kind::Choice(Pacing::WORDS), Default "\"periodic\"", "how releases are laid out";
        "steps": STEPS, Without "100,000", "length of a `mac` job; only for that kind";
        "stage": STAGE, Default "\"inband\"", "`oob`: out of band, as a thread of EVL; for `mac` and `timer`";
        "deadline": PERIOD, Without "the period; none with `relative` pacing",
            "time from the release by which a job must have ended; a job that ends later is `late`";
        "policy": Kind::Choice(TaskPolicy::WORDS), Without "`fifo`",
            "of a `taskset`: class of the threads; `fifo` gives each its own priority, from one below `priority` of `[scheduling]` down; `deadline` gives each runtime, deadline and period";
        "margin": Kind::Time { least_ns: 0 }, Without "a tenth of the wcet, at least 100us",
            "of a `taskset`: added to the wcet for a `deadline` thread's runtime; refused for `fifo`";
        "duration": SOME_TIME, Without "10s", "of a `taskset`: length of a trial, which decides how many jobs each task has";
        "tasks": Kind::Text, Without "none",
            "of a `taskset`: its file, in any format that `analyze` reads; relative to the directory of this file";
        "task": Kind::Tables { of: &TASK, most: taskset::Limits::TASKS }, Without "none", "of a `taskset`: its tasks, instead of a file";
        "reservation": Kind::Tables { of: &RESERVATION, most: taskset::Limits::CELLS }, Without "none",
            "of a `taskset`: reservations of its cells, instead of a file";
        "program": WORDS, Without "each cell has its own",
            "of a `program`: its path, relative to the directory of this file, and its arguments";
        "reports": Kind::Boolean, Default "false",
            "of a `program`: whether it reports its jobs through timecell's client; otherwise each execution of it is a job";
        "reported": Kind::Tables { of: &REPORTED, most: REPORTED_TASKS }, Without "found by running the program once",
            "of a `program` that reports: its tasks; the first is the one that is compared, the others are measured beside it and have rows of their own";
        "endless": Kind::Boolean, Default "false",
            "of a `program`: whether it neither ends nor reports; it then runs for one `period` in each round; refused with `reports`, `jobs`, `deadline`, `pacing`, `[turns]` and histograms";
    },
};

/// Most tasks of a program that are measured: as many as it can open.
const REPORTED_TASKS: usize = 8;

static REPORTED: Shape = Shape {
    title: "a reported task",
    name: "reported",
    doc: "A task of a program that reports its jobs.",
    choice: false,
    keys: keys! {
        "name": Kind::Label, Required "\"control\"", "the name under which the program opens it; unique";
        "period": PERIOD, Required "\"1ms\"", "time between its releases";
    },
};

static TASK: Shape = Shape {
    title: "[[workload.task]]",
    name: "task",
    doc: "A task of the set.",
    choice: false,
    keys: keys! {
        "name": Kind::Label, Required "\"control\"", "its name; unique in its cell";
        "cell": Kind::Label, Default "\"set\"", "the cell in which it runs";
        "wcet": SOME_TIME, Required "\"1ms\"", "worst-case execution time; at most the deadline and 1s";
        "period": SOME_TIME, Required "\"10ms\"", "time between releases, 10us to 1h";
        "deadline": SOME_TIME, Without "the period", "time from the release by which a job must have ended";
        "priority": PRIORITY, Without "by deadline", "a larger number is more urgent; for all tasks of a cell or for none";
    },
};

static RESERVATION: Shape = Shape {
    title: "[[workload.reservation]]",
    name: "reservation",
    doc: "What a cell of the set is held to: budget and period, its cpu and its priority.",
    choice: false,
    keys: keys! {
        "cell": Kind::Label, Required "\"first\"",
            "cell that it is for, each at most once; needs budget and period, `cpu` or `priority`";
        "budget": SOME_TIME, Without "the least that is certain to suffice",
            "cpu time in every period, at most the period; both or neither; required where cells share a cpu";
        "period": SOME_TIME, Without "the least that is certain to suffice", "time between refills";
        "cpu": whole(0..=*taskset::Limits::CPUS.end() - 1), Without "its own",
            "the cell's cpu, counted from 0: first those of `[scheduling]`, then the highest that are free; also in trials without `reserve`";
        "priority": PRIORITY, Without "shorter periods first",
            "priority of the cell on its cpu; a larger number is more urgent: all threads of a more urgent cell come before those of the others";
    },
};

static SCHEDULING: Shape = Shape {
    title: "[scheduling]",
    name: "scheduling",
    doc: "How the cells are scheduled.",
    choice: false,
    keys: keys! {
        "class": Kind::Choice(&names(&CLASSES)), Default "\"fifo\"",
            "SCHED_FIFO, or SCHED_OTHER, which is labelled \"not real-time\"";
        "priority": RT_PRIORITY, Without "80", "of SCHED_FIFO, 99 is the highest; refused for `other`";
        "cpus": CPUS, Without "one, chosen on the machine", "cells are pinned to these cpus in turn";
    },
};

static TRIAL: Shape = Shape {
    title: "[[trial]]",
    name: "trial",
    doc: "Cells that run together.",
    choice: false,
    keys: keys! {
        "name": Kind::Part, Without "the engine and its loads, if the trial has one cell",
            "name in tables; unique; required for several cells";
        "cells": list(&Kind::Any(&[ENGINE, Kind::Table(&CELL)],
            "an engine such as \"bare\", or a table such as { engine = \"crun\", period = \"10ms\" }")),
            Required "[\"bare\"]", "the engine of each cell, or a table with its own settings";
        "copies": whole(Limits::CELLS), Default "1", "repeats the list; a trial has 1 to 4,096 cells in all";
        "load": LOAD, Without "`idle`", "what disturbs the cells";
        "loads": LOAD_LIST, Without "none", "loads that run together, with different names; refused with `load`";
        "period": PERIOD, Without "the workload's", "time between releases in this trial";
        "jobs": JOBS, Without "the workload's", "activations of each cell in this trial";
        "stage": STAGE, Without "the workload's", "stage on which this trial's tasks run";
        "isolate": Kind::Boolean, Default "false", "whether the cells' cpus are kept free of other work (cpu isolation)";
        "cpus": CPUS, Without "those of `[scheduling]`", "cpus of this trial's cells, in turn";
        "per_cpu": Kind::Boolean, Default "false",
            "runs `cells` once on every cpu of the trial, else of `[scheduling]`, else of the machine; with `isolate`, the lowest cpu of the machine is left out";
        "machine": Kind::Table(Machine::SHAPE), Without "that of the experiment", "the virtual machine of its cells of engine `qemu`";
        "competitors": Kind::Number { least: 0.0, most: 0.9 }, Without "0",
            "of a task set: share of a cpu that a competing cell takes beside each cell of the set";
        "reserve": Kind::Choice(&names_of!(["none"], Enforcer::OF_BENCH)), Without "`none`",
            "of a task set: enforcer that holds the cells to their reservations; `--reserve` sets it for all trials";
        "parts": Kind::List { of: &Kind::Label, least: 0, most: 4_096, unique: false }, Default "[]",
            "of a task set: which of its cells run; empty: all";
    },
};

static CELL: Shape = Shape {
    title: "a cell",
    name: "cell",
    doc: "A cell with its own task.",
    choice: false,
    keys: keys! {
        "engine": ENGINE, Required "\"crun\"", "engine that makes it";
        "name": Kind::Part, Without "the number and the engine", "name in tables, after that of the trial; unique; not with `copies`";
        "program": WORDS, Without "the trial's work", "as in `[workload]`";
        "reports": Kind::Boolean, Default "false", "as in `[workload]`";
        "reported": Kind::Tables { of: &REPORTED, most: REPORTED_TASKS }, Without "found by running the program once", "as in `[workload]`";
        "endless": Kind::Boolean, Default "false", "as in `[workload]`";
        "steps": STEPS, Without "the trial's work", "length of its `mac` jobs";
        "period": PERIOD, Without "the trial's", "time between releases";
        "deadline": PERIOD, Without "the workload's; the period if the cell has its own work or period", "as in `[workload]`";
        "jobs": JOBS, Without "as many as fill the time of the trial's", "activations of this cell";
        "priority": RT_PRIORITY, Without "that of `[scheduling]`", "of SCHED_FIFO; refused for class `other`";
    },
};

static LOADS: Shape = Shape {
    title: "a load",
    name: "load",
    doc: "What disturbs the cells of a trial.",
    choice: false,
    keys: keys! {
        "kind": Kind::Choice(LoadKind::WORDS), Required "\"cpu\"", "what it does";
        "name": Kind::Part, Without "the kind", "name in tables";
        "form": Kind::Choice(LoadForm::WORDS), Without "the program where it is installed", "which of its two implementations";
        "command": list(&Kind::Word), Without "required for `custom`", "program and arguments; only for `custom`";
        "cpus": CPUS, Without "all of them", "cpus that the load may use";
        "in": Kind::Choice(&names(&PLACES)), Default "\"host\"", "whether it runs on the host or in a cell";
        "engine": Kind::Choice(&names_of!([], EngineKind::OF_LOADS)), Without "`embedded`", "engine that makes its cell; only with `in = \"cell\"`";
        "budget": PERIOD, Without "none", "of `cpu` in a cell: cpu time in every `period` to which SCHED_DEADLINE holds its one thread, or virtual cpu; both or neither";
        "period": PERIOD, Without "none", "time between refills of the budget, which is at most as long";
    },
};

static MATRIX: Shape = Shape {
    title: "[matrix]",
    name: "matrix",
    doc: "Trials as a cross product.",
    choice: false,
    keys: keys! {
        "cells": list(&ENGINES), Required "[[\"bare\"], [\"crun\"]]", "the cells of each trial: a list of engines";
        "loads": list(&Kind::Any(&[Kind::Choice(LoadKind::WITH_IDLE), Kind::Table(&LOADS), LOAD_LIST], "a load, `idle`, or a list of loads that run together")),
            Without "no load", "the loads of each trial";
        "periods": list(&PERIOD), Without "the workload's", "the period of each trial";
        "isolate": list(&Kind::Boolean), Default "[false]", "as in a trial";
        "per_cpu": Kind::Boolean, Default "false", "as in a trial, for all trials";
        "duration": SOME_TIME, Without "the workload's jobs", "length of each trial, which decides the number of jobs for each period";
    },
};

static SCALE: Shape = Shape {
    title: "[scale]",
    name: "scale",
    doc: "A study of growing numbers of cells.",
    choice: false,
    keys: keys! {
        "engines": list(&ENGINE), Required "[\"embedded\"]", "engines, each once; a trial has cells of one engine only";
        "counts": list(&whole(Limits::CELLS)), Without "1, 2, 10, 16, 20, 32, 50, 64, 80, 100, 128, 256, 512, 1024, 2048",
            "numbers of cells that run together, ascending";
        "failure_limit": Kind::Number { least: 0.0, most: 1.0 }, Default "0.01",
            "share of a trial's cells that may fail, in steps of 0.001; if more do, larger counts of that engine are skipped";
        "parallel": whole(Scale::PARALLEL), Default "8", "number of cells that are created at the same time";
        "total_jobs": whole(Scale::TOTAL_JOBS), Default "100000",
            "approximate number of jobs of all cells of a trial: each cell has this divided by the count, at least 300 and at most the workload's `jobs`";
        "reserve": Kind::Choice(&names_of!(["none"], Enforcer::OF_SCALE)), Default "\"none\"", "enforcer that holds each cell to an equal share";
        "memory_reserve": Kind::Size { least: 0 }, Without "a twentieth of the machine's memory, at least 128 MiB, at most half",
            "memory that is left to the rest of the machine; if less is available, no more cells are made and the running ones are stopped";
        "starvation_limit": within(Scale::STARVATION_NS), Default "\"5s\"",
            "the cells are stopped when ordinary work has not run for this long";
    },
};

static TURNS: Shape = Shape {
    title: "[turns]",
    name: "turns",
    doc: "How trials take turns.",
    choice: false,
    keys: keys! {
        "length": within(LENGTH_NS), Default "\"12ms\"", "length of a turn; in any case at least 5 jobs more than `settle`";
        "settle": whole(0..=MOST_SETTLE), Default "2", "jobs at the beginning of each turn that are recorded but not compared";
        "catch_up": whole(0..=MOST_CATCH_UP), Default "2",
            "periods at the beginning of each turn in which a program that reports its jobs catches up, before its jobs count";
        "decide": Kind::Number { least: 0.0001, most: 1.0 }, Without "all rounds",
            "the run ends once every ratio of medians of the main metric to the baseline is known to within this share or shown to differ from 1; exit code 1 if one is neither at the end";
    },
};
