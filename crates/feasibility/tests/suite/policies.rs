//! Policies beyond plain fixed priorities and EDF: searched priority orders, two levels of criticality, global scheduling.
//! The answers are those of the literature.

use analysis::linux::Reaction;
use model::Duration;
use serde_json::Value;
use timecell_feasibility::{
    DesignOptions, Designed, Fit, Outcome, RtLimit, Style, TaskSet, design, design_table,
    explanation, feasibility_table, study,
};

use crate::set;

const HOLDS: Outcome = Outcome::Holds;
const UNDECIDED: Outcome = Outcome::Undecided;
const FAILS: Outcome = Outcome::Fails;

/// A set of one cell with these lines, and tasks given as name, wcet and period in us, and more lines.
#[track_caller]
fn file(cell: &str, tasks: &[(&str, u64, u64, &str)]) -> TaskSet {
    let mut text = format!("schema = 1\n[[cell]]\nname = \"c\"\n{cell}\n");
    for (name, wcet, period, more) in tasks {
        text += &format!(
            "[[cell.task]]\nname = \"{name}\"\nwcet = \"{wcet}us\"\nperiod = \"{period}us\"\n{more}\n"
        );
    }
    set(&text)
}

/// The table, for a set with this outcome.
#[track_caller]
fn table(set: &TaskSet, outcome: Outcome) -> String {
    let study = study(set, false);
    let shown = feasibility_table(&study, Style::default());
    assert_eq!(study.outcome(), outcome, "{shown}");
    shown
}

/// The table and the explanation, for a set with this outcome.
#[track_caller]
fn explained(set: &TaskSet, outcome: Outcome) -> String {
    let study = study(set, true);
    let shown = format!(
        "{}\n{}",
        feasibility_table(&study, Style::default()),
        explanation(&study, Style::default())
    );
    assert_eq!(study.outcome(), outcome, "{shown}");
    shown
}

/// The cell as JSON, for a set with this outcome; with `fixing`, the changes that help as well.
#[track_caller]
fn cell(set: &TaskSet, fixing: bool, outcome: Outcome) -> Value {
    let study = study(set, fixing);
    assert_eq!(study.outcome(), outcome, "{study:?}");
    serde_json::to_value(&study.cells[0]).unwrap()
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

#[test]
fn audsley_finds_the_order_that_no_rule_gives() {
    // Lehoczky's pair with late deadlines: the deadline-monotonic order misses, the other holds.
    let tasks = [
        ("x", 52_000, 100_000, "deadline = \"110ms\""),
        ("y", 52_000, 140_000, "deadline = \"154ms\""),
    ];
    table(&file("order = \"dm\"", &tasks), FAILS);
    let set = file("order = \"audsley\"", &tasks);
    let shown = explained(&set, HOLDS);
    has(&shown, &["order c: y, x, the most urgent first", "108 ms"]);
    let found = cell(&set, false, HOLDS);
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
    let set = file(reserved, &crowded);
    let shown = explained(&set, FAILS);
    has(
        &shown,
        &[
            "at level 2 of 3 (1 is the most urgent) no task fits; tried: y, x; below it: z",
            "tried x at that level",
            "fix budget +",
        ],
    );
    let fixes = cell(&set, true, FAILS)["fixes"].clone();
    let fixes = fixes.as_array().unwrap();
    let budget = fixes.iter().find(|fix| fix["change"] == "budget");
    let to = budget.unwrap()["to_ns"].as_u64().unwrap();
    for (budget, outcome) in [(to, HOLDS), (to - 1_000, FAILS)] {
        let reserved = reserved.replace("6ms", &format!("{budget}ns"));
        table(&file(&reserved, &crowded), outcome);
    }
}

#[test]
fn amc_rtb_bounds_both_modes() {
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
    let set = file("policy = \"amc-rtb\"", &good);
    let shown = table(&set, HOLDS);
    has(
        &shown,
        &[
            "low c: holds; response at most: a 2 ms, b 6 ms, c 14 ms, d 25 ms",
            "high c: holds; response at most: a 3 ms, c 20 ms; dropped: b, d",
        ],
    );
    let found = cell(&set, false, HOLDS);
    let mixed = &found["special"]["mixed"];
    assert_eq!(
        numbers(&mixed["tasks"], "high_response_ns"),
        [Some(3_000_000), None, Some(20_000_000), None]
    );
    assert_eq!(mixed["dropped_in_high_mode"], serde_json::json!([1, 3]));

    // By 40 ms: 23 of its own, 4 x 3 of a, 1 x 4 of b before the change at 14 ms: 39; with 25 it is 41.
    let near = tasks("criticality = \"hi\"\nwcet_hi = \"25ms\"");
    let set = file("policy = \"amc-rtb\"", &near);
    let shown = explained(&set, UNDECIDED);
    has(
        &shown,
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
    table(&file("policy = \"amc-rtb\"", &fixed), HOLDS);
    // Alone in high mode, 30 and 4 x 3: a proof.
    let over = tasks("criticality = \"hi\"\nwcet_hi = \"30ms\"");
    let set = file("policy = \"amc-rtb\"", &over);
    let shown = table(&set, FAILS);
    has(&shown, &["high c: fails", "low c: holds"]);
    let low = [("a", 6_000, 10_000, ""), ("b", 5_000, 12_000, "")];
    let set = file("policy = \"amc-rtb\"", &low);
    let shown = explained(&set, FAILS);
    has(&shown, &["low c: fails", "why c: task b can miss"]);
}

#[test]
fn edf_vd_prints_its_factor() {
    let with = |high: &'static str| {
        let tasks = [("l", 1_000, 2_000, ""), ("h", 1_000, 4_000, high)];
        file("policy = \"edf-vd\"", &tasks)
    };
    let set = with("criticality = \"hi\"\nwcet_hi = \"3ms\"");
    let shown = table(&set, HOLDS);
    has(
        &shown,
        &[
            "x = 1/2 (0.500000)",
            "U_HI(HI) 0.750000, x U_LO(LO) + U_HI(HI) 1.000000",
            "dropped: l",
        ],
    );
    let found = cell(&set, false, HOLDS);
    let factor = &found["special"]["mixed"]["edf_vd"]["factor"];
    assert_eq!(*factor, serde_json::json!([1, 2]));
    let set = with("criticality = \"hi\"\nwcet_hi = \"3001us\"");
    let shown = explained(&set, UNDECIDED);
    has(
        &shown,
        &[
            "must be at most 1; it is 1.000250",
            "fix wcet_hi of h -1 us (3.001 ms -> 3 ms)",
        ],
    );
    let set = with("criticality = \"hi\"\nwcet_hi = \"2ms\"");
    let shown = table(&set, HOLDS);
    has(&shown, &["EDF is enough without virtual deadlines"]);
    table(
        &file(
            "policy = \"edf-vd\"",
            &[("l", 1_500, 2_000, ""), ("m", 1_500, 4_000, "")],
        ),
        FAILS,
    );
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

#[test]
fn global_tests_say_which_of_them_shows_it() {
    let set = file("policy = \"global-fp\"\norder = \"rm\"\ncpus = 2", &TEN);
    let shown = table(&set, HOLDS);
    has(
        &shown,
        &[
            "BCL not shown; RTA of Bertogna and Cirinei shown; RTA-LC shown",
            "on 2 cpus of its own",
        ],
    );
    let found = cell(&set, false, HOLDS);
    // Guan's bounds, which are in whole microseconds elsewhere.
    let in_us: Vec<u64> = numbers(&found["tasks"], "response_ns")
        .into_iter()
        .map(|bound| bound.unwrap() / 1_000)
        .collect();
    assert_eq!(in_us[..6], [10_321, 1_570, 7_870, 9_590, 24_302, 41_574]);
    let set = file("policy = \"global-edf\"\ncpus = 2", &TEN);
    let shown = table(&set, HOLDS);
    has(&shown, &["GFB shown; BCL with slacks not shown"]);
    // A utilisation of 1.4 is not for tests on one cpu.
    let set = file("policy = \"global-edf\"\ncpus = 1", &TEN);
    let shown = explained(&set, FAILS);
    has(&shown, &["fix 2 cpus for this cell alone would be enough"]);
    // Dhall's set misses, though its total is far below two cpus: it shows when all tasks arrive at once.
    let dhall = [
        ("a", 2_000, 100_000, ""),
        ("b", 2_000, 100_000, ""),
        ("c", 100_000, 101_000, ""),
    ];
    let set = file("policy = \"global-fp\"\ncpus = 2", &dhall);
    let shown = explained(&set, FAILS);
    has(
        &shown,
        &[
            "task c misses its deadline if all tasks arrive at once",
            "is due after 101 ms, when it has had 98 ms of its 100 ms",
            "fix 3 cpus for this cell alone would be enough",
        ],
    );
    let outcomes = cell(&set, false, FAILS)["tasks"].clone();
    let outcomes = outcomes.as_array().unwrap().iter();
    let outcomes: Vec<&str> = outcomes
        .map(|task| task["outcome"].as_str().unwrap())
        .collect();
    assert_eq!(outcomes, ["holds", "holds", "fails"]);
    table(&file("policy = \"global-fp\"\ncpus = 3", &dhall), HOLDS);
}

/// Budgets of a design are multiples of this, unless another grid is asked for.
const GRID: Duration = Duration::from_ns(1_000);

/// The reservations of least bandwidth, for a set whose design has this outcome. The other options are the defaults of
/// `timecell analyze design`.
#[track_caller]
fn designed(set: &TaskSet, cpus: u32, grid: Duration, outcome: Outcome) -> Designed {
    let options = DesignOptions {
        period: None,
        shortest: Duration::from_ns(10_000_000),
        step: Duration::from_ns(1_000_000),
        grid,
        overhead: Duration::from_ns(0),
        share_percent: 100,
        fit: Fit::First,
        limit: RtLimit::KERNEL,
        reaction: Reaction::MEASURED,
    };
    let plan = design(set, cpus, &options);
    assert_eq!(plan.outcome, outcome, "{plan:?}");
    plan
}

#[test]
fn a_reservation_over_several_cpus() {
    let reserved = |policy: &str, budget: &str| {
        let cell = format!(
            "policy = \"{policy}\"\nreservation = {{ budget = \"{budget}\", period = \"10ms\", cpus = 2 }}"
        );
        file(&cell, &TEN)
    };
    // The published interface, and the least on a grid of 1 us.
    let set = reserved("global-edf", "17.5ms");
    let shown = table(&set, HOLDS);
    has(
        &shown,
        &["in 17.5 ms every 10 ms over 2 cpus (8.75 ms on each)"],
    );
    let set = reserved("global-edf", "17ms");
    let shown = explained(&set, UNDECIDED);
    has(
        &shown,
        &["fix budget +457 us (17 ms -> 17.457 ms over 2 cpus)"],
    );
    table(&reserved("global-edf", "13ms"), FAILS);
    table(&reserved("global-fp", "17.5ms"), UNDECIDED);

    let set = file("policy = \"global-edf\"\ncpus = 2", &TEN);
    let plan = designed(&set, 2, Duration::from_ns(500_000), HOLDS);
    has(
        &design_table(&plan, Style::default()),
        &["17.5 ms over 2 cpus, which is 8.75 ms every 10 ms on each"],
    );
    let plan = designed(&set, 1, GRID, HOLDS);
    let found = serde_json::to_value(&plan.cells[0]).unwrap();
    assert_eq!(found["budget_ns"], 17_457_000);
    assert_eq!(found["budget_on_each_ns"], 8_728_500);
    let plan = designed(&set, 2, GRID, HOLDS);
    let shown = table(&crate::set(&plan.set.to_toml()), HOLDS);
    has(&shown, &["the cells fit (cpu 0: c; cpu 1: c)"]);
    let set = file("policy = \"global-fp\"\ncpus = 2", &TEN);
    let plan = designed(&set, 2, GRID, UNDECIDED);
    has(
        &design_table(&plan, Style::default()),
        &["not even all of 2 cpus"],
    );
    let plan = designed(&file("policy = \"edf-vd\"", &TEN), 2, GRID, UNDECIDED);
    has(
        &design_table(&plan, Style::default()),
        &["no reservation is searched for"],
    );
}
