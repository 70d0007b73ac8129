//! The other commands, on a real run.

use record::summary::RunSummary;
use std::fs;
use std::path::Path;

use crate::support::{experiment, only_run, say};

#[case]
fn doctor_prints_and_speaks_json(dir: &Path) {
    let said = say(dir, &["doctor"]).ends_with(0);
    assert!(said.out.contains("checks: "), "{}", said.out);
    assert!(!said.out.contains('\u{1b}'), "no colour into a pipe");
    let json = say(dir, &["doctor", "--json"]).ends_with(0).out;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(json["checks"].as_array().unwrap().len() >= 15);
    let engines = json["engines"].as_array().unwrap();
    assert_eq!(engines.len(), model::EngineKind::ALL.len());
}

#[case]
fn export_has_a_row_for_every_job(dir: &Path) {
    let file = experiment(dir, &["bare"], 25);
    say(dir, &["bench", &file]).ends_with(0);
    let run = only_run(dir).to_string_lossy().into_owned();
    say(dir, &["export", &run, "--csv", "-o", "jobs.csv"]).ends_with(0);
    let csv = fs::read_to_string(dir.join("jobs.csv")).unwrap();
    let executed = record::run::Run::open(std::path::Path::new(&run))
        .unwrap()
        .read::<RunSummary>()
        .unwrap()
        .cells[0]
        .executed;
    assert_eq!(csv.lines().count() as u64, executed + 1);
    let piped = say(dir, &["export", &run, "--csv", "-o", "-"]).ends_with(0);
    assert_eq!(piped.out, csv);
    say(dir, &["export", &run, "--parquet", "-o", "jobs.parquet"]).ends_with(0);
    let parquet = fs::read(dir.join("jobs.parquet")).unwrap();
    assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"));
    say(dir, &["export", &run, "--parquet", "-o", "-"]).ends_with(2);
}

#[case(GroupsOfItsOwn(120))]
fn report_redraws_and_compares(dir: &Path) {
    let file = experiment(dir, &["bare", "embedded"], 25);
    say(dir, &["bench", &file]).ends_with(0);
    let run = only_run(dir);
    let name = run.to_string_lossy().into_owned();
    fs::remove_file(run.join("report.html")).unwrap();
    fs::remove_file(run.join("summary.json")).unwrap();
    let said = say(dir, &["report", &name, "--figures", "figures"]).ends_with(0);
    assert!(run.join("report.html").exists() && run.join("summary.json").exists());
    let figures: Vec<_> = fs::read_dir(dir.join("figures")).unwrap().collect();
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
    say(dir, &two).ends_with(0);
    let drawn = fs::read_to_string(dir.join("two/ratios-of-runs.svg")).unwrap();
    assert!(
        drawn.contains("embedded") && drawn.contains("timecell runs"),
        "{drawn}"
    );
    assert!(
        fs::read_to_string(dir.join("both.html"))
            .unwrap()
            .contains("<html")
    );
}

#[case]
fn man_pages_and_completions(dir: &Path) {
    say(dir, &["man", "man"]).ends_with(0);
    for page in ["timecell.1", "timecell-bench.1", "timecell-report.1"] {
        assert!(dir.join("man").join(page).exists(), "{page}");
    }
    for shell in ["bash", "zsh", "fish"] {
        let said = say(dir, &["completions", shell]).ends_with(0);
        assert!(said.out.contains("timecell"));
    }
}

#[case]
fn help_names_every_verb(dir: &Path) {
    let said = say(dir, &["--help"]).ends_with(0);
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
