use crate::budget::{Budget, STEPS};
use crate::{MixedTask, Ns, Task, Undecided};

use super::level::saturate;
use super::response::legal;
use super::{Response, response_times};

/// Worst-case responses of one task of a dual-criticality set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AmcResponse {
    /// While every job keeps to its low wcet.
    pub low: Response,
    /// Through the change to high mode and after it; `None` for a task of low criticality.
    pub high: Option<Response>,
}

impl AmcResponse {
    /// Whether the task is guaranteed in every mode that it has to run in.
    ///
    /// ```
    /// use analysis::{MixedTask, Task, fp::amc_rtb};
    ///
    /// // Alone the high task needs 8 of 10; after a low job of 3 has run at the change of mode, 11.
    /// let set = [MixedTask::low(Task::new(3, 10)), MixedTask::high(Task::new(4, 10), 8)];
    /// let responses = amc_rtb(&set);
    /// assert!(responses[0].meets() && responses[1].low.meets() && !responses[1].meets());
    /// ```
    pub fn meets(&self) -> bool {
        self.low.meets() && self.high.as_ref().is_none_or(Response::meets)
    }
}

/// Adaptive mixed criticality, AMC-rtb: response-time bounds of a dual-criticality set in priority order.
///
/// Baruah, Burns & Davis (RTSS 2011), section IV: `R(LO)` is the usual response time with C(LO);
/// `R(HI) = B + C(HI) + sum over higher HI of ceil(R(HI) / T) C(HI) + sum over higher LO of ceil(R(LO) / T) C(LO)`.
/// `low` is exact, `high` sufficient. A high task that misses in low mode is not bounded in high mode.
///
/// Times in ns. Covered are D <= T without jitter and C(HI) >= C(LO); if any task is not, no task is decided.
///
/// ```
/// use analysis::{MixedTask, Task, fp::amc_rtb};
///
/// let set = [
///     MixedTask::high(Task::new(2, 10), 3),
///     MixedTask::low(Task::new(4, 15)),
///     MixedTask::high(Task::new(6, 40), 10),
///     MixedTask::low(Task::new(5, 60)),
/// ];
/// let high: Vec<_> = amc_rtb(&set).iter().map(|task| task.high.as_ref().and_then(|high| high.bound())).collect();
/// assert_eq!(high, [Some(3), None, Some(20), None]);
/// ```
pub fn amc_rtb(tasks: &[MixedTask]) -> Vec<AmcResponse> {
    let undecided = tasks.iter().find_map(|mixed| covered(mixed).err());
    if let Some(why) = undecided {
        return tasks
            .iter()
            .map(|mixed| AmcResponse {
                low: Response::Undecided(why.clone()),
                high: mixed.wcet_high.map(|_| Response::Undecided(why.clone())),
            })
            .collect();
    }
    let low: Vec<Task> = tasks.iter().map(|mixed| mixed.task).collect();
    let mut budget = Budget::new(STEPS);
    response_times(&low)
        .into_iter()
        .enumerate()
        .map(|(index, low)| {
            let high = tasks[index].wcet_high.map(|wcet| {
                high_mode(&tasks[..index], &tasks[index].task, wcet, &low, &mut budget)
            });
            AmcResponse { low, high }
        })
        .collect()
}

fn covered(mixed: &MixedTask) -> Result<(), Undecided> {
    let task = &mixed.task;
    legal(task)?;
    if let Some(wcet) = mixed.wcet_high {
        legal(&Task { wcet, ..*task })?;
        if wcet < task.wcet {
            return Err(Undecided::NotCovered(format!(
                "a high wcet of {wcet} ns is below the low one of {} ns",
                task.wcet
            )));
        }
    }
    if task.jitter > 0 || !task.is_constrained() {
        return Err(Undecided::NotCovered(
            "AMC-rtb covers tasks without jitter whose deadlines are at most their periods".into(),
        ));
    }
    Ok(())
}

fn high_mode(
    higher: &[MixedTask],
    task: &Task,
    wcet: Ns,
    low: &Response,
    budget: &mut Budget,
) -> Response {
    let at_change = match low {
        Response::Meets(at_change) => *at_change,
        Response::Misses(_) => return Response::Misses(None),
        Response::Undecided(why) => return Response::Undecided(why.clone()),
    };
    let mut window = wcet;
    if window > task.deadline {
        return Response::Misses(None);
    }
    loop {
        if let Err(why) = budget.spend(higher.len() + 1) {
            return Response::Undecided(why);
        }

        let demand = higher
            .iter()
            .map(|mixed| {
                let (span, wcet) = match mixed.wcet_high {
                    Some(high) => (window, high),
                    None => (at_change, mixed.task.wcet),
                };
                u128::from(span.div_ceil(mixed.task.period)) * u128::from(wcet)
            })
            .fold(
                u128::from(task.blocking) + u128::from(wcet),
                u128::saturating_add,
            );
        if demand <= u128::from(window) {
            return Response::Meets(window);
        }
        if demand > u128::from(task.deadline) {
            return Response::Misses(None);
        }
        window = saturate(demand);
    }
}
