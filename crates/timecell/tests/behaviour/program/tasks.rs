//! Programs of several tasks: one is compared, the others are measured in the same time.

use std::fs;
use std::path::Path;

use record::run::Run;
use record::summary::BesideSummary;

use super::sources::{TASKS, built};
use super::summary;
use crate::support::{Said, only_run, say};

fn bench(dir: &Path, more: &[&str]) -> Said {
    let first = ["bench", "overhead", "--program", "./tasks", "--engine"];
    let words = ["bare,embedded", "--rounds", "2", "--jobs", "70"];
    say(dir, &[&first[..], &words, more].concat())
}

/// The record of the one run, which is then removed: the task that was compared, the activations that its first cell began or skipped, and
/// the other tasks.
fn taken(dir: &Path) -> (Option<String>, u64, Vec<BesideSummary>) {
    let seen = summary(dir);
    let run = Run::open(&only_run(dir)).unwrap();
    let trial = run.trial(run.trial_numbers().unwrap()[0]).unwrap();
    let names: Vec<&str> = (trial.cells[0].reported.iter())
        .map(|task| task.name.as_str())
        .collect();
    assert_eq!(names.first().copied(), seen.task.as_deref());
    assert_eq!(names.len(), 3);
    fs::remove_dir_all(dir.join("runs")).unwrap();
    let first = &seen.cells[0];
    (seen.task, first.executed + first.skipped, seen.beside)
}

fn names(beside: &[BesideSummary]) -> Vec<String> {
    let name = |row: &BesideSummary| format!("{} {}", row.label, row.task);
    beside.iter().map(name).collect()
}

#[case(Program("cc"), GroupBudget(950))]
pub fn one_of_several_tasks_is_compared_and_the_others_have_rows(dir: &Path) {
    built(dir, "tasks", TASKS);

    // The shortest period, though it is opened last.
    let said = bench(dir, &[]).ends_with(0);
    let parts = [
        "reports its jobs: tasks control (compared), filter, log",
        "execution time of a job of control",
        "response time of the program's other tasks",
    ];
    for part in parts {
        assert!(said.out.contains(part), "{part}: {}", said.out);
    }
    let (task, _, beside) = taken(dir);
    assert_eq!(task.as_deref(), Some("control"));
    let bare = ["bare filter", "bare log"];
    assert_eq!(names(&beside)[..2], bare);
    assert_eq!(beside.len(), 6);
    for row in &beside {
        assert!(row.executed > 0, "{row:?}");
        assert_eq!(row.execution.as_ref().unwrap().count, row.executed);
    }

    // Another one, without turns, so that the others' skipped jobs count; all of them are in the page.
    let file = "schema = 1\nname = \"x\"\n[workload]\nkind = \"program\"\nprogram = [\"./tasks\"]\nreports = true\njobs = 20\nperiod = \"20ms\"\n\
        reported = [{ name = \"log\", period = \"20ms\" }, { name = \"control\", period = \"2ms\" }, { name = \"filter\", period = \"10ms\" }]\n\
        [scheduling]\ncpus = [1]\n[[trial]]\nname = \"bare\"\ncells = [\"bare\"]\n";
    fs::write(dir.join("x.toml"), file).unwrap();
    say(dir, &["bench", "x.toml"]).ends_with(0);
    let page = fs::read_to_string(only_run(dir).join("report.html"));
    let page = page.unwrap_or_else(|_| {
        let words = ["report", "--html", "page.html", "latest"];
        say(dir, &words).ends_with(0);
        fs::read_to_string(dir.join("page.html")).unwrap()
    });
    assert!(page.contains("The program's other tasks"));
    let (task, compared, beside) = taken(dir);
    assert_eq!(task.as_deref(), Some("log"));
    assert_eq!(names(&beside), ["bare control", "bare filter"]);
    // Of 20 ms: ten times as many of the one, twice as many of the other, give or take the jobs at both ends.
    for (row, times) in beside.iter().zip([10, 2]) {
        let (seen, activations) = (row.executed + row.skipped, compared * times);
        assert!(
            seen.abs_diff(activations) <= activations / 5 + 36,
            "{row:?}"
        );
    }

    let said = bench(dir, &["--task", "log"]).ends_with(0);
    let named = "reports its jobs: tasks log (compared), control, filter";
    assert!(said.out.contains(named), "{}", said.out);
    assert_eq!(taken(dir).0.as_deref(), Some("log"));

    let said = bench(dir, &["--task", "nobody"]).ends_with(2);
    let parts = [
        "reports no jobs of a task `nobody`; its tasks are",
        "`filter`",
        "`log`",
        "`control`",
    ];
    for part in parts {
        assert!(said.err.contains(part), "{part}: {}", said.err);
    }
}
