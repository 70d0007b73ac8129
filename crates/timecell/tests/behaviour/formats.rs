//! Files of other tools in and out: what real programs write is drawn, what is exported is read by them.

use std::fs;
use std::path::Path;
use std::process::Command;

use host::sched::bandwidth;

use crate::support::{Case, Need, Said, experiment, only_run, say, timecell};

pub const CASES: &[Case] = &[
    Case {
        name: "formats::files_of_real_tools_are_drawn",
        needs: &[],
        run: draws_files,
    },
    Case {
        name: "formats::standard_input_is_drawn",
        needs: &[],
        run: draws_input,
    },
    Case {
        name: "formats::damaged_files_get_one_sentence",
        needs: &[],
        run: damaged,
    },
    Case {
        name: "formats::files_of_other_tools_are_judged",
        needs: &[],
        run: judged,
    },
    Case {
        name: "formats::an_export_is_written_over_only_when_forced",
        needs: &[],
        run: forced,
    },
    Case {
        name: "formats::what_cyclictest_writes_now_is_read",
        needs: &[Need::RealTime, Need::Program("cyclictest")],
        run: cyclictest,
    },
    Case {
        name: "formats::a_run_goes_out_as_cyclictest_and_comes_back",
        needs: &[],
        run: round_trip,
    },
    Case {
        name: "formats::rt_app_runs_what_is_exported_and_its_logs_are_drawn",
        needs: &[
            Need::Root,
            Need::RealTime,
            Need::DeadlineBudget,
            Need::Program("rt-app"),
        ],
        run: rt_app,
    },
    Case {
        name: "formats::published_figures_stand_beside_a_run",
        needs: &[],
        run: published,
    },
];

/// A file of a real tool, from the tests of crate `record`.
fn data(name: &str) -> String {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../record/tests/data");
    dir.join(name).to_string_lossy().into_owned()
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).expect("JSON")
}

fn judged() {
    let dir = tempfile::tempdir().unwrap();
    let file = data("cyclictest-2.40.json");
    let with = |condition: &str, code| {
        say(dir.path(), &["report", &file, "--fail-if", condition]).ends_with(code)
    };
    with("latency.max > 1ns", 3);
    with("latency.max > 1h", 0);
    with("late > 0", 4);
}

/// A run goes out as Parquet, whose footer carries what the columns alone do not say.
fn forced() {
    let dir = tempfile::tempdir().unwrap();
    let file = experiment(dir.path(), &["bare"], 3);
    say(dir.path(), &["bench", &file, "--class", "other"]).ends_with(0);
    let export = ["export", "latest", "--parquet", "-o", "jobs.parquet"];
    say(dir.path(), &export).ends_with(0);
    let file = dir.path().join("jobs.parquet");
    let footer = String::from_utf8_lossy(&fs::read(&file).unwrap()).into_owned();
    for key in ["host", "kernel", "period_ns", "trial_failed", "schema"] {
        assert!(footer.contains(key), "{key}");
    }
    fs::write(&file, "mine").unwrap();
    let refused = say(dir.path(), &export).ends_with(2);
    assert!(refused.error().contains("--force"), "{}", refused.err);
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    say(dir.path(), &[&export[..], &["--force"]].concat()).ends_with(0);
    assert_ne!(fs::read(&file).unwrap(), b"mine");
}

/// What another tool prints goes into `report -` without a file.
fn draws_input() {
    let dir = tempfile::tempdir().unwrap();
    let with = |words: &[&str], input: &str| -> Said {
        let mut command = timecell();
        command.current_dir(dir.path()).args(words);
        command.stdin(fs::File::open(data(input)).unwrap());
        command.output().unwrap().into()
    };
    let said = with(&["report", "-"], "rtla-timerlat-hist.txt").ends_with(0);
    assert!(said.out.contains("Timer latency"), "{}", said.out);
    let page = fs::read_to_string(dir.path().join("measured.html")).unwrap();
    assert!(page.contains("standard input"));
    let said = with(&["report", "-", "-o", "b.html"], "cyclictest-2.40.json").ends_with(0);
    assert!(said.out.contains("Wake-up latency") && dir.path().join("b.html").is_file());
    let said = with(&["report", "-"], "../../Cargo.toml").ends_with(2);
    assert!(said.error().contains("standard input"), "{}", said.err);
    // So is a task set, whose name tells no format.
    let table = "name,wcet_us,period_us\na,1000,9000\nb,10000,60000\n";
    let tasks = dir.path().join("t.csv");
    fs::write(&tasks, table).unwrap();
    let tasks = tasks.to_string_lossy();
    let said = with(&["analyze", "-", "--format", "csv", "--json"], &tasks).ends_with(0);
    assert_eq!(json(&said.out)["file"], "standard input");
    let said = with(&["analyze", "-"], &tasks).ends_with(2);
    assert!(said.error().contains("add --format"), "{}", said.err);
    fs::write(&*tasks, &table[..table.len() - 2]).unwrap();
    let said = with(&["analyze", &tasks], &tasks).ends_with(2);
    assert!(said.error().contains("t.csv:3: cut short"), "{}", said.err);
}

fn draws_files() {
    let dir = tempfile::tempdir().unwrap();
    let files = [
        data("cyclictest-2.40.json"),
        data("rtla-timerlat-hist.txt"),
        data("rt-app-1.0.log"),
        data("jitterdebugger-0.3.1.raw"),
    ];
    let mut words = vec!["report"];
    words.extend(files.iter().map(String::as_str));
    let said = say(dir.path(), &words).ends_with(0);
    for part in [
        "Wake-up latency",
        "Timer latency",
        "Execution time",
        "444 of 256.0 us or more",
    ] {
        assert!(said.out.contains(part), "{part}\n{}", said.out);
    }
    let page = fs::read_to_string(dir.path().join("measured.html")).unwrap();
    assert!(page.contains("<svg") && page.contains("Not measured by timecell."));
    let summary = say(dir.path(), &["report", &files[0], "--json"]).ends_with(0);
    let first = &json(&summary.out)["files"][0]["distributions"][0];
    assert_eq!(first["overflow"]["count"], 3);
    assert_eq!(first["max_ns"], 3_973_000);
    // The unit that the file does not say can be said.
    let ns = say(dir.path(), &["report", &files[3], "--json", "--unit", "ns"]).ends_with(0);
    let us = say(dir.path(), &["report", &files[3], "--json"]).ends_with(0);
    let max = |text: &str| json(text)["files"][0]["distributions"][0]["max_ns"].as_i64();
    assert_eq!(max(&ns.out).map(|ns| ns * 1_000), max(&us.out));
}

fn damaged() {
    let dir = tempfile::tempdir().unwrap();
    let whole = fs::read_to_string(data("cyclictest-2.40.json")).unwrap();
    fs::write(dir.path().join("cut.json"), &whole[..700]).unwrap();
    fs::write(dir.path().join("empty.txt"), "").unwrap();
    fs::write(dir.path().join("other.txt"), "hello\n").unwrap();
    for (words, part) in [
        (
            &["report", "cut.json"][..],
            "cut.json:30: cut short: the JSON ends here",
        ),
        (&["report", "empty.txt"], "empty.txt: the file is empty"),
        (
            &["report", "other.txt"],
            "its content is of no format that is known here",
        ),
        (
            &["report", "other.txt", "--format", "hackbench"],
            "no line says `Time:`",
        ),
        (&["report", "missing.txt"], "not a run and not a file"),
        (
            &["report", "other.txt", "--format", "no"],
            "possible values",
        ),
        (&["report"], "required"),
        (
            &["report", "other.txt", "--against", "published"],
            "belongs to the report of one run",
        ),
    ] {
        let said = say(dir.path(), words).ends_with(2);
        assert!(said.err.contains(part), "{words:?}\n{}", said.err);
        assert!(!dir.path().join("measured.html").exists());
    }
}

fn cyclictest() {
    let dir = tempfile::tempdir().unwrap();
    let text = Command::new("cyclictest")
        .args([
            "-q",
            "-m",
            "-p",
            "80",
            "-t",
            "1",
            "-i",
            "500",
            "-l",
            "400",
            "-h",
            "30",
            "--json=c.json",
        ])
        .current_dir(dir.path())
        .output()
        .unwrap();
    assert!(text.status.success());
    fs::write(dir.path().join("c.txt"), &text.stdout).unwrap();
    let said = say(dir.path(), &["report", "c.json", "c.txt", "--json"]).ends_with(0);
    let files = json(&said.out);
    let of = |file: usize| files["files"][file]["distributions"][0].clone();
    let (a, b) = (of(0), of(1));
    // However this machine behaved, all 400 values are in the histogram or counted beyond it, alike in both forms.
    let over = a["overflow"]["count"].as_u64().unwrap_or(0);
    assert_eq!(a["counted"].as_u64().unwrap() + over, 400);
    for key in ["counted", "overflow", "max_ns", "min_ns", "quantiles"] {
        assert_eq!(a[key], b[key], "{key}");
    }
}

fn round_trip() {
    let dir = tempfile::tempdir().unwrap();
    let file = experiment(dir.path(), &["bare"], 25);
    say(dir.path(), &["bench", &file]).ends_with(0);
    let run = only_run(dir.path()).to_string_lossy().into_owned();
    let said = say(
        dir.path(),
        &[
            "export",
            &run,
            "--cyclictest-json",
            "-o",
            "o.json",
            "--buckets",
            "20",
        ],
    )
    .ends_with(0);
    assert!(
        said.err.contains("rounded down to whole microseconds"),
        "{}",
        said.err
    );
    let hist = say(
        dir.path(),
        &[
            "export",
            &run,
            "--cyclictest-hist",
            "--buckets",
            "20",
            "-o",
            "-",
        ],
    )
    .ends_with(0);
    fs::write(dir.path().join("o.txt"), &hist.out).unwrap();
    // The run and its two forms in one report: the same number of values, and maxima that agree to the microsecond.
    let said = say(dir.path(), &["report", &run, "o.json", "o.txt", "--json"]).ends_with(0);
    let files = json(&said.out);
    let of = |file: usize| files["files"][file]["distributions"][0].clone();
    let values = |d: &serde_json::Value| {
        d["counted"].as_u64().unwrap() + d["overflow"]["count"].as_u64().unwrap_or(0)
    };
    let (ours, json, text) = (of(0), of(1), of(2));
    assert_eq!(
        (values(&ours), values(&ours)),
        (values(&json), values(&text))
    );
    let us = |d: &serde_json::Value| d["max_ns"].as_i64().unwrap().max(0) / 1_000;
    assert_eq!((us(&ours), us(&ours)), (us(&json), us(&text)));
    say(dir.path(), &["export", &run, "--cyclictest-json", "--csv"]).ends_with(2);
}

fn rt_app() {
    let dir = tempfile::tempdir().unwrap();
    let tasks = "schema = 1\n[[cell]]\nname = \"c\"\npolicy = \"edf\"\n[[cell.task]]\nname = \"a\"\nwcet = \"1ms\"\nperiod = \"10ms\"\n\
        jitter = \"1us\"\n[[cell.task]]\nname = \"b\"\nwcet = \"2ms\"\nperiod = \"40ms\"\ndeadline = \"20ms\"\n";
    fs::write(dir.path().join("t.toml"), tasks).unwrap();
    let said = say(
        dir.path(),
        &[
            "export",
            "t.toml",
            "--rt-app",
            "--seconds",
            "1",
            "-o",
            "t.json",
        ],
    )
    .ends_with(0);
    assert!(said.err.contains("release jitter"), "{}", said.err);
    // Our own importer reads the same tasks, and the real rt-app runs them.
    let said = say(dir.path(), &["analyze", "t.json", "--json"]).ends_with(0);
    assert_eq!(
        json(&said.out)["cells"][0]["tasks"]
            .as_array()
            .map(Vec::len),
        Some(2)
    );
    // rt-app does not wait where the kernel has lost count of the bandwidth, and does not have it counted anew.
    std::thread::spawn(|| {
        let as_much = host::sched::Class::Deadline {
            runtime_ns: 2_000_000,
            deadline_ns: 10_000_000,
            period_ns: 10_000_000,
        };
        bandwidth::set_class_when_free(0, &as_much, bandwidth::GIVEN_BACK).unwrap();
        bandwidth::leave(0).unwrap();
    })
    .join()
    .unwrap();
    let ran = Command::new("rt-app")
        .arg("t.json")
        .current_dir(dir.path())
        .output()
        .unwrap();
    assert!(
        ran.status.success(),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    let said = say(
        dir.path(),
        &["report", "rt-app-a-0.log", "rt-app-b-1.log", "--json"],
    )
    .ends_with(0);
    let files = json(&said.out);
    for file in 0..2 {
        let counted = files["files"][file]["distributions"][0]["counted"].as_u64();
        assert!(counted.unwrap() > 5, "{counted:?}");
        assert!(
            files["files"][file]["command"]
                .as_str()
                .unwrap()
                .contains("SCHED_DEADLINE")
        );
    }
}

fn published() {
    let dir = tempfile::tempdir().unwrap();
    let list = say(dir.path(), &["report", "--against", "list"]).ends_with(0);
    assert!(
        list.out.contains("Table 4.2") && list.out.contains("L. Abeni"),
        "{}",
        list.out
    );
    let file = experiment(dir.path(), &["bare"], 25);
    say(dir.path(), &["bench", &file]).ends_with(0);
    let run = only_run(dir.path()).to_string_lossy().into_owned();
    let said = say(
        dir.path(),
        &["report", &run, "--against", "published", "-o", "p.html"],
    )
    .ends_with(0);
    for part in [
        "published by",
        "not by us",
        "not compared",
        "no counterpart: ",
    ] {
        assert!(said.out.contains(part), "{part}\n{}", said.out);
    }
    assert!(
        fs::read_to_string(dir.path().join("p.html"))
            .unwrap()
            .contains("id=\"published\"")
    );
    let said = say(
        dir.path(),
        &["report", &run, "--against", "published", "--json"],
    )
    .ends_with(0);
    let summary = json(&said.out);
    assert!(
        !summary["published"]["without"]
            .as_array()
            .unwrap()
            .is_empty()
    );
    assert!(summary["cells"].is_array());
}
