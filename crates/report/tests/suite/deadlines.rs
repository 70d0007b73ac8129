//! Deadlines that were not met: how many, how certain, and why.

use crate::synthetic::{Synthetic, cell, miss, taking};
use model::EngineKind::{Bare, Podman};
use record::summary::RunSummary;
use study::judge::{self, CellVerdict, Outcome, Threshold, Unit};
use study::{JobsStudy, study};
use timecell_report::{Style, findings, html, table};

const ROUNDS: u32 = 4;
const JOBS: usize = 200;

/// The period is 1 ms; `keys` go into the file, `deadline` into its workload.
fn toml(keys: &str, deadline: &str) -> String {
    format!(
        "schema = 1\nname = \"t\"\nquestion = \"q\"\nrounds = {ROUNDS}\n{keys}[workload]\nkind = \"mac\"\njobs = {JOBS}\n\
         {deadline}[[trial]]\ncells = [\"bare\"]\n[[trial]]\ncells = [\"podman\"]\n"
    )
}

/// In each round, beside jobs of `usual`: one of 500 us, one of 1.5 ms, and one of 3.2 ms that leaves two activations out. They
/// are that long or, where the machine stalls, begin later by the difference.
fn run(base: &std::path::Path, toml: &str, usual: i64, stalls: bool) -> (Synthetic, JobsStudy) {
    let mut run = Synthetic::new(base, toml);
    let kept = toml.contains("histogram");
    for round in 1..=ROUNDS {
        for (name, engine) in [("bare", Bare), ("podman", Podman)] {
            let mut times = vec![usual; JOBS - 2];
            // The rounds' medians differ by a little.
            times.iter_mut().for_each(|ns| *ns += i64::from(round) * 10);
            times[20] = 500_000.max(usual);
            times[50] = 1_500_000.max(usual);
            times[90] = 3_200_000.max(usual);
            let mut jobs = taking(&times);
            for (_, start, end) in jobs.iter_mut().filter(|_| stalls) {
                *start = *end - usual;
            }
            let mut one = cell(&format!("1-{name}"), engine, &jobs);
            miss(&mut one, 91, 2);
            match kept {
                true => run.kept(name, round, vec![one]),
                false => run.trial(name, round, vec![one]),
            }
        }
    }
    run.finish();
    let summary = study(&run.run).unwrap();
    (run, summary)
}

#[test]
fn jobs_are_late_by_their_deadline_and_skipped_ones_are_apart() {
    let kinds = ["", "record = \"histogram\"\ninterval = \"1s\"\n"];
    for keys in kinds {
        for (deadline, late) in [
            ("deadline = \"300us\"\n", 3),
            ("", 2),
            ("deadline = \"2500us\"\n", 1),
        ] {
            let base = tempfile::tempdir().unwrap();
            let (_, summary) = run(base.path(), &toml(keys, deadline), 100_000, true);
            for cell in &summary.cells {
                let wanted = u64::from(late * ROUNDS);
                assert_eq!(cell.late, Some(wanted), "{keys}{deadline}");
                assert_eq!(cell.skipped, u64::from(2 * ROUNDS));
                let share = cell.late_share.unwrap();
                let value = wanted as f64 / cell.planned as f64;
                assert!((share.value - value).abs() < 1e-12, "{share:?}");
                assert!(share.low.unwrap() < value && value < share.high.unwrap());
                assert!((cell.skipped_share.unwrap().value - 0.01).abs() < 1e-12);
            }
        }
    }
}

/// Earlier versions called it missed.
#[test]
fn a_summary_of_an_earlier_version_is_read() {
    let base = tempfile::tempdir().unwrap();
    let keys = "record = \"histogram\"\ninterval = \"1s\"\n";
    let (_, summary) = run(base.path(), &toml(keys, ""), 100_000, true);
    let old = serde_json::to_string(&*summary).unwrap();
    let old = old.replace("\"skipped", "\"missed");
    for cell in serde_json::from_str::<RunSummary>(&old).unwrap().cells {
        assert_eq!(cell.skipped, u64::from(2 * ROUNDS));
        assert!(cell.skipped_share.is_some() && cell.histograms.is_some());
    }
}

fn judged(summary: &RunSummary, text: &str, run: &Synthetic) -> CellVerdict {
    let thresholds: Vec<Threshold> = vec![text.parse().unwrap()];
    let ratios = judge::within(&run.run, summary, &thresholds).unwrap();
    let judged = judge::judge(&judge::jobs_readings(summary, &ratios), &thresholds);
    judged.thresholds[0].cells[0].clone()
}

#[test]
fn the_share_of_late_jobs_is_judged_by_its_interval_and_shown() {
    use Outcome::{Fails, Passes, Undecided};
    let base = tempfile::tempdir().unwrap();
    let (run, summary) = run(
        base.path(),
        &toml("", "deadline = \"300us\"\n"),
        100_000,
        true,
    );
    let one = judged(&summary, "late > 0", &run);
    assert_eq!((one.verdict, one.value, one.low), (Fails, Some(12.0), None));
    assert_eq!(
        one.reason,
        "of 800 activations, 1.5 % (0.62..3.6 %); 8 others were skipped"
    );
    for (text, verdict) in [
        ("late > 10%", Passes),
        ("late > 0.1%", Fails),
        ("late > 1%", Undecided),
        ("skipped > 0.01%", Fails),
        ("skipped > 1%", Undecided),
    ] {
        let one = judged(&summary, text, &run);
        assert_eq!((one.verdict, one.unit), (verdict, Unit::Share), "{text}");
        assert!(one.low.unwrap() < one.value.unwrap() && one.value < one.high);
    }
    let said = table(&summary, Style::default());
    assert!(said.contains("late (95 % interval)   skipped"), "{said}");
    assert!(said.contains("12 (0.62..3.6 %)         8\n"), "{said}");
    let page = html(&summary);
    assert!(page.contains("0.62..3.6 %"), "the page has no interval");
}

#[test]
fn the_machine_is_blamed_only_for_what_the_work_leaves_room_for() {
    let told = |deadline: &str, usual: i64, stalls: bool| {
        let base = tempfile::tempdir().unwrap();
        let (_, summary) = run(base.path(), &toml("", deadline), usual, stalls);
        findings(&summary).join(" ")
    };
    let said = told("deadline = \"300us\"\n", 100_000, true);
    assert!(
        said.contains("The machine itself is late: bare did not meet 20 of 800 deadlines."),
        "{said}"
    );
    // Some jobs are too long, and nothing tells why.
    let said = told("deadline = \"300us\"\n", 100_000, false);
    assert!(
        said.contains("bare itself did not meet 20 of 800 deadlines: from start to end alone, at least 1.0 % of its jobs take longer than their deadline of 300 us"),
        "{said}"
    );
    for (deadline, sentence) in [
        // Too long for its deadline; for a period shorter than its deadline.
        (
            "deadline = \"300us\"\n",
            "The work does not fit its deadline: the median execution time of bare is 2.00 ms, its deadline 300 us; it did not \
             meet 800 of 800 deadlines.",
        ),
        (
            "deadline = \"2500us\"\n",
            "The work does not fit its period: the median execution time of bare is 2.00 ms, its period 1 ms; it did not meet 12 \
             of 800 deadlines.",
        ),
    ] {
        let said = told(deadline, 2_000_000, false);
        assert!(!said.contains("machine itself"), "{said}");
        assert!(said.contains(sentence), "{said}");
    }
}
