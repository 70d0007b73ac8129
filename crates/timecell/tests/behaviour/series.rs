//! Scenarios that repeat single measurements: on real cells, checked through their records.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use record::run::{Run, Status};
use record::series::{Quantity, SeriesRecord, SeriesSummary};

use crate::support::{
    begins_with_its_place, begun, eventually, only_run, say, timecell, traces_of,
};

fn record(dir: &std::path::Path) -> SeriesRecord {
    Run::open(&only_run(dir))
        .unwrap()
        .read::<SeriesRecord>()
        .unwrap()
}

/// Shares add up to the part that they are shares of, in every round.
pub fn assert_sums(record: &SeriesRecord) {
    for whole in record.series.iter().filter(|s| s.of.is_none()) {
        let shares: Vec<_> = record
            .series
            .iter()
            .filter(|s| s.subject == whole.subject && s.of.as_deref() == Some(&whole.part))
            .collect();
        for value in whole.values.iter().filter(|_| !shares.is_empty()) {
            let same = shares.iter().flat_map(|s| &s.values);
            let sum: i64 = same
                .filter(|v| v.order == value.order)
                .map(|v| v.value)
                .sum();
            assert_eq!(sum, value.value, "{} {}", whole.subject, whole.part);
        }
    }
}

#[case(Root)]
fn startup_measures_every_launcher_once_a_round(dir: &Path) {
    let mut child = timecell()
        .current_dir(dir)
        .args(["bench", "startup", "--rounds", "2"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let traces = traces_of(child.id());
    assert!(traces.is_empty(), "{traces:#?}");
    let record = record(dir);
    let subjects = record.subjects();
    for always in ["fork+exec", "clone3", "embedded"] {
        assert!(subjects.contains(&always), "{subjects:?}");
    }
    for launcher in [
        "crun",
        "crun in steps",
        "runc",
        "podman",
        "docker",
        "crun rootless",
    ] {
        let absent = record.not_measured.iter().any(|n| n.trial == launcher);
        assert!(absent != subjects.contains(&launcher), "{launcher}");
    }
    assert_sums(&record);
    for whole in record.series.iter().filter(|s| s.of.is_none()) {
        let rounds: Vec<u32> = whole.values.iter().map(|v| v.round).collect();
        assert_eq!(rounds, [1, 2], "{} {}", whole.subject, whole.part);
        assert!(whole.values.iter().all(|v| v.value > 0));
    }
    // Each round starts with another subject.
    let order = |subject: &str| -> Vec<u32> {
        let found = record.series.iter().find(|s| s.subject == subject).unwrap();
        found.values.iter().map(|v| v.order).collect()
    };
    let count = subjects.len() as u32;
    assert_eq!(order("fork+exec"), [1, 2 * count]);
    assert_eq!(order("clone3"), [2, count + 1]);
}

#[case(Root, Program("crun"))]
fn startup_sweeps_over_sizes(dir: &Path) {
    let words = ["bench", "startup", "--engine", "bare,embedded,crun"];
    let sweep = ["--sweep", "vcpus=1", "--sweep", "memory=128MiB,256MiB"];
    let mut all = [&words[..], &["--rounds", "3"], &sweep].concat();
    let said = say(dir, &all).ends_with(0);
    let record = record(dir);
    assert_sums(&record);
    let subjects = record.subjects();
    for kind in ["embedded", "crun", "crun in steps"] {
        for size in ["1 vcpu, 128MiB", "1 vcpu, 256MiB"] {
            let subject = format!("{kind}, {size}");
            assert!(subjects.contains(&subject.as_str()), "{subjects:?}");
        }
    }
    assert_eq!(record.sweep.len(), subjects.len());
    assert_eq!(record.sweep[1].size.memory_bytes, Some(256 << 20));
    let unlimited = (record.not_measured.iter()).any(|none| none.trial == "fork+exec");
    assert!(unlimited, "{:?}", record.not_measured);
    assert!(said.out.contains("against its first size"), "{}", said.out);
    let path = only_run(dir);
    let page = fs::read_to_string(path.join("report.html")).unwrap();
    assert!(page.contains("Crun: request to gone by size"));
    let name = path.to_string_lossy().into_owned();
    let said = say(dir, &["export", "--csv", &name, "-o", "-"]).ends_with(0);
    assert!(
        said.out
            .lines()
            .skip(1)
            .all(|line| line.contains(",1,134217728") || line.contains(",1,268435456"))
    );

    // What is missing is measured when the run is resumed, with the same sizes.
    let file = path.join("series.json");
    let mut cut: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    for series in cut["series"].as_array_mut().unwrap() {
        let values = series["values"].as_array_mut().unwrap();
        values.retain(|value| value["round"] != 3);
    }
    fs::write(&file, cut.to_string()).unwrap();
    let state = path.join("run.json");
    let text = fs::read_to_string(&state)
        .unwrap()
        .replace("\"complete\"", "\"interrupted\"");
    fs::write(&state, text).unwrap();
    say(dir, &["bench", "--resume", &name]).ends_with(0);
    assert!(
        self::record(dir)
            .series
            .iter()
            .all(|series| series.values.len() == 3)
    );

    for (axis, why) in [
        ("vcpus=", "`vcpus=` lacks a value"),
        ("cpus=1", "did you mean `vcpus`"),
        ("memory=1000000GiB", "is more memory than the"),
    ] {
        all.truncate(words.len());
        all.extend(["--sweep", axis]);
        let told = say(dir, &all).ends_with(2).error();
        assert!(told.contains(why), "{told}");
    }
}

#[case(Root)]
fn recovery_brings_a_cell_back_after_every_fault(dir: &Path) {
    let words = [
        "bench",
        "recovery",
        "--rounds",
        "1",
        "--engine",
        "bare,embedded,podman",
    ];
    say(dir, &words).ends_with(0);
    let record = record(dir);
    assert_sums(&record);
    let value = |subject: &str, part: &str| {
        let found = record
            .series
            .iter()
            .find(|s| s.subject == subject && s.part == part);
        found.map(|s| s.values[0].value)
    };
    for part in ["payload killed", "payload wedged"] {
        assert!(value("bare", part).is_some() && value("embedded", part).is_some());
    }
    assert!(value("embedded attached", "runtime killed").is_some());
    assert!(
        record
            .not_measured
            .iter()
            .any(|n| n.trial == "bare, runtime killed"),
        "{:?}",
        record.not_measured
    );
    // A wedged payload is not noticed before its heartbeat is overdue: this is the parameter, not a measured time.
    assert!(value("bare", "payload wedged: detection").unwrap() >= 10_000_000);
}

#[case(Root, GroupsOfItsOwn(120))]
fn footprint_counts_payload_and_helpers(dir: &Path) {
    let words = [
        "bench",
        "footprint",
        "--rounds",
        "1",
        "--engine",
        "bare,embedded,crun",
        "--fail-if",
        "memory.max > 1GB",
        "--fail-if",
        "*/PSS.memory.min > 1B",
    ];
    let said = say(dir, &words).ends_with(3);
    assert!(said.out.contains("thresholds"), "{}", said.out);
    let page = fs::read_to_string(only_run(dir).join("report.html")).unwrap();
    assert!(page.contains("Thresholds: fails"));
    let record = record(dir);
    assert_sums(&record);
    assert!(record.series.iter().all(|s| s.unit == Quantity::Bytes));
    let share = |subject: &str, part: &str| {
        record
            .series
            .iter()
            .any(|s| s.subject == subject && s.part == part)
    };
    assert!(share("bare", "PSS of payload"), "{}", said.out);
    assert!(!share("embedded", "PSS of embedded runtime"));
    assert!(
        share("embedded attached", "PSS of embedded runtime"),
        "{}",
        said.out
    );
}

#[case]
fn a_run_is_reported_and_exported_again(dir: &Path) {
    let words = [
        "bench", "startup", "--rounds", "7", "--engine", "bare", "--json",
    ];
    let said = say(dir, &words).ends_with(0);
    let summary: SeriesSummary = serde_json::from_str(&said.out).unwrap();
    let path = only_run(dir);
    let run = Run::open(&path).unwrap();
    assert_eq!(summary, run.read::<SeriesSummary>().unwrap());
    let whole = summary
        .figures
        .iter()
        .find(|f| f.part == "request to gone")
        .unwrap();
    assert_eq!((whole.subject.as_str(), whole.count), ("fork+exec", 7));
    assert!(whole.median_interval.is_some() && whole.p90.is_none());

    let name = path.to_string_lossy().into_owned();
    fs::remove_file(path.join("report.html")).unwrap();
    let said = say(dir, &["report", &name, "--figures", "pictures"]).ends_with(0);
    assert!(said.out.contains("Request to gone"), "{}", said.out);
    assert!(path.join("report.html").exists());
    assert!(fs::read_dir(dir.join("pictures")).unwrap().count() > 0);
    let said = say(dir, &["export", "--csv", &name, "-o", "-"]).ends_with(0);
    let values: usize = run
        .read::<SeriesRecord>()
        .unwrap()
        .series
        .iter()
        .map(|s| s.values.len())
        .sum();
    assert_eq!(said.out.lines().count(), values + 1);
    assert!(said.out.starts_with(
        "run,host,scenario,subject,part,share_of,unit,round,order,value,vcpus,memory_bytes\n"
    ));
    assert!(begins_with_its_place(&path, said.out.lines().skip(1)));
    fs::write(dir.join("values.csv"), &said.out).unwrap();
    let refused = say(dir, &["report", "values.csv"]).ends_with(2);
    let own = "does not read back its own table of single measurements";
    assert!(refused.error().contains(own), "{}", refused.error());
    crate::parquet::has_the_rows_of(dir, &name, &said.out);
    // Beside itself it is the same, and its times are judged by their names.
    let said = say(dir, &["report", &name, &name]).ends_with(0);
    assert!(said.out.contains("the same"), "{}", said.out);
    assert!(dir.join("comparison.html").is_file());
    let said = say(dir, &["report", &name, "--fail-if", "time.max > 1ns"]).ends_with(3);
    assert!(said.out.contains("time.max > 1ns"), "{}", said.out);
    let figures = say(dir, &["export", "--statistics", &name, "-o", "-"]).ends_with(0);
    assert!(
        figures
            .out
            .starts_with("run,host,subject,figure,unit,value,low,high,why\n"),
        "{}",
        figures.out
    );
    assert!(figures.out.contains(",time.max,ns,"), "{}", figures.out);
    assert!(!dir.join("x.parquet").exists());
    // A truncated record is reported in one sentence.
    let text = fs::read_to_string(path.join("series.json")).unwrap();
    fs::write(path.join("series.json"), &text[..text.len() / 2]).unwrap();
    let why = say(dir, &["report", &name]).ends_with(2).error();
    assert!(why.contains("series.json: cut short"), "{why}");
}

/// Starts a long run of `startup` with podman and waits until it is under way.
fn started(dir: &std::path::Path) -> std::process::Child {
    let child = begun(
        dir,
        &[
            "bench",
            "startup",
            "--rounds",
            "10000",
            "--engine",
            "crun,podman",
        ],
    );
    let place = format!("timecell-{}-{}", 0, child.id());
    let page = std::path::Path::new("/dev/shm")
        .join(place)
        .join("trials/0/shared/life");
    eventually("a payload has run", || {
        fs::read(&page).is_ok_and(|bytes| bytes.iter().any(|byte| *byte != 0))
    });
    child
}

#[case(Root)]
fn ctrl_c_keeps_what_was_measured(dir: &Path) {
    let mut child = started(dir);
    // SAFETY: our own child.
    unsafe { libc::kill(child.id().cast_signed(), libc::SIGINT) };
    assert_eq!(child.wait().unwrap().code(), Some(1));
    let traces = traces_of(child.id());
    assert!(traces.is_empty(), "{traces:#?}");
    let run = Run::open(&only_run(dir)).unwrap();
    let manifest = run.manifest().unwrap();
    assert_eq!(manifest.status, Status::Interrupted);
    let values = run
        .read::<SeriesRecord>()
        .unwrap()
        .series
        .iter()
        .map(|s| s.values.len())
        .max();
    assert!(manifest.trials_done == 0 || values > Some(0));
}

/// How the only run in `dir` ended, by its own record.
fn status(dir: &Path) -> Status {
    let run = Run::open(&only_run(dir)).unwrap();
    run.manifest().unwrap().status
}

#[case(Root)]
fn clean_removes_what_a_killed_run_left(dir: &Path) {
    let mut child = started(dir);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(
        !traces_of(child.id()).is_empty(),
        "the test sees nothing to remove"
    );
    let said = say(dir, &["clean"]).ends_with(0);
    assert!(
        said.out.contains(&format!("process {}", child.id())),
        "{}",
        said.out
    );
    eventually("no trace is left", || traces_of(child.id()).is_empty());
    assert_eq!(status(dir), Status::Killed);
}
