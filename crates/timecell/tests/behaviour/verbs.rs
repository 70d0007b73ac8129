//! The other commands, on a real run.

use std::fs;
use std::path::Path;

use model::{Enforcer, EngineKind};
use record::run::Run;
use record::summary::RunSummary;
use supervise::machine::Here;

use crate::support::{experiment, only_run, say};

#[case]
fn doctor_prints_and_speaks_json(dir: &Path) {
    let said = say(dir, &["doctor"]).ends_with(0);
    assert!(said.out.contains("checks: "), "{}", said.out);
    assert!(!said.out.contains('\u{1b}'), "no colour into a pipe");
    let json = say(dir, &["doctor", "--json"]).ends_with(0).out;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let checks = json["checks"].as_array().unwrap();
    assert!(checks.len() >= 15);
    let engines = json["engines"].as_array().unwrap();
    assert_eq!(engines.len(), EngineKind::ALL.len());
    // The enforcers are those that missions have.
    let rows = json["enforcers"].as_array().unwrap();
    assert_eq!(rows.len(), Enforcer::ALL.len());
    let here = Here::default();
    let facts = here.facts();
    for row in rows {
        let name = row["enforcer"].as_str().unwrap();
        let enforcer = Enforcer::named(name, Enforcer::ALL).unwrap();
        // Admission also needs the permission for a real-time class, which the kernel's mechanisms do not depend on.
        if facts.real_time.is_ok() {
            let admitted = facts.has(enforcer).is_ok();
            assert_eq!(row["holds_missions"], admitted, "{row}");
        }
    }
    let prefer = json["prefer"].as_str().unwrap();
    let words: Vec<&str> = said.out.split_whitespace().collect();
    assert!(words.join(" ").contains(prefer), "{}", said.out);
    // One that is strict has an exit code.
    let bad = checks.iter().any(|check| check["state"] == "bad");
    let code = if bad { 4 } else { 0 };
    say(dir, &["doctor", "--strict"]).ends_with(code);
    say(dir, &["doctor", "--strict", "--json"]).ends_with(code);
}

/// Everything that reads a run, on one that an ordinary user may have made.
#[case]
fn a_run_is_reported_exported_and_refused_when_damaged(dir: &Path) {
    let none = say(dir, &["report", "latest"]).ends_with(2);
    assert!(
        none.error().starts_with("latest: there is no run in runs"),
        "{}",
        none.err
    );
    let file = experiment(dir, &["bare"], 25);
    let said = say(dir, &["bench", &file, "--json"]).ends_with(0);
    let path = only_run(dir);
    let summary: RunSummary = serde_json::from_str(&said.out).unwrap();
    assert_eq!(summary.experiment, "small");
    let kept = Run::open(&path).unwrap().read::<RunSummary>().unwrap();
    assert_eq!(summary, kept);
    let name = path.file_name().unwrap().to_str().unwrap();
    let said = say(dir, &["report", "latest"]).ends_with(0);
    let page = format!("runs/{name}/report.html");
    assert!(said.out.contains(&page), "{}", said.out);
    let run = path.to_str().unwrap();
    has_a_row_for_every_job(dir, run, summary.cells[0].executed);
    goes_out_as_cyclictest_and_comes_back(dir, run);
    stands_beside_published_figures(dir, run);
    is_cut_short_or_newer(dir, &path);
}

fn has_a_row_for_every_job(dir: &Path, run: &str, executed: u64) {
    say(dir, &["export", "latest", "--csv", "-o", "jobs.csv"]).ends_with(0);
    let csv = fs::read_to_string(dir.join("jobs.csv")).unwrap();
    assert_eq!(csv.lines().count() as u64, executed + 1);
    let piped = say(dir, &["export", run, "--csv", "-o", "-"]).ends_with(0);
    assert_eq!(piped.out, csv);
    say(dir, &["export", run, "--parquet", "-o", "jobs.parquet"]).ends_with(0);
    let parquet = fs::read(dir.join("jobs.parquet")).unwrap();
    assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"));
    say(dir, &["export", run, "--parquet", "-o", "-"]).ends_with(2);
}

/// The run and its two formats in one report: the same number of values, and maxima that agree to the microsecond.
fn goes_out_as_cyclictest_and_comes_back(dir: &Path, run: &str) {
    let export = |more: &[&str]| {
        let words = ["export", run, "--buckets", "20"];
        say(dir, &[&words[..], more].concat()).ends_with(0)
    };
    let said = export(&["--cyclictest-json", "-o", "o.json"]);
    assert!(
        said.err.contains("rounded down to whole microseconds"),
        "{}",
        said.err
    );
    let hist = export(&["--cyclictest-hist", "-o", "-"]);
    fs::write(dir.join("o.txt"), &hist.out).unwrap();
    let said = say(dir, &["report", run, "o.json", "o.txt", "--json"]).ends_with(0);
    let files: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let [ours, json, text] = [0_usize, 1, 2].map(|file| {
        let first = &files["files"][file]["distributions"][0];
        let over = first["overflow"]["count"].as_u64().unwrap_or(0);
        let max_us = first["max_ns"].as_i64().unwrap().max(0) / 1_000;
        (first["counted"].as_u64().unwrap() + over, max_us)
    });
    assert_eq!([ours, ours], [json, text]);
    say(dir, &["export", run, "--cyclictest-json", "--csv"]).ends_with(2);
}

fn stands_beside_published_figures(dir: &Path, run: &str) {
    let list = say(dir, &["report", "--against", "list"]).ends_with(0);
    assert!(
        list.out.contains("Table 4.2") && list.out.contains("L. Abeni"),
        "{}",
        list.out
    );
    let words = ["report", run, "--against", "published"];
    let said = say(dir, &[&words[..], &["-o", "p.html"]].concat()).ends_with(0);
    for part in [
        "published by",
        "not by us",
        "not compared",
        "no counterpart: ",
    ] {
        assert!(said.out.contains(part), "{part}\n{}", said.out);
    }
    let page = fs::read_to_string(dir.join("p.html")).unwrap();
    assert!(page.contains("id=\"published\""));
    let said = say(dir, &[&words[..], &["--json"]].concat()).ends_with(0);
    let json: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let without = json["published"]["without"].as_array().unwrap();
    assert!(!without.is_empty() && json["cells"].is_array());
}

/// Each of its files is damaged in turn, refused with its name, and put back.
fn is_cut_short_or_newer(dir: &Path, run: &Path) {
    let name = run.to_str().unwrap();
    let broken = |file: &str, change: &dyn Fn(Vec<u8>) -> Vec<u8>, part: &str| {
        let path = run.join(file);
        let good = fs::read(&path).unwrap();
        fs::write(&path, change(good.clone())).unwrap();
        for words in [
            &["report", name][..],
            &["export", name, "--csv", "-o", "x.csv"],
        ] {
            let error = say(dir, words).ends_with(2).error();
            assert!(error.contains(part), "`{part}` is not in: {error}");
            let file = path.file_name().unwrap().to_str().unwrap();
            assert!(error.contains(file), "{error}");
        }
        assert!(
            !dir.join("x.csv").exists(),
            "a part-written export stays behind"
        );
        fs::write(&path, good).unwrap();
    };
    let half = |mut bytes: Vec<u8>| {
        bytes.truncate(bytes.len() - 40);
        bytes
    };
    broken("trials/1/1-bare.samples", &half, "cut short");
    broken("trials/2/trial.json", &half, "cut short");
    let newer = |bytes: Vec<u8>| {
        let text = String::from_utf8(bytes).unwrap();
        text.replacen("\"schema\": 1", "\"schema\": 2", 1)
            .into_bytes()
    };
    broken("trials/1/trial.json", &newer, "schema 2 is newer");
    say(dir, &["report", name]).ends_with(0);
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
        let script = say(dir, &["completions", shell]).ends_with(0).out;
        for word in ["timecell", "concurrency", "podman-rootless"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    let help = say(dir, &["--help"]).ends_with(0).out;
    assert!(help.contains("Exit codes"), "{help}");
}
