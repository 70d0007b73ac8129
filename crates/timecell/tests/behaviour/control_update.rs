//! `timecell update` of a running mission.

use std::path::Path;
use std::process::Stdio;

use host::root::Root;
use serde_json::Value;
use supervise::enforce::MissionGroups;

use crate::control::{RESERVED, ask, cell, json_of, runs};
use crate::missions::{Up, busybox, mission, nothing_is_left, pid_of, shell};
use crate::support::{Need, eventually, timecell};

const ROOT: &[Need] = &[
    Need::Root,
    Need::RealTime,
    Need::Program("busybox"),
    Need::GroupBudget(100),
];

/// A program that is fixed after it was given up runs again by `update`, and by no other command.
#[case(..ROOT)]
fn a_fixed_cell_that_had_given_up_runs_again(dir: &Path) {
    let steady = shell("steady", SLEEPS, RESERVED);
    let limit = format!("{RESERVED}\nrestart = {{ limit = 1, backoff_min = \"10ms\" }}");
    mission(dir, &(steady.clone() + &shell("app", "exit 3", &limit)));
    let mut up = Up::start(dir);
    up.until("app: exited with status 3; `timecell logs app` shows what it wrote");
    up.told("app: stays stopped");
    // Another attempt that fails is rolled back: it stays as it was.
    mission(dir, &(steady.clone() + &shell("app", "exit 4", &limit)));
    ask(dir, &["update", "mission.toml", "--window", "60s"]).ends_with(1);
    up.until("update 1 was rolled back");
    assert_eq!(cell(dir, "app")["state"], "stopped");
    mission(dir, &(steady + &shell("app", SLEEPS, &limit)));
    ask(dir, &["update", "mission.toml", "--window", "100ms"]).ends_with(0);
    assert!(cell(dir, "app")["pid"].is_number());
    up.end();
    nothing_is_left(dir);
}

const SLEEPS: &str = "/busybox sleep 1000";

fn change<'a>(updated: &'a Value, name: &str) -> &'a Value {
    let cells = updated["cells"].as_array().unwrap();
    cells.iter().find(|cell| cell["cell"] == name).unwrap()
}

/// The share of every second that its real-time cgroups hold, us.
fn groups_of(dir: &Path) -> Option<u64> {
    let groups = MissionGroups::of(&crate::missions::name(dir)).ok()?;
    let budgets = groups.all().into_iter();
    let budgets = budgets.filter_map(|path| host::rtgroup::budget_of(&Root::live(), &path).ok());
    Some(budgets.map(|budget| budget.per_second_us()).sum())
}

/// Waits until the log of `app` ends with this: a separate thread writes a program's output, with a short delay.
fn wrote(dir: &Path, text: &str) {
    crate::support::eventually("its output is in the log", || {
        ask(dir, &["logs", "app"]).out.ends_with(text)
    });
}

#[case(..ROOT)]
fn what_does_not_change_is_not_touched(dir: &Path) {
    let steady = shell("steady", SLEEPS, RESERVED);
    let free = shell(
        "free",
        SLEEPS,
        "[[cell.task]]\nname = \"loop\"\nwcet = \"1ms\"\nperiod = \"1s\"",
    );
    let plain = shell("plain", SLEEPS, "class = \"other\"");
    let plain_told = shell(
        "plain",
        SLEEPS,
        "class = \"other\"\ndescription = \"told later\"",
    );
    let old = shell("old", SLEEPS, RESERVED);
    let version = |text: &str| shell("app", &format!("echo version {text}; {SLEEPS}"), RESERVED);
    mission(
        dir,
        &(steady.clone() + &free + &plain + &old + &version("one")),
    );
    let mut up = Up::start(dir);
    // In this order, unless one takes longer than a second.
    let pids = ["steady", "free", "plain", "old", "app"]
        .map(|name| pid_of(&up.told(&format!("{name}: runs"))));
    let before = groups_of(dir);
    let with_band = cell(dir, "free");

    let new = shell(
        "new",
        SLEEPS,
        "[[cell.task]]\nname = \"loop\"\nwcet = \"1ms\"\nperiod = \"900ms\"",
    );
    mission(
        dir,
        &(new.clone() + &steady + &free + &plain_told + &version("two")),
    );
    let updated = json_of(dir, &["update", "mission.toml", "--window", "300ms"]);
    assert_eq!(updated["committed"], true, "{updated}");
    for (name, what) in [
        ("steady", "unchanged"),
        ("free", "unchanged"),
        ("plain", "unchanged"),
        ("new", "added"),
        ("old", "removed"),
        ("app", "changed"),
    ] {
        assert_eq!(change(&updated, name)["change"], what, "{updated}");
    }
    assert_eq!(change(&updated, "app")["beside"], true, "{updated}");
    for (name, pid) in [("steady", pids[0]), ("free", pids[1]), ("plain", pids[2])] {
        assert_eq!(cell(dir, name)["pid"], pid, "{name} was touched");
        assert!(runs(pid));
    }
    assert_eq!(cell(dir, "free")["budget_ns"], with_band["budget_ns"]);
    assert!(!runs(pids[3]) && !runs(pids[4]));
    let app = cell(dir, "app");
    assert!(app["pid"] != pids[4] && app["state"] == "running", "{app}");
    wrote(dir, "version two\n");
    assert_eq!(cell(dir, "new")["state"], "running");
    if before.is_some() {
        assert!(matches!(
            host::sched::get_class(i32::try_from(app["pid"].as_i64().unwrap()).unwrap()),
            Ok(host::sched::Class::Fifo { .. })
        ));
    }
    let status = json_of(dir, &["ps"]);
    assert_eq!(status["cells"].as_array().unwrap().len(), 5, "{status}");
    assert_eq!(status["update"], Value::Null);
    // Back again: the versions swap places once more, and the second time everything they need exists.
    mission(dir, &(steady + &free + &plain + &version("three")));
    let updated = json_of(dir, &["update", "mission.toml", "--window", "100ms"]);
    assert_eq!(
        (&updated["committed"], &updated["update"]),
        (&true.into(), &2.into()),
        "{updated}"
    );
    wrote(dir, "version three\n");
    assert_eq!(
        ask(dir, &["logs", "app", "--previous"]).out,
        "version two\n"
    );
    let none = ask(dir, &["logs", "steady", "--previous"]).ends_with(2);
    assert!(none.err.contains("no earlier version"), "{}", none.err);
    if let (Some(before), Some(after)) = (before, groups_of(dir)) {
        assert!(0 < after && after < before, "{after} of {before} us");
    }
    // The successor of a killed supervisor finds the new version.
    up.signal(libc::SIGKILL);
    up.child.wait().unwrap();
    let mut up = Up::start(dir);
    up.until("app: runs on, adopted");
    assert_eq!(cell(dir, "steady")["pid"], pids[0]);
    // A cell that the file does not change can be recreated anyway.
    let updated = json_of(
        dir,
        &[
            "update",
            "mission.toml",
            "--window",
            "0s",
            "--anew",
            "plain",
        ],
    );
    assert_eq!(change(&updated, "plain")["change"], "changed", "{updated}");
    assert_ne!(cell(dir, "plain")["pid"], pids[2]);
    up.end();
    nothing_is_left(dir);
}

/// Best-effort cells, which stay off the mission's cpus, change cpus with it.
#[case(Root, RealTime, TwoCpus, Program("busybox"), GroupBudget(100))]
fn a_cell_whose_cpu_is_the_missions_no_more_is_made_anew_on_another(dir: &Path) {
    let steady = shell("steady", SLEEPS, RESERVED);
    let plain = shell("plain", SLEEPS, "class = \"other\"");
    let on = |cpu: u32, more: &str| {
        let supervisor = "supervisor = { class = \"other\" }";
        let cells = steady.clone() + more;
        mission(dir, &format!("cpus = [{cpu}]\n{supervisor}\n{cells}"));
    };
    on(1, "");
    let mut up = Up::start(dir);
    let first = pid_of(&up.until("steady: runs"));
    on(0, &plain);
    let updated = json_of(dir, &["update", "mission.toml", "--window", "300ms"]);
    for (name, what) in [("steady", "changed"), ("plain", "added")] {
        assert_eq!(change(&updated, name)["change"], what, "{updated}");
    }
    for (name, cpu) in [("steady", 0), ("plain", 1)] {
        let cell = cell(dir, name);
        let pid = i32::try_from(cell["pid"].as_i64().unwrap()).unwrap();
        let cpus = host::sched::get_affinity(pid).unwrap();
        assert!(cpus.iter().eq([&cpu]), "{name} on {cpus:?}");
    }
    assert!(!runs(first));
    up.end();
    nothing_is_left(dir);
}

#[case(..ROOT)]
fn what_cannot_be_kept_is_refused_and_changes_nothing(dir: &Path) {
    let steady = shell("steady", SLEEPS, RESERVED);
    let path = mission(dir, &steady);
    let mut up = Up::start(dir);
    let pid = pid_of(&up.until("steady: runs"));
    let events = ask(dir, &["events"]).ends_with(0).out;
    let greedy = shell(
        "greedy",
        SLEEPS,
        "reservation = { budget = \"95ms\", period = \"100ms\" }",
    );
    if host::rtgroup::detect().is_ok() {
        mission(dir, &(steady.clone() + &greedy));
        let said = ask(dir, &["update", "mission.toml"]).ends_with(3);
        assert!(said.err.contains("error: "), "{}", said.err);
        let table = ask(dir, &["update", "mission.toml", "--json"]).ends_with(3);
        assert!(table.out.is_empty(), "{}", table.out);
    }
    std::fs::write(
        &path,
        "schema = 1\nname = \"x\"\n[[cell]]\nname = \"a\"\nneeds = [\"b\"]\n",
    )
    .unwrap();
    let said = ask(dir, &["update", "mission.toml"]).ends_with(2);
    assert!(said.err.contains("mission.toml:3"), "{}", said.err);
    let said = ask(dir, &["update", "nowhere.toml"]).ends_with(2);
    assert!(said.err.contains("nowhere.toml"), "{}", said.err);
    let other = steady.replace("[[cell]]", "schema = 1\nname = \"another\"\n[[cell]]");
    std::fs::write(&path, other).unwrap();
    let said = ask(dir, &["update", "mission.toml"]).ends_with(2);
    assert!(
        said.error().contains("declares the mission `another`"),
        "{}",
        said.err
    );
    mission(dir, &steady);
    let said = ask(dir, &["update", "mission.toml", "--anew", "stedy"]).ends_with(2);
    assert!(
        said.error().contains("did you mean `steady`?"),
        "{}",
        said.err
    );
    assert_eq!(ask(dir, &["events"]).out, events, "something has happened");
    assert_eq!(cell(dir, "steady")["pid"], pid);
    // With the file as it was, an update announces nothing.
    let began = std::time::Instant::now();
    let said = ask(dir, &["update", "mission.toml", "--window", "60s"]).ends_with(0);
    assert!(began.elapsed().as_secs() < 30, "it waits for nothing");
    assert!(said.out.contains("no cell is changed"), "{}", said.out);
    assert!(!said.err.contains("new version"), "{}", said.err);
    assert_eq!(cell(dir, "steady")["pid"], pid);
    up.end();
    nothing_is_left(dir);
}

#[case(Root, Program("busybox"))]
fn an_update_that_waits_for_the_ledger_keeps_no_cell_waiting(dir: &Path) {
    let restarted = "class = \"other\"\nrestart = { backoff_min = \"10ms\" }";
    let failing = shell("failing", SLEEPS, restarted);
    mission(dir, &failing);
    let mut up = Up::start(dir);
    let pid = pid_of(&up.until("failing: runs"));
    mission(
        dir,
        &(failing + &shell("more", SLEEPS, "class = \"other\"")),
    );
    // Like another timecell that is deciding about admission.
    let lock = std::fs::File::open("/run/timecell/lock").unwrap();
    lock.lock().unwrap();
    let mut update = timecell();
    update.current_dir(dir);
    update.args(["update", "mission.toml", "--dir", "state"]);
    let mut update = (update.args(["--window", "1s"]).stdout(Stdio::null()))
        .spawn()
        .unwrap();
    // While it waits, every other request is refused.
    eventually("the update waits", || {
        let said = ask(dir, &["start", "failing"]);
        said.err.contains("an update is in progress")
    });
    let runs_again = |up: &mut Up, pid: i32| {
        // SAFETY: no memory; it is the cell's process.
        assert_eq!(unsafe { libc::kill(pid, libc::SIGKILL) }, 0);
        pid_of(&up.until("failing: runs"))
    };
    let pid = runs_again(&mut up, pid);
    lock.unlock().unwrap();
    up.until("more: runs");
    // Nor at its end, when it releases the grants of the old version.
    lock.lock().unwrap();
    eventually("the update is committed", || {
        ask(dir, &["events"]).out.contains("update 1: done")
    });
    runs_again(&mut up, pid);
    lock.unlock().unwrap();
    let ended = update.wait().unwrap();
    assert_eq!(ended.code(), Some(0), "it was refused meanwhile");
    assert!(
        !up.has_said("is locked by another"),
        "the ledger was waited for"
    );
    up.end();
    nothing_is_left(dir);
}

#[case(..ROOT)]
fn a_new_version_that_fails_is_taken_back(dir: &Path) {
    let steady = shell("steady", SLEEPS, &format!("{RESERVED}\nneeds = [\"app\"]"));
    let good = shell("app", &format!("echo good; {SLEEPS}"), RESERVED);
    mission(dir, &(steady.clone() + &good));
    let mut up = Up::start(dir);
    let app = pid_of(&up.told("app: runs"));
    let pid = pid_of(&up.told("steady: runs"));
    let bad = shell("app", "echo bad; /busybox sleep 0.3; exit 7", RESERVED);
    mission(
        dir,
        &(steady.clone() + &bad + &shell("more", SLEEPS, RESERVED)),
    );
    let said = ask(dir, &["update", "mission.toml", "--window", "60s"]).ends_with(1);
    assert!(
        said.out.contains("rolled back: `app` exited with status 7"),
        "{}",
        said.out
    );
    up.until("update 1 was rolled back");
    // The old one was never gone, nor was the cell that needs it.
    assert_eq!(
        (&cell(dir, "app")["pid"], &cell(dir, "steady")["pid"]),
        (&app.into(), &pid.into())
    );
    wrote(dir, "good\n");
    let status = json_of(dir, &["ps"]);
    assert_eq!(status["cells"].as_array().unwrap().len(), 2, "{status}");
    // One that cannot even be started: it is for another architecture, which checking its image does not reveal.
    let broken = dir.join("broken");
    let mut program = std::fs::read(busybox()).unwrap();
    program[18..20].copy_from_slice(&0xf00d_u16.to_le_bytes());
    std::fs::write(&broken, program).unwrap();
    std::fs::set_permissions(&broken, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let none = format!("[[cell]]\nname = \"app\"\nimage = {{ binary = \"broken\" }}\n{RESERVED}\n");
    // One that runs and shows no sign of life, so that its rule restarts it.
    let rule = "[[cell.health]]\nwhen = \"heartbeat\"\ntimeout = \"200ms\"\ndo = \"restart\"";
    let silent = shell("app", SLEEPS, &format!("{RESERVED}\n{rule}"));
    for (version, why) in [(none, "could not be started"), (silent, "no report for")] {
        mission(dir, &(steady.clone() + &version));
        let updated = json_of(dir, &["update", "mission.toml", "--window", "60s"]);
        assert_eq!(updated["committed"], false, "{updated}");
        assert!(
            updated["reason"].as_str().unwrap().contains(why),
            "{updated}"
        );
    }
    assert_eq!(
        (&cell(dir, "app")["pid"], &cell(dir, "steady")["pid"]),
        (&app.into(), &pid.into())
    );
    up.end();
    nothing_is_left(dir);
}

#[case(Root, RealTime, Program("busybox"), GroupBudget(600))]
fn the_old_version_ends_first_where_there_is_no_room_for_both(dir: &Path) {
    if host::rtgroup::detect().is_err() {
        return;
    }
    // More than half of the free budget, beside all else that runs on the machine.
    let free_us = host::rtgroup::largest_free_runtime().unwrap();
    let half = format!(
        "reservation = {{ budget = \"{}us\", period = \"100ms\" }}",
        free_us * 55 / 1_000
    );
    let steady = shell("steady", SLEEPS, RESERVED);
    let app = |script: &str| shell("app", script, &half);
    mission(dir, &(steady.clone() + &app(SLEEPS)));
    let mut up = Up::start(dir);
    let pid = pid_of(&up.told("steady: runs"));
    let old = pid_of(&up.told("app: runs"));
    mission(dir, &(steady.clone() + &app("/busybox sleep 2000")));
    let said = ask(dir, &["update", "mission.toml", "--window", "200ms"]).ends_with(0);
    assert!(
        said.err.contains("no room for both versions of app")
            && said
                .err
                .contains("the old one is stopped first; with both, "),
        "{}",
        said.err
    );
    assert!(!runs(old));
    assert_eq!(
        (&cell(dir, "app")["state"], &cell(dir, "steady")["pid"]),
        (&"running".into(), &pid.into())
    );
    // After the roll-back, the old version is started again.
    mission(dir, &(steady + &app("exit 5")));
    let said = ask(dir, &["update", "mission.toml", "--window", "60s"]).ends_with(1);
    assert!(said.out.contains("exited with status 5"), "{}", said.out);
    crate::support::eventually("the old version runs again", || {
        cell(dir, "app")["state"] == "running"
    });
    assert_eq!(cell(dir, "steady")["pid"], pid);
    up.end();
    nothing_is_left(dir);
}

#[case(..ROOT)]
fn an_update_whose_supervisor_is_killed_has_not_taken_place(dir: &Path) {
    let app = |text: &str| shell("app", &format!("echo {text}; {SLEEPS}"), RESERVED);
    let first = mission(dir, &app("one"));
    let text = std::fs::read_to_string(&first).unwrap();
    let mut up = Up::start(dir);
    let pid = pid_of(&up.until("app: runs"));
    mission(dir, &app("two"));
    let mut update = crate::support::timecell()
        .current_dir(dir)
        .args(["update", "mission.toml", "--window", "1h", "--dir", "state"])
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let new = pid_of(&up.until("app: runs"));
    let status = json_of(dir, &["ps"]);
    assert_eq!(
        (status["cells"].as_array().unwrap().len(), &status["update"]),
        (2, &1.into()),
        "{status}"
    );
    let said = ask(dir, &["stop", "app"]).ends_with(1);
    assert!(
        said.error().contains("an update is in progress"),
        "{}",
        said.err
    );
    up.signal(libc::SIGKILL);
    up.child.wait().unwrap();
    assert_eq!(update.wait().unwrap().code(), Some(1));
    std::fs::write(first, text).unwrap();
    let mut up = Up::start(dir);
    assert_eq!(pid_of(&up.until("app: runs on, adopted")), pid);
    up.until("update 1 was rolled back");
    assert!(!runs(new));
    wrote(dir, "one\n");
    up.end();
    nothing_is_left(dir);
}
