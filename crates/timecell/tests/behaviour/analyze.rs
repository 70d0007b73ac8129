//! `analyze` from the user's view: verdicts and exit codes, errors with their lines, files of other tools.

mod drawn;
mod random;

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::say;

pub const SET: &str = r#"schema = 1

[[cell]]
name = "control"
policy = "fp"
reservation = { budget = "2ms", period = "5ms" }

[[cell.task]]
name = "loop"
wcet = "1ms"
period = "20ms"

[[cell.task]]
name = "log"
wcet = "3ms"
period = "24ms"
"#;

/// Writes a file and returns its name.
pub fn file(dir: &Path, name: &str, text: &str) -> String {
    fs::write(dir.join(name), text).unwrap();
    name.to_owned()
}

/// The set with a log task that runs too long.
pub fn late() -> String {
    SET.replace("\"3ms\"", "\"8ms\"")
}

pub fn json(dir: &Path, words: &[&str], code: i32) -> Value {
    let said = say(dir, words).ends_with(code);
    serde_json::from_str(&said.out).unwrap()
}

#[case]
fn verdicts_and_their_exit_codes(dir: &Path) {
    let good = file(dir, "good.toml", SET);
    let said = say(dir, &["analyze", &good]).ends_with(0);
    for part in [
        "response at most",
        "holds",
        "verdict every deadline holds",
        "2 ms every 5 ms",
    ] {
        assert!(said.out.contains(part), "`{part}` is not in\n{}", said.out);
    }
    let found = json(dir, &["analyze", &good, "--json"], 0);
    assert_eq!(found["schema"], 1);
    assert_eq!(found["outcome"], "holds");
    // sbf of 2 every 5 reaches 1 ms at 7 ms, and 4 ms at 13 ms.
    let tasks = &found["cells"][0]["tasks"];
    assert_eq!(tasks[0]["response_ns"], 7_000_000);
    assert_eq!(tasks[1]["response_ns"], 13_000_000);
    assert_eq!(tasks[1]["slack_ns"], 11_000_000);
    assert!(found["cells"][0]["server"].is_null());
    // A latency bound counts as blocking.
    let found = json(dir, &["analyze", &good, "--json", "--latency", "500us"], 0);
    let task = &found["cells"][0]["tasks"][0];
    assert_eq!(task["blocking_ns"], 500_000);
    assert_eq!(task["response_ns"], 7_500_000);
    say(dir, &["analyze", &good, "--latency", "10ms"]).ends_with(3);

    let bad = file(dir, "bad.toml", &late());
    let said = say(dir, &["analyze", &bad]).ends_with(3);
    assert!(
        said.out
            .contains("verdict a deadline can be missed in 1 cell"),
        "{}",
        said.out
    );
    assert_eq!(
        json(dir, &["analyze", &bad, "--json"], 3)["outcome"],
        "fails"
    );

    // A load of exactly the reserved rate, with periods that have no common multiple in range: neither a no nor a yes.
    let full = SET
        .replace("\"fp\"", "\"edf\"")
        .replace(
            "\"2ms\", period = \"5ms\"",
            "\"200000000000000000ns\", period = \"400000000000000000ns\"",
        )
        .replace(
            "wcet = \"1ms\"\nperiod = \"20ms\"",
            "wcet = \"200000000000000001ns\"\nperiod = \"800000000000000004ns\"",
        )
        .replace(
            "wcet = \"3ms\"\nperiod = \"24ms\"",
            "wcet = \"200000000000000003ns\"\nperiod = \"800000000000000012ns\"",
        );
    let full = file(dir, "full.toml", &full);
    let said = say(dir, &["analyze", &full]).ends_with(1);
    assert!(
        said.out.contains("undecided: the times are too long"),
        "{}",
        said.out
    );
    assert!(said.out.contains("verdict undecided"), "{}", said.out);

    assert_eq!(
        json(dir, &["analyze", &full, "--json"], 1)["outcome"],
        "undecided"
    );
}

#[case]
fn bad_input_has_its_line(dir: &Path) {
    let refused = |name: &str, text: &str, words: &[&str], parts: &[&str]| {
        let name = file(dir, name, text);
        let mut all = vec!["analyze", &name];
        all.extend(words);
        let error = say(dir, &all).ends_with(2).error();
        for part in parts {
            assert!(error.contains(part), "`{part}` is not in: {error}");
        }
    };
    refused(
        "a.toml",
        &SET.replace("period = \"24ms\"", "peroid = \"24ms\""),
        &[],
        &["a.toml:16:", "did you mean `period`?"],
    );
    refused("a.txt", SET, &[], &["a.txt", "--format"]);
    refused(
        "a.toml",
        SET,
        &["--plot", "absent/a.svg"],
        &["absent/a.svg"],
    );
    let error = say(dir, &["analyze", "absent.toml"]).ends_with(2).error();
    assert!(
        error.contains("absent.toml") && error.contains("No such file"),
        "{error}"
    );
    say(dir, &["analyze"]).ends_with(2);
    say(dir, &["analyze", "generate", "--tasks", "0"]).ends_with(2);
    say(dir, &["analyze", "generate", "--utilization", "-1"]).ends_with(2);
    say(
        dir,
        &["analyze", "schedulability", "--utilizations", "1.0..0.5"],
    )
    .ends_with(2);
    say(dir, &["analyze", "design", "absent.toml"]).ends_with(2);
    for (words, parts) in [
        (
            "analyze generate --shortest 1s --longest 10ms",
            ["--shortest: 1s is longer", "--longest, 10ms"],
        ),
        (
            "analyze generate --deadlines -1",
            ["--deadlines", "a fraction from 0 to 1"],
        ),
        (
            "analyze a.toml --latency -5us",
            ["--latency", "is negative"],
        ),
        (
            "analyze a.toml --rt-limit 2s/1s",
            ["--rt-limit", "at most the period"],
        ),
        ("analyze a.toml --enforcer none", ["--enforcer", "none"]),
        (
            "analyze a.toml --latency --json",
            ["--latency", "has no value, --json is the next option"],
        ),
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        let said = say(dir, &words).ends_with(2);
        for part in parts {
            assert!(said.err.contains(part), "`{part}` is not in {}", said.err);
        }
    }
}

#[case]
fn files_of_other_tools(dir: &Path) {
    // One set in every format: (1, 20), (3, 24) in ms, EDF on its own cpu.
    let schedcat = "<taskset><task id=\"1\" period=\"20000\" wcet=\"1000\"/><task id=\"2\" period=\"24000\" wcet=\"3000\"/></taskset>";
    let carts = "<system os_scheduler=\"EDF\"><component name=\"c\" scheduler=\"EDF\"><task name=\"a\" p=\"20\" d=\"20\" e=\"1\"/>\
        <task name=\"b\" p=\"24\" d=\"24\" e=\"3\"/></component></system>";
    let rt_app = "{ /* two */ \"tasks\": { \"a\": {\"policy\": \"SCHED_DEADLINE\", \"dl-runtime\": 1000,\
        \"dl-period\": 20000, \"run\": 5, \"run\": 6}, \"b\": {\"policy\": \"SCHED_DEADLINE\", \"dl-runtime\": 3000,\
        \"dl-period\": 24000},}}";
    let csv =
        "task_name,runtime_us,period_us,deadline_us\na,1000,20000,20000\nb,3000,24000,24000\n";
    let names = [
        (file(dir, "s.xml", schedcat), vec![]),
        (file(dir, "c.xml", carts), vec!["--unit", "ms"]),
        (file(dir, "r.json", rt_app), vec!["--cpus", "1"]),
        (file(dir, "t.csv", csv), vec![]),
        (file(dir, "t.data", csv), vec!["--format", "csv"]),
    ];
    let mut answers = names.iter().map(|(name, more)| {
        let mut words = vec!["analyze", name, "--json"];
        words.extend(more);
        let found = json(dir, &words, 0);
        let tasks = found["cells"][0]["tasks"].as_array().unwrap().clone();
        let numbers = |task: &Value| {
            ["wcet_ns", "period_ns", "deadline_ns", "response_ns"].map(|key| task[key].as_u64())
        };
        tasks.iter().map(numbers).collect::<Vec<_>>()
    });
    let first = answers.next().unwrap();
    assert_eq!(
        first[1],
        [3_000_000, 24_000_000, 24_000_000, 4_000_000].map(Some)
    );
    for answer in answers {
        assert_eq!(answer, first);
    }
    let said = say(dir, &["analyze", "s.xml"]).ends_with(0);
    assert!(
        said.err.contains("microseconds are assumed") && said.err.contains("edf is assumed"),
        "{}",
        said.err
    );
    let said = say(dir, &["analyze", "s.xml", "--policy", "fp", "--unit", "us"]).ends_with(0);
    assert!(
        said.err.is_empty() && said.out.contains("fp dm"),
        "{}{}",
        said.err,
        said.out
    );
    let late = csv.replace("3000", "23500");
    file(dir, "late.csv", &late);
    say(dir, &["analyze", "late.csv"]).ends_with(3);
}

#[case]
fn a_verdict_covers_the_whole_file(dir: &Path) {
    let rt_app = |deadline: u32, more: &str| {
        format!(
            "{{\"tasks\": {{\"dl\": {{\"policy\": \"SCHED_DEADLINE\", \"dl-runtime\": {deadline}, \"dl-period\": 10000, \"cpus\": [0]}}, \
             \"ff\": {{\"policy\": \"SCHED_FIFO\", \"priority\": 20, \"cpus\": [0], \"run\": 3000, \"timer\": {{\"ref\": \"u\", \"period\": 20000}}}}\
             {more}}}}}"
        )
    };
    let other = ", \"bg\": {\"policy\": \"SCHED_OTHER\", \"cpus\": [0], \"run\": 10, \"timer\": {\"ref\": \"v\", \"period\": 90000}}";
    let shown = |name: &str, text: &str, code: i32, parts: &[&str]| {
        file(dir, name, text);
        let said = say(dir, &["analyze", name, "--explain"])
            .ends_with(code)
            .out;
        for part in parts {
            assert!(said.contains(part), "{name}: {part}: {said}");
        }
        json(dir, &["analyze", name, "--json"], code)
    };
    // 105 % of the cpu, and a load that fits below.
    let missed = ["a deadline can be missed"];
    shown("late.json", &rt_app(9_000, ""), 3, &missed);
    let found = shown(
        "fits.json",
        &rt_app(4_000, ""),
        0,
        &["every deadline holds"],
    );
    assert_eq!(found["uncovered"], serde_json::json!([]));
    assert_eq!(found["linux"]["admitted"], true, "{found}");
    let full = "{\"tasks\": {\"dl\": {\"policy\": \"SCHED_DEADLINE\", \"dl-runtime\": 15700, \"dl-period\": 16000, \"cpus\": [0]}}}";
    let found = shown("full.json", full, 0, &["refused by the kernel", "(EBUSY)"]);
    assert_eq!(found["linux"]["admitted"], false);
    // A thread left out is no yes, and no room.
    let parts = [
        "verdict undecided: every deadline that was tested holds, but 1 of 3 threads is left out: bg",
        "not counted there: 1 of 3 threads",
        "admitted by the kernel; whether the deadlines hold is undecided",
    ];
    let found = shown("part.json", &rt_app(4_000, other), 1, &parts);
    assert_eq!(found["outcome"], "undecided");
    assert_eq!(found["linux"]["standing"], "admitted_undecided");
    let table = "name,wcet_us,period_us,comment,cores\na,1000,20000,x,1\n";
    let parts = ["but columns are not used: cores"];
    shown("t.csv", table, 1, &parts);
    shown("u.csv", &table.replace("cores", "util"), 0, &[]);
    let set =
        "<taskset><task id=\"1\" period=\"20000\" wcet=\"1000\" self_suspension=\"9\"/></taskset>";
    shown(
        "s.xml",
        set,
        1,
        &["attributes of tasks are not used: `self_suspension`"],
    );
    a_slice_of_sched_other_is_no_yes(dir);
    // Options without effect say so.
    for (words, part) in [
        (["u.csv", "--unit", "ms"], "--unit has no effect"),
        (["fits.json", "--policy", "edf"], "--policy has no effect"),
        (
            ["u.csv", "--enforcer", "rt-cgroup"],
            "--enforcer rt-cgroup has no effect",
        ),
    ] {
        file(dir, "u.csv", &table.replace("cores", "util"));
        let said = say(dir, &[&["analyze"][..], &words[..]].concat()).ends_with(0);
        assert!(said.err.contains(part), "{words:?}: {}", said.err);
    }
}

/// Nothing guarantees a thread of SCHED_OTHER anything; a slice is no reservation, and its own work counts.
fn a_slice_of_sched_other_is_no_yes(dir: &Path) {
    let slice = "{\"tasks\":{\"s\":{\"policy\":\"SCHED_OTHER\",\"dl-runtime\":100000,\"run\":2000,\
        \"timer\":{\"ref\":\"t\",\"period\":10000}},\"x\":{\"run\":1,\"sleep\":1}}}";
    file(dir, "s.json", slice);
    let said = say(dir, &["analyze", "s.json", "--cpus", "1"]).ends_with(1);
    assert!(said.out.contains("verdict undecided"), "{}", said.out);
    assert!(!said.out.contains("every deadline holds"), "{}", said.out);
    for part in [
        "`s` (no real-time class): 2ms in 10ms",
        "they use `sleep`: x",
    ] {
        assert!(said.err.contains(part), "{part}: {}", said.err);
    }
}
