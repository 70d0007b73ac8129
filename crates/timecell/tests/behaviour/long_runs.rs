//! Histograms instead of samples, and resuming a killed run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use record::run::{Run, Status};
use record::summary::RunSummary;

use crate::support::{Need, begun, eventually, experiment, only_run, say, timecell};

/// Requires that nothing keeps the reader of the rings from its cpu for two seconds, as a machine full of real-time work does.
const NOTHING_IS_LOST: &[Need] = &[Need::Unhindered];

/// Jobs of each cell in each round: five seconds, an interval each second.
const JOBS: u64 = 5_000;

fn file(dir: &Path, jobs: u64, more: &str) -> String {
    let text = format!(
        "schema = 1\nname = \"long\"\nrounds = 1\nrecord = \"histogram\"\ninterval = \"1s\"\n\
         [workload]\nkind = \"timer\"\nperiod = \"1ms\"\njobs = {jobs}\n[[trial]]\ncells = [\"bare\"]\n{more}"
    );
    let path = dir.join("long.toml");
    fs::write(&path, text).unwrap();
    path.to_string_lossy().into_owned()
}

const PAIR: &str = "[[trial]]\nname = \"pair\"\ncells = [\"bare\", \"bare\"]\n";

fn summary(run: &Path) -> RunSummary {
    Run::open(run).unwrap().read::<RunSummary>().unwrap()
}

#[track_caller]
fn adds_up(run: &Path, cells: usize, jobs: u64) {
    let summary = summary(run);
    assert_eq!(summary.cells.len(), cells);
    for cell in &summary.cells {
        assert_eq!(cell.planned, jobs, "{}", cell.label);
        assert_eq!(
            cell.executed + cell.skipped + cell.lost,
            jobs,
            "{}",
            cell.label
        );
        assert_eq!(cell.unexplained, 0, "{}", cell.label);
        let histograms = cell.histograms.as_ref().unwrap();
        let sum: u64 = histograms.intervals.iter().map(|i| i.executed).sum();
        assert_eq!(sum, cell.executed, "{}", cell.label);
        let worst = histograms.worst.first().unwrap().value_ns;
        assert_eq!(worst, cell.metrics[0].summary.max_ns, "{}", cell.label);
    }
}

#[case(..NOTHING_IS_LOST)]
fn histograms_add_up_and_are_exported(dir: &Path) {
    let file = file(dir, 2_500, PAIR);
    let said = say(dir, &["bench", &file]).ends_with(0);
    assert!(said.out.contains("up to 0.1 % too large"), "{}", said.out);
    let path = only_run(dir);
    adds_up(&path, 3, 2_500);
    let run = path.to_string_lossy().into_owned();
    let page = fs::read_to_string(path.join("report.html")).unwrap();
    for part in ["interval by interval", "A long run", "woke late"] {
        assert!(page.contains(part), "{part}");
    }
    let summary = summary(&path);
    has_a_row_for_each_interval(dir, &run, &summary);
    say(dir, &["export", &run, "--hdr", "-o", "logs"]).ends_with(0);
    let mut logs: Vec<String> = fs::read_dir(dir.join("logs"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    logs.sort();
    assert_eq!(
        logs,
        [
            "1-1-bare-wakeup_latency.hlog",
            "2-1-bare-wakeup_latency.hlog",
            "2-2-bare-wakeup_latency.hlog"
        ]
    );
    comes_back_with_its_metric(dir, &path);
    goes_out_as_cyclictest(dir, &run, &summary);
    // A run against itself: one round does not justify a ratio, let alone a certain one.
    let same = [
        "report",
        &run,
        "--baseline",
        &run,
        "--fail-if",
        "latency.p99 > 2x",
    ];
    let said = say(dir, &same).ends_with(1);
    assert!(said.out.contains("undecided: one round"), "{}", said.out);
    let error = say(dir, &["export", &run, "--parquet"])
        .ends_with(2)
        .error();
    assert!(error.contains("kept histograms"), "{error}");
    let error = say(dir, &["bench", "--resume", &run]).ends_with(2).error();
    assert!(error.contains("the run is complete"), "{error}");
}

/// The table is not read back: its quantiles are not those of the run.
fn has_a_row_for_each_interval(dir: &Path, run: &str, summary: &RunSummary) {
    let said = say(dir, &["export", run, "--csv", "-o", "-"]).ends_with(0);
    let of = summary
        .cells
        .iter()
        .filter_map(|cell| cell.histograms.as_ref());
    let intervals: usize = of.map(|histograms| histograms.intervals.len()).sum();
    assert_eq!(said.out.lines().count(), 1 + intervals);
    assert!(said.out.contains("wakeup_latency"), "{}", said.out);
    fs::write(dir.join("i.csv"), &said.out).unwrap();
    let refused = say(dir, &["report", "i.csv", run]).ends_with(2);
    let own = "does not read back its own table of intervals";
    assert!(refused.error().contains(own), "{}", refused.err);
}

/// Files written for HdrHistogram's tools are read back unchanged, and so is a log within the run.
fn comes_back_with_its_metric(dir: &Path, run: &Path) {
    let within = run.join("trials/1/1-bare.hlog");
    for file in [
        "logs/1-1-bare-wakeup_latency.hlog",
        &within.to_string_lossy(),
    ] {
        let said = say(dir, &["report", file, "--json"]).ends_with(0);
        let json: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        let file = &json["files"][0];
        let first = &file["distributions"][0];
        assert_eq!(first["quantity"], "wake-up latency", "{}", said.out);
        assert!(first["max_ns"].as_i64().unwrap() > 0, "{}", said.out);
        assert!(
            !file["notes"].to_string().contains("no unit"),
            "{}",
            said.out
        );
    }
    let file = "logs/1-1-bare-wakeup_latency.hlog";
    let judged = ["report", file, "--fail-if", "latency.max > 1ns"];
    say(dir, &judged).ends_with(3);
    let error = say(dir, &["report", file, "--unit", "ms"])
        .ends_with(2)
        .error();
    assert!(error.contains("timecell wrote the file, in ns"), "{error}");
}

/// One thread per cell, every job in it, the largest latency exact; and the run is drawn beside that file.
fn goes_out_as_cyclictest(dir: &Path, run: &str, summary: &RunSummary) {
    let words = ["export", run, "--buckets", "1000000"];
    for (form, file) in [
        ("--cyclictest-json", "c.json"),
        ("--cyclictest-hist", "c.txt"),
    ] {
        let words = [&words[..], &[form, "-o", file]].concat();
        let said = say(dir, &words).ends_with(0);
        assert!(said.err.contains("the run kept histograms"), "{}", said.err);
        let back = say(dir, &["report", run, file, "--json"]).ends_with(0).out;
        let back: serde_json::Value = serde_json::from_str(&back).unwrap();
        for (at, cell) in summary.cells.iter().enumerate() {
            let [ours, theirs] = [0, 1].map(|n| &back["files"][n]["distributions"][at]);
            assert_eq!(ours["counted"], cell.executed, "{}", cell.label);
            assert_eq!(ours["max_ns"], cell.metrics[0].summary.max_ns);
            assert_eq!(ours["min_ns"], cell.metrics[0].summary.min_ns);
            assert_eq!(theirs["counted"], cell.executed);
            let whole_us = cell.metrics[0].summary.max_ns / 1_000 * 1_000;
            assert_eq!(theirs["max_ns"], whole_us);
        }
    }
}

/// Starts a bench, waits until `there` holds for its run, and ends it with `signal`.
pub fn ended_by(dir: &Path, file: &str, signal: i32, there: impl Fn(&Path) -> bool) -> PathBuf {
    let mut child = begun(dir, &["bench", file]);
    eventually("the run got there", || {
        let begun = dir
            .join("runs")
            .read_dir()
            .is_ok_and(|mut runs| runs.next().is_some());
        assert!(child.try_wait().unwrap().is_none(), "ended too early");
        begun && there(&only_run(dir))
    });
    // SAFETY: our own child.
    unsafe { libc::kill(child.id().cast_signed(), signal) };
    child.wait().unwrap();
    only_run(dir)
}

/// Whether every cell of a started trial has a whole interval on disk.
fn has_intervals(run: &Path, trial: u32, cells: &[&str]) -> bool {
    cells.iter().all(|cell| {
        let log = run.join(format!("trials/{trial}.part/{cell}.hlog"));
        fs::read_to_string(log).is_ok_and(|text| text.contains("\n#timecell-interval "))
    })
}

#[case(..NOTHING_IS_LOST)]
fn killed_and_resumed_the_totals_add_up(dir: &Path) {
    let file = file(dir, JOBS, PAIR);
    let run = ended_by(dir, &file, libc::SIGKILL, |run| {
        has_intervals(run, 2, &["1-bare", "2-bare"])
    });
    assert_eq!(
        Run::open(&run).unwrap().manifest().unwrap().status,
        Status::Running
    );
    // Completed trials can be studied before the run is resumed.
    say(dir, &["report", &run.to_string_lossy()]).ends_with(0);
    let said = say(dir, &["bench", "--resume", &run.to_string_lossy()]);
    // The cells continue without their coordinator, and their rings hold two seconds: on a machine so slow that the report
    // takes longer, jobs are lost, which counts as a failure.
    let lost = summary(&run).cells.iter().any(|cell| cell.lost > 0);
    let said = said.ends_with(i32::from(lost));
    assert_eq!(said.out.contains("not scheduled in time"), lost);
    assert!(
        said.out.contains("nothing was measured from"),
        "{}",
        said.out
    );
    adds_up(&run, 3, JOBS);
    let opened = Run::open(&run).unwrap();
    let manifest = opened.manifest().unwrap();
    assert_eq!(manifest.status, Status::Complete);
    assert_eq!(manifest.resumed.len(), 1);
    assert_eq!(manifest.resumed[0].cut_off_trial, Some(2));
    assert_eq!(opened.trial_numbers().unwrap(), [1, 2, 3]);
    assert!(opened.trial(2).unwrap().cut_off.is_some());
    assert_eq!(opened.trial(3).unwrap().continues, Some(2));
    assert_eq!(summary(&run).resumed, manifest.resumed);
}

#[case(..NOTHING_IS_LOST)]
fn interrupted_and_resumed_the_totals_add_up(dir: &Path) {
    let file = file(dir, JOBS, "");
    let run = ended_by(dir, &file, libc::SIGINT, |run| {
        has_intervals(run, 1, &["1-bare"])
    });
    let opened = Run::open(&run).unwrap();
    assert_eq!(opened.manifest().unwrap().status, Status::Interrupted);
    assert_eq!(
        opened.trial(1).unwrap().cut_off.as_deref(),
        Some("interrupted")
    );
    let kept = summary(&run).cells[0].executed;
    assert!(kept > 0, "what was measured is kept");
    // It is resumed on the same machine alone, and told of another kernel.
    let path = run.join("provenance.json");
    let ours: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let with = |key: &str, value: &str| {
        let mut other = ours.clone();
        other[key] = value.into();
        fs::write(&path, other.to_string()).unwrap();
    };
    with("cpu_model", "Another 9000");
    let words = ["bench", "--resume", &run.to_string_lossy()];
    let error = say(dir, &words).ends_with(2).error();
    assert!(error.contains("begun on another machine"), "{error}");
    assert!(error.contains("Another 9000"), "{error}");
    with("kernel_release", "2.4.0");
    let said = say(dir, &words).ends_with(0);
    assert!(
        said.out.contains("the kernel changed from `2.4.0`"),
        "{}",
        said.out
    );
    adds_up(&run, 1, JOBS);
    assert!(summary(&run).cells[0].executed > kept);
}

#[case(GroupsOfItsOwn(120))]
fn a_killed_run_of_samples_goes_on_where_it_was_cut_off(dir: &Path) {
    let file = experiment(dir, &["bare", "embedded"], 2_000);
    let run = ended_by(dir, &file, libc::SIGKILL, |run| {
        run.join("trials/2").exists()
    });
    let before = fs::read(run.join("trials/1/1-bare.samples")).unwrap();
    say(dir, &["bench", "--resume", &run.to_string_lossy()]).ends_with(0);
    assert_eq!(
        before,
        fs::read(run.join("trials/1/1-bare.samples")).unwrap()
    );
    let opened = Run::open(&run).unwrap();
    let numbers = opened.trial_numbers().unwrap();
    let continued = numbers
        .iter()
        .find_map(|n| Some((*n, opened.trial(*n).unwrap().continues?)));
    match continued {
        // It was killed during a trial.
        Some((number, cut_off)) => {
            assert!(opened.trial(cut_off).unwrap().cut_off.is_some() && number == cut_off + 1);
            assert_eq!(numbers.len(), 5);
        }
        None => assert_eq!(numbers, [1, 2, 3, 4]),
    }
    assert_eq!(opened.manifest().unwrap().status, Status::Complete);
    for cell in summary(&run).cells {
        assert_eq!((cell.planned, cell.executed + cell.skipped), (4_000, 4_000));
    }
}

#[case(Root, Unhindered)]
fn a_full_disk_ends_the_run_and_it_can_be_resumed(dir: &Path) {
    let small = dir.join("runs");
    fs::create_dir(&small).unwrap();
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=4m", "none"])
        .arg(&small)
        .status()
        .unwrap();
    assert!(mounted.success());
    let file = file(dir, JOBS, "");
    let mut child = timecell()
        .current_dir(dir)
        .args(["bench", &file])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    eventually("an interval is on the disk", || {
        let begun = small.read_dir().is_ok_and(|mut runs| runs.next().is_some());
        begun && has_intervals(&only_run(dir), 1, &["1-bare"])
    });
    // Others fill the disk.
    let filler = small.join("filler");
    let _ = fs::write(&filler, vec![0u8; 8 << 20]);
    let ended = child.wait().unwrap();
    let said = std::io::read_to_string(child.stderr.take().unwrap()).unwrap();
    fs::remove_file(&filler).unwrap();
    let outcome = std::panic::catch_unwind(|| {
        assert_eq!(ended.code(), Some(1), "{said}");
        assert!(said.contains("the disk is full"), "{said}");
        let run = fs::read_dir(&small)
            .unwrap()
            .next()
            .unwrap()
            .unwrap()
            .path();
        say(dir, &["bench", "--resume", &run.to_string_lossy()]).ends_with(0);
        adds_up(&run, 1, JOBS);
    });
    let _ = std::process::Command::new("umount").arg(&small).status();
    if let Err(panic) = outcome {
        std::panic::resume_unwind(panic);
    }
}
