//! The keys of health rules.

use super::{Key, Kind, Need, Shape, names};
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
pub(in super::super) const PARAMETERS: [(&str, &[&str], &[&str]); 8] = [
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
    keys: &[
        Key::required(
            "when",
            Kind::Choice(&Observed::NAMES),
            "\"deadline-misses\"",
            "what is observed",
        ),
        Key::required(
            "do",
            Kind::Choice(ACTIONS),
            "\"restart\"",
            "what is done about it",
        ),
        Key::without(
            "task",
            Kind::Label,
            "any; misses are counted for each by itself",
            "the task that it is about; of `heartbeat`, `deadline-misses` and `overrun`",
        ),
        Key::without(
            "timeout",
            SILENCE,
            "required",
            "the longest silence or standstill; of `heartbeat` and `no-progress`",
        ),
        Key::without(
            "misses",
            COUNT,
            "required",
            "late or missed jobs, at most `jobs`; of `deadline-misses`",
        ),
        Key::without(
            "jobs",
            COUNT,
            "required",
            "among the last so many jobs; of `deadline-misses`",
        ),
        Key::without(
            "periods",
            COUNT,
            "required",
            "periods in a row in which the budget was used up; of `budget-exhausted`",
        ),
        Key::without(
            "status",
            Kind::Choice(STATUSES),
            "`failure`",
            "whether a status of 0 counts too; of `exit`",
        ),
        Key {
            name: "times",
            kind: COUNT,
            need: Need::Default("1"),
            doc: "how often it must be observed within `window` before the rule acts",
        },
        Key::without(
            "window",
            SOME_TIME,
            "required with `times` above 1 and with `escalate`",
            "how long an observation and an action count",
        ),
        Key::default(
            "cooldown",
            Kind::Time { least_ns: 0 },
            "\"0ms\"",
            "how long after an action nothing is done; what is observed then is counted and recorded",
        ),
        Key::without(
            "escalate",
            Kind::Tables {
                of: &STEP,
                most: 16,
            },
            "never",
            "what is done instead once the rule has acted often; ascending by `after`",
        ),
    ],
};

static STEP: Shape = Shape {
    title: "an item of `escalate`",
    name: "step",
    doc: "A step up.",
    choice: false,
    keys: &[
        Key::required(
            "after",
            COUNT,
            "3",
            "how often the rule must have acted within `window`",
        ),
        Key::required(
            "do",
            Kind::Choice(ACTIONS),
            "\"stop\"",
            "what is done from then on",
        ),
    ],
};
