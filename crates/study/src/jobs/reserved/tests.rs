//! The analysis of hand-made records.

use super::*;
use model::Enforcer;
use record::supply::{Budget, Machine, Reacted, Times};
use record::trial::HeldBy;

use crate::testing::{self, RIVAL};

const US: i64 = 1_000;

fn thread(cell: u32, id: &str, priority: u8, times_us: [i64; 2]) -> CellRecord {
    let class = format!("FIFO {priority}");
    testing::thread(cell, id, &class, times_us.map(|us| us * US))
}

fn held(cell: u32, enforcer: Enforcer, times_us: [u64; 2]) -> HeldCell {
    HeldCell {
        cell: format!("cell-{cell}"),
        cell_number: cell,
        cpu: 1,
        by: HeldBy {
            held: Budget {
                enforcer,
                budget_ns: times_us[0] * 1_000,
                period_ns: times_us[1] * 1_000,
            },
            given: true,
        },
        reacted: None,
    }
}

fn record(cells: Vec<CellRecord>, held: Vec<HeldCell>) -> TrialRecord {
    let json = serde_json::json!({
        "schema": 1, "number": 1, "name": "t", "round": 1, "go_ns": null, "arming_ns": null, "failure": null, "cells": []
    });
    let holds = HoldsRecord {
        machine: Machine {
            tick_hz: Some(250),
            deadline_by_timer: Some(false),
            ..Machine::here()
        },
        cells: held,
    };
    TrialRecord {
        cells,
        holds: Some(holds),
        ..serde_json::from_value(json).unwrap()
    }
}

/// The first virtual cpu of section 4.3 of the paper that the crate `analysis` cites.
fn first() -> Vec<CellRecord> {
    vec![
        thread(1, "tau0", 79, [10_321, 34_000]),
        thread(1, "tau3", 78, [1_720, 90_000]),
        thread(1, "tau4", 77, [14_712, 98_000]),
        thread(1, "tau7", 76, [23_266, 164_000]),
    ]
}

fn bounds(of: &BTreeMap<String, OfTask>) -> Vec<Option<i64>> {
    let us = |one: &OfTask| one.bound_ns.map(|ns| ns / US);
    of.values().map(us).collect()
}

#[test]
fn the_textbook_has_the_bounds_of_the_reservation_and_nothing_is_certain_without_a_margin() {
    for enforcer in [Enforcer::Freezer, Enforcer::RtCgroup] {
        let trial = record(first(), vec![held(1, enforcer, [7_500, 11_000])]);
        let found = study(&[&trial]);
        let paper = [20_821, 22_541, 58_074, 163_735].map(Some);
        assert_eq!(bounds(&found), paper);
        let textbook = found["tau0"].bound_ns;
        let certain = found["tau0"].held.certain_ns;
        assert!(certain.is_none_or(|certain| Some(certain) > textbook));
        assert_eq!(found["tau7"].held.certain_ns, None, "{enforcer:?}");
        let wide = record(first(), vec![held(1, enforcer, [9_900, 11_000])]);
        let some = study(&[&wide])["tau0"].held.certain_ns;
        assert!(some.is_some(), "{enforcer:?}");
    }
}

#[test]
fn budgets_that_do_not_come_in_time_bound_nothing() {
    let mut cells = first();
    cells.push(thread(2, RIVAL, 80, [1_000, 10_000]));
    let held_cell = || vec![held(1, Enforcer::Freezer, [7_500, 11_000])];
    // The budget is there after one job of it.
    let trial = record(cells.clone(), held_cell());
    assert!(
        bounds(&study(&[&trial]))
            .iter()
            .filter(|bound| bound.is_some())
            .count()
            == 4
    );
    // After one job the budget would be there too late for a second, which leaves too little before 11 ms.
    cells[4] = thread(2, RIVAL, 80, [2_600, 10_000]);
    assert!(
        bounds(&study(&[&record(cells, held_cell())]))
            .iter()
            .all(Option::is_none)
    );
    // Of two cells, 8.5 of 12 ms and 2.5 of 11, neither order leaves both their budgets.
    let two = |first: u8, second: u8| {
        let cells = vec![
            thread(1, "a", first, [1_000, 236_000]),
            thread(2, "b", second, [500, 98_000]),
        ];
        let held = vec![
            held(1, Enforcer::RtCgroup, [8_500, 12_000]),
            held(2, Enforcer::RtCgroup, [2_500, 11_000]),
        ];
        bounds(&study(&[&record(cells, held)]))
            .iter()
            .map(Option::is_some)
            .collect::<Vec<_>>()
    };
    assert_eq!(two(79, 70), [true, false]);
    assert_eq!(two(70, 79), [false, true]);
    // As urgent as each other, either may come first.
    assert_eq!(two(79, 79), [false, false]);
}

#[test]
fn a_job_within_its_threads_runtime_ends_by_the_threads_deadline() {
    let of = |times: [i64; 2], deadline: i64, by: [u64; 2]| {
        let mut cell = thread(1, "a", 1, times);
        cell.class_wanted = "DEADLINE".to_owned();
        cell.task.as_mut().unwrap().deadline_ns = deadline * US;
        let record = record(vec![cell], vec![held(1, Enforcer::Deadline, by)]);
        let found = study(&[&record]);
        [found["a"].bound_ns, found["a"].held.certain_ns].map(|bound| bound.map(|ns| ns / US))
    };
    // The least that `bench` gives: a ninth more than the wcet, by the deadline.
    assert_eq!(
        of([9_000, 50_000], 50_000, [10_000, 50_000]),
        [Some(50_000); 2]
    );
    assert_eq!(
        of([9_000, 50_000], 40_000, [10_000, 40_000]),
        [Some(40_000); 2]
    );
    // The kernel bills more than the work.
    assert_eq!(
        of([9_001, 50_000], 50_000, [10_000, 50_000]),
        [Some(50_000), None]
    );
    assert_eq!(of([10_001, 50_000], 50_000, [10_000, 50_000]), [None; 2]);
    // Jobs that come more often than runtimes, and budgets that are there sooner than the thread's deadline.
    assert_eq!(of([9_000, 49_000], 49_000, [10_000, 50_000]), [None; 2]);
    let [soon, _] = of([1_000, 50_000], 50_000, [9_900, 10_000]);
    assert_eq!(soon, Some(1_200));
}

#[test]
fn what_it_costs_to_hold_a_less_urgent_cell_comes_before_the_others() {
    let certain = |enforcer| {
        let cells = vec![
            thread(1, "a", 79, [1_000, 200_000]),
            thread(2, "b", 70, [10, 200_000]),
        ];
        let below = [50, 1_000];
        let both = vec![held(1, enforcer, [8_500, 10_000]), held(2, enforcer, below)];
        let alone = vec![held(1, enforcer, [8_500, 10_000])];
        [alone, both].map(|held| {
            let record = record(cells.clone(), held);
            study(&[&record])["a"].held.certain_ns.is_some()
        })
    };
    assert_eq!(certain(Enforcer::Freezer), [true, false]);
    assert_eq!(certain(Enforcer::RtCgroup), [true, true]);
}

#[test]
fn threads_that_move_fit_by_their_utilisation_and_looks_are_the_latest_of_all_rounds() {
    let mut cells = vec![
        thread(1, "a", 1, [1_000, 50_000]),
        thread(2, "b", 1, [1_000, 50_000]),
        thread(3, "c", 1, [1_000, 50_000]),
    ];
    for cell in &mut cells {
        cell.class_wanted = "DEADLINE 6 ms/10 ms/10 ms".to_owned();
        cell.task.as_mut().unwrap().cpus = vec![0, 1];
    }
    let with = |times| {
        [1, 2, 3]
            .map(|cell| held(cell, Enforcer::Deadline, times))
            .to_vec()
    };
    let bounds = |held| {
        let found = study(&[&record(cells.clone(), held)]);
        (found["a"].bound_ns, found["a"].held.certain_ns)
    };
    // 3 x 5 + 5 of 20, and a tick of each other thread more than that.
    assert!(bounds(with([5_000, 10_000])).0.is_some());
    assert_eq!(bounds(with([5_000, 10_000])).1, None);
    assert!(bounds(with([5_000, 50_000])).1.is_some());
    assert_eq!(bounds(with([5_001, 10_000])).0, None);
    // Two of them have a cpu each.
    let two = with([9_000, 10_000])[..2].to_vec();
    assert!(bounds(two).1.is_some());
    let looks = |most_ns| {
        let times = || Times {
            bins: Vec::new(),
            most_ns,
        };
        let mut one = held(1, Enforcer::Freezer, [7_500, 11_000]);
        one.reacted = Some(Reacted {
            late: times(),
            overruns: times(),
            noticed: None,
            cost: None,
            takeovers: 0,
            errors: 0,
        });
        record(first(), vec![one])
    };
    let found = study(&[&looks(70), &looks(90), &looks(80)]);
    assert_eq!(found["tau0"].held.latest_look_ns, Some(90));
}
