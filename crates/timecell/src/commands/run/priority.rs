//! The priorities of a program whose command line names none: they follow its period, not the order of starting. Otherwise the first program
//! would get the highest priority, and a later one with a shorter period could not preempt it.

use model::Enforcer;
use supervise::ledger::Entry;

use crate::cli::Run;

/// The highest and the lowest priority that is given.
const HIGHEST: u8 = 89;
const LEAST: u8 = 10;
/// The periods, ns, that get these; the distance between priorities follows the ratio of the periods.
const SHORTEST_NS: f64 = 250e3;
const LONGEST_NS: f64 = 10e9;

/// The lowest and highest priority, in a range that is free; `None` if admission is to choose them, as for any other mission.
pub(super) fn by_period(options: &Run, others: &[Entry]) -> Option<(u8, u8)> {
    let many = u8::try_from(options.task.len().max(1)).ok()?;
    // A single task may be held by SCHED_DEADLINE, which has no priorities.
    let may_be_deadline = match options.enforcer {
        None => options.reserve.is_none() && many == 1,
        Some(enforcer) => matches!(enforcer, Enforcer::Deadline | Enforcer::CpusetOnly),
    };
    if may_be_deadline {
        return None;
    }
    let of_tasks = options.task.iter().map(|task| task.work.period_ns).min();
    let period_ns = of_tasks.or(options.reserve.map(|reserve| reserve.period_ns))?;
    let cells = others.iter().flat_map(|entry| &entry.cells);
    let holds = cells.flat_map(|cell| &cell.holds);
    let taken: Vec<(u8, u8)> = holds.filter_map(|hold| hold.priorities).collect();
    next_to(place(period_ns), many, &taken)
}

/// The priority for a period, ns.
fn place(period_ns: i64) -> u8 {
    let period = (period_ns as f64).clamp(SHORTEST_NS, LONGEST_NS);
    let share = (period / SHORTEST_NS).ln() / (LONGEST_NS / SHORTEST_NS).ln();
    let below = (share * f64::from(HIGHEST - LEAST)).round();
    // 0 to 79.
    HIGHEST - below as u8
}

/// A free range of `many` priorities whose highest is as close to `wanted` as possible, below rather than above.
fn next_to(wanted: u8, many: u8, taken: &[(u8, u8)]) -> Option<(u8, u8)> {
    let band = |highest: u8| {
        let lowest = highest.checked_sub(many - 1)?;
        let is_free = taken
            .iter()
            .all(|(low, high)| *high < lowest || highest < *low);
        let fits = lowest >= 1 && highest <= HIGHEST;
        (fits && is_free).then_some((lowest, highest))
    };
    (0..=HIGHEST).find_map(|away| {
        let below = wanted.checked_sub(away).and_then(band);
        below.or_else(|| wanted.checked_add(away).and_then(band))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_more_often_comes_first() {
        let ms = 1_000_000;
        let places = [1, ms / 4, ms, 2 * ms, 10 * ms, 100 * ms, 1_000 * ms].map(place);
        assert!(places.is_sorted_by(|a, b| a >= b), "{places:?}");
        assert_eq!((places[0], places[1], place(i64::MAX)), (89, 89, 10));
        // Between two usual periods there is room for others.
        assert!(place(10 * ms) >= place(100 * ms) + 16);
        assert!(place(10 * ms) > place(20 * ms) + 3);
    }

    #[test]
    fn what_somebody_has_is_left_to_them() {
        assert_eq!(next_to(60, 1, &[]), Some((60, 60)));
        assert_eq!(next_to(60, 1, &[(60, 60)]), Some((59, 59)));
        assert_eq!(next_to(60, 1, &[(58, 60)]), Some((61, 61)));
        assert_eq!(next_to(60, 3, &[(60, 60)]), Some((57, 59)));
        assert_eq!(next_to(1, 2, &[]), Some((1, 2)));
        assert_eq!(next_to(60, 1, &[(1, 89)]), None);
    }
}
