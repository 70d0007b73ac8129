//! Dividing the machine's memory among cells.

use model::mission::{Cell, Mission};
use serde::Serialize;

use super::Facts;

/// Memory of the machine, as it was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct MachineMemory {
    /// All of it, bytes.
    pub total_bytes: u64,
    /// What can be had without taking it from somebody, bytes (MemAvailable).
    pub available_bytes: u64,
}

/// What the cells of a mission may have of the machine's memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MemoryShare {
    /// The machine's.
    #[serde(flatten)]
    pub machine: MachineMemory,
    /// What is kept for everything that is no cell, bytes.
    pub reserve_bytes: u64,
    /// Sum of the limits that the file says, bytes.
    pub declared_bytes: u64,
    /// Limit of each cell whose limit the file leaves open, bytes; `None`: there is no such cell.
    pub default_bytes: Option<u64>,
}

/// No cell is given less than this, bytes: a small program with its libraries.
const LEAST: u64 = 16 << 20;

/// What is kept for the machine: an eighth of it, at least 64 MiB and at most 1 GiB.
fn reserve(total: u64) -> u64 {
    (total / 8).clamp(64 << 20, 1 << 30)
}

/// Divides what is free among the cells that do not say what they need. `None` where the kernel limits nobody's memory.
pub(super) fn share(
    mission: &Mission,
    facts: &Facts,
    refusals: &mut Vec<String>,
    notes: &mut Vec<String>,
) -> Option<MemoryShare> {
    let machine = match &facts.memory {
        Ok(machine) => *machine,
        Err(why) => {
            if mission
                .cells
                .iter()
                .any(|cell| cell.rights.memory.is_none())
            {
                notes.push(format!(
                    "cells without `memory` can use up that of the machine: {why}"
                ));
            }
            return None;
        }
    };
    let declared = |cell: &Cell| cell.rights.memory.map(model::Bytes::bytes);
    let declared_bytes = (mission.cells.iter().filter_map(declared)).fold(0, u64::saturating_add);
    let reserve_bytes = reserve(machine.total_bytes);
    let most = machine.total_bytes.saturating_sub(reserve_bytes);
    if declared_bytes > most {
        refusals.push(format!(
            "the cells' `memory` is {} together, and the machine has {} for cells: {} less {} for everything else; lower it by {}",
            mib(declared_bytes),
            mib(most),
            mib(machine.total_bytes),
            mib(reserve_bytes),
            mib(declared_bytes - most)
        ));
    }
    let open = mission.cells.iter().filter(|cell| declared(cell).is_none());
    let names: Vec<&str> = open.map(|cell| cell.name.as_str()).collect();
    let room = machine.available_bytes.saturating_sub(reserve_bytes);
    let left = room.saturating_sub(declared_bytes);
    let default_bytes = (u64::try_from(names.len()).ok())
        .and_then(|many| left.checked_div(many))
        .map(|share| (share & !0xF_FFFF).max(LEAST));
    let together = match default_bytes {
        Some(share) => {
            notes.push(format!(
                "{} may use at most {} of memory{}: {} available, less {} for the machine and {} that other cells declare; \
                 say `memory` for another limit",
                listed(&names),
                mib(share),
                if names.len() > 1 { " each" } else { "" },
                mib(machine.available_bytes),
                mib(reserve_bytes),
                mib(declared_bytes)
            ));
            share.saturating_mul(u64::try_from(names.len()).unwrap_or(u64::MAX))
        }
        None => 0,
    };
    let limits = declared_bytes.saturating_add(together);
    if limits > room && declared_bytes <= most {
        notes.push(format!(
            "the cells' limits of memory are {} together, and {} is free for them now: when all use theirs, the kernel kills \
             somebody",
            mib(limits),
            mib(room)
        ));
    }
    Some(MemoryShare {
        machine,
        reserve_bytes,
        declared_bytes,
        default_bytes,
    })
}

fn mib(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}

/// A few names, and how many more.
fn listed(names: &[&str]) -> String {
    const FEW: usize = 3;
    match names {
        [last] => format!("`{last}`"),
        [few @ .., last] if few.len() < FEW => format!("`{}` and `{last}`", few.join("`, `")),
        all => format!("the {} cells without `memory`", all.len()),
    }
}
