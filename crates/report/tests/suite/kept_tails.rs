//! Tails of runs that kept histograms, from their logs to the page.

use crate::synthetic::{Cell, Chance, Synthetic, cell, taking};
use model::EngineKind::Bare;
use record::summary::Metric;
use stats::Refusal;
use study::study;
use timecell_report::{Style, figures, findings, html, table};

const TOML: &str = "schema = 1\nname = \"t\"\nquestion = \"q\"\nrounds = 2\nrecord = \"histogram\"\ninterval = \"1s\"\n\
                    [workload]\nkind = \"mac\"\njobs = 60000\nperiod = \"1ms\"\n[[trial]]\ncells = [\"bare\"]\n";
const JOBS: usize = 60_000;

/// A run of two rounds whose jobs are exponential above 270 us. `change` sees each round's cell before it is kept.
fn made(base: &std::path::Path, change: impl Fn(&mut Cell)) -> Synthetic {
    let mut run = Synthetic::new(base, TOML);
    let mut chance = Chance(5);
    for round in 1..=2 {
        let times: Vec<i64> = (0..JOBS)
            .map(|_| 270_000 + (-4_000.0 * chance.unit().ln()) as i64)
            .collect();
        let mut one = cell("1-bare", Bare, &taking(&times));
        change(&mut one);
        run.kept("bare", round, vec![one]);
    }
    run
}

#[test]
fn the_worst_jobs_give_a_curve_that_says_so() {
    let base = tempfile::tempdir().unwrap();
    let run = made(base.path(), |_| ());
    let summary = study(&run.run).unwrap();
    assert_eq!(summary.failures, [""; 0]);
    let [tail] = summary.tails.as_slice() else {
        panic!("one for the primary metric: {:?}", summary.tails);
    };
    assert_eq!(
        (tail.metric, tail.period_ns),
        (Metric::ExecutionTime, 1_000_000)
    );
    let found = &tail.tail;
    assert_eq!(found.jobs, 120_000);
    let kept = found.kept.unwrap();
    assert!((1_500..2_000).contains(&kept), "{kept}");
    assert_eq!(found.refusals, []);
    assert_eq!(found.blocks.unwrap().block_jobs, 1_000);
    let last = found.curve.last().unwrap();
    let truth = 270_000.0 + 4_000.0 * 1.2e6_f64.ln();
    assert!((last.low_ns..last.high_ns).contains(&truth), "{last:?}");
    // The largest that was seen is no estimate: it is on record.
    let worst = summary.cells[0].metrics[0].summary.max_ns as f64;
    let once = found.curve.iter().min_by(|a, b| {
        let far = |p: f64| (p * 120_000.0).ln().abs();
        far(a.probability).total_cmp(&far(b.probability))
    });
    assert!((once.unwrap().value_ns - worst).abs() < 12_000.0);

    let said = findings(&summary).join("\n");
    assert!(
        said.contains("one job in 1,200,000 takes more than"),
        "{said}"
    );
    let lines = table(&summary, Style::default());
    assert!(lines.contains("pWCET: one job in 1,200,000"), "{lines}");
    let page = html(&summary);
    assert!(page.contains("the curve rests on the worst jobs alone"));
    assert!(page.contains(&format!("the worst {},{:03}", kept / 1_000, kept % 1_000)));
    assert!(!page.contains("NaN"));
    let files = figures(&summary);
    assert!(files.iter().any(|(name, _)| name == "tail.svg"));
}

#[test]
fn what_the_tests_refuse_gets_no_curve() {
    let base = tempfile::tempdir().unwrap();
    let slower = |cell: &mut Cell| {
        let (_, samples) = cell.samples.as_mut().unwrap();
        for sample in &mut samples[JOBS / 2..] {
            sample.end_ns += 40_000;
        }
    };
    let summary = study(&made(base.path(), slower).run).unwrap();
    let found = &summary.tails[0].tail;
    // The first half of all is one round, which is as slow as the other: its intervals depend on each other.
    let dependent = |r: &Refusal| matches!(r, Refusal::Dependent { .. });
    assert!(found.refusals.iter().any(dependent), "{:?}", found.refusals);
    assert!(found.curve.is_empty());
}

#[test]
fn a_job_that_was_lost_may_have_been_the_longest() {
    let base = tempfile::tempdir().unwrap();
    let lossy = |cell: &mut Cell| {
        let (header, samples) = cell.samples.as_mut().unwrap();
        samples.drain(30_000..30_007);
        header.count -= 7;
    };
    let run = made(base.path(), lossy);
    let summary = study(&run.run).unwrap();
    assert_eq!(
        (summary.cells[0].lost, summary.cells[0].planned),
        (14, 120_000)
    );
    assert_eq!(summary.tails[0].tail.refusals, [Refusal::Lost { lost: 14 }]);
    assert_eq!(summary.failures.len(), 1);
    let text = table(&summary, Style::default());
    assert!(text.contains(">= ") && text.contains("+ 14 lost"), "{text}");
    let page = html(&summary);
    assert!(page.contains("14 jobs were lost from the record"));
    assert!(
        page.contains(">= ") || page.contains("&gt;= "),
        "the largest seen"
    );
}
