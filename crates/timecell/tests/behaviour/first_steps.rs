//! First steps: files of the wrong kind, deadlines that were not met, the header, terminal and page.

use std::path::Path;

use record::run::Run;
use record::summary::RunSummary;

use crate::support::{self, only_run, say, timecell};

/// Jobs of about a millisecond with a period, or a pause, of a tenth of it.
fn experiment(pacing: &str) -> String {
    format!(
        "schema = 1\nname = \"late\"\nrounds = 1\n[workload]\nkind = \"mac\"\nsteps = 2_000_000\nperiod = \"200us\"\n\
         jobs = 40\npacing = \"{pacing}\"\n[[trial]]\ncells = [\"bare\"]\n"
    )
}

#[case(Root, RealTime, Unhindered)]
fn deadlines_that_were_not_met_are_late_and_can_be_a_threshold(dir: &Path) {
    std::fs::write(dir.join("late.toml"), experiment("periodic")).unwrap();
    let words = ["bench", "late.toml", "--fail-if", "late > 0"];
    let said = say(dir, &words).ends_with(3);
    assert!(said.out.contains("   late"), "{}", said.out);
    let summary = Run::open(&only_run(dir))
        .unwrap()
        .read::<RunSummary>()
        .unwrap();
    let cell = &summary.cells[0];
    // Every job ends after the next release, including those before which no activation was skipped; skipped ones are counted apart.
    assert_eq!(cell.late, Some(cell.executed));
    assert!(cell.skipped > 0);
    assert!(cell.executed > 0 && cell.skipped < cell.planned);
    assert_eq!(cell.executed + cell.skipped, cell.planned);
    let page = only_run(dir).join("report.html");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains(">late<"), "no column");
    let path = only_run(dir);
    let words = [
        "report",
        &path.to_string_lossy(),
        "--fail-if",
        "late > 1000",
    ];
    say(dir, &words).ends_with(0);
}

#[case]
fn jobs_that_pause_have_no_deadline(dir: &Path) {
    std::fs::write(dir.join("late.toml"), experiment("relative")).unwrap();
    let said = say(dir, &["bench", "late.toml", "--class", "other"]).ends_with(0);
    assert!(!said.out.contains("   late"), "{}", said.out);
    let summary = Run::open(&only_run(dir))
        .unwrap()
        .read::<RunSummary>()
        .unwrap();
    let cell = &summary.cells[0];
    assert_eq!((cell.executed, cell.skipped, cell.late), (40, 0, None));
}

#[case]
fn a_file_of_another_kind_is_recognised(dir: &Path) {
    let write = |name: &str, text: &str| std::fs::write(dir.join(name), text).unwrap();
    write(
        "mission.toml",
        "schema = 1\nname = \"m\"\n[[cell]]\nname = \"a\"\n",
    );
    write("e.toml", &experiment("relative"));
    write(
        "set.toml",
        "schema = 1\n[[cell]]\nname = \"a\"\ntask = []\n",
    );
    std::fs::create_dir(dir.join("run")).unwrap();
    write("run/run.json", "{}");
    for (words, hint) in [
        (
            ["report", "mission.toml"],
            "mission.toml looks like a mission: `timecell admit mission.toml` reads it",
        ),
        (
            ["bench", "mission.toml"],
            "mission.toml looks like a mission: ",
        ),
        (
            ["admit", "e.toml"],
            "e.toml looks like an experiment: `timecell bench e.toml` reads it",
        ),
        (["up", "e.toml"], "e.toml looks like an experiment: "),
        (
            ["bench", "set.toml"],
            "set.toml looks like a task set: `timecell analyze set.toml` reads it",
        ),
        (["update", "set.toml"], "set.toml looks like a task set: "),
        (["update", "e.toml"], "e.toml looks like an experiment: "),
        (
            ["analyze", "mission.toml"],
            "mission.toml looks like a mission: `timecell admit mission.toml` reads it",
        ),
        (["analyze", "e.toml"], "e.toml looks like an experiment: "),
        (
            ["analyze", "run"],
            "run looks like a run: `timecell report run` reads it",
        ),
        (["admit", "run"], "run looks like a run: "),
        (["update", "run"], "run looks like a run: "),
        (["bench", "run"], "run looks like a run: "),
    ] {
        let said = say(dir, &words).ends_with(2);
        assert!(
            said.err.contains(&format!("note    {hint}")),
            "{words:?}: {}",
            said.err
        );
    }
    for (words, hint) in [
        (
            ["export", "e.toml", "--csv"],
            "e.toml looks like an experiment: ",
        ),
        (
            ["export", "set.toml", "--hdr"],
            "set.toml looks like a task set: ",
        ),
        (["export", "run", "--rt-app"], "run looks like a run: "),
        (
            ["export", "mission.toml", "--rt-app"],
            "mission.toml looks like a mission: ",
        ),
        (["analyze", "design", "run"], "run looks like a run: "),
    ] {
        let said = say(dir, &words).ends_with(2);
        assert!(said.err.contains(hint), "{words:?}: {}", said.err);
    }
    // A file of another tool: the refusal names its kind.
    write(
        "pairs.json",
        "{\"file_version\": 1, \"cmdline\": \"ptsematest --json=x\", \"rt_test_version\": \"2.40\", \"thread\": {}}\n",
    );
    let said = say(dir, &["analyze", "pairs.json"]).ends_with(2);
    let hint = "it looks like rt-tests-json, which `timecell report` reads";
    assert!(said.error().contains(hint), "{}", said.err);
    write(
        "e.toml",
        "schema = 1\nname = \"x\"\n[workload]\nkinds = 3\n",
    );
    let said = say(dir, &["bench", "e.toml"]).ends_with(2);
    assert!(!said.err.contains("looks like"), "{}", said.err);
}

#[case]
fn the_headers_are_in_the_binary(dir: &Path) {
    let file = include_str!("../../../client/include/timecell.h");
    let inmate = include_str!("../../../client/include/timecell_inmate.h");
    for (words, file) in [(&["header"][..], file), (&["header", "--inmate"], inmate)] {
        let said = say(dir, words).ends_with(0);
        assert_eq!(said.out.trim_end(), file.trim_end());
    }
}

#[case]
fn a_narrow_terminal_has_a_table_that_fits(dir: &Path) {
    let words = [
        "bench",
        "overhead",
        "--engine",
        "bare,embedded",
        "--jobs",
        "20",
    ];
    say(dir, &[&words[..], &["--class", "other"]].concat());
    let path = only_run(dir);
    for columns in ["60", "80", "100"] {
        let output = timecell()
            .current_dir(dir)
            .args(["report", &path.to_string_lossy()])
            .env("COLUMNS", columns)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let most: usize = columns.parse().unwrap();
        for line in text.lines().filter(|line| !line.starts_with("report ")) {
            assert!(line.chars().count() <= most, "{columns}: {line}");
        }
        assert!(
            text.contains("wake-up p99") && text.contains("skipped"),
            "{text}"
        );
    }
}

/// The counts and texts about the kernel in the terminal's first lines and on the page.
#[case]
fn terminal_and_page_agree_on_trials_and_kernel(dir: &Path) {
    // Hardly any machine has all of them; if one has, there is nothing to subtract.
    let engines = ["bare", "docker", "podman", "podman-rootless"];
    let file = support::experiment(dir, &engines, 10);
    let words = ["bench", &file, "--class", "other", "--beside-missions"];
    let said = say(dir, &words).ends_with(0);
    let page = std::fs::read_to_string(only_run(dir).join("report.html")).unwrap();
    let told: String = [&said.out[..], &said.err].concat();
    let line = |head: &str| {
        let found = told.lines().find(|line| line.starts_with(head));
        found.unwrap_or_else(|| panic!("{head}: {told}"))
    };
    let number = |text: &str| -> usize {
        let digits = text.split_whitespace().next();
        digits.and_then(|digits| digits.parse().ok()).expect(text)
    };
    let begun = number(line("plan ").trim_start_matches("plan"));
    let plan = page.split("<dt>plan</dt><dd>").nth(1).unwrap();
    let plan = plan.split("</dd>").next().unwrap();
    let left_out = plan
        .split_once("; ")
        .filter(|parts| parts.1.ends_with("of these trials could not be measured"))
        .map_or(0, |parts| number(parts.1));
    assert_eq!(number(plan), engines.len(), "{plan}");
    assert_eq!(begun, engines.len() - left_out, "{plan}\n{told}");
    let host = line("host ");
    let terminal = (
        host.contains("not PREEMPT_RT"),
        !host.contains("PREEMPT_RT"),
    );
    let page = (
        page.contains("The kernel is not PREEMPT_RT"),
        page.contains("It is not known whether the kernel is PREEMPT_RT"),
    );
    assert_eq!(terminal, page, "{host}");
}
