//! Exact least budgets per second, one thread: 5,000 sets of ten tasks at a utilisation of 0.4 (UUniFast, periods
//! log-uniform from 10 ms to 1 s, rate-monotonic), for a period of 5 ms on a grid of 1 us: under fixed priorities by the
//! closed form and by plain bisection, and under EDF. There the load fills many of the least budgets almost to the last
//! ns, and the horizon of the search is long.
//!
//! `cargo bench -p benches --bench budget`. Compare rates of one run only: the machine's clock moves.

use std::hint::black_box;

use analysis::inside::Policy;
use analysis::least_budget::{least_budget, least_budget_by_bisection};
use analysis::{Ns, Task};
use benches::{Set, sets_of};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const PERIOD: Ns = 5_000_000;
const GRID: Ns = 1_000;

fn sets() -> Vec<Set> {
    sets_of(include_bytes!(
        "../../crates/analysis/tests/data/prm_u40.txt.gz"
    ))
}

/// The sum of the least budgets in us, which is known, so that no variant can be fast and wrong.
fn sum(sets: &[Set], least: impl Fn(&[Task]) -> Option<Ns>) -> u64 {
    sets.iter()
        .map(|set| least(black_box(set)).unwrap() / 1_000)
        .sum()
}

fn budgets(criterion: &mut Criterion) {
    let sets = sets();
    let closed_form =
        |tasks: &[Task]| least_budget(tasks, Policy::FixedPriority, PERIOD, GRID).unwrap();
    let bisection = |tasks: &[Task]| {
        least_budget_by_bisection(tasks, Policy::FixedPriority, PERIOD, GRID).unwrap()
    };
    assert_eq!(sum(&sets, closed_form), 10_799_444);
    assert_eq!(sum(&sets, bisection), 10_799_444);
    let mut group = criterion.benchmark_group("least budget");
    group.throughput(Throughput::Elements(sets.len() as u64));
    group.bench_function("fixed priority, closed form", |bencher| {
        bencher.iter(|| sum(&sets, closed_form));
    });
    group.bench_function("fixed priority, bisection", |bencher| {
        bencher.iter(|| sum(&sets, bisection));
    });
    let edf = |tasks: &[Task]| least_budget(tasks, Policy::Edf, PERIOD, GRID).unwrap();
    group.bench_function("EDF", |bencher| {
        bencher.iter(|| sum(&sets, edf));
    });
    group.finish();
}

criterion_group!(benches, budgets);
criterion_main!(benches);
