//! Verdicts on made-up runs whose figures are known.

use crate::synthetic::{Synthetic, cell, lacking, miss, taking};
use model::EngineKind::{Bare, Podman};
use study::judge::{self, Judged, Outcome, Ratios, Threshold, Why};
use study::{Compared, compare, study, unlike};
use timecell_report::{Extras, Style, compare_html, compare_table, html_with};

const TOML: &str = "schema = 1\nname = \"t\"\nquestion = \"q\"\nrounds = 3\n[workload]\nkind = \"mac\"\njobs = 300\n\
                    [[trial]]\ncells = [\"bare\"]\n[[trial]]\ncells = [\"podman\"]\n[[trial]]\ncells = [\"docker\"]\n";

/// bare takes 1,000 to 1,299 ns in every round, podman `factor` times that; docker is not there.
pub(crate) fn run(base: &std::path::Path, factor: i64) -> Synthetic {
    let mut run = Synthetic::new(base, TOML);
    let ramp: Vec<i64> = (1_000..1_300).collect();
    for round in 1..=3 {
        run.trial("bare", round, vec![cell("1-bare", Bare, &taking(&ramp))]);
        let slow: Vec<i64> = ramp.iter().map(|ns| ns * factor).collect();
        let mut podman = cell("1-podman", Podman, &taking(&slow));
        miss(&mut podman, 7, 2);
        run.trial("podman", round, vec![podman]);
    }
    lacking(&mut run.manifest);
    run.finish();
    run
}

fn parse(texts: &[&str]) -> Vec<Threshold> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

fn judged(run: &Synthetic, texts: &[&str]) -> Judged {
    let summary = study(&run.run).unwrap();
    let thresholds = parse(texts);
    let ratios = judge::within(&run.run, &summary, &thresholds).unwrap();
    judge::judge(&judge::jobs_readings(&summary, &ratios), &thresholds)
}

fn cells(judged: &Judged, place: usize) -> Vec<(&str, Outcome)> {
    judged.thresholds[place]
        .cells
        .iter()
        .map(|cell| (cell.cell.as_str(), cell.verdict))
        .collect()
}

#[test]
fn every_cell_is_judged_and_what_is_absent_is_said() {
    use Outcome::{Fails, NotApplicable, Passes, Undecided};
    let base = tempfile::tempdir().unwrap();
    let run = run(base.path(), 3);
    let judged = judged(
        &run,
        &[
            "execution.median > 2us",
            "bare.execution.max >= 1299ns",
            "execution.p99.9 > 1s",
            "skipped > 5",
            "bare.execution.median > 1150ns",
            "docker.latency.p99 > 1us",
            "latency.mean > 2us",
            "memory.max > 1MB",
        ],
    );
    assert_eq!(
        cells(&judged, 0),
        [
            ("bare", Passes),
            ("podman", Fails),
            ("docker", NotApplicable)
        ]
    );
    assert_eq!(cells(&judged, 1), [("bare", Fails)]);
    let few = &judged.thresholds[2].cells[0];
    assert_eq!((few.verdict, few.why), (NotApplicable, Some(Why::TooFew)));
    assert_eq!(few.reason, "needs 2,995 jobs, has 900");
    assert_eq!(
        cells(&judged, 3)[..2],
        [("bare", Passes), ("podman", Fails)]
    );
    assert_eq!(cells(&judged, 4), [("bare", Undecided)]);
    assert_eq!(
        judged.thresholds[5].cells[0].why,
        Some(Why::NamedAndNotMeasured)
    );
    assert_eq!(cells(&judged, 6)[0], ("bare", Passes));
    let outcomes: Vec<Outcome> = judged.thresholds.iter().map(|t| t.outcome()).collect();
    assert_eq!(
        outcomes,
        [
            Fails,
            Fails,
            NotApplicable,
            Fails,
            Undecided,
            NotApplicable,
            Passes,
            NotApplicable
        ]
    );
    assert_eq!(judged.outcome(), Fails);
}

#[test]
fn ratios_to_the_own_baseline_are_decided_by_their_intervals() {
    use Outcome::{Fails, NotApplicable, Passes};
    let base = tempfile::tempdir().unwrap();
    let run = run(base.path(), 3);
    let judged = judged(
        &run,
        &[
            "execution.median > 2x",
            "podman.execution.p99 > 3.5x",
            "response.median < 1.5x",
            "bare.execution.median > 2x",
        ],
    );
    // The baseline is not compared with itself.
    assert_eq!(
        cells(&judged, 0),
        [("podman", Fails), ("docker", NotApplicable)]
    );
    let ratio = judged.thresholds[0].cells[0].value.unwrap();
    assert!((ratio - 3.0).abs() < 0.01, "{ratio}");
    assert_eq!(cells(&judged, 1), [("podman", Passes)]);
    // (2,000 + 3 * 1,150) over (2,000 + 1,150) is 1.73.
    assert_eq!(cells(&judged, 2)[0], ("podman", Passes));
    assert_eq!(
        judged.thresholds[3].cells[0].why,
        Some(Why::NothingSelected)
    );
}

#[test]
fn cells_without_a_real_time_class_are_not_judged_as_real_time() {
    let base = tempfile::tempdir().unwrap();
    let mut run = Synthetic::new(base.path(), TOML);
    let mut other = cell("1-bare", Bare, &taking(&[1_000; 300]));
    other.record.real_time = false;
    other.record.class_got = Some("OTHER".to_owned());
    run.trial("bare", 1, vec![other]);
    let judged = judged(&run, &["execution.p99 > 1ns", "skipped > 0", "lost > 0"]);
    for place in [0, 1] {
        let bare = &judged.thresholds[place].cells[0];
        assert_eq!(bare.why, Some(Why::NotRealTime));
        assert!(
            bare.reason.contains("no real-time class"),
            "{}",
            bare.reason
        );
    }
    // A lost job is lost in any class.
    assert_eq!(judged.thresholds[2].cells[0].verdict, Outcome::Passes);
    assert_eq!(judged.outcome(), Outcome::NotApplicable);
}

#[test]
fn another_run_is_a_baseline_by_the_names_of_cells() {
    let base = tempfile::tempdir().unwrap();
    let (before, now) = (run(base.path(), 2), run(base.path(), 3));
    let thresholds = parse(&["execution.median > 1.2x", "response.p99 > 9x"]);
    let compared = compare(&before.run, &now.run).unwrap();
    let ratios = judge::between([&before.run, &now.run], &compared, &thresholds).unwrap();
    let summary = study(&now.run).unwrap();
    let judged = judge::judge(&judge::jobs_readings(&summary, &ratios), &thresholds);
    assert_eq!(
        cells(&judged, 0)[..2],
        [("bare", Outcome::Passes), ("podman", Outcome::Fails)]
    );
    assert_eq!(cells(&judged, 1)[1], ("podman", Outcome::Passes));
    assert!(judged.cautions[0].contains("not interleaved"));

    let table = timecell_report::judged_table(&judged, Style::default());
    assert!(table.contains("execution.median > 1.2x"), "{table}");
    assert!(table.contains("1.500x (1."), "{table}");
    assert!(table.contains("not interleaved"), "{table}");
    let side_by_side = Compared::Jobs(Box::new(compared.clone()));
    let extras = Extras {
        judged: Some(&judged),
        compared: Some(&side_by_side),
        beside: None,
    };
    let page = html_with(&summary, extras);
    for part in [
        "id=\"thresholds\"",
        "Thresholds: fails",
        "id=\"baseline\"",
        "ratios-of-runs-t",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert!(compare_html(&compared).contains("ratios-of-runs-t"));
    // Cautions come before the numbers.
    let text = compare_table(&compared, Style::default());
    assert!(text.find("caution:").unwrap() < text.find("second median").unwrap());
}

#[test]
fn a_baseline_of_other_work_is_known_as_unlike() {
    let parse = |text: &str| model::Experiment::parse("t", text).unwrap();
    let one = parse(TOML);
    assert_eq!(unlike(&one, &one), None);
    let jobs = parse(&TOML.replace("jobs = 300", "jobs = 3000"));
    assert_eq!(unlike(&one, &jobs), None);
    let steps = parse(&TOML.replace("jobs = 300", "jobs = 300\nsteps = 7"));
    assert_eq!(
        unlike(&one, &steps).unwrap(),
        "the work is mac (100,000 steps) there and mac (7 steps) here"
    );
    let period = parse(&TOML.replace("jobs = 300", "jobs = 300\nperiod = \"2ms\""));
    assert_eq!(
        unlike(&one, &period).unwrap(),
        "the period of bare is 1ms there and 2ms here"
    );
    let load = parse(&TOML.replace(
        "cells = [\"podman\"]",
        "name = \"podman\"\ncells = [\"podman\"]\nload = \"cpu\"",
    ));
    assert_eq!(
        unlike(&one, &load).unwrap(),
        "the load of podman is idle there and cpu here"
    );
}

#[test]
fn judging_is_the_same_every_time_and_nothing_asked_is_nothing_said() {
    let base = tempfile::tempdir().unwrap();
    let run = run(base.path(), 3);
    let texts = ["execution.p99 > 1.1x", "skew.max > 1us"];
    assert_eq!(judged(&run, &texts), judged(&run, &texts));
    let summary = study(&run.run).unwrap();
    let none = judge::judge(&judge::jobs_readings(&summary, &Ratios::default()), &[]);
    assert_eq!(none.outcome(), Outcome::Passes);
    assert_eq!(timecell_report::judged_table(&none, Style::default()), "");
}

#[test]
fn a_skew_where_no_trial_has_several_cells_is_said_of_all() {
    let base = tempfile::tempdir().unwrap();
    let judged = judged(&run(base.path(), 3), &["skew.max > 1ms"]);
    let cells = &judged.thresholds[0].cells;
    let all = cells.iter().find(|cell| cell.cell == "*").unwrap();
    assert_eq!(all.reason, "no measured trial has several cells");
}
