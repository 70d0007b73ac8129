//! The keys of a cell's server.

use super::super::{CellServer, Limits, Refill, ServerKind, TaskSet};
use super::field::{choice, faulty};
use crate::InputError;
use crate::reader::Table;

/// What keeps a cell's reservation among others, if the cell says it.
pub(super) fn server(cell: &Table<'_>) -> Result<Option<CellServer>, InputError> {
    let kind = choice(cell, "server", &ServerKind::NAMES)?;
    let priority = cell.integer("priority", &(i64::from(i32::MIN)..=i64::from(i32::MAX)))?;
    let cpu = cell.integer("cpu", &(0..=Limits::CPUS.end() - 1))?;
    let Some(kind) = kind else {
        for (key, given) in [("priority", priority.is_some()), ("cpu", cpu.is_some())] {
            if given {
                return Err(cell.fault(
                    key,
                    format!("`{key}` of a cell has no meaning without `server`"),
                    "add a line such as `server = \"deferrable\"`, or remove this one",
                ));
            }
        }
        return Ok(None);
    };
    Ok(Some(CellServer {
        kind,
        priority,
        cpu: cpu.and_then(|cpu| u32::try_from(cpu).ok()),
    }))
}

/// Whether the servers go together.
pub(super) fn check(top: &Table<'_>, cells: &[Table<'_>], set: &TaskSet) -> Result<(), InputError> {
    let served = set.cells.iter().any(|cell| cell.server.is_some());
    if set.refill == Refill::Together && !served {
        return Err(top.fault(
            "refill",
            "`refill` has no meaning without servers",
            "add `server = \"deferrable\"` to the cells, or remove this line",
        ));
    }
    match set.servers_fault() {
        Some((cell, fault)) => Err(faulty(&cells[cell], fault)),
        None => Ok(()),
    }
}
