//! `analyze` with policies beyond plain fixed priorities and EDF: searched priority orders, two levels of criticality,
//! global scheduling. The answers are those of the literature.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::say;

/// A file of one cell with these lines, and tasks given as name, wcet and period in us, and more lines.
fn file(dir: &Path, cell: &str, tasks: &[(&str, u64, u64, &str)]) -> String {
    let mut text = format!("schema = 1\n[[cell]]\nname = \"c\"\n{cell}\n");
    for (name, wcet, period, more) in tasks {
        text += &format!(
            "[[cell.task]]\nname = \"{name}\"\nwcet = \"{wcet}us\"\nperiod = \"{period}us\"\n{more}\n"
        );
    }
    fs::write(dir.join("set.toml"), text).unwrap();
    "set.toml".to_owned()
}

fn cell(dir: &Path, words: &[&str], code: i32) -> Value {
    let mut all = vec!["analyze"];
    all.extend(words);
    all.push("--json");
    let said = say(dir, &all).ends_with(code);
    let found: Value = serde_json::from_str(&said.out).unwrap();
    found["cells"][0].clone()
}

#[track_caller]
fn has(text: &str, parts: &[&str]) {
    // Lines are wrapped.
    let flat: Vec<&str> = text.split_whitespace().collect();
    let flat = flat.join(" ");
    for part in parts {
        assert!(flat.contains(part), "`{part}` is not in\n{text}");
    }
}

fn numbers(tasks: &Value, key: &str) -> Vec<Option<u64>> {
    let tasks = tasks.as_array().unwrap();
    tasks.iter().map(|task| task[key].as_u64()).collect()
}

#[case]
fn audsley_finds_the_order_that_no_rule_gives(dir: &Path) {
    // Lehoczky's pair with late deadlines: the deadline-monotonic order misses, the other holds.
    let tasks = [
        ("x", 52_000, 100_000, "deadline = \"110ms\""),
        ("y", 52_000, 140_000, "deadline = \"154ms\""),
    ];
    file(dir, "order = \"dm\"", &tasks);
    say(dir, &["analyze", "set.toml"]).ends_with(3);
    file(dir, "order = \"audsley\"", &tasks);
    let said = say(dir, &["analyze", "set.toml", "--explain"]).ends_with(0);
    has(
        &said.out,
        &["order c: y, x, the most urgent first", "108 ms"],
    );
    let found = cell(dir, &["set.toml"], 0);
    assert_eq!(
        found["special"]["order"]["order"],
        serde_json::json!([1, 0])
    );
    assert_eq!(
        numbers(&found["tasks"], "response_ns"),
        [Some(108_000_000), Some(52_000_000)]
    );
    // In a reservation in which z fits below all others, but neither of those below the other.
    let crowded = [
        ("x", 5_000, 20_000, ""),
        ("y", 5_000, 21_000, ""),
        ("z", 1_000, 900_000, ""),
    ];
    let reserved = "order = \"audsley\"\nreservation = { budget = \"6ms\", period = \"10ms\" }";
    file(dir, reserved, &crowded);
    let said = say(dir, &["analyze", "set.toml", "--explain"]).ends_with(3);
    has(
        &said.out,
        &[
            "at level 2 of 3 (1 is the most urgent) no task fits; tried: y, x; below it: z",
            "tried x at that level",
            "fix budget +",
        ],
    );
    let fixes = cell(dir, &["set.toml", "--explain"], 3)["fixes"].clone();
    let fixes = fixes.as_array().unwrap();
    let budget = fixes.iter().find(|fix| fix["change"] == "budget");
    let to = budget.unwrap()["to_ns"].as_u64().unwrap();
    for (budget, code) in [(to, 0), (to - 1_000, 3)] {
        file(
            dir,
            &reserved.replace("6ms", &format!("{budget}ns")),
            &crowded,
        );
        say(dir, &["analyze", "set.toml"]).ends_with(code);
    }
}

#[case]
fn amc_rtb_bounds_both_modes(dir: &Path) {
    let tasks = |high: &'static str| {
        [
            (
                "a",
                2_000,
                10_000,
                "criticality = \"hi\"\nwcet_hi = \"3ms\"",
            ),
            ("b", 4_000, 15_000, ""),
            ("c", 6_000, 40_000, high),
            ("d", 5_000, 60_000, "criticality = \"lo\""),
        ]
    };
    let good = tasks("criticality = \"hi\"\nwcet_hi = \"10ms\"");
    file(dir, "policy = \"amc-rtb\"", &good);
    let said = say(dir, &["analyze", "set.toml"]).ends_with(0);
    has(
        &said.out,
        &[
            "low c: holds; response at most: a 2 ms, b 6 ms, c 14 ms, d 25 ms",
            "high c: holds; response at most: a 3 ms, c 20 ms; dropped: b, d",
        ],
    );
    let found = cell(dir, &["set.toml"], 0);
    let mixed = &found["special"]["mixed"];
    assert_eq!(
        numbers(&mixed["tasks"], "high_response_ns"),
        [Some(3_000_000), None, Some(20_000_000), None]
    );
    assert_eq!(mixed["dropped_in_high_mode"], serde_json::json!([1, 3]));

    // By 40 ms: 23 of its own, 4 x 3 of a, 1 x 4 of b before the change at 14 ms: 39; with 25 it is 41.
    let near = tasks("criticality = \"hi\"\nwcet_hi = \"25ms\"");
    file(dir, "policy = \"amc-rtb\"", &near);
    let said = say(dir, &["analyze", "set.toml", "--explain"]).ends_with(1);
    has(
        &said.out,
        &[
            "high c: not shown",
            "task c is not shown to meet its deadline in high mode: up to 41 ms of work runs before it is done, but it \
             is due after 40 ms",
            "demand 12 ms: 4 jobs of a",
            "fix wcet_hi of c -1 ms (25 ms -> 24 ms)",
            "verdict undecided",
        ],
    );
    let fixed = tasks("criticality = \"hi\"\nwcet_hi = \"24ms\"");
    file(dir, "policy = \"amc-rtb\"", &fixed);
    say(dir, &["analyze", "set.toml"]).ends_with(0);
    // Alone in high mode, 30 and 4 x 3: a proof.
    let over = tasks("criticality = \"hi\"\nwcet_hi = \"30ms\"");
    file(dir, "policy = \"amc-rtb\"", &over);
    let said = say(dir, &["analyze", "set.toml"]).ends_with(3);
    has(&said.out, &["high c: fails", "low c: holds"]);
    let low = [("a", 6_000, 10_000, ""), ("b", 5_000, 12_000, "")];
    file(dir, "policy = \"amc-rtb\"", &low);
    let said = say(dir, &["analyze", "set.toml", "--explain"]).ends_with(3);
    has(&said.out, &["low c: fails", "why c: task b can miss"]);
}

#[case]
fn edf_vd_prints_its_factor(dir: &Path) {
    let with = |high: &'static str| {
        let tasks = [("l", 1_000, 2_000, ""), ("h", 1_000, 4_000, high)];
        file(dir, "policy = \"edf-vd\"", &tasks)
    };
    with("criticality = \"hi\"\nwcet_hi = \"3ms\"");
    let said = say(dir, &["analyze", "set.toml"]).ends_with(0);
    has(
        &said.out,
        &[
            "x = 1/2 (0.500000)",
            "U_HI(HI) 0.750000, x U_LO(LO) + U_HI(HI) 1.000000",
            "dropped: l",
        ],
    );
    let found = cell(dir, &["set.toml"], 0);
    let factor = &found["special"]["mixed"]["edf_vd"]["factor"];
    assert_eq!(*factor, serde_json::json!([1, 2]));
    with("criticality = \"hi\"\nwcet_hi = \"3001us\"");
    let said = say(dir, &["analyze", "set.toml", "--explain"]).ends_with(1);
    has(
        &said.out,
        &[
            "must be at most 1; it is 1.000250",
            "fix wcet_hi of h -1 us (3.001 ms -> 3 ms)",
        ],
    );
    with("criticality = \"hi\"\nwcet_hi = \"2ms\"");
    let said = say(dir, &["analyze", "set.toml"]).ends_with(0);
    has(&said.out, &["EDF is enough without virtual deadlines"]);
    file(
        dir,
        "policy = \"edf-vd\"",
        &[("l", 1_500, 2_000, ""), ("m", 1_500, 4_000, "")],
    );
    say(dir, &["analyze", "set.toml"]).ends_with(3);
}

/// The ten tasks of Abeni (2024), table 4.
const TEN: [(&str, u64, u64, &str); 10] = [
    ("t1", 10_321, 34_000, ""),
    ("t2", 1_570, 40_000, ""),
    ("t3", 6_300, 65_000, ""),
    ("t4", 1_720, 90_000, ""),
    ("t5", 14_712, 98_000, ""),
    ("t6", 19_691, 123_000, ""),
    ("t7", 3_440, 128_000, ""),
    ("t8", 23_266, 164_000, ""),
    ("t9", 89_843, 236_000, ""),
    ("t10", 20_937, 257_000, ""),
];

#[case]
fn global_tests_say_which_of_them_shows_it(dir: &Path) {
    file(
        dir,
        "policy = \"global-fp\"\norder = \"rm\"\ncpus = 2",
        &TEN,
    );
    let said = say(dir, &["analyze", "set.toml"]).ends_with(0);
    has(
        &said.out,
        &[
            "BCL not shown; RTA of Bertogna and Cirinei shown; RTA-LC shown",
            "on 2 cpus of its own",
        ],
    );
    let found = cell(dir, &["set.toml"], 0);
    // Guan's bounds, which are in whole microseconds elsewhere.
    let in_us: Vec<u64> = numbers(&found["tasks"], "response_ns")
        .into_iter()
        .map(|bound| bound.unwrap() / 1_000)
        .collect();
    assert_eq!(in_us[..6], [10_321, 1_570, 7_870, 9_590, 24_302, 41_574]);
    file(dir, "policy = \"global-edf\"\ncpus = 2", &TEN);
    let said = say(dir, &["analyze", "set.toml"]).ends_with(0);
    has(&said.out, &["GFB shown; BCL with slacks not shown"]);
    // A utilisation of 1.4 is not for tests on one cpu.
    file(dir, "policy = \"global-edf\"\ncpus = 1", &TEN);
    let said = say(dir, &["analyze", "set.toml", "--explain"]).ends_with(3);
    has(
        &said.out,
        &["fix 2 cpus for this cell alone would be enough"],
    );
    // Dhall's set misses, though its total is far below two cpus: it shows when all tasks arrive at once.
    let dhall = [
        ("a", 2_000, 100_000, ""),
        ("b", 2_000, 100_000, ""),
        ("c", 100_000, 101_000, ""),
    ];
    file(dir, "policy = \"global-fp\"\ncpus = 2", &dhall);
    let said = say(dir, &["analyze", "set.toml", "--explain"]).ends_with(3);
    has(
        &said.out,
        &[
            "task c misses its deadline if all tasks arrive at once",
            "is due after 101 ms, when it has had 98 ms of its 100 ms",
            "fix 3 cpus for this cell alone would be enough",
        ],
    );
    let outcomes = cell(dir, &["set.toml"], 3)["tasks"].clone();
    let outcomes = outcomes.as_array().unwrap().iter();
    let outcomes: Vec<&str> = outcomes
        .map(|task| task["outcome"].as_str().unwrap())
        .collect();
    assert_eq!(outcomes, ["holds", "holds", "fails"]);
    file(dir, "policy = \"global-fp\"\ncpus = 3", &dhall);
    say(dir, &["analyze", "set.toml"]).ends_with(0);
}

#[case]
fn a_reservation_over_several_cpus(dir: &Path) {
    let reserved = |policy: &str, budget: &str| {
        let cell = format!(
            "policy = \"{policy}\"\nreservation = {{ budget = \"{budget}\", period = \"10ms\", cpus = 2 }}"
        );
        file(dir, &cell, &TEN)
    };
    // The published interface, and the least on a grid of 1 us.
    reserved("global-edf", "17.5ms");
    let said = say(dir, &["analyze", "set.toml"]).ends_with(0);
    has(
        &said.out,
        &["in 17.5 ms every 10 ms over 2 cpus (8.75 ms on each)"],
    );
    reserved("global-edf", "17ms");
    let said = say(dir, &["analyze", "set.toml", "--explain"]).ends_with(1);
    has(
        &said.out,
        &["fix budget +457 us (17 ms -> 17.457 ms over 2 cpus)"],
    );
    reserved("global-edf", "13ms");
    say(dir, &["analyze", "set.toml"]).ends_with(3);
    reserved("global-fp", "17.5ms");
    say(dir, &["analyze", "set.toml"]).ends_with(1);

    file(dir, "policy = \"global-edf\"\ncpus = 2", &TEN);
    let design = ["analyze", "design", "set.toml", "--cpus", "2"];
    let with = |more: &[&'static str]| [design.as_slice(), more].concat();
    let said = say(dir, &with(&["--grid", "500us"])).ends_with(0);
    has(
        &said.out,
        &["17.5 ms over 2 cpus, which is 8.75 ms every 10 ms on each"],
    );
    let found = cell(dir, &["design", "set.toml", "--grid", "1us"], 0);
    assert_eq!(found["budget_ns"], 17_457_000);
    assert_eq!(found["budget_on_each_ns"], 8_728_500);
    let said = say(dir, &with(&["--toml"])).ends_with(0);
    fs::write(dir.join("set.toml"), said.out).unwrap();
    let said = say(dir, &["analyze", "set.toml"]).ends_with(0);
    has(&said.out, &["the cells fit (cpu 0: c; cpu 1: c)"]);
    file(dir, "policy = \"global-fp\"\ncpus = 2", &TEN);
    let said = say(dir, &with(&[])).ends_with(1);
    has(&said.out, &["not even all of 2 cpus"]);
    file(dir, "policy = \"edf-vd\"", &TEN);
    let said = say(dir, &with(&[])).ends_with(1);
    has(&said.out, &["no reservation is searched for"]);
}
