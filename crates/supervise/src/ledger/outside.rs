//! Real-time threads that nobody accounts for.

use std::collections::BTreeMap;

use host::root::Root;
use host::rt_threads::{self, RtThread};

use super::{Entry, Holder};
use crate::admit::Unaccounted;
use crate::names;

/// How far up a thread's ancestors are looked at.
const GENERATIONS: usize = 64;

/// Real-time threads of programs that belong to none of these entries, nor to the mission of the name `own`, nor to this
/// process. The kernel's own threads are not among them.
pub fn unaccounted(entries: &[Entry], own: Option<&str>) -> Vec<Unaccounted> {
    let threads = rt_threads::all(&Root::live());
    let mut known: Vec<String> = entries
        .iter()
        .map(|entry| cells_of(&entry.holder))
        .collect();
    known.extend(own.map(names::cells_of));
    let mut holders: Vec<i32> = entries.iter().map(|entry| entry.process.pid).collect();
    holders.push(std::process::id().cast_signed());
    // Asked once for each process.
    let mut accounted: BTreeMap<i32, bool> = BTreeMap::new();
    let is_accounted = |thread: &RtThread| {
        let cell = engine::cell_id_of(thread.pid);
        cell.is_some_and(|id| known.iter().any(|known| id.starts_with(known)))
            || descends(thread, &holders)
    };
    (threads.into_iter())
        .filter(|thread| {
            !*accounted
                .entry(thread.pid)
                .or_insert_with(|| is_accounted(thread))
        })
        .map(|thread| Unaccounted {
            pid: thread.pid,
            tid: thread.tid,
            name: thread.name,
            class: thread.class,
            cpus: thread.cpus,
        })
        .collect()
}

/// What the ids of a holder's cells begin with.
fn cells_of(holder: &Holder) -> String {
    match holder {
        Holder::Mission { name, .. } => names::cells_of(name),
        Holder::Bench { pid, .. } => format!("timecell-{pid}-"),
    }
}

/// Whether a thread's process is one of these or has one of them above it.
fn descends(thread: &RtThread, from: &[i32]) -> bool {
    let mut pid = thread.pid;
    let mut parent = Some(thread.parent);
    for _ in 0..GENERATIONS {
        if from.contains(&pid) {
            return true;
        }
        match parent {
            Some(above) if above > 1 => {
                pid = above;
                parent = parent_of(above);
            }
            _ => return false,
        }
    }
    false
}

fn parent_of(pid: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may hold anything.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}
