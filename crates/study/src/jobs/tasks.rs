//! The bounds of crate `analysis` for a measured task set.

use std::collections::BTreeMap;

use model::Duration;
use model::taskset::{CellTask, Order, Policy, Refill, TaskCell, TaskSet};
use record::summary::CellSummary;
use record::trial::{CellRecord, TaskRecord};

use super::reserved;
use super::source::Source;

/// Adds the bounds of the analysis to the tasks of cells, and a note if a task has no counterpart in the baseline.
pub(super) fn judge(source: &Source, cells: &mut [CellSummary]) {
    for trial in source
        .plan
        .trials
        .iter()
        .filter(|_| source.plan.tasks.is_some())
    {
        let records = source.records(&trial.name);
        let bounds = (records.first()).map_or_else(BTreeMap::new, |first| bounds(&first.cells));
        let mut held = reserved::study(&records);
        for cell in cells.iter_mut().filter(|cell| cell.trial == trial.name) {
            let Some(task) = &mut cell.task else { continue };
            task.bound_ns = bounds.get(&cell.cell).copied();
            if let Some(held) = held.remove(&cell.cell) {
                task.bound_ns = held.bound_ns;
                task.held = Some(held.held);
            }
            if source.same_task(&cell.trial, &cell.cell).is_none() {
                cell.notes.push(format!(
                    "not compared: no thread of the baseline `{}` runs task `{}` of cell `{}`",
                    source.plan.baseline, task.name, task.cell
                ));
            }
        }
    }
}

/// The response-time bound of every task of a trial, by the identity of its thread; absent where there is none.
///
/// FIFO threads are those of fixed priorities on a cpu of their own, a competitor above them; SCHED_DEADLINE threads are those of global
/// EDF on their cpus. Neither includes the kernel's overheads.
fn bounds(cells: &[CellRecord]) -> BTreeMap<String, i64> {
    let tasks: Vec<(&CellRecord, &TaskRecord)> = (cells.iter())
        .filter_map(|cell| Some((cell, cell.task.as_ref()?)))
        .collect();
    let all = |class: &str| {
        tasks
            .iter()
            .all(|(cell, _)| cell.class_wanted.starts_with(class))
    };
    let groups: Vec<(Policy, Vec<&(&CellRecord, &TaskRecord)>)> = if tasks.is_empty() {
        Vec::new()
    } else if all("FIFO ") {
        let mut cpus: Vec<u32> = cells.iter().map(|cell| cell.cpu).collect();
        cpus.sort_unstable();
        cpus.dedup();
        let on = |cpu: u32| {
            let mut group: Vec<_> = tasks.iter().filter(|(cell, _)| cell.cpu == cpu).collect();
            // As the threads ran: cells that share a cpu are in the order of their priorities, not of the file.
            group.sort_by_key(|(cell, task)| {
                let urgency = reserved::priority(&cell.class_wanted);
                (!task.competes, std::cmp::Reverse(urgency))
            });
            (Policy::Fixed(Order::Listed), group)
        };
        cpus.into_iter().map(on).collect()
    } else if all("DEADLINE ") {
        let cpus = tasks.iter().map(|(_, task)| task.cpus.len()).max();
        let cpus = u32::try_from(cpus.unwrap_or(1)).unwrap_or(1);
        let policy = if cpus == 1 {
            Policy::Edf
        } else {
            Policy::GlobalEdf(cpus)
        };
        vec![(policy, tasks.iter().collect())]
    } else {
        // Best effort has no bound.
        Vec::new()
    };
    let mut bounds = BTreeMap::new();
    for (policy, group) in groups {
        let study = feasibility::study(&set(policy, &group), false);
        let found = study.cells.iter().flat_map(|cell| &cell.tasks);
        for ((cell, _), task) in group.iter().zip(found) {
            if let Some(bound) = task.response_ns {
                bounds.insert(cell.id.clone(), i64::try_from(bound).unwrap_or(i64::MAX));
            }
        }
    }
    bounds
}

fn set(policy: Policy, group: &[&(&CellRecord, &TaskRecord)]) -> TaskSet {
    let ns = Duration::from_ns;
    let tasks = group.iter().map(|(cell, task)| CellTask {
        deadline: ns(task.deadline_ns),
        ..CellTask::new(cell.id.clone(), ns(task.wcet_ns), ns(task.period_ns))
    });
    TaskSet {
        cpus: None,
        refill: Refill::default(),
        enforcer: None,
        cells: vec![TaskCell {
            name: "set".to_owned(),
            policy,
            reservation: None,
            server: None,
            tasks: tasks.collect(),
        }],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{RIVAL, thread};

    #[test]
    fn bounds_are_those_of_fixed_priorities_with_the_competitor_on_top() {
        let alone = [
            thread(1, "a", "FIFO 79", [1_000, 4_000]),
            thread(1, "b", "FIFO 78", [2_000, 10_000]),
        ];
        let of = |cells: &[CellRecord]| bounds(cells).into_values().collect::<Vec<_>>();
        assert_eq!(of(&alone), [1_000, 3_000]);
        let rival = thread(1, RIVAL, "FIFO 80", [1_000, 10_000]);
        let together = [alone[0].clone(), alone[1].clone(), rival];
        assert_eq!(of(&together), [2_000, 4_000, 1_000]);
    }

    #[test]
    fn cells_that_share_a_cpu_are_analysed_in_the_order_of_their_priorities() {
        let cells = [
            thread(1, "a", "FIFO 78", [2_000, 10_000]),
            thread(1, "b", "FIFO 79", [1_000, 4_000]),
        ];
        let found = bounds(&cells);
        assert_eq!((found["a"], found["b"]), (3_000, 1_000));
    }

    #[test]
    fn deadline_threads_are_edf_and_best_effort_has_no_bound() {
        let edf = [
            thread(1, "a", "DEADLINE 1/4/4", [1_000, 4_000]),
            thread(1, "b", "DEADLINE 2/10/10", [2_000, 10_000]),
        ];
        let found = bounds(&edf);
        assert_eq!(found.len(), 2);
        assert!(found["a"] >= 1_000 && found["a"] <= 4_000, "{found:?}");
        let other = [thread(1, "a", "OTHER", [1_000, 4_000])];
        assert!(bounds(&other).is_empty());
    }
}
