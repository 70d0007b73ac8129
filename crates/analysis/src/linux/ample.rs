//! Budgets that the tasks of a cell cannot use up: as long as nothing else runs in the cell they are never enforced, so that neither the gaps nor
//! the lateness nor the overruns of enforcement count.
//!
//! Such a budget is **ample**. That needs an enforcer that leaves a cell alone, in its place among the priorities of its cpu, as long
//! as the budget is not used up. The freezer and real-time groups of cgroup v1 do. Threads of SCHED_DEADLINE and groups of HCBS
//! (`cpu.rt.max`) do not: the kernel orders them by the deadlines that follow from their periods, so that a long period puts a cell behind
//! others whether its budget is used up or not, and the response times of fixed priorities are not theirs.

use std::collections::BTreeMap;

use super::{BUDGET_GRID_NS, Held, Reaction, most_run};
use crate::inside::fixed_priority;
use crate::reservation::Dedicated;
use crate::{Ns, Task};

/// How much later than a budget can be used up the freezer's look is meant to be, ns: `SLACK_NS` of the rule in the crate `timecell-freezer`.
const SLACK: Ns = 10_000;

/// The charge of an enforcer to a budget, beside the cell's use since that was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Charged {
    /// By the rule of the crate `timecell-freezer`, with looks late by up to L. A cell is frozen when nothing is left.
    ///
    /// - A late look at the end of a period charges as much of the use it finds to the next one as can lie there, up to L, though that may have
    ///   been used at any time since the look before: **L + W(P - L)**, where W(w) is the most that the cell uses in a window of w.
    /// - Notice of the first use of an idle cell comes after [`Reaction::FIRST_USE`], which may have come together over any time before, and the
    ///   look is late by L again (whether it is, is not measured: L is of looks that the clock makes due, and this is taken to be no later than
    ///   they are): **F + W(P)** if the notice is due within the period to which it is charged, **F + L + W(P - F - L)** if that
    ///   begins in between.
    /// - Without notice an idle cell is looked at once a budget. The use since the look before, Q + L at most and the time by which such a look is
    ///   later than exhaustion, is charged to the period that has begun meanwhile: **W(P + Q + L)**.
    Freezer(Reaction),
    /// By the kernel's tick, of this length in ns, to a real-time group of cgroup v1 (kernel/sched/rt.c). The group's timer gives a budget at least
    /// every P while anything is charged or wants to run, and one when it starts again (`start_rt_bandwidth`). The run since the last
    /// tick is not charged by then, and counts on the next budget: **W(P + τ)**. A group is stopped when more than its budget
    /// is charged to it; up to then a refill clears all that is.
    Tick(Ns),
}

impl Charged {
    /// The least budget that is not used up, in periods of `period` ns, by a cell that uses at most `work(w)` in any window of w, if its budget
    /// is `budget` ns; `None`: looks are too late for the period to say.
    fn needed(self, work: impl Fn(Ns) -> Ns, budget: Ns, period: Ns) -> Option<Ns> {
        match self {
            Charged::Freezer(Reaction { late, noticed, .. }) => {
                let first = Reaction::FIRST_USE;
                let reach = late.saturating_add(first);
                let within = period.checked_sub(reach).filter(|left| *left > 0)?;
                let mut most = reach.saturating_add(work(within));
                most = most.max(first.saturating_add(work(period)));
                if !noticed {
                    let idle = budget.saturating_add(late).saturating_add(SLACK);
                    let _ = period.checked_sub(idle).filter(|left| *left > 0)?;
                    most = most.max(work(period.saturating_add(idle)));
                }
                most.checked_add(1)
            }
            Charged::Tick(tick) => Some(work(period.saturating_add(tick))),
        }
    }
}

/// Bounds on the response times of `tasks` (the most urgent first) on a cpu that they share with those `above` alone, ns from the arrival of each:
/// as if nothing held the cell to a budget. `None`: a deadline is not shown to hold so, or exceeds its task's period.
///
/// Response-time analysis ([`fixed_priority`]) with each of those above as [`postponement`](super::postponement) counts it: in a window
/// of w it takes O_j + ceil((w + P_j) / P_j) Q_j at most.
///
/// ```
/// use timecell_analysis::{Task, linux::{Held, responses_below}};
///
/// let ms = 1_000_000;
/// let tasks = [Task::new(2 * ms, 20 * ms), Task::new(3 * ms, 50 * ms)];
/// assert_eq!(responses_below(&tasks, &[]), Some(vec![2 * ms, 5 * ms]));
/// // Two budgets back to back.
/// assert_eq!(responses_below(&tasks, &[Held::exactly(ms, 10 * ms)]), Some(vec![4 * ms, 7 * ms]));
/// assert_eq!(responses_below(&[Task::new(ms, 10 * ms).due(11 * ms)], &[]), None);
/// ```
pub fn responses_below(tasks: &[Task], above: &[Held]) -> Option<Vec<Ns>> {
    if !tasks.iter().all(Task::is_constrained) {
        return None;
    }
    let overdraws = (above.iter()).fold(0, |sum: Ns, held| sum.saturating_add(held.overdraw));
    let own = (tasks.iter()).map(|task| task.blocked(task.blocking.saturating_add(overdraws)));
    let all: Vec<Task> = (above.iter())
        .map(|held| Task::new(held.budget, held.period).jittered(held.period))
        .chain(own)
        .collect();
    let responses = fixed_priority(&all, &Dedicated).responses;
    responses.into_iter().skip(above.len()).collect()
}

/// Whether a budget of `budget` ns every `period` ns is ample: whether it is never used up by these tasks, each of whose jobs is done within its
/// `responses` of its arrival if nothing holds the cell. It is enough that `responses` bound these times, as deadlines that hold do.
///
/// Let no other thread run in the cell, no job run for longer than its wcet or come sooner than its period after the one before.
/// **Claim**: the cell is never stopped. Assume that t is the first instant at which it is. Until t every job ran as if nothing held the cell, so
/// that each was done within its response time of its arrival, and no window before t saw more than W(w), the sum of
/// [`most_run`] over the tasks. So the charge to the budget until t is at most that which [`Charged`] names,
/// which is within the budget; but the cell is stopped only beyond. Hence all jobs are done within these response times.
///
/// That W grows by no more than a window does is not asked of the sum, which may grow faster with several tasks: the real use does not, and
/// the charge of d <= L from before a period together with W(P - d) is at most L and W(P - L).
///
/// Not within the claim: the time until a new cell's first period is over, since the start of a program is no job; and the periods in which a
/// budget is changed or its keeper replaced.
///
/// ```
/// use timecell_analysis::{Task, linux::{Charged, Reaction, is_ample}};
///
/// let ms = 1_000_000;
/// let task = [Task::new(3 * ms / 2, 20 * ms)];
/// let freezer = Charged::Freezer(Reaction::MEASURED);
/// // Six jobs touch a window of 100 ms, though one is done as late as its deadline, and seven one that is longer by a budget.
/// assert!(is_ample(&task, &[20 * ms], 106 * ms / 10, 100 * ms, freezer));
/// assert!(!is_ample(&task, &[20 * ms], 104 * ms / 10, 100 * ms, freezer));
/// assert!(is_ample(&task, &[20 * ms], 9 * ms, 96 * ms, Charged::Tick(4 * ms)));
/// ```
pub fn is_ample(
    tasks: &[Task],
    responses: &[Ns],
    budget: Ns,
    period: Ns,
    charged: Charged,
) -> bool {
    spare_of_ample(tasks, responses, budget, period, charged).is_some()
}

/// The part of an ample budget that these tasks leave, ns: threads that run no task may use as much in any window of two periods, and the cell
/// is still never stopped, since their use adds to that of the tasks in each window. `None`: the budget is not ample. See [`is_ample`].
///
/// ```
/// use timecell_analysis::{Task, linux::{Charged, spare_of_ample}};
///
/// let ms = 1_000_000;
/// let task = [Task::new(3 * ms / 2, 20 * ms)];
/// assert_eq!(spare_of_ample(&task, &[20 * ms], 12 * ms, 96 * ms, Charged::Tick(4 * ms)), Some(3 * ms));
/// assert_eq!(spare_of_ample(&task, &[20 * ms], 8 * ms, 96 * ms, Charged::Tick(4 * ms)), None);
/// ```
pub fn spare_of_ample(
    tasks: &[Task],
    responses: &[Ns],
    budget: Ns,
    period: Ns,
    charged: Charged,
) -> Option<Ns> {
    if budget > period || !covered(tasks, responses) {
        return None;
    }
    let needed = charged.needed(|window| used(tasks, responses, window), budget, period)?;
    budget.checked_sub(needed)
}

/// The least ample budget every `period` ns on a grid of [`BUDGET_GRID_NS`], no more than `most` ns; `None`: there is none. See [`is_ample`].
///
/// By fixpoint from below: the need does not fall as the budget grows.
///
/// ```
/// use timecell_analysis::{Task, linux::{Charged, least_ample}};
///
/// let ms = 1_000_000;
/// let task = [Task::new(3 * ms / 2, 20 * ms)];
/// let tick = Charged::Tick(4 * ms);
/// assert_eq!(least_ample(&task, &[20 * ms], 96 * ms, 95 * ms, tick), Some(9 * ms));
/// assert_eq!(least_ample(&task, &[20 * ms], 96 * ms, 8 * ms, tick), None);
/// ```
pub fn least_ample(
    tasks: &[Task],
    responses: &[Ns],
    period: Ns,
    most: Ns,
    charged: Charged,
) -> Option<Ns> {
    if !covered(tasks, responses) {
        return None;
    }
    let most = most.min(period);
    let mut budget = BUDGET_GRID_NS;
    while budget <= most {
        let work = |window| used(tasks, responses, window);
        let needed = charged.needed(work, budget, period)?;
        if needed <= budget {
            return Some(budget);
        }
        budget = needed.checked_next_multiple_of(BUDGET_GRID_NS)?;
    }
    None
}

/// Periods that are worth trying for an ample budget of these tasks, ns, ascending, from 1 ms to `longest`: 1 ms to 1 s in steps of 1, 2 and 5, ten
/// multiples of the periods of tasks, and periods shorter than these by a few ms. Of more than four periods of tasks it is those whose tasks use most
/// of a cpu together, so that there are 250 at most. A cell's use in a window grows by a job where that is a little longer than a multiple, and an
/// enforcer's reach makes it so.
///
/// ```
/// use timecell_analysis::{Task, linux::ample_periods};
///
/// let ms = 1_000_000;
/// let periods = ample_periods(&[Task::new(ms, 15 * ms)], 30 * ms);
/// let wanted = [1, 2, 3, 4, 5, 8, 9, 10, 13, 14, 15, 18, 19, 20, 25, 28, 29, 30];
/// assert!(wanted.iter().all(|each| periods.contains(&(each * ms))));
/// assert!(periods.is_sorted() && periods.iter().all(|each| (ms..=30 * ms).contains(each)));
/// ```
pub fn ample_periods(tasks: &[Task], longest: Ns) -> Vec<Ns> {
    let multiples = (heaviest(tasks).into_iter())
        .flat_map(|period| (1..=MULTIPLES).filter_map(move |times| period.checked_mul(times)));
    let range = SHORTEST_NS..=longest.min(LONGEST_NS);
    let mut periods: Vec<Ns> = (LADDER_MS.iter().map(|ms| ms * MS))
        .chain(multiples)
        .flat_map(|period| {
            SHORTER_MS
                .iter()
                .map(move |ms| period.saturating_sub(ms * MS))
        })
        .filter(|period| range.contains(period) && period.is_multiple_of(PERIOD_STEP_NS))
        .collect();
    periods.sort_unstable();
    periods.dedup();
    periods
}

/// The periods of tasks whose tasks use most of a cpu together, [`PERIODS_OF_TASKS`] at most.
fn heaviest(tasks: &[Task]) -> Vec<Ns> {
    let mut used: BTreeMap<Ns, Ns> = BTreeMap::new();
    for task in tasks {
        let sum = used.entry(task.period).or_default();
        *sum = sum.saturating_add(task.wcet);
    }
    let mut periods: Vec<(Ns, Ns)> = used.into_iter().collect();
    // Of two as heavy the shorter one comes first.
    periods.sort_by(|(one, of_one), (other, of_other)| {
        let scaled = |sum: &Ns, by: &Ns| u128::from(*sum) * u128::from(*by);
        scaled(of_other, one).cmp(&scaled(of_one, other))
    });
    let periods = periods.into_iter().map(|(period, _)| period);
    periods.take(PERIODS_OF_TASKS).collect()
}

const MS: Ns = 1_000_000;
/// Periods that are tried for any tasks, ms.
const LADDER_MS: [Ns; 10] = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000];
/// By so much shorter than each, ms.
const SHORTER_MS: [Ns; 5] = [0, 1, 2, 5, 10];
/// Periods of tasks of which multiples are tried.
const PERIODS_OF_TASKS: usize = 4;
/// Multiples of each that are tried.
const MULTIPLES: Ns = 10;
/// The kernel's files have whole microseconds.
const PERIOD_STEP_NS: Ns = 1_000;
const SHORTEST_NS: Ns = MS;
const LONGEST_NS: Ns = 1_000 * MS;

/// Whether the claim is about such tasks.
fn covered(tasks: &[Task], responses: &[Ns]) -> bool {
    let is_bound = |(task, response): (&Task, &Ns)| {
        task.check().is_ok() && task.is_constrained() && *response <= task.deadline
    };
    tasks.len() == responses.len() && !tasks.is_empty() && tasks.iter().zip(responses).all(is_bound)
}

/// The most that the tasks use in any window of `window` ns.
fn used(tasks: &[Task], responses: &[Ns], window: Ns) -> Ns {
    let of_task = |(task, response): (&Task, &Ns)| most_run(task, *response, window);
    let all = tasks.iter().zip(responses).map(of_task);
    all.fold(0, Ns::saturating_add).min(window)
}
