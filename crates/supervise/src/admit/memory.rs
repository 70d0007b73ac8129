//! Divides the machine's memory among cells.
//!
//! Missions are counted as if all their cells stood in one file: limits that files declare must fit into the machine
//! together, in any order of the missions, and a limit that no file gives is a share of the rest.

use model::mib;
use model::mission::{Cell, Mission};
use serde::{Deserialize, Serialize};

use super::{Facts, Neighbour};

/// Memory of the machine, as it was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct MachineMemory {
    /// All of it, bytes.
    pub total_bytes: u64,
    /// Memory available without taking it from others, bytes (MemAvailable).
    pub available_bytes: u64,
}

/// The share of the machine's memory that the cells of a mission may have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MemoryShare {
    /// The machine's.
    #[serde(flatten)]
    pub machine: MachineMemory,
    /// Reserve for everything that is not a cell, bytes.
    pub reserve_bytes: u64,
    /// Sum of the limits that the files of other missions say, bytes.
    pub others_declared_bytes: u64,
    /// Memory that the cells of other missions may still take, bytes.
    pub others_left_bytes: u64,
    /// Sum of the limits that the file says, bytes.
    pub declared_bytes: u64,
    /// Limit of each cell whose limit the file leaves open, bytes; `None`: there is no such cell.
    pub default_bytes: Option<u64>,
    /// Sum of the limits of all cells, bytes.
    pub limits_bytes: u64,
}

/// Memory of the machine that the cells of a mission may use together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldMemory {
    /// Sum of the limits that its file says, bytes.
    pub declared_bytes: u64,
    /// Sum of the limits of all its cells, bytes.
    pub limits_bytes: u64,
}

impl HeldMemory {
    /// With that of another cell.
    #[must_use]
    pub(crate) fn and(self, declared: Option<u64>, limit: u64) -> HeldMemory {
        HeldMemory {
            declared_bytes: self.declared_bytes.saturating_add(declared.unwrap_or(0)),
            limits_bytes: self.limits_bytes.saturating_add(limit),
        }
    }
}

/// Memory of others.
struct Others<'f> {
    /// Those that declare a limit.
    declare: Vec<&'f str>,
    declared_bytes: u64,
    /// Memory that they may still take; MemAvailable is without the part already taken.
    left_bytes: u64,
}

impl<'f> Others<'f> {
    fn of(beside: &'f [Neighbour]) -> Others<'f> {
        let sum = |bytes: &dyn Fn(&Neighbour) -> u64| {
            (beside.iter().map(bytes)).fold(0, u64::saturating_add)
        };
        let declare = beside
            .iter()
            .filter(|other| other.memory.declared_bytes > 0);
        Others {
            declare: declare.map(|other| other.who.as_str()).collect(),
            declared_bytes: sum(&|other| other.memory.declared_bytes),
            left_bytes: sum(&|other| {
                (other.memory.limits_bytes).saturating_sub(other.memory_taken_bytes)
            }),
        }
    }
}

/// No cell is given less than this, bytes: a small program with its libraries.
const LEAST: u64 = 16 << 20;

/// The reserve for the machine: an eighth of its memory, at least 64 MiB and at most 1 GiB.
fn reserve(total: u64) -> u64 {
    (total / 8).clamp(64 << 20, 1 << 30)
}

/// Divides the free memory among the cells that declare none. `None` where the kernel limits no memory.
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
                    "cells without `memory` can use up the machine's memory: {why}"
                ));
            }
            return None;
        }
    };
    let declared = |cell: &Cell| cell.rights.memory.map(model::Bytes::bytes);
    let declared_bytes = (mission.cells.iter().filter_map(declared)).fold(0, u64::saturating_add);
    let others = Others::of(&facts.beside);
    let reserve_bytes = reserve(machine.total_bytes);
    let kept = reserve_bytes.saturating_add(others.declared_bytes);
    let most = machine.total_bytes.saturating_sub(kept);
    if declared_bytes > most {
        let theirs = match others.declare.as_slice() {
            [] => String::new(),
            who => format!(
                " and {} that {} {}",
                mib(others.declared_bytes),
                who.join(" and "),
                if who.len() > 1 { "declare" } else { "declares" }
            ),
        };
        refusals.push(format!(
            "the cells' `memory` adds up to {}, but the machine has {} for cells: {} less {} for everything else{theirs}; lower \
             it by {}",
            mib(declared_bytes),
            mib(most),
            mib(machine.total_bytes),
            mib(reserve_bytes),
            mib(declared_bytes - most)
        ));
    }
    let open = mission.cells.iter().filter(|cell| declared(cell).is_none());
    let names: Vec<&str> = open.map(|cell| cell.name.as_str()).collect();
    let kept = reserve_bytes.saturating_add(others.left_bytes);
    let room = machine.available_bytes.saturating_sub(kept);
    let theirs = match others.left_bytes {
        0 => String::new(),
        left => format!(", {} that other missions' cells may still take", mib(left)),
    };
    let left = room.saturating_sub(declared_bytes);
    // The other half is for later missions that declare nothing either.
    let default_bytes = (u64::try_from(names.len()).ok())
        .and_then(|many| (left / 2).checked_div(many))
        .map(|share| (share & !0xF_FFFF).max(LEAST));
    let together = match default_bytes {
        Some(share) => {
            notes.push(format!(
                "{} may use at most {} of memory{}: half of {}, which is {} available less {} for the machine{theirs} and {} \
                 that other cells declare; set `memory` for another limit",
                listed(&names),
                mib(share),
                if names.len() > 1 { " each" } else { "" },
                mib(left),
                mib(machine.available_bytes),
                mib(reserve_bytes),
                mib(declared_bytes)
            ));
            share.saturating_mul(u64::try_from(names.len()).unwrap_or(u64::MAX))
        }
        None => 0,
    };
    let limits_bytes = declared_bytes.saturating_add(together);
    if limits_bytes > room && declared_bytes <= most {
        let beside = match others.left_bytes {
            0 => "",
            _ => " beside what other missions' cells may still take",
        };
        notes.push(format!(
            "the cells' memory limits add up to {}, but {} is free for them now{beside}: if all use theirs, the kernel kills a \
             process",
            mib(limits_bytes),
            mib(room)
        ));
    }
    Some(MemoryShare {
        machine,
        reserve_bytes,
        others_declared_bytes: others.declared_bytes,
        others_left_bytes: others.left_bytes,
        declared_bytes,
        default_bytes,
        limits_bytes,
    })
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
