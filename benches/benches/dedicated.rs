//! Sets analysed per second on a dedicated cpu, one thread: 20,000 sets of ten tasks at a utilisation of 0.8 (UUniFast,
//! periods log-uniform from 10 ms to 1 s, rate-monotonic), side by side with the crate `response-time-analysis`.
//!
//! `cargo bench -p benches --bench dedicated`. Compare rates of one run only: the machine's clock moves.

use std::hint::black_box;

use analysis::fp::{self, Fast};
use analysis::{Ns, edf};
use benches::{Set, TASKS, sets_of};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use response_time_analysis::arrival::Sporadic;
use response_time_analysis::demand::RBF;
use response_time_analysis::fixed_priority::fully_preemptive;
use response_time_analysis::time::{Duration, Service};
use response_time_analysis::wcet::Scalar;

fn sets() -> Vec<Set> {
    sets_of(include_bytes!(
        "../../crates/analysis/tests/data/rta_u80.txt.gz"
    ))
}

/// Deadlines drawn from the last `part` of the time between wcet and period.
fn constrained(sets: &[Set], part: f64) -> Vec<Set> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    sets.iter()
        .map(|set| {
            set.map(|task| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                let drawn = (state >> 11) as f64 / (1u64 << 53) as f64;
                let early = (task.period - task.wcet) as f64 * part * drawn;
                task.due(task.period - early as Ns)
            })
        })
        .collect()
}

fn fixed_priority(criterion: &mut Criterion) {
    let sets = sets();
    let mut group = criterion.benchmark_group("fixed priority, n=10, U=0.8");
    group.throughput(Throughput::Elements(sets.len() as u64));
    group.bench_function("response_times_into", |bench| {
        bench.iter(|| {
            let mut out = [0; TASKS];
            let mut sum = 0u64;
            for set in &sets {
                if fp::response_times_into(black_box(set), &mut out) == Fast::AllMeet {
                    sum += out[TASKS - 1];
                }
            }
            sum
        });
    });
    group.bench_function("response_times", |bench| {
        bench.iter(|| {
            sets.iter()
                .filter(|set| {
                    fp::response_times(black_box(*set))
                        .iter()
                        .all(fp::Response::meets)
                })
                .count()
        });
    });
    group.bench_function("verdict", |bench| {
        bench.iter(|| {
            sets.iter()
                .filter(|set| fp::verdict(black_box(*set)).is_schedulable())
                .count()
        });
    });
    // The other crate on a tenth of the sets, for its time; built outside of the measured loop.
    let some: Vec<Vec<RBF<Sporadic, Scalar>>> = sets.iter().step_by(10).map(rbfs).collect();
    group.throughput(Throughput::Elements(some.len() as u64));
    group.bench_function("crate response-time-analysis", |bench| {
        bench.iter(|| {
            some.iter()
                .filter(|set| {
                    (0..TASKS).all(|task| {
                        let tasks = black_box(&set[..=task]);
                        let limit = tasks[task].arrival_bound.min_inter_arrival;
                        fully_preemptive::dedicated_uniproc_rta(&tasks[task], &tasks[..task], limit)
                            .is_ok()
                    })
                })
                .count()
        });
    });
    group.finish();
}

fn rbfs(set: &Set) -> Vec<RBF<Sporadic, Scalar>> {
    set.iter()
        .map(|task| {
            RBF::new(
                Sporadic::new_zero_jitter(Duration::from(task.period)),
                Scalar::new(Service::from(task.wcet)),
            )
        })
        .collect()
}

fn earliest_deadline(criterion: &mut Criterion) {
    let sets = sets();
    let mut group = criterion.benchmark_group("EDF by QPA, n=10, U=0.8");
    group.throughput(Throughput::Elements(sets.len() as u64));
    for (name, part) in [
        ("deadlines in the last half", 0.5),
        ("deadlines anywhere", 1.0),
    ] {
        let sets = constrained(&sets, part);
        group.bench_function(format!("verdict, {name}"), |bench| {
            bench.iter(|| {
                sets.iter()
                    .filter(|set| edf::verdict(black_box(*set)).is_schedulable())
                    .count()
            });
        });
        group.bench_function(format!("decide, {name}"), |bench| {
            bench.iter(|| {
                sets.iter()
                    .filter(|set| edf::decide(black_box(*set)) == Some(true))
                    .count()
            });
        });
    }
    group.finish();
}

criterion_group!(benches, fixed_priority, earliest_deadline);
criterion_main!(benches);
