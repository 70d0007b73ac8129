use std::cmp::Ordering;

use analysis::multi::{Fit, Order, partition};
use analysis::{Task, edf, utilization};
use model::taskset::TaskSet;

use super::judge::ns;
use super::study::Outcome;

/// Whether the cells' reservations fit onto the cpus, and the sentence that says so.
///
/// Each cell is a task of its budget, period and deadline; a cell without a reservation takes a whole cpu. A cpu holds
/// the cells whose reservations EDF, as SCHED_DEADLINE, supplies in time. A placement that was found is certain; that
/// none was found is certain only where the cells need more than there is.
pub(super) fn fit(set: &TaskSet, cpus: u32) -> (Outcome, String) {
    let servers: Vec<Task> = set
        .cells
        .iter()
        .map(|cell| match &cell.reservation {
            Some(r) => Task::new(ns(r.budget), ns(r.period)).due(ns(r.deadline)),
            None => Task::new(1_000_000, 1_000_000),
        })
        .collect();
    let each = if cpus == 1 { "1 cpu" } else { "cpus" };
    let count = if cpus == 1 {
        String::new()
    } else {
        format!("{cpus} ")
    };
    let holds = |bin: &[Task]| edf::verdict(bin).is_schedulable();
    for order in [Order::Decreasing, Order::AsGiven] {
        for fit in [Fit::First, Fit::Best, Fit::Worst, Fit::Next] {
            let bins = usize::try_from(cpus).unwrap_or(usize::MAX);
            let found = partition(&servers, bins, fit, order, &holds);
            if found.is_complete() {
                return (Outcome::Holds, placed(set, &found.bins));
            }
        }
    }
    // Σ Q/P against m, as Σ Q/(mP) against 1.
    let shared: Option<Vec<Task>> = servers
        .iter()
        .map(|server| {
            let period = server.period.checked_mul(u64::from(cpus))?;
            Some(Task::new(server.wcet, period))
        })
        .collect();
    match shared.map(|tasks| utilization::compare_with_one(&tasks)) {
        Some(Ordering::Greater) => (
            Outcome::Missed,
            format!("the cells reserve more than the {count}{each} that there is"),
        ),
        _ => (
            Outcome::Undecided,
            format!(
                "no placement of the cells on {count}{each} was found, though they reserve no more than there is"
            ),
        ),
    }
}

fn placed(set: &TaskSet, bins: &[Vec<usize>]) -> String {
    let cpus: Vec<String> = (bins.iter().enumerate())
        .filter(|(_, cells)| !cells.is_empty())
        .map(|(cpu, cells)| {
            let names: Vec<&str> = cells
                .iter()
                .map(|&cell| set.cells[cell].name.as_str())
                .collect();
            format!("cpu {cpu}: {}", names.join(", "))
        })
        .collect();
    format!("the cells fit ({})", cpus.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fit_of(cells: &str, cpus: u32) -> (Outcome, String) {
        let mut text = String::from("schema = 1\n");
        for (place, cell) in cells.split(' ').enumerate() {
            text += &format!("[[cell]]\nname = \"c{place}\"\n");
            if let Some((budget, period)) = cell.split_once('/') {
                text += &format!(
                    "reservation = {{ budget = \"{budget}ms\", period = \"{period}ms\" }}\n"
                );
            }
            text += "[[cell.task]]\nname = \"t\"\nwcet = \"1ms\"\nperiod = \"100ms\"\n";
        }
        fit(&TaskSet::parse("x", &text).expect("a task set"), cpus)
    }

    #[test]
    fn cells_fit_or_do_not() {
        assert_eq!(
            fit_of("5/10 5/10", 1),
            (Outcome::Holds, "the cells fit (cpu 0: c0, c1)".to_owned())
        );
        assert_eq!(fit_of("5/10 6/10", 1).0, Outcome::Missed);
        assert_eq!(fit_of("5/10 6/10", 2).0, Outcome::Holds);
        assert_eq!(fit_of("whole 1/10", 1).0, Outcome::Missed);
        assert_eq!(fit_of("whole 1/10", 2).0, Outcome::Holds);
        assert_eq!(
            fit_of("6/10 6/10 6/10", 2).0,
            Outcome::Undecided,
            "1.8 of 2 cpus, but not on two"
        );
        assert_eq!(fit_of("1/2 1/3 1/7 1/42", 1).0, Outcome::Holds, "exactly 1");
    }
}
