//! The report on loads, and on repetitions.

use crate::synthetic::{Synthetic, cell, taking};
use model::EngineKind::Bare;
use model::LoadKind;
use record::trial::{Achieved, LoadRecord};
use study::study;
use timecell_report::{Style, html, table};

const PLAN: &str = "schema = 1\nname = \"loaded\"\nrounds = 2\n[workload]\nkind = \"mac\"\njobs = 400\n\
                    [[trial]]\ncells = [\"bare\"]\n\
                    [[trial]]\ncells = [\"bare\"]\nload = \"net-tcp\"\nperiod = \"10ms\"\n";

fn load(rate: f64, failure: Option<&str>) -> LoadRecord {
    LoadRecord {
        name: "net-tcp".to_owned(),
        kind: LoadKind::NetTcp,
        form: "built in".to_owned(),
        place: "host".to_owned(),
        cpus: vec![0, 1],
        command: "timecell load run net-tcp <script>".to_owned(),
        achieved: vec![Achieved {
            quantity: "stored".to_owned(),
            unit: "MB/s".to_owned(),
            value: rate,
            window_ns: 4_000_000_000,
        }],
        missed_seconds: Some(2),
        failure: failure.map(str::to_owned),
    }
}

fn jobs(base: i64) -> Vec<(i64, i64, i64)> {
    taking(&(0..400).map(|k| base + k).collect::<Vec<_>>())
}

#[test]
fn loads_are_named_with_their_rates_and_failures() {
    let base = tempfile::tempdir().unwrap();
    let mut run = Synthetic::new(base.path(), PLAN);
    for round in [1, 2] {
        run.trial("bare", round, vec![cell("1-bare", Bare, &jobs(270_000))]);
        let failure = (round == 2).then_some("ended before the cells were done, saying: <script>");
        run.loads = vec![load(f64::from(round) / 2.0, failure)];
        run.trial_failed(
            "bare-net-tcp",
            round,
            vec![cell("1-bare", Bare, &jobs(300_000))],
            failure.map(|why| format!("load net-tcp: {why}")).as_deref(),
        );
    }
    let summary = study(&run.run).unwrap();
    assert_eq!(summary.loads.len(), 1);
    let one = &summary.loads[0];
    assert_eq!(
        (one.rounds, one.failed, one.missed_seconds),
        (2, 1, Some(4))
    );
    assert_eq!(one.achieved[0].rounds, [1, 2]);
    let text = table(&summary, Style::default());
    let line = "load net-tcp (built in): stored 0.50..1.00 MB/s, missed seconds 4, failed in 1 of 2 rounds";
    // Lines are wrapped to the terminal's width.
    let words: Vec<&str> = text.split_whitespace().collect();
    assert!(words.join(" ").contains(line), "{text}");
    let page = html(&summary);
    for part in [
        "Achieved rates",
        "0.50..1.00",
        ">1 of 2</span>",
        "under net-tcp, period 10ms",
        "Over repetitions",
        "timecell load run net-tcp &lt;script&gt;",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("<script"));
    // The failed round is left out of the figures.
    let loaded = summary
        .cells
        .iter()
        .find(|c| c.trial == "bare-net-tcp")
        .unwrap();
    assert_eq!(loaded.rounds, 1);
}

#[test]
fn without_loads_nothing_speaks_of_them() {
    let base = tempfile::tempdir().unwrap();
    let plan = PLAN
        .split("[[trial]]")
        .take(2)
        .collect::<Vec<_>>()
        .join("[[trial]]");
    let mut run = Synthetic::new(base.path(), &plan);
    run.trial("bare", 1, vec![cell("1-bare", Bare, &jobs(270_000))]);
    let summary = study(&run.run).unwrap();
    let page = html(&summary);
    assert!(!page.contains("Achieved rates") && !page.contains("Over repetitions"));
    assert!(!table(&summary, Style::default()).contains("load"));
}
