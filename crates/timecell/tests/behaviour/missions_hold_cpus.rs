//! Holds on several cpus: a budget on each, and every thread on one of them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use freezer::hold::is_populated;
use host::sched::get_affinity;
use serde_json::Value;

use crate::missions_hold::{
    Busy, Container, IN_PODMAN, NEEDS, hold, is_a_tenth, nothing_is_held, only, release,
};
use crate::missions_hold_names::podman;
use crate::support::{eventually, say};

/// The groups of its holds.
fn parts(seen: &Value) -> Vec<PathBuf> {
    let holds = seen["holds"].as_array().unwrap();
    let group = |hold: &Value| PathBuf::from(hold["threads"].as_str().unwrap());
    holds.iter().map(group).collect()
}

fn cpus_of(pids: &[i32]) -> Vec<Vec<u32>> {
    pids.iter().map(|pid| get_affinity(*pid).unwrap()).collect()
}

#[case(..NEEDS)]
fn every_cpu_has_a_budget_and_every_thread_a_cpu() {
    let mut busy = Busy::start();
    let had = get_affinity(busy.pid()).unwrap();
    let from = fs::read_to_string(format!("/proc/{}/cgroup", busy.pid())).unwrap();
    let id = busy.id();
    let said = hold(&["--reserve", "5ms/50ms", "--cpus", "0,1", &id]).ends_with(0);
    assert!(
        said.out.contains("5 ms of each of cpus 0-1 in every 50 ms"),
        "{}",
        said.out
    );
    assert_eq!(cpus_of(&busy.all()), [[0], [1]]);
    let seen = only();
    let groups = parts(&seen);
    assert_eq!(groups.len(), 2);
    groups.iter().for_each(|group| is_a_tenth(group));
    for hold in only()["holds"].as_array().unwrap() {
        assert!(hold["exhausted"].as_u64().unwrap() >= 5, "{hold}");
    }
    let machine = say(Path::new("/"), &["ps", "--machine"]).ends_with(0).out;
    for cpu in [0, 1] {
        let line = format!("{id}: cpu {cpu}, 5 ms every 50 ms, freezer");
        assert!(machine.contains(&line), "{line}: {machine}");
    }
    // One that comes from outside gets the cpu with fewer threads, with its budget.
    let other = Busy::start();
    let own = groups[0].parent().unwrap();
    fs::write(own.join("cgroup.procs"), other.id()).unwrap();
    eventually("it has a cpu", || {
        get_affinity(other.pid()).unwrap().len() == 1
            && host::cgroup::listed(own, "cgroup.threads").is_empty()
    });
    assert_eq!(only()["broken"], Value::Null);
    release(&id).ends_with(0);
    nothing_is_held();
    assert!(groups.iter().all(|group| !group.exists()));
    let back = fs::read_to_string(format!("/proc/{}/cgroup", busy.pid())).unwrap();
    assert_eq!(back, from);
    assert!(cpus_of(&busy.all()).iter().all(|cpus| *cpus == had));
    busy.end();
    drop(other);
    let mut alone = Command::new("sleep").arg("100").spawn().unwrap();
    let few = hold(&[
        "--reserve",
        "5ms/50ms",
        "--cpu",
        "0-1",
        &alone.id().to_string(),
    ]);
    alone.kill().unwrap();
    alone.wait().unwrap();
    let few = few.ends_with(2);
    assert!(few.error().contains("has fewer threads"), "{}", few.err);
    nothing_is_held();
}

#[case(..IN_PODMAN)]
fn a_container_on_two_cpus_leaves_nothing_when_it_ends(dir: &Path) {
    let container = Container::start(dir);
    let own = container.name.as_str();
    for (ends, threads) in [(false, 3), (true, 4)] {
        hold(&["--reserve", "5ms/50ms", "--cpu", "0-1", own]).ends_with(0);
        let groups = parts(&only());
        groups.iter().for_each(|group| is_a_tenth(group));
        let place = groups[0].parent().unwrap();
        // Processes that `exec` starts are held as well.
        podman(&["exec", "--detach", own, "/busybox", "sleep", "100"]);
        eventually("it is in one of them", || {
            only()["threads"] == threads && host::cgroup::listed(place, "cgroup.threads").is_empty()
        });
        if ends {
            podman(&["kill", own]);
            eventually("it has ended", || !is_populated(place));
            let told = hold(&["--list"]).ends_with(0);
            assert!(told.err.contains("has ended"), "{}", told.err);
        } else {
            release(own).ends_with(0);
        }
        nothing_is_held();
        assert!(groups.iter().all(|group| !group.exists()));
    }
}
