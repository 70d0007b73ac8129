//! Acceptance ratios: each test applied to many random sets.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use analysis::Task;
use analysis::edf;
use analysis::fp::{self, Fast, response_times_into};
use analysis::generate::{GenerateError, Recipe};

use crate::acceptance::{Acceptance, Curve};

/// Which sets to generate and how many.
#[derive(Debug, Clone)]
pub struct Sweep {
    /// Total utilization of each point.
    pub utilizations: Vec<f64>,
    /// Sets at each point.
    pub sets: u32,
    /// How sets are made; its utilization is replaced by the point's.
    pub recipe: Recipe,
    /// Threads that share the work.
    pub threads: usize,
}

/// Maximum number of steps for a set: at a utilization of nearly 1 some would take minutes. Undecided sets are counted.
const STEPS: u64 = 1 << 18;

/// One test's answer: yes, no, or none.
type Answer = Option<bool>;

/// A test of the sweep: its name in the legend, how it is drawn, and the test.
struct Test {
    name: &'static str,
    /// Its colour, dash and mark, the same for the same test of any sets.
    look: usize,
    accepts: fn(&[Task]) -> Answer,
}

/// The tests of sets whose deadlines are their periods, weakest first.
const IMPLICIT: [Test; 4] = [
    Test {
        name: "RM, Liu-Layland bound",
        look: 0,
        accepts: |tasks| Some(within_power(tasks)),
    },
    Test {
        name: "RM, hyperbolic bound",
        look: 1,
        accepts: |tasks| Some(within_product(tasks)),
    },
    Test {
        name: "RM, exact response times",
        look: 2,
        accepts: fixed,
    },
    Test {
        name: "EDF, exact demand (QPA)",
        look: 3,
        accepts: demand,
    },
];

/// The tests of sets with deadlines before the periods. The utilization bounds do not apply to them.
const CONSTRAINED: [Test; 2] = [
    Test {
        name: "DM, exact response times, D < T",
        look: 2,
        accepts: fixed,
    },
    Test {
        name: "EDF, exact demand (QPA), D < T",
        look: 3,
        accepts: demand,
    },
];

/// The tests that are applied to a recipe's sets. All see the same sets with the same deadlines.
const fn tests(recipe: &Recipe) -> &'static [Test] {
    if recipe.deadlines.0 < 1.0 {
        &CONSTRAINED
    } else {
        &IMPLICIT
    }
}

/// Generates the sets and counts how many each test accepts; calls `done` with the number of finished points.
///
/// # Errors
/// When the recipe makes no set.
pub fn sweep(sweep: &Sweep, done: impl Fn(usize) + Sync) -> Result<Acceptance, GenerateError> {
    let next = AtomicUsize::new(0);
    let finished = AtomicUsize::new(0);
    let points = sweep.utilizations.len();
    let work = || {
        let mut mine = Vec::new();
        loop {
            let point = next.fetch_add(1, Ordering::Relaxed);
            let Some(&utilization) = sweep.utilizations.get(point) else {
                return mine;
            };
            mine.push((point, count(sweep, point, utilization)));
            done(finished.fetch_add(1, Ordering::Relaxed) + 1);
        }
    };
    let counted: Vec<(usize, Result<Counts, GenerateError>)> = thread::scope(|scope| {
        let threads = sweep.threads.clamp(1, 256);
        let helpers: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mut all = work();
        for helper in helpers {
            // A helper that panicked has reported why; its points are missing and stay 0.
            all.extend(helper.join().unwrap_or_default());
        }
        all
    });
    let mut curves: Vec<Curve> = tests(&sweep.recipe)
        .iter()
        .map(|test| Curve {
            name: test.name.to_owned(),
            look: test.look,
            accepted: vec![0; points],
            undecided: vec![0; points],
        })
        .collect();
    for (point, counts) in counted {
        for (curve, (accepted, undecided)) in curves.iter_mut().zip(counts?) {
            curve.accepted[point] = accepted;
            curve.undecided[point] = undecided;
        }
    }
    Ok(Acceptance {
        utilizations: sweep.utilizations.clone(),
        sets: sweep.sets.into(),
        made: format!(
            "{} sets of {} tasks at each of {} points, seed {}, deadlines {}",
            sweep.sets,
            sweep.recipe.tasks,
            points,
            sweep.recipe.seed,
            deadlines(&sweep.recipe)
        ),
        curves,
    })
}

fn deadlines(recipe: &Recipe) -> String {
    let (nearest, farthest) = recipe.deadlines;
    if nearest < 1.0 {
        format!("drawn from {nearest} to {farthest} of the way from wcet to period")
    } else {
        "at the periods".to_owned()
    }
}

/// Accepted and undecided sets of each test.
type Counts = Vec<(u64, u64)>;

fn count(sweep: &Sweep, point: usize, utilization: f64) -> Result<Counts, GenerateError> {
    let recipe = Recipe {
        utilization,
        ..sweep.recipe
    };
    let tests = tests(&recipe);
    let mut counts = vec![(0, 0); tests.len()];
    for set in 0..u64::from(sweep.sets) {
        // Every point has its own sets.
        let mut tasks = recipe.set(point as u64 * u64::from(sweep.sets) + set)?;
        // Deadline monotonic; rate monotonic where deadlines are the periods.
        tasks.sort_by_key(|task| task.deadline);
        for (test, count) in tests.iter().zip(&mut counts) {
            match (test.accepts)(&tasks) {
                Some(true) => count.0 += 1,
                Some(false) => {}
                None => count.1 += 1,
            }
        }
    }
    Ok(counts)
}

/// Fractions of 2^60, rounded up.
const ONE: u128 = 1 << 60;

/// C/T in 2^-60, rounded up.
fn share(task: &Task) -> u128 {
    (u128::from(task.wcet) << 60).div_ceil(u128::from(task.period.max(1)))
}

/// The product of these factors in 2^-60, rounded up after each step so that a yes is never wrong; stops beyond 2.
fn product(factors: impl Iterator<Item = u128>) -> u128 {
    factors.fold(ONE, |product, factor| {
        if product > 2 * ONE || factor > 2 * ONE {
            return 3 * ONE;
        }
        (product * factor).div_ceil(ONE)
    })
}

/// U <= n (2^(1/n) - 1), as (1 + U/n)^n <= 2 (Liu and Layland, JACM 1973, theorem 5).
fn within_power(tasks: &[Task]) -> bool {
    let count = tasks.len().max(1) as u128;
    let total = tasks
        .iter()
        .fold(0u128, |sum, task| sum.saturating_add(share(task)));
    let factor = ONE.saturating_add(total.div_ceil(count));
    product(std::iter::repeat_n(factor, tasks.len())) <= 2 * ONE
}

/// Π (1 + U_i) <= 2 (Bini, Buttazzo and Buttazzo, IEEE TC 2003).
fn within_product(tasks: &[Task]) -> bool {
    product(tasks.iter().map(|task| ONE + share(task))) <= 2 * ONE
}

fn fixed(tasks: &[Task]) -> Answer {
    let mut out = vec![0; tasks.len()];
    match response_times_into(tasks, &mut out) {
        Fast::AllMeet => Some(true),
        Fast::Misses(_) => Some(false),
        Fast::NotCovered(_) => answer(&fp::verdict_within(tasks, STEPS)),
    }
}

fn demand(tasks: &[Task]) -> Answer {
    edf::decide(tasks).or_else(|| answer(&edf::verdict_within(tasks, STEPS)))
}

fn answer(verdict: &analysis::Verdict) -> Answer {
    match verdict {
        analysis::Verdict::Schedulable => Some(true),
        analysis::Verdict::Unschedulable(_) => Some(false),
        analysis::Verdict::Undecided(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::generate::{Periods, Utilizations};

    fn small(threads: usize, nearest: f64) -> Sweep {
        Sweep {
            utilizations: vec![0.5, 0.8, 0.95],
            sets: 200,
            recipe: Recipe {
                tasks: 5,
                utilization: 0.0,
                utilizations: Utilizations::UUniFast,
                periods: Periods::LogUniform {
                    shortest: 10_000_000,
                    longest: 1_000_000_000,
                    grid: 1_000_000,
                },
                deadlines: (nearest, 1.0),
                seed: 1,
            },
            threads,
        }
    }

    #[test]
    fn threads_change_nothing_and_stronger_tests_accept_more() {
        let one = sweep(&small(1, 1.0), |_| {}).expect("sets");
        let seen = AtomicUsize::new(0);
        let three = sweep(&small(3, 1.0), |_| {
            seen.fetch_add(1, Ordering::Relaxed);
        })
        .expect("sets");
        assert_eq!(one, three);
        assert_eq!(seen.into_inner(), 3);
        assert!(
            one.made.ends_with("deadlines at the periods"),
            "{}",
            one.made
        );
        let [bound, product, exact, edf] = one.curves.as_slice() else {
            panic!("four tests");
        };
        for point in 0..3 {
            assert!(bound.accepted[point] <= product.accepted[point]);
            assert!(product.accepted[point] <= exact.accepted[point]);
            assert!(exact.accepted[point] <= edf.accepted[point]);
            assert_eq!(exact.undecided[point] + edf.undecided[point], 0);
        }
        assert_eq!(edf.accepted, [200; 3], "the bound of EDF is 1");
        assert_eq!(
            (bound.accepted[0], exact.accepted[0]),
            (200, 200),
            "0.5 is below ln 2"
        );
        assert_eq!(
            bound.accepted[1], 0,
            "0.8 is above the bound of 5 tasks, 0.743"
        );
        assert!(exact.accepted[1] > 100 && exact.accepted[2] < exact.accepted[1]);
    }

    #[test]
    fn drawn_deadlines_are_those_of_every_test() {
        let drawn = sweep(&small(2, 0.5), |_| {}).expect("sets");
        let [fixed, edf] = drawn.curves.as_slice() else {
            panic!("no bound of utilization");
        };
        for point in 0..3 {
            assert!(fixed.accepted[point] <= edf.accepted[point]);
        }
        assert!(edf.accepted[0] > edf.accepted[2], "deadlines count");
        assert!(fixed.name.contains("D < T") && edf.name.contains("D < T"));
    }

    #[test]
    fn the_bounds_are_those_of_the_books() {
        let tasks = |wcet| vec![Task::new(wcet, 1_000_000); 2];
        // 2 (sqrt 2 - 1) = 0.828427: 0.4142135 each.
        assert!(within_power(&tasks(414_213)) && !within_power(&tasks(414_214)));
        assert!(within_product(&tasks(414_213)) && !within_product(&tasks(414_214)));
        // 1 + 1/3 and 1 + 1/2 make exactly 2, but thirds are rounded up.
        let uneven = [Task::new(332_999, 1_000_000), Task::new(500_000, 1_000_000)];
        assert!(within_product(&uneven) && !within_power(&uneven));
        let overload = vec![Task::new(u64::MAX, 1); 50];
        assert!(!within_power(&overload) && !within_product(&overload));
    }
}
