//! Admitting one more cell beside many that run. The campaign `admission` prints how long it takes; asserted here is only that
//! the cell is added and the others are left alone.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::control::ask;
use crate::missions::{Up, mission, nothing_is_left, shell};

/// Number of running cells, and how often one is added and removed again, if figures are wanted.
const CELLS_SET: &str = "TIMECELL_ADMISSION_CELLS";
const ROUNDS_SET: &str = "TIMECELL_ADMISSION_ROUNDS";
const CELLS: usize = 4;
const ROUNDS: usize = 1;
const PATIENCE: Duration = Duration::from_secs(120);

fn asked(set: &str, unless: usize) -> usize {
    match std::env::var(set) {
        Ok(text) if !text.is_empty() => text.parse().unwrap(),
        _ => unless,
    }
}

/// A mission of this many cells, each with its budget.
fn cells(enforcer: &str, count: usize) -> String {
    let cells: Vec<String> = (0..count)
        .map(|at| {
            shell(
                &format!("c{at}"),
                "/busybox sleep 1000",
                "reservation = { budget = \"500us\", period = \"500ms\" }",
            )
        })
        .collect();
    format!("enforcer = \"{enforcer}\"\n{}", cells.concat())
}

#[case(of_one_cell_more_held_by_deadline("deadline"); Root, Deadline, Program("busybox"))]
#[case(
    of_one_cell_more_held_by_groups("rt-cgroup");
    Root, RealTime, GroupBudget(400), Program("busybox")
)]
fn of_one_cell_more(enforcer: &str) {
    let (count, rounds) = (asked(CELLS_SET, CELLS), asked(ROUNDS_SET, ROUNDS));
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    mission(dir, &cells(enforcer, count));
    let mut up = Up::start(dir);
    let end = Instant::now() + PATIENCE;
    for at in 0..count {
        assert!(Instant::now() < end, "c{at} does not run");
        up.told(&format!("c{at}: runs"));
    }
    let mut took: Vec<f64> = Vec::new();
    for _ in 0..rounds {
        for more in [1, 0] {
            mission(dir, &cells(enforcer, count + more));
            let said = ask(
                dir,
                &["update", "mission.toml", "--window", "100ms", "--json"],
            );
            let said: Value = serde_json::from_str(&said.ends_with(0).out).unwrap();
            assert_eq!(said["committed"], true, "{said}");
            let listed = said["cells"].as_array().unwrap();
            let touched = listed.iter().filter(|cell| cell["change"] != "unchanged");
            assert_eq!(touched.count(), 1, "{said}");
            if more == 1 {
                took.push(said["admission_ns"].as_f64().unwrap() / 1e6);
            }
        }
    }
    took.sort_by(f64::total_cmp);
    println!(
        "{enforcer}: one cell more beside {count}, {rounds} times: from the mission file to the entry in the machine's ledger median \
         {:.1} ms, at most {:.1} ms",
        took[took.len() / 2],
        took[took.len() - 1]
    );
    up.end();
    nothing_is_left(dir);
}
