//! `bench` on real cells.

use record::summary::RunSummary;
use std::fs;

use record::run::{Run, Status};
use record::trial::SetBy;

use crate::support::{Case, Need, experiment, only_run, say};

pub const CASES: &[Case] = &[
    Case {
        name: "bench::leaves_a_whole_run",
        needs: &[Need::GroupsOfItsOwn(120)],
        run: whole_run,
    },
    Case {
        name: "bench::every_engine_that_is_there_is_measured",
        needs: &[Need::Root, Need::RealTime, Need::GroupsOfItsOwn(120)],
        run: every_engine,
    },
    Case {
        name: "bench::cells_start_together_and_the_skew_is_told",
        needs: &[Need::Root, Need::RealTime, Need::GroupsOfItsOwn(120)],
        run: together,
    },
    Case {
        name: "bench::a_job_longer_than_its_period_misses_and_adds_up",
        needs: &[],
        run: overload,
    },
    Case {
        name: "bench::relative_pacing_misses_nothing",
        needs: &[],
        run: relative,
    },
    Case {
        name: "bench::json_is_the_summary",
        needs: &[],
        run: json,
    },
];

fn whole_run() {
    let dir = tempfile::tempdir().unwrap();
    let file = experiment(dir.path(), &["bare", "embedded"], 50);
    let said = say(dir.path(), &["bench", &file]).ends_with(0);
    let path = only_run(dir.path());
    let run = Run::open(&path).unwrap();
    let manifest = run.manifest().unwrap();
    assert_eq!(manifest.status, Status::Complete);
    assert_eq!((manifest.trials_planned, manifest.trials_done), (4, 4));
    assert_eq!(run.trial_numbers().unwrap(), [1, 2, 3, 4]);
    let names: Vec<String> = (1..=4).map(|n| run.trial(n).unwrap().name).collect();
    assert_eq!(
        names,
        ["bare", "embedded", "bare", "embedded"],
        "rounds are interleaved"
    );
    for cell in run.read::<RunSummary>().unwrap().cells {
        assert_eq!(cell.planned, 100);
        assert_eq!(cell.executed + cell.missed, 100, "{}", cell.label);
        assert_eq!(cell.unexplained, 0);
    }
    assert!(said.out.contains("report  "), "{}", said.out);
    let page = fs::read_to_string(path.join("report.html")).unwrap();
    for outside in ["http://", "https://", "src=\"//"] {
        let found = page
            .match_indices(outside)
            .find(|(at, _)| !page[*at..].starts_with("http://www.w3.org/"));
        assert!(found.is_none(), "the page reaches out: {found:?}");
    }
}

fn every_engine() {
    let dir = tempfile::tempdir().unwrap();
    let said = say(
        dir.path(),
        &[
            "bench", "overhead", "--quick", "--rounds", "1", "--jobs", "30",
        ],
    )
    .ends_with(0);
    let run = Run::open(&only_run(dir.path())).unwrap();
    let summary = run.read::<RunSummary>().unwrap();
    let not_measured: Vec<&str> = summary
        .not_measured
        .iter()
        .map(|n| n.trial.as_str())
        .collect();
    for (engine, program) in [
        ("bare", None),
        ("embedded", None),
        ("crun", Some("crun")),
        ("runc", Some("runc")),
        ("podman", Some("podman")),
        ("podman-rootless", Some("podman")),
    ] {
        let measured = summary.cells.iter().find(|cell| cell.label == engine);
        match measured {
            Some(cell) => assert!(cell.real_time, "{engine} ran as {}", cell.class),
            None => {
                assert!(
                    not_measured.contains(&engine),
                    "{engine} is nowhere in:\n{}",
                    said.out
                );
                assert!(program.is_some(), "{engine} needs no program");
                assert!(said.out.contains("not measured: "), "{}", said.out);
            }
        }
    }
    for number in run.trial_numbers().unwrap() {
        for cell in run.trial(number).unwrap().cells {
            let outside = cell.engine == model::EngineKind::PodmanRootless;
            let expected = if outside {
                SetBy::Coordinator
            } else {
                SetBy::Cell
            };
            assert_eq!(cell.set_by, expected, "{}", cell.engine);
            assert_eq!(
                cell.class_got.as_deref(),
                Some("FIFO 80"),
                "{}",
                cell.engine
            );
        }
    }
}

fn together() {
    let dir = tempfile::tempdir().unwrap();
    let text = "schema = 1\nname = \"pair\"\nrounds = 2\n[workload]\nkind = \"timer\"\njobs = 30\n\
                [[trial]]\nname = \"four\"\ncells = [\"embedded\"]\ncopies = 4\n";
    fs::write(dir.path().join("pair.toml"), text).unwrap();
    say(dir.path(), &["bench", "pair.toml"]).ends_with(0);
    let run = Run::open(&only_run(dir.path())).unwrap();
    let summary = run.read::<RunSummary>().unwrap();
    assert_eq!(summary.skews.len(), 1);
    assert_eq!(
        (summary.skews[0].cells, summary.skews[0].skew_ns.len()),
        (4, 2)
    );
    for number in [1, 2] {
        let trial = run.trial(number).unwrap();
        let go_ns = trial.go_ns.unwrap();
        assert!(
            trial
                .cells
                .iter()
                .all(|cell| cell.started_ns.unwrap() >= go_ns)
        );
    }
}

fn overload() {
    let dir = tempfile::tempdir().unwrap();
    let text = "schema = 1\nname = \"over\"\nrounds = 1\n[workload]\nkind = \"mac\"\nsteps = 2_000_000\n\
                period = \"100us\"\njobs = 200\n[[trial]]\ncells = [\"bare\"]\n";
    fs::write(dir.path().join("over.toml"), text).unwrap();
    say(dir.path(), &["bench", "over.toml"]).ends_with(0);
    let cell = &Run::open(&only_run(dir.path()))
        .unwrap()
        .read::<RunSummary>()
        .unwrap()
        .cells[0];
    assert!(cell.missed > 0 && cell.executed > 0);
    assert_eq!(cell.executed + cell.missed, 200);
}

fn relative() {
    let dir = tempfile::tempdir().unwrap();
    let text = "schema = 1\nname = \"thesis\"\nrounds = 1\n[workload]\nkind = \"mac\"\nsteps = 500_000\n\
                pacing = \"relative\"\nperiod = \"100us\"\njobs = 20\n[[trial]]\ncells = [\"bare\"]\n";
    fs::write(dir.path().join("thesis.toml"), text).unwrap();
    say(dir.path(), &["bench", "thesis.toml"]).ends_with(0);
    let cell = &Run::open(&only_run(dir.path()))
        .unwrap()
        .read::<RunSummary>()
        .unwrap()
        .cells[0];
    assert_eq!((cell.executed, cell.missed), (20, 0));
}

fn json() {
    let dir = tempfile::tempdir().unwrap();
    let file = experiment(dir.path(), &["bare"], 20);
    let said = say(dir.path(), &["bench", &file, "--json"]).ends_with(0);
    let summary: record::summary::RunSummary = serde_json::from_str(&said.out).unwrap();
    assert_eq!(summary.experiment, "small");
    assert_eq!(
        summary,
        Run::open(&only_run(dir.path()))
            .unwrap()
            .read::<RunSummary>()
            .unwrap()
    );
}
