//! Programs in the scenarios with several cells at a time, with loads, or without turns.

use std::fs;
use std::path::Path;

use model::EngineKind;
use record::run::Run;
use record::samples::{Sample, Samples};
use record::summary::Metric;

use super::sources::{LOOP, PLAIN};
use super::{built, summary};
use crate::support::{Said, only_run, say};

/// Runs `timecell bench` with these words, which succeeds.
fn bench(dir: &Path, words: &str) -> Said {
    let words: Vec<&str> = ["bench"]
        .into_iter()
        .chain(words.split_whitespace())
        .collect();
    say(dir, &words).ends_with(0)
}

#[case(Root, Program("cc"), RealTime, GroupBudget(950))]
pub fn one_is_measured_under_loads_and_in_growing_numbers(dir: &Path) {
    built(dir, "plain", PLAIN);
    let latency =
        "latency --engine bare --program ./plain --rounds 1 --jobs 14 --period 5ms -- 1000";
    bench(dir, latency);
    let cells = summary(dir).cells;
    assert_eq!(cells.len(), 5, "idle twice, and three loads");
    for cell in &cells {
        assert_eq!(cell.executed + cell.skipped, 14, "{}", cell.label);
        assert!(cell.cpu_time_per_activation_ns.unwrap() > 10_000.0);
    }
    fs::remove_dir_all(dir.join("runs")).unwrap();
    let scale = "scale --counts 1,3 --program ./plain --jobs 20 -- 1000";
    bench(dir, scale);
    let run = Run::open(&only_run(dir)).unwrap();
    for (number, cells) in [(1, 1), (2, 3)] {
        let trial = run.trial(number).unwrap();
        let crowd = trial.crowd.unwrap();
        assert_eq!((crowd.asked, crowd.finished), (cells, cells));
        for cell in &trial.cells {
            let samples = run.samples(number, &cell.id).unwrap().unwrap();
            assert_eq!(samples.header.planned, 20);
            assert_eq!(samples.unexplained(), 0);
            // Starting a process takes longer than this on any machine.
            let executed = samples.samples.iter().map(|s| s.end_ns - s.start_ns);
            assert!(executed.min().unwrap() > 50_000);
        }
    }
}

#[case(Root, Program("cc"), Program("podman"), RealTime, GroupsOfItsOwn(280))]
pub fn one_runs_in_several_containers_at_a_time(dir: &Path) {
    built(dir, "plain", PLAIN);
    let words = "concurrency --program ./plain --rounds 1 --jobs 14 --period 5ms -- 1000";
    let said = bench(dir, words);
    let cells = summary(dir).cells;
    for (trial, count) in [
        ("one-rootful", 1),
        ("one-rootful-again", 1),
        ("two-rootful", 2),
    ] {
        let own: Vec<_> = cells.iter().filter(|cell| cell.trial == trial).collect();
        assert_eq!(own.len(), count, "{trial}: {}", said.out);
        for cell in own {
            assert_eq!(cell.executed + cell.skipped, 14, "{}", cell.label);
            assert!(cell.cpu_time_per_activation_ns.unwrap() > 10_000.0);
        }
    }
}

/// A program that reports its jobs, in every engine that makes containers with its own runtime, in turns with itself.
#[case(Root, Program("cc"), Program("crun"), RealTime, GroupBudget(950))]
pub fn one_that_reports_does_so_in_crun_runc_and_podman(dir: &Path) {
    built(dir, "loop", LOOP);
    let engines = [
        EngineKind::Crun,
        EngineKind::Runc,
        EngineKind::Podman,
        EngineKind::PodmanRootless,
    ];
    let words = "overhead --engine bare,crun,runc,podman,podman-rootless --program ./loop --rounds 2 --jobs 70 -- 0";
    let said = bench(dir, words);
    assert!(said.out.contains("reports its jobs"), "{}", said.out);
    let seen = summary(dir);
    for engine in engines {
        // A runtime that this machine lacks is reported, and nothing else keeps one from being measured.
        let absent = |not: &record::summary::NotMeasured| not.trial == engine.to_string();
        if let Some(absent) = seen.not_measured.iter().find(|not| absent(not)) {
            assert_ne!(engine, EngineKind::Crun, "{}", absent.reason);
            continue;
        }
        assert!(
            seen.cells.iter().any(|cell| cell.engine == engine),
            "{engine}: {}",
            said.out
        );
    }
    reports_itself(dir, 140, &said);
}

/// The same beside others of its kind, under loads, and in growing numbers.
#[case(
    Root,
    Program("cc"),
    Program("crun"),
    Program("podman"),
    RealTime,
    GroupBudget(950)
)]
pub fn one_that_reports_does_so_in_every_scenario(dir: &Path) {
    built(dir, "loop", LOOP);
    let again = || fs::remove_dir_all(dir.join("runs")).unwrap();
    let said = bench(
        dir,
        "concurrency --program ./loop --rounds 1 --jobs 70 -- 0",
    );
    let seen = summary(dir);
    for (trial, count) in [("one-rootful", 1), ("two-rootful", 2)] {
        let own = seen.cells.iter().filter(|cell| cell.trial == trial);
        assert_eq!(own.count(), count, "{trial}: {}", said.out);
    }
    reports_itself(dir, 70, &said);
    again();

    let said = bench(
        dir,
        "latency --engine bare,crun --program ./loop --rounds 1 --jobs 70 -- 0",
    );
    let seen = summary(dir);
    assert_eq!(
        seen.cells.len(),
        9,
        "idle thrice, and three loads: {}",
        said.out
    );
    reports_itself(dir, 70, &said);
    again();

    let said = bench(dir, "scale --counts 1,3 --program ./loop --jobs 50 -- 0");
    let run = Run::open(&only_run(dir)).unwrap();
    for (number, cells) in [(1, 1), (2, 3)] {
        let trial = run.trial(number).unwrap();
        let crowd = trial.crowd.unwrap();
        assert_eq!(
            (crowd.asked, crowd.finished),
            (cells, cells),
            "{}",
            said.out
        );
        for cell in &trial.cells {
            let samples = run.samples(number, &cell.id).unwrap().unwrap();
            assert_eq!(samples.unexplained(), 0);
            let header = &samples.header;
            assert_eq!(samples.samples.len() as u64 + header.skipped, 50);
            // The program's own releases, 2 ms apart, none before all were there.
            assert!(samples.samples[0].release_ns >= header.go_ns);
            for pair in samples.samples.windows(2) {
                let steps = i64::from(pair[1].index - pair[0].index);
                let off = pair[1].release_ns - pair[0].release_ns - steps * 2_000_000;
                assert!(off.abs() <= 1_000_000, "{pair:?}");
            }
        }
    }
}

/// Activations of a program with a period of 2 ms that passed while the job before them was delayed, by the times of that job.
fn held_up(samples: &Samples) -> u64 {
    let passed =
        |job: &Sample| u64::try_from((job.end_ns - job.release_ns) / 2_000_000).unwrap_or(0);
    let all = &samples.samples;
    let planned = samples.header.planned;
    let ends = (all.iter().skip(1).map(|next| u64::from(next.index))).chain([planned]);
    let between = all.iter().zip(ends).map(|(job, next)| {
        let skipped = next.saturating_sub(u64::from(job.index) + 1);
        skipped.min(passed(job))
    });
    between.sum()
}

/// Whether every cell of the run has the jobs of a program with a period of 2 ms that does next to nothing in each, as it reports
/// them.
fn reports_itself(dir: &Path, planned: u64, said: &Said) {
    let (seen, run) = (summary(dir), Run::open(&only_run(dir)).unwrap());
    assert!(seen.failures.is_empty(), "{:?}", seen.failures);
    let numbers = run.trial_numbers().unwrap();
    let trials: Vec<_> = numbers.into_iter().map(|n| run.trial(n).unwrap()).collect();
    for cell in &seen.cells {
        assert_eq!(cell.executed + cell.skipped, planned, "{}", cell.label);
        // Jobs that a stalled machine keeps from being executed are no fault of the program. Trials that take turns stall
        // together, and have more of them.
        let own = (trials.iter()).filter(|trial| trial.name == cell.trial && trial.turns.is_none());
        let held_up: u64 = own
            .map(|trial| held_up(&run.samples(trial.number, &cell.cell).unwrap().unwrap()))
            .sum();
        let accounted = cell.executed + held_up;
        assert!(
            cell.executed > 0 && accounted * 2 > planned,
            "{}: {}",
            cell.label,
            said.out
        );
        assert_eq!(cell.period_ns, Some(2_000_000), "{}", cell.label);
        let execution = (cell.metrics.iter()).find(|m| m.metric == Metric::ExecutionTime);
        // An execution of the whole program would take longer than this on any machine.
        let median = execution.unwrap().summary.median_ns;
        assert!((0..50_000).contains(&median), "{}: {median}", cell.label);
    }
}
