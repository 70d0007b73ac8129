//! Real-time threads that are not accounted for.

use std::collections::BTreeSet;
use std::path::Path;

use freezer::page::{Page, memory};
use host::root::Root;
use host::rt_threads::{self, RtThread};

use super::{Entry, Holder};
use crate::admit::Unaccounted;
use crate::names;
use crate::process::descends;

/// Real-time threads of programs that belong to none of these entries, nor to the mission of the name `own`, nor to this
/// process or these `cells`, which need not be looked up then. The kernel's own threads are not among them. Programs put under a budget
/// are accounted for with the priorities that they had then: a thread of theirs that has another one by now is among them, and so are all
/// once their hold is broken.
pub fn unaccounted(entries: &[Entry], own: Option<&str>, cells: &[i32]) -> Vec<Unaccounted> {
    let mut known: Vec<String> = entries
        .iter()
        .filter_map(|entry| cells_of(&entry.holder))
        .collect();
    let held: Vec<InAHold> = entries.iter().filter_map(InAHold::of).collect();
    let cgroups = (!held.is_empty()).then(host::cgroup::detect);
    let cgroups = cgroups.and_then(Result::ok);
    let root = Root::live();
    let in_a_hold = |thread: &RtThread| {
        let group = cgroups
            .as_ref()
            .and_then(|all| all.v2_group(&root, thread.pid));
        group.is_some_and(|group| held.iter().any(|held| held.accounts_for(&group, thread)))
    };
    known.extend(own.map(names::cells_of));
    let still_runs = |entry: &Entry| entry.process.still_runs().unwrap_or(false);
    let mut holders: Vec<i32> = entries
        .iter()
        // The process that put something under a budget is gone, as is a killed supervisor, and its number may be reused.
        .filter(|entry| !matches!(entry.holder, Holder::Held { .. }) && still_runs(entry))
        .map(|entry| entry.process.pid)
        .collect();
    holders.push(std::process::id().cast_signed());
    let places: BTreeSet<String> = (entries.iter())
        .filter_map(|entry| keepers_of(&entry.holder))
        .chain(own.map(names::freezer_of))
        .collect();
    holders.extend(places.iter().flat_map(|place| keepers_in(place)));
    holders.extend(cells);
    let in_a_cell = |pid: i32| {
        engine::cell_id_of(pid).is_some_and(|id| known.iter().any(|known| id.starts_with(known)))
    };
    // Most cells are children of their supervisor, which costs less to see than the groups that they are in.
    let accounted = |pid: i32, parent: Option<i32>| {
        holders.contains(&pid)
            || parent.is_some_and(|parent| descends(parent, &holders) || in_a_cell(pid))
    };
    (rt_threads::all(&root, accounted).into_iter())
        .filter(|thread| !in_a_hold(thread))
        .map(|thread| Unaccounted {
            pid: thread.pid,
            tid: thread.tid,
            name: thread.name,
            class: thread.class,
            cpus: thread.cpus,
        })
        .collect()
}

/// The threads that are found twice by `look`, which reads the ledger and then calls [`unaccounted`]. A mission is in the ledger before it starts
/// anything, but may have entered it after it was read.
///
/// # Errors
/// Those of `look`.
pub fn found_twice<E>(
    look: impl Fn() -> Result<Vec<Unaccounted>, E>,
) -> Result<Vec<Unaccounted>, E> {
    let first = look()?;
    if first.is_empty() {
        return Ok(first);
    }
    let mut again = look()?;
    again.retain(|thread| first.iter().any(|one| one.tid == thread.tid));
    Ok(again)
}

/// A held group, with the priorities that it is in the ledger with.
struct InAHold<'a> {
    group: &'a Path,
    /// The lowest and the highest; `None`: its threads were ordinary.
    priorities: Option<(u8, u8)>,
}

impl InAHold<'_> {
    fn of(entry: &Entry) -> Option<InAHold<'_>> {
        let Holder::Held { group, .. } = &entry.holder else {
            return None;
        };
        // Where others have put a broken one, nobody has admitted it.
        let hold = entry.cells.first()?.holds.first()?;
        if entry.broken.is_some() {
            return None;
        }
        Some(InAHold {
            group,
            priorities: hold.priorities,
        })
    }

    /// Whether admission has counted a real-time thread that is in the group `own`.
    fn accounts_for(&self, own: &Path, thread: &RtThread) -> bool {
        let known = |(lowest, highest): (u8, u8)| {
            let priority = thread.priority;
            priority.is_some_and(|priority| (lowest..=highest).contains(&priority))
        };
        own.starts_with(self.group) && self.priorities.is_some_and(known)
    }
}

/// The name of the directory of its freezer keeper, which is admitted with it.
fn keepers_of(holder: &Holder) -> Option<String> {
    match holder {
        Holder::Mission { name, .. } => Some(names::freezer_of(name)),
        Holder::Bench { .. } => None,
        Holder::Held { .. } => Some(names::HELD.to_owned()),
    }
}

/// Those who hold groups from there; none where there is nobody, or this process may not ask.
fn keepers_in(place: &str) -> Vec<i32> {
    let page = Page::open(&memory().join(place)).ok().flatten();
    let all = page.map(|page| [page.keeper(), page.watcher(), page.heir()]);
    all.into_iter().flatten().filter(|pid| *pid > 1).collect()
}

/// The prefix of the ids of a holder's cells; `None`: it has none.
fn cells_of(holder: &Holder) -> Option<String> {
    match holder {
        Holder::Mission { name, .. } => Some(names::cells_of(name)),
        Holder::Bench { pid, .. } => Some(format!("timecell-{pid}-")),
        Holder::Held { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_what_is_held_count_with_the_priorities_that_were_admitted() {
        let thread = |priority: Option<u8>| RtThread {
            pid: 7,
            tid: 7,
            name: "x".to_owned(),
            class: String::new(),
            priority,
            cpus: vec![1],
        };
        let accounts = |priorities, own: &str, priority| {
            let held = InAHold {
                group: Path::new("/g/a"),
                priorities,
            };
            held.accounts_for(Path::new(own), &thread(priority))
        };
        let admitted = Some((40, 60));
        for priority in [40, 60] {
            assert!(accounts(admitted, "/g/a/below", Some(priority)));
        }
        for priority in [Some(39), Some(90), None] {
            assert!(!accounts(admitted, "/g/a", priority), "{priority:?}");
        }
        assert!(!accounts(admitted, "/g/ab", Some(50)));
        // Ordinary threads were admitted as such.
        assert!(!accounts(None, "/g/a", Some(50)));
    }

    #[test]
    fn a_thread_of_a_mission_that_has_just_entered_the_ledger_is_none() {
        let at = |tid: i32| Unaccounted {
            pid: tid,
            tid,
            name: "a".to_owned(),
            class: "DEADLINE".to_owned(),
            cpus: vec![0],
        };
        let looks = |seen: [&[i32]; 2]| {
            let next = std::cell::Cell::new(0);
            let found = found_twice(|| {
                next.set(next.get() + 1);
                let seen = seen[next.get() - 1].iter();
                Ok::<_, ()>(seen.map(|tid| at(*tid)).collect())
            });
            let found = found.unwrap();
            let tids: Vec<i32> = found.iter().map(|thread| thread.tid).collect();
            (tids, next.get())
        };
        assert_eq!(looks([&[1, 2], &[2, 3]]), (vec![2], 2));
        assert_eq!(looks([&[], &[3]]), (vec![], 1));
    }
}
