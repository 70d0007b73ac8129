//! `timecell top` beside a real run: its output for each cell, and when there is nothing to see.

use std::fs;
use std::num::NonZero;
use std::path::Path;
use std::process::Child;

use serde_json::Value;

use crate::pty::{PROGRAMS, Pty};
use crate::support::{begun, eventually, say};

/// A run that lasts until it is ended.
struct Long(Child);

impl Long {
    fn start(dir: &Path, text: &str) -> Long {
        fs::write(dir.join("long.toml"), text).unwrap();
        let child = begun(dir, &["bench", "long.toml"]);
        Long(child)
    }

    fn end(self, dir: &Path) {
        drop(self);
        say(dir, &["clean"]).ends_with(0);
    }
}

impl Drop for Long {
    fn drop(&mut self) {
        // SAFETY: our own child, which has not been reaped.
        unsafe { libc::kill(self.0.id().cast_signed(), libc::SIGINT) };
        let _ = self.0.wait();
    }
}

const TWO: &str = "schema = 1\nname = \"long\"\nrounds = 1\n[workload]\nkind = \"mac\"\nsteps = 1000\nperiod = \"10ms\"\n\
    jobs = 60000\n[scheduling]\nclass = \"other\"\n[[trial]]\nname = \"pair\"\ncells = [\"bare\", \"bare\"]\n";

/// The first JSON object in which every cell is running.
fn at_work(dir: &Path) -> Value {
    let mut seen = Value::Null;
    eventually("all cells are at work", || {
        let said = say(dir, &["top", "--json", "--interval", "200ms"]);
        let Ok(scene) = serde_json::from_str::<Value>(&said.out) else {
            return false;
        };
        let rows = scene["rows"].as_array().cloned().unwrap_or_default();
        let works = |row: &Value| row["state"] == "running" && row["jobs"].as_u64() > Some(0);
        let all = !rows.is_empty() && rows.iter().all(works);
        seen = scene;
        all
    });
    seen
}

#[case]
fn a_running_experiment_is_told_cell_by_cell(dir: &Path) {
    let run = Long::start(dir, TWO);
    let scene = at_work(dir);
    let rows = scene["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    for row in rows {
        assert_eq!(row["planned"], 60_000);
        assert!(row["worst_latency_ns"].as_i64() > Some(0), "{row}");
        assert!(row["worst_execution_ns"].as_i64() > Some(0), "{row}");
        assert!(row["cpu_ns"].as_u64() > Some(0), "{row}");
    }
    let several = say(
        dir,
        // Jobs are done in between even if the machine stalls for 300 ms.
        &["top", "--json", "--count", "3", "--interval", "300ms"],
    );
    let jobs: Vec<u64> = (several.ends_with(0).out.lines())
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["rows"][0]["jobs"].as_u64())
        .map(Option::unwrap)
        .collect();
    assert_eq!(jobs.len(), 3);
    assert!(jobs.is_sorted() && jobs[2] > jobs[0], "{jobs:?}");
    let table = say(dir, &["top", "--interval", "100ms", "--filter", "2-bare"]).ends_with(0);
    assert!(table.out.contains("2 cells: 2 running"), "{}", table.out);
    assert!(
        table.out.contains("\n2-bare") && !table.out.contains("\n1-bare"),
        "{}",
        table.out
    );
    run.end(dir);
}

#[case(Root)]
fn a_study_of_contained_cells_has_pids_and_cpu_time(dir: &Path) {
    let text = "schema = 1\nname = \"long\"\n[workload]\nkind = \"mac\"\nsteps = 1000\nperiod = \"10ms\"\njobs = 60000\n\
        [scheduling]\nclass = \"other\"\n[scale]\nengines = [\"embedded\"]\ncounts = [3]\ntotal_jobs = 180000\n";
    let run = Long::start(dir, text);
    let scene = at_work(dir);
    for row in scene["rows"].as_array().unwrap() {
        let pid = row["pid"].as_i64().expect("a pid");
        assert!(Path::new(&format!("/proc/{pid}")).exists(), "{row}");
        assert!(row["cpu_ns"].as_u64() > Some(0), "{row}");
        assert_eq!(row["engine"], "embedded");
    }
    run.end(dir);
}

#[case(Program(PROGRAMS[0]), Program(PROGRAMS[1]), Program(PROGRAMS[2]))]
fn a_terminal_shows_the_cells_obeys_keys_and_is_put_back(dir: &Path) {
    let run = Long::start(dir, TWO);
    at_work(dir);
    let command = format!("'{}' top --interval 200ms", env!("CARGO_BIN_EXE_timecell"));
    let (rows, columns) = (NonZero::new(20).unwrap(), NonZero::new(150).unwrap());
    let mut terminal = Pty::start(dir, rows, columns, &command);
    let row = |lines: &[String], cell: &str| {
        let words = |line: &&String| line.split_whitespace().next() == Some(cell);
        lines.iter().find(words).cloned().unwrap_or_default()
    };
    terminal.shows("both cells at work", |lines| {
        lines[0].starts_with("long: trial 1 of 1, pair, round 1 of 1; about ")
            && lines[1].contains("top itself")
            && lines[2].starts_with("2 cells: 2 running")
            && lines[3].starts_with("cell    engine  cpu  class  state")
            && ["1-bare", "2-bare"]
                .iter()
                .all(|cell| row(lines, cell).contains("running"))
            && lines[19].starts_with("by cell   q quit")
    });
    assert!(terminal.screen().alternate_screen());
    assert!(terminal.screen().hide_cursor());
    let before = row(&terminal.lines(), "1-bare");
    terminal.shows("the jobs go on", |lines| row(lines, "1-bare") != before);
    terminal.press("s");
    terminal.shows("another order", |lines| lines[19].starts_with("by cpu"));
    terminal.press("/2-b");
    terminal.shows("only one cell", |lines| {
        lines[19].starts_with("filter: 2-b_") && row(lines, "1-bare").is_empty()
    });
    terminal.press("\r");
    terminal.shows("the filter stays", |lines| {
        lines[19].contains("; only `2-b`") && row(lines, "2-bare").contains("running")
    });
    terminal.press("q");
    let (code, left) = terminal.ends();
    assert_eq!(code, Some(0), "{}", left.contents());
    assert!(!left.alternate_screen(), "the screen before is back");
    assert!(!left.hide_cursor(), "the cursor is back");
    run.end(dir);
}

#[case]
fn nothing_to_see_is_a_sentence(dir: &Path) {
    let error = say(dir, &["top"]).ends_with(4).error();
    assert!(error.contains("nothing runs here"), "{error}");
    let error = say(dir, &["top", "--json", "--interval", "1ms"])
        .ends_with(2)
        .error();
    assert!(error.contains("100ms to 1h"), "{error}");
}
