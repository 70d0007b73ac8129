//! The keys of the experiment file, each declared once. The reader, the JSON Schema and the tables of the documentation all follow
//! these declarations.

use toml::de::DeTable;

use super::turns::{LENGTH_NS, MOST_CATCH_UP, MOST_SETTLE};
use super::until::MOST as MOST_CONDITIONS;
use crate::file::{Faults, Kind, Place, Shape, keys, names, names_of};
use crate::task_load::TaskPolicy;
use crate::{Enforcer, EngineKind, Limits, LoadForm, LoadKind, Pacing, Scale, Work, taskset};

pub(super) const KEPT: [(&str, bool); 2] = [("samples", false), ("histogram", true)];
pub(super) const WORKS: [(&str, Work); 4] = [
    ("mac", Work::Mac { steps: 0 }),
    ("timer", Work::Timer),
    ("taskset", Work::Busy),
    ("program", Work::Program),
];
pub(super) const PACINGS: [(&str, Pacing); 2] = [
    ("periodic", Pacing::Periodic),
    ("relative", Pacing::Relative),
];
pub(super) const CLASSES: [(&str, bool); 2] = [("fifo", false), ("other", true)];
pub(super) const FORMS: [(&str, LoadForm); 2] = [
    ("built-in", LoadForm::BuiltIn),
    ("program", LoadForm::Program),
];
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

/// Engines in which loads run.
pub(super) const RUNTIMES: [EngineKind; 3] =
    [EngineKind::Embedded, EngineKind::Crun, EngineKind::Runc];

const ENGINE: Kind = Kind::Choice(&names_of!([], EngineKind::ALL));
const PERIOD: Kind = within(Limits::PERIOD_NS);
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
    &[Kind::Choice(LoadKind::NAMES), Kind::Table(&LOADS)],
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

/// There may be fewer jobs where every sample of them is kept. An `interval`, and what was written for `record` and not
/// understood, may mean histograms.
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
        "schema": whole(1..=i64::MAX), Required "1", "version of this format; a newer one is refused";
        "name": Kind::Part, Required "\"mine\"", "name of the experiment and part of the directory's name";
        "question": Kind::Text, Default "\"\"", "the question that the experiment answers; the report opens with it";
        "rounds": whole(Limits::ROUNDS), Default "3", "how often every trial is repeated";
        "baseline": Kind::Text, Without "the first trial", "name of the trial that the others are compared with";
        "record": Kind::Choice(&names(&KEPT)), Default "\"samples\"", "what is kept of the jobs";
        "interval": within(Limits::INTERVAL_NS), Without "60s", "length of one histogram; only with `record = \"histogram\"`";
        "rootless_user": Kind::Part, Without "found on the machine", "who runs rootless cells";
        "until": Kind::List { of: &Kind::Text, least: 0, most: MOST_CONDITIONS, unique: false }, Default "[]",
            "conditions on quantiles of times that the run goes on to find out, for all its rounds at the most; not with `[scale]` or `decide`";
        "counters": Kind::Any(&[Kind::Boolean, Kind::Choice(&["window", "activation"])], "true, false, \"window\" or \"activation\""),
            Default "false",
            "whether counters are read, by the measuring threads once for each activation or beside the cells every 10 ms; `true`: the former where it is cheap";
        "workload": Kind::Table(&WORKLOAD), Required "{ kind = \"mac\" }", "the task of every cell";
        "scheduling": Kind::Table(&SCHEDULING), Without "its defaults", "class and cpus";
        "trial": Kind::Tables { of: &TRIAL, most: *Limits::TRIALS.end() as usize }, Without "none",
            "trials written out; one at least, unless there is a `[matrix]` or `[scale]`";
        "matrix": Kind::Table(&MATRIX), Without "none", "trials as a cross product";
        "scale": Kind::Table(&SCALE), Without "none", "a study of growing numbers of cells, in place of trials";
        "turns": Kind::Table(&TURNS), Without "one trial after the other",
            "turns of trials; not with histograms, `relative` pacing, a task set, an `endless` program or `[scale]`";
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
            "activations of each cell in each round; each takes 32 bytes of shared memory during the trial, and there are 100,000,000 at most unless histograms are kept";
        "period": PERIOD, Without "1ms, 500ms of an `endless` program", "time between releases";
        "pacing": Kind::Choice(&names(&PACINGS)), Default "\"periodic\"", "how releases are laid out";
        "steps": STEPS, Without "100,000", "length of a `mac` job; refused for other kinds";
        "deadline": PERIOD, Without "the period; none with `relative` pacing",
            "when a job must have ended after its release; one that ends later is `late`";
        "policy": Kind::Choice(&names(&TaskPolicy::NAMES)), Without "`fifo`",
            "of a `taskset`: class of the threads, a priority each, from one below `priority` of `[scheduling]` down, or runtime, deadline and period";
        "margin": Kind::Time { least_ns: 0 }, Without "a tenth of the wcet, at least 100us",
            "of a `taskset`: what a `deadline` thread's runtime is above its wcet; refused for `fifo`";
        "duration": SOME_TIME, Without "10s", "of a `taskset`: length of a trial; a task has the jobs that are released in it";
        "tasks": Kind::Text, Without "none",
            "of a `taskset`: its file, beside this one unless the path is absolute; in any format that `analyze` reads";
        "task": Kind::Tables { of: &TASK, most: taskset::Limits::TASKS }, Without "none", "of a `taskset`: its tasks, where no file has them";
        "reservation": Kind::Tables { of: &RESERVATION, most: taskset::Limits::CELLS }, Without "none",
            "of a `taskset`: reservations of its cells, where no file has them";
        "program": WORDS, Without "each cell has its own",
            "of a `program`: its path, beside this file unless it is absolute, and its arguments";
        "reports": Kind::Boolean, Default "false",
            "of a `program`: whether its jobs are those that it reports through timecell's client; otherwise each execution of it is a job";
        "endless": Kind::Boolean, Default "false",
            "of a `program`: it neither ends nor reports, and runs for a `period` in each round; refused beside `reports`, `jobs`, `deadline`, `pacing`, `[turns]` and histograms";
    },
};

static TASK: Shape = Shape {
    title: "[[workload.task]]",
    name: "task",
    doc: "A task of the set.",
    choice: false,
    keys: keys! {
        "name": Kind::Label, Required "\"control\"", "its name; each once in its cell";
        "cell": Kind::Label, Default "\"set\"", "the cell in which it runs";
        "wcet": SOME_TIME, Required "\"1ms\"", "worst-case execution time; at most the deadline and 1s";
        "period": SOME_TIME, Required "\"10ms\"", "time between releases, 10us to 1h";
        "deadline": SOME_TIME, Without "the period", "when a job must have ended after its release";
        "priority": PRIORITY, Without "by deadlines", "a larger number is more urgent; all tasks of a cell or none";
    },
};

static RESERVATION: Shape = Shape {
    title: "[[workload.reservation]]",
    name: "reservation",
    doc: "What a cell of the set is held to: budget and period, and its place among others.",
    choice: false,
    keys: keys! {
        "cell": Kind::Label, Required "\"first\"",
            "whose reservation it is, each cell once; budget and period, `cpu` or `priority` must be beside it";
        "budget": SOME_TIME, Without "the least that is certain to do",
            "cpu time in every period, at most that; both or none, and both where cells share a cpu";
        "period": SOME_TIME, Without "the least that is certain to do", "time between refills";
        "cpu": whole(0..=*taskset::Limits::CPUS.end() - 1), Without "one of its own",
            "the cell's cpu among those used, from 0: the first of `[scheduling]`, the next one, then the highest that are free; in trials that hold nothing, too";
        "priority": PRIORITY, Without "the shorter period first",
            "of the cell among those on its cpu, a larger number is more urgent: all its threads come before those of the others";
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
        "cpus": CPUS, Without "one cpu, chosen on the machine", "cell i is pinned to the i-th, in turn";
    },
};

static TRIAL: Shape = Shape {
    title: "[[trial]]",
    name: "trial",
    doc: "Cells that run together.",
    choice: false,
    keys: keys! {
        "name": Kind::Part, Without "the engine and its loads, if the trial has one cell",
            "name in tables, each its own; required for several cells";
        "cells": list(&Kind::Any(&[ENGINE, Kind::Table(&CELL)],
            "an engine such as \"bare\", or a table such as { engine = \"crun\", period = \"10ms\" }")),
            Required "[\"bare\"]", "the engine of each cell, or a table of what it has of its own";
        "copies": whole(Limits::CELLS), Default "1", "repeats the list; a trial has 1 to 4,096 cells in all";
        "load": LOAD, Without "`idle`", "what disturbs the cells";
        "loads": LOAD_LIST, Without "none", "several that run together, with different names; refused beside `load`";
        "period": PERIOD, Without "the workload's", "time between releases in this trial";
        "jobs": JOBS, Without "the workload's", "activations of each cell in this trial";
        "isolate": Kind::Boolean, Default "false", "whether the cells' cpus are kept free of other work";
        "cpus": CPUS, Without "those of `[scheduling]`", "cpus of this trial's cells, in turn";
        "per_cpu": Kind::Boolean, Default "false",
            "runs `cells` once on every cpu of the trial, of `[scheduling]`, else of the machine; with `isolate` on all but the lowest of the machine";
        "competitors": Kind::Number { least: 0.0, most: 0.9 }, Without "0",
            "of a task set: the share of a cpu that a competing cell takes beside each cell of the set";
        "reserve": Kind::Choice(&names_of!(["none"], Enforcer::OF_BENCH)), Without "`none`",
            "of a task set: what holds the cells to their reservations; `--reserve` says it for all trials";
        "parts": Kind::List { of: &Kind::Label, least: 0, most: 4_096, unique: false }, Default "[]",
            "of a task set: the cells of the set that run; empty: all";
    },
};

static CELL: Shape = Shape {
    title: "a cell",
    name: "cell",
    doc: "A cell with a task of its own.",
    choice: false,
    keys: keys! {
        "engine": ENGINE, Required "\"crun\"", "what makes the cell";
        "name": Kind::Part, Without "the number and the engine", "name in tables, behind that of the trial; each once, and not with `copies`";
        "program": WORDS, Without "the trial's work", "as in `[workload]`";
        "reports": Kind::Boolean, Default "false", "as in `[workload]`";
        "endless": Kind::Boolean, Default "false", "as in `[workload]`";
        "steps": STEPS, Without "the trial's work", "`mac` jobs of this length";
        "period": PERIOD, Without "the trial's", "time between releases";
        "deadline": PERIOD, Without "the workload's; the period where work or period are the cell's own", "as in `[workload]`";
        "jobs": JOBS, Without "as many as take as long as the trial's", "activations of this cell";
        "priority": RT_PRIORITY, Without "that of `[scheduling]`", "of SCHED_FIFO; refused for class `other`";
    },
};

static LOADS: Shape = Shape {
    title: "a load",
    name: "load",
    doc: "What disturbs the cells of a trial.",
    choice: false,
    keys: keys! {
        "kind": Kind::Choice(&names_of!([], LoadKind::ALL)), Required "\"cpu\"", "what it does";
        "name": Kind::Part, Without "the kind", "name in tables";
        "form": Kind::Choice(&names(&FORMS)), Without "the program where it is installed", "which of its two forms";
        "command": list(&Kind::Word), Without "required for `custom`", "program and arguments; refused for every other kind";
        "cpus": CPUS, Without "all of them", "cpus that the load may use";
        "in": Kind::Choice(&names(&PLACES)), Default "\"host\"", "where it runs";
        "engine": Kind::Choice(&names_of!([], RUNTIMES)), Without "`embedded`", "what makes its cell; only with `in = \"cell\"`";
    },
};

static MATRIX: Shape = Shape {
    title: "[matrix]",
    name: "matrix",
    doc: "Trials as a cross product.",
    choice: false,
    keys: keys! {
        "cells": list(&ENGINES), Required "[[\"bare\"], [\"crun\"]]", "the cells of each trial: a list of engines";
        "loads": list(&Kind::Any(&[Kind::Choice(LoadKind::NAMES), Kind::Table(&LOADS), LOAD_LIST], "a load, `idle`, or a list of loads that run together")),
            Without "no load", "the loads of each trial";
        "periods": list(&PERIOD), Without "the workload's", "the period of each trial";
        "isolate": list(&Kind::Boolean), Default "[false]", "as in a trial";
        "per_cpu": Kind::Boolean, Default "false", "as in a trial, for all of them";
        "duration": SOME_TIME, Without "the workload's jobs", "length of each trial; gives every period its own number of jobs";
    },
};

static SCALE: Shape = Shape {
    title: "[scale]",
    name: "scale",
    doc: "A study of growing numbers of cells.",
    choice: false,
    keys: keys! {
        "engines": list(&ENGINE), Required "[\"embedded\"]", "the engines, each once, each with cells of its own kind only";
        "counts": list(&whole(Limits::CELLS)), Without "1, 2, 10, 16, 20, 32, 50, 64, 80, 100, 128, 256, 512, 1024, 2048",
            "cells that run together, ascending";
        "failure_limit": Kind::Number { least: 0.0, most: 1.0 }, Default "0.01",
            "share of one trial's cells that may fail, in steps of 0.001; where more do, larger counts of that engine are left out";
        "parallel": whole(Scale::PARALLEL), Default "8", "cells that are created at the same time";
        "total_jobs": whole(Scale::TOTAL_JOBS), Default "100000",
            "jobs of all cells of a trial together, about: each has this divided by the count, 300 at least and the workload's `jobs` at most";
        "reserve": Kind::Choice(&names_of!(["none"], Enforcer::OF_SCALE)), Default "\"none\"", "how each cell is held to an equal share";
        "memory_reserve": Kind::Size { least: 0 }, Without "a twentieth of the machine's, at least 128 MiB, at most half",
            "memory that is left to everybody else; where less is available no more cells are made and those that run are stopped";
        "starvation_limit": within(Scale::STARVATION_NS), Default "\"5s\"",
            "the cells are stopped when ordinary work has had no turn for so long";
    },
};

static TURNS: Shape = Shape {
    title: "[turns]",
    name: "turns",
    doc: "How trials take turns.",
    choice: false,
    keys: keys! {
        "length": within(LENGTH_NS), Default "\"12ms\"", "length of a turn; 5 jobs more than `settle` at least, whatever it says";
        "settle": whole(0..=MOST_SETTLE), Default "2", "jobs at the beginning of each turn that are recorded and not compared";
        "catch_up": whole(0..=MOST_CATCH_UP), Default "2",
            "periods that a program which reports its jobs has in each turn before they count, since it was stopped";
        "decide": Kind::Number { least: 0.0001, most: 1.0 }, Without "all rounds",
            "the run ends once every ratio of medians of the main metric to the baseline is known to within this part, or is shown to differ from 1; exit code 1 if one is neither at the end";
    },
};
