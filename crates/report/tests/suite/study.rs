//! `study` of small runs, against numbers worked out by hand.

use crate::synthetic::{GO, Synthetic, cell, lacking, miss, taking};
use model::EngineKind::{Bare, Crun, Podman};
use proptest::prelude::*;
use record::run::Status;
use record::summary::{Metric, RunSummary};
use stats::Verdict;
use study::study;
use timecell_report::{Drawn, Style, studied};

const MAC: &str = "schema = 1\nname = \"t\"\nquestion = \"q\"\nrounds = 3\n[workload]\nkind = \"mac\"\njobs = 10\n\
                   [[trial]]\ncells = [\"bare\"]\n[[trial]]\ncells = [\"podman\"]\n\
                   [[trial]]\nname = \"pair\"\ncells = [\"podman\", \"crun\"]\n";
const TIMER: &str = "schema = 1\nname = \"t\"\nquestion = \"q\"\nrounds = 1\n[workload]\nkind = \"timer\"\njobs = 10\n\
                     [[trial]]\ncells = [\"bare\"]\n";

#[test]
fn rounds_are_pooled_and_metrics_follow_the_work() {
    let base = tempfile::tempdir().unwrap();
    let mut run = Synthetic::new(base.path(), MAC);
    for (round, times) in [[100, 200, 300], [110, 210, 310], [120, 220, 1_000]]
        .iter()
        .enumerate()
    {
        let mut one = cell("1-bare", Bare, &taking(times));
        one.record.create_ns = Some([5, 7, 6][round]);
        one.record.cpu = [1, 0, 1][round];
        run.trial("bare", round as u32 + 1, vec![one]);
    }
    let summary = study(&run.run).unwrap();
    let bare = &summary.cells[0];
    assert_eq!(
        (bare.label.as_str(), bare.rounds, bare.class.as_str()),
        ("bare", 3, "FIFO 80")
    );
    assert_eq!(
        (bare.planned, bare.executed, bare.skipped, bare.unexplained),
        (9, 9, 0, 0)
    );
    assert_eq!(bare.create_median_ns, Some(6));
    assert_eq!(bare.cpus, [0, 1]);
    assert_eq!(bare.cpu_time_per_activation_ns, Some(280_000.0));
    assert_eq!((bare.clock_cost_ns, bare.loop_cost_ns), (24, 61));
    let metrics: Vec<Metric> = bare.metrics.iter().map(|m| m.metric).collect();
    assert_eq!(
        metrics,
        [
            Metric::ExecutionTime,
            Metric::WakeupLatency,
            Metric::ResponseTime
        ]
    );
    let execution = &bare.metrics[0];
    assert_eq!(execution.summary.median_ns, 210);
    assert_eq!(execution.summary.max_ns, 1_000);
    assert_eq!(execution.round_medians_ns, [200, 210, 220]);
    assert_eq!(bare.metrics[1].summary.median_ns, 2_000);
    assert_eq!(bare.metrics[2].summary.median_ns, 2_210);
    // Trials without a record are named, not skipped.
    let absent: Vec<&str> = summary
        .not_measured
        .iter()
        .map(|n| n.trial.as_str())
        .collect();
    assert_eq!(absent, ["podman", "pair"]);
    assert!(bare.against_baseline.is_none() && summary.real_time);

    let mut timer = Synthetic::new(base.path(), TIMER);
    timer.trial(
        "bare",
        1,
        vec![cell(
            "1-bare",
            Bare,
            &[(GO, GO - 40, GO - 40), (GO, GO + 60, GO + 60)],
        )],
    );
    let summary = study(&timer.run).unwrap();
    assert_eq!(summary.primary, Metric::WakeupLatency);
    assert_eq!(summary.cells[0].metrics.len(), 1);
    assert_eq!(summary.cells[0].metrics[0].summary.min_ns, -40);
}

#[test]
fn only_rounds_that_both_have_are_compared() {
    let base = tempfile::tempdir().unwrap();
    let mut run = Synthetic::new(base.path(), MAC);
    for round in [1, 2, 3] {
        run.trial(
            "bare",
            round,
            vec![cell("1-bare", Bare, &taking(&[1_000; 20]))],
        );
    }
    // Round 2 is missing, and round 1 is twice as slow: ratios 2 and 2 over two rounds.
    for round in [1, 3] {
        run.trial(
            "podman",
            round,
            vec![cell("1-podman", Podman, &taking(&[2_000; 20]))],
        );
    }
    run.trial(
        "pair",
        2,
        vec![
            cell("1-podman", Podman, &taking(&[1_500; 20])),
            cell("2-crun", Crun, &taking(&[500; 20])),
        ],
    );
    let summary = study(&run.run).unwrap();
    let labels: Vec<&str> = summary.cells.iter().map(|c| c.label.as_str()).collect();
    assert_eq!(labels, ["bare", "podman", "pair/1-podman", "pair/2-crun"]);
    let podman = summary.cells[1].against_baseline.as_ref().unwrap();
    assert_eq!(podman.rounds, 2);
    assert!((podman.ratio_of_medians.value - 2.0).abs() < 1e-12);
    assert_eq!(podman.ratio_of_medians.verdict, Verdict::Larger);
    assert!(podman.ratio_of_p99.is_none());
    let crun = summary.cells[3].against_baseline.as_ref().unwrap();
    assert_eq!(
        (crun.rounds, crun.ratio_of_medians.verdict),
        (1, Verdict::Undecided)
    );
    assert!((crun.ratio_of_medians.value - 0.5).abs() < 1e-12);
}

#[test]
fn skew_is_the_range_of_starts_and_of_the_first_of_each_cpu() {
    let base = tempfile::tempdir().unwrap();
    let mut run = Synthetic::new(base.path(), MAC);
    for (round, starts) in [[(0, 100), (1, 350)], [(0, 900), (0, 200)]]
        .iter()
        .enumerate()
    {
        let cells = ["1-podman", "2-crun"]
            .iter()
            .zip(starts)
            .map(|(id, &(cpu, start))| {
                let mut one = cell(id, Podman, &taking(&[1_000]));
                one.record.cpu = cpu;
                one.record.started_ns = Some(GO + start);
                one
            });
        run.trial("pair", round as u32 + 1, cells.collect());
    }
    let skew = &study(&run.run).unwrap().skews[0];
    assert_eq!(skew.skew_ns, [250, 700]);
    assert_eq!(skew.first_of_cpu_skew_ns, [250]);
    assert_eq!(skew.first_start_after_go_ns, [100, 200]);
    assert_eq!((skew.trial.as_str(), skew.cells), ("pair", 2));
}

#[test]
fn what_failed_is_counted_and_said_but_not_pooled() {
    let base = tempfile::tempdir().unwrap();
    let mut run = Synthetic::new(base.path(), MAC);
    let mut good = cell("1-bare", Bare, &taking(&[100, 100, 100]));
    miss(&mut good, 1, 2);
    if let Some((header, _)) = &mut good.samples {
        header.minor_faults = 3;
        header.major_faults = 1;
    }
    run.trial("bare", 1, vec![good]);
    let mut killed = cell("1-bare", Bare, &taking(&[900]));
    let header = &mut killed.samples.as_mut().unwrap().0;
    (header.planned, header.complete) = (10, 0);
    killed.record.failure = Some("killed by signal 9".to_owned());
    run.trial_failed(
        "bare",
        2,
        vec![killed],
        Some("cell 1-bare: killed by signal 9"),
    );
    let mut gone = cell("1-podman", Podman, &[]);
    gone.samples = None;
    gone.record.class_got = Some("OTHER".to_owned());
    gone.record.real_time = false;
    run.trial("podman", 1, vec![gone]);
    std::fs::create_dir(run.dir.join("trials/9")).unwrap();
    lacking(&mut run.manifest);
    run.manifest.status = Status::Running;
    run.finish();

    let summary = study(&run.run).unwrap();
    let bare = &summary.cells[0];
    assert_eq!(
        (bare.planned, bare.executed, bare.skipped, bare.unexplained),
        (15, 4, 2, 9)
    );
    assert_eq!(
        (bare.rounds, bare.metrics[0].summary.max_ns, bare.faults),
        (1, 100, 4)
    );
    assert_eq!(
        bare.notes,
        ["4 page faults in the measuring loop, 1 of them from disk: not all memory was locked"]
    );
    let podman = &summary.cells[1];
    assert_eq!(
        (podman.rounds, podman.unexplained, podman.metrics.len()),
        (0, 10, 0)
    );
    assert!(
        summary.real_time,
        "a cell that was not measured labels no result"
    );
    assert_eq!(
        summary.failures,
        [
            "trial 9 was cut off while its record was written; it is left out of the figures",
            "trial 2 (bare, round 2): cell 1-bare: killed by signal 9; it is counted, but left out of the figures",
            "podman: cell 1-podman ran in class OTHER in 1 round, but FIFO 80 was requested",
            "bare: 9 of 15 activations neither ran nor were counted as skipped",
            "podman: 10 of 10 activations neither ran nor were counted as skipped",
        ]
    );
    assert_eq!(summary.unmet.len(), 1);
    assert_eq!(summary.not_measured[0].trial, "docker");
    assert_eq!(summary.not_measured[1].trial, "pair");
}

#[test]
fn a_failure_that_was_noted_as_it_happened_is_only_counted() {
    let base = tempfile::tempdir().unwrap();
    let mut run = Synthetic::new(base.path(), MAC);
    for (round, why) in [(1, "its program is gone"), (2, "killed by signal 9")] {
        let one = cell("1-bare", Bare, &taking(&[100; 10]));
        run.trial_failed("bare", round, vec![one], Some(why));
    }
    run.finish();
    let table = |studied: &dyn Drawn| studied.table(Style::default());
    let mut studied = studied(&run.run).unwrap();
    assert_eq!(studied.without_seen(&[]), None);
    let all = table(&*studied);
    assert!(
        all.contains("failed: trial 2 (bare, round 2): killed by signal 9"),
        "{all}"
    );
    let seen = studied
        .without_seen(&["killed by signal 9".to_owned()])
        .unwrap();
    assert_eq!(
        seen,
        "failed: 1 failure for reasons noted above; the report lists each"
    );
    let rest = table(&*studied);
    assert!(
        rest.contains("its program is gone") && !rest.contains("signal 9"),
        "{rest}"
    );
}

#[test]
fn a_shortened_samples_file_is_an_error_that_names_it() {
    let base = tempfile::tempdir().unwrap();
    let mut run = Synthetic::new(base.path(), MAC);
    run.trial("bare", 1, vec![cell("1-bare", Bare, &taking(&[100; 5]))]);
    let path = run.dir.join("trials/1/1-bare.samples");
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    let message = study(&run.run).unwrap_err().to_string();
    assert!(message.contains("1-bare.samples: cut short"), "{message}");
}

fn any_job() -> impl Strategy<Value = (i64, i64, i64)> {
    let instant = || {
        prop_oneof![
            any::<i64>(),
            -5_000i64..5_000,
            Just(i64::MIN),
            Just(i64::MAX),
            Just(0)
        ]
    };
    (instant(), instant(), instant())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// From any valid samples files, every product comes out, and no number is NaN or infinite.
    #[test]
    fn nothing_panics_on_any_samples(
        left in prop::collection::vec(any_job(), 0..40),
        right in prop::collection::vec(any_job(), 0..400),
        timer in any::<bool>(),
        ended in 0usize..4,
    ) {
        let base = tempfile::tempdir().unwrap();
        let toml = if timer { MAC.replace("mac", "timer") } else { MAC.to_owned() };
        let mut run = Synthetic::new(base.path(), &toml);
        for round in [1, 2] {
            run.trial("bare", round, vec![cell("1-bare", Bare, &left)]);
            run.trial("pair", round, vec![cell("1-podman", Podman, &right), cell("2-crun", Crun, &left)]);
        }
        run.manifest.status = [Status::Running, Status::Complete, Status::Interrupted, Status::Failed][ended];
        run.finish();
        let summary = study(&run.run).unwrap();
        run.run.write(&summary.summary).unwrap();
        prop_assert_eq!(&run.run.read::<RunSummary>().unwrap().cells.len(), &summary.cells.len());
        timecell_report::table(&summary, timecell_report::Style::default());
        let page = timecell_report::html(&summary);
        for (_, figure) in timecell_report::figures(&summary) {
            prop_assert!(!figure.contains("NaN") && !figure.contains("inf\""), "{}", figure);
        }
        prop_assert!(!page.contains("NaN"));
        let both = study::compare(&run.run, &run.run).unwrap();
        timecell_report::compare_table(&both, timecell_report::Style { colour: true, width: 40 });
        timecell_report::compare_html(&both);
    }
}
