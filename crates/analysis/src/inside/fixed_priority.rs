//! Fixed priorities inside a reservation.

use super::{Inside, in_range};
use crate::budget::{Budget, STEPS};
use crate::utilization::{compare_fractions_with_one, gcd};
use crate::{Ns, Part, Supply, Task, Undecided, Verdict, Witness};

/// Fixed-priority tasks inside a reservation, highest priority first: verdict and response-time bounds.
///
/// Response-time analysis with the supply's inverse in place of the identity. Job q of task i in a busy window
/// (q = 0, 1, ...) is done at the least t with
///
/// sbf(t) >= B_i + (q+1) C_i + Σ_{j < i} ⌈(t + J_j)/T_j⌉ C_j, and R_i = max over q of J_i + t - q T_i,
///
/// found by the fixpoint t <- sbf⁻¹(demand(t)). The window ends with the first job that is done before the next can
/// be released. With a whole cpu this is Lehoczky ("Fixed priority scheduling of periodic task sets with arbitrary
/// deadlines", RTSS 1990) with the jitter of Tindell, Burns and Wellings ("An extendible approach for analyzing fixed
/// priority hard real-time tasks", 1994); in a reservation it is Shin and Lee (RTSS 2003, theorem 4.2) and Lipari and
/// Bini ("A methodology for designing hierarchical scheduling systems", JEC 2005), for any deadline: the argument of
/// the busy window needs of a window only that at least sbf(t) is supplied in its first t ns (Bozhko and Brandenburg,
/// "Abstract response-time analysis", ECRTS 2020).
///
/// Exact for sporadic tasks without blocking in a reservation whose supply can be as late as sbf says at every t at
/// once, as in the periodic, the explicit-deadline and the dedicated model. Blocking makes it sufficient: B is counted
/// as work inside the reservation, before the task's own, which is never less than the same delay by the clock.
///
/// Deadlines may exceed periods. A witness names the first task that misses: its instant is that task's due time in
/// the window, the demand (the parts and the task's blocking) exceeds the supply there and at every instant before.
/// Undecided after [`STEPS`] steps, or when a time is 0 or beyond [`MAX_NS`](crate::MAX_NS).
///
/// ```
/// use timecell_analysis::{Task, inside::fixed_priority, reservation::Periodic};
///
/// // Times in us; the first virtual cpu of Abeni (2024), section 4.3.
/// let tasks = [
///     Task::new(10_321, 34_000),
///     Task::new(1_720, 90_000),
///     Task::new(14_712, 98_000),
///     Task::new(23_266, 164_000),
/// ];
/// let inside = fixed_priority(&tasks, &Periodic::new(7_500, 11_000)?);
/// assert!(inside.verdict.is_schedulable());
/// assert_eq!(inside.responses, [Some(20_821), Some(22_541), Some(58_074), Some(163_735)]);
/// # Ok::<(), timecell_analysis::reservation::ReservationError>(())
/// ```
pub fn fixed_priority(tasks: &[Task], supply: &impl Supply) -> Inside {
    within(tasks, supply, Budget::new(STEPS))
}

pub(super) fn within(tasks: &[Task], supply: &impl Supply, mut steps: Budget) -> Inside {
    if let Err(reason) = in_range(tasks) {
        return Inside {
            verdict: Verdict::Undecided(reason),
            responses: vec![None; tasks.len()],
            missed: Vec::new(),
        };
    }
    let mut first = None;
    let mut missed = Vec::new();
    let mut unknown = None;
    let responses = (0..tasks.len())
        .map(|index| match response(tasks, index, supply, &mut steps) {
            Ok(Ok(bound)) => Some(bound),
            Ok(Err(miss)) => {
                missed.push(index);
                first.get_or_insert_with(|| witness(tasks, index, miss, supply));
                None
            }
            Err(reason) => {
                unknown.get_or_insert(reason);
                None
            }
        })
        .collect();
    let verdict = match (first, unknown) {
        (Some(witness), _) => Verdict::Unschedulable(witness),
        (None, Some(reason)) => Verdict::Undecided(reason),
        (None, None) => Verdict::Schedulable,
    };
    Inside {
        verdict,
        responses,
        missed,
    }
}

/// Whether all deadlines hold, without the reasons.
pub(crate) fn fits(
    tasks: &[Task],
    supply: &impl Supply,
    steps: &mut Budget,
) -> Result<bool, Undecided> {
    in_range(tasks)?;
    // The lowest priority first: it is the likeliest to miss.
    for index in (0..tasks.len()).rev() {
        if response(tasks, index, supply, steps)?.is_err() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Job `job` of a busy window is not done at `due`, ns after the window's start.
pub(super) struct Miss {
    job: u64,
    due: Ns,
}

/// The response-time bound of a task, or the job that misses.
pub(super) fn response(
    tasks: &[Task],
    index: usize,
    supply: &impl Supply,
    steps: &mut Budget,
) -> Result<Result<Ns, Miss>, Undecided> {
    let task = &tasks[index];
    let higher = &tasks[..index];
    let mut worst = 0;
    let mut t = 1;
    let mut repeats = None;
    for job in 0u64.. {
        let arrival = job.checked_mul(task.period).ok_or(Undecided::Overflow)?;
        let deadline = arrival
            .checked_add(task.deadline)
            .ok_or(Undecided::Overflow)?;
        let Some(due) = deadline.checked_sub(task.jitter) else {
            return Ok(Err(Miss { job, due: 0 }));
        };
        loop {
            steps.spend(index + 1)?;
            let demand = demand(task, job, higher, t);
            // No inverse, or an inverse beyond the range: the supply comes later than any due time.
            match supply.inverse(demand) {
                Some(next) if next <= due => {
                    if next <= t {
                        break;
                    }
                    t = next;
                }
                _ => return Ok(Err(Miss { job, due })),
            }
        }
        // Both sums are at most the deadline of this job.
        let finish = t + task.jitter;
        worst = worst.max(finish - arrival);
        if finish - arrival <= task.period {
            return Ok(Ok(worst));
        }
        if job == 0 {
            repeats = repetition(&tasks[..=index], supply);
        }
        if repeats.is_some_and(|span| arrival >= span) {
            return Ok(Ok(worst));
        }
    }
    Err(Undecided::Overflow)
}

/// At a load of exactly the rate a busy window need not end, but after a hyperperiod of tasks and supply its jobs only
/// repeat the response times of those before: demand and supply have grown by the same.
fn repetition(tasks: &[Task], supply: &impl Supply) -> Option<Ns> {
    let (supplied, per) = supply.rate();
    let loads = tasks.iter().map(|task| (task.wcet, task.period));
    let spare = (per.saturating_sub(supplied), per);
    if compare_fractions_with_one(loads.chain([spare])).is_ne() {
        return None;
    }
    tasks.iter().try_fold(supply.cycle()?.max(1), |lcm, task| {
        (lcm / gcd(lcm, task.period)).checked_mul(task.period)
    })
}

/// Work that must be done before job `job` of the window is, when the window has lasted `t` >= 1 ns. Work beyond the
/// range counts as the largest time, which no supply reaches in time.
fn demand(task: &Task, job: u64, higher: &[Task], t: Ns) -> Ns {
    let own = (job + 1)
        .saturating_mul(task.wcet)
        .saturating_add(task.blocking);
    higher.iter().fold(own, |sum, other| {
        sum.saturating_add(jobs(other, t).saturating_mul(other.wcet))
    })
}

/// Jobs that can be released in the first `t` ns of a busy window.
fn jobs(task: &Task, t: Ns) -> u64 {
    t.saturating_add(task.jitter).div_ceil(task.period)
}

pub(super) fn witness(tasks: &[Task], index: usize, miss: Miss, supply: &impl Supply) -> Witness {
    let own = Part {
        task: index,
        jobs: miss.job + 1,
        demand: (miss.job + 1).saturating_mul(tasks[index].wcet),
    };
    let parts = tasks[..index]
        .iter()
        .enumerate()
        .map(|(task, other)| {
            let jobs = jobs(other, miss.due);
            Part {
                task,
                jobs,
                demand: jobs.saturating_mul(other.wcet),
            }
        })
        .filter(|part| part.jobs > 0)
        .chain([own])
        .collect();
    Witness {
        task: index,
        instant: miss.due,
        demand: demand(&tasks[index], miss.job, &tasks[..index], miss.due),
        supply: supply.sbf(miss.due),
        parts,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::MAX_NS;
    use crate::reservation::{Dedicated, ExplicitDeadline, Periodic};

    /// The same set with the worst arrivals and the latest supply, tick by tick: the largest response times within
    /// `ticks`, of finished jobs only.
    fn simulate(tasks: &[Task], supply: &impl Supply, ticks: u64) -> Vec<u64> {
        let mut worst = vec![0; tasks.len()];
        let mut finished = vec![0u64; tasks.len()];
        let mut done = vec![0u64; tasks.len()];
        for tick in 0..ticks {
            if supply.sbf(tick + 1) == supply.sbf(tick) {
                continue;
            }
            // Job k arrives at kT - J and is released then or at 0, whichever is later.
            let pending = (0..tasks.len())
                .find(|&i| finished[i] < (tick + 1 + tasks[i].jitter).div_ceil(tasks[i].period));
            if let Some(i) = pending {
                done[i] += 1;
                if done[i] == tasks[i].wcet {
                    let response = tick + 1 + tasks[i].jitter - finished[i] * tasks[i].period;
                    worst[i] = worst[i].max(response);
                    finished[i] += 1;
                    done[i] = 0;
                }
            }
        }
        worst
    }

    fn small_set() -> impl Strategy<Value = Vec<Task>> {
        let task = (
            1..5u64,
            prop::sample::select(vec![4u64, 5, 6, 8, 10, 12, 15, 20, 24, 30]),
            1..60u64,
            0..8u64,
        )
            .prop_map(|(wcet, period, deadline, jitter)| {
                Task::new(wcet, period)
                    .due(wcet.max(deadline))
                    .jittered(jitter)
            });
        prop::collection::vec(task, 1..5)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn bounds_are_attained_by_the_worst_schedule(
            tasks in small_set(), budget in 1..8u64, spare in 0..8u64, early in 0..8u64,
        ) {
            let period = budget + spare;
            let supply = ExplicitDeadline::new(budget, period, period - early % (spare + 1)).unwrap();
            let inside = fixed_priority(&tasks, &supply);
            let simulated = simulate(&tasks, &supply, 6_000);
            for (index, task) in tasks.iter().enumerate() {
                match inside.responses[index] {
                    Some(bound) => prop_assert_eq!(bound, simulated[index], "task {}", index),
                    // A job that does not finish within the simulation leaves no trace in it.
                    None => prop_assert!(
                        simulated[index] > task.deadline
                            || load(&tasks[..=index]) > 0.85 * budget as f64 / period as f64
                    ),
                }
            }
            prop_assert_eq!(
                inside.verdict.is_schedulable(),
                inside.responses.iter().all(Option::is_some)
            );
            prop_assert_eq!(fits(&tasks, &supply, &mut Budget::new(STEPS)), Ok(inside.verdict.is_schedulable()));
            if let Verdict::Unschedulable(witness) = &inside.verdict {
                prop_assert!(witness.demand > witness.supply);
                prop_assert_eq!(witness.supply, supply.sbf(witness.instant));
                let parts: u64 = witness.parts.iter().map(|part| part.demand).sum();
                prop_assert_eq!(parts, witness.demand);
            }
        }

        /// Blocking against the definition: the first t at which the supply has caught up.
        #[test]
        fn blocking_is_added_to_the_demand(
            tasks in small_set(), blocking in 0..6u64, budget in 1..8u64, spare in 0..8u64,
        ) {
            let supply = Periodic::new(budget, budget + spare).unwrap();
            let tasks: Vec<Task> = tasks
                .iter()
                .map(|task| task.due(task.deadline.min(task.period).max(task.wcet)).blocked(blocking))
                .filter(|task| task.wcet <= task.period)
                .collect();
            let inside = fixed_priority(&tasks, &supply);
            for (index, task) in tasks.iter().enumerate() {
                let limit = task.deadline.saturating_sub(task.jitter);
                let first = (1..=limit).find(|&t| {
                    let higher: u64 = tasks[..index].iter().map(|h| (t + h.jitter).div_ceil(h.period) * h.wcet).sum();
                    task.wcet + blocking + higher <= supply.sbf(t)
                });
                prop_assert_eq!(inside.responses[index], first.map(|t| t + task.jitter));
            }
        }

        #[test]
        fn no_input_panics_or_hangs(
            raw in prop::collection::vec((any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>()), 0..5),
            shift in 0..60u32,
            budget in 1..=MAX_NS,
        ) {
            let tasks: Vec<Task> = raw
                .iter()
                .map(|&(wcet, period, deadline, jitter, blocking)| Task {
                    wcet: wcet >> shift, period: period >> shift, deadline: deadline >> shift,
                    jitter: jitter >> shift, blocking: blocking >> shift,
                })
                .collect();
            let inside = within(&tasks, &Periodic::new(budget, MAX_NS).unwrap(), Budget::new(10_000));
            if inside.verdict.is_schedulable() {
                prop_assert!(tasks.iter().all(|task| task.wcet + task.jitter <= task.deadline));
            }
        }
    }

    fn load(tasks: &[Task]) -> f64 {
        tasks
            .iter()
            .map(|task| task.wcet as f64 / task.period as f64)
            .sum()
    }

    #[test]
    fn steps_run_out_before_patience_does() {
        // The second task's busy window of 2^59 ns is walked 2 ns at a time.
        let tasks = [Task::new(1, 2), Task::new(1 << 58, MAX_NS)];
        let inside = within(&tasks, &Dedicated, Budget::new(1_000));
        assert!(matches!(
            inside.verdict,
            Verdict::Undecided(Undecided::TooManySteps { .. }) | Verdict::Schedulable
        ));
        // An overload so slight that the deadline is missed only after some 2^59 jobs.
        let full = [
            Task::new(1, 2),
            Task::new(MAX_NS / 4 + 1, MAX_NS / 2).due(MAX_NS),
            Task::new(1, 2_000).due(MAX_NS),
        ];
        let inside = within(&full[..], &Dedicated, Budget::new(1_000));
        assert_eq!(
            inside.verdict,
            Verdict::Undecided(Undecided::TooManySteps { steps: 1_000 })
        );
    }

    #[test]
    fn a_miss_is_explained() {
        let tasks = [Task::new(2, 5), Task::new(4, 10).due(8)];
        let inside = fixed_priority(&tasks, &Periodic::new(9, 10).unwrap());
        assert_eq!(inside.responses, [Some(4), None]);
        let Verdict::Unschedulable(witness) = inside.verdict else {
            panic!("8 ns of demand do not fit into sbf(8) = 6");
        };
        assert_eq!((witness.task, witness.instant), (1, 8));
        assert_eq!((witness.demand, witness.supply), (8, 6));
        let jobs: Vec<(usize, u64)> = witness.parts.iter().map(|p| (p.task, p.jobs)).collect();
        assert_eq!(jobs, [(0, 2), (1, 1)]);
    }

    #[test]
    fn jitter_beyond_the_deadline_is_a_miss_and_no_tasks_are_none() {
        let late = Task::new(1, 10).due(5).jittered(6);
        let inside = fixed_priority(&[late], &Dedicated);
        assert!(matches!(inside.verdict, Verdict::Unschedulable(_)));
        assert!(fixed_priority(&[], &Dedicated).verdict.is_schedulable());
        let none = Task { period: 0, ..late };
        let inside = fixed_priority(&[none], &Dedicated);
        assert!(matches!(inside.verdict, Verdict::Undecided(_)));
    }
}
