//! EDF inside reservations against a simulation and against every instant.

use proptest::prelude::*;

use std::cmp::Ordering;

use super::excess::compare_with_rate;
use super::*;
use crate::MAX_NS;
use crate::inside::{Policy, holds_within};
use crate::reservation::{BoundedDelay, Dedicated, ExplicitDeadline, Periodic};
use crate::utilization::gcd;

fn small_set() -> impl Strategy<Value = Vec<Task>> {
    let periods = prop::sample::select(vec![2u64, 3, 4, 5, 6, 8, 10, 12]);
    let task = (1..5u64, periods, 1..30u64, 0..5u64, 0..3u64).prop_map(
        |(wcet, period, deadline, jitter, blocking)| {
            Task::new(wcet, period)
                .due(wcet.max(deadline))
                .jittered(jitter)
                .blocked(blocking)
        },
    );
    prop::collection::vec(task, 1..4)
}

/// Every instant, deadline or not, up to where demand and supply only repeat.
fn first_excess(tasks: &[Task], supply: &impl Supply) -> Option<Ns> {
    let (supplied, per) = supply.rate();
    let hyper = tasks
        .iter()
        .fold(per, |lcm, task| lcm / gcd(lcm, task.period) * task.period);
    let load: u64 = tasks
        .iter()
        .map(|task| hyper / task.period * task.wcet)
        .sum();
    // With more load than rate the excess grows by at least 1 in every hyperperiod.
    let rounds = if load > hyper / per * supplied { 60 } else { 3 };
    let end = rounds * hyper + 100;
    (0..end).find(|&t| {
        let demand: u64 = tasks
            .iter()
            .filter(|task| t + task.jitter >= task.deadline)
            .map(|task| ((t + task.jitter - task.deadline) / task.period + 1) * task.wcet)
            .sum();
        let blocking = tasks
            .iter()
            .filter(|task| t + task.jitter >= task.deadline)
            .map(|task| task.blocking)
            .max();
        demand + blocking.unwrap_or(0) > supply.sbf(t)
    })
}

/// The largest response times under EDF when task i's first job arrives at `first[i]`, the rest as soon as they
/// may, each released `jitter` late or with its predecessor, and the supply comes as late as sbf says.
fn simulate(tasks: &[Task], first: &[u64], supply: &impl Supply, ticks: u64) -> Vec<u64> {
    let mut worst = vec![0; tasks.len()];
    let mut finished = vec![0u64; tasks.len()];
    let mut done = vec![0u64; tasks.len()];
    for tick in 0..ticks {
        if supply.sbf(tick + 1) == supply.sbf(tick) {
            continue;
        }
        let arrival = |i: usize| first[i] + finished[i] * tasks[i].period;
        let pending = (0..tasks.len())
            .filter(|&i| {
                let released = arrival(i).max(first[i] + tasks[i].jitter);
                released <= tick
            })
            .min_by_key(|&i| arrival(i) + tasks[i].deadline);
        if let Some(i) = pending {
            done[i] += 1;
            if done[i] == tasks[i].wcet {
                worst[i] = worst[i].max(tick + 1 - arrival(i));
                finished[i] += 1;
                done[i] = 0;
            }
        }
    }
    worst
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn agrees_with_every_instant(
        tasks in small_set(), budget in 1..7u64, spare in 0..7u64, early in 0..7u64,
    ) {
        let period = budget + spare;
        let supply = ExplicitDeadline::new(budget, period, period - early % (spare + 1)).unwrap();
        let inside = edf(&tasks, &supply);
        let first = first_excess(&tasks, &supply);
        match &inside.verdict {
            Verdict::Schedulable => prop_assert_eq!(first, None),
            Verdict::Unschedulable(witness) => {
                prop_assert_eq!(Some(witness.instant), first);
                prop_assert!(witness.demand > witness.supply);
                prop_assert_eq!(witness.supply, supply.sbf(witness.instant));
                let parts: u64 = witness.parts.iter().map(|part| part.demand).sum();
                prop_assert_eq!(parts + blocking(&tasks, witness.instant), witness.demand);
            }
            Verdict::Undecided(reason) => prop_assert!(false, "{}", reason),
        }
        let bounded = BoundedDelay::new(budget, period, early).unwrap();
        prop_assert_eq!(
            edf(&tasks, &bounded).verdict.is_schedulable(),
            first_excess(&tasks, &bounded).is_none()
        );
    }

    /// The search alone answers as the whole test, near the rate above all; and for a supply that does not tell its
    /// delay the same again.
    #[test]
    fn holds_says_what_the_verdict_says(
        raw in prop::collection::vec((1..2_000u64, 3_000..40_000u64, 20..=150u64, 0..2_000u64, 0..500u64), 1..6),
        period in 500..20_000u64, above in 0..30u64, early in 0..=100u64,
    ) {
        struct Plain(ExplicitDeadline);
        impl Supply for Plain {
            fn sbf(&self, t: Ns) -> Ns { self.0.sbf(t) }
            fn inverse(&self, work: Ns) -> Option<Ns> { self.0.inverse(work) }
            fn rate(&self) -> (Ns, Ns) { self.0.rate() }
            fn cycle(&self) -> Option<Ns> { self.0.cycle() }
        }
        let tasks: Vec<Task> = raw
            .iter()
            .map(|&(wcet, period, due, jitter, blocking)| {
                Task::new(wcet, period).due((period * due / 100).max(wcet)).jittered(jitter).blocked(blocking)
            })
            .collect();
        let load: u64 = tasks.iter().map(|task| (task.wcet * period).div_ceil(task.period)).sum();
        let budget = (load + above * above).min(period);
        let deadline = budget + (period - budget) * early / 100;
        let supply = ExplicitDeadline::new(budget, period, deadline).unwrap();
        let steps = 1 << 24;
        let full = within(&tasks, &supply, steps).verdict;
        let plain = within(&tasks, &Plain(supply), steps).verdict;
        let alone = holds_within(&tasks, Policy::Edf, &supply, steps);
        match full {
            Verdict::Schedulable => {
                prop_assert_eq!(alone, Ok(true));
                prop_assert!(!matches!(plain, Verdict::Unschedulable(_)));
            }
            Verdict::Unschedulable(witness) => {
                prop_assert_eq!(alone, Ok(false));
                prop_assert!(witness.demand > supply.sbf(witness.instant));
                prop_assert!(!plain.is_schedulable());
            }
            Verdict::Undecided(reason) => prop_assert_eq!(
                compare_with_rate(&tasks, &supply), Ordering::Equal, "{}", reason
            ),
        }
    }

    #[test]
    fn responses_hold_exactly_when_the_verdict_does(
        tasks in small_set(), budget in 1..7u64, spare in 0..7u64,
    ) {
        let tasks: Vec<Task> = tasks.iter().map(|task| task.blocked(0)).collect();
        let supply = Periodic::new(budget, budget + spare).unwrap();
        let inside = edf(&tasks, &supply);
        let all = inside.responses.iter().all(Option::is_some);
        if all {
            prop_assert!(inside.verdict.is_schedulable());
        } else if inside.verdict.is_schedulable() {
            // At equal rates a busy window may have no end.
            prop_assert!(busy_window(&tasks, &supply, &mut Budget::new(100_000)).is_err());
        }
    }

    #[test]
    fn simulated_responses_stay_within_the_bounds(
        tasks in small_set(), budget in 1..7u64, spare in 0..7u64,
        first in prop::collection::vec(0..12u64, 4),
    ) {
        let tasks: Vec<Task> = tasks.iter().map(|task| task.blocked(0)).collect();
        let supply = Periodic::new(budget, budget + spare).unwrap();
        let inside = edf(&tasks, &supply);
        let simulated = simulate(&tasks, &first, &supply, 400);
        for (index, bound) in inside.responses.iter().enumerate() {
            if let Some(bound) = bound {
                prop_assert!(simulated[index] <= *bound, "task {}: {} > {}", index, simulated[index], bound);
            }
        }
    }

    /// On a dedicated cpu without blocking the bounds are reached, so that a task said to miss does, at some phasing.
    #[test]
    fn tasks_that_are_said_to_miss_do(tasks in small_set()) {
        let tasks: Vec<Task> = tasks.iter().take(2).map(|task| task.blocked(0)).collect();
        let inside = edf(&tasks, &Dedicated);
        for &index in &inside.missed {
            // Behind the others it loses every tie.
            let mut order = tasks.clone();
            let task = order.remove(index);
            order.push(task);
            let late = |first: [u64; 2], ticks| {
                simulate(&order, &first, &Dedicated, ticks)[order.len() - 1] > task.deadline
            };
            // An overload takes time to show.
            let misses = late([0, 0], 3_000)
                || (0..24).any(|one| (0..24).any(|other| late([one, other], 150)));
            prop_assert!(misses, "task {} of {:?}", index, tasks);
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
        let inside = within(&tasks, &Periodic::new(budget, MAX_NS).unwrap(), 10_000);
        if inside.verdict.is_schedulable() {
            prop_assert!(tasks.iter().all(|task| task.wcet + task.jitter <= task.deadline));
        }
        let t = raw.first().map_or(0, |task| task.0);
        edf_demand(&tasks, t);
    }
}

#[test]
fn exactly_the_whole_rate() {
    // Co-prime periods whose hyperperiod leaves the range: implicit deadlines need no walk.
    let primes = [
        1_000_000_007u64,
        1_000_000_009,
        1_000_000_021,
        1_000_000_033,
    ];
    let mut tasks: Vec<Task> = primes.iter().map(|&p| Task::new(p / 5, p)).collect();
    assert!(edf(&tasks, &Dedicated).verdict.is_schedulable());
    let halves = [
        Task::new(primes[0], 2 * primes[0]),
        Task::new(primes[1], 2 * primes[1]),
    ];
    assert!(edf(&halves, &Dedicated).verdict.is_schedulable());
    assert!(
        !edf(&halves.map(|t| t.due(t.period - 1)), &Dedicated)
            .verdict
            .is_schedulable()
    );
    // In a reservation that is not the whole cpu, load at the rate is too much.
    let even = [Task::new(2, 8), Task::new(1, 4)];
    assert!(
        !edf(&even, &Periodic::new(2, 4).unwrap())
            .verdict
            .is_schedulable()
    );
    let patient = even.map(|task| task.due(40));
    assert!(
        edf(&patient, &Periodic::new(2, 4).unwrap())
            .verdict
            .is_schedulable()
    );
    tasks.push(Task::new(primes[0], primes[0]));
    assert!(!edf(&tasks, &Dedicated).verdict.is_schedulable());
}

#[test]
fn steps_run_out_before_patience_does() {
    let tasks = [
        Task::new(1, 2).due(1),
        Task::new(1 << 58, MAX_NS).due(MAX_NS / 3),
    ];
    let inside = within(&tasks, &Periodic::new(MAX_NS - 1, MAX_NS).unwrap(), 200);
    assert!(!inside.verdict.is_schedulable());
}
