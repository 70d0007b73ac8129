//! Control of a running mission from another terminal.

mod orphans;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::missions::{Up, is_gone, mission, nothing_is_left, pid_of, shell};
use crate::support::{Need, copy_program, eventually, say, timecell};

pub const ROOT: &[Need] = &[
    Need::Root,
    Need::RealTime,
    Need::Program("busybox"),
    Need::GroupBudget(50),
];

/// Small enough for many cells in two versions beside all else that runs on the machine.
pub const RESERVED: &str = "reservation = { budget = \"2ms\", period = \"200ms\" }";
pub const SLEEPS: &str = "/busybox sleep 1000";

/// Runs a command on the mission of this test.
pub fn ask(dir: &Path, words: &[&str]) -> crate::support::Said {
    let mut all = words.to_vec();
    all.extend(["--dir", "state"]);
    say(dir, &all)
}

#[track_caller]
pub fn json_of(dir: &Path, words: &[&str]) -> Value {
    let mut all = words.to_vec();
    all.push("--json");
    let said = ask(dir, &all);
    serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {}", said.err))
}

/// The entry of a cell in the output of `ps`.
#[track_caller]
pub fn cell(dir: &Path, name: &str) -> Value {
    let status = json_of(dir, &["ps"]);
    let cells = status["cells"].as_array().unwrap();
    let found = cells.iter().find(|cell| cell["cell"] == name);
    found.unwrap_or_else(|| panic!("{status}")).clone()
}

pub use crate::missions::runs;

/// The supervisor's answers about `steady`, whose first process this is, and `plain`.
#[track_caller]
fn both_are_told(dir: &Path, pid: i32) {
    let said = ask(dir, &["ps"]).ends_with(0);
    assert!(said.out.contains("2 of 2 cells run"), "{}", said.out);
    let steady = cell(dir, "steady");
    assert_eq!(
        (&steady["pid"], &steady["state"]),
        (&pid.into(), &"running".into())
    );
    assert_eq!(
        (&steady["budget_ns"], &steady["period_ns"]),
        (&2_000_000.into(), &200_000_000.into())
    );
    assert!(steady["cpu_ns"].as_i64().unwrap() > 0, "{steady}");
    assert_eq!(cell(dir, "plain")["budget_ns"], Value::Null);
    let metrics = ask(dir, &["ps", "--prometheus"]).ends_with(0).out;
    let name = crate::missions::name(dir);
    for line in [
        "# TYPE timecell_cell_up gauge".to_owned(),
        format!("timecell_cell_budget_seconds{{mission=\"{name}\",cell=\"steady\"}} 0.002"),
    ] {
        assert!(
            metrics.lines().any(|found| found == line),
            "no `{line}` in:\n{metrics}"
        );
    }
}

/// The supervisor is killed, then the cell `plain`; the next supervisor adopts `steady` and starts `plain` anew.
#[case(..ROOT)]
fn what_runs_is_told_by_the_supervisor_and_without_it_by_the_journal(dir: &Path) {
    let cells = shell("steady", SLEEPS, RESERVED) + &shell("plain", SLEEPS, "class = \"other\"");
    mission(dir, &cells);
    let mut up = Up::start(dir);
    let pid = pid_of(&up.told("steady: runs"));
    let plain = pid_of(&up.told("plain: runs"));
    let mode = fs::metadata(dir.join("state/control"))
        .unwrap()
        .permissions();
    assert_eq!(mode.mode() & 0o777, 0o600);
    both_are_told(dir, pid);
    let unknown = ask(dir, &["stop", "stedy"]).ends_with(2);
    assert!(
        unknown.error().contains("did you mean `steady`?"),
        "{}",
        unknown.err
    );

    up.signal(libc::SIGKILL);
    up.child.wait().unwrap();
    let said = ask(dir, &["ps"]).ends_with(4);
    assert!(
        said.out
            .contains("has no supervisor; 2 of 2 cells still run"),
        "{}",
        said.out
    );
    let steady = cell(dir, "steady");
    assert_eq!(
        (&steady["pid"], &steady["state"]),
        (&pid.into(), &"orphan".into())
    );
    let stop = ask(dir, &["stop", "steady"]).ends_with(4);
    assert!(stop.error().contains("has no supervisor"), "{}", stop.err);
    let class = host::sched::get_class(pid);
    assert!(
        matches!(class, Ok(host::sched::Class::Fifo { .. })),
        "{class:?}"
    );
    // One of them ends while nothing supervises it.
    // SAFETY: a cell of this test.
    unsafe { libc::kill(plain, libc::SIGKILL) };
    let mut up = Up::start(dir);
    assert_eq!(pid_of(&up.told("steady: runs on, adopted")), pid);
    let again = pid_of(&up.told("plain: runs (pid"));
    assert_ne!(again, plain);
    assert_eq!(cell(dir, "steady")["state"], "running");
    up.end();
    for pid in [pid, again] {
        is_gone(pid);
    }
    let said = ask(dir, &["ps"]).ends_with(4);
    assert!(said.out.contains("no mission is up"), "{}", said.out);
    assert!(!dir.join("state/control").exists());
    nothing_is_left(dir);
}

#[case(..ROOT)]
fn a_stopped_cell_stays_so_until_it_is_started_also_over_a_restart_of_the_supervisor(dir: &Path) {
    mission(dir, &shell("only", SLEEPS, RESERVED));
    let mut up = Up::start(dir);
    let pid = pid_of(&up.until("only: runs"));
    let said = ask(dir, &["stop", "only"]).ends_with(0);
    // As the first process of its pid namespace, the shell gets no signal that it does not handle, and is killed at once, however long it takes
    // to die.
    let at_once = "only: killed by signal 9 (SIGKILL) when asked to end, stays stopped";
    assert!(said.out.contains(at_once), "{}", said.out);
    assert!(!runs(pid));
    let stopped = cell(dir, "only");
    assert_eq!(
        (&stopped["state"], &stopped["holds"][0]),
        (&"stopped".into(), &"by_hand".into())
    );
    let again = ask(dir, &["stop", "only"]).ends_with(0);
    assert!(again.out.contains("was not running"), "{}", again.out);
    // The supervisor keeps waiting although nothing runs, and so does the next one.
    up.signal(libc::SIGKILL);
    up.child.wait().unwrap();
    let up = Up::start(dir);
    eventually("the supervisor listens", || {
        ask(dir, &["ps"]).code == Some(0)
    });
    assert_eq!(cell(dir, "only")["state"], "stopped");
    let said = ask(dir, &["start", "only"]).ends_with(0);
    assert!(said.out.contains("only: runs (pid"), "{}", said.out);
    let found = cell(dir, "only");
    assert_eq!(
        (&found["state"], &found["starts"]),
        (&"running".into(), &2.into())
    );
    let said = ask(dir, &["start", "only"]).ends_with(0);
    assert!(said.out.contains("already running"), "{}", said.out);
    up.end();
    nothing_is_left(dir);
}

#[case(..ROOT)]
fn those_who_need_a_stopped_cell_go_and_come_with_it(dir: &Path) {
    let cells = shell("camera", SLEEPS, RESERVED)
        + &shell(
            "tracker",
            SLEEPS,
            &format!("{RESERVED}\nneeds = [\"camera\"]"),
        )
        + &shell("radio", SLEEPS, RESERVED);
    mission(dir, &cells);
    let mut up = Up::start(dir);
    let radio =
        ["camera", "tracker", "radio"].map(|name| pid_of(&up.told(&format!("{name}: runs"))))[2];
    let said = ask(dir, &["stop", "camera"]).ends_with(0);
    assert!(
        said.out.contains("tracker: killed") && said.out.contains("needs a cell"),
        "{}",
        said.out
    );
    up.until("tracker: stays stopped: it needs `camera`");
    let said = ask(dir, &["start", "tracker"]).ends_with(1);
    assert!(
        said.error()
            .contains("`tracker` needs `camera`, which is not running"),
        "{}",
        said.err
    );
    let said = ask(dir, &["start", "camera"]).ends_with(0);
    assert!(
        said.out.contains("camera: runs") && said.out.contains("tracker: runs"),
        "{}",
        said.out
    );
    for name in ["camera", "tracker", "radio"] {
        assert_eq!(cell(dir, name)["state"], "running");
    }
    assert_eq!(cell(dir, "radio")["pid"], radio);
    up.end();
    nothing_is_left(dir);
}

#[case(..ROOT)]
fn a_cell_is_restarted_and_the_mission_ended_from_outside(dir: &Path) {
    let cells = shell("one", SLEEPS, RESERVED) + &shell("two", SLEEPS, RESERVED);
    mission(dir, &cells);
    let mut up = Up::start(dir);
    let one = pid_of(&up.told("one: runs"));
    let two = pid_of(&up.told("two: runs"));
    let done = json_of(dir, &["restart", "one"]);
    let again = done["cells"][0]["pid"].as_i64().unwrap();
    assert_ne!(again, i64::from(one));
    let found = [cell(dir, "one"), cell(dir, "two")];
    assert_eq!(
        (&found[0]["pid"], &found[1]["pid"]),
        (&again.into(), &two.into())
    );
    let done = json_of(dir, &["down"]);
    assert_eq!(done["cells"].as_array().unwrap().len(), 2, "{done}");
    assert!(done["cells"][0]["end"]["killed"]["signal"] == 9, "{done}");
    up.until("all cells stopped; logs kept in ");
    assert_eq!(up.child.wait().unwrap().code(), Some(0));
    assert!(!runs(two));
    nothing_is_left(dir);
}

#[case(..ROOT)]
fn what_was_written_and_what_happened_is_read_and_followed(dir: &Path) {
    mission(
        dir,
        &shell(
            "talks",
            "n=0; while true; do n=$((n+1)); echo line $n; /busybox sleep 0.2; done",
            RESERVED,
        ),
    );
    let mut up = Up::start(dir);
    up.until("talks: runs");
    let mut follows = [&["logs", "-f", "talks"][..], &["events", "-f", "--json"]].map(|words| {
        let mut command = timecell();
        let command = command
            .current_dir(dir)
            .args(words)
            .args(["--dir", "state"]);
        command.stdout(Stdio::piped()).spawn().unwrap()
    });
    let [logs, events] = &mut follows;
    let mut lines = BufReader::new(logs.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok);
    assert!(lines.any(|line| line == "line 5"));
    let mut told = BufReader::new(events.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok)
        .map(|line| serde_json::from_str::<Value>(&line).unwrap());
    let admitted = told
        .find(|event| event["kind"] == "mission_admitted")
        .unwrap();
    assert!(
        admitted["entry"]["mission_admitted"]["file"]["sha256"].is_string(),
        "{admitted}"
    );
    assert!(
        admitted["entry"]["mission_admitted"]["file"]["text"].is_null(),
        "{admitted}"
    );
    ask(dir, &["restart", "talks"]).ends_with(0);
    // From the subscription: the end, and the second start.
    let ended = told.find(|event| event["kind"] == "cell_ended").unwrap();
    assert_eq!(ended["cell"], "talks");
    let started = told.find(|event| event["kind"] == "cell_started").unwrap();
    assert!(started["sequence"].as_u64() > ended["sequence"].as_u64());
    // The log continues with the next life.
    assert!(lines.any(|line| line == "line 1"));
    let said = ask(dir, &["logs", "talks", "-n", "1", "--json"]).ends_with(0);
    let line: Value = serde_json::from_str(&said.out).unwrap();
    assert!(
        line["text"].as_str().unwrap().starts_with("line "),
        "{line}"
    );
    let said = ask(dir, &["logs", "walks"]).ends_with(2);
    assert!(
        said.error().contains("did you mean `talks`?"),
        "{}",
        said.err
    );
    up.end();
    // The subscription ends with the supervisor.
    assert!(told.any(|event| event["kind"] == "clean_down"));
    assert_eq!(events.wait().unwrap().code(), Some(0));
    logs.kill().unwrap();
    logs.wait().unwrap();
    let said = ask(dir, &["events", "--since", "1h"]).ends_with(0);
    assert!(
        said.out.contains("talks: runs (pid") && said.out.contains("mission ended"),
        "{}",
        said.out
    );
    let said = ask(dir, &["logs", "talks"]).ends_with(0);
    assert!(said.out.contains("line 1\n"), "{}", said.out);
    nothing_is_left(dir);
}

#[case(..ROOT)]
fn bad_clients_are_refused_and_disturb_nobody(dir: &Path) {
    mission(dir, &shell("steady", SLEEPS, RESERVED));
    let mut up = Up::start(dir);
    up.until("steady: runs");
    let socket = dir.join("state/control");
    let connect = || UnixStream::connect(&socket).unwrap();
    // A stranger is refused, even if the file permissions would let him in.
    fs::set_permissions(dir, fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(dir.join("state"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(&socket, fs::Permissions::from_mode(0o666)).unwrap();
    let binary = dir.join("timecell");
    copy_program(env!("CARGO_BIN_EXE_timecell"), &binary);
    let stranger = std::process::Command::new(&binary)
        .args(["down", "--dir"])
        .arg(dir.join("state"))
        .uid(65_534)
        .gid(65_534)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&stranger.stderr).into_owned();
    assert_eq!(stranger.status.code(), Some(4), "{said}");
    assert!(
        said.contains("user 65534 may not control this mission"),
        "{said}"
    );
    // Nonsense, an endless line, another version, two requests at once.
    let endless = vec![b'x'; 70_000];
    for (bytes, why) in [
        (&b"\xff\xfe{}\n"[..], "this is not a request"),
        (&endless, "longer than 65536 bytes"),
        (b"{\"timecell_control\":7,\"ask\":\"status\"}\n", "version 7"),
        (b"{\"timecell_control\":1,\"ask\":\"dance\"}\n", "does not know this request"),
        (
            b"{\"timecell_control\":1,\"ask\":\"status\"}\n{\"timecell_control\":1,\"ask\":\"down\"}\n",
            "wait for the answer to this request",
        ),
    ] {
        let mut client = connect();
        // It may be refused before it is sent completely.
        let _ = client.write_all(bytes);
        let mut answer = String::new();
        let _ = client.read_to_string(&mut answer);
        assert!(answer.contains("refused") && answer.contains(why), "{why}: {answer}");
    }
    // Many clients that send nothing, and many that do not read: one more is still served.
    let silent: Vec<UnixStream> = (0..200).map(|_| connect()).collect();
    let deaf: Vec<UnixStream> = (0..20)
        .map(|_| {
            let mut client = connect();
            let _ = client.write_all(b"{\"timecell_control\":1,\"ask\":\"events\"}\n");
            client
        })
        .collect();
    for _ in 0..3 {
        ask(dir, &["restart", "steady"]).ends_with(0);
    }
    assert_eq!(cell(dir, "steady")["state"], "running");
    drop((silent, deaf));
    let status = json_of(dir, &["ps"]);
    assert!(
        status["supervisor"]["rss_bytes"].as_u64().unwrap() > 0,
        "{status}"
    );
    up.end();
    nothing_is_left(dir);
}

#[case]
fn where_nothing_runs_that_is_said(dir: &Path) {
    for verb in ["ps", "down", "events"] {
        let said = ask(dir, &[verb]).ends_with(2);
        assert!(
            said.error().contains("there is no mission in"),
            "{}",
            said.err
        );
    }
    let said = ask(dir, &["stop", "a"]).ends_with(2);
    assert!(
        said.error().contains("there is no mission in"),
        "{}",
        said.err
    );
    let said = say(dir, &["ps", "no-such-mission-here"]).ends_with(2);
    assert!(
        said.error()
            .contains("there is no mission `no-such-mission-here`"),
        "{}",
        said.err
    );
    // A name is not a path.
    let said = say(dir, &["ps", "../x"]).ends_with(2);
    assert!(
        said.error().contains("there is no mission `../x`"),
        "{}",
        said.err
    );
    let said = ask(dir, &["up"]).ends_with(2);
    assert!(
        said.error().contains("there is no mission in"),
        "{}",
        said.err
    );
}

#[case(..ROOT)]
fn a_service_manager_is_told_of_readiness_life_and_end(dir: &Path) {
    mission(
        dir,
        &shell(
            "steady",
            "echo ${NOTIFY_SOCKET:-none}; /busybox sleep 1000",
            RESERVED,
        ),
    );
    let manager = UnixDatagram::bind(dir.join("notify")).unwrap();
    manager
        .set_read_timeout(Some(crate::missions::PATIENCE))
        .unwrap();
    let next = || {
        let mut bytes = [0; 4096];
        let count = manager.recv(&mut bytes).unwrap();
        String::from_utf8(bytes[..count].to_vec()).unwrap()
    };
    let up = Up::of(
        timecell()
            .current_dir(dir)
            .args(["up", "mission.toml", "--dir", "state"])
            .env("NOTIFY_SOCKET", dir.join("notify"))
            .env("WATCHDOG_USEC", "200000"),
    );
    let ready = next();
    assert!(
        ready.starts_with("READY=1\nSTATUS=") && ready.contains("1 of 1 cells run"),
        "{ready}"
    );
    assert_eq!(
        [next(), next(), next()],
        ["WATCHDOG=1", "WATCHDOG=1", "WATCHDOG=1"]
    );
    eventually("the cell has written", || {
        ask(dir, &["logs", "steady"]).out == "none\n"
    });
    up.end();
    let last = std::iter::repeat_with(next)
        .find(|said| said != "WATCHDOG=1")
        .unwrap();
    assert!(last.starts_with("STOPPING=1"), "{last}");
    nothing_is_left(dir);
}

#[case(..ROOT)]
fn a_mission_is_restored_from_its_directory(dir: &Path) {
    let path = mission(dir, &shell("steady", SLEEPS, RESERVED));
    let mut up = Up::start(dir);
    let pid = pid_of(&up.until("steady: runs"));
    up.signal(libc::SIGKILL);
    up.child.wait().unwrap();
    // As after a power cut, except that the cell still runs.
    let changed = fs::read_to_string(&path)
        .unwrap()
        .replace("steady", "other");
    fs::write(&path, changed).unwrap();
    let recover = ["up", "mission.toml", "--recover", "--dir", "state"];
    let mut up = Up::of(timecell().current_dir(dir).args(recover));
    assert_eq!(pid_of(&up.until("steady: runs on, adopted")), pid);
    up.end();
    // Once it has been ended, the file counts again; without a file, the last admitted mission.
    let mut up = Up::of(timecell().current_dir(dir).args(recover));
    up.until("other: runs");
    up.end();
    fs::remove_file(path).unwrap();
    let mut up = Up::of(timecell().current_dir(dir).args(["up", "--dir", "state"]));
    up.until("other: runs");
    up.end();
    nothing_is_left(dir);
}
