//! The verdicts on a dedicated cpu. On small sets they are what the definitions say, tried instant by instant; on sets
//! of any size nothing panics, no search ends after its steps, and no overload is schedulable.
#![no_main]

use analysis::fp::Response;
use analysis::inside::{Policy, test};
use analysis::reservation::{Dedicated, Periodic};
use analysis::utilization::compare_with_one;
use analysis::{Task, Verdict, edf, fp, least_budget};
use libfuzzer_sys::arbitrary::{self, Arbitrary, Unstructured};
use libfuzzer_sys::fuzz_target;

/// Divisors of 120, so that every set repeats soon.
const PERIODS: [u64; 9] = [2, 3, 4, 5, 6, 8, 10, 12, 15];
const REPEATS: u64 = 120;
const MOST_STEPS: u64 = 1 << 16;

fuzz_target!(|bytes: &[u8]| {
    let source = &mut Unstructured::new(bytes);
    if source.ratio(3, 4).unwrap_or(true) {
        // Too few bytes make no set.
        if let Ok(tasks) = small(source) {
            small_set(&tasks);
        }
    } else if let Ok(tasks) = large(source) {
        large_set(&tasks);
    }
});

fn small(source: &mut Unstructured<'_>) -> arbitrary::Result<Vec<Task>> {
    let count = source.int_in_range(1..=4)?;
    (0..count)
        .map(|_| {
            let period = *source.choose(&PERIODS)?;
            let wcet = source.int_in_range(1..=period)?;
            let deadline = source.int_in_range(wcet..=3 * period)?;
            let jitter = source.int_in_range(0..=period)?;
            Ok(Task::new(wcet, period).due(deadline).jittered(jitter))
        })
        .collect()
}

fn large(source: &mut Unstructured<'_>) -> arbitrary::Result<Vec<Task>> {
    let count = source.int_in_range(0..=12)?;
    (0..count)
        .map(|_| {
            Ok(Task {
                wcet: time(source)?,
                period: time(source)?,
                deadline: time(source)?,
                jitter: time(source)?,
                blocking: time(source)?,
            })
        })
        .collect()
}

/// Any order of magnitude, zero and the end of the range too.
fn time(source: &mut Unstructured<'_>) -> arbitrary::Result<u64> {
    let bits: u32 = source.int_in_range(0..=64)?;
    Ok(u64::arbitrary(source)?.checked_shr(64 - bits).unwrap_or(0))
}

/// The load of every [`REPEATS`].
fn load(tasks: &[Task]) -> u64 {
    tasks
        .iter()
        .map(|task| REPEATS / task.period * task.wcet)
        .sum()
}

fn small_set(tasks: &[Task]) {
    let by_demand = demand_holds(tasks);
    match edf::verdict(tasks) {
        Verdict::Schedulable => assert!(by_demand, "{tasks:?}"),
        Verdict::Unschedulable(witness) => {
            assert!(!by_demand, "{tasks:?}");
            assert!(
                demand(tasks, witness.instant) > witness.instant,
                "{tasks:?}"
            );
        }
        Verdict::Undecided(why) => panic!("{why}: {tasks:?}"),
    }
    if let Some(fast) = edf::decide(tasks) {
        assert_eq!(fast, by_demand, "{tasks:?}");
    }
    let responses = fp::response_times(tasks);
    for (level, response) in responses.iter().enumerate() {
        let longest = longest_response(&tasks[..=level]);
        match response {
            Response::Meets(bound) => assert_eq!(Some(*bound), longest, "{level} of {tasks:?}"),
            Response::Misses(_) => assert_eq!(longest, None, "{level} of {tasks:?}"),
            Response::Undecided(why) => panic!("{why}: {tasks:?}"),
        }
    }
    let fixed = responses.iter().all(Response::meets);
    assert_eq!(fp::verdict(tasks).is_schedulable(), fixed, "{tasks:?}");
    for (policy, holds) in [(Policy::FixedPriority, fixed), (Policy::Edf, by_demand)] {
        let whole = test(tasks, policy, &Dedicated).verdict;
        assert_eq!(whole.is_schedulable(), holds, "{policy:?} {tasks:?}");
        let least = least_budget::least_budget(tasks, policy, 7, 1).unwrap();
        let enough = |budget| {
            let supply = Periodic::new(budget, 7).unwrap();
            test(tasks, policy, &supply).verdict.is_schedulable()
        };
        assert_eq!(
            least,
            (1..=7).find(|&budget| enough(budget)),
            "{policy:?} {tasks:?}"
        );
        assert_eq!(least.is_some(), holds, "{policy:?} {tasks:?}");
    }
}

/// Work of jobs that are released and due within `t`, counted job by job: released at their densest, the first as
/// late after its arrival as it can be.
fn demand(tasks: &[Task], t: u64) -> u64 {
    let due = |task: &Task| {
        let first = i64::try_from(task.deadline).unwrap() - i64::try_from(task.jitter).unwrap();
        let jobs = (0i64..).map(|job| first + job * task.period as i64);
        jobs.take_while(|&due| due <= t as i64).count() as u64 * task.wcet
    };
    tasks.iter().map(due).sum()
}

/// Every interval up to where demand repeats.
fn demand_holds(tasks: &[Task]) -> bool {
    let longest = tasks
        .iter()
        .map(|task| task.deadline + task.jitter)
        .max()
        .unwrap_or(0);
    load(tasks) <= REPEATS && (0..=2 * REPEATS + longest).all(|t| demand(tasks, t) <= t)
}

/// The longest response time of the last task, ticked through from the critical instant; `None` if a job is late.
fn longest_response(tasks: &[Task]) -> Option<u64> {
    let (last, above) = tasks.split_last()?;
    // Jobs of a task released by the end of tick t, those held up by jitter all at 0.
    let released = |task: &Task, t: u64| (t + task.jitter) / task.period + 1;
    let (mut work_above, mut work, mut done_jobs, mut longest) = (0, 0, 0, 0);
    let mut seen = vec![0; tasks.len()];
    for t in 0.. {
        for (task, seen) in above.iter().zip(&mut seen) {
            work_above += (released(task, t) - *seen) * task.wcet;
            *seen = released(task, t);
        }
        let jobs = released(last, t);
        work += (jobs - seen[above.len()]) * last.wcet;
        seen[above.len()] = jobs;
        // Whoever waits for a job that is late already is late.
        let due = (done_jobs * last.period + last.deadline).checked_sub(last.jitter);
        if done_jobs < jobs && due.is_none_or(|due| due <= t) {
            return None;
        }
        if work_above > 0 {
            work_above -= 1;
        } else if work > 0 {
            work -= 1;
            if work % last.wcet == 0 {
                longest = longest.max(t + 1 + last.jitter - done_jobs * last.period);
                done_jobs += 1;
            }
        }
        // Idle at this level, or at full load as often as it takes to repeat.
        let repeated = load(tasks) == REPEATS && t > 4 * REPEATS;
        if (work_above == 0 && work == 0) || repeated {
            return Some(longest);
        }
    }
    None
}

fn large_set(tasks: &[Task]) {
    let spoilt = tasks.iter().any(|task| task.check().is_err());
    let overload = !spoilt && compare_with_one(tasks).is_gt();
    for verdict in [
        edf::verdict_within(tasks, MOST_STEPS),
        fp::verdict_within(tasks, MOST_STEPS),
    ] {
        let wrong = verdict.is_schedulable() && (overload || spoilt);
        assert!(!wrong, "{tasks:?}");
    }
    assert!(!(overload && edf::decide(tasks) == Some(true)), "{tasks:?}");
    let responses = fp::response_times_within(tasks, MOST_STEPS);
    for (task, response) in tasks.iter().zip(responses) {
        if let Response::Meets(bound) = response {
            let long_enough = bound >= task.wcet.saturating_add(task.jitter);
            assert!(
                long_enough && bound <= task.deadline,
                "{task:?} of {tasks:?}"
            );
        }
    }
}
