//! Cells that reach their limits, and cells that the supervisor kills: each end is named.

use std::path::Path;

use crate::control::{ask, cell, json_of};
use crate::missions::{RESERVED, Up, mission, nothing_is_left, shell};
use crate::support::{Need, eventually};

const NEEDS: &[Need] = &[Need::Root, Need::RealTime, Need::Program("busybox")];

/// Lines of `events` about a cell.
fn events(dir: &Path, name: &str) -> Vec<String> {
    let said = ask(dir, &["events", "--json"]).out;
    let all = said.lines().map(|line| serde_json::from_str(line).unwrap());
    all.filter(|event: &serde_json::Value| event["cell"] == name)
        .map(|event| event["text"].as_str().unwrap().to_owned())
        .collect()
}

#[case(a_kill_for_memory_has_its_name("embedded"); ..NEEDS)]
#[case(a_kill_for_memory_has_its_name_in_crun("crun"); Root, Program("busybox"), Program("crun"))]
#[case(
    a_kill_for_memory_has_its_name_in_podman("podman");
    Root, Program("busybox"), Program("podman")
)]
fn memory(engine: &str) {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let limited = "class = \"other\"\nrights = { memory = \"8MiB\" }\n\
        [[cell.health]]\nwhen = \"memory-limit\"\ndo = \"log\"";
    let rest = format!("engine = \"{engine}\"\nrestart = {{ policy = \"never\" }}\n{limited}");
    let hog = "exec /busybox dd if=/dev/zero of=/dev/null bs=64M count=1";
    // A process that is not the first: the cell keeps running.
    let parent = "/busybox dd if=/dev/zero of=/dev/null bs=64M count=1; exec /busybox sleep 1000";
    let cells = shell("hog", hog, &rest) + &shell("parent", parent, limited);
    mission(dir, &cells);
    let mut up = Up::start(dir);
    up.told("hog: memory-limit: the memory limit was reached");
    up.told("hog: killed for memory: limit 8MiB");
    // cgroup v2 kills all processes of the cell, v1 only one.
    if std::path::Path::new("/sys/fs/cgroup/memory").is_dir() {
        up.told("parent: memory-limit: the memory limit was reached");
        up.told("parent: a process of it was killed for memory: limit 8MiB");
        let limits = &cell(dir, "parent")["limits"];
        assert_eq!(limits[0]["limit"], "memory", "{limits}");
        // A later killer of the first process is not the kernel for lack of memory.
        std::thread::sleep(std::time::Duration::from_millis(1_200));
        let pid = cell(dir, "parent")["pid"].as_i64().unwrap();
        // SAFETY: a cell of this test.
        unsafe { libc::kill(i32::try_from(pid).unwrap(), libc::SIGKILL) };
        up.told("parent: killed by signal 9 (SIGKILL)");
    }
    eventually("the end is on record", || {
        cell(dir, "hog")["last_end"]["cause"]["by"] == "memory"
    });
    let end = cell(dir, "hog")["last_end"].clone();
    assert_eq!(end["cause"]["limit_bytes"], 8 << 20, "{end}");
    assert_eq!(end["text"], "killed for memory: limit 8MiB");
    let text = ask(dir, &["ps"]).out;
    assert!(text.contains("killed for memory: limit 8MiB"), "{text}");
    let told = events(dir, "hog");
    let kill = "hog: killed for memory: limit 8MiB".to_owned();
    assert!(told.contains(&kill), "{told:?}");
    up.end();
    nothing_is_left(dir);
}

#[case(a_refused_fork_is_told_once_a_life("embedded"); ..NEEDS)]
#[case(
    a_refused_fork_is_told_once_a_life_in_podman("podman");
    Root, Program("busybox"), Program("podman")
)]
fn pids(engine: &str) {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let rest = format!("engine = \"{engine}\"\nclass = \"other\"\nrights = {{ pids = 8 }}");
    let forks = "(while true; do /busybox sleep 3 & done); exec /busybox sleep 1000";
    mission(dir, &shell("forks", forks, &rest));
    let mut up = Up::start(dir);
    up.told("forks: it was refused a process or thread: `pids` is 8");
    let of = json_of(dir, &["ps"])["cells"][0]["limits"].clone();
    assert_eq!(
        (&of[0]["limit"], &of[0]["most"]),
        (&"pids".into(), &8.into()),
        "{of}"
    );
    let told = events(dir, "forks");
    let limits = told.iter().filter(|text| text.contains("was refused"));
    assert_eq!(limits.count(), 1, "{told:?}");
    let table = ask(dir, &["ps"]).out;
    assert!(table.contains("`pids` is 8"), "{table}");
    up.end();
    nothing_is_left(dir);
}

#[case(Root, RealTime, Program("busybox"), GroupBudget(100))]
fn a_kill_by_the_supervisor_is_no_crash(dir: &Path) {
    let still = "class = \"other\"\n[[cell.health]]\nwhen = \"no-progress\"\ntimeout = \"400ms\"\ndo = \"restart\"";
    let deaf = "trap \\\"\\\" TERM; while true; do /busybox sleep 1; done";
    let cells = shell("still", "exec /busybox sleep 1000", still) + &shell("deaf", deaf, RESERVED);
    mission(dir, &cells);
    let mut up = Up::start(dir);
    up.told("still: killed by the supervisor (rule `no-progress`)");
    up.told("deaf: runs");
    let said = ask(dir, &["stop", "deaf"]);
    let killed = "killed by the supervisor (it did not end within 100ms of SIGTERM)";
    assert!(said.out.contains(killed), "{}", said.out);
    let end = cell(dir, "deaf")["last_end"].clone();
    let cause = &end["cause"];
    assert_eq!(cause["by"], "supervisor", "{end}");
    assert_eq!(cause["reason"]["what"], "stop-timeout", "{end}");
    let still = cell(dir, "still")["last_end"].clone();
    assert_eq!(still["cause"]["reason"]["rule"], "no-progress", "{still}");
    let told = events(dir, "deaf");
    assert!(told.contains(&format!("deaf: {killed}")), "{told:?}");
    up.end();
    nothing_is_left(dir);
}
