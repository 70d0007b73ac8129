//! The demo mission as documented, the output of `ps` and `top` on a mission, and reasons of failed starts.

use std::fs;
use std::num::NonZero;
use std::path::Path;

use serde_json::Value;

use crate::missions::{Up, mission, name, nothing_is_left};
use crate::pty::{PROGRAMS, Pty};
use crate::support::{eventually, say};

const STATE: [&str; 2] = ["--dir", "state"];

fn json(dir: &Path, verb: &str, more: &[&str]) -> Value {
    let words: Vec<&str> = [verb, "--json"]
        .iter()
        .chain(&STATE)
        .chain(more)
        .copied()
        .collect();
    let said = say(dir, &words).ends_with(0);
    serde_json::from_str(&said.out).unwrap()
}

// Nobody beside it may have threads of SCHED_DEADLINE, which withdraw bounds.
#[case(Root, RealTime, GroupBudget(250), DeadlineBudget, Program(PROGRAMS[0]), Program(PROGRAMS[1]), Program(PROGRAMS[2]))]
fn the_demo_mission_is_admitted_runs_and_is_watched(dir: &Path) {
    let demo = say(dir, &["demo"]).ends_with(0).out;
    // As documented, except for its name: another mission of that name may run on this machine.
    let own = demo.replace("name = \"demo\"", &format!("name = \"{}\"", name(dir)));
    assert_ne!(own, demo);
    fs::write(dir.join("mission.toml"), own).unwrap();
    say(dir, &["admit", "mission.toml"]).ends_with(0);
    let mut up = Up::start(dir);
    up.until("flaky: runs");
    let control = || json(dir, "ps", &[])["cells"][0].clone();
    eventually("some jobs are reported", || {
        control()["tasks"][0]["jobs"].as_u64() >= Some(5)
    });
    let worst = control()["tasks"][0]["worst_response_ns"].as_i64().unwrap();
    assert!(worst >= 2_000_000, "{worst}");
    let table = say(dir, &["ps", "--dir", "state"]).ends_with(0).out;
    let heads = table.lines().nth(2).unwrap();
    for head in [
        "uptime",
        "jobs",
        "late",
        "skipped",
        "worst response",
        "bound",
    ] {
        assert!(heads.contains(head), "{table}");
    }
    // Below its cell; the other cell has no tasks.
    let below: Vec<&str> = table
        .lines()
        .filter(|line| line.starts_with("  "))
        .collect();
    let [task] = below[..] else { panic!("{table}") };
    assert!(
        task.starts_with("  control ") && table.lines().nth(4) == Some(task),
        "{table}"
    );
    let scene = json(dir, "top", &["--interval", "500ms"]);
    let rows = scene["rows"].as_array().unwrap();
    assert_eq!(
        (&rows[0]["id"], &rows[0]["state"]),
        (&"control".into(), &"running".into())
    );
    assert!(
        rows[0]["jobs"].as_u64() >= Some(5) && rows[0]["worst_response_ns"].is_i64(),
        "{scene}"
    );
    assert_eq!(rows[0]["tasks"][0]["task"], "control", "{scene}");
    let class = rows[0]["class"].as_str().unwrap_or_default();
    let enforcer = rows[0]["enforcer"].as_str().unwrap_or_default();
    assert!(
        class.starts_with("FIFO ") || class.starts_with("DEADLINE "),
        "{scene}"
    );
    assert!(["rt-cgroup", "deadline"].contains(&enforcer), "{scene}");
    // It cannot be sorted by a value for which it has no column.
    let no_order = ["top", "--dir", "state", "--once", "--sort", "skipped"];
    let error = say(dir, &no_order).ends_with(2).error();
    assert!(
        error.contains("a mission has no column `skipped`"),
        "{error}"
    );
    // 2 ms every 100 ms.
    let share = rows[0]["cpu_share"].as_f64().unwrap();
    assert!(share > 0.0 && share < 0.5, "{scene}");
    // Keys that do not apply to a mission are absent, not 0.
    assert!(
        rows[0].get("skipped").is_none() && scene.get("left_ns").is_none(),
        "{scene}"
    );
    on_a_terminal(dir);
    up.until("flaky: exited with status 1");
    up.until("flaky: runs");
    in_the_order_of_time(dir);
    counts_go_on(dir);
    say(dir, &["down", "--dir", "state"]).ends_with(0);
    up.until("all cells stopped");
    nothing_is_left(dir);
    let error = say(dir, &["top", "--dir", "state", "--once"])
        .ends_with(4)
        .error();
    assert!(error.contains("has no supervisor"), "{error}");
}

/// Totals and counters are sums over all starts.
fn counts_go_on(dir: &Path) {
    let control = || json(dir, "ps", &[])["cells"][0].clone();
    let jobs = |cell: &Value, of: &str| cell.pointer(of).and_then(Value::as_u64).unwrap_or(0);
    let before = control();
    let [jobs_before, cpu_before] =
        ["/total/tasks/0/jobs", "/total/cpu_ns"].map(|of| jobs(&before, of));
    assert!(jobs_before >= 5 && cpu_before > 0, "{before}");
    say(dir, &["restart", "control", "--dir", "state"]).ends_with(0);
    let after = control();
    let [total, since, cpu] =
        ["/total/tasks/0/jobs", "/tasks/0/jobs", "/total/cpu_ns"].map(|of| jobs(&after, of));
    assert!(
        total >= jobs_before + since && total > since,
        "{before}\n{after}"
    );
    assert!(
        cpu >= cpu_before && cpu >= jobs(&after, "/cpu_ns"),
        "{before}\n{after}"
    );
    say(dir, &["stop", "control", "--dir", "state"]).ends_with(0);
    let metrics = say(dir, &["ps", "--prometheus", "--dir", "state"])
        .ends_with(0)
        .out;
    let value = |name: &str| -> Option<u64> {
        let line = metrics.lines().find(|line| line.starts_with(name))?;
        line.rsplit_once(' ')?.1.parse().ok()
    };
    assert!(
        value("timecell_task_jobs_total{") >= Some(total),
        "{metrics}"
    );
    // The demo counts its response times.
    let counted = value("timecell_task_response_seconds_count{");
    assert!(
        counted.is_some() && counted <= value("timecell_task_jobs_total{"),
        "{metrics}"
    );
    assert_eq!(
        value("timecell_task_worst_response_seconds{"),
        None,
        "{metrics}"
    );
}

/// The end of a life is printed before the action of its rule, and that before the next start.
fn in_the_order_of_time(dir: &Path) {
    let events = || -> Vec<Value> {
        let said = say(dir, &["events", "--json", "--dir", "state"]).ends_with(0);
        let lines = said.out.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    };
    let of_flaky = |events: &[Value]| -> Vec<String> {
        let of_it = events.iter().filter(|event| event["cell"] == "flaky");
        of_it
            .filter_map(|event| Some(event["kind"].as_str()?.to_owned()))
            .collect()
    };
    eventually("the second life is on record", || {
        let kinds = of_flaky(&events());
        kinds.iter().filter(|kind| *kind == "cell_started").count() >= 2
    });
    let events = events();
    let at = |event: &Value| event["at"]["wall_unix_ns"].as_i64();
    assert!(events.iter().map(at).is_sorted(), "{events:?}");
    assert!(
        events
            .iter()
            .map(|event| event["sequence"].as_u64())
            .is_sorted()
    );
    let kinds = of_flaky(&events);
    let life = ["cell_starting", "cell_started", "cell_ended", "incident"];
    let twice: Vec<&str> = life
        .into_iter()
        .chain(["cell_starting", "cell_started"])
        .collect();
    assert!(
        kinds
            .iter()
            .map(String::as_str)
            .filter(|kind| twice.contains(kind))
            .take(6)
            .eq(twice.iter().copied()),
        "{kinds:?}"
    );
}

fn on_a_terminal(dir: &Path) {
    let command = format!(
        "'{}' top --dir state --interval 200ms",
        env!("CARGO_BIN_EXE_timecell")
    );
    let (rows, columns) = (NonZero::new(20).unwrap(), NonZero::new(150).unwrap());
    let mut terminal = Pty::start(dir, rows, columns, &command);
    let row = |lines: &[String], cell: &str| {
        let words = |line: &&String| line.split_whitespace().next() == Some(cell);
        lines.iter().find(words).cloned().unwrap_or_default()
    };
    terminal.shows("both cells", |lines| {
        lines[0].starts_with(&format!("mission {}: ", name(dir)))
            && lines[2].starts_with("2 cells: ")
            && lines[2].contains("late")
            && lines[3].contains("worst response")
            && row(lines, "control").contains("running")
            && !row(lines, "flaky").is_empty()
    });
    let before = row(&terminal.lines(), "control");
    terminal.shows("the jobs go on", |lines| row(lines, "control") != before);
    for by in ["cpu", "jobs", "late", "worst response", "starts", "cell"] {
        terminal.press("s");
        terminal.shows("another order", |lines| {
            lines[19].starts_with(&format!("by {by}"))
        });
    }
    terminal.press("q");
    let (code, left) = terminal.ends();
    assert_eq!(code, Some(0), "{}", left.contents());
    assert!(!left.alternate_screen(), "the screen before is back");
}

#[case(Root, RealTime, GroupBudget(150))]
fn why_a_cell_could_not_start_is_told_by_ps_and_events(dir: &Path) {
    fs::create_dir_all(dir.join("root/bin")).unwrap();
    mission(
        dir,
        "[[cell]]\nname = \"broken\"\nimage = { rootfs = \"root\" }\ncommand = [\"/bin/nothing\"]\nclass = \"other\"\n\
         [cell.restart]\nlimit = 1\nbackoff_min = \"10ms\"\n\
         [[cell]]\nname = \"stays\"\nimage = { rootfs = \"root\" }\ncommand = [\"/bin/cell\", \"probe\", \"demo\", \"flaky\"]\n\
         class = \"other\"\n",
    );
    fs::copy(env!("CARGO_BIN_EXE_timecell"), dir.join("root/bin/cell")).unwrap();
    let mut up = Up::start(dir);
    let told = up.until("broken: could not be started: ");
    let (_, reason) = told.split_once("could not be started: ").unwrap();
    up.told("stays: runs");
    let broken = || json(dir, "ps", &[])["cells"][0].clone();
    eventually("it is given up", || broken()["state"] == "stopped");
    let text = format!("could not be started: {reason}");
    assert_eq!(broken()["last_end"]["text"], text.as_str());
    let table = say(dir, &["ps", "--dir", "state"]).ends_with(0).out;
    assert!(table.contains(&text), "{text}\n{table}");
    let events = say(dir, &["events", "--dir", "state"]).ends_with(0).out;
    assert!(events.contains(&format!("broken: {text}")), "{events}");
    assert!(!events.contains("ended unobserved"), "{events}");
    up.end();
    nothing_is_left(dir);
}

#[case(Root)]
fn a_dynamic_program_without_its_libraries_is_refused_before_it_is_started(dir: &Path) {
    let cell = "[[cell]]\nname = \"a\"\nimage = { binary = \"/bin/ls\" }\nclass = \"other\"\n";
    mission(dir, cell);
    let error = say(dir, &["admit", "mission.toml"]).ends_with(2).error();
    let parts = [
        "mission.toml:5: ",
        "/bin/ls is not static",
        "interpreter /lib",
        "`rootfs`",
    ];
    for part in parts {
        assert!(error.contains(part), "no `{part}` in: {error}");
    }
}
