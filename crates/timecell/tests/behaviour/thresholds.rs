//! Thresholds and baselines on short real runs.

use std::path::Path;

use crate::support::{Said, experiment, only_run, say};

fn json(said: &Said) -> serde_json::Value {
    serde_json::from_str(&said.out).expect("the output is JSON")
}

#[case(Root, RealTime)]
fn holds_fails_and_not_applicable_end_differently(dir: &Path) {
    // Bounding p99 takes 299 jobs. A machine that stalls for half a second
    // leaves more than that of 2,000.
    let file = experiment(dir, &["bare"], 1000);
    let judged = |words: [&str; 2], conditions: &[&str], code| {
        let mut words = words.to_vec();
        for condition in conditions {
            words.extend(["--fail-if", condition]);
        }
        say(dir, &words).ends_with(code)
    };
    let said = judged(["bench", &file], &["execution.p99 > 10s", "lost > 0"], 0);
    assert!(said.out.contains("execution.p99 > 10s"), "{}", said.out);
    assert!(said.out.contains("  passes"), "{}", said.out);
    let run = only_run(dir);
    let report = ["report", run.to_str().unwrap()];
    // A job of 1,000 steps takes more than 1 ns on any machine.
    let both = ["execution.median > 1ns", "execution.p99.99 > 1s"];
    let said = judged(report, &both, 3);
    assert!(said.out.contains("  fails"), "{}", said.out);
    let said = judged(report, &["execution.p99.99 > 10s"], 4);
    assert!(said.out.contains("not applicable"), "{}", said.out);
    assert!(said.out.contains("needs 29,956 jobs, has "), "{}", said.out);
}

#[case(Root, RealTime, GroupsOfItsOwn(120))]
fn a_later_report_judges_again_or_by_others(dir: &Path) {
    let file = experiment(dir, &["bare", "embedded"], 200);
    say(
        dir,
        &["bench", &file, "--fail-if", "bare.execution.max > 1ns"],
    )
    .ends_with(3);
    let run = only_run(dir);
    let name = run.to_str().unwrap();
    // Kept beside the record, not in it.
    let record = std::fs::read_to_string(run.join("experiment.toml")).unwrap();
    assert!(!record.contains("1ns"));
    let said = say(dir, &["report", name]).ends_with(3);
    assert!(
        said.out.contains("bare.execution.max > 1ns"),
        "{}",
        said.out
    );
    let page = std::fs::read_to_string(run.join("report.html")).unwrap();
    assert!(page.contains("Thresholds: fails"));
    let said = say(dir, &["report", name, "--json"]).ends_with(3);
    let verdict = &json(&said)["judged"];
    assert_eq!(verdict["outcome"], "fails");
    let cells = verdict["thresholds"][0]["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 1);
    assert_eq!(
        (&cells[0]["cell"], &cells[0]["unit"]),
        (&"bare".into(), &"ns".into())
    );
    // Others instead, which are not kept.
    say(dir, &["report", name, "--fail-if", "execution.max > 10s"]).ends_with(0);
    say(dir, &["report", name]).ends_with(3);
    // Kept by an earlier version, which called skipped activations missed.
    let kept = run.join("thresholds.json");
    let text = std::fs::read_to_string(&kept).unwrap();
    let old = text.replace("bare.execution.max > 1ns", "missed > 100000");
    std::fs::write(&kept, old).unwrap();
    let said = say(dir, &["report", name]).ends_with(0);
    assert!(said.out.contains("skipped > 100000"), "{}", said.out);
    let error = say(
        dir,
        &["bench", &file, "--fail-if", "missed > 0", "--dry-run"],
    )
    .ends_with(2);
    assert!(error.error().contains("it has skipped, latency"));
}

#[case(Root, RealTime)]
fn another_run_is_a_baseline(dir: &Path) {
    let file = experiment(dir, &["bare"], 300);
    say(dir, &["bench", &file, "--out", "before"]).ends_with(0);
    let before = std::fs::read_dir(dir.join("before")).unwrap();
    let before = before.map(|e| e.unwrap().path()).next().unwrap();
    let before = before.to_str().unwrap();
    let condition = "execution.median > 1000x";
    let words = ["bench", &file, "--baseline", before, "--fail-if", condition];
    let said = say(dir, &words);
    // Two short rounds may be too different to exclude even this.
    assert!(matches!(said.code, Some(0 | 1)), "{}{}", said.out, said.err);
    assert!(said.out.contains("not interleaved"), "{}", said.out);
    assert!(said.out.contains("against the baseline"), "{}", said.out);
    let page = std::fs::read_to_string(only_run(dir).join("report.html")).unwrap();
    assert!(page.contains("Against run "));

    let other = dir.join("other.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&other, text.replace("steps = 1000", "steps = 2000")).unwrap();
    let other = other.to_str().unwrap();
    let words = ["bench", other, "--baseline", before, "--dry-run"];
    let error = say(dir, &words).ends_with(2).error();
    assert!(
        error.contains("the work is mac (1,000 steps) there and mac (2,000 steps) here"),
        "{error}"
    );
    assert!(error.contains("--allow-unlike"), "{error}");
    let words = [
        "bench",
        other,
        "--baseline",
        before,
        "--allow-unlike",
        "--dry-run",
    ];
    say(dir, &words).ends_with(0);
}

#[case]
fn what_is_not_understood_is_refused_before_measuring(dir: &Path) {
    let file = experiment(dir, &["bare"], 20);
    for (condition, parts) in [
        ("latency.p99 > 100", ["character 15", "write `100us`"]),
        (
            "memory.max > 1MB",
            [
                "a run of periodic jobs has no `memory.max`",
                "a run of single measurements has",
            ],
        ),
        (
            "podmann.latency.p99 > 1us",
            ["called `podmann`", "the trials are bare"],
        ),
    ] {
        let said = say(dir, &["bench", &file, "--fail-if", condition]).ends_with(2);
        for part in parts {
            assert!(said.err.contains(part), "{condition}: {}", said.err);
        }
    }
    let error = say(dir, &["bench", &file, "--baseline", "nowhere"]).ends_with(2);
    assert!(error.err.contains("nowhere"), "{}", error.err);
    assert!(!dir.join("runs").exists());
}

#[case(Root, RealTime)]
fn several_devices_stand_side_by_side_each_judged_by_itself(dir: &Path) {
    let file = experiment(dir, &["bare"], 300);
    let runs = ["first", "second", "third"].map(|name| {
        let mut words = vec!["bench", &file, "--out", name];
        if name == "second" {
            words.extend(["--fail-if", "bare.execution.max > 1ns"]);
        }
        say(dir, &words).ends_with(if name == "second" { 3 } else { 0 });
        let entry = std::fs::read_dir(dir.join(name)).unwrap().next().unwrap();
        entry.unwrap().path().display().to_string()
    });
    let all: Vec<&str> = ["report"]
        .into_iter()
        .chain(runs.iter().map(String::as_str))
        .collect();
    // One of them keeps its threshold.
    let said = say(dir, &all).ends_with(3);
    for part in ["devices", "largest execution time of each trial", "  fails"] {
        assert!(said.out.contains(part), "{part}: {}", said.out);
    }
    let page = std::fs::read_to_string(dir.join("devices.html")).unwrap();
    assert!(page.contains("3 devices") && page.contains("Thresholds: fails"));
    assert_eq!(page.matches("class=\"bar f").count(), 3 + 3);
    let with = |more: &[&'static str]| [&all[..], more].concat();
    let passes = with(&["--json", "--fail-if", "execution.p99 > 10s"]);
    let judged = json(&say(dir, &passes).ends_with(0));
    let of = |at: usize| &judged[at]["summary"]["judged"]["outcome"];
    assert_eq!([of(0), of(1), of(2)], ["passes"; 3]);
    let refused = say(dir, &with(&["--against", "published"])).ends_with(2);
    assert!(refused.error().contains("--against"), "{}", refused.error());
}
