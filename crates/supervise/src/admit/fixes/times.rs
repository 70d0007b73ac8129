//! Fix by other times of tasks: of the late one first, then of all tasks of its cell in the same proportion.

use analysis::Ns;
use model::mission::{Cell, Limits, Task};

use super::super::asked::ns;
use super::edit::Time;
use super::search::{Search, nearest, step};
use super::{Edit, budget};

/// The longest time that a mission file may have.
const LONGEST: Ns = Limits::LONGEST_NS.unsigned_abs();

/// Longer deadlines, up to the period.
pub(super) fn deadline(search: &Search<'_>) -> Option<Vec<Edit>> {
    let up = [110, 125, 150, 200, 300, 400, 600, 800, 1_600];
    scaled(search, &up, |cell, task, fine| {
        let timing = &task.timing;
        let (own, period) = (ns(timing.deadline), ns(timing.period));
        let longer = part(own, fine).min(period);
        if longer <= own {
            return Vec::new();
        }
        let (cell, task) = (cell.name.clone(), task.name().to_owned());
        vec![Edit::Time(cell, task, Time::Deadline, longer)]
    })
}

/// Longer periods, with the deadlines in proportion.
pub(super) fn period(search: &Search<'_>) -> Option<Vec<Edit>> {
    let up = [
        110, 125, 150, 200, 300, 400, 600, 800, 1_200, 1_600, 3_200, 6_400, 12_800,
    ];
    scaled(search, &up, |cell, task, fine| {
        let timing = &task.timing;
        if part(ns(timing.period), fine) <= ns(timing.period) {
            return Vec::new();
        }
        let edit = |which, own| {
            let longer = part(ns(own), fine);
            Edit::Time(cell.name.clone(), task.name().to_owned(), which, longer)
        };
        // Written out also where the file leaves it out, so that the edits mean the same in every file.
        vec![
            edit(Time::Period, timing.period),
            edit(Time::Deadline, timing.deadline),
        ]
    })
}

/// Shorter execution times.
pub(super) fn wcet(search: &Search<'_>) -> Option<Vec<Edit>> {
    scaled(search, &[90, 75, 50, 25, 10, 5, 1], |cell, task, fine| {
        let timing = &task.timing;
        let edit = |which, own| {
            let shorter = part(ns(own), fine).max(1_000);
            Edit::Time(cell.name.clone(), task.name().to_owned(), which, shorter)
        };
        let low = edit(Time::Wcet, timing.wcet);
        let high = timing.wcet_high.map(|high| edit(Time::WcetHigh, high));
        [low].into_iter().chain(high).collect()
    })
}

/// Scales times by as little as helps: of the late task of each cell concerned, else of all its tasks, cell by cell; or of all
/// tasks of these cells in one proportion, where that changes no time as much; with other budgets where that is not enough. `ladder` in percent.
fn scaled(
    search: &Search<'_>,
    ladder: &[Ns],
    edit: impl Fn(&Cell, &Task, Ns) -> Vec<Edit>,
) -> Option<Vec<Edit>> {
    // In parts of a percent, so that the steps of the search are fine enough.
    let sought = |at: &dyn Fn(Ns) -> Vec<Edit>, helps: &dyn Fn(&[Edit]) -> bool| {
        let steps = ladder.iter().map(|percent| percent * FINE);
        let found = nearest(100 * FINE, steps, |fine| {
            let more = at(fine);
            !more.is_empty() && helps(&more)
        })?;
        Some((found, at(found)))
    };
    let all = |fine: Ns| -> Vec<Edit> {
        let cells = search.concerned(&[]).into_iter();
        cells
            .flat_map(|cell| cell.tasks.iter().map(move |task| (cell, task)))
            .flat_map(|(cell, task)| edit(cell, task, fine))
            .collect()
    };
    // A budget that was sought for a cell alone may be too small beside others.
    let with_budgets = |edits: Vec<Edit>| {
        search.by_cell_from(edits, |cell, edits, open| {
            budget::of_cell(search, cell, edits, open)
        })
    };
    let together = sought(&all, &|edits| {
        search.faults_after(edits) == 0 || with_budgets(edits.to_vec()).is_some()
    })
    .and_then(|(fine, edits)| Some((fine, with_budgets(edits)?)));
    let farthest = std::cell::Cell::new(0);
    let one_by_one = search.by_cell(|cell, edits, open| {
        if let Some(budget) = (!edits.is_empty())
            .then(|| budget::of_cell(search, cell, edits, open))
            .flatten()
        {
            return Some(budget);
        }
        let helps = |more: &[Edit]| search.helps(edits, more, open);
        let late = search.late(cell);
        let late = cell.tasks.iter().find(|task| late == Some(task.name()));
        let of = |tasks: &[&Task], fine| -> Vec<Edit> {
            let each = tasks.iter().flat_map(|task| edit(cell, task, fine));
            each.collect()
        };
        let every: Vec<&Task> = cell.tasks.iter().collect();
        let (found, edits) = late
            .and_then(|late| sought(&|fine| of(&[late], fine), &helps))
            .or_else(|| sought(&|fine| of(&every, fine), &helps))?;
        farthest.set(farthest.get().max(change(found)));
        Some(edits)
    });
    match (one_by_one, together) {
        (Some(edits), Some((fine, _))) if farthest.get() <= change(fine) => Some(edits),
        (_, Some((_, edits))) => Some(edits),
        (edits, None) => edits,
    }
}

/// By how much a factor changes a time, whichever way, in parts of a percent.
fn change(fine: Ns) -> Ns {
    match fine < 100 * FINE {
        true => (100 * FINE).saturating_mul(100 * FINE) / fine.max(1),
        false => fine,
    }
}

/// Parts of a percent in which factors are sought.
const FINE: Ns = 1_000;

/// So much of a time, in whole steps of about a thousandth of it, away from the time itself; never more than a file may have.
fn part(own: Ns, fine: Ns) -> Ns {
    let scaled = u128::from(own) * u128::from(fine) / u128::from(100 * FINE);
    let scaled = Ns::try_from(scaled).unwrap_or(Ns::MAX).min(LONGEST);
    let step = step(1, scaled / 1_000);
    match fine > 100 * FINE {
        true => (scaled.div_ceil(step) * step).min(LONGEST),
        false => (scaled / step) * step,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_part_of_any_time_is_near_it_and_no_longer_than_a_file_may_have(
            digits in 0u32..19,
            own in 1..=LONGEST,
            fine in 1..=12_800 * FINE,
        ) {
            let own = (own / 10u64.pow(digits)).max(1);
            let exact = u128::from(own) * u128::from(fine) / u128::from(100 * FINE);
            let found = u128::from(part(own, fine));
            prop_assert!(found <= u128::from(LONGEST));
            let due = exact.min(u128::from(LONGEST));
            prop_assert!(found.abs_diff(due) <= due / 100 + 1, "{found} of {due}");
        }
    }

    #[test]
    fn the_longest_times_end() {
        for own in [LONGEST - 1, LONGEST] {
            for fine in [1, 100 * FINE, 101 * FINE, 12_800 * FINE] {
                assert!(part(own, fine) <= LONGEST);
            }
        }
    }
}
