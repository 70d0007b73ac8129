//! Tasks inside reservations against the simulator: periodic and explicit-deadline supply at its latest, exact for
//! fixed priorities and EDF; any other supply and phasing, safe; and EDF inside servers among servers.

use crate::simulator::horizon::{REPEATS, ticks_to_see};
use crate::simulator::{Policy, Random, Releases, SimServer, Source, set_count, simulate};
use timecell_analysis::inside::{edf, fixed_priority};
use timecell_analysis::reservation::ExplicitDeadline;
use timecell_analysis::{Task, Verdict};

const START: u64 = 60;
/// Divisors of [`REPEATS`].
const PERIODS: [u64; 9] = [5, 6, 8, 10, 12, 15, 20, 24, 30];

struct Reservation {
    budget: u64,
    period: u64,
    deadline: u64,
}

impl Reservation {
    fn any(random: &mut Random) -> Reservation {
        let period: u64 = random.choose(&[2, 3, 4, 5, 6, 8, 10, 12]);
        let budget = random.between(period.div_ceil(3), period);
        let deadline = match random.percent(50) {
            true => period,
            false => random.between(budget, period),
        };
        Reservation {
            budget,
            period,
            deadline,
        }
    }

    /// The budget is at once used up at [`START`], and from then on comes as late as it can.
    fn latest(&self, until: u64) -> Source {
        let mut ticks = vec![false; until as usize];
        // Before, it came as early as it can.
        for tick in 0..START {
            let since_refill = (tick + self.budget + self.period * START - START) % self.period;
            ticks[tick as usize] = since_refill < self.budget;
        }
        for refill in (START - self.budget + self.period..until).step_by(self.period as usize) {
            for tick in refill + self.deadline - self.budget..refill + self.deadline {
                if let Some(slot) = ticks.get_mut(tick as usize) {
                    *slot = true;
                }
            }
        }
        Source::Pattern(ticks)
    }

    fn anyhow(&self, until: u64, random: &mut Random) -> Source {
        let mut ticks = vec![false; until as usize];
        // The first period began before 0.
        for refill in
            (random.between(1, self.period)..until + self.period).step_by(self.period as usize)
        {
            let mut left = self.budget;
            for at in 0..self.deadline {
                // Each tick that is left is as likely as any other.
                let taken = left > 0 && random.between(1, self.deadline - at) <= left;
                left -= u64::from(taken);
                if let Some(slot) = ticks.get_mut((refill + at).wrapping_sub(self.period) as usize)
                {
                    *slot = taken;
                }
            }
        }
        Source::Pattern(ticks)
    }
}

fn tasks(random: &mut Random) -> Vec<Task> {
    let count = random.between(1, 3);
    let jittery = random.percent(30);
    (0..count)
        .map(|_| {
            let period = random.choose(&PERIODS);
            let wcet = random.between(1, (period / count / 2).max(1));
            let deadline = match random.between(0, 2) {
                0 => random.between(period / 2, period),
                1 => period,
                _ => random.between(period, 4 * period),
            };
            random.task(wcet, period, deadline, jittery)
        })
        .collect()
}

#[test]
fn inside_a_reservation_bounds_hold_and_exact_ones_are_attained() {
    let mut counts = [[0u64; 2]; 2];
    let sets = set_count(1_200);
    for seed in 0..sets {
        let random = &mut Random::new(seed ^ 0x5E11);
        let reservation = Reservation::any(random);
        let tasks = tasks(random);
        let Reservation {
            budget,
            period,
            deadline,
        } = reservation;
        let supply = ExplicitDeadline::new(budget, period, deadline).unwrap();
        let about = || format!("seed {seed}: {supply:?} {tasks:?}");
        let fixed = fixed_priority(&tasks, &supply);
        let earliest = edf(&tasks, &supply);
        let rate = REPEATS / period * budget;
        let end = START + ticks_to_see(&tasks, rate, 2 * period);
        let last_wins = random.percent(50);
        for (at, (policy, found)) in [
            (Policy::FixedPriority, &fixed),
            (Policy::Edf { last_wins }, &earliest),
        ]
        .into_iter()
        .enumerate()
        {
            let seen = simulate(
                &[SimServer {
                    source: reservation.latest(end),
                    policy,
                    tasks: tasks
                        .iter()
                        .map(|task| Releases::DensestFrom(START).jobs(task, end, random))
                        .collect(),
                }],
                end,
            )
            .remove(0);
            let missed = seen.missed.contains(&true);
            match &found.verdict {
                Verdict::Schedulable => assert!(!missed, "{policy:?} {}", about()),
                Verdict::Unschedulable(_) => assert!(missed, "{policy:?} {}", about()),
                Verdict::Undecided(reason) => panic!("{reason}: {policy:?} {}", about()),
            }
            counts[at][usize::from(missed)] += 1;
            for (bound, seen) in found.responses.iter().zip(&seen.tasks) {
                match (bound, policy) {
                    (Some(bound), Policy::FixedPriority) => assert_eq!(seen, bound, "{}", about()),
                    (Some(bound), _) => assert!(seen <= bound, "{seen} > {bound}: {}", about()),
                    (None, _) => {}
                }
            }
            for _ in 0..2 {
                let until = START + 240;
                let source = match random.percent(50) {
                    true => reservation.anyhow(until, random),
                    false => reservation.latest(until),
                };
                let releases = |random: &mut Random| match random.percent(60) {
                    true => Releases::DensestFrom(START - random.between(0, 30)),
                    false => Releases::Random(0),
                };
                let jobs = tasks
                    .iter()
                    .map(|task| releases(random).jobs(task, until, random));
                let server = SimServer {
                    source,
                    policy,
                    tasks: jobs.collect(),
                };
                let seen = &simulate(&[server], until)[0];
                if found.verdict.is_schedulable() {
                    assert!(!seen.missed.contains(&true), "{policy:?} {}", about());
                }
                for (bound, seen) in found.responses.iter().zip(&seen.tasks) {
                    if let Some(bound) = bound {
                        assert!(seen <= bound, "{seen} > {bound}: {policy:?} {}", about());
                    }
                }
            }
        }
    }
    println!("{sets} sets: fixed priority, EDF; [schedulable, missed]: {counts:?}");
    assert!(
        counts.iter().flatten().all(|count| *count > sets / 10),
        "{counts:?}"
    );
}
