//! Kinds that several tables of the mission file have in common.

use super::Limits;
use crate::file::Kind;

pub(super) const CPUS: Kind = Kind::List {
    of: &Kind::Integer {
        least: 0,
        most: Limits::CPUS - 1,
    },
    least: 1,
    most: Limits::CPUS as usize,
    unique: true,
};

pub(super) const CELL_NAMES: Kind = Kind::List {
    of: &Kind::Name,
    least: 0,
    most: Limits::CELLS,
    unique: true,
};

/// 1 ns, for times that must not be 0.
pub(super) const SOME_TIME: Kind = Kind::Time { least_ns: 1 };

pub(super) const COUNT: Kind = Kind::Integer {
    least: 1,
    most: 1_000_000,
};

/// The parameters of each observation: its name, the required ones, the optional ones.
pub(super) const PARAMETERS: [(&str, &[&str], &[&str]); 9] = [
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
