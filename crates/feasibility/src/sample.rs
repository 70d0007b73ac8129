//! Random cells for the tests of this crate.

use model::Duration;
use model::taskset::{CellTask, Order, Policy, Reservation, TaskCell};
use proptest::prelude::*;

pub(super) fn us(n: i64) -> Duration {
    Duration::from_ns(n * 1_000)
}

/// Tasks of some us, so that every step of the grid can be tried.
pub(super) fn small_cell() -> impl Strategy<Value = TaskCell> {
    let policy = prop::sample::select(vec![
        Policy::Edf,
        Policy::Edf,
        Policy::Fixed(Order::Deadline),
        Policy::Fixed(Order::Rate),
        Policy::Fixed(Order::Listed),
    ]);
    let task = (1i64..8, 0i64..40, 50i64..=120, 0i64..3, 0i64..3);
    let tasks = prop::collection::vec(task, 1..5);
    let reservation = prop::option::of((1i64..10, 0i64..6, 0i64..=100));
    (policy, tasks, reservation).prop_map(|(policy, tasks, reservation)| {
        let task =
            |(place, (wcet, more, due, jitter, blocking)): (usize, (i64, i64, i64, i64, i64))| {
                let period = wcet + more;
                CellTask {
                    deadline: us((period * due / 100).max(wcet)),
                    jitter: us(jitter),
                    blocking: us(blocking),
                    ..CellTask::new(format!("t{place}"), us(wcet), us(period))
                }
            };
        TaskCell {
            policy,
            reservation: reservation.map(|(budget, spare, late)| Reservation {
                budget: us(budget),
                period: us(budget + spare),
                deadline: us(budget + spare * late / 100),
            }),
            server: None,
            name: "c".to_owned(),
            tasks: tasks.into_iter().enumerate().map(task).collect(),
        }
    })
}
