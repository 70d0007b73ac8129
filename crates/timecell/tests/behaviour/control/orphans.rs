//! `timecell down` for cells whose supervisor was killed.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::attacks::changed_view;
use crate::control::{RESERVED, ROOT, SLEEPS, ask, json_of};
use crate::missions::{Up, mission, nothing_is_left, pid_of, runs, shell};
use crate::support::{eventually, say, timecell};

#[case(..ROOT)]
fn cells_without_a_supervisor_are_ended_by_down_also_over_a_restart_of_the_supervisor(dir: &Path) {
    let deaf = "trap \\\"\\\" TERM; while true; do /busybox sleep 1; done";
    let once = "class = \"other\"\nrestart = { policy = \"never\" }";
    let cells = shell("steady", SLEEPS, RESERVED)
        + &shell("deaf", deaf, RESERVED)
        + &shell("once", "exit 0", once)
        + &shell("plain", "exec /busybox sleep 1000", "class = \"other\"");
    mission(dir, &cells);
    let mut up = Up::start(dir);
    let pids = ["steady", "deaf", "plain"].map(|name| pid_of(&up.told(&format!("{name}: runs"))));
    up.told("once: stays stopped");
    up.kill();
    let said = ask(dir, &["down"]).ends_with(0);
    let killed = "killed (it did not end within 100ms of SIGTERM)";
    assert!(
        said.out.contains(&format!("deaf: {killed}")),
        "{}",
        said.out
    );
    assert!(
        said.out.contains("all cells stopped; logs kept in") && said.out.contains("/state"),
        "{}",
        said.out
    );
    for pid in pids {
        assert!(!runs(pid));
    }
    assert!(!dir.join("state/control").exists());
    nothing_is_left(dir);
    let again = ask(dir, &["down"]).ends_with(4);
    assert!(again.err.contains("no mission is up"), "{}", again.err);
    assert_eq!(json_of(dir, &["ps"])["mission"], Value::Null);
    let mut up = Up::start(dir);
    up.told("steady: runs");
    up.end();
}

#[case(..ROOT)]
fn what_down_could_not_remove_is_tried_again(dir: &Path) {
    let cells = shell("whole", SLEEPS, RESERVED) + &shell("broken", SLEEPS, RESERVED);
    mission(dir, &cells);
    let mut up = Up::start(dir);
    let pids = ["whole", "broken"].map(|name| pid_of(&up.told(&format!("{name}: runs"))));
    up.kill();
    let note = dir.join("state/cells/broken/cell.json");
    let said = fs::read(&note).unwrap();
    fs::write(&note, "{").unwrap();
    let down = ask(dir, &["down"]).ends_with(1);
    assert!(
        down.out.contains("broken: could not be asked to end: "),
        "{}",
        down.out
    );
    assert!(!down.out.contains("had already ended"), "{}", down.out);
    assert!(!runs(pids[0]) && runs(pids[1]));
    let again = ask(dir, &["down"]).ends_with(1);
    assert!(!again.out.contains("whole: "), "{}", again.out);
    fs::write(&note, said).unwrap();
    let down = ask(dir, &["down"]).ends_with(0);
    assert!(down.out.contains("broken: killed by"), "{}", down.out);
    assert!(!runs(pids[1]));
    nothing_is_left(dir);
}

#[case(..ROOT)]
fn a_supervisor_that_is_stopped_is_named_to_those_who_wait_for_it(dir: &Path) {
    mission(dir, &shell("plain", SLEEPS, "class = \"other\""));
    let mut up = Up::start(dir);
    up.told("plain: runs");
    up.signal(libc::SIGSTOP);
    let clients = [&["ps"][..], &["events", "--follow"]].map(|verb| {
        let mut command = timecell();
        (command.args(verb).args(["--dir", "state"]).current_dir(dir))
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut client = command.spawn().unwrap();
        let mut line = String::new();
        let mut err = BufReader::new(client.stderr.take().unwrap());
        err.read_line(&mut line).unwrap();
        let named = format!("(pid {}) is stopped", up.pid());
        assert!(line.contains(&named), "{line}");
        (client, err)
    });
    up.signal(libc::SIGCONT);
    let [(mut ps, _), (mut events, _)] = clients;
    assert!(ps.wait().unwrap().success());
    up.end();
    assert!(events.wait().unwrap().success());
}

#[case(..ROOT)]
fn a_budget_of_which_nothing_runs_is_given_back_by_clean(dir: &Path) {
    let head = "enforcer = \"rt-cgroup\"";
    let file = format!("{head}\n{}", shell("held", SLEEPS, RESERVED));
    mission(dir, &file);
    let mut up = Up::start(dir);
    let pid = pid_of(&up.told("held: runs"));
    up.kill();
    // Its supervisor and its cell are gone, and the kernel keeps the budget.
    // SAFETY: a process of this test's own mission.
    unsafe { libc::kill(pid, libc::SIGKILL) };
    eventually("the cell ends", || !runs(pid));
    let said = say(dir, &["clean"]);
    let given_back = "held` of mission";
    assert!(
        said.out.contains(given_back) && said.out.contains("removed"),
        "{}",
        said.out
    );
    ask(dir, &["down"]);
    nothing_is_left(dir);
}

/// A mission in a mount namespace of its own has a ledger of its own, as in a container. That ledger counts as well.
#[case(..ROOT)]
fn clean_leaves_the_budget_of_a_mission_that_another_ledger_names(dir: &Path) {
    let head = "enforcer = \"rt-cgroup\"";
    mission(dir, &format!("{head}\n{}", shell("held", SLEEPS, RESERVED)));
    let own_ledger = "mount -t tmpfs none /run/timecell".to_owned();
    let (mut up, pid) = changed_view(&[own_ledger], || {
        let mut up = Up::start(dir);
        let pid = pid_of(&up.told("held: runs"));
        (up, pid)
    });
    up.signal(libc::SIGSTOP);
    // SAFETY: a process of this test's own mission.
    unsafe { libc::kill(pid, libc::SIGKILL) };
    eventually("the cell ends", || !runs(pid));
    let said = say(dir, &["clean"]);
    up.signal(libc::SIGCONT);
    assert!(!said.out.contains("held` of mission"), "{}", said.out);
    up.until("held: runs (pid");
    up.end();
    nothing_is_left(dir);
}
