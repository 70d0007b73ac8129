//! What is lost is said: output that was not taken, and records that are gone.

use std::fs::{self, File};

use crate::support::{Case, experiment, only_run, say, timecell};

pub const CASES: &[Case] = &[
    Case {
        name: "lost::a_full_standard_output_fails_every_command",
        needs: &[],
        run: full,
    },
    Case {
        name: "lost::a_run_without_one_of_its_trials_fails_report_and_export",
        needs: &[],
        run: gone,
    },
];

fn full() {
    let dir = tempfile::tempdir().unwrap();
    for words in [
        &["doctor"] as &[&str],
        &["doctor", "--json"],
        &["bench", "--list"],
        &["bench", "--template"],
        &["completions", "bash"],
        &["report", "--against", "list"],
    ] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = timecell()
            .current_dir(dir.path())
            .args(words)
            .stdout(full)
            .output();
        let output = output.expect("the binary starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{words:?}: {said}");
        assert!(
            said.starts_with("error: standard output: cannot write: No space left"),
            "{words:?}: {said}"
        );
    }
    // A reader that had enough is no failure.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = timecell().args(["doctor"]).stdout(writer).output();
    let output = output.expect("the binary starts");
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
}

fn gone() {
    let dir = tempfile::tempdir().unwrap();
    let file = experiment(dir.path(), &["bare"], 20);
    say(dir.path(), &["bench", &file]);
    let run = only_run(dir.path());
    let path = run.to_str().unwrap();
    say(dir.path(), &["export", "--csv", path, "-o", "all.csv"]).ends_with(0);
    fs::remove_dir_all(run.join("trials/2")).unwrap();
    let report = say(dir.path(), &["report", path]).ends_with(1);
    assert!(
        report.out.contains("failed: trial 2 is gone"),
        "{}",
        report.out
    );
    let json = say(dir.path(), &["report", path, "--json"]).ends_with(1);
    assert!(json.out.contains("trial 2 is gone"), "{}", json.out);
    let export = say(dir.path(), &["export", "--csv", path, "-o", "less.csv"]).ends_with(1);
    assert!(export.err.contains("trial 2 is gone"), "{}", export.err);
    let rows = |name: &str| {
        fs::read_to_string(dir.path().join(name))
            .unwrap()
            .lines()
            .count()
    };
    assert!(rows("less.csv") > 1 && rows("less.csv") < rows("all.csv"));
}
