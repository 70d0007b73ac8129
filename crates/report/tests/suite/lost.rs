//! Losses of a record, and the rest of a run that ended early.

use crate::synthetic::{Synthetic, cell, taking};
use model::EngineKind::{Bare, Podman};
use record::run::Status;
use study::study;

const TOML: &str = "schema = 1\nname = \"t\"\nquestion = \"q\"\nrounds = 3\n[workload]\nkind = \"mac\"\njobs = 10\n\
                    [[trial]]\ncells = [\"bare\"]\n[[trial]]\ncells = [\"podman\"]\n";

fn made(base: &std::path::Path) -> Synthetic {
    let mut run = Synthetic::new(base, TOML);
    for round in [1, 2, 3] {
        run.trial(
            "bare",
            round,
            vec![cell("1-bare", Bare, &taking(&[1_000; 20]))],
        );
        run.trial(
            "podman",
            round,
            vec![cell("1-podman", Podman, &taking(&[2_000; 20]))],
        );
    }
    run
}

#[test]
fn a_trial_that_is_gone_is_named() {
    let base = tempfile::tempdir().unwrap();
    let run = made(base.path());
    assert_eq!(run.run.damage().unwrap(), [""; 0]);
    assert_eq!(study(&run.run).unwrap().failures, [""; 0]);
    std::fs::remove_dir_all(run.dir.join("trials/4")).unwrap();
    let said = study(&run.run).unwrap().summary.failures;
    assert!(
        said[0].starts_with("trial 4 is missing: run.json counts 6 on record, but 5 are here"),
        "{said:?}"
    );
    std::fs::remove_dir_all(run.dir.join("trials/6")).unwrap();
    let said = study(&run.run).unwrap().summary.failures;
    assert!(said[0].starts_with("trials 4, 6 are missing"), "{said:?}");
}

#[test]
fn a_complete_run_was_not_cut_off() {
    let base = tempfile::tempdir().unwrap();
    let mut run = made(base.path());
    std::fs::remove_file(run.dir.join("trials/2/trial.json")).unwrap();
    let said = study(&run.run).unwrap().summary.failures;
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(
        said[0].starts_with("trial 2 has lost its trial.json"),
        "{said:?}"
    );
    run.manifest.status = Status::Running;
    run.finish();
    let said = study(&run.run).unwrap().summary.failures;
    assert!(said[0].starts_with("trial 2 was cut off"), "{said:?}");
}

#[test]
fn what_a_run_did_not_reach_is_to_be_resumed() {
    let base = tempfile::tempdir().unwrap();
    let mut run = Synthetic::new(base.path(), TOML);
    run.trial("bare", 1, vec![cell("1-bare", Bare, &taking(&[1_000; 20]))]);
    run.manifest.status = Status::Running;
    run.finish();
    let absent = &study(&run.run).unwrap().not_measured[0];
    assert_eq!(
        absent.reason,
        "the run has not reached it, or ended without a trace"
    );
    assert_eq!(
        absent.fix,
        format!("timecell bench --resume {}", run.dir.display())
    );
    let mut begun = run.run.trial(1).unwrap();
    (begun.number, begun.name) = (2, "podman".to_owned());
    run.run.begin_trial(&begun).unwrap();
    let absent = &study(&run.run).unwrap().not_measured[0];
    assert!(
        absent
            .reason
            .starts_with("it was running when the run ended"),
        "{absent:?}"
    );
    // A complete run is not resumed.
    run.manifest.status = Status::Complete;
    run.finish();
    assert_eq!(
        study(&run.run).unwrap().not_measured[0].fix,
        "run the experiment again"
    );
}
