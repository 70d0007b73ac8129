//! Resources that cells could take from each other without real time: cpus that are not theirs, the kernel's per-user limits, memory.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use host::root::Root;
use host::sched;

use crate::missions::{RESERVED, Up, mission, nothing_is_left, pid_of, shell};
use crate::support::{Need, eventually, say};

const CELLS: &[Need] = &[Need::Root, Need::TwoCpus, Need::Program("busybox")];

/// The engines of this machine that can run a program as a cell.
fn engines() -> Vec<&'static str> {
    let there = |name: &&'static str| Need::Program(name).unmet().is_none();
    let others = ["crun", "runc", "podman"].into_iter().filter(there);
    std::iter::once("embedded").chain(others).collect()
}

/// The value of a line of `/proc/PID/status`.
fn status(pid: i32, key: &str) -> String {
    status_of(pid, key).unwrap()
}

/// As [`status`], for a process that may have ended.
fn status_of(pid: i32, key: &str) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    Some(line.trim_start_matches(':').trim().to_owned())
}

/// A process and all its descendants.
fn family(pid: i32) -> Vec<i32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let children = text
        .split_whitespace()
        .filter_map(|child| child.parse().ok());
    std::iter::once(pid)
        .chain(children.flat_map(family))
        .collect()
}

#[case(..CELLS)]
fn a_best_effort_cell_runs_on_its_cpus_and_nowhere_else() {
    let cpus = sched::get_affinity(0).unwrap();
    let own = *cpus.last().unwrap();
    let cgroups = host::cgroup::detect().unwrap();
    let has_cpuset = cgroups.v1_mount("cpuset").is_some();
    for engine in engines() {
        let dir = tempfile::tempdir().unwrap();
        let more = format!("class = \"other\"\nengine = \"{engine}\"\ncpus = [{own}]");
        let script = "/busybox taskset -p ff 1; /busybox sleep 1000 & /busybox sleep 1000";
        mission(dir.path(), &shell("plain", script, &more));
        let said = say(dir.path(), &["admit", "mission.toml"]).ends_with(0);
        assert!(
            said.out.contains(&format!("best effort on cpu {own}")),
            "{}",
            said.out
        );
        let mut up = Up::start(dir.path());
        let line = up.until("plain: runs");
        assert!(
            line.contains(&format!("best effort on cpu {own}")),
            "{line}"
        );
        let first = pid_of(&line);
        // Until it has started its children.
        while family(first).len() < 2 {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        for pid in family(first) {
            // Some of them come and go.
            if let Some(cpus) = status_of(pid, "Cpus_allowed_list") {
                assert_eq!(cpus, own.to_string(), "{engine}");
            }
        }
        if has_cpuset {
            let group = cgroups.v1_group(&Root::live(), "cpuset", first).unwrap();
            let held = fs::read_to_string(group.join("cpuset.cpus")).unwrap();
            assert_eq!(held.trim(), own.to_string(), "{engine}");
            // The cpuset confines it even from those who may change affinities.
            let _ = sched::set_affinity(first, &cpus);
            assert_eq!(sched::get_affinity(first).unwrap(), [own], "{engine}");
        }
        up.end();
        nothing_is_left(dir.path());
    }
}

#[case(..CELLS)]
fn each_cell_is_a_user_of_its_own_with_limits() {
    let mut seen = BTreeSet::new();
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let mut ups = Vec::new();
    for dir in &dirs {
        let mut cells = String::new();
        for engine in engines() {
            let more = format!(
                "class = \"other\"\nengine = \"{engine}\"\nrestart = {{ policy = \"always\", backoff_min = \"0ms\" }}\n\
                 [cell.rights]\npids = 9\npending_signals = 31\nmessage_queues = \"64KiB\"\nopen_files = 77"
            );
            cells += &shell(engine, "/busybox sleep 1000 & /busybox sleep 1000", &more);
        }
        mission(dir.path(), &cells);
        let mut up = Up::start(dir.path());
        for engine in engines() {
            let pid = pid_of(&up.told(&format!("{engine}: runs")));
            let ids = status(pid, "Uid");
            let uid: u32 = ids.split_whitespace().next().unwrap().parse().unwrap();
            assert!(
                (2_000_000_000..=2_000_065_535).contains(&uid),
                "{engine}: {ids}"
            );
            assert_eq!(status(pid, "Gid"), ids, "{engine}");
            assert!(seen.insert(uid), "{engine}: {uid} is another cell's");
            let signals = status(pid, "SigQ");
            assert!(signals.ends_with("/31"), "{engine}: {signals}");
            let limits = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
            for (what, value) in [
                ("Max processes", "10"),
                ("Max msgqueue size", "65536"),
                ("Max open files", "77"),
            ] {
                let line = limits.lines().find(|line| line.starts_with(what)).unwrap();
                let hard = line[what.len()..].split_whitespace().nth(1);
                assert_eq!(hard, Some(value), "{engine}: {line}");
            }
        }
        ups.push(up);
    }
    // The same cell, started again, has the same user.
    let up = &mut ups[0];
    let before = pid_of(&up.told("embedded: runs"));
    let ids = status(before, "Uid");
    // SAFETY: a cell of this test.
    unsafe { libc::kill(before, libc::SIGKILL) };
    let after = pid_of(&up.until("embedded: runs"));
    assert_eq!(status(after, "Uid"), ids);
    for up in ups {
        up.end();
    }
    let record = fs::read_to_string("/run/timecell/uids.json").unwrap();
    for dir in &dirs {
        nothing_is_left(dir.path());
        assert!(
            !record.contains(&crate::missions::name(dir.path())),
            "{record}"
        );
    }
}

#[case(Root, Program("busybox"))]
fn cells_are_users_of_the_missions_own_range() {
    // Two user ids, which no other mission of this test has.
    let lowest = 2_100_000_000 + 2 * std::process::id();
    let range = format!("uids = {{ lowest = {lowest}, highest = {} }}\n", lowest + 1);
    let dir = tempfile::tempdir().unwrap();
    let cells = |names: &[&str]| {
        let cell = |name: &&str| shell(name, "/busybox sleep 1000", "class = \"other\"");
        names.iter().map(cell).collect::<String>()
    };
    mission(dir.path(), &format!("{range}{}", cells(&["a", "b", "c"])));
    let mut up = Up::start(dir.path());
    let mut seen = BTreeSet::new();
    for cell in ["a", "b"] {
        let pid = pid_of(&up.told(&format!("{cell}: runs")));
        let ids = status(pid, "Uid");
        let all: BTreeSet<u32> = (ids.split_whitespace())
            .map(|uid| uid.parse().unwrap())
            .collect();
        assert_eq!(all.len(), 1, "{ids}");
        assert_eq!(status(pid, "Gid"), ids);
        seen.extend(all);
    }
    assert_eq!(seen, BTreeSet::from([lowest, lowest + 1]));
    // None is left, and none from another range is taken.
    let none = format!("no user id of {lowest} to {} is free for `c`", lowest + 1);
    up.told(&none);
    up.end();
    nothing_is_left(dir.path());
}

/// The memory limit of a cell's first process, bytes.
fn memory_limit(pid: i32) -> u64 {
    let cgroups = host::cgroup::detect().unwrap();
    let root = Root::live();
    let file = match cgroups.v1_group(&root, "memory", pid) {
        Some(group) => group.join("memory.limit_in_bytes"),
        None => cgroups.v2_group(&root, pid).unwrap().join("memory.max"),
    };
    fs::read_to_string(file).unwrap().trim().parse().unwrap()
}

#[case(Root, RealTime, Program("busybox"), GroupBudget(250))]
fn a_cell_without_memory_is_limited_and_goes_first(dir: &Path) {
    let sleep = "/busybox sleep 1000";
    let cells = shell("hi", sleep, &format!("{RESERVED}\ncriticality = \"hi\""))
        + &shell("lo", sleep, RESERVED)
        + &shell(
            "plain",
            sleep,
            "class = \"other\"\n[cell.rights]\nmemory = \"20MiB\"",
        );
    mission(dir, &cells);
    let said = say(dir, &["admit", "mission.toml", "--json"]).ends_with(0);
    let json: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let memory = &json["admission"]["memory"];
    assert_eq!(memory["declared_bytes"], 20 << 20, "{memory}");
    let total = memory["total_bytes"].as_u64().unwrap();
    let mut up = Up::start(dir);
    let mut together = 0;
    for (cell, adjusted) in [("hi", "300"), ("lo", "600"), ("plain", "900")] {
        let pid = pid_of(&up.told(&format!("{cell}: runs")));
        let found = fs::read_to_string(format!("/proc/{pid}/oom_score_adj")).unwrap();
        assert_eq!(found.trim(), adjusted, "{cell}");
        together += memory_limit(pid);
    }
    assert!(together < total, "{together} of {total}");
    let own = fs::read_to_string(format!("/proc/{}/oom_score_adj", up.child.id())).unwrap();
    let caps = host::caps::effective().unwrap();
    match caps.has("CAP_SYS_RESOURCE") {
        true => assert_eq!(own.trim(), "-900"),
        // Reported before the first cell is started.
        false => assert!(up.has_said("is not protected from the OOM killer"), "{own}"),
    }
    let locked = status(up.child.id().cast_signed(), "VmLck");
    assert_ne!(locked, "0 kB");
    up.end();
}

#[case(..CELLS)]
fn a_cell_has_its_own_loopback() {
    for engine in engines() {
        let dir = tempfile::tempdir().unwrap();
        let more = format!("class = \"other\"\nengine = \"{engine}\"");
        let script = "/busybox ifconfig -a; /busybox sleep 1000";
        mission(dir.path(), &shell("plain", script, &more));
        let mut up = Up::start(dir.path());
        up.until("plain: runs");
        let mut said = String::new();
        eventually("it has looked at its devices", || {
            said = say(dir.path(), &["logs", "plain", "--dir", "state"]).out;
            said.contains("LOOPBACK") && said.contains("TX packets")
        });
        assert!(said.contains("UP LOOPBACK RUNNING"), "{engine}: {said}");
        assert_eq!(said.matches("Link encap").count(), 1, "{engine}: {said}");
        up.end();
        nothing_is_left(dir.path());
    }
}
