//! Cells with budgets that their tasks cannot use up, and the reports if these are used up nevertheless.

use std::path::Path;

use serde_json::Value;

use crate::control::{ask, cell};
use crate::missions::{Up, busybox, mission, nothing_is_left, shell};
use crate::support::{Need, eventually, say};

const NEEDS: &[Need] = &[
    Need::Root,
    Need::RealTime,
    Need::Freezer,
    Need::Program("busybox"),
];

fn only_tasks(task: &str, more: &str) -> String {
    format!("cpus = [1]\nonly_tasks = true\n{more}\n[[cell.task]]\nname = \"loop\"\n{task}")
}

/// The basis of the guarantee of a cell, by `admit --json`.
fn basis(dir: &Path, at: usize) -> Value {
    let said = say(dir, &["admit", "mission.toml", "--json"]);
    let json: Value = serde_json::from_str(&said.out).unwrap();
    json["admission"]["cells"][at]["basis"]["kind"].clone()
}

/// The journal's entries about a cell's budget.
fn told(dir: &Path, name: &str) -> Vec<String> {
    let events = ask(dir, &["events", "--json"]).out;
    let all = (events.lines()).map(|line| serde_json::from_str::<Value>(line).unwrap());
    all.filter(|event| event["cell"] == name)
        .map(|event| event["text"].as_str().unwrap().to_owned())
        .filter(|text| text.contains(USED_UP))
        .collect()
}

const USED_UP: &str = "its ample budget was used up in";

#[case(..NEEDS)]
fn a_cell_that_uses_its_ample_budget_up_is_told_of(dir: &Path) {
    // It declares one task, but also spins.
    let reservation =
        "start_timeout = \"1s\"\nreservation = { budget = \"11ms\", period = \"100ms\" }";
    let loop_of = only_tasks("wcet = \"1500us\"\nperiod = \"20ms\"", reservation);
    let spins = shell("spins", "while :; do :; done", &loop_of);
    let rare = only_tasks("wcet = \"1ms\"\nperiod = \"100ms\"", "");
    let quiet = shell("quiet", "exec /busybox sleep 1000", &rare);
    let path = mission(dir, &format!("enforcer = \"freezer\"\n{spins}{quiet}"));
    assert_eq!(path, dir.join("mission.toml"));
    assert_eq!([0, 1].map(|at| basis(dir, at)), ["ample", "ample"]);
    let mut up = Up::start(dir);
    let line = up.told(&format!("spins: {USED_UP}"));
    assert!(
        line.contains("something other than its tasks ran in it"),
        "{line}"
    );
    eventually("the assumption deviates", || {
        let text = ask(dir, &["ps", "--verbose"]).out;
        let words: Vec<&str> = text.split_whitespace().collect();
        let found = "DEVIATES, the budget, which its tasks alone cannot use up, was used up";
        words.join(" ").contains(found)
    });
    let status = cell(dir, "spins");
    let limit = &status["limits"][0];
    assert_eq!(limit["limit"], "ample-budget", "{status}");
    assert!(limit["periods"].as_u64() >= Some(1), "{status}");
    let text = ask(dir, &["ps"]).out;
    assert!(text.contains(USED_UP), "{text}");
    assert_eq!(cell(dir, "quiet")["limits"], serde_json::json!([]));
    // Once per minute, however often it happens, even after adoption.
    up.kill();
    let mut up = Up::start(dir);
    up.until("spins: runs on, adopted");
    std::thread::sleep(std::time::Duration::from_millis(3_500));
    assert_eq!(told(dir, "spins").len(), 1, "{:?}", told(dir, "spins"));
    assert_eq!(told(dir, "quiet"), [""; 0]);
    up.end();
    nothing_is_left(dir);
}

#[case(..NEEDS)]
fn a_program_that_is_only_its_task_runs_in_an_ample_budget(dir: &Path) {
    let program = busybox();
    let said = say(
        dir,
        &[
            "run",
            "--task",
            "loop=1500us/20ms",
            "--only-tasks",
            "--cpu",
            "1",
            "--enforcer",
            "freezer",
            "--",
            program.to_str().unwrap(),
            "sleep",
            "3",
        ],
    )
    .ends_with(0);
    let text = said.err;
    let (budget, period) = text
        .split_once(" of cpu 1 in every ")
        .unwrap_or_else(|| panic!("no budget: {text}"));
    let budget: f64 = (budget.rsplit(' ').nth(1))
        .and_then(|ms| ms.parse().ok())
        .unwrap();
    let period: f64 = period.split(' ').next().unwrap().parse().unwrap();
    // Less than a tenth of the cpu, where a budget with guaranteed supply takes a fifth.
    assert!(
        budget >= 1.5 && budget / period < 0.1,
        "{budget}, {period}: {text}"
    );
    assert!(!text.contains(USED_UP), "{text}");
    assert!(text.contains("its budget was used up in 0 of"), "{text}");
}
