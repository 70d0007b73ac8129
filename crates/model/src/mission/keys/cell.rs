//! The keys of a cell.

use super::health::RULE;
use super::rights::RIGHTS;
use super::{CELL_NAMES, CPUS};
use crate::EngineKind;
use crate::file::{Kind, Shape, keys, names, names_of};
use crate::mission::{Arrivals, CellClass, Criticality, Limits, Ready, RestartPolicy, WhenShed};

const ENGINES: &[&str] = &names_of!([], EngineKind::OF_MISSIONS);
const CLASSES: &[&str] = &names(&CellClass::NAMES);
const CRITICALITIES: &[&str] = &names(&Criticality::NAMES);
const SHEDDINGS: &[&str] = &names(&WhenShed::NAMES);
const READINESS: &[&str] = &names(&Ready::NAMES);
const ARRIVALS: &[&str] = &names(&Arrivals::NAMES);
const RESTARTS: &[&str] = &names(&RestartPolicy::NAMES);

const ARGUMENTS: Kind = Kind::List {
    of: &Kind::Word,
    least: 0,
    most: 4_096,
    unique: false,
};
/// 1 ns, for times that would be nothing at 0.
const SOME_TIME: Kind = Kind::Time { least_ns: 1 };
const ANY_TIME: Kind = Kind::Time { least_ns: 0 };
const PRIORITY: Kind = Kind::Integer {
    least: *Limits::PRIORITY.start(),
    most: *Limits::PRIORITY.end(),
};

/// `[[cell]]`.
pub(super) static CELL: Shape = Shape {
    title: "[[cell]]",
    name: "cell",
    doc: "A cell: one application in its place.",
    choice: false,
    keys: keys! {
        "name": Kind::Name, Required "\"control\"", "its name; each once in the mission, and none is `supervisor`";
        "description": Kind::Text, Default "\"\"", "what it does";
        "image": Kind::Table(&IMAGE), Required "{ rootfs = \"DIR\" }", "what the cell is made from";
        "command": Kind::List { of: &Kind::Word, least: 1, most: 4_096, unique: false }, Without "what the image says",
            "program inside the cell and its first arguments; required with `rootfs`, refused with `binary`";
        "args": ARGUMENTS, Default "[]",
            "further arguments; without `command` they replace those of the image, and a `bundle` takes none";
        "env": Kind::Environment, Without "none beyond the image's", "environment variables";
        "workdir": Kind::CellPath, Without "what the image says, else `/`", "directory in which the program begins";
        "engine": Kind::Choice(ENGINES), Default "\"embedded\"", "what makes the cell";
        "class": Kind::Choice(CLASSES), Without "what the enforcer needs",
            "scheduling class of its threads; `other` is best effort: nothing is guaranteed";
        "criticality": Kind::Choice(CRITICALITIES), Default "\"lo\"", "`lo` may be shed in favour of others, `hi` never is";
        "when_shed": Kind::Choice(SHEDDINGS), Default "\"freeze\"", "what shedding does to it; only of criticality `lo`";
        "cpus": CPUS, Without "placed on one of the mission's; of class `other` the cpus that are none of the mission's, or all",
            "cpus that its threads may use; within the mission's `cpus` unless its class is `other`";
        "priorities": Kind::Table(&PRIORITIES), Without "those of its tasks, else found by admission",
            "SCHED_FIFO priorities that its threads may have; cells that may share a cpu have none in common";
        "reservation": Kind::Table(&RESERVATION), Without "the least that its tasks need",
            "what it is certain to get; required without tasks, refused in class `other`";
        "only_tasks": Kind::Boolean, Default "false",
            "`true`: nothing runs in the cell but its tasks, so that an ample budget, one that they cannot use up, will do; needs tasks, class `fifo` and an enforcer that has such budgets, `freezer` or `rt-cgroup`";
        "task": Kind::Tables { of: &TASK, most: Limits::TASKS }, Without "none",
            "its tasks; required without a reservation, refused in class `other`";
        "after": CELL_NAMES, Default "[]", "cells that are started, and ready, before it";
        "needs": CELL_NAMES, Default "[]", "the same, and it is stopped as soon as one of them stops";
        "ready": Kind::Choice(READINESS), Default "\"started\"",
            "when those that wait for it may start: `first-job` when it has reported the end of a job";
        "start_timeout": Kind::Time { least_ns: 1_000_000 }, Default "\"10s\"", "how long it may take to become ready";
        "stop_timeout": ANY_TIME, Default "\"1s\"",
            "how long it may take to end after SIGTERM, before it is killed; one that does not handle SIGTERM is killed at once";
        "restart": Kind::Table(&RESTART), Without "its defaults",
            "what follows when its program ends without having been told to";
        "health": Kind::Tables { of: &RULE, most: 64 }, Without "what is observed is only recorded",
            "what is observed and what is done about it";
        "rights": Kind::Table(&RIGHTS), Without "nothing", "what it may have of the machine";
    },
};

static IMAGE: Shape = Shape {
    title: "`image`",
    name: "image",
    doc: "What a cell is made from: one of these. Relative paths count from the directory of the mission file.",
    choice: true,
    keys: keys! {
        "rootfs": Kind::HostPath, Without "",
            "directory that becomes the cell's root; engines `embedded`, `crun`, `runc`, `podman`";
        "bundle": Kind::HostPath, Without "",
            "OCI bundle: a directory with `config.json`, whose rights are replaced by those of the mission; engines `embedded`, `crun`, `runc`";
        "reference": Kind::Reference, Without "",
            "name by which the engine knows an image, such as `localhost/camera:1.2`; engine `podman`";
        "binary": Kind::HostPath, Without "", "static program, all that the cell's root holds; engines as for `rootfs`";
    },
};

static PRIORITIES: Shape = Shape {
    title: "`priorities`",
    name: "priorities",
    doc: "A band of SCHED_FIFO priorities; a larger number is more urgent.",
    choice: false,
    keys: keys! {
        "lowest": PRIORITY, Required "40", "the lowest of them; 98 only where the class of `supervisor` is `other`";
        "highest": PRIORITY, Required "49", "the highest of them; 98 only where the class of `supervisor` is `other`";
    },
};

static RESERVATION: Shape = Shape {
    title: "`reservation`",
    name: "reservation",
    doc: "A budget in every period; of a cell on several cpus the sum over them.",
    choice: false,
    keys: keys! {
        "budget": SOME_TIME, Required "\"3ms\"", "cpu time in every period";
        "period": SOME_TIME, Required "\"10ms\"", "time between refills";
        "deadline": SOME_TIME, Without "the period",
            "how long after a refill the budget must have been there; at most the period, and none on several cpus";
        "budget_hi": SOME_TIME, Without "the budget",
            "the budget in high mode, at least `budget`; only with [modes], of criticality `hi`";
    },
};

static TASK: Shape = Shape {
    title: "[[cell.task]]",
    name: "task",
    doc: "A task of the cell, with the keys of a task-set file.",
    choice: false,
    keys: keys! {
        "name": Kind::Label, Required "\"loop\"", "its name; each once in the cell";
        "wcet": SOME_TIME, Required "\"1ms\"", "worst-case execution time; at most the deadline";
        "wcet_hi": SOME_TIME, Without "the wcet",
            "the wcet in high mode, from `wcet` to the deadline; only with [modes], of criticality `hi`";
        "period": SOME_TIME, Required "\"10ms\"", "least time between arrivals";
        "deadline": SOME_TIME, Without "the period",
            "counted from the arrival; may exceed the period unless the class is `deadline`";
        "jitter": ANY_TIME, Default "\"0ms\"", "a job is released at most so long after its arrival";
        "blocking": ANY_TIME, Default "\"0ms\"", "the longest time for which less urgent work can delay a job";
        "priority": PRIORITY, Without "found by admission",
            "SCHED_FIFO priority of its thread; all tasks of a cell or none, each its own, within the cell's `priorities`; 98 only where the class of `supervisor` is `other`";
        "thread": Kind::Thread, Without "the name of the task",
            "name of its thread (`comm`), by which it is found where each task is held by itself; each once in the cell";
        "arrivals": Kind::Choice(ARRIVALS), Default "\"periodic\"",
            "`periodic`: a release that is left out is a missed deadline; `sporadic`: jobs come when something happens, with at least a period between two";
    },
};

static RESTART: Shape = Shape {
    title: "[cell.restart]",
    name: "restart",
    doc: "What follows when the cell's program ends without having been told to. The first restart within the window comes at once, the second after `backoff_min`, each further one after twice the wait, up to `backoff_max`.",
    choice: false,
    keys: keys! {
        "policy": Kind::Choice(RESTARTS), Default "\"on-failure\"",
            "whether it is restarted; `on-failure`: after a signal or a status other than 0";
        "backoff_min": ANY_TIME, Default "\"100ms\"", "wait before the second restart";
        "backoff_max": ANY_TIME, Default "\"10s\"", "longest wait";
        "limit": Kind::Integer { least: 1, most: 1_000_000 }, Default "5",
            "restarts within the window; one more leaves the cell stopped";
        "window": SOME_TIME, Default "\"1min\"", "how long a restart counts";
    },
};
