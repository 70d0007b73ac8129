//! Fixed priorities and EDF on a dedicated cpu against the simulator: no bound below an observation, and since these
//! tests are exact, every bound attained and every refusal seen as a missed deadline.

use crate::simulator::horizon::{REPEATS, ticks_to_see};
use crate::simulator::{Job, Policy, Random, Releases, SimServer, Source, set_count, simulate};
use timecell_analysis::fp::{Response, response_times};
use timecell_analysis::reservation::Dedicated;
use timecell_analysis::{Task, Verdict, edf, inside};

const START: u64 = 100;
/// Divisors of [`REPEATS`].
const PERIODS: [u64; 11] = [3, 4, 5, 6, 8, 10, 12, 15, 20, 24, 30];

fn tasks(random: &mut Random) -> Vec<Task> {
    let count = random.between(1, 4);
    let jittery = random.percent(40);
    (0..count)
        .map(|_| {
            let period = random.choose(&PERIODS);
            let wcet = random.between(1, period * 3 / (2 * count)).max(1);
            let deadline = match random.between(0, 3) {
                0 => period,
                1 => random.between(1, 3 * period),
                _ => random.between(period / 2, period),
            };
            random.task(wcet, period, deadline, jittery)
        })
        .collect()
}

fn machine(policy: Policy, tasks: &[Task], releases: impl FnMut(&Task) -> Vec<Job>) -> SimServer {
    SimServer {
        source: Source::Pattern(vec![true]),
        policy,
        tasks: tasks.iter().map(releases).collect(),
    }
}

#[test]
fn fixed_priority_responses_are_exactly_what_the_critical_instant_shows() {
    let (mut meets, mut misses) = (0u64, 0u64);
    let sets = set_count(1_500);
    for seed in 0..sets {
        let random = &mut Random::new(seed);
        let tasks = tasks(random);
        let until = START + ticks_to_see(&tasks, REPEATS, 0);
        let bounds = response_times(&tasks);
        let critical = machine(Policy::FixedPriority, &tasks, |task| {
            Releases::DensestFrom(START).jobs(task, until, random)
        });
        let seen = &simulate(&[critical], until)[0];
        for (task, bound) in bounds.iter().enumerate() {
            match bound {
                Response::Meets(bound) => {
                    meets += 1;
                    assert_eq!(
                        seen.tasks[task], *bound,
                        "seed {seed}, task {task}: {tasks:?}"
                    );
                }
                Response::Misses(_) => {
                    misses += 1;
                    assert!(seen.missed[task], "seed {seed}, task {task}: {tasks:?}");
                }
                Response::Undecided(reason) => {
                    panic!("seed {seed}, task {task}: {reason}: {tasks:?}")
                }
            }
        }
        for _ in 0..2 {
            let anyhow = machine(Policy::FixedPriority, &tasks, |task| {
                Releases::Random(random.between(0, 60)).jobs(task, START + 300, random)
            });
            let seen = &simulate(&[anyhow], START + 300)[0];
            for (bound, seen) in bounds.iter().zip(&seen.tasks) {
                if let Response::Meets(bound) = bound {
                    assert!(seen <= bound, "seed {seed}: {seen} > {bound}: {tasks:?}");
                }
            }
        }
    }
    println!("{sets} sets: {meets} tasks meet, {misses} miss");
    assert!(meets > sets / 2 && misses > sets / 10);
}

#[test]
fn edf_refuses_exactly_the_sets_that_miss() {
    let (mut yes, mut no) = (0u64, 0u64);
    let sets = set_count(1_500);
    for seed in 0..sets {
        let random = &mut Random::new(seed ^ 0xEDF);
        let tasks = tasks(random);
        let until = START + ticks_to_see(&tasks, REPEATS, 0);
        let policy = Policy::Edf {
            last_wins: random.percent(50),
        };
        let critical = machine(policy, &tasks, |task| {
            Releases::DensestFrom(START).jobs(task, until, random)
        });
        let missed = simulate(&[critical], until)[0].missed.contains(&true);
        let verdict = edf::verdict(&tasks);
        match verdict {
            Verdict::Schedulable => {
                yes += 1;
                assert!(!missed, "seed {seed}: {tasks:?}");
            }
            Verdict::Unschedulable(_) => {
                no += 1;
                assert!(missed, "seed {seed}: {tasks:?}");
            }
            Verdict::Undecided(reason) => panic!("seed {seed}: {reason}: {tasks:?}"),
        }
        if let Some(fast) = edf::decide(&tasks) {
            assert_eq!(fast, !missed, "seed {seed}: {tasks:?}");
        }
        let bounds = edf::response_times(&tasks);
        let inside = inside::edf(&tasks, &Dedicated);
        for (response, bound) in bounds.iter().zip(&inside.responses) {
            assert_eq!(response.bound(), *bound, "seed {seed}: {tasks:?}");
        }
        if missed {
            assert!(!inside.missed.is_empty(), "seed {seed}: {tasks:?}");
        } else {
            assert!(
                bounds
                    .iter()
                    .all(|bound| !matches!(bound, Response::Misses(_)))
            );
        }
        for _ in 0..3 {
            // The longest response under EDF need not be at a common release.
            let anyhow = machine(policy, &tasks, |task| {
                let releases = match random.percent(70) {
                    true => Releases::DensestFrom(random.between(40, START)),
                    false => Releases::Random(random.between(0, 60)),
                };
                releases.jobs(task, START + 300, random)
            });
            let seen = &simulate(&[anyhow], START + 300)[0];
            assert!(
                missed || !seen.missed.contains(&true),
                "seed {seed}: {tasks:?}"
            );
            for (bound, seen) in bounds.iter().zip(&seen.tasks) {
                if let Response::Meets(bound) = bound {
                    assert!(seen <= bound, "seed {seed}: {seen} > {bound}: {tasks:?}");
                }
            }
        }
    }
    println!("{sets} sets: {yes} schedulable, {no} not");
    assert!(yes > sets / 10 && no > sets / 10);
}
