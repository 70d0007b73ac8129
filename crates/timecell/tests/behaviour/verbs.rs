//! The other commands, on a real run.

use record::summary::RunSummary;
use std::fs;

use crate::support::{Case, Need, experiment, only_run, say};

pub const CASES: &[Case] = &[
    Case {
        name: "verbs::doctor_prints_and_speaks_json",
        needs: &[],
        run: doctor,
    },
    Case {
        name: "verbs::export_has_a_row_for_every_job",
        needs: &[],
        run: export,
    },
    Case {
        name: "verbs::report_redraws_and_compares",
        needs: &[Need::GroupsOfItsOwn(120)],
        run: report,
    },
    Case {
        name: "verbs::man_pages_and_completions",
        needs: &[],
        run: generated,
    },
    Case {
        name: "verbs::help_names_every_verb",
        needs: &[],
        run: help,
    },
];

fn doctor() {
    let dir = tempfile::tempdir().unwrap();
    let said = say(dir.path(), &["doctor"]).ends_with(0);
    assert!(said.out.contains("checks: "), "{}", said.out);
    assert!(!said.out.contains('\u{1b}'), "no colour into a pipe");
    let json = say(dir.path(), &["doctor", "--json"]).ends_with(0).out;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(json["checks"].as_array().unwrap().len() >= 15);
    let engines = json["engines"].as_array().unwrap();
    assert_eq!(engines.len(), model::EngineKind::ALL.len());
}

fn export() {
    let dir = tempfile::tempdir().unwrap();
    let file = experiment(dir.path(), &["bare"], 25);
    say(dir.path(), &["bench", &file]).ends_with(0);
    let run = only_run(dir.path()).to_string_lossy().into_owned();
    say(dir.path(), &["export", &run, "--csv", "-o", "jobs.csv"]).ends_with(0);
    let csv = fs::read_to_string(dir.path().join("jobs.csv")).unwrap();
    let executed = record::run::Run::open(std::path::Path::new(&run))
        .unwrap()
        .read::<RunSummary>()
        .unwrap()
        .cells[0]
        .executed;
    assert_eq!(csv.lines().count() as u64, executed + 1);
    let piped = say(dir.path(), &["export", &run, "--csv", "-o", "-"]).ends_with(0);
    assert_eq!(piped.out, csv);
    say(
        dir.path(),
        &["export", &run, "--parquet", "-o", "jobs.parquet"],
    )
    .ends_with(0);
    let parquet = fs::read(dir.path().join("jobs.parquet")).unwrap();
    assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"));
    say(dir.path(), &["export", &run, "--parquet", "-o", "-"]).ends_with(2);
}

fn report() {
    let dir = tempfile::tempdir().unwrap();
    let file = experiment(dir.path(), &["bare", "embedded"], 25);
    say(dir.path(), &["bench", &file]).ends_with(0);
    let run = only_run(dir.path());
    let name = run.to_string_lossy().into_owned();
    fs::remove_file(run.join("report.html")).unwrap();
    fs::remove_file(run.join("summary.json")).unwrap();
    let said = say(dir.path(), &["report", &name, "--figures", "figures"]).ends_with(0);
    assert!(run.join("report.html").exists() && run.join("summary.json").exists());
    let figures: Vec<_> = fs::read_dir(dir.path().join("figures")).unwrap().collect();
    assert!(figures.len() >= 4, "{figures:?}");
    assert!(said.out.contains("embedded"));
    let two = [
        "report",
        &name,
        &name,
        "-o",
        "both.html",
        "--figures",
        "two",
    ];
    say(dir.path(), &two).ends_with(0);
    let drawn = fs::read_to_string(dir.path().join("two/ratios-of-runs.svg")).unwrap();
    assert!(
        drawn.contains("embedded") && drawn.contains("timecell runs"),
        "{drawn}"
    );
    assert!(
        fs::read_to_string(dir.path().join("both.html"))
            .unwrap()
            .contains("<html")
    );
}

fn generated() {
    let dir = tempfile::tempdir().unwrap();
    say(dir.path(), &["man", "man"]).ends_with(0);
    for page in ["timecell.1", "timecell-bench.1", "timecell-report.1"] {
        assert!(dir.path().join("man").join(page).exists(), "{page}");
    }
    for shell in ["bash", "zsh", "fish"] {
        let said = say(dir.path(), &["completions", shell]).ends_with(0);
        assert!(said.out.contains("timecell"));
    }
}

fn help() {
    let dir = tempfile::tempdir().unwrap();
    let said = say(dir.path(), &["--help"]).ends_with(0);
    for verb in [
        "doctor",
        "bench",
        "report",
        "analyze",
        "export",
        "clean",
        "Exit codes",
    ] {
        assert!(said.out.contains(verb), "{verb} is not in\n{}", said.out);
    }
    for hidden in ["probe", "oci-child", "freezer"] {
        assert!(!said.out.contains(hidden), "{hidden} is not for users");
    }
}
