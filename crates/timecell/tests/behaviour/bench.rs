//! `bench` on real cells.

use record::summary::RunSummary;
use std::fs;
use std::path::Path;

use record::run::{Run, Status};
use record::trial::SetBy;

use crate::support::{experiment, only_run, say};

#[case(GroupsOfItsOwn(120))]
fn leaves_a_whole_run(dir: &Path) {
    let file = experiment(dir, &["bare", "embedded"], 50);
    let said = say(dir, &["bench", &file]).ends_with(0);
    let path = only_run(dir);
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
        assert_eq!(cell.executed + cell.skipped, 100, "{}", cell.label);
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

#[case(Root, RealTime, GroupsOfItsOwn(120))]
fn every_engine_that_is_there_is_measured(dir: &Path) {
    let said = say(
        dir,
        &[
            "bench", "overhead", "--quick", "--rounds", "1", "--jobs", "30",
        ],
    )
    .ends_with(0);
    let run = Run::open(&only_run(dir)).unwrap();
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

#[case(Root, RealTime, GroupsOfItsOwn(120))]
fn cells_start_together_and_the_skew_is_told(dir: &Path) {
    let text = "schema = 1\nname = \"pair\"\nrounds = 2\n[workload]\nkind = \"timer\"\njobs = 30\n\
                [[trial]]\nname = \"four\"\ncells = [\"embedded\"]\ncopies = 4\n";
    fs::write(dir.join("pair.toml"), text).unwrap();
    say(dir, &["bench", "pair.toml"]).ends_with(0);
    let run = Run::open(&only_run(dir)).unwrap();
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
