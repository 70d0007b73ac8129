//! Losses are reported: output that could not be written, and missing records.

use std::fs::{self, File};

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use record::samples::Header;

use crate::support::{eventually, experiment, in_its_loop, only_run, payloads, say, timecell};

#[case]
fn a_full_standard_output_fails_every_command(dir: &Path) {
    for words in [
        &["doctor"] as &[&str],
        &["doctor", "--json"],
        &["bench", "--list"],
        &["bench", "--template"],
        &["completions", "bash"],
        &["report", "--against", "list"],
    ] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = timecell()
            .current_dir(dir)
            .args(words)
            .stdout(full)
            .output();
        let output = output.expect("the binary starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{words:?}: {said}");
        assert!(
            said.starts_with("error: standard output: cannot write: No space left"),
            "{words:?}: {said}"
        );
    }
    // A reader that had enough is not a failure.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = timecell().args(["doctor"]).stdout(writer).output();
    let output = output.expect("the binary starts");
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
}

#[case]
fn a_run_without_one_of_its_trials_fails_report_and_export(dir: &Path) {
    let file = experiment(dir, &["bare"], 20);
    say(dir, &["bench", &file]);
    let run = only_run(dir);
    let path = run.to_str().unwrap();
    say(dir, &["export", "--csv", path, "-o", "all.csv"]).ends_with(0);
    fs::remove_dir_all(run.join("trials/2")).unwrap();
    let report = say(dir, &["report", path]).ends_with(1);
    assert!(
        report.out.contains("failed: trial 2 is missing"),
        "{}",
        report.out
    );
    let json = say(dir, &["report", path, "--json"]).ends_with(1);
    assert!(json.out.contains("trial 2 is missing"), "{}", json.out);
    let export = say(dir, &["export", "--csv", path, "-o", "less.csv"]).ends_with(1);
    assert!(export.err.contains("trial 2 is missing"), "{}", export.err);
    let rows = |name: &str| fs::read_to_string(dir.join(name)).unwrap().lines().count();
    assert!(rows("less.csv") > 1 && rows("less.csv") < rows("all.csv"));
}

/// The rings of a coordinator's cells, in shared memory.
fn ring_of(pid: u32) -> Option<PathBuf> {
    let places = fs::read_dir("/dev/shm").ok()?.flatten();
    let mut places = places.map(|entry| entry.path()).filter(|path| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with("timecell-") && name.contains(&pid.to_string()))
    });
    places.find_map(|place| {
        let ring = place.join("trials/1/shared/1-bare.samples");
        ring.exists().then_some(ring)
    })
}

/// Jobs that the cell has recorded, and whether it has ended its loop.
fn recorded(ring: &File) -> (u64, bool) {
    let mut bytes = [0; size_of::<Header>()];
    ring.read_exact_at(&mut bytes, 0).unwrap();
    let header = Header::from_bytes(&bytes);
    (header.count, header.complete == 1)
}

/// Records that the reader has taken, by the ring's own count.
fn taken(ring: &File) -> u64 {
    let mut bytes = [0; 8];
    ring.read_exact_at(&mut bytes, 2048).unwrap();
    u64::from_le_bytes(bytes)
}

fn turns(pid: i32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap_or_default();
    let turns = text.split_whitespace().nth(2);
    turns.and_then(|n| n.parse().ok()).unwrap_or(0)
}

#[case]
fn samples_that_found_no_room_are_counted_and_the_tail_is_not_complete() {
    const JOBS: u64 = 6_000;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("lossy.toml");
    // Relative pacing: every job runs, however slow the machine, so that the ring of 2,048 must overflow.
    let text = format!(
        "schema = 1\nname = \"lossy\"\nrounds = 1\nrecord = \"histogram\"\ninterval = \"1s\"\n[workload]\n\
         kind = \"timer\"\nperiod = \"1ms\"\npacing = \"relative\"\njobs = {JOBS}\n[[trial]]\ncells = [\"bare\"]\n"
    );
    fs::write(&file, text).unwrap();
    let child = timecell()
        .current_dir(dir.path())
        .args(["bench", "lossy.toml"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut cell = 0;
    eventually("the cell is in its loop", || {
        cell = payloads(child.id()).first().map_or(0, |(pid, _)| *pid);
        cell != 0 && in_its_loop(cell)
    });
    let ring = File::open(ring_of(child.id()).unwrap()).unwrap();
    let coordinator = child.id().cast_signed();
    // SAFETY: our own child.
    unsafe { libc::kill(coordinator, libc::SIGSTOP) };
    let full = || {
        let (count, ended) = recorded(&ring);
        ended || count.saturating_sub(taken(&ring)) >= 2_048
    };
    eventually("the ring is full", full);
    let before = turns(cell);
    eventually("the cell goes on without room", || {
        recorded(&ring).1 || turns(cell) > before + 100
    });
    // SAFETY: as above.
    unsafe { libc::kill(coordinator, libc::SIGCONT) };
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    let run = only_run(dir.path());
    let path = run.to_str().unwrap();
    let told = say(dir.path(), &["report", path, "--json"])
        .ends_with(0)
        .out;
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    let cell = &told["cells"][0];
    let lost = cell["lost"].as_u64().unwrap();
    assert!(lost > 0, "{cell}");
    assert_eq!(cell["executed"].as_u64().unwrap() + lost, JOBS);
    let intervals = cell["histograms"]["intervals"].as_array().unwrap();
    let of_intervals = intervals.iter().map(|i| i["lost"].as_u64().unwrap());
    assert_eq!(of_intervals.sum::<u64>(), lost, "and it says when");
    let tail = &told["tails"][0]["tail"];
    assert_eq!(tail["refusals"][0]["reason"], "lost", "{tail}");
    let failures = told["failures"].to_string();
    assert!(
        failures.contains("the reader was not scheduled in time"),
        "{failures}"
    );
    let in_words = said.replace(',', "");
    assert!(in_words.contains(&format!("lost {lost} samples")), "{said}");
    let page = fs::read_to_string(run.join("report.html")).unwrap();
    assert!(page.contains("were lost from the record, and the longest may be among them"));
    // No latency was an hour long, but nobody knows those that were lost.
    let judged = say(
        dir.path(),
        &["report", path, "--fail-if", "latency.max > 1h"],
    );
    assert_ne!(judged.code, Some(0));
    assert!(
        judged.out.contains("possibly including the worst"),
        "{}",
        judged.out
    );
}
