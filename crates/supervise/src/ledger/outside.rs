//! Real-time threads that nobody accounts for.

use freezer::page::{Page, memory};
use host::root::Root;
use host::rt_threads;

use super::{Entry, Holder};
use crate::admit::Unaccounted;
use crate::names;

/// How far up a process's ancestors are looked at.
const GENERATIONS: usize = 64;

/// Real-time threads of programs that belong to none of these entries, nor to the mission of the name `own`, nor to this
/// process or these `cells`, which need not be looked up then. The kernel's own threads are not among them.
pub fn unaccounted(entries: &[Entry], own: Option<&str>, cells: &[i32]) -> Vec<Unaccounted> {
    let mut known: Vec<String> = entries
        .iter()
        .map(|entry| cells_of(&entry.holder))
        .collect();
    known.extend(own.map(names::cells_of));
    let mut holders: Vec<i32> = entries.iter().map(|entry| entry.process.pid).collect();
    holders.push(std::process::id().cast_signed());
    holders.extend(cells);
    let missions = entries.iter().filter_map(|entry| match &entry.holder {
        Holder::Mission { name, .. } => Some(name.as_str()),
        Holder::Bench { .. } => None,
    });
    holders.extend(missions.chain(own).flat_map(keepers_of));
    let in_a_cell = |pid: i32| {
        engine::cell_id_of(pid).is_some_and(|id| known.iter().any(|known| id.starts_with(known)))
    };
    // Most cells are children of their supervisor, which costs less to see than whose groups they are in.
    let accounted = |pid: i32, parent: Option<i32>| {
        holders.contains(&pid)
            || parent.is_some_and(|parent| descends(parent, &holders) || in_a_cell(pid))
    };
    (rt_threads::all(&Root::live(), accounted).into_iter())
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

/// Those who hold cells of a mission by the freezer; what they take is admitted with the cells.
fn keepers_of(mission: &str) -> Vec<i32> {
    let page = Page::open(&memory().join(names::freezer_of(mission)));
    let pids = |page: Page| [page.keeper(), page.watcher(), page.heir()];
    page.ok()
        .flatten()
        .map_or(Vec::new(), |page| pids(page).to_vec())
}

/// Whether a process is one of these or has one of them above it.
fn descends(pid: i32, from: &[i32]) -> bool {
    let above = std::iter::successors(Some(pid), |pid| parent_of(*pid));
    (above.take_while(|pid| *pid > 1).take(GENERATIONS)).any(|pid| from.contains(&pid))
}

fn parent_of(pid: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may hold anything.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}
