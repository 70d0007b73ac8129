//! EDF inside a supply: the verdict, its reasons and the response-time bounds. The search for an excess of demand over
//! supply is in [`excess`](mod@excess), the sums that it evaluates in `terms`, the bounds in `response`.

mod excess;
mod response;
mod terms;

pub(crate) use excess::{holds, search};
pub(crate) use response::{busy_window, response};
pub(crate) use terms::Terms;

use self::excess::{Excess, excess};
use super::{Inside, in_range};
use crate::budget::{Budget, STEPS};
use crate::edf::Deadlines;
use crate::{Ns, Part, Supply, Task, Verdict, Witness};

/// EDF tasks inside a reservation: verdict and response-time bounds.
///
/// All deadlines hold if, for every absolute deadline t, dbf(t) + B(t) <= sbf(t): dbf is [`edf_demand`], and B(t) is
/// the largest blocking of the tasks that can have a deadline by t (Shin and Lee, RTSS 2003, theorem 4.1; Baruah,
/// "Resource sharing in EDF-scheduled systems", RTSS 2006, for B). Utilisation and rate are compared exactly. Below
/// the rate α, only deadlines before (max B + Σ max(0, T - D + J) U + α Δ)/(α - U) count, as the supply is at least
/// α (t - Δ); for a supply whose delay Δ is not known, those before some L with ΣC⌈(L + J)/T⌉ + max B <= sbf(L), since an
/// interval of supply is never worth less than its parts; at the rate, deadlines up to the hyperperiod of tasks and
/// supply. They are walked in windows of doubling length, each from its last to its first as in Zhang and Burns
/// ("Schedulability analysis for real-time systems with EDF scheduling", IEEE TC 2009), with sbf⁻¹ in the place of the
/// identity: from t to the last deadline before sbf⁻¹(dbf(t) + B(t)). Instants so long after a task's last deadline that
/// its load since then is more than an excess there could spare are stepped over.
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
/// use timecell_analysis::{Task, inside::edf, reservation::Periodic};
///
/// // The example of Shin and Lee: (50, 7) and (75, 9) under EDF fit into 2.8 every 10, here in us.
/// let tasks = [Task::new(7_000, 50_000), Task::new(9_000, 75_000)];
/// assert!(edf(&tasks, &Periodic::new(2_800, 10_000)?).verdict.is_schedulable());
/// assert!(!edf(&tasks, &Periodic::new(2_700, 10_000)?).verdict.is_schedulable());
/// # Ok::<(), timecell_analysis::reservation::ReservationError>(())
/// ```
pub fn edf(tasks: &[Task], supply: &impl Supply) -> Inside {
    within(tasks, supply, STEPS)
}

fn within(tasks: &[Task], supply: &impl Supply, steps: u64) -> Inside {
    let verdict = verdict(tasks, supply, &mut Budget::new(steps));
    let mut responses = vec![None; tasks.len()];
    let mut missed = Vec::new();
    let mut left = Budget::new(steps / 64);
    let window = in_range(tasks).and_then(|()| busy_window(tasks, supply, &mut left));
    // Only of these the bound is also reached.
    let exact = supply.sbf(1) == 1 && tasks.iter().all(|task| task.blocking == 0);
    if let Ok(window) = window {
        for (index, task) in tasks.iter().enumerate() {
            match response::response(tasks, task, window, supply, &mut left) {
                Ok(Some(bound)) => responses[index] = Some(bound),
                Ok(None) if exact => missed.push(index),
                Ok(None) | Err(_) => {}
            }
        }
    }
    match &verdict {
        Verdict::Unschedulable(witness) => {
            if !missed.contains(&witness.task) {
                missed.push(witness.task);
            }
        }
        Verdict::Schedulable | Verdict::Undecided(_) => missed.clear(),
    }
    Inside {
        verdict,
        responses,
        missed,
    }
}

/// The verdict without the bounds.
pub(super) fn verdict(tasks: &[Task], supply: &impl Supply, steps: &mut Budget) -> Verdict {
    match excess(tasks, supply, steps) {
        Ok(None) => Verdict::Schedulable,
        Ok(Some(last)) => Verdict::Unschedulable(witness(tasks, supply, &last)),
        Err(reason) => Verdict::Undecided(reason),
    }
}

/// Demand-bound function: the work in ns of all jobs that can be released and due within `t` ns,
/// Σ max(0, ⌊(t + J - D)/T⌋ + 1) C.
///
/// Baruah, Mok and Rosier, "Preemptively scheduling hard-real-time sporadic tasks on one processor", RTSS 1990; jitter
/// shortens the deadline. Exact; [`Ns::MAX`] when it leaves the range or a period is 0.
///
/// ```
/// use timecell_analysis::{Task, inside::edf_demand};
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

/// The least supply within `t` ns.
fn required(tasks: &[Task], t: Ns) -> Ns {
    edf_demand(tasks, t).saturating_add(blocking(tasks, t))
}

/// Deadlines that are tried from the start for a witness that is easier to follow than the last one.
const TRIED_FOR_WITNESS: usize = 4_096;

/// The first excess if it is near, else the one that was found.
fn witness(tasks: &[Task], supply: &impl Supply, found: &Excess) -> Witness {
    let instant = Deadlines::of(tasks)
        .take(TRIED_FOR_WITNESS)
        .take_while(|&(t, _)| t < found.instant)
        .find(|&(t, due)| due > supply.sbf(t))
        .map_or(found.instant, |(t, _)| t);
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

#[cfg(test)]
mod tests;
