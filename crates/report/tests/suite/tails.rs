//! Tails from the record to the page: a curve where the jobs pass, the reason where they do not.

use crate::synthetic::{Chance, Synthetic, cell, taking};
use model::EngineKind::{Bare, Crun, Podman};
use record::summary::Metric;
use stats::Refusal;
use study::{JobsStudy, study};
use timecell_report::{Style, figures, findings, html, table};

const TOML: &str = "schema = 1\nname = \"t\"\nquestion = \"q\"\nrounds = 3\n[workload]\nkind = \"mac\"\njobs = 2000\nperiod = \"1ms\"\n\
                    [[trial]]\ncells = [\"bare\"]\n[[trial]]\ncells = [\"podman\"]\n[[trial]]\ncells = [\"crun\"]\n";

/// bare: exponential jobs; podman: the same with a spike of 2 jobs every 125; crun: 300 us, now and then 20 ms for a while.
fn made(base: &std::path::Path) -> (Synthetic, JobsStudy) {
    let mut run = Synthetic::new(base, TOML);
    let mut chance = Chance(3);
    let mut slow = false;
    for round in 1..=3 {
        let plain = |chance: &mut Chance| 270_000 + (-4_000.0 * chance.unit().ln()) as i64;
        let bare: Vec<i64> = (0..2_000).map(|_| plain(&mut chance)).collect();
        let spiky: Vec<i64> = (0..2_000)
            .map(|job| plain(&mut chance) + if job % 125 < 2 { 500_000 } else { 0 })
            .collect();
        let stalling: Vec<i64> = (0..2_000)
            .map(|_| {
                slow ^= chance.unit() < if slow { 0.03 } else { 0.005 };
                plain(&mut chance) * if slow { 70 } else { 1 }
            })
            .collect();
        for (name, engine, times) in [
            ("bare", Bare, bare),
            ("podman", Podman, spiky),
            ("crun", Crun, stalling),
        ] {
            let one = cell(&format!("1-{name}"), engine, &taking(&times));
            run.trial(name, round, vec![one]);
        }
    }
    let summary = study(&run.run).unwrap();
    (run, summary)
}

#[test]
fn a_curve_or_the_reason() {
    let base = tempfile::tempdir().unwrap();
    let (run, summary) = made(base.path());
    let tail = |label: &str| {
        let mut tails = summary.tails.iter();
        let found = tails.find(|t| t.label == label && t.metric == Metric::ExecutionTime);
        &found.unwrap().tail
    };
    assert_eq!(summary.tails.len(), 9);
    assert_eq!(summary.tails[0].period_ns, 1_000_000);
    let last = tail("bare").curve.last().unwrap();
    assert!((last.probability * 60_000.0 - 1.0).abs() < 1e-9);
    let truth = 270_000.0 + 4_000.0 * 60_000.0_f64.ln();
    assert!((last.low_ns..last.high_ns).contains(&truth), "{last:?}");
    assert!(tail("podman").refusals.contains(&Refusal::Periodic));
    let spikes = tail("podman").spikes.unwrap();
    assert!((spikes.period_jobs - 125.0).abs() < 0.1, "{spikes:?}");
    assert!((spikes.share - 0.016).abs() < 0.001, "{spikes:?}");
    assert!(tail("crun").refusals.contains(&Refusal::OwnStates));

    let said = findings(&summary).join("\n");
    for part in [
        "A pWCET curve is given for 1 of 3 cells: bare, one job in 60,000 takes more than",
        "podman: the execution time spikes to",
        "every 125.0 jobs (125.0 ms), for 2 jobs each: 48 of 48 spikes keep to this period, 1.60 % of all jobs",
        "Seen once per job, one every 0.992 ms or every 1.008 ms would look the same.",
        "crun: the execution time alternates between two states of its own, with medians of",
    ] {
        assert!(said.contains(part), "{part} in {said}");
    }
    let lines = table(&summary, Style::default());
    for part in [
        "podman",
        "spikes to",
        "two states of its own: ",
        "pWCET: one job in 60,000",
    ] {
        assert!(lines.contains(part), "{part} in {lines}");
    }
    let page = html(&summary);
    for part in [
        "id=\"tail\"",
        "id=\"tail-t\"",
        "Spikes that come periodically",
        "The spikes are periodic, so long jobs are not independent events.",
        "Two states alternate, so jobs do not share one distribution.",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("NaN"));
    let files = figures(&summary);
    assert!(
        files
            .iter()
            .any(|(name, svg)| name == "tail.svg" && svg.contains("box f0"))
    );
    let text = serde_json_of(&run, &summary);
    assert!(text.contains("\"tails\""));
}

/// A spike of 5 us every 50 jobs is found, but moves no deadline of a millisecond.
#[test]
fn what_hardly_matters_is_left_to_the_page() {
    let base = tempfile::tempdir().unwrap();
    let mut run = Synthetic::new(base.path(), TOML);
    let mut chance = Chance(5);
    for round in 1..=3 {
        let times: Vec<i64> = (0..2_000)
            .map(|job| {
                let plain = 50_000 + (100.0 * chance.unit()) as i64;
                plain + if job % 50 == 0 { 5_000 } else { 0 }
            })
            .collect();
        run.trial("bare", round, vec![cell("1-bare", Bare, &taking(&times))]);
    }
    let summary = study(&run.run).unwrap();
    assert!(summary.tails[0].tail.spikes.is_some());
    let lines = table(&summary, Style::default());
    assert!(!lines.contains("spikes to"), "{lines}");
    let note = "note: report.html has 1 pattern of less than 1 % of the period or of jobs";
    assert!(lines.contains(note), "{lines}");
    let said = findings(&summary).join("\n");
    assert!(
        said.contains("also has 1 such pattern of less than 1 % of the period"),
        "{said}"
    );
    let page = html(&summary);
    assert!(page.contains("Spikes that come periodically"));
}

/// The summary that the run keeps.
fn serde_json_of(run: &Synthetic, summary: &JobsStudy) -> String {
    run.run.write(&summary.summary).unwrap();
    std::fs::read_to_string(run.dir.join("summary.json")).unwrap()
}

#[test]
fn few_jobs_have_no_tail() {
    let base = tempfile::tempdir().unwrap();
    let mut run = Synthetic::new(base.path(), TOML);
    run.trial("bare", 1, vec![cell("1-bare", Bare, &taking(&[1_000; 50]))]);
    let summary = study(&run.run).unwrap();
    assert_eq!(
        summary.tails[0].tail.refusals,
        [Refusal::FewJobs {
            jobs: 50,
            needed: 1_000
        }]
    );
    let page = html(&summary);
    assert!(page.contains("largest: 50."));
    assert!(!findings(&summary).join(" ").contains("pWCET"));
}

#[test]
fn cells_with_too_few_jobs_are_counted_beside_those_without_a_curve() {
    let base = tempfile::tempdir().unwrap();
    let mut run = Synthetic::new(base.path(), TOML);
    // As many jobs as a curve needs, but every one alike; the other cell has few.
    run.trial(
        "bare",
        1,
        vec![cell("1-bare", Bare, &taking(&[1_000; 1_500]))],
    );
    run.trial(
        "podman",
        1,
        vec![cell("1-podman", Podman, &taking(&[1_000; 50]))],
    );
    let said = findings(&study(&run.run).unwrap()).join("\n");
    let part = "No pWCET curve is given for any of 1 cell that has the 1,000 jobs for it (1 more with fewer)";
    assert!(said.contains(part), "{said}");
}

#[test]
fn bad_checks_are_not_called_warnings() {
    let base = tempfile::tempdir().unwrap();
    let mut machine = crate::synthetic::provenance();
    machine.checks[0].state = host::doctor::State::Bad;
    let mut run = Synthetic::with(base.path(), TOML, &machine);
    run.trial("bare", 1, vec![cell("1-bare", Bare, &taking(&[1_000; 50]))]);
    let page = html(&study(&run.run).unwrap());
    assert!(page.contains("1 warning, 1 bad in 5 checks"));
}
