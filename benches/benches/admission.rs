//! One more cell into a live set of 64, at every place in the order of priority.

use analysis::Task;
use analysis::admission::{LiveSet, Resident};
use analysis::server::{Kind, Server};
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use std::hint::black_box;

const CELLS: u64 = 64;

/// 64 cells under periodic servers with periods from 1 ms to about 64 ms, 75 % of the cpu.
fn live() -> LiveSet {
    let mut set = LiveSet::new();
    for cell in 0..CELLS {
        let period = 1_000_000 + cell * 997_331;
        let server = Server::new(Kind::Periodic, period * 75 / 100 / CELLS, period);
        let verdict = set.add(set.len(), Resident::server(server).unwrap());
        assert!(verdict.is_schedulable(), "{verdict:?}");
    }
    set
}

fn admission(criterion: &mut Criterion) {
    let set = live();
    let newcomer = |position: usize| {
        let period = set.residents()[position.min(set.len() - 1)].task.period;
        Resident::task(Task::new(period / 100, period))
    };
    let refused = |position: usize| {
        let period = set.residents()[position.min(set.len() - 1)].task.period;
        Resident::task(Task::new(period / 2, period))
    };
    let mut group = criterion.benchmark_group("admission of one cell among 64");
    for position in [0, 16, 32, 48, 64] {
        group.bench_function(format!("accepted at {position}"), |bencher| {
            let cell = newcomer(position);
            bencher.iter_batched_ref(
                || set.clone(),
                |set| assert!(set.add(position, black_box(cell)).is_schedulable()),
                BatchSize::SmallInput,
            );
        });
        group.bench_function(format!("refused at {position}"), |bencher| {
            let cell = refused(position);
            let mut set = set.clone();
            bencher.iter(|| assert!(!set.add(position, black_box(cell)).is_schedulable()));
        });
    }
    for position in [0, 32, 63] {
        group.bench_function(format!("removed from {position}"), |bencher| {
            bencher.iter_batched_ref(
                || set.clone(),
                |set| set.remove(black_box(position)),
                BatchSize::SmallInput,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, admission);
criterion_main!(benches);
