//! A computation on several threads, in cells.

use std::fs;

use record::run::Run;
use record::series::Quantity;

use crate::support::{Case, Need, only_run, say};

pub const CASES: &[Case] = &[
    Case {
        name: "nqueens::every_part_has_its_time_and_the_threads_share_the_work",
        needs: &[],
        run: bare,
    },
    Case {
        name: "nqueens::in_cells_in_the_real_time_class_and_under_load",
        needs: &[Need::Root, Need::RealTime],
        run: cells,
    },
    Case {
        name: "nqueens::the_probe_refuses_words_it_does_not_know",
        needs: &[],
        run: bad_words,
    },
];

fn bare() {
    let dir = tempfile::tempdir().unwrap();
    let words = ["bench", "nqueens", "--quick", "--engine", "bare"];
    let said = say(dir.path(), &words).ends_with(0);
    let path = only_run(dir.path());
    let record = Run::open(&path).unwrap().series().unwrap();
    assert_eq!(record.scenario, "nqueens");
    for part in ["1 thread", "2 threads", "4 threads"] {
        let of = |part: &str| {
            let found = record.series.iter().find(|series| series.part == part);
            found.unwrap_or_else(|| panic!("{part} is not in:\n{}", said.out))
        };
        let (wall, cpu) = (of(part), of(&format!("cpu time, {part}")));
        assert_eq!(
            (wall.unit, wall.values.len(), wall.failures.len()),
            (Quantity::Ns, 2, 0)
        );
        assert!(cpu.values.iter().all(|v| v.value > 0));
    }
    let condition = |name: &str| {
        let found = record.conditions.iter().find(|c| c.name == name);
        found.unwrap().text.clone()
    };
    assert!(condition("computation").contains("14200 ways"));
    assert!(!condition("temperature").is_empty());
    assert!(
        fs::read_to_string(path.join("report.html"))
            .unwrap()
            .contains("1 thread")
    );
}

fn cells() {
    let dir = tempfile::tempdir().unwrap();
    let words = [
        "bench",
        "nqueens",
        "--rounds",
        "1",
        "--engine",
        "bare,embedded",
        "--json",
    ];
    let said = say(dir.path(), &words).ends_with(0);
    let json: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let figures = json["figures"].as_array().unwrap();
    let of = |subject: &str, part: &str| {
        figures.iter().any(|figure| {
            figure["subject"] == subject && figure["part"] == part && figure["count"] == 1
        })
    };
    for subject in ["bare", "embedded"] {
        assert!(of(subject, "1 thread"), "{}", said.out);
        // With one cpu there is none left for the load, which is said.
        let told = json["not_measured"].to_string();
        let loaded = "1 thread, cpu load elsewhere";
        assert!(of(subject, loaded) || told.contains(loaded), "{}", said.out);
    }
    let record = Run::open(&only_run(dir.path())).unwrap().series().unwrap();
    let class = record
        .conditions
        .iter()
        .find(|c| c.name == "class")
        .unwrap();
    assert!(class.text.starts_with("FIFO 80"), "{}", class.text);
}

fn bad_words() {
    let dir = tempfile::tempdir().unwrap();
    say(dir.path(), &["probe", "queens", "n=12", "threads=1"]).ends_with(2);
    say(dir.path(), &["probe", "queens", "knights=1"]).ends_with(2);
}
