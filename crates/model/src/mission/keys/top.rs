//! The keys of the mission itself.

use super::cell::CELL;
use super::{Key, Kind, Shape, names};
use crate::Enforcer;
use crate::mission::{Limits, ModePolicy, Supervisor, SupervisorClass};

/// `auto` before the names of the enforcers.
const ENFORCERS: [&str; 1 + Enforcer::OF_MISSIONS.len()] = {
    let mut names = ["auto"; 1 + Enforcer::OF_MISSIONS.len()];
    let mut place = 1;
    while place < names.len() {
        names[place] = Enforcer::OF_MISSIONS[place - 1].name();
        place += 1;
    }
    names
};

const SUPERVISOR_CLASSES: &[&str] = &names(&SupervisorClass::NAMES);

const MODE_POLICIES: &[&str] = &names(&ModePolicy::NAMES);

pub(super) const CPUS: Kind = Kind::List {
    of: &Kind::Integer {
        least: 0,
        most: Limits::CPUS - 1,
    },
    least: 1,
    most: Limits::CPUS as usize,
    unique: true,
};

const WORDS: Kind = Kind::List {
    of: &Kind::Word,
    least: 1,
    most: 1_024,
    unique: false,
};

pub(super) const CELL_NAMES: Kind = Kind::List {
    of: &Kind::Name,
    least: 0,
    most: Limits::CELLS,
    unique: true,
};

/// The top level of the file.
pub(in super::super) static TOP: Shape = Shape {
    title: "the top level",
    name: "mission",
    doc: "The cells that are to be kept running, and what holds for all of them.",
    choice: false,
    keys: &[
        Key::required(
            "schema",
            Kind::Integer {
                least: 1,
                most: i64::MAX,
            },
            "1",
            "version of this format; a newer one is refused",
        ),
        Key::required(
            "name",
            Kind::Name,
            "\"my-mission\"",
            "name of the mission and part of the names of its cgroups and directories",
        ),
        Key::default("description", Kind::Text, "\"\"", "what it is for"),
        Key::default(
            "enforcer",
            Kind::Choice(&ENFORCERS),
            "\"auto\"",
            "kernel mechanism that holds cells to their budgets; `auto`: the cheapest that the kernel has",
        ),
        Key::without(
            "cpus",
            CPUS,
            "chosen on the machine",
            "cpus for the real-time cells",
        ),
        Key::without(
            "latency",
            Kind::Time { least_ns: 0 },
            "no allowance",
            "how late the kernel may wake a task; counts as blocking of every task",
        ),
        Key::without(
            "latency_run",
            Kind::HostPath,
            "`latency`",
            "directory of a run whose measured wake-up latency is taken for it; refused beside `latency`",
        ),
        Key::without(
            "supply_run",
            Kind::HostPath,
            "a conservative model",
            "directory of a run of `timecell bench supply`: what this kernel's budgets really supply",
        ),
        Key::without(
            "notify",
            WORDS,
            "only subscribers are told",
            "program of the host, by its absolute path, and its arguments: started by action `notify` with the incident as JSON on its standard input",
        ),
        Key::without(
            "shed",
            CELL_NAMES,
            "the last of the file first",
            "cells of criticality `lo` in the order in which they are shed; those not named follow, the last of the file first",
        ),
        Key::without(
            "uids",
            Kind::Table(&UIDS),
            "2,000,000,000 to 2,000,065,535",
            "user ids, and group ids of the same numbers, of which each cell gets one of its own",
        ),
        Key::without(
            "supervisor",
            Kind::Table(&SUPERVISOR),
            "1 ms every 20 ms",
            "what the supervisor reserves for itself, so that it reacts beside cells that use all that they were granted",
        ),
        Key::without(
            "modes",
            Kind::Table(&MODES),
            "one mode",
            "makes it a mission with a low and a high mode",
        ),
        Key::required(
            "cell",
            Kind::Tables {
                of: &CELL,
                most: Limits::CELLS,
            },
            "one with a name, an image, and tasks or a reservation",
            "the cells",
        ),
    ],
};

/// `uids`.
static UIDS: Shape = Shape {
    title: "`uids`",
    name: "uids",
    doc: "A range of user ids for cells that have none of their own.",
    choice: false,
    keys: &[
        Key::required("lowest", UID, "2000000000", "the lowest of them"),
        Key::required("highest", UID, "2000065535", "the highest of them"),
    ],
};

/// `supervisor`.
static SUPERVISOR: Shape = Shape {
    title: "`supervisor`",
    name: "supervisor",
    doc: "The reservation of the supervisor itself: before every cell of class FIFO within its budget, an ordinary process beyond it.",
    choice: false,
    keys: &[
        Key::default(
            "class",
            Kind::Choice(SUPERVISOR_CLASSES),
            "\"fifo\"",
            "`other`: it reserves nothing and is an ordinary process",
        ),
        Key::default(
            "budget",
            Kind::Time {
                least_ns: Supervisor::LEAST_NS,
            },
            "\"1ms\"",
            "cpu time of its threads together in each period; every cpu on which it may run is counted with it",
        ),
        Key::default(
            "period",
            Kind::Time {
                least_ns: Supervisor::LEAST_NS,
            },
            "\"20ms\"",
            "the period, from the budget to 1 s",
        ),
    ],
};

/// Neither root nor the id that means none.
const UID: Kind = Kind::Integer {
    least: 1,
    most: 4_294_967_294,
};

/// `[modes]`.
static MODES: Shape = Shape {
    title: "[modes]",
    name: "modes",
    doc: "Two modes: in low mode all cells run; when a cell of criticality `hi` needs more than its low budget, those of criticality `lo` are shed.",
    choice: false,
    keys: &[
        Key::default(
            "policy",
            Kind::Choice(MODE_POLICIES),
            "\"amc-rtb\"",
            "how the switch is analysed: adaptive mixed criticality, response-time bound",
        ),
        Key::default(
            "return_after",
            Kind::Time { least_ns: 0 },
            "\"0ms\"",
            "how long the real-time cpus must have been idle before the mission goes back to low mode",
        ),
    ],
};
