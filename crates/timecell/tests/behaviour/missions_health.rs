//! Missions with health rules: observations of their cells, and the action taken.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::missions::{Up, is_gone, mission, nothing_is_left, pid_of};
use crate::reporter::{Deed, Reporter};
use crate::support::Need;

const NEEDS: &[Need] = &[Need::Root, Need::RealTime, Need::GroupBudget(150)];
pub const FORGERY: &[Need] = &[Need::Root, Need::RealTime, Need::GroupBudget(450)];

const QUIET: Reporter = Reporter {
    period_ms: 20,
    work_us: 200,
    from: 0,
    until: 0,
    deed: Deed::Work,
};

const TASK: &str =
    "[[cell.task]]\nname = \"loop\"\nwcet = \"20ms\"\nperiod = \"1s\"\ndeadline = \"1s\"\n";

fn cell(name: &str, reporter: Reporter, more: &str, tables: &str) -> String {
    format!(
        "[[cell]]\nname = \"{name}\"\n{}stop_timeout = \"0ms\"\n{more}\n{tables}",
        reporter.lines()
    )
}

/// Incidents in the journal of a mission, as JSON.
fn incidents(dir: &Path) -> Vec<serde_json::Value> {
    let journal = fs::read_to_string(dir.join("state/journal")).unwrap();
    let entries = journal.lines().filter_map(|line| {
        let json = line.splitn(4, ' ').nth(3)?;
        serde_json::from_str::<serde_json::Value>(json).ok()
    });
    entries
        .filter_map(|entry| entry["entry"].get("incident").cloned())
        .collect()
}

#[case(..NEEDS)]
fn a_wedged_program_is_restarted_and_the_incident_is_on_record(dir: &Path) {
    let wedges = Reporter {
        from: 10,
        until: 11,
        deed: Deed::Wedge,
        ..QUIET
    };
    let rule = "[[cell.health]]\nwhen = \"heartbeat\"\ntimeout = \"2s\"\ndo = \"restart\"\n";
    mission(dir, &cell("steady", wedges, "", &format!("{TASK}{rule}")));
    let mut up = Up::start(dir);
    let first = pid_of(&up.until("steady: runs"));
    let said = up.until("incident: ");
    assert!(
        said.contains("steady: heartbeat: no report for 2"),
        "{said}"
    );
    assert!(said.contains("restart (rule 1)"), "{said}");
    assert_ne!(pid_of(&up.until("steady: runs")), first);
    is_gone(first);
    up.end();
    let on_record = incidents(dir);
    let first = &on_record[0];
    assert_eq!(
        (&first["number"], &first["cell"]),
        (&1.into(), &"steady".into())
    );
    assert_eq!(first["observed"]["what"], "heartbeat");
    let jobs = first["evidence"]["jobs"].as_array().unwrap();
    // The wedged job has not ended.
    assert_eq!(jobs.len(), 10, "{first}");
    assert_eq!(jobs[9]["number"], 9);
    assert_eq!(first["evidence"]["output_tail"]["text"], "reports\n");
    assert!(first["evidence"]["counters"]["cpu_ns"].as_i64().unwrap() > 0);
    nothing_is_left(dir);
}

#[case(..NEEDS)]
fn late_jobs_stop_a_cell_as_its_rule_says(dir: &Path) {
    let late = Reporter {
        from: 5,
        until: 1_000,
        deed: Deed::Late,
        period_ms: 600,
        ..QUIET
    };
    let rule = "[[cell.health]]\nwhen = \"deadline-misses\"\nmisses = 2\njobs = 4\ndo = \"stop\"\n";
    mission(
        dir,
        &(cell(
            "late",
            Reporter { from: 1, ..late },
            "",
            &format!("{TASK}{rule}"),
        ) + &cell("other", QUIET, "needs = [\"late\"]", TASK)),
    );
    let mut up = Up::start(dir);
    let said = up.until("incident: ");
    assert!(
        said.contains("late: deadline-misses of task loop: 2 of at most 4"),
        "{said}"
    );
    up.until("late: stays stopped: a health rule stopped it");
    up.until("other: stays stopped: it needs `late`");
    up.until("no cell runs any more");
    assert_eq!(up.child.wait().unwrap().code(), Some(1));
    nothing_is_left(dir);
}

#[case(Root, RealTime, GroupBudget(300))]
fn releases_left_out_are_missed_deadlines(dir: &Path) {
    let skips = Reporter {
        from: 4,
        until: 6,
        deed: Deed::Skip,
        period_ms: 200,
        ..QUIET
    };
    let rule = "[[cell.health]]\nwhen = \"deadline-misses\"\nmisses = 6\njobs = 8\ndo = \"log\"\n";
    let task = "[[cell.task]]\nname = \"loop\"\nwcet = \"10ms\"\nperiod = \"200ms\"\n";
    mission(
        dir,
        &(cell("skips", skips, "", &format!("{task}{rule}"))
            + &cell(
                "events",
                skips,
                "",
                &format!("{task}arrivals = \"sporadic\"\n{rule}"),
            )),
    );
    let mut up = Up::start(dir);
    let said = up.told("incident: ");
    assert!(
        said.contains("skips: deadline-misses of task loop: 6 of at most 8"),
        "{said}"
    );
    crate::support::eventually("the sporadic one has come as far", || {
        let task = crate::control::cell(dir, "events")["tasks"][0].clone();
        task["jobs"].as_u64() > Some(7)
    });
    let of = |name| crate::control::cell(dir, name)["tasks"][0].clone();
    // A busy machine may make jobs late as well.
    let (skips, events) = (of("skips"), of("events"));
    assert!(skips["skipped"].as_u64() >= Some(6), "{skips}");
    assert!(
        skips["late"].as_u64() >= skips["skipped"].as_u64(),
        "{skips}"
    );
    assert_eq!(events["skipped"], 0, "{events}");
    up.end();
    nothing_is_left(dir);
}

#[case(..NEEDS)]
fn the_first_job_makes_a_cell_ready_and_silence_does_not(dir: &Path) {
    let silent = Reporter {
        until: 1,
        deed: Deed::Wedge,
        ..QUIET
    };
    let never = "ready = \"first-job\"\nstart_timeout = \"1s\"\nrestart = { policy = \"never\" }";
    mission(
        dir,
        &(cell("second", QUIET, "after = [\"first\"]", TASK)
            + &cell("first", QUIET, "ready = \"first-job\"", TASK)
            + &cell("silent", silent, never, TASK)
            + &cell("waiting", QUIET, "needs = [\"silent\"]", TASK)),
    );
    let mut up = Up::start(dir);
    up.until("silent: no job ended within 1");
    up.until("silent: stays stopped");
    up.until("waiting: stays stopped: it needs `silent`");
    if !up.said.iter().any(|line| line.contains("second: runs")) {
        up.until("second: runs");
    }
    let place = |part: &str| up.said.iter().position(|line| line.contains(part));
    assert!(
        place("first: is ready") < place("second: runs"),
        "{:?}",
        up.said
    );
    assert!(place("first: is ready").is_some() && place("waiting: runs").is_none());
    up.end();
    nothing_is_left(dir);
}

#[case(..NEEDS)]
fn a_program_is_told_of_a_crash_and_the_limit_sheds_another_cell(dir: &Path) {
    let crashes = Reporter {
        from: 2,
        until: 3,
        deed: Deed::Crash,
        ..QUIET
    };
    let rules = "[[cell.health]]\nwhen = \"exit\"\ndo = \"notify\"\n\
        [[cell.health]]\nwhen = \"restart-limit\"\ndo = \"shed\"\n";
    let restart = "criticality = \"hi\"\nrestart = { limit = 1 }";
    let file = dir.join("notified");
    let cells = cell("crashing", crashes, restart, &format!("{TASK}{rules}"))
        + &cell("payload", QUIET, "", TASK);
    let notify = format!(
        "notify = [\"/bin/sh\", \"-c\", \"cat >> {}\"]\n",
        file.display()
    );
    mission(dir, &format!("{notify}{cells}"));
    let mut up = Up::start(dir);
    up.until("crashing: killed by signal 11 (SIGSEGV)");
    up.until("crashing: restarting");
    up.until("payload: is shed: it is frozen");
    up.until("crashing: stays stopped: it reached its restart limit");
    let end = Instant::now() + Duration::from_secs(60);
    let told = loop {
        let text = fs::read_to_string(&file).unwrap_or_default();
        let whole = text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        let told: Vec<serde_json::Value> = whole.collect();
        if told.len() == 2 {
            break told;
        }
        assert!(Instant::now() < end, "{text}");
        std::thread::sleep(Duration::from_millis(10));
    };
    assert_eq!(told[0]["observed"]["what"], "exit");
    assert_eq!(told[0]["evidence"]["end"]["killed"]["signal"], 11);
    assert_eq!(told[0]["action"]["action"], "notify");
    up.end();
    nothing_is_left(dir);
}

#[case(Root, RealTime, Program("busybox"), GroupBudget(150))]
fn what_the_kernel_counts_is_watched_without_a_report() {
    let dir = tempfile::tempdir().unwrap();
    let busybox = std::env::split_paths(&std::env::var_os("PATH").unwrap())
        .map(|dir| dir.join("busybox"))
        .find(|path| path.is_file())
        .unwrap();
    let shell = |name: &str, script: &str, rest: &str| {
        format!(
            "[[cell]]\nname = \"{name}\"\nimage = {{ binary = \"{}\" }}\nargs = [\"sh\", \"-c\", \"{script}\"]\nstop_timeout = \"0ms\"\n{rest}\n",
            busybox.display()
        )
    };
    // Long enough to see the busy one work even if the machine stalls for 300 ms.
    let still = "class = \"other\"\n[[cell.health]]\nwhen = \"no-progress\"\ntimeout = \"1s\"\ndo = \"stop\"";
    let greedy = "reservation = { budget = \"10ms\", period = \"100ms\" }\n[[cell.health]]\nwhen = \"budget-exhausted\"\nperiods = 5\ndo = \"stop\"";
    mission(
        dir.path(),
        &(shell("still", "/busybox sleep 1000", still)
            + &shell(
                "busy",
                "while true; do :; done",
                &still.replace("stop\"", "restart\""),
            )
            + &shell("greedy", "while true; do :; done", greedy)),
    );
    let mut up = Up::start(dir.path());
    let rt = host::rtgroup::detect().is_ok();
    let mut parts = vec![
        "still: no-progress: no progress for",
        "still: stays stopped: a health rule stopped it",
    ];
    if rt {
        parts.push("greedy: budget-exhausted: the budget was used up in 5 periods in a row: stop");
    }
    for part in parts {
        if !up.said.iter().any(|line| line.contains(part)) {
            up.until(part);
        }
    }
    assert!(
        !up.said.iter().any(|line| line.contains("busy: restarting")),
        "{:?}",
        up.said
    );
    up.end();
    nothing_is_left(dir.path());
}

/// A cell whose jobs exceed its low-mode wcet for a while, beside one that is shed meanwhile.
fn two_modes(long_until: u64) -> String {
    format!(
        "{}{}",
        critical(long_until),
        cell("payload", QUIET, "", TASK)
    )
}

/// Modes, and the cell `critical` whose jobs exceed its low-mode wcet for a while.
pub fn critical(long_until: u64) -> String {
    let long = Reporter {
        period_ms: 200,
        work_us: 10_000,
        from: 5,
        until: long_until,
        deed: Deed::Long,
    };
    let modes = "[modes]\nreturn_after = \"300ms\"\n";
    let task =
        "[[cell.task]]\nname = \"loop\"\nwcet = \"15ms\"\nwcet_hi = \"60ms\"\nperiod = \"200ms\"\n";
    let critical = cell("critical", long, "criticality = \"hi\"", task);
    format!("{modes}{critical}")
}

#[case(Root, RealTime, GroupBudget(450))]
fn an_overrun_changes_the_mode_and_idleness_brings_it_back(dir: &Path) {
    // Its period is shorter than the required idle time: it must end for the mission to return.
    let text = two_modes(25).replace("return_after = \"300ms\"", "return_after = \"50ms\"");
    mission(dir, &text);
    let mut up = Up::start(dir);
    up.until("payload: is shed: it is frozen");
    let said = up.until("mode: ");
    assert!(
        said.contains("mode: high, because `critical` needs more"),
        "{said}"
    );
    up.until("payload: no longer shed");
    up.until("mode: low");
    up.end();
    let overran = incidents(dir);
    assert!(overran.is_empty(), "no rule asks for a record: {overran:?}");
    let journal = fs::read_to_string(dir.join("state/journal")).unwrap();
    assert!(journal.contains("\"mode_switched\":{\"to\":\"high\"}"));
    nothing_is_left(dir);
}

#[case(..FORGERY)]
fn a_cell_that_makes_jobs_up_for_its_child_is_found() {
    jobs_made_up_for_a_child();
}

/// The lines printed about a cell that makes jobs up for its child.
pub fn jobs_made_up_for_a_child() -> String {
    let dir = tempfile::tempdir().unwrap();
    let forges = Reporter {
        period_ms: 200,
        work_us: 1_000,
        from: 5,
        until: u64::MAX,
        deed: Deed::Forge,
    };
    let task =
        "[[cell.task]]\nname = \"loop\"\nwcet = \"15ms\"\nwcet_hi = \"60ms\"\nperiod = \"200ms\"\n";
    let modes = "[modes]\nreturn_after = \"300ms\"\n";
    let critical = cell("critical", forges, "criticality = \"hi\"", task);
    let payload = cell("payload", QUIET, "", TASK);
    mission(dir.path(), &format!("{modes}{critical}{payload}"));
    let mut up = Up::start(dir.path());
    let said = up.told("mode: ");
    assert!(
        said.contains("mode: high, because `critical` needs more"),
        "{said}"
    );
    up.end();
    nothing_is_left(dir.path());
    said
}

/// For 4 s, during which one cell ends far more jobs than a page has room for, and one wedges.
#[case(Root, RealTime, GroupBudget(450))]
fn a_supervisor_that_stood_still_blames_no_cell_and_finds_the_wedged_one(dir: &Path) {
    let rule = |when: &str| format!("[[cell.health]]\nwhen = {when}\ndo = \"restart\"\n");
    let silent = |ms| {
        ["heartbeat", "no-progress"]
            .map(|when| rule(&format!("\"{when}\"\ntimeout = \"{ms}ms\"")))
            .concat()
    };
    let task = |wcet: &str, period: &str| {
        format!("[[cell.task]]\nname = \"loop\"\nwcet = \"{wcet}\"\nperiod = \"{period}\"\n")
    };
    let fast = Reporter {
        period_ms: 10,
        ..QUIET
    };
    let works = Reporter {
        period_ms: 50,
        work_us: 4_000,
        ..QUIET
    };
    let wedges = Reporter {
        from: 150,
        until: 151,
        deed: Deed::Wedge,
        ..QUIET
    };
    let high = task("5ms", "50ms").replace("period", "wcet_hi = \"6ms\"\nperiod");
    // A cell is not blamed for a silence if the look itself is late by half of it: a machine that stalls for 300 ms must not
    // reach it at all.
    let cells = [
        cell("fast", fast, "", &(task("1ms", "10ms") + &silent(500))),
        cell(
            "works",
            works,
            "criticality = \"hi\"",
            &(high + &rule("\"overrun\"")),
        ),
        cell("wedges", wedges, "class = \"other\"", &silent(500)),
    ];
    // No budgets: their supply is not tested here.
    let top = "enforcer = \"cpuset-only\"\n[modes]\n";
    mission(dir, &(top.to_owned() + &cells.concat()));
    let mut up = Up::start(dir);
    for name in ["fast", "works", "wedges"] {
        up.told(&format!("{name}: runs"));
    }
    std::thread::sleep(Duration::from_secs(1));
    up.signal(libc::SIGSTOP);
    std::thread::sleep(Duration::from_secs(4));
    assert!(!up.has_said("incident: "), "{}", up.said.join("\n"));
    up.signal(libc::SIGCONT);
    let goes_on = Instant::now();
    up.until("wedges: heartbeat: no report for ");
    let took = goes_on.elapsed();
    assert!(took < Duration::from_millis(1_500), "{took:?}");
    std::thread::sleep(Duration::from_secs(1));
    assert!(!up.has_said("mode: high"), "{}", up.said.join("\n"));
    up.end();
    for incident in incidents(dir) {
        assert_eq!(incident["cell"], "wedges", "{incident}");
    }
    nothing_is_left(dir);
}

#[case(Root, RealTime, GroupBudget(450))]
fn a_mode_outlives_the_supervisor(dir: &Path) {
    // Never idle for that long: high mode lasts.
    mission(dir, &two_modes(1_000_000).replace("300ms", "1h"));
    let mut up = Up::start(dir);
    up.until("mode: high");
    up.signal(libc::SIGKILL);
    up.child.wait().unwrap();
    let mut up = Up::start(dir);
    up.told("critical: runs on, adopted");
    up.told("payload: runs on, adopted");
    // A frozen cell ends like any other.
    up.end();
    nothing_is_left(dir);
}
