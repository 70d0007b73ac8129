//! The keys of health rules.

use crate::file::{Kind, Shape, keys, names};
use crate::mission::{Action, ExitStatus, Observed};

const ACTIONS: &[&str] = &names(&Action::NAMES);
const STATUSES: &[&str] = &names(&ExitStatus::NAMES);

const COUNT: Kind = Kind::Integer {
    least: 1,
    most: 1_000_000,
};
const SOME_TIME: Kind = Kind::Time { least_ns: 1 };
/// What a supervisor can tell apart from its own waking.
const SILENCE: Kind = Kind::Time {
    least_ns: 1_000_000,
};

/// Which parameters say more of what is observed: its name, those that must be there, those that may.
pub(in crate::mission) const PARAMETERS: [(&str, &[&str], &[&str]); 8] = [
    ("exit", &[], &["status"]),
    ("heartbeat", &["timeout"], &["task"]),
    ("deadline-misses", &["misses", "jobs"], &["task"]),
    ("budget-exhausted", &["periods"], &[]),
    ("memory-limit", &[], &[]),
    ("no-progress", &["timeout"], &[]),
    ("overrun", &[], &["task"]),
    ("restart-limit", &[], &[]),
];

/// `[[cell.health]]`.
pub(super) static RULE: Shape = Shape {
    title: "[[cell.health]]",
    name: "rule",
    doc: "A health rule: what is observed of the cell, and what is done about it.",
    choice: false,
    keys: keys! {
        "when": Kind::Choice(&Observed::NAMES), Required "\"deadline-misses\"", "what is observed";
        "do": Kind::Choice(ACTIONS), Required "\"restart\"", "what is done about it";
        "task": Kind::Label, Without "any; misses are counted for each by itself",
            "the task that it is about; of `heartbeat`, `deadline-misses` and `overrun`";
        "timeout": SILENCE, Without "required", "the longest silence or standstill; of `heartbeat` and `no-progress`";
        "misses": COUNT, Without "required", "late or missed jobs, at most `jobs`; of `deadline-misses`";
        "jobs": COUNT, Without "required", "among the last so many jobs; of `deadline-misses`";
        "periods": COUNT, Without "required", "periods in a row in which the budget was used up; of `budget-exhausted`";
        "status": Kind::Choice(STATUSES), Without "`failure`", "whether a status of 0 counts too; of `exit`";
        "times": COUNT, Default "1", "how often it must be observed within `window` before the rule acts";
        "window": SOME_TIME, Without "required with `times` above 1 and with `escalate`",
            "how long an observation and an action count";
        "cooldown": Kind::Time { least_ns: 0 }, Default "\"0ms\"",
            "how long after an action nothing is done; what is observed then is counted and recorded";
        "escalate": Kind::Tables { of: &STEP, most: 16 }, Without "never",
            "what is done instead once the rule has acted often; ascending by `after`";
    },
};

static STEP: Shape = Shape {
    title: "an item of `escalate`",
    name: "step",
    doc: "A step up.",
    choice: false,
    keys: keys! {
        "after": COUNT, Required "3", "how often the rule must have acted within `window`";
        "do": Kind::Choice(ACTIONS), Required "\"stop\"", "what is done from then on";
    },
};
