//! Whether all reservations fit on the cpus together.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use analysis::multi::{Fit, Order, partition};
use analysis::{Task, Verdict, edf, utilization};
use model::Duration;
use model::taskset::{Reservation, TaskCell, TaskSet};

use super::judge::ns;
use super::study::Outcome;
use text::units::exact;

/// The placement of the cells.
pub(super) struct Fitted {
    /// Whether they fit.
    pub outcome: Outcome,
    /// The sentence that says so.
    pub what: String,
    /// The cpus of each cell, if they fit.
    pub cpus: Option<Vec<Vec<usize>>>,
}

/// Whether the cells' reservations fit onto the cpus.
///
/// A cell with a server is on the cpu that the file sets, which cells without one do not share. Every other cell is a task
/// with its budget, period and deadline; one without a reservation takes a whole cpu. A cpu takes the cells whose
/// reservations EDF, as SCHED_DEADLINE, supplies in time; a placement whose cpus are all `liked` is preferred. A placement
/// that was found is proved; that none was found is a proof only if the cells need more than there is. A cell on several
/// cpus has an equal share on each of as many cpus.
pub(super) fn fit(set: &TaskSet, cpus: u32, liked: &dyn Fn(&[Task]) -> bool) -> Fitted {
    if set.cells.iter().all(|cell| cell.policy.cpus().is_none()) {
        return fit_each(set, cpus, liked);
    }
    let without = |outcome, what| Fitted {
        outcome,
        what,
        cpus: None,
    };
    let wide = |cell: &&TaskCell| cell.policy.cpus().is_some_and(|wanted| wanted > cpus);
    if let Some(cell) = set.cells.iter().find(wide) {
        let wanted = cell.policy.cpus().unwrap_or(0);
        let what = format!(
            "cell {} needs {wanted} cpus, but there are {cpus}",
            cell.name
        );
        return without(Outcome::Fails, what);
    }
    let shares: usize = set
        .cells
        .iter()
        .map(|cell| to_usize(cell.policy.cpus().unwrap_or(1)))
        .sum();
    if shares > MOST_SHARES {
        let what =
            format!("the cells have {shares} shares of cpus; at most {MOST_SHARES} can be placed");
        return without(Outcome::Undecided, what);
    }
    let (spread, owners) = spread(set);
    let fitted = fit_each(&spread, cpus, liked);
    let Some(cpu_of) = &fitted.cpus else {
        return fitted;
    };
    let places: BTreeSet<(usize, usize)> = owners
        .iter()
        .copied()
        .zip(cpu_of.iter().flatten().copied())
        .collect();
    if places.len() < owners.len() {
        let what = "no placement was found in which the shares of each cell are on different cpus";
        return without(Outcome::Undecided, what.to_owned());
    }
    let mut cpus = vec![Vec::new(); set.cells.len()];
    for (owner, cpu) in places {
        cpus[owner].push(cpu);
    }
    Fitted {
        cpus: Some(cpus),
        ..fitted
    }
}

/// Maximum number of shares of cells that are placed.
const MOST_SHARES: usize = 20_000;

/// The set with one cell for each share of those on several cpus, and the cell of the set to which each belongs.
fn spread(set: &TaskSet) -> (TaskSet, Vec<usize>) {
    let mut cells = Vec::new();
    let mut owners = Vec::new();
    for (place, cell) in set.cells.iter().enumerate() {
        let reservation = share(cell);
        for _ in 0..cell.policy.cpus().unwrap_or(1) {
            cells.push(TaskCell {
                reservation,
                ..cell.clone()
            });
            owners.push(place);
        }
    }
    let spread = TaskSet {
        cells,
        ..set.clone()
    };
    (spread, owners)
}

fn fit_each(set: &TaskSet, cpus: u32, liked: &dyn Fn(&[Task]) -> bool) -> Fitted {
    let served = set.cells.iter().filter_map(|cell| cell.server);
    let taken: BTreeSet<u32> = served.map(|server| server.on_cpu()).collect();
    let free: Vec<usize> = (0..cpus)
        .filter(|cpu| !taken.contains(cpu))
        .map(to_usize)
        .collect();
    let places: Vec<usize> = (0..set.cells.len())
        .filter(|&cell| set.cells[cell].server.is_none())
        .collect();
    let reservations: Vec<Task> = places
        .iter()
        .map(|&cell| reserved(&set.cells[cell]))
        .collect();
    if let Some(bins) = placement(&reservations, free.len(), liked) {
        let mut cpu_of: Vec<usize> = set
            .cells
            .iter()
            .map(|cell| cell.server.map_or(0, |server| to_usize(server.on_cpu())))
            .collect();
        for (bin, members) in bins.iter().enumerate() {
            for &member in members {
                cpu_of[places[member]] = free[bin];
            }
        }
        return Fitted {
            outcome: Outcome::Holds,
            what: placed(set, &cpu_of),
            cpus: Some(cpu_of.into_iter().map(|cpu| vec![cpu]).collect()),
        };
    }
    let each = if free.len() == 1 { "cpu" } else { "cpus" };
    let count = match (free.len(), taken.len()) {
        (0, _) => "cpus without servers, but there are none".to_owned(),
        (1, 0) => "only cpu".to_owned(),
        (free, 0) => format!("{free} available cpus"),
        (free, _) => format!("{free} {each} without servers"),
    };
    // On one cpu there is nothing to place: no policy can supply more there than EDF.
    if let ([_], Verdict::Unschedulable(witness)) = (&*free, edf::verdict(&reservations)) {
        let what = if utilization::compare_with_one(&reservations).is_gt() {
            format!("the cells reserve more than the {count}")
        } else {
            format!(
                "the {count} cannot supply all reservations in time: by {}, up to {} may be due, {} too much",
                exact(witness.instant),
                exact(witness.demand),
                exact(witness.demand.saturating_sub(witness.supply))
            )
        };
        return Fitted {
            outcome: Outcome::Fails,
            what,
            cpus: None,
        };
    }
    // Σ Q/P against m, as Σ Q/(mP) against 1.
    let shared: Option<Vec<Task>> = reservations
        .iter()
        .map(|server| {
            let period = server.period.checked_mul(free.len() as u64)?;
            Some(Task::new(server.wcet, period.max(1)))
        })
        .collect();
    let (outcome, what) = match shared.map(|tasks| utilization::compare_with_one(&tasks)) {
        _ if free.is_empty() => (
            Outcome::Fails,
            format!("cells without servers need {count}"),
        ),
        Some(Ordering::Greater) => (
            Outcome::Fails,
            format!("the cells reserve more than the {count}"),
        ),
        _ => (
            Outcome::Undecided,
            format!(
                "no placement of the cells on the {count} was found, though they do not reserve more in total"
            ),
        ),
    };
    Fitted {
        outcome,
        what,
        cpus: None,
    }
}

/// The reservation of a cell on each of its cpus.
pub(super) fn share(cell: &TaskCell) -> Option<Reservation> {
    let mut reservation = cell.reservation?;
    let cpus = cell.policy.cpus().unwrap_or(1);
    let each = ns(reservation.budget).div_ceil(cpus.max(1).into());
    reservation.budget = Duration::from_ns(i64::try_from(each).unwrap_or(i64::MAX));
    Some(reservation)
}

fn to_usize(cpu: u32) -> usize {
    usize::try_from(cpu).unwrap_or(usize::MAX)
}

/// A cell's reservation as a task.
pub(super) fn reserved(cell: &TaskCell) -> Task {
    match &cell.reservation {
        Some(r) => Task::new(ns(r.budget), ns(r.period)).due(ns(r.deadline)),
        None => Task::new(1_000_000, 1_000_000),
    }
}

/// The reservations on each cpu, by the first heuristic that places all.
fn placement(
    reservations: &[Task],
    cpus: usize,
    liked: &dyn Fn(&[Task]) -> bool,
) -> Option<Vec<Vec<usize>>> {
    let holds = |bin: &[Task]| edf::verdict(bin).is_schedulable();
    let likes = |bin: &[Task]| liked(bin) && holds(bin);
    let orders = [Order::Decreasing, Order::AsGiven];
    let fits = [Fit::First, Fit::Best, Fit::Worst, Fit::Next];
    let by = |test: &dyn Fn(&[Task]) -> bool| {
        let mut ways = orders
            .iter()
            .flat_map(|&order| fits.iter().map(move |&fit| (order, fit)));
        ways.find_map(|(order, fit)| {
            let found = partition(reservations, cpus, fit, order, &|bin: &[Task]| test(bin));
            found.is_complete().then_some(found.bins)
        })
    };
    by(&likes).or_else(|| by(&holds))
}

fn placed(set: &TaskSet, cpu_of: &[usize]) -> String {
    let used: BTreeSet<usize> = cpu_of.iter().copied().collect();
    let cpus: Vec<String> = used
        .into_iter()
        .map(|cpu| {
            let cells = set.cells.iter().zip(cpu_of);
            let names: Vec<&str> = cells
                .filter(|&(_, &on)| on == cpu)
                .map(|(cell, _)| cell.name.as_str())
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
                let (period, deadline) = period.split_once('/').unwrap_or((period, period));
                text += &format!(
                    "reservation = {{ budget = \"{budget}ms\", period = \"{period}ms\", deadline = \"{deadline}ms\" }}\n"
                );
            }
            text += "[[cell.task]]\nname = \"t\"\nwcet = \"1ms\"\nperiod = \"100ms\"\n";
        }
        let set = TaskSet::parse("x", &text).expect("a task set");
        let fitted = fit(&set, cpus, &|_| true);
        (fitted.outcome, fitted.what)
    }

    #[test]
    fn shares_of_one_cell_are_on_different_cpus() {
        let fit_of = |global: &str, other: &str, cpus| {
            let text = format!(
                "schema = 1\n[[cell]]\nname = \"g\"\npolicy = \"global-edf\"\n{global}\n\
                 [[cell.task]]\nname = \"t\"\nwcet = \"1ms\"\nperiod = \"100ms\"\n\
                 [[cell]]\nname = \"o\"\n{other}\n[[cell.task]]\nname = \"t\"\nwcet = \"1ms\"\nperiod = \"100ms\"\n"
            );
            let set = TaskSet::parse("x", &text).expect("a task set");
            let fitted = fit(&set, cpus, &|_| true);
            (fitted.outcome, fitted.what)
        };
        let part = |budget: &str, more: &str| {
            format!("reservation = {{ budget = \"{budget}\", period = \"10ms\"{more} }}")
        };
        assert_eq!(
            fit_of("cpus = 2", "", 3),
            (
                Outcome::Holds,
                "the cells fit (cpu 0: g; cpu 1: g; cpu 2: o)".to_owned()
            )
        );
        assert_eq!(fit_of("cpus = 2", "", 2).0, Outcome::Fails);
        assert_eq!(fit_of("cpus = 2", "", 1).0, Outcome::Fails);
        let shared = part("15ms", ", cpus = 2");
        assert_eq!(fit_of(&shared, &part("2ms", ""), 2).0, Outcome::Holds);
        assert_eq!(fit_of(&shared, &part("3ms", ""), 2).0, Outcome::Undecided);
        assert_eq!(fit_of(&shared, &part("6ms", ""), 2).0, Outcome::Fails);
    }

    #[test]
    fn cells_fit_or_do_not() {
        assert_eq!(
            fit_of("5/10 5/10", 1),
            (Outcome::Holds, "the cells fit (cpu 0: c0, c1)".to_owned())
        );
        assert_eq!(fit_of("5/10 6/10", 1).0, Outcome::Fails);
        assert_eq!(
            fit_of("3/10/4 3/10/4", 1).0,
            Outcome::Fails,
            "6 ms within 4 ms"
        );
        assert_eq!(fit_of("3/10/4 3/10/4", 2).0, Outcome::Holds);
        assert_eq!(fit_of("5/10 6/10", 2).0, Outcome::Holds);
        assert_eq!(fit_of("whole 1/10", 1).0, Outcome::Fails);
        assert_eq!(fit_of("whole 1/10", 2).0, Outcome::Holds);
        assert_eq!(
            fit_of("6/10 6/10 6/10", 2).0,
            Outcome::Undecided,
            "1.8 of 2 cpus, but not on two"
        );
        assert_eq!(fit_of("1/2 1/3 1/7 1/42", 1).0, Outcome::Holds, "exactly 1");
    }
}
