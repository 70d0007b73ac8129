//! The keys of a cell.

use super::health::RULE;
use super::{CELL_NAMES, CPUS};
use crate::Choice;
use crate::EngineKind;
use crate::file::{Field, Kind, Shape, keys, names_of};
use crate::mission::{
    Arrivals, CellClass, Criticality, Limits, Ready, RestartPolicy, Rights, WhenShed,
};

const ENGINES: &[&str] = &names_of!([], EngineKind::OF_MISSIONS);

const ARGUMENTS: Kind = Kind::List {
    of: &Kind::Word,
    least: 0,
    most: 4_096,
    unique: false,
};
/// 1 ns, for times that must not be 0.
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
    doc: "A cell: an isolated place in which one application runs.",
    choice: false,
    keys: keys! {
        "name": Kind::Name, Required "\"control\"", "its name; unique in the mission; not `supervisor`";
        "description": Kind::Text, Default "\"\"", "what it does";
        "image": Kind::Table(&IMAGE), Required "{ rootfs = \"DIR\" }", "what the cell is made from";
        "command": Kind::List { of: &Kind::Word, least: 1, most: 4_096, unique: false }, Without "the image's",
            "program inside the cell and its first arguments; required with `rootfs`, refused with `binary`";
        "args": ARGUMENTS, Default "[]",
            "further arguments; without `command` they replace those of the image; not with a `bundle` alone";
        "env": Kind::Environment, Without "only the image's", "environment variables";
        "workdir": Kind::CellPath, Without "the image's, else `/`", "working directory of the program";
        "engine": Kind::Choice(ENGINES), Default "\"embedded\"", "engine that makes it";
        "class": Kind::Choice(CellClass::WORDS), Without "what the enforcer needs",
            "scheduling class of its threads; `other` is best effort: nothing is guaranteed";
        "criticality": Kind::Choice(Criticality::WORDS), Default "\"lo\"", "`lo` may be shed in favour of others, `hi` never is";
        "when_shed": Kind::Choice(WhenShed::WORDS), Default "\"freeze\"", "what shedding does to it; only with criticality `lo`";
        "cpus": CPUS, Without "one of the mission's, chosen by admission; class `other`: all cpus that are not the mission's, if any, else all",
            "cpus that its threads may use; within the mission's `cpus` unless its class is `other`";
        "priorities": Kind::Table(&PRIORITIES), Without "those of its tasks, else chosen by admission",
            "SCHED_FIFO priorities that its threads may have; those of cells that may share a cpu must not overlap";
        "reservation": Kind::Table(&RESERVATION), Without "the least that its tasks need",
            "cpu time that is guaranteed to it; required without tasks, refused in class `other`";
        "only_tasks": Kind::Boolean, Default "false",
            "`true`: the cell runs nothing but its tasks, so an ample budget, which they cannot use up, suffices; needs tasks, class `fifo` or `rr` and enforcer `freezer` or `rt-cgroup`";
        "task": Kind::Tables { of: &TASK, most: Limits::TASKS }, Without "none",
            "its tasks; required without a reservation, refused in class `other`";
        "after": CELL_NAMES, Default "[]", "cells that must be started and ready before it";
        "needs": CELL_NAMES, Default "[]", "as `after`; it is also stopped as soon as one of them stops";
        "ready": Kind::Choice(Ready::WORDS), Default "\"started\"",
            "when the cells that wait for it may start; `first-job`: once it has reported the end of a job";
        "start_timeout": Kind::Time { least_ns: 1_000_000 }, Default "\"10s\"", "how long it may take to become ready";
        "stop_timeout": ANY_TIME, Default "\"1s\"",
            "how long it may take to end after SIGTERM before it is killed; a program that does not handle SIGTERM is killed at once";
        "restart": Kind::Table(&RESTART), Without "its defaults",
            "what happens when its program ends on its own";
        "health": Kind::Tables { of: &RULE, most: 64 }, Without "observations are only recorded",
            "what is watched, and what is done when it is observed";
        "rights": Rights::KIND, Without "nothing", "what it may use of the machine";
    },
};

static IMAGE: Shape = Shape {
    title: "`image`",
    name: "image",
    doc: "What a cell is made from: one of these. Relative paths start at the directory of the mission file.",
    choice: true,
    keys: keys! {
        "rootfs": Kind::HostPath, Without "",
            "directory that becomes the cell's root; engines `embedded`, `crun`, `runc`, `podman`";
        "bundle": Kind::HostPath, Without "",
            "OCI bundle: a directory with `config.json`; the mission's rights replace those in it; engines `embedded`, `crun`, `runc`";
        "reference": Kind::Reference, Without "",
            "name by which the engine knows an image, such as `localhost/camera:1.2`; engine `podman`";
        "binary": Kind::HostPath, Without "", "static program, the only file in the cell's root; engines as for `rootfs`";
    },
};

static PRIORITIES: Shape = Shape {
    title: "`priorities`",
    name: "priorities",
    doc: "A band of SCHED_FIFO priorities; a larger number is more urgent.",
    choice: false,
    keys: keys! {
        "lowest": PRIORITY, Required "40", "the lowest of them; 98 only if the class of `supervisor` is `other`";
        "highest": PRIORITY, Required "49", "the highest of them; 98 only if the class of `supervisor` is `other`";
    },
};

static RESERVATION: Shape = Shape {
    title: "`reservation`",
    name: "reservation",
    doc: "A budget in every period; for a cell on several cpus, the sum over them.",
    choice: false,
    keys: keys! {
        "budget": SOME_TIME, Required "\"3ms\"", "cpu time in every period";
        "period": SOME_TIME, Required "\"10ms\"", "time between refills";
        "deadline": SOME_TIME, Without "the period",
            "time after a refill by which the budget must have been supplied; at most the period; not on several cpus";
        "budget_hi": SOME_TIME, Without "the budget",
            "the budget in high mode, at least `budget`; only with [modes] and criticality `hi`";
    },
};

static TASK: Shape = Shape {
    title: "[[cell.task]]",
    name: "task",
    doc: "A task of the cell, with the keys of a task-set file.",
    choice: false,
    keys: keys! {
        "name": Kind::Label, Required "\"loop\"", "its name; unique in the cell";
        "wcet": SOME_TIME, Required "\"1ms\"", "worst-case execution time; at most the deadline";
        "wcet_hi": SOME_TIME, Without "the wcet",
            "the wcet in high mode, from `wcet` to the deadline; only with [modes] and criticality `hi`";
        "period": SOME_TIME, Required "\"10ms\"", "minimum time between arrivals";
        "deadline": SOME_TIME, Without "the period",
            "counted from the arrival; may exceed the period unless the class is `deadline`";
        "jitter": ANY_TIME, Default "\"0ms\"", "longest delay from the arrival of a job to its release";
        "blocking": ANY_TIME, Default "\"0ms\"", "the longest time for which less urgent work can delay a job";
        "priority": Kind::Integer { least: 1, most: 99 }, Without "chosen by admission",
            "priority that the program itself gives its thread, which tells the order of the tasks; for all tasks of a cell or for none; unique in the cell. Its thread runs at this priority where the cell has it, else in the same order within those it has";
        "thread": Kind::Thread, Without "the name of the task",
            "name of its thread (`comm`), by which it is found where the application does not report its jobs; unique in the cell";
        "arrivals": Kind::Choice(Arrivals::WORDS), Default "\"periodic\"",
            "`periodic`: a skipped release is a missed deadline; `sporadic`: jobs are released by events, at least a period apart";
    },
};

static RESTART: Shape = Shape {
    title: "[cell.restart]",
    name: "restart",
    doc: "What happens when the cell's program ends on its own. The first restart within the window is immediate, the second waits for `backoff_min`, and each further one twice as long as the one before, up to `backoff_max`.",
    choice: false,
    keys: keys! {
        "policy": Kind::Choice(RestartPolicy::WORDS), Default "\"on-failure\"",
            "when it is restarted; `on-failure`: after a signal or a status other than 0";
        "backoff_min": ANY_TIME, Default "\"100ms\"", "wait before the second restart";
        "backoff_max": ANY_TIME, Default "\"10s\"", "longest wait";
        "limit": Kind::Integer { least: 1, most: 1_000_000 }, Default "5",
            "restarts allowed within the window; at the next one the cell stays stopped";
        "window": SOME_TIME, Default "\"1min\"", "how long a restart counts";
    },
};
