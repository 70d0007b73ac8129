use analysis::{Task, utilization};
use model::Duration;
use model::taskset::{Policy, TaskCell};
use serde::Serialize;

use super::judge::{holds, ns, task};

/// Changes are sought on this grid.
const GRID_NS: i64 = 1_000;

/// Cells with more tasks than this are not searched: the search runs the exact test hundreds of times.
const MOST_TASKS: usize = 256;

/// A task's parameters are changed one task at a time, for so many of the tasks that make up the demand.
const MOST_PARTS: usize = 16;

/// One number of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// The reservation's budget, raised.
    Budget,
    /// The reservation's period, shortened, the budget kept.
    ReservationPeriod,
    /// A task's deadline, moved out.
    Deadline,
    /// A task's execution time, shortened.
    Wcet,
    /// A task moved to another cell.
    Move,
}

/// The least change of one number after which every deadline of the cell holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mend {
    /// What to change.
    pub change: Change,
    /// Index of the task, where it is one.
    pub task: Option<usize>,
    /// Its value now, ns; 0 for a move.
    pub from_ns: i64,
    /// Its value then, ns; 0 for a move.
    pub to_ns: i64,
}

impl Mend {
    /// The cell after the change.
    #[must_use]
    pub fn applied(&self, cell: &TaskCell) -> TaskCell {
        let mut cell = cell.clone();
        let to = Duration::from_ns(self.to_ns);
        match (self.change, self.task, &mut cell.reservation) {
            (Change::Budget, _, Some(reservation)) => reservation.budget = to,
            (Change::ReservationPeriod, _, Some(reservation)) => {
                if reservation.deadline == reservation.period || reservation.deadline > to {
                    reservation.deadline = to;
                }
                reservation.period = to;
            }
            (Change::Deadline, Some(task), _) => cell.tasks[task].deadline = to,
            (Change::Wcet, Some(task), _) => cell.tasks[task].wcet = to,
            (Change::Move, Some(task), _) => {
                cell.tasks.remove(task);
            }
            _ => {}
        }
        cell
    }

    /// The change relative to the number changed, for putting the gentlest first.
    fn weight(&self) -> f64 {
        match self.change {
            Change::Move => f64::INFINITY,
            _ => (self.to_ns - self.from_ns).abs() as f64 / self.from_ns.max(1) as f64,
        }
    }
}

/// Every kind of change that alone would mend the cell, the relatively smallest first; empty when none does.
///
/// Each is the least on a grid of 1 us, found with the exact tests; a reservation that EDF tasks would use up to the last
/// ns is passed over for the next. `task` is the one whose deadline is missed, `parts` are the tasks that make up the
/// demand. Empty also for cells of more than 256 tasks, which are not searched.
pub fn mends(cell: &TaskCell, task: usize, parts: &[usize]) -> Vec<Mend> {
    if cell.tasks.len() > MOST_TASKS {
        return Vec::new();
    }
    let mut found = Vec::new();
    if let Some(reservation) = cell.reservation {
        let budget = reservation.budget.ns();
        let room = reservation.deadline.ns() - budget;
        let raise = |steps| Mend {
            change: Change::Budget,
            task: None,
            from_ns: budget,
            to_ns: budget + steps * GRID_NS,
        };
        found.extend(least(cell, room / GRID_NS, raise));
        let period = reservation.period.ns();
        let shorten = |steps| Mend {
            change: Change::ReservationPeriod,
            task: None,
            from_ns: period,
            to_ns: period - steps * GRID_NS,
        };
        found.extend(least(cell, (period - budget) / GRID_NS, shorten));
    }
    if let Some(late) = cell.tasks.get(task) {
        let from_ns = late.deadline.ns();
        let longest = late.period.ns().max(from_ns).saturating_mul(64);
        let postpone = |steps| Mend {
            change: Change::Deadline,
            task: Some(task),
            from_ns,
            to_ns: from_ns.saturating_add(steps * GRID_NS),
        };
        found.extend(least(cell, (longest - from_ns) / GRID_NS, postpone));
    }
    let parts = parts.iter().filter(|&&part| part < cell.tasks.len());
    let shorter = parts.clone().take(MOST_PARTS).filter_map(|&part| {
        let from_ns = cell.tasks[part].wcet.ns();
        let shorten = |steps| Mend {
            change: Change::Wcet,
            task: Some(part),
            from_ns,
            to_ns: from_ns - steps * GRID_NS,
        };
        least(cell, (from_ns - 1) / GRID_NS, shorten)
    });
    found.extend(shorter.min_by(|a, b| a.weight().total_cmp(&b.weight())));
    if cell.tasks.len() > 1 {
        let lightest = |&&part: &&usize| {
            let task = &cell.tasks[part];
            u128::from(task.wcet.ns().unsigned_abs()) * 1_000_000_000
                / u128::from(task.period.ns().unsigned_abs().max(1))
        };
        let moved = parts
            .take(MOST_PARTS)
            .filter(|&&part| holds(&go(part).applied(cell)) == Some(true))
            .min_by_key(lightest);
        found.extend(moved.map(|&part| go(part)));
    }
    found.sort_by(|a, b| a.weight().total_cmp(&b.weight()));
    found
}

fn go(part: usize) -> Mend {
    Mend {
        change: Change::Move,
        task: Some(part),
        from_ns: 0,
        to_ns: 0,
    }
}

/// The mend with the fewest steps, of `most` at most, after which the cell holds. What is undecided is no mend.
fn least(cell: &TaskCell, most: i64, mend: impl Fn(i64) -> Mend) -> Option<Mend> {
    let good = |steps: i64| {
        let changed = mend(steps).applied(cell);
        if is_full(&changed) {
            return Some(false);
        }
        holds(&changed)
    };
    if most < 1 {
        return None;
    }
    // The bound grows from a single step, since small changes are what is sought.
    let (mut low, mut high) = (0, 1);
    while !good(high)? {
        if high == most {
            return None;
        }
        low = high;
        high = high.saturating_mul(4).min(most);
    }
    // Where a longer deadline changes the priorities, more is not always better; the answer is still one that holds.
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if good(middle)? {
            high = middle;
        } else {
            low = middle;
        }
    }
    Some(mend(high))
}

/// Whether EDF tasks demand exactly the rate that is reserved. To decide that takes a hyperperiod, which on a grid of
/// 1 us has no end; one step more decides at once.
fn is_full(cell: &TaskCell) -> bool {
    let (Policy::Edf, Some(reservation)) = (cell.policy, &cell.reservation) else {
        return false;
    };
    let (budget, period) = (ns(reservation.budget), ns(reservation.period));
    if budget >= period {
        return false;
    }
    let tasks = cell.tasks.iter().map(task);
    let with_rest: Vec<Task> = tasks.chain([Task::new(period - budget, period)]).collect();
    utilization::compare_with_one(&with_rest).is_eq()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::taskset::TaskSet;
    use proptest::prelude::*;

    fn cell(text: &str) -> TaskCell {
        let set = TaskSet::parse("x", text).expect("a task set");
        set.cells.into_iter().next().expect("one cell")
    }

    #[test]
    fn each_mend_is_the_least_of_its_kind() {
        let cell = cell(
            "schema = 1\n[[cell]]\nname = \"c\"\nreservation = { budget = \"2ms\", period = \"10ms\" }\n\
             [[cell.task]]\nname = \"a\"\nwcet = \"1ms\"\nperiod = \"20ms\"\n\
             [[cell.task]]\nname = \"b\"\nwcet = \"2ms\"\nperiod = \"24ms\"\n",
        );
        assert_eq!(holds(&cell), Some(false));
        let found = mends(&cell, 1, &[0, 1]);
        let kinds: Vec<Change> = found.iter().map(|mend| mend.change).collect();
        for kind in [
            Change::Budget,
            Change::ReservationPeriod,
            Change::Deadline,
            Change::Wcet,
            Change::Move,
        ] {
            assert!(kinds.contains(&kind), "{kind:?} is not in {kinds:?}");
        }
        for mend in found.iter().filter(|mend| mend.change != Change::Move) {
            assert_eq!(holds(&mend.applied(&cell)), Some(true), "{mend:?}");
            let step = if mend.to_ns > mend.from_ns {
                GRID_NS
            } else {
                -GRID_NS
            };
            let less = Mend {
                to_ns: mend.to_ns - step,
                ..mend.clone()
            };
            assert_eq!(
                holds(&less.applied(&cell)),
                Some(false),
                "{less:?} would do"
            );
        }
    }

    #[test]
    fn a_cell_beyond_help_has_no_mend_of_its_reservation() {
        let cell = cell(
            "schema = 1\n[[cell]]\nname = \"c\"\n\
             [[cell.task]]\nname = \"a\"\nwcet = \"9ms\"\nperiod = \"10ms\"\n\
             [[cell.task]]\nname = \"b\"\nwcet = \"9ms\"\nperiod = \"10ms\"\n",
        );
        let found = mends(&cell, 1, &[0, 1]);
        assert!(
            found
                .iter()
                .all(|m| matches!(m.change, Change::Wcet | Change::Move)),
            "{found:?}"
        );
        assert!(
            found
                .iter()
                .any(|m| m.change == Change::Wcet && m.to_ns == 1_000_000)
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn mends_mend(
            times in prop::collection::vec((1i64..8, 1i64..40), 1..4),
            (budget, spare) in (1i64..10, 0i64..10),
        ) {
            let ms = |n: i64| Duration::from_ns(n * 1_000_000);
            let tasks = times.iter().enumerate().map(|(i, &(wcet, more))| {
                model::taskset::CellTask::new(format!("t{i}"), ms(wcet), ms(wcet + more))
            });
            let period = ms(budget + spare);
            let cell = TaskCell {
                name: "c".to_owned(),
                policy: Policy::Fixed(model::taskset::Order::Deadline),
                reservation: Some(model::taskset::Reservation { budget: ms(budget), period, deadline: period }),
                tasks: tasks.collect(),
            };
            let every: Vec<usize> = (0..cell.tasks.len()).collect();
            if holds(&cell) == Some(false) {
                for mend in mends(&cell, cell.tasks.len() - 1, &every) {
                    prop_assert_eq!(holds(&mend.applied(&cell)), Some(true), "{:?}", mend);
                }
            }
        }
    }
}
