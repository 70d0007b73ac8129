//! Fixes for the doctor's findings that leave the cpus of others alone.

use std::collections::BTreeSet;

use host::fix::Fix;
use host::root::Root;
use supervise::ledger::{Entry, Holder, Ledger};

/// The fixes for real-time work on these cpus that do not harm that of others.
pub(super) fn fixes(root: &Root, cpus: &[u32]) -> Vec<Fix> {
    let online = host::cpus::online_at(root).unwrap_or_default();
    let mut taken = held(&online);
    taken.retain(|cpu| !cpus.contains(cpu));
    host::doctor::fixes_for(root, cpus, &taken)
}

/// The cpus of missions, and of all else that is held to a budget.
pub(super) fn held(online: &[u32]) -> Vec<u32> {
    // Without permission to read the ledger, there are none.
    of_cells(&Ledger::default().entries().unwrap_or_default(), online)
}

/// The cpus of these cells, except cells that may run on any cpu: no cpu can be kept free of other work for them.
fn of_cells(entries: &[Entry], online: &[u32]) -> Vec<u32> {
    let of_bench = |entry: &&Entry| matches!(entry.holder, Holder::Bench { .. });
    let cells = (entries.iter().filter(|entry| !of_bench(entry)))
        .flat_map(|entry| &entry.cells)
        .filter(|cell| !cell.supervisor);
    let holds = cells.flat_map(|cell| &cell.holds);
    let some = holds.filter(|hold| online.iter().any(|cpu| !hold.cpus.contains(cpu)));
    let all: BTreeSet<u32> = some.flat_map(|hold| &hold.cpus).copied().collect();
    all.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_that_runs_on_any_cpu_takes_none() {
        let holder = Holder::Mission {
            name: "a".to_owned(),
            dir: "/nowhere".into(),
        };
        let mut entry = Entry::own(holder).unwrap();
        let cell = |cpus: &[u32], supervisor: bool| {
            serde_json::from_value(serde_json::json!({
                "cell": "c", "enforcer": "deadline", "tasks": [], "supervisor": supervisor,
                "holds": [{
                    "threads": null, "cpus": cpus, "budget_ns": 1, "period_ns": 2, "reservation_ns": null,
                    "class": "deadline", "priorities": null,
                }],
            }))
            .unwrap()
        };
        entry.cells = vec![
            cell(&[0, 1, 2, 3], false),
            cell(&[2], false),
            cell(&[0], true),
        ];
        assert_eq!(of_cells(&[entry.clone()], &[0, 1, 2, 3]), [2]);
        entry.cells.truncate(1);
        assert_eq!(of_cells(&[entry.clone()], &[0, 1, 2, 3]), [0; 0]);
        // One that is left out by name is.
        assert_eq!(of_cells(&[entry], &[0, 1, 2, 3, 4]), [0, 1, 2, 3]);
    }
}
