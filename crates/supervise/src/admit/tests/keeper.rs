//! What holding cells with the freezer costs the others of their cpu.

use super::beside::{beside, neighbour};
use super::*;
use analysis::linux::Reaction;

/// A mission of which the freezer holds so many cells of cpu 0, as the ledger would have them.
fn held(count: usize) -> Facts {
    let cells: Vec<String> = (0..count)
        .map(|at| {
            let reservation = "reservation = { budget = \"1ms\", period = \"50ms\" }\n";
            cell(&format!("c{at}"), &format!("cpus = [0]\n{reservation}"))
        })
        .collect();
    let text = format!("enforcer = \"rt-cgroup\"\n{}", cells.concat());
    let mut other = neighbour("f", &text, &facts());
    for cell in &mut other.cells {
        cell.enforcer = Enforcer::Freezer;
    }
    beside(vec![other])
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
