//! The keys of a cell.

use super::health::RULE;
use super::rights::RIGHTS;
use super::top::{CELL_NAMES, CPUS};
use super::{Key, Kind, Shape, names};
use crate::EngineKind;
use crate::mission::{Arrivals, CellClass, Criticality, Limits, Ready, RestartPolicy, WhenShed};

const ENGINES: [&str; EngineKind::OF_MISSIONS.len()] = {
    let mut engines = [""; EngineKind::OF_MISSIONS.len()];
    let mut place = 0;
    while place < engines.len() {
        engines[place] = EngineKind::OF_MISSIONS[place].name();
        place += 1;
    }
    engines
};
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
    keys: &[
        Key::required(
            "name",
            Kind::Name,
            "\"control\"",
            "its name; each once in the mission, and none is `supervisor`",
        ),
        Key::default("description", Kind::Text, "\"\"", "what it does"),
        Key::required(
            "image",
            Kind::Table(&IMAGE),
            "{ rootfs = \"DIR\" }",
            "what the cell is made from",
        ),
        Key::without(
            "command",
            Kind::List {
                of: &Kind::Word,
                least: 1,
                most: 4_096,
                unique: false,
            },
            "what the image says",
            "program inside the cell and its first arguments; required with `rootfs`, refused with `binary`",
        ),
        Key::default(
            "args",
            ARGUMENTS,
            "[]",
            "further arguments; without `command` they replace those of the image, and a `bundle` takes none",
        ),
        Key::without(
            "env",
            Kind::Environment,
            "none beyond the image's",
            "environment variables",
        ),
        Key::without(
            "workdir",
            Kind::CellPath,
            "what the image says, else `/`",
            "directory in which the program begins",
        ),
        Key::default(
            "engine",
            Kind::Choice(&ENGINES),
            "\"embedded\"",
            "what makes the cell",
        ),
        Key::without(
            "class",
            Kind::Choice(CLASSES),
            "what the enforcer needs",
            "scheduling class of its threads; `other` is best effort: nothing is guaranteed",
        ),
        Key::default(
            "criticality",
            Kind::Choice(CRITICALITIES),
            "\"lo\"",
            "`lo` may be shed in favour of others, `hi` never is",
        ),
        Key::default(
            "when_shed",
            Kind::Choice(SHEDDINGS),
            "\"freeze\"",
            "what shedding does to it; only of criticality `lo`",
        ),
        Key::without(
            "cpus",
            CPUS,
            "placed on one of the mission's; of class `other` the cpus that are none of the mission's, or all",
            "cpus that its threads may use; within the mission's `cpus` unless its class is `other`",
        ),
        Key::without(
            "priorities",
            Kind::Table(&PRIORITIES),
            "those of its tasks, else found by admission",
            "SCHED_FIFO priorities that its threads may have; cells that may share a cpu have none in common",
        ),
        Key::without(
            "reservation",
            Kind::Table(&RESERVATION),
            "the least that its tasks need",
            "what it is certain to get; required without tasks, refused in class `other`",
        ),
        Key::default(
            "only_tasks",
            Kind::Boolean,
            "false",
            "`true`: nothing runs in the cell but its tasks, so that an ample budget, one that they cannot use up, will do; needs tasks, class `fifo` and an enforcer that has such budgets, `freezer` or `rt-cgroup`",
        ),
        Key::without(
            "task",
            Kind::Tables {
                of: &TASK,
                most: Limits::TASKS,
            },
            "none",
            "its tasks; required without a reservation, refused in class `other`",
        ),
        Key::default(
            "after",
            CELL_NAMES,
            "[]",
            "cells that are started, and ready, before it",
        ),
        Key::default(
            "needs",
            CELL_NAMES,
            "[]",
            "the same, and it is stopped as soon as one of them stops",
        ),
        Key::default(
            "ready",
            Kind::Choice(READINESS),
            "\"started\"",
            "when those that wait for it may start: `first-job` when it has reported the end of a job",
        ),
        Key::default(
            "start_timeout",
            Kind::Time {
                least_ns: 1_000_000,
            },
            "\"10s\"",
            "how long it may take to become ready",
        ),
        Key::default(
            "stop_timeout",
            ANY_TIME,
            "\"1s\"",
            "how long it may take to end after SIGTERM, before it is killed; one that does not handle SIGTERM is killed at once",
        ),
        Key::without(
            "restart",
            Kind::Table(&RESTART),
            "its defaults",
            "what follows when its program ends without having been told to",
        ),
        Key::without(
            "health",
            Kind::Tables {
                of: &RULE,
                most: 64,
            },
            "what is observed is only recorded",
            "what is observed and what is done about it",
        ),
        Key::without(
            "rights",
            Kind::Table(&RIGHTS),
            "nothing",
            "what it may have of the machine",
        ),
    ],
};

static IMAGE: Shape = Shape {
    title: "`image`",
    name: "image",
    doc: "What a cell is made from: one of these. Relative paths count from the directory of the mission file.",
    choice: true,
    keys: &[
        Key::without(
            "rootfs",
            Kind::HostPath,
            "",
            "directory that becomes the cell's root; engines `embedded`, `crun`, `runc`, `podman`",
        ),
        Key::without(
            "bundle",
            Kind::HostPath,
            "",
            "OCI bundle: a directory with `config.json`, whose rights are replaced by those of the mission; engines `embedded`, `crun`, `runc`",
        ),
        Key::without(
            "reference",
            Kind::Reference,
            "",
            "name by which the engine knows an image, such as `localhost/camera:1.2`; engine `podman`",
        ),
        Key::without(
            "binary",
            Kind::HostPath,
            "",
            "static program, all that the cell's root holds; engines as for `rootfs`",
        ),
    ],
};

static PRIORITIES: Shape = Shape {
    title: "`priorities`",
    name: "priorities",
    doc: "A band of SCHED_FIFO priorities; a larger number is more urgent.",
    choice: false,
    keys: &[
        Key::required(
            "lowest",
            PRIORITY,
            "40",
            "the lowest of them; 98 only where the class of `supervisor` is `other`",
        ),
        Key::required(
            "highest",
            PRIORITY,
            "49",
            "the highest of them; 98 only where the class of `supervisor` is `other`",
        ),
    ],
};

static RESERVATION: Shape = Shape {
    title: "`reservation`",
    name: "reservation",
    doc: "A budget in every period; of a cell on several cpus the sum over them.",
    choice: false,
    keys: &[
        Key::required("budget", SOME_TIME, "\"3ms\"", "cpu time in every period"),
        Key::required("period", SOME_TIME, "\"10ms\"", "time between refills"),
        Key::without(
            "deadline",
            SOME_TIME,
            "the period",
            "how long after a refill the budget must have been there; at most the period, and none on several cpus",
        ),
        Key::without(
            "budget_hi",
            SOME_TIME,
            "the budget",
            "the budget in high mode, at least `budget`; only with [modes], of criticality `hi`",
        ),
    ],
};

static TASK: Shape = Shape {
    title: "[[cell.task]]",
    name: "task",
    doc: "A task of the cell, with the keys of a task-set file.",
    choice: false,
    keys: &[
        Key::required(
            "name",
            Kind::Label,
            "\"loop\"",
            "its name; each once in the cell",
        ),
        Key::required(
            "wcet",
            SOME_TIME,
            "\"1ms\"",
            "worst-case execution time; at most the deadline",
        ),
        Key::without(
            "wcet_hi",
            SOME_TIME,
            "the wcet",
            "the wcet in high mode, from `wcet` to the deadline; only with [modes], of criticality `hi`",
        ),
        Key::required(
            "period",
            SOME_TIME,
            "\"10ms\"",
            "least time between arrivals",
        ),
        Key::without(
            "deadline",
            SOME_TIME,
            "the period",
            "counted from the arrival; may exceed the period unless the class is `deadline`",
        ),
        Key::default(
            "jitter",
            ANY_TIME,
            "\"0ms\"",
            "a job is released at most so long after its arrival",
        ),
        Key::default(
            "blocking",
            ANY_TIME,
            "\"0ms\"",
            "the longest time for which less urgent work can delay a job",
        ),
        Key::without(
            "priority",
            PRIORITY,
            "found by admission",
            "SCHED_FIFO priority of its thread; all tasks of a cell or none, each its own, within the cell's `priorities`; 98 only where the class of `supervisor` is `other`",
        ),
        Key::without(
            "thread",
            Kind::Thread,
            "the name of the task",
            "name of its thread (`comm`), by which it is found where each task is held by itself; each once in the cell",
        ),
        Key::default(
            "arrivals",
            Kind::Choice(ARRIVALS),
            "\"periodic\"",
            "`periodic`: a release that is left out is a missed deadline; `sporadic`: jobs come when something happens, with at least a period between two",
        ),
    ],
};

static RESTART: Shape = Shape {
    title: "[cell.restart]",
    name: "restart",
    doc: "What follows when the cell's program ends without having been told to. The first restart within the window comes at once, the second after `backoff_min`, each further one after twice the wait, up to `backoff_max`.",
    choice: false,
    keys: &[
        Key::default(
            "policy",
            Kind::Choice(RESTARTS),
            "\"on-failure\"",
            "whether it is restarted; `on-failure`: after a signal or a status other than 0",
        ),
        Key::default(
            "backoff_min",
            ANY_TIME,
            "\"100ms\"",
            "wait before the second restart",
        ),
        Key::default("backoff_max", ANY_TIME, "\"10s\"", "longest wait"),
        Key::default(
            "limit",
            Kind::Integer {
                least: 1,
                most: 1_000_000,
            },
            "5",
            "restarts within the window; one more leaves the cell stopped",
        ),
        Key::default("window", SOME_TIME, "\"1min\"", "how long a restart counts"),
    ],
};
