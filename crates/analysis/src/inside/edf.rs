use std::cmp::Ordering;
use std::ops::Range;

use super::{Inside, in_range};
use crate::budget::{Budget, STEPS};
use crate::utilization::{compare_fractions_with_one, gcd};
use crate::{Ns, Part, Supply, Task, Undecided, Verdict, Witness};

/// EDF tasks inside a reservation: verdict and response-time bounds.
///
/// All deadlines hold if, for every absolute deadline t, dbf(t) + B(t) <= sbf(t): dbf is [`edf_demand`], and B(t) is
/// the largest blocking of the tasks that can have a deadline by t (Shin and Lee, RTSS 2003, theorem 4.1; Baruah,
/// "Resource sharing in EDF-scheduled systems", RTSS 2006, for B). Utilisation and rate are compared exactly. Below
/// the rate, only deadlines before some L with ΣC⌈(L + J)/T⌉ + max B <= sbf(L) count, since an interval of supply is
/// never worth less than its parts; at the rate, deadlines up to the hyperperiod of tasks and supply. They are walked
/// in windows of doubling length, each from its last to its first as in Zhang and Burns ("Schedulability analysis for real-time systems with EDF
/// scheduling", IEEE TC 2009), with sbf⁻¹ in the place of the identity: from t to the last deadline before
/// sbf⁻¹(dbf(t) + B(t)).
///
/// The response-time bounds are those of Spuri ("Analysis of deadline scheduled real-time systems", INRIA RR-2772,
/// 1996, section 4, with release jitter) with sbf⁻¹ around the demand; that a busy window may be used so under a
/// restricted supply: Bozhko and Brandenburg (ECRTS 2020). They are safe, and on a dedicated cpu without blocking exact.
/// They may take 1/64 of the steps of the verdict; if that does not suffice, they are `None` beside a verdict that stands.
///
/// The verdict is exact for sporadic tasks without blocking, in a reservation whose supply can be as late as sbf says
/// at every t at once, as in the periodic, the explicit-deadline and the dedicated model; with blocking it is
/// sufficient. Deadlines may exceed periods. The order of the tasks does not matter.
///
/// `supply.sbf` must be superadditive, sbf(a) + sbf(b) <= sbf(a + b), as the least supply over all intervals always
/// is. Undecided after [`STEPS`] steps, when a time is 0 or beyond [`MAX_NS`](crate::MAX_NS), or when the utilisation
/// equals the rate and the hyperperiod leaves the range.
///
/// ```
/// use analysis::{Task, inside::edf, reservation::Periodic};
///
/// // The example of Shin and Lee: (50, 7) and (75, 9) under EDF fit into 2.8 every 10, here in us.
/// let tasks = [Task::new(7_000, 50_000), Task::new(9_000, 75_000)];
/// assert!(edf(&tasks, &Periodic::new(2_800, 10_000)?).verdict.is_schedulable());
/// assert!(!edf(&tasks, &Periodic::new(2_700, 10_000)?).verdict.is_schedulable());
/// # Ok::<(), analysis::reservation::ReservationError>(())
/// ```
pub fn edf(tasks: &[Task], supply: &impl Supply) -> Inside {
    within(tasks, supply, STEPS)
}

fn within(tasks: &[Task], supply: &impl Supply, steps: u64) -> Inside {
    let mut left = Budget::new(steps);
    let verdict = match excess(tasks, supply, &mut left) {
        Ok(None) => Verdict::Schedulable,
        Ok(Some(last)) => Verdict::Unschedulable(witness(tasks, supply, &last)),
        Err(reason) => Verdict::Undecided(reason),
    };
    let responses = if in_range(tasks).is_ok() {
        responses(tasks, supply, &mut Budget::new(steps / 64))
    } else {
        None
    };
    Inside {
        verdict,
        responses: responses.unwrap_or_else(|| vec![None; tasks.len()]),
    }
}

/// Demand-bound function: the work in ns of all jobs that can be released and due within `t` ns,
/// Σ max(0, ⌊(t + J - D)/T⌋ + 1) C.
///
/// Baruah, Mok and Rosier, "Preemptively scheduling hard-real-time sporadic tasks on one processor", RTSS 1990; jitter
/// shortens the deadline. Exact; [`Ns::MAX`] when it leaves the range or a period is 0.
///
/// ```
/// use analysis::{Task, inside::edf_demand};
///
/// let tasks = [Task::new(2, 5).due(4), Task::new(3, 9).due(7)];
/// assert_eq!([3, 4, 7, 9].map(|t| edf_demand(&tasks, t)), [0, 2, 5, 7]);
/// ```
pub fn edf_demand(tasks: &[Task], t: Ns) -> Ns {
    tasks.iter().fold(0, |sum: Ns, task| {
        sum.saturating_add(jobs(task, t).saturating_mul(task.wcet))
    })
}

/// Jobs that can be released and due within `t` ns.
fn jobs(task: &Task, t: Ns) -> u64 {
    let shifted = u128::from(t) + u128::from(task.jitter);
    let Some(slack) = shifted.checked_sub(u128::from(task.deadline)) else {
        return 0;
    };
    match slack.checked_div(u128::from(task.period)) {
        Some(more) => Ns::try_from(more + 1).unwrap_or(Ns::MAX),
        None => Ns::MAX,
    }
}

/// The largest blocking of the tasks that can be due within `t` ns.
fn blocking(tasks: &[Task], t: Ns) -> Ns {
    tasks
        .iter()
        .filter(|task| task.deadline.saturating_sub(task.jitter) <= t)
        .map(|task| task.blocking)
        .max()
        .unwrap_or(0)
}

/// What must be supplied within `t` ns.
fn required(tasks: &[Task], t: Ns) -> Ns {
    edf_demand(tasks, t).saturating_add(blocking(tasks, t))
}

/// An instant by which more is required than supplied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Excess {
    pub(crate) instant: Ns,
    pub(crate) demand: Ns,
}

/// Some deadline by which more is required than supplied; `None` when there is none.
pub(crate) fn excess(
    tasks: &[Task],
    supply: &impl Supply,
    steps: &mut Budget,
) -> Result<Option<Excess>, Undecided> {
    in_range(tasks)?;
    if tasks.is_empty() {
        return Ok(None);
    }
    if tasks.iter().any(|task| task.jitter >= task.deadline) {
        return Ok(Some(Excess {
            instant: 0,
            demand: required(tasks, 0),
        }));
    }
    let end = match compare_with_rate(tasks, supply) {
        Ordering::Greater => return overload(tasks, supply, steps).map(Some),
        Ordering::Less => idle_instant(tasks, supply, steps)?,
        Ordering::Equal => {
            // Supply at every instant is what sbf(1) = 1 means, and then demand at rate 1 is supplied in time.
            let implicit = tasks
                .iter()
                .all(|task| task.deadline - task.jitter >= task.period && task.blocking == 0);
            if supply.sbf(1) == 1 && implicit {
                return Ok(None);
            }
            repetition(tasks, supply)?
        }
    };
    // Where load is close to rate, `end` is far, and an excess mostly near; at a load of exactly the rate it may be
    // near the end only. So a few steps from the end, then windows of doubling length.
    let near_end = walk(tasks, supply, 0..end, 64, steps)?;
    if near_end.is_some() {
        return Ok(near_end);
    }
    let latest = tasks.iter().map(|task| task.deadline).max();
    let mut window = 0..latest.unwrap_or_default().saturating_add(1).min(end);
    loop {
        let excess = walk(tasks, supply, window.clone(), u64::MAX, steps)?;
        if excess.is_some() || window.end == end {
            return Ok(excess);
        }
        window = window.end..window.end.saturating_mul(2).min(end);
    }
}

/// An excess at a deadline in a window, searched from the window's end in at most so many turns.
fn walk(
    tasks: &[Task],
    supply: &impl Supply,
    window: Range<Ns>,
    turns: u64,
    steps: &mut Budget,
) -> Result<Option<Excess>, Undecided> {
    let mut before = window.end;
    for _ in 0..turns {
        let Some(instant) = last_deadline(tasks, before).filter(|last| window.contains(last))
        else {
            break;
        };
        steps.spend(2 * tasks.len())?;
        let demand = required(tasks, instant);
        match supply.inverse(demand) {
            // No deadline from `wait` to here can be in excess: less is required there, and more supplied.
            Some(wait) if wait <= instant => before = wait,
            _ => return Ok(Some(Excess { instant, demand })),
        }
    }
    Ok(None)
}

/// Utilisation against the long-run rate of the supply, exactly.
fn compare_with_rate(tasks: &[Task], supply: &impl Supply) -> Ordering {
    let (supplied, per) = supply.rate();
    let spare = (per.saturating_sub(supplied), per);
    let loads = tasks.iter().map(|task| (task.wcet, task.period));
    compare_fractions_with_one(loads.chain([spare]))
}

/// With more load than rate, demand passes supply some time; doubling finds an instant.
fn overload(tasks: &[Task], supply: &impl Supply, steps: &mut Budget) -> Result<Excess, Undecided> {
    let mut instant = tasks
        .iter()
        .map(|task| task.deadline)
        .max()
        .unwrap_or_default();
    loop {
        steps.spend(tasks.len())?;
        let demand = required(tasks, instant);
        if demand > supply.sbf(instant) {
            return Ok(Excess { instant, demand });
        }
        instant = instant.checked_mul(2).ok_or(Undecided::Overflow)?;
    }
}

/// An instant t > 0 by which all work that can be released before t is done, whatever the schedule.
fn idle_instant(tasks: &[Task], supply: &impl Supply, steps: &mut Budget) -> Result<Ns, Undecided> {
    let longest = tasks.iter().map(|task| task.blocking).max().unwrap_or(0);
    let mut t = 1;
    loop {
        steps.spend(tasks.len())?;
        let work = released(tasks, t).saturating_add(longest);
        if supply.sbf(t) >= work {
            return Ok(t);
        }
        let next = supply.inverse(work).ok_or(Undecided::Overflow)?;
        // Any such instant will do, and doubling reaches one in a few steps.
        t = next.max(t.checked_mul(2).ok_or(Undecided::Overflow)?);
    }
}

/// Work that can be released in the first `t` ns of a busy window.
fn released(tasks: &[Task], t: Ns) -> Ns {
    tasks.iter().fold(0, |sum: Ns, task| {
        let jobs = t.saturating_add(task.jitter).div_ceil(task.period);
        sum.saturating_add(jobs.saturating_mul(task.wcet))
    })
}

/// The instant from which demand and supply at equal rates only repeat what was before.
fn repetition(tasks: &[Task], supply: &impl Supply) -> Result<Ns, Undecided> {
    let cycle = supply.cycle().ok_or_else(|| {
        Undecided::NotCovered(
            "the load equals the rate of a supply that is not known to repeat".to_owned(),
        )
    })?;
    let together = tasks
        .iter()
        .map(|task| task.period)
        .try_fold(cycle.max(1), |lcm: Ns, period| {
            (lcm / gcd(lcm, period)).checked_mul(period)
        });
    let settled = tasks
        .iter()
        .map(|task| task.deadline)
        .chain(supply.inverse(1))
        .max()
        .unwrap_or_default();
    together
        .and_then(|lcm| lcm.checked_add(settled))
        .and_then(|end| end.checked_add(1))
        .ok_or(Undecided::Overflow)
}

/// The last instant before `end` at which a job can be due. No task's jitter reaches its deadline.
fn last_deadline(tasks: &[Task], end: Ns) -> Option<Ns> {
    tasks
        .iter()
        .filter_map(|task| {
            let first = task.deadline - task.jitter;
            let room = end.checked_sub(1)?.checked_sub(first)?;
            Some(first + room / task.period * task.period)
        })
        .max()
}

/// The first instant after `start` at which a job can be due, if within the range.
fn next_deadline(tasks: &[Task], start: Ns) -> Option<Ns> {
    tasks
        .iter()
        .filter_map(|task| {
            let first = task.deadline.saturating_sub(task.jitter);
            match start.checked_sub(first) {
                None => Some(first),
                Some(past) => (past / task.period + 1)
                    .checked_mul(task.period)?
                    .checked_add(first),
            }
        })
        .min()
}

/// Deadlines that are tried from the start for a witness that is easier to follow than the last one.
const TRIED_FOR_WITNESS: usize = 4_096;

/// The first excess if it is near, else the one that was found.
fn witness(tasks: &[Task], supply: &impl Supply, found: &Excess) -> Witness {
    let mut instant = found.instant;
    let mut t = 0;
    for _ in 0..TRIED_FOR_WITNESS {
        match next_deadline(tasks, t) {
            Some(next) if next < found.instant => t = next,
            _ => break,
        }
        if required(tasks, t) > supply.sbf(t) {
            instant = t;
            break;
        }
    }
    let parts: Vec<Part> = tasks
        .iter()
        .enumerate()
        .map(|(index, task)| {
            let jobs = jobs(task, instant);
            Part {
                task: index,
                jobs,
                demand: jobs.saturating_mul(task.wcet),
            }
        })
        .filter(|part| part.jobs > 0)
        .collect();
    // The job that is due last before the instant is the one that is late.
    let task = parts
        .iter()
        .map(|part| part.task)
        .min_by_key(|&index| {
            let task = &tasks[index];
            (u128::from(instant) + u128::from(task.jitter) - u128::from(task.deadline))
                % u128::from(task.period)
        })
        .unwrap_or_default();
    Witness {
        task,
        instant,
        demand: required(tasks, instant),
        supply: supply.sbf(instant),
        parts,
    }
}

/// The response-time bounds that do not exceed the deadlines; `None` if the longest busy window has no end in range.
fn responses(tasks: &[Task], supply: &impl Supply, steps: &mut Budget) -> Option<Vec<Option<Ns>>> {
    let window = busy_window(tasks, supply, steps)?;
    let bounds = tasks
        .iter()
        .map(|task| {
            response(tasks, task, window, supply, steps).filter(|&bound| bound <= task.deadline)
        })
        .collect();
    Some(bounds)
}

/// The longest time for which there can be work without pause: the least t > 0 with all released work supplied.
fn busy_window(tasks: &[Task], supply: &impl Supply, steps: &mut Budget) -> Option<Ns> {
    let longest = tasks.iter().map(|task| task.blocking).max().unwrap_or(0);
    // At a load of the rate it ends within one repetition or never.
    let end = match compare_with_rate(tasks, supply) {
        Ordering::Less => Ns::MAX,
        Ordering::Equal => repetition(tasks, supply).ok()?,
        Ordering::Greater => return None,
    };
    let mut t = 1;
    while t <= end {
        steps.spend(tasks.len()).ok()?;
        let next = supply.inverse(released(tasks, t).saturating_add(longest))?;
        if next <= t {
            return Some(t);
        }
        t = next;
    }
    None
}

/// The bound of one task: the largest over all places of its job in the busy window that can be the worst, which are
/// those where its deadline meets that of another job.
fn response(
    tasks: &[Task],
    task: &Task,
    window: Ns,
    supply: &impl Supply,
    steps: &mut Budget,
) -> Option<Ns> {
    let mut worst = task.wcet.checked_add(task.jitter)?;
    // `place` is the job's arrival, counted from the earliest that still lets it be released in the window.
    let end = window.checked_add(task.jitter)?;
    for other in tasks {
        let aligned =
            i128::from(other.deadline) - i128::from(other.jitter) - i128::from(task.deadline)
                + i128::from(task.jitter);
        let period = i128::from(other.period);
        let first = if aligned < 0 {
            aligned.rem_euclid(period)
        } else {
            aligned
        };
        let mut place = Ns::try_from(first).ok()?;
        while place < end {
            let finish = finish(tasks, task, place, supply, steps)?;
            let response = finish.checked_add(task.jitter)?.saturating_sub(place);
            worst = worst.max(response);
            // More than the deadline is no bound, however much.
            if worst > task.deadline {
                return None;
            }
            place = place.checked_add(other.period)?;
        }
    }
    Some(worst)
}

/// When the job at `place` is done at the latest, counted from the start of its busy window.
fn finish(
    tasks: &[Task],
    task: &Task,
    place: Ns,
    supply: &impl Supply,
    steps: &mut Budget,
) -> Option<Ns> {
    let due = place
        .checked_add(task.deadline)?
        .saturating_sub(task.jitter);
    let held = blocking(tasks, due);
    let own = place / task.period + 1;
    let mut t: Ns = 1;
    loop {
        steps.spend(2 * tasks.len()).ok()?;
        let mut demand = held;
        for other in tasks {
            let count = if std::ptr::eq(other, task) {
                own
            } else {
                let released = t.saturating_add(other.jitter).div_ceil(other.period);
                released.min(jobs(other, due))
            };
            demand = demand.saturating_add(count.saturating_mul(other.wcet));
        }
        let next = supply.inverse(demand)?;
        if next <= t {
            return Some(t);
        }
        t = next;
    }
}

#[cfg(test)]
mod tests;
