//! A best-effort cell that asks for every cpu of the machine.

use super::scene::{Scene, Setting, number, program};
use super::{AT_IT, Attack, Before, Now, say};
use crate::support::Need;

pub const CPUS: Attack = Attack {
    name: "cpus",
    tries: "a best-effort cell of one cpu that sets its affinity to all",
    before: Before {
        got: "all cpus, without asking",
        neighbour: "not recorded",
    },
    needs: &[Need::Root, Need::TwoCpus, Need::AnyEnforcer(400)],
    deed,
    run,
};

fn run(_: u64) -> Now {
    // Not the critical cell's.
    let cpu = host::sched::get_affinity(0).unwrap()[0];
    let keys = format!("class = \"other\"\ncpus = [{cpu}]");
    let hostile = program("hostile", "cpus", &[], &keys);
    let scene = Scene::start(&Setting::beside(&hostile));
    let said = scene.to_the_end();
    let had = number(&said, "before").expect("cpus it started with");
    let has = number(&said, "after").expect("cpus it has got");
    Now {
        got: format!("{had} cpu at its start, {has} when it has asked"),
        held: had == 1.0 && has == 1.0,
        neighbour: Some(scene.end()),
    }
}

/// The program in the cell.
fn deed(_: &[&str]) {
    say(AT_IT);
    let count = || host::sched::get_affinity(0).map_or(0, |cpus| cpus.len());
    say(&format!("before {}", count()));
    let all: Vec<u32> = (0..1_024).collect();
    // Refused or not: its cpus afterwards count.
    let _ = host::sched::set_affinity(0, &all);
    say(&format!("after {}", count()));
}
