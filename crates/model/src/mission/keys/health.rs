//! The keys of health rules.

use crate::Choice;
use crate::file::{Kind, Shape, keys};
use crate::mission::{Action, ExitStatus, Observed};

const COUNT: Kind = Kind::Integer {
    least: 1,
    most: 1_000_000,
};
const SOME_TIME: Kind = Kind::Time { least_ns: 1 };
/// The shortest time that a supervisor can tell from its own wake-up latency.
const SILENCE: Kind = Kind::Time {
    least_ns: 1_000_000,
};

/// The parameters of each observation: its name, the required ones, the optional ones.
pub(in crate::mission) const PARAMETERS: [(&str, &[&str], &[&str]); 9] = [
    ("exit", &[], &["status"]),
    ("heartbeat", &["timeout"], &["task"]),
    ("deadline-misses", &["misses", "jobs"], &["task"]),
    ("budget-exhausted", &["periods"], &[]),
    ("memory-limit", &[], &[]),
    ("no-progress", &["timeout"], &[]),
    ("overrun", &[], &["task"]),
    ("unproved", &[], &["task"]),
    ("restart-limit", &[], &[]),
];

/// `[[cell.health]]`.
pub(super) static RULE: Shape = Shape {
    title: "[[cell.health]]",
    name: "rule",
    doc: "A health rule: what is watched of the cell, and what is done when it is observed.",
    choice: false,
    keys: keys! {
        "when": Kind::Choice(&Observed::NAMES), Required "\"deadline-misses\"", "what is watched";
        "do": Kind::Choice(Action::WORDS), Required "\"restart\"", "what is done when it is observed";
        "task": Kind::Label, Without "any; misses are counted for each task separately",
            "the task that is watched; for `heartbeat`, `deadline-misses`, `overrun` and `unproved`";
        "timeout": SILENCE, Without "required", "the longest silence or standstill; for `heartbeat` and `no-progress`";
        "misses": COUNT, Without "required", "late or missed jobs, at most `jobs`; for `deadline-misses`";
        "jobs": COUNT, Without "required", "number of latest jobs among which `misses` counts; for `deadline-misses`";
        "periods": COUNT, Without "required", "consecutive periods in which the budget was used up; for `budget-exhausted`";
        "status": Kind::Choice(ExitStatus::WORDS), Without "`failure`", "whether a status of 0 counts too; for `exit`";
        "times": COUNT, Default "1", "how often it must be observed within `window` before the rule acts";
        "window": SOME_TIME, Without "required with `times` above 1 and with `escalate`",
            "how long an observation and an action count";
        "cooldown": Kind::Time { least_ns: 0 }, Default "\"0ms\"",
            "time after an action in which no other is taken; observations are still counted and recorded";
        "escalate": Kind::Tables { of: &STEP, most: 16 }, Without "never",
            "actions to take instead once the rule has acted often; ascending by `after`";
    },
};

static STEP: Shape = Shape {
    title: "an item of `escalate`",
    name: "step",
    doc: "A step of escalation.",
    choice: false,
    keys: keys! {
        "after": COUNT, Required "3", "how often the rule must have acted within `window`";
        "do": Kind::Choice(Action::WORDS), Required "\"stop\"", "action from then on";
    },
};
