//! The least changes that make a set hold.

use model::Duration;
use model::taskset::{Order, Policy, TaskCell};
use serde::Serialize;

use super::judge::holds;

/// Changes are searched for on this grid.
pub(super) const GRID_NS: i64 = 1_000;

/// Cells with more tasks than this are not searched: the search runs the exact test hundreds of times.
pub(super) const MOST_TASKS: usize = 256;

/// The maximum number of tasks of the demand whose parameters are tried, one task at a time.
const MOST_PARTS: usize = 16;

/// Steps of each of those tests, some hundredths of a second; an undecided test counts as no fix.
const STEPS: u64 = 1 << 22;

/// One number of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// The reservation's budget, raised.
    Budget,
    /// The reservation's period, shortened with the same budget.
    ReservationPeriod,
    /// A task's deadline, extended.
    Deadline,
    /// A task's execution time, shortened.
    Wcet,
    /// A task's execution time in high mode, shortened.
    WcetHigh,
    /// A task moved to another cell.
    Move,
}

/// The least change of one number after which every deadline of the cell holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fix {
    /// The number or placement to change.
    pub change: Change,
    /// Index of the task, if it is a task's.
    pub task: Option<usize>,
    /// Its value now, ns; 0 for a move.
    pub from_ns: i64,
    /// Its new value, ns; 0 for a move.
    pub to_ns: i64,
}

impl Fix {
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
            (Change::WcetHigh, Some(task), _) => cell.tasks[task].wcet_high = Some(to),
            (Change::Move, Some(task), _) => {
                cell.tasks.remove(task);
            }
            _ => {}
        }
        cell
    }

    /// The change relative to the number changed, for sorting the smallest first.
    fn weight(&self) -> f64 {
        match self.change {
            Change::Move => f64::INFINITY,
            _ => (self.to_ns - self.from_ns).abs() as f64 / self.from_ns.max(1) as f64,
        }
    }
}

/// Whether every deadline of a cell holds; `None` if that is undecided.
pub(super) type Test<'a> = dyn Fn(&TaskCell) -> Option<bool> + 'a;

/// Every single change that would fix the cell, the relatively smallest first; empty if none does. For a cell whose supply does
/// not depend on other cells.
///
/// Each is the least on a grid of 1 us, found with the exact tests; a value for which the test gives no answer counts as
/// insufficient. `task` is the one whose deadline is missed, `parts` are the tasks that make up the demand. Empty also for
/// cells of more than 256 tasks, which are not searched.
pub fn fixes(cell: &TaskCell, task: usize, parts: &[usize]) -> Vec<Fix> {
    let reservation = cell.reservation;
    let raise = reservation.map_or(0, |r| r.deadline.ns() - r.budget.ns());
    fixes_where(cell, task, parts, raise, &|cell| holds(cell, STEPS))
}

/// Like [`fixes`], with the budget raised by at most `raise` ns, and `holds` as the test of a changed cell.
pub(super) fn fixes_where(
    cell: &TaskCell,
    task: usize,
    parts: &[usize],
    raise: i64,
    holds: &Test<'_>,
) -> Vec<Fix> {
    if cell.tasks.len() > MOST_TASKS {
        return Vec::new();
    }
    let mut found = Vec::new();
    if let Some(reservation) = cell.reservation {
        let budget = reservation.budget.ns();
        let more = |steps| Fix {
            change: Change::Budget,
            task: None,
            from_ns: budget,
            to_ns: budget + steps * GRID_NS,
        };
        found.extend(least(cell, raise / GRID_NS, &[], more, holds));
        let period = reservation.period.ns();
        let shorten = |steps| Fix {
            change: Change::ReservationPeriod,
            task: None,
            from_ns: period,
            to_ns: period - steps * GRID_NS,
        };
        found.extend(least(
            cell,
            (period - budget) / GRID_NS,
            &[],
            shorten,
            holds,
        ));
    }
    if let Some(late) = cell.tasks.get(task) {
        let from_ns = late.deadline.ns();
        let longest = if is_sufficient(cell.policy) {
            // Those tests do not cover deadlines beyond the period.
            late.period.ns()
        } else {
            late.period.ns().max(from_ns).saturating_mul(64)
        };
        let postpone = |steps| Fix {
            change: Change::Deadline,
            task: Some(task),
            from_ns,
            to_ns: from_ns.saturating_add(steps * GRID_NS),
        };
        found.extend(least(
            cell,
            (longest - from_ns) / GRID_NS,
            &overtakings(cell, from_ns),
            postpone,
            holds,
        ));
    }
    let parts = parts.iter().filter(|&&part| part < cell.tasks.len());
    let shorter = parts.clone().take(MOST_PARTS).filter_map(|&part| {
        let from_ns = cell.tasks[part].wcet.ns();
        let shorten = |steps| Fix {
            change: Change::Wcet,
            task: Some(part),
            from_ns,
            to_ns: from_ns - steps * GRID_NS,
        };
        least(cell, (from_ns - 1) / GRID_NS, &[], shorten, holds)
    });
    found.extend(shorter.min_by(|a, b| a.weight().total_cmp(&b.weight())));
    let shorter = parts.clone().take(MOST_PARTS).filter_map(|&part| {
        let (from_ns, low) = (cell.tasks[part].wcet_high?.ns(), cell.tasks[part].wcet.ns());
        let shorten = |steps| Fix {
            change: Change::WcetHigh,
            task: Some(part),
            from_ns,
            to_ns: from_ns - steps * GRID_NS,
        };
        least(cell, (from_ns - low) / GRID_NS, &[], shorten, holds)
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

fn go(part: usize) -> Fix {
    Fix {
        change: Change::Move,
        task: Some(part),
        from_ns: 0,
        to_ns: 0,
    }
}

/// Whether a policy's tests do not prove every miss.
fn is_sufficient(policy: Policy) -> bool {
    !matches!(policy, Policy::Fixed(_) | Policy::Edf)
}

/// The fix with the fewest steps, at most `most`, after which the cell holds.
///
/// `turns` are the steps, ascending, beyond which a larger change need not be better; between two of them it is.
fn least(
    cell: &TaskCell,
    most: i64,
    turns: &[i64],
    fix: impl Fn(i64) -> Fix,
    holds: &Test<'_>,
) -> Option<Fix> {
    let good = |steps: i64| holds(&fix(steps).applied(cell)) == Some(true);
    if most < 1 {
        return None;
    }
    let mut low = 0;
    let mut found = None;
    for &turn in turns.iter().filter(|&&turn| turn < most) {
        if good(turn) {
            found = Some(turn);
            break;
        }
        low = turn;
    }
    // The bound grows from a single step, since small changes are searched for.
    let mut high = found.unwrap_or(low + 1);
    let start = low;
    while found.is_none() && !good(high) {
        if high == most {
            return None;
        }
        low = high;
        high = (high - start)
            .saturating_mul(4)
            .saturating_add(start)
            .min(most);
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if good(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Some(fix(high))
}

/// The last steps of a deadline, growing from `from_ns`, before it reaches that of another task, and before it passes it:
/// where priorities follow the deadlines, only there do they change.
fn overtakings(cell: &TaskCell, from_ns: i64) -> Vec<i64> {
    if cell.policy != Policy::Fixed(Order::Deadline) {
        return Vec::new();
    }
    let others = cell.tasks.iter().map(|task| task.deadline.ns());
    let mut turns: Vec<i64> = others
        .filter(|&other| other > from_ns)
        .flat_map(|other| [(other - from_ns - 1) / GRID_NS, (other - from_ns) / GRID_NS])
        .filter(|&steps| steps > 0)
        .collect();
    turns.sort_unstable();
    turns.dedup();
    turns
}

#[cfg(test)]
mod tests;
