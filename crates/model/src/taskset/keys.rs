//! The keys of the task-set file, each declared once. The reader, the JSON Schema and the tables of the documentation all follow
//! these declarations.

use super::{Limits, Order, Policy, Refill, ServerKind};
use crate::file::{Kind, Shape, keys, names, names_of};
use crate::{Choice, Enforcer};

/// The policies of files; the order and the cpus have their own keys.
pub(super) const POLICIES: [(&str, Policy); 7] = [
    ("fp", Policy::Fixed(Order::Deadline)),
    ("edf", Policy::Edf),
    ("edf-over-fp", Policy::EdfOverFixed),
    ("amc-rtb", Policy::AmcRtb(Order::Deadline)),
    ("edf-vd", Policy::EdfVd),
    ("global-fp", Policy::GlobalFixed(Order::Deadline, 1)),
    ("global-edf", Policy::GlobalEdf(1)),
];
pub(super) const CRITICALITIES: [(&str, bool); 2] = [("lo", false), ("hi", true)];

const SOME_TIME: Kind = Kind::Time { least_ns: 1 };
const ANY_TIME: Kind = Kind::Time { least_ns: 0 };
const CPUS: Kind = Kind::Integer {
    least: *Limits::CPUS.start(),
    most: *Limits::CPUS.end(),
};
const PRIORITY: Kind = Kind::Integer {
    least: i32::MIN as i64,
    most: i32::MAX as i64,
};

/// The top level of the file.
pub(super) static TOP: Shape = Shape {
    title: "the top level",
    name: "taskset",
    doc: "Tasks, the cells in which they run, and what each cell reserves of a cpu.",
    choice: false,
    keys: keys! {
        "schema": Kind::Integer { least: 1, most: i64::MAX }, Required "1", "version of this format; newer ones are refused";
        "cpus": CPUS, Without "not checked", "cpus that the cells share";
        "refill": Kind::Choice(Refill::WORDS), Default "\"apart\"",
            "`together`: the servers on each cpu are refilled at the same instants; they must have the same period";
        "enforcer": Kind::Choice(&names_of!([], Enforcer::OF_ANALYSIS)), Without "`deadline`",
            "Linux mechanism that would hold the reservations; `--enforcer` overrides it";
        "cell": Kind::Tables { of: &CELL, most: Limits::CELLS }, Required "at least one, with a name and [[cell.task]] below it", "the cells";
    },
};

/// `[[cell]]`.
static CELL: Shape = Shape {
    title: "[[cell]]",
    name: "cell",
    doc: "Tasks that one scheduler schedules within one reservation.",
    choice: false,
    keys: keys! {
        "name": Kind::Label, Required "\"control\"", "its name; unique in the file";
        "policy": Kind::Choice(&names(&POLICIES)), Default "\"fp\"", "how its tasks are scheduled";
        "order": Kind::Choice(Order::WORDS), Without "by `priority` if tasks have one, else by deadline",
            "where the priorities come from: shorter deadlines (`dm`) or periods (`rm`) first, the order in the `file`, or with `fp` the order that Audsley's algorithm finds (`audsley`)";
        "cpus": CPUS, Without "one; required with `global-fp` and `global-edf`",
            "number of cpus on which its tasks are scheduled globally; with a reservation, set it there";
        "reservation": Kind::Table(&RESERVATION), Without "a whole cpu", "cpu time that is guaranteed to it";
        "server": Kind::Choice(ServerKind::WORDS), Without "supply independent of the other cells",
            "kind of server that keeps the reservation among others on its cpu";
        "priority": PRIORITY, Without "none",
            "priority of the server on its cpu; a larger number is more urgent; unique; none for `cbs`";
        "cpu": Kind::Integer { least: 0, most: *Limits::CPUS.end() - 1 }, Without "0",
            "the server's cpu; required for all servers if one is not on cpu 0";
        "task": Kind::Tables { of: &TASK, most: Limits::TASKS }, Required "at least one, with name, wcet and period",
            "its tasks; at most 100,000 in the file";
    },
};

/// `reservation`.
static RESERVATION: Shape = Shape {
    title: "`reservation`",
    name: "reservation",
    doc: "A budget in every period; for a cell on several cpus, the sum over them.",
    choice: false,
    keys: keys! {
        "budget": SOME_TIME, Required "\"2ms\"", "cpu time in every period";
        "period": SOME_TIME, Required "\"10ms\"", "time between refills";
        "deadline": SOME_TIME, Without "the period",
            "time after a refill by which the budget must have been supplied; at most the period; not on several cpus";
        "cpus": CPUS, Without "one; required with `global-fp` and `global-edf`", "number of cpus that share the budget";
    },
};

/// `[[cell.task]]`.
static TASK: Shape = Shape {
    title: "[[cell.task]]",
    name: "task",
    doc: "A task of the cell.",
    choice: false,
    keys: keys! {
        "name": Kind::Label, Required "\"loop\"", "its name; unique in the cell";
        "wcet": SOME_TIME, Required "\"1ms\"", "worst-case execution time; at most the deadline";
        "period": SOME_TIME, Required "\"10ms\"", "minimum time between arrivals";
        "deadline": SOME_TIME, Without "the period", "counted from the arrival; may exceed the period";
        "jitter": ANY_TIME, Default "\"0ms\"", "longest delay from the arrival of a job to its release";
        "blocking": ANY_TIME, Default "\"0ms\"", "the longest time for which less urgent work can delay a job";
        "priority": PRIORITY, Without "none",
            "a larger number is more urgent, as in sched(7); for all tasks of the cell or for none; unique";
        "criticality": Kind::Choice(&names(&CRITICALITIES)), Default "\"lo\"", "only with `amc-rtb` and `edf-vd`";
        "wcet_hi": SOME_TIME, Without "the wcet", "the wcet in high mode, from `wcet` to the deadline; only with criticality `hi`";
    },
};
