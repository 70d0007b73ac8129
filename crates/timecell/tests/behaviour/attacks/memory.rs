//! A cell without a declared memory limit that takes all that it gets. To everybody in this
//! attack the machine seems small, so that only a limit protects the rest.

use std::time::{Duration, Instant};

use super::scene::{Scene, Setting, changed_view, number, place, program};
use super::{AT_IT, Attack, Before, Now, THE_END, say};
use crate::missions::PATIENCE;
use crate::support::Need;

pub const MEMORY: Attack = Attack {
    name: "memory",
    tries: "a cell without `memory` touches 512 MiB of what seems to be a machine with 768 MiB available",
    before: Before {
        got: "all 512 MiB",
        neighbour: "not recorded",
    },
    needs: &[Need::Root, Need::TwoCpus, Need::AnyEnforcer(400)],
    deed,
    run,
};

const WANTED_MIB: usize = 512;
const MACHINE: &str = "MemTotal: 2097152 kB\nMemFree: 786432 kB\nMemAvailable: 786432 kB\n";

fn run(_: u64) -> Now {
    let place = place();
    let small = place.path().join("meminfo");
    std::fs::write(&small, MACHINE).unwrap();
    let seems = format!("mount --bind {} /proc/meminfo", small.display());
    let hostile = program("hostile", "memory", &[], "class = \"other\"");
    let hostile = hostile.replace("memory = \"64MiB\"\n", "");
    changed_view(&[seems], || {
        let mut scene = Scene::start(&Setting::beside(&hostile));
        let end = Instant::now() + PATIENCE;
        let killed = loop {
            if scene.up.has_said("hostile: killed for memory") {
                break true;
            }
            if scene.said().ends_with(&format!("{THE_END}\n")) {
                break false;
            }
            assert!(Instant::now() < end, "{}", scene.said());
            std::thread::sleep(Duration::from_millis(20));
        };
        let said = scene.said();
        // The last that it said.
        let had = said.lines().rev().find_map(|line| number(line, "has "));
        let had = had.unwrap_or(0.0);
        Now {
            got: match killed {
                true => format!("killed for memory at {had} MiB"),
                false => format!("{had} MiB"),
            },
            held: killed,
            neighbour: Some(scene.end()),
        }
    })
}

/// The program in the cell.
fn deed(_: &[&str]) {
    const STEP_MIB: usize = 16;
    say(AT_IT);
    let mut all: Vec<Vec<u8>> = Vec::new();
    while all.len() * STEP_MIB < WANTED_MIB {
        all.push(vec![1; STEP_MIB << 20]);
        say(&format!("has {}", all.len() * STEP_MIB));
    }
    std::hint::black_box(&all);
}
