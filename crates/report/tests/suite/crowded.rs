//! The table of a run with many trials: engines, loads, and unmeasured trials.

use crate::synthetic::{Synthetic, cell, taking};
use model::EngineKind::{Bare, Crun, Podman, Runc};
use record::summary::NotMeasured;
use study::study;
use timecell_report::{Style, table};

const HEAD: &str = "schema = 1\nname = \"t\"\nquestion = \"q\"\nrounds = 1\n\
                    [workload]\nkind = \"timer\"\njobs = 400\nperiod = \"1ms\"\n[matrix]\n\
                    cells = [[\"bare\"], [\"crun\"], [\"runc\"], [\"podman\"], [\"docker\"]]\n\
                    loads = [\"idle\", \"cpu\", \"disk\", \"ipc\"]\n";

fn text(more: &str) -> String {
    let base = tempfile::tempdir().unwrap();
    let mut run = Synthetic::new(base.path(), &format!("{HEAD}{more}"));
    let plan = run.run.experiment().unwrap();
    for trial in &plan.trials {
        let engine = trial.cells[0];
        if [Bare, Crun, Runc, Podman].contains(&engine) {
            let one = cell(&format!("1-{engine}"), engine, &taking(&[270_000; 400]));
            run.trial(&trial.name, 1, vec![one]);
        } else {
            run.manifest.not_measured.push(NotMeasured {
                trial: trial.name.clone(),
                reason: "no daemon answers".to_owned(),
                fix: "apt install docker.io".to_owned(),
            });
        }
    }
    run.finish();
    table(&study(&run.run).unwrap(), Style::default())
}

#[test]
fn with_one_period_every_cell_has_a_line() {
    let text = text("");
    let starts = |name: &str| text.lines().any(|line| line.starts_with(name));
    for name in ["bare-idle ", "podman-ipc ", "crun-disk "] {
        assert!(starts(name), "{name}: {text}");
    }
    assert!(text.contains("against bare-idle"), "{text}");
    let said = "not measured: docker-idle, docker-cpu, docker-disk, docker-ipc: no daemon answers (apt install docker.io)";
    assert_eq!(text.matches("no daemon").count(), 1, "{text}");
    assert!(text.contains(said), "{text}");
}

#[test]
fn with_several_periods_lines_are_of_load_and_engine() {
    let text = text("periods = [\"1ms\", \"10ms\"]\n");
    let heading = text.lines().find(|line| line.starts_with("load")).unwrap();
    let columns: Vec<&str> = heading
        .split("   ")
        .map(str::trim)
        .filter(|c| !c.is_empty())
        .collect();
    assert_eq!(
        columns,
        ["load", "engine", "max, 1 ms", "max, 10 ms", "skipped"]
    );
    for (load, engine) in [("idle", "bare"), ("disk", "podman"), ("ipc", "crun")] {
        let line = |line: &&str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            words.starts_with(&[load, engine])
        };
        assert_eq!(
            text.lines().filter(line).count(),
            1,
            "{load} {engine}: {text}"
        );
    }
}
