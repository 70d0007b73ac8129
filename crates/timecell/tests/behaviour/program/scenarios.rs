//! Programs in the scenarios that have several cells at a time, or loads, or no turns.

use std::fs;
use std::path::Path;

use record::run::Run;

use super::sources::PLAIN;
use super::{built, summary};
use crate::support::{Said, only_run, say};

/// `timecell bench` with these words, which ends well.
fn bench(dir: &Path, words: &str) -> Said {
    let words: Vec<&str> = ["bench"]
        .into_iter()
        .chain(words.split_whitespace())
        .collect();
    say(dir, &words).ends_with(0)
}

pub fn in_scenarios() {
    let dir = tempfile::tempdir().unwrap();
    built(dir.path(), "plain", PLAIN);
    let latency =
        "latency --engine bare --program ./plain --rounds 1 --jobs 14 --period 5ms -- 1000";
    bench(dir.path(), latency);
    let cells = summary(dir.path()).cells;
    assert_eq!(cells.len(), 5, "idle twice, and three loads");
    for cell in &cells {
        assert_eq!(cell.executed + cell.missed, 14, "{}", cell.label);
        assert!(cell.cpu_time_per_activation_ns.unwrap() > 10_000.0);
    }
    fs::remove_dir_all(dir.path().join("runs")).unwrap();
    let scale = "scale --counts 1,3 --program ./plain --jobs 20 -- 1000";
    bench(dir.path(), scale);
    let run = Run::open(&only_run(dir.path())).unwrap();
    for (number, cells) in [(1, 1), (2, 3)] {
        let trial = run.trial(number).unwrap();
        let crowd = trial.crowd.unwrap();
        assert_eq!((crowd.asked, crowd.finished), (cells, cells));
        for cell in &trial.cells {
            let samples = run.samples(number, &cell.id).unwrap().unwrap();
            assert_eq!(samples.header.planned, 20);
            assert_eq!(samples.unexplained(), 0);
            // To start a process takes longer than this on any machine.
            let executed = samples.samples.iter().map(|s| s.end_ns - s.start_ns);
            assert!(executed.min().unwrap() > 50_000);
        }
    }
}

pub fn together() {
    let dir = tempfile::tempdir().unwrap();
    built(dir.path(), "plain", PLAIN);
    let words = "concurrency --program ./plain --rounds 1 --jobs 14 --period 5ms -- 1000";
    let said = bench(dir.path(), words);
    let cells = summary(dir.path()).cells;
    for (trial, count) in [
        ("one-rootful", 1),
        ("one-rootful-again", 1),
        ("two-rootful", 2),
    ] {
        let own: Vec<_> = cells.iter().filter(|cell| cell.trial == trial).collect();
        assert_eq!(own.len(), count, "{trial}: {}", said.out);
        for cell in own {
            assert_eq!(cell.executed + cell.missed, 14, "{}", cell.label);
            assert!(cell.cpu_time_per_activation_ns.unwrap() > 10_000.0);
        }
    }
}
