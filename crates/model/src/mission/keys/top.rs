//! The keys of the mission itself.

use super::cell::CELL;
use super::{CELL_NAMES, CPUS};
use crate::Choice;
use crate::Enforcer;
use crate::file::{Kind, Shape, keys, names_of};
use crate::mission::{Limits, ModePolicy, Supervisor, SupervisorClass};

const ENFORCERS: &[&str] = &names_of!(["auto"], Enforcer::OF_MISSIONS);

const WORDS: Kind = Kind::List {
    of: &Kind::Word,
    least: 1,
    most: 1_024,
    unique: false,
};

/// The top level of the file.
pub(in crate::mission) static TOP: Shape = Shape {
    title: "the top level",
    name: "mission",
    doc: "The cells to keep running, and what applies to all of them.",
    choice: false,
    keys: keys! {
        "schema": Kind::Integer { least: 1, most: i64::MAX }, Required "1", "version of this format; newer ones are refused";
        "name": Kind::Name, Required "\"my-mission\"",
            "name of the mission; part of the names of its cgroups and directories";
        "description": Kind::Text, Default "\"\"", "its purpose";
        "enforcer": Kind::Choice(ENFORCERS), Default "\"auto\"",
            "mechanism that holds cells to their budgets; `auto`: the cheapest that the kernel has";
        "cpus": CPUS, Without "chosen on the machine", "cpus for the real-time cells";
        "latency": Kind::Time { least_ns: 0 }, Without "none assumed",
            "how late the kernel may wake a task; counted as blocking of every task";
        "latency_run": Kind::HostPath, Without "`latency`",
            "directory of a run whose measured wake-up latency is used for it; refused with `latency`";
        "supply_run": Kind::HostPath, Without "a conservative model",
            "directory of a run of `timecell bench supply`, which measured what this kernel's budgets really supply";
        "notify": WORDS, Without "only subscribers are notified",
            "absolute path and arguments of a program on the host; action `notify` starts it with the incident as JSON on its standard input";
        "shed": CELL_NAMES, Without "from the end of the file",
            "cells of criticality `lo` in the order in which they are shed; those not named follow, from the end of the file";
        "uids": Kind::Table(&UIDS), Without "2,000,000,000 to 2,000,065,535",
            "user and group ids, of which each cell gets its own";
        "supervisor": Kind::Table(&SUPERVISOR), Without "1 ms every 20 ms",
            "what the supervisor reserves for itself, so that it reacts even if the cells use everything granted to them";
        "modes": Kind::Table(&MODES), Without "one mode", "gives the mission a low and a high mode";
        "cell": Kind::Tables { of: &CELL, most: Limits::CELLS }, Required "at least one, with a name, an image, and tasks or a reservation",
            "the cells";
    },
};

/// `uids`.
static UIDS: Shape = Shape {
    title: "`uids`",
    name: "uids",
    doc: "A range of user ids for cells that name no user.",
    choice: false,
    keys: keys! {
        "lowest": UID, Required "2000000000", "the lowest of them";
        "highest": UID, Required "2000065535", "the highest of them";
    },
};

/// `supervisor`.
static SUPERVISOR: Shape = Shape {
    title: "`supervisor`",
    name: "supervisor",
    doc: "The supervisor's own reservation: within its budget it runs before every cell of class FIFO, beyond it as an ordinary process.",
    choice: false,
    keys: keys! {
        "class": Kind::Choice(SupervisorClass::WORDS), Default "\"fifo\"",
            "`other`: reserves nothing and runs as an ordinary process";
        "budget": Kind::Time { least_ns: Supervisor::LEAST_NS }, Default "\"1ms\"",
            "cpu time of all its threads in each period; counted on every cpu on which it may run";
        "period": Kind::Time { least_ns: Supervisor::LEAST_NS }, Default "\"20ms\"", "the period, from the budget to 1 s";
        "cpus": CPUS, Without "those on which timecell was started, less those on which the cells leave it no room",
            "cpus on which its threads run, of those on which timecell was started";
    },
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
    keys: keys! {
        "policy": Kind::Choice(ModePolicy::WORDS), Default "\"amc-rtb\"",
            "how the switch is analysed: adaptive mixed criticality, response-time bound";
        "return_after": Kind::Time { least_ns: 0 }, Default "\"0ms\"",
            "how long the real-time cpus must be idle before the mission returns to low mode";
    },
};
