//! A computation on several threads, in cells.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use record::run::Run;
use record::series::{Quantity, SeriesRecord};

use crate::support::{Said, only_run, say, timecell};

#[case]
fn every_part_has_its_time_and_the_threads_share_the_work(dir: &Path) {
    let words = ["bench", "nqueens", "--quick", "--engine", "bare"];
    let said = say(dir, &words).ends_with(0);
    let path = only_run(dir);
    let record = Run::open(&path).unwrap().read::<SeriesRecord>().unwrap();
    assert_eq!(record.scenario, "nqueens");
    for part in ["1 thread", "2 threads", "4 threads"] {
        let of = |part: &str| {
            let found = record.series.iter().find(|series| series.part == part);
            found.unwrap_or_else(|| panic!("{part} is not in:\n{}", said.out))
        };
        let (wall, cpu) = (of(part), of(&format!("cpu time, {part}")));
        assert_eq!(
            (wall.unit, wall.values.len(), wall.failures.len()),
            (Quantity::Ns, 2, 0)
        );
        assert!(cpu.values.iter().all(|v| v.value > 0));
    }
    let condition = |name: &str| {
        let found = record.conditions.iter().find(|c| c.name == name);
        found.unwrap().text.clone()
    };
    assert!(condition("computation").contains("14200 ways"));
    assert!(!condition("temperature").is_empty());
    assert!(
        fs::read_to_string(path.join("report.html"))
            .unwrap()
            .contains("1 thread")
    );
}

#[case(Root, RealTime, GroupBudget(950))]
fn in_cells_in_the_real_time_class_and_under_load(dir: &Path) {
    let words = [
        "bench",
        "nqueens",
        "--rounds",
        "1",
        "--engine",
        "bare,embedded",
        "--json",
    ];
    let said = say(dir, &words).ends_with(0);
    let json: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let figures = json["figures"].as_array().unwrap();
    let of = |subject: &str, part: &str| {
        figures.iter().any(|figure| {
            figure["subject"] == subject && figure["part"] == part && figure["count"] == 1
        })
    };
    for subject in ["bare", "embedded"] {
        assert!(of(subject, "1 thread"), "{}", said.out);
        // With one cpu, none is left for the load; a note says so.
        let told = json["not_measured"].to_string();
        let loaded = "1 thread, cpu load elsewhere";
        assert!(of(subject, loaded) || told.contains(loaded), "{}", said.out);
    }
    let record = Run::open(&only_run(dir))
        .unwrap()
        .read::<SeriesRecord>()
        .unwrap();
    let class = record
        .conditions
        .iter()
        .find(|c| c.name == "class")
        .unwrap();
    assert!(class.text.starts_with("FIFO 80"), "{}", class.text);
}

#[case(Alone)]
fn threads_stay_on_the_cpus_that_they_may_use(dir: &Path) {
    let cpus = host::sched::get_affinity(0).unwrap();
    let lowest = cpus[0].to_string();
    let words = ["bench", "nqueens", "--engine", "bare", "--cpus", &lowest];
    let mut child = timecell()
        .current_dir(dir)
        .args(words)
        .args(["--rounds", "3"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // Every solving thread, observed from outside while it solves. A new thread does not have its cpus yet, so
    // the last observation of those that were observed for a while counts.
    let mut threads: BTreeMap<i32, (Instant, Duration, Vec<u32>)> = BTreeMap::new();
    while child.try_wait().unwrap().is_none() {
        for (thread, cpus) in solvers(child.id()) {
            let new = (Instant::now(), Duration::ZERO, Vec::new());
            let (first, seen_for, last) = threads.entry(thread).or_insert(new);
            *seen_for = first.elapsed();
            *last = cpus;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let said: Said = child.wait_with_output().unwrap().into();
    let said = said.ends_with(0);
    // A look takes as long as the machine allows, and a thread works for some 50 ms.
    let long = Duration::from_millis(10);
    let settled = threads
        .into_values()
        .filter(|(_, seen_for, _)| *seen_for >= long);
    let seen: BTreeSet<Vec<u32>> = settled.map(|(_, _, cpus)| cpus).collect();
    assert_eq!(seen, BTreeSet::from([vec![cpus[0]]]), "{}", said.out);
    let record = Run::open(&only_run(dir))
        .unwrap()
        .read::<SeriesRecord>()
        .unwrap();
    let condition = record.conditions.iter().find(|c| c.name == "cpus").unwrap();
    let told = format!("one of cpus {lowest} (--cpus)");
    assert!(condition.text.contains(&told), "{}", condition.text);
    for threads in ["1 thread", "4 threads"] {
        let part = format!("{threads}, cpu load elsewhere");
        let measured = record.series.iter().any(|s| s.part == part);
        // The load has the remaining cpus, however many threads there are.
        assert_eq!(measured, cpus.len() > 1, "{part}");
    }
    let error = |words: &[&str]| say(dir, words).ends_with(2).error();
    let absent = error(&["bench", "nqueens", "--cpus", "60000"]);
    assert!(
        absent.starts_with("--cpus: cpu 60000 does not exist"),
        "{absent}"
    );
    let other = error(&["bench", "startup", "--cpus", &lowest]);
    assert!(other.starts_with("--cpus: scenario `startup`"), "{other}");
}

/// Threads that solve for coordinator `pid`, released or not, with the cpus that they may use.
fn solvers(pid: u32) -> Vec<(i32, Vec<u32>)> {
    let mark = format!("timecell-{pid}-");
    let names = |dir: &str| -> Vec<i32> {
        let entries = fs::read_dir(dir).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        names.collect()
    };
    let mut found = Vec::new();
    for process in names("/proc") {
        let text = |name: &str| fs::read(format!("/proc/{process}/{name}")).unwrap_or_default();
        let ours = String::from_utf8_lossy(&text("environ")).contains(&mark);
        if !ours || !String::from_utf8_lossy(&text("cmdline")).contains("\0queens\0") {
            continue;
        }
        for thread in names(&format!("/proc/{process}/task")) {
            // The first thread waits for the others.
            if let (true, Ok(cpus)) = (thread != process, host::sched::get_affinity(thread)) {
                found.push((thread, cpus));
            }
        }
    }
    found
}
