//! What holding cells with the freezer costs the others of their cpu.

use super::beside::{beside, neighbour};
use super::*;
use analysis::linux::Reaction;

fn facts() -> Facts {
    Facts {
        freezer: Ok(()),
        ..super::facts()
    }
}

/// A mission of which the freezer holds so many cells of cpu 0, as the ledger would have them.
fn held(count: usize) -> Facts {
    let cells: Vec<String> = (0..count)
        .map(|at| {
            let reservation = "reservation = { budget = \"1ms\", period = \"50ms\" }\n";
            cell(&format!("c{at}"), &format!("cpus = [0]\n{reservation}"))
        })
        .collect();
    let text = format!("enforcer = \"freezer\"\n{}", cells.concat());
    beside(vec![neighbour("f", &text, &facts())])
}

#[test]
fn each_cell_of_the_cpu_costs_those_below_it_something_in_every_period() {
    let own = mission(&cell(
        "below",
        "cpus = [0]\nclass = \"fifo\"\nreservation = { budget = \"10ms\", period = \"100ms\" }\n",
    ));
    let postponed = |facts: &Facts| {
        let admission = admit(&own, facts, &[], 0);
        assert!(admission.is_admitted(), "{admission:?}");
        granted(&admission)["below"].postponed_ns
    };
    let by_groups = |count: usize| {
        let mut facts = held(count);
        for cell in &mut facts.beside[0].cells {
            cell.enforcer = Enforcer::RtCgroup;
        }
        facts
    };
    // Held in a window of the budget and what comes before it: at the beginning of a period, and at the next. And it lets a cell run on
    // for less than the tick of a ms does.
    for count in [1, 4] {
        let by_tick = postponed(&by_groups(count)) - count as u64 * MS;
        let each = 2 * Reaction::COST + Reaction::MEASURED.overrun;
        assert_eq!(
            postponed(&held(count)),
            by_tick + count as u64 * each,
            "{count}"
        );
    }
}

#[test]
fn what_it_costs_counts_within_the_kernels_limit() {
    let own = mission(&cell(
        "below",
        "cpus = [0]\nclass = \"fifo\"\nreservation = { budget = \"10ms\", period = \"100ms\" }\n",
    ));
    let with = |limit_ns: u64| {
        let mut facts = held(8);
        facts.rt_cgroup.as_mut().unwrap().limit_ns = Some(limit_ns);
        admit(&own, &facts, &[], 0).is_admitted()
    };
    // 21 charges of 8 cells and an overrun of each, 11 charges and a tick of its own, and 42 ms of the thread.
    let limit = (100..500).find(|ms| with(ms * MS)).unwrap();
    let cells = 8 * (21 * MS + Reaction::MEASURED.overrun);
    let all = cells + (11 * 10 + 1) * MS + 8 * 21 * Reaction::COST;
    assert_eq!(limit, all.div_ceil(MS));
}

fn by_freezer(cells: &str) -> Admission {
    let mission = mission(&format!("enforcer = \"freezer\"\n{cells}"));
    admit(&mission, &facts(), &[], 0)
}

#[test]
fn a_cell_gets_the_least_budget_with_what_it_costs_to_hold_it() {
    let admission = by_freezer(&cell("control", &task("1500us", "20ms")));
    let grant = granted(&admission)["control"].clone();
    assert_eq!(grant.enforcer, Enforcer::Freezer);
    assert!(matches!(grant.basis, Basis::Reaction { .. }), "{grant:?}");
    assert!(grant.tasks[0].response_ns.unwrap() <= 20 * MS);
    // One grain less of any period that is tried would not do, or cost no less.
    let own = (
        grant.budget_ns.unwrap() + Reaction::COST,
        grant.period_ns.unwrap(),
    );
    let tasks = [analysis::Task::new(1_500_000 + 50_000, 20 * MS)];
    for period in analysis::linux::reservation_periods(&tasks) {
        let most = (own.0 * period / own.1).saturating_sub(Reaction::COST);
        let less = most.saturating_sub(analysis::linux::BUDGET_GRID_NS);
        let supply = analysis::linux::FreezerSupply::new(less.max(1), period, Reaction::MEASURED);
        let holds = supply.is_ok_and(|supply| {
            let policy = analysis::inside::Policy::FixedPriority;
            analysis::inside::holds(&tasks, policy, &supply.behind) == Ok(true)
        });
        assert!(!holds, "{less} every {period}");
    }
}

#[test]
fn groups_that_have_nothing_left_are_no_matter_to_it() {
    let mut facts = facts();
    facts.rt_cgroup.as_mut().unwrap().free_us = 0;
    let mission = mission(&format!(
        "enforcer = \"freezer\"\n{}",
        cell("c", &task("1500us", "20ms"))
    ));
    let admission = admit(&mission, &facts, &[], 0);
    assert!(admission.is_admitted(), "{admission:?}");
}

#[test]
fn what_less_urgent_cells_count_on_is_told() {
    let says = |admission: &Admission| {
        let mut notes = admission.notes.iter();
        notes.any(|note| note.contains("run on for up to 0.43 ms"))
    };
    let own = mission(&cell(
        "c",
        "cpus = [0]\nclass = \"fifo\"\nreservation = { budget = \"5ms\", period = \"50ms\" }\n",
    ));
    assert!(says(&admit(&own, &held(1), &[], 0)));
    assert!(!says(&admit(&own, &facts(), &[], 0)));
}

#[test]
fn what_the_freezer_cannot_hold_is_refused() {
    let reserved = "reservation = { budget = \"5ms\", period = \"50ms\" }\n";
    let why = |more: &str| {
        refused(&by_freezer(&cell("c", &format!("{more}{reserved}"))))
            .why
            .clone()
    };
    assert!(why("cpus = [0, 1]\n").contains("on one cpu only"));
    assert!(why("priorities = { lowest = 97, highest = 97 }\n").contains("at most 96 is allowed"));
    assert!(
        by_freezer(&cell(
            "c",
            &format!("priorities = {{ lowest = 96, highest = 96 }}\n{reserved}")
        ))
        .is_admitted()
    );
    let long = "reservation = { budget = \"5ms\", period = \"2000s\" }\n";
    let admission = by_freezer(&cell("c", long));
    assert!(refused(&admission).why.contains("period"), "{admission:?}");
    // On a kernel without it.
    let mission = mission(&format!("enforcer = \"freezer\"\n{}", cell("c", reserved)));
    let none = Facts {
        freezer: Err("cgroup v2 is not mounted".to_owned()),
        ..facts()
    };
    let admission = admit(&mission, &none, &[], 0);
    assert!(
        refused(&admission)
            .why
            .contains("freezer cannot hold it here: cgroup v2")
    );
}

#[test]
fn nobody_who_is_held_shares_a_cpu_with_one_who_is_not() {
    let text = format!("enforcer = \"cpuset-only\"\n{}", cell("free", "cpus = [0]\n").replace(
        "cpus = [0]\n",
        "cpus = [0]\npriorities = { lowest = 10, highest = 10 }\nreservation = { budget = \"1ms\", period = \"50ms\" }\n",
    ));
    let own = mission(&text);
    let admission = admit(&own, &held(1), &[], 0);
    let why = &refused(&admission).why;
    assert!(
        why.contains("`freezer` holds") && why.contains("nothing holds this cell"),
        "{why}"
    );
}
