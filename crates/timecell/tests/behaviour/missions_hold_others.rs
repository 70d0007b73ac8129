//! Changes by others to a held thing: put back once, left to them afterwards, and seen in both cases.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use host::sched::{Class, get_affinity, get_class, set_affinity, set_class};
use serde_json::Value;

use crate::missions_hold::{
    Busy, Container, IN_PODMAN, NEEDS, group, hold, move_to, nothing_is_held, only, release,
};
use crate::missions_hold_names::podman;
use crate::support::{eventually, say};

/// The file of a process's own cpuset, in whichever hierarchy it is.
fn cpuset_of(pid: i32) -> PathBuf {
    let cgroups = host::cgroup::detect().unwrap();
    let root = host::root::Root::live();
    let v1 = cgroups.v1_group(&root, "cpuset", pid);
    let own = v1.or_else(|| cgroups.v2_group(&root, pid));
    own.unwrap().join("cpuset.cpus")
}

fn broken() -> String {
    let seen = only();
    let why = seen["broken"]["why"].as_str();
    why.unwrap_or_default().to_owned()
}

#[case(..IN_PODMAN)]
fn a_cpuset_that_podman_changes_is_podmans_from_then_on(dir: &Path) {
    let container = Container::start(dir);
    let own = container.name.as_str();
    let set = |cpus: &str| podman(&["update", "--cpuset-cpus", cpus, own]);
    set("1");
    let held = ["--reserve", "5ms/50ms", "--cpu", "1", "--fifo", "30", own];
    hold(&held).ends_with(0);
    let pid = i32::try_from(only()["pid"].as_i64().unwrap()).unwrap();
    let file = cpuset_of(pid);
    let cpuset = || fs::read_to_string(&file).unwrap().trim().to_owned();
    let stranger = format!("process {pid}, thread");
    let machine = || say(Path::new("/"), &["ps", "--machine"]).ends_with(0).out;
    assert!(!machine().contains(&stranger), "{}", machine());
    set("0-1");
    let changed = "its cpuset was changed from `1` to `0-1`";
    eventually("it is seen", || broken() == changed);
    let told = machine();
    assert!(
        told.contains("broken since") && told.contains(changed),
        "{told}"
    );
    // Nobody has admitted it where it runs now, although its budget is still held.
    assert!(told.contains(&stranger), "{told}");
    let json = say(Path::new("/"), &["ps", "--machine", "--json"]).ends_with(0);
    let json: Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(json["entries"][0]["broken"]["why"], changed, "{json}");
    let list = hold(&["--list"]).ends_with(0);
    assert!(list.out.contains("broken since"), "{}", list.out);
    assert_eq!(only()["holds"][0]["not_held"], Value::Null);
    let let_go = release(own).ends_with(0);
    assert!(let_go.err.contains("and is left so"), "{}", let_go.err);
    assert_eq!(cpuset(), "0-1");
    // Without timecell's settings, it has all those of podman, now and later.
    assert_eq!(get_affinity(pid).unwrap(), [0, 1]);
    assert_eq!(get_class(pid).unwrap(), Class::Other);
    nothing_is_held();
    // One that was moved off its cpu altogether.
    hold(&held).ends_with(0);
    assert_eq!(cpuset(), "1");
    set("0");
    let moved = "its cpuset was changed from `1` to `0`";
    eventually("that is seen, too", || broken() == moved);
    release(own).ends_with(0);
    set("0-1");
    assert_eq!(cpuset(), "0-1");
    eventually("its threads have both", || {
        get_affinity(pid).unwrap() == [0, 1]
    });
    nothing_is_held();
}

#[case(..NEEDS)]
fn what_was_granted_is_put_back_once_and_then_left_alone() {
    let mut busy = Busy::start();
    let id = busy.id();
    let [first, child] = busy.all()[..] else {
        panic!("it has two threads");
    };
    let had = get_affinity(first).unwrap();
    let held = ["--reserve", "5ms/50ms", "--cpu", "1", "--fifo", "30", &id];
    hold(&held).ends_with(0);
    set_affinity(child, &[0]).unwrap();
    eventually("it is on its cpu again", || {
        get_affinity(child).unwrap() == [1]
    });
    let told = |seen: &Value| seen["put_back"]["what"].as_str().map(str::to_owned);
    let changed = format!("the affinity of thread {child} was changed to cpu 0");
    eventually("that is told", || told(&only()).as_ref() == Some(&changed));
    assert_eq!(only()["broken"], Value::Null);
    // A process that comes from outside is kept to the cpu like the others, and has changed nothing.
    let other = Busy::start();
    move_to(&group(&only()), other.pid());
    eventually("it is kept to the cpu", || {
        get_affinity(other.pid()).unwrap() == [1]
    });
    assert_eq!(get_class(other.pid()).unwrap(), Class::Other);
    assert_eq!(only()["broken"], Value::Null);
    // Within a minute.
    set_class(first, &Class::Batch).unwrap();
    let again = format!(
        "the class of thread {first} was changed to BATCH, less than a minute after {changed} and put back"
    );
    eventually("it is broken", || broken() == again);
    set_affinity(child, &[0]).unwrap();
    let list = hold(&["--list"]).ends_with(0);
    assert!(
        list.out.contains("put back at") && list.out.contains("1 of 3 threads may run"),
        "{}",
        list.out
    );
    release(&id).ends_with(0);
    // Settings by others remain, and the rest is as it was.
    assert_eq!(get_class(first).unwrap(), Class::Batch);
    assert_eq!(get_affinity(first).unwrap(), had);
    assert_eq!(get_class(child).unwrap(), Class::Other);
    assert_eq!(get_affinity(child).unwrap(), [0]);
    busy.end();
    drop(other);
    nothing_is_held();
}

#[case(..NEEDS)]
fn whoever_leaves_its_group_is_told_of_and_gets_all_back() {
    let mut busy = Busy::start();
    let had = get_affinity(busy.pid()).unwrap();
    let class = get_class(busy.pid()).unwrap();
    let id = busy.id();
    let fifo = ["--reserve", "5ms/50ms", "--cpu", "1", "--fifo", "30", &id];
    hold(&fifo).ends_with(0);
    let group = group(&only());
    let around = group.parent().unwrap();
    let child = *busy.all().last().unwrap();
    // It is brought back once.
    move_to(around, child);
    let is_back = || host::cgroup::processes(&group).contains(&child);
    eventually("it is brought back", is_back);
    eventually("that is told", || only()["put_back"].is_object());
    move_to(around, child);
    eventually("it is left there", || only()["broken"].is_object());
    assert_eq!(only()["threads_outside"], 1);
    assert!(!is_back());
    let told = hold(&["--list"]).ends_with(0);
    assert!(
        told.out.contains("and are not held to the budget: 1"),
        "{}",
        told.out
    );
    // Without its last process it is no longer held, although it has not ended.
    move_to(around, busy.pid());
    let told = hold(&["--list"]).ends_with(0);
    assert!(
        told.err.contains("had left its group with 2 threads"),
        "{}",
        told.err
    );
    nothing_is_held();
    assert!(!group.exists());
    for pid in busy.all() {
        assert_eq!(get_affinity(pid).unwrap(), had);
        assert_eq!(get_class(pid).unwrap(), class);
    }
    // Where users other than root can move processes, it gets no class.
    let top = freezer::hold::top(&host::root::Root::live()).unwrap();
    let given = top.join(format!("given-{id}"));
    let inner = given.join("inner");
    fs::create_dir_all(&inner).unwrap();
    std::os::unix::fs::chown(given.join("cgroup.procs"), Some(65_534), None).unwrap();
    for pid in busy.all() {
        move_to(&inner, pid);
    }
    let refused = hold(&fifo).ends_with(3);
    let ordinary = hold(&["--reserve", "5ms/50ms", "--cpu", "1", &id]);
    let _ = release(&id);
    let class_then = get_class(busy.pid()).unwrap();
    busy.end();
    freezer::hold::remove(&given, Duration::from_secs(20)).unwrap();
    assert!(
        refused
            .error()
            .contains("users other than root can move processes"),
        "{}",
        refused.err
    );
    ordinary.ends_with(0);
    assert_eq!(class_then, class);
    nothing_is_held();
}
