//! Adaptive mixed criticality under fixed priorities (AMC-rtb).

use crate::budget::{Budget, STEPS};
use crate::inside::fixed_priority;
use crate::reservation::Dedicated;
use crate::{MixedTask, Ns, Part, Task, Undecided, Verdict, Witness};

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
    /// use timecell_analysis::{MixedTask, Task, fp::amc_rtb};
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
/// use timecell_analysis::{MixedTask, Task, fp::amc_rtb};
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

/// Why a task of a dual-criticality set in priority order is not guaranteed, and whether that is a proof of a miss.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AmcRefusal {
    /// Whether it is high mode in which the deadline is not shown to hold.
    pub high_mode: bool,
    /// Whether there is a legal run of jobs with which the deadline is missed. AMC-rtb is sufficient: where only its bound
    /// on the change of mode is beyond the deadline, nothing is proved.
    pub proved: bool,
    /// Work against cpu time at the deadline, counted from the release of the job.
    pub witness: Witness,
}

/// The first task that [`amc_rtb`] does not guarantee, misses that are proved first; `None` if there is none, or if a
/// response is undecided.
///
/// Proved are misses in low mode, and misses of the high tasks by themselves in high mode, where each runs for C(HI) and
/// no low task is left: both are exact tests of fixed priorities.
///
/// ```
/// use timecell_analysis::{MixedTask, Task, fp::amc_rtb_refusal};
///
/// let set = [MixedTask::low(Task::new(4, 10)), MixedTask::high(Task::new(3, 12), 9)];
/// let refusal = amc_rtb_refusal(&set).unwrap();
/// assert!(refusal.high_mode && !refusal.proved);
/// // A job of the low task may run before the change of mode, and 9 of the high task.
/// assert_eq!((refusal.witness.instant, refusal.witness.demand), (12, 13));
/// ```
pub fn amc_rtb_refusal(tasks: &[MixedTask]) -> Option<AmcRefusal> {
    let low: Vec<Task> = tasks.iter().map(|mixed| mixed.task).collect();
    if let Verdict::Unschedulable(witness) = fixed_priority(&low, &Dedicated).verdict {
        return Some(AmcRefusal {
            high_mode: false,
            proved: true,
            witness,
        });
    }
    let places: Vec<usize> = (0..tasks.len())
        .filter(|&index| tasks[index].wcet_high.is_some())
        .collect();
    let high: Vec<Task> = places
        .iter()
        .map(|&index| {
            let MixedTask { task, wcet_high } = tasks[index];
            Task {
                wcet: wcet_high.unwrap_or(task.wcet),
                ..task
            }
        })
        .collect();
    if let Verdict::Unschedulable(mut witness) = fixed_priority(&high, &Dedicated).verdict {
        witness.task = places[witness.task];
        for part in &mut witness.parts {
            part.task = places[part.task];
        }
        return Some(AmcRefusal {
            high_mode: true,
            proved: true,
            witness,
        });
    }
    let responses = amc_rtb(tasks);
    let index = responses
        .iter()
        .position(|response| matches!(response.high, Some(Response::Misses(_))))?;
    let at_change = responses[index].low.bound()?;
    Some(AmcRefusal {
        high_mode: true,
        proved: false,
        witness: change_of_mode(tasks, index, at_change),
    })
}

/// The work that AMC-rtb counts by the deadline of a high task.
fn change_of_mode(tasks: &[MixedTask], index: usize, at_change: Ns) -> Witness {
    let task = &tasks[index].task;
    let instant = task.deadline;
    let mut parts: Vec<Part> = tasks[..index]
        .iter()
        .enumerate()
        .map(|(place, above)| {
            let (span, wcet) = match above.wcet_high {
                Some(high) => (instant, high),
                None => (at_change, above.task.wcet),
            };
            let jobs = span.div_ceil(above.task.period);
            Part {
                task: place,
                jobs,
                demand: jobs.saturating_mul(wcet),
            }
        })
        .collect();
    parts.push(Part {
        task: index,
        jobs: 1,
        demand: tasks[index].wcet_high.unwrap_or(task.wcet),
    });
    Witness {
        task: index,
        instant,
        demand: parts
            .iter()
            .fold(task.blocking, |sum, part| sum.saturating_add(part.demand)),
        supply: instant,
        parts,
    }
}

fn covered(mixed: &MixedTask) -> Result<(), Undecided> {
    let task = &mixed.task;
    legal(task)?;
    if let Some(wcet) = mixed.wcet_high {
        legal(&Task { wcet, ..*task })?;
        if wcet < task.wcet {
            return Err(Undecided::NotCovered(format!(
                "the high wcet of {wcet} ns is below the low wcet of {} ns",
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sets() -> impl Strategy<Value = Vec<MixedTask>> {
        let task = (1u64..6, 0u64..4, 0u64..12, 0u64..12, any::<bool>()).prop_map(
            |(wcet, more, slack, rest, high)| {
                let deadline = wcet + more + slack;
                let task = Task::new(wcet, deadline + rest).due(deadline);
                if high {
                    MixedTask::high(task, wcet + more)
                } else {
                    MixedTask::low(task)
                }
            },
        );
        prop::collection::vec(task, 1..6)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn there_is_a_refusal_exactly_where_a_task_is_not_guaranteed(set in sets()) {
            let holds = amc_rtb(&set).iter().all(AmcResponse::meets);
            let refusal = amc_rtb_refusal(&set);
            prop_assert_eq!(refusal.is_none(), holds);
            if let Some(AmcRefusal { witness, high_mode, .. }) = refusal {
                prop_assert!(witness.demand > witness.supply, "{witness:?}");
                prop_assert!(!high_mode || set[witness.task].wcet_high.is_some());
                let sum: Ns = witness.parts.iter().map(|part| part.demand).sum();
                prop_assert_eq!(sum, witness.demand);
            }
        }
    }
}
