//! A study of isolation from made-up samples: its table, page and figures.

use std::path::Path;

use crate::synthetic::provenance;
use model::Enforcer;
use record::Kind;
use record::isolation::{
    Against, Arm, Attacker, ContestTrial, DrawnCell, DrawnSet, DrawnTask, Draws, ISOLATION_SCHEMA,
    IsolationRecord,
};
use record::run::{Manifest, RUN_SCHEMA, Run, Status};
use record::samples::{Header, Sample};
use record::series::Condition;
use record::supply::{Budget, Machine};
use study::isolation_study;
use timecell_report::{Extras, Style, isolation_figures, isolation_html, isolation_table};

const MS: i64 = 1_000_000;
const JOBS: u32 = 10;

fn cell(role: &str) -> DrawnCell {
    DrawnCell {
        tasks: vec![DrawnTask {
            name: format!("{role}-1"),
            wcet_ns: 20_000_000,
            period_ns: 100_000_000,
            runtime_ns: Some(23_000_000),
            priority: 70,
        }],
        budgets: vec![Budget {
            enforcer: Enforcer::RtCgroup,
            budget_ns: 12_000_000,
            period_ns: 50_000_000,
        }],
    }
}

/// A samples file in which so many of the jobs are late by 1 ms.
fn samples(path: &Path, late: u32) {
    let mut bytes = Header {
        planned: JOBS.into(),
        count: JOBS.into(),
        complete: 1,
        period_ns: 100 * MS,
        work: 1,
        pacing: 1,
        cpu_time_ns: 16_000_000 * u64::from(JOBS),
        ..Header::new()
    }
    .to_bytes()
    .to_vec();
    bytes.resize(4_096, 0);
    for index in 0..JOBS {
        let release_ns = 1_000 + i64::from(index) * 100 * MS;
        let response = if index < late { 101 } else { 30 };
        let sample = Sample {
            index,
            skipped: 0,
            release_ns,
            start_ns: release_ns + 10,
            end_ns: release_ns + response * MS,
        };
        bytes.extend(sample.to_bytes());
    }
    std::fs::write(path, bytes).unwrap();
}

/// Six sets alone, overrun with nothing enforced (every deadline missed), and under rt-cgroup (none).
pub(crate) fn run(base: &Path) -> Run {
    let arms = [
        (Arm::NOISE, 0),
        (
            Arm {
                attacker: Attacker::Overruns,
                enforcer: None,
            },
            JOBS,
        ),
        (
            Arm {
                attacker: Attacker::Overruns,
                enforcer: Some(Enforcer::RtCgroup),
            },
            0,
        ),
    ];
    let provenance = provenance();
    let mut record = IsolationRecord {
        schema: ISOLATION_SCHEMA,
        question: "Does <it> hold?".to_owned(),
        machine: Machine::here(),
        conditions: vec![Condition {
            name: "cells".to_owned(),
            text: "two & made up".to_owned(),
        }],
        rounds_planned: 6,
        seed: 9,
        overrun_permille: 1_800,
        draws: vec![Draws {
            utilisation_permille: 400,
            drawn: 8,
            refused: vec![("rt-cgroup".to_owned(), 2)],
            without: Vec::new(),
        }],
        sets: (1..=6)
            .map(|number| DrawnSet {
                number,
                round: number,
                utilisation_permille: 400,
                draw: number.into(),
                attacker: cell("attacker"),
                victim: cell("victim"),
                late_without: number > 4,
            })
            .collect(),
        contests: Vec::new(),
        received: Vec::new(),
        not_measured: Vec::new(),
    };
    let manifest = Manifest {
        schema: RUN_SCHEMA,
        timecell_version: "0".to_owned(),
        status: Status::Complete,
        started: "2026-11-22T10:00:00Z".to_owned(),
        finished: None,
        trials_planned: 18,
        trials_done: 18,
        requirements: Vec::new(),
        not_measured: Vec::new(),
        failure: None,
        resumed: Vec::new(),
        remarks: Vec::new(),
    };
    let run = Run::create(
        base,
        "2026",
        Kind::Isolation,
        "isolation",
        |run| run.write(&record),
        &provenance,
        &manifest,
    )
    .unwrap();
    let file = base.join("made");
    for set in 1..=6 {
        for (arm, late) in arms {
            let number = record.contests.len() as u32 + 1;
            samples(&file, late);
            run.keep_task(number, "victim-1", &file).unwrap();
            samples(&file, 0);
            run.keep_task(number, "attacker-1", &file).unwrap();
            record.contests.push(ContestTrial {
                number,
                round: set,
                set,
                arm,
                load: None,
                cpus: vec![1],
                root_domain: None,
                jobs: Vec::new(),
                steal_ns: Some(0),
                failure: None,
            });
        }
    }
    run.write(&record).unwrap();
    run
}

#[test]
fn table_page_and_figures_say_what_the_samples_hold() {
    let base = tempfile::tempdir().unwrap();
    let run = run(base.path());
    let summary = isolation_study(&run).unwrap();
    assert_eq!(summary.failures, Vec::<String>::new());
    let [none, groups] = summary.standings.as_slice() else {
        panic!("{:?}", summary.standings);
    };
    assert_eq!(
        (none.victim.missed(), none.victim.jobs, none.pairs),
        (60, 60, (6, 0))
    );
    assert!(matches!(none.against, Against::Beyond { .. }));
    assert_eq!((groups.victim.missed(), groups.victim.trials), (0, 6));
    let text = isolation_table(&summary, Style::default());
    for wanted in [
        "none        idle   0.4                 60 of 60",
        "more than alone (p = 0.016)",
        "no miss (below 39.3 % of trials)",
        "1.00 ms late",
        "rt-cgroup: the victim missed none of 60 deadlines",
    ] {
        assert!(text.contains(wanted), "{wanted} in\n{text}");
    }
    let page = isolation_html(&run, &summary, Extras::default()).unwrap();
    assert!(page.contains("Does &lt;it&gt; hold?") && page.contains("two &amp; made up"));
    assert!(
        page.contains("2 of 6") && page.contains("bench isolation --seed 9"),
        "sets, and again"
    );
    let figures = isolation_figures(&summary);
    assert_eq!(figures.len(), 1);
    for (name, svg) in &figures {
        roxmltree::Document::parse(svg).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

#[test]
fn a_trial_whose_samples_are_gone_is_said_and_left_out() {
    let base = tempfile::tempdir().unwrap();
    let run = run(base.path());
    std::fs::remove_file(run.dir().join("trials/2/victim-1.samples")).unwrap();
    let summary = isolation_study(&run).unwrap();
    assert_eq!(summary.failures.len(), 1);
    assert!(
        summary.failures[0].starts_with("trial 2 ("),
        "{:?}",
        summary.failures
    );
    assert_eq!(summary.standings[0].victim.trials, 5);
}
