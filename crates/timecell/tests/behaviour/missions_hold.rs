//! `timecell hold` and `timecell release`: a budget for running programs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use freezer::page::{Page, memory};
use host::sched::{Class, get_affinity, get_class, set_class};
use serde_json::Value;
use supervise::names;

use crate::missions::{Up, busybox, mission, name, shell};
use crate::missions_reaction::Image;
use crate::support::{Need, Said, eventually, say};

/// All held things of the machine are held in one place.
pub const IN_PODMAN: &[Need] = &[
    Need::Alone,
    Need::Root,
    Need::RealTime,
    Need::Freezer,
    Need::TwoCpus,
    Need::Program("busybox"),
    Need::Program("podman"),
];
pub const NEEDS: &[Need] = &[
    Need::Alone,
    Need::Root,
    Need::RealTime,
    Need::Freezer,
    Need::TwoCpus,
    Need::Program("busybox"),
];

const BUSY: &str = "while :; do :; done & while :; do :; done";

pub fn hold(words: &[&str]) -> Said {
    let words: Vec<&str> = ["hold"].iter().chain(words).copied().collect();
    say(Path::new("/"), &words)
}

pub fn release(what: &str) -> Said {
    say(Path::new("/"), &["release", what])
}

pub fn list() -> Value {
    let said = hold(&["--list", "--json"]).ends_with(0);
    serde_json::from_str(&said.out).unwrap()
}

/// The only held thing.
#[track_caller]
pub fn only() -> Value {
    let list = list();
    assert_eq!(list["held"].as_array().unwrap().len(), 1, "{list}");
    list["held"][0].clone()
}

pub fn group(seen: &Value) -> PathBuf {
    PathBuf::from(seen["group"].as_str().unwrap())
}

pub fn place() -> PathBuf {
    memory().join(names::HELD)
}

/// Asserts that nothing that a hold has created is left.
#[track_caller]
pub fn nothing_is_held() {
    assert_eq!(list()["held"], Value::Array(Vec::new()));
    assert!(!place().exists(), "{}", place().display());
    assert!(!Path::new("/run/timecell/held.json").exists());
    let ledger = say(Path::new("/"), &["ps", "--machine"]).ends_with(0);
    assert!(!ledger.out.contains("the hold of"), "{}", ledger.out);
}

fn used(group: &Path) -> Duration {
    let text = fs::read_to_string(group.join("cpu.stat")).unwrap();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("usage_usec "));
    Duration::from_micros(line.unwrap().parse().unwrap())
}

/// The cpu use of a cgroup in a second, as a share of a cpu.
fn share(group: &Path) -> f64 {
    let (began, before) = (Instant::now(), used(group));
    std::thread::sleep(Duration::from_secs(1));
    (used(group) - before).as_secs_f64() / began.elapsed().as_secs_f64()
}

/// A thing that always wants the cpu and has a tenth of it gets at most twice that, and some of it, beside all else that the machine does.
#[track_caller]
pub fn is_a_tenth(group: &Path) {
    let share = share(group);
    assert!((0.02..0.2).contains(&share), "{share}");
}

/// A container that spins, removed on drop, before its image is.
pub struct Container {
    pub name: String,
    image: Image,
}

impl Container {
    pub fn start(dir: &Path) -> Container {
        let container = Container {
            image: Image::of_busybox(dir),
            name: name(dir).to_lowercase(),
        };
        let mut run = Command::new("podman");
        run.args(["--cgroup-manager", "cgroupfs", "run", "--detach"])
            .args([
                "--network",
                "none",
                "--ulimit",
                "nofile=1024:1024",
                "--ulimit",
                "nproc=1024:1024",
            ])
            .args(["--name", &container.name, &container.image.0])
            .args(["/busybox", "sh", "-c", BUSY]);
        let done = run.output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{said}");
        container
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        let _ = release(&self.name);
        let mut remove = Command::new("podman");
        let _ = remove
            .args(["rm", "--force", "--time=0", &self.name])
            .output();
    }
}

/// A spinning process with a spinning child, both killed on drop.
pub struct Busy(Child);

impl Busy {
    pub fn start() -> Busy {
        let mut command = Command::new(busybox());
        command.args(["sh", "-c", BUSY]).stdout(Stdio::null());
        let busy = Busy(command.spawn().unwrap());
        eventually("its child is there", || busy.all().len() == 2);
        busy
    }

    pub fn pid(&self) -> i32 {
        self.0.id().cast_signed()
    }

    pub fn id(&self) -> String {
        self.0.id().to_string()
    }

    pub fn all(&self) -> Vec<i32> {
        let children = format!("/proc/{0}/task/{0}/children", self.pid());
        let text = fs::read_to_string(children).unwrap_or_default();
        let children = text.split_whitespace().map(|pid| pid.parse().unwrap());
        [self.pid()].into_iter().chain(children).collect()
    }

    pub fn end(&mut self) {
        for pid in self.all() {
            // SAFETY: our own child and its child; once it was waited for it has none, and its own pid is not used.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
        let _ = self.0.wait();
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None)) {
            let _ = release(&self.id());
            self.end();
        }
    }
}

#[case(..IN_PODMAN)]
fn a_podman_container_gets_a_budget_that_outlives_all_but_itself(dir: &Path) {
    let container = Container::start(dir);
    let own = container.name.as_str();
    let said = hold(&["--reserve", "5ms/50ms", "--cpu", "1", own]).ends_with(0);
    for part in [
        &format!("the podman container `{own}`"),
        "5 ms of cpu 1 in every 50 ms",
        "ordinary: the budget is the most that they get",
        &format!("timecell release {own}"),
    ] {
        assert!(said.out.contains(part), "{part}: {}", said.out);
    }
    let seen = only();
    let group = group(&seen);
    assert_eq!(
        (&seen["kind"], &seen["threads_elsewhere"]),
        (&"podman".into(), &0.into())
    );
    is_a_tenth(&group);
    // By the start of its id, and only once.
    let id = seen["id"].as_str().unwrap();
    let again = hold(&["--reserve", "5ms/50ms", &id[..12]]).ends_with(2);
    assert!(
        again
            .error()
            .contains("is already held, with 5 ms every 50 ms on cpu 1")
    );
    // Any command replaces the killed processes.
    kill_all_who_hold();
    let told = hold(&["--list"]).ends_with(0);
    assert!(told.err.contains("it is held again"), "{}", told.err);
    assert!(told.out.contains("used up"), "{}", told.out);
    is_a_tenth(&group);
    let seen = only();
    let on_cpu = &seen["holds"][0];
    assert_eq!(on_cpu["not_held"], Value::Null);
    assert!(on_cpu["exhausted"].as_u64().unwrap() >= 5, "{seen}");
    // The next command reports it.
    kill_all_who_hold();
    let again = hold(&["--reserve", "5ms/50ms", own]).ends_with(2);
    assert!(again.err.contains("it is held again"), "{}", again.err);
    kill_all_who_hold();
    let let_go = release(own).ends_with(0);
    assert!(let_go.err.contains("it is held again"), "{}", let_go.err);
    assert!(let_go.out.contains(": released"), "{}", let_go.out);
    nothing_is_held();
    // Beside all else that the machine does: it had a tenth.
    let share = share(&group);
    assert!(share > 0.2, "{share}");
    let refused = release(own).ends_with(2);
    assert!(refused.error().contains("is not held; nothing is held"));
    // One that ends while it is held.
    hold(&["--reserve", "5ms/50ms", "--fifo", "20", own]).ends_with(0);
    let threads = only()["threads"].as_u64();
    assert_eq!(threads, Some(2));
    let ended = Command::new("podman").args(["kill", own]).output().unwrap();
    assert!(ended.status.success());
    eventually("the container has ended", || {
        !group.join("cgroup.procs").exists() || used_by_nobody(&group)
    });
    let told = hold(&["--list"]).ends_with(0);
    assert!(
        told.err.contains("has ended while it was held"),
        "{}",
        told.err
    );
    nothing_is_held();
    let stopped = hold(&["--reserve", "5ms/50ms", own]).ends_with(2);
    assert!(stopped.error().contains("is not running"));
}

/// A process that is quick enough starts another before it is killed itself.
pub fn kill_all_who_hold() {
    eventually("nobody holds it", || {
        let page = Page::open(&place()).unwrap().unwrap();
        for pid in [page.heir(), page.watcher(), page.keeper()] {
            // SAFETY: no memory is involved.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
        std::thread::sleep(Duration::from_millis(20));
        !page.is_kept()
    });
}

fn used_by_nobody(group: &Path) -> bool {
    !freezer::hold::is_populated(group)
}

#[case(..NEEDS)]
fn a_process_is_held_with_what_it_has_started_and_gets_all_back() {
    held_with_what_it_has_started("--fifo", &Class::Fifo { priority: 30 });
    held_with_what_it_has_started("--rr", &Class::RoundRobin { priority: 30 });
}

fn held_with_what_it_has_started(option: &str, given: &Class) {
    let mut busy = Busy::start();
    let had = get_affinity(busy.pid()).unwrap();
    let class = get_class(busy.pid()).unwrap();
    let from = fs::read_to_string(format!("/proc/{}/cgroup", busy.pid())).unwrap();
    let words = [
        "--reserve",
        "5ms/50ms",
        "--cpu",
        "1",
        option,
        "30",
        &busy.id(),
    ];
    let said = hold(&words).ends_with(0);
    assert!(
        said.out
            .contains(&format!("2 threads, {given}: guaranteed")),
        "{}",
        said.out
    );
    let seen = only();
    let group = group(&seen);
    assert!(
        group.ends_with(format!("held-by-timecell-{}", busy.id())),
        "{}",
        group.display()
    );
    is_a_tenth(&group);
    for pid in busy.all() {
        assert_eq!(get_affinity(pid).unwrap(), [1]);
        // A thread that does not stop when it should gets another class meanwhile.
        eventually("it has the class", || get_class(pid).as_ref() == Ok(given));
    }
    // A cgroup that was created in it goes with it.
    let below = group.join("below");
    fs::create_dir(&below).unwrap();
    move_to(&below, *busy.all().last().unwrap());
    release(&busy.id()).ends_with(0);
    nothing_is_held();
    assert!(!group.exists());
    let back = fs::read_to_string(format!("/proc/{}/cgroup", busy.pid())).unwrap();
    assert_eq!(back, from);
    for pid in busy.all() {
        assert_eq!(get_affinity(pid).unwrap(), had);
        assert_eq!(get_class(pid).unwrap(), class);
    }
    // Its cgroup is then its own, and goes with the held process.
    hold(&words).ends_with(0);
    let id = busy.id();
    busy.end();
    eventually("all of it has ended", || used_by_nobody(&group));
    let told = list();
    assert!(told["held"].as_array().unwrap().is_empty(), "{told}");
    assert!(
        told["notes"][0]
            .as_str()
            .unwrap()
            .contains("has ended while it was held"),
        "{told}"
    );
    nothing_is_held();
    assert!(!group.exists());
    let refused = release(&id).ends_with(2);
    assert!(refused.error().contains("is not held"));
}

pub fn move_to(group: &Path, pid: i32) {
    fs::write(group.join("cgroup.procs"), pid.to_string()).unwrap();
}

#[case(..NEEDS)]
fn missions_and_what_is_held_count_for_each_other(dir: &Path) {
    let (first, second) = (Busy::start(), Busy::start());
    let large = ["--reserve", "60ms/100ms", "--cpu", "1", "--fifo", "60"];
    let of = |more: &str| {
        large
            .iter()
            .copied()
            .chain([more])
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let hold_all = |words: Vec<String>| hold(&words.iter().map(String::as_str).collect::<Vec<_>>());
    hold_all(of(&first.id())).ends_with(0);
    let machine = say(dir, &["ps", "--machine"]).ends_with(0);
    for part in [
        "the hold of `ID`",
        "ID: cpu 1, 60 ms every 100 ms, freezer, FIFO 60",
    ] {
        let part = part.replace("ID", &first.id());
        assert!(machine.out.contains(&part), "{part}: {}", machine.out);
    }
    let stranger = format!("process {}, thread", first.id());
    assert!(!machine.out.contains(&stranger), "{}", machine.out);
    // With another priority than admitted, it counts as one.
    let admitted = Class::Fifo { priority: 60 };
    set_class(first.pid(), &Class::Fifo { priority: 70 }).unwrap();
    let machine = say(dir, &["ps", "--machine"]).ends_with(0);
    set_class(first.pid(), &admitted).unwrap();
    assert!(machine.out.contains(&stranger), "{}", machine.out);
    // The same priority, and too much together.
    let same = hold_all(of(&second.id())).ends_with(3);
    assert!(
        same.error().contains("already has the priority 60"),
        "{}",
        same.err
    );
    let full = [
        "--reserve",
        "60ms/100ms",
        "--cpu",
        "1",
        "--fifo",
        "50",
        &second.id(),
    ];
    let full = hold(&full).ends_with(3);
    assert!(
        full.error().contains(&format!("process {}", second.id())),
        "{}",
        full.err
    );
    // A cap for ordinary threads takes nothing from the share of real-time threads.
    hold(&["--reserve", "5ms/50ms", "--cpu", "1", &second.id()]).ends_with(0);
    release(&second.id()).ends_with(0);
    let cells = shell(
        "busy",
        BUSY,
        "cpus = [1]\npriorities = { lowest = 40, highest = 40 }\nreservation = { budget = \"50ms\", period = \"100ms\" }",
    );
    mission(dir, &format!("enforcer = \"freezer\"\n{cells}"));
    let refused = say(dir, &["admit", "mission.toml"]).ends_with(3);
    assert!(refused.out.contains("refused"), "{}", refused.out);
    release(&first.id()).ends_with(0);
    let mut up = Up::start(dir);
    up.until("busy: runs (pid");
    let full = hold_all(of(&first.id())).ends_with(3);
    assert!(!full.error().is_empty());
    let cell = crate::missions::pid_of(&up.said.join("\n"));
    let cell = hold(&["--reserve", "5ms/50ms", &cell.to_string()]).ends_with(2);
    assert!(
        cell.error().contains("is a cell of timecell"),
        "{}",
        cell.err
    );
    up.end();
    nothing_is_held();
}

#[case(..NEEDS)]
fn what_cannot_be_held_is_refused_and_nothing_changes() {
    let busy = Busy::start();
    let own = busy.id();
    let had = get_affinity(busy.pid()).unwrap();
    let refused = |words: &[&str], code: i32, told: &str| {
        let said = hold(words).ends_with(code).error();
        assert!(said.contains(told), "{told}: {said}");
    };
    let small = ["--reserve", "5ms/50ms"];
    let of = |what: &'static str| [small[0], small[1], what];
    refused(&of("1"), 2, "the machine's init");
    refused(&of("4194303"), 2, "there is no process 4194303");
    refused(
        &of("no-such-container"),
        2,
        "has a container `no-such-container`",
    );
    if fs::read_to_string("/proc/2/comm").is_ok_and(|name| name.trim() == "kthreadd") {
        refused(&of("2"), 2, "is a kernel thread");
    }
    if !Path::new("/run/systemd/system").exists() {
        refused(&of("web.service"), 4, "systemd is not this machine's init");
    }
    refused(
        &["--reserve", "100us/10ms", &own],
        2,
        "a budget has to be above 120 us",
    );
    refused(&["--reserve", "10us/50us", &own], 2, "periods from 100 us");
    refused(
        &["--reserve", "5ms/50ms", "--cpu", "4095", &own],
        2,
        "cpu 4095 is not online",
    );
    refused(
        &["--reserve", "5ms/50ms", "--fifo", "97", &own],
        2,
        "at most 96 is allowed",
    );
    hold(&[&own]).ends_with(2);
    let released = release("nothing").ends_with(2);
    assert!(released.error().contains("`nothing` is not held"));
    assert_eq!(get_affinity(busy.pid()).unwrap(), had);
    nothing_is_held();
    // The processes that hold it are timecell's own.
    hold(&["--reserve", "5ms/50ms", &own]).ends_with(0);
    let page = Page::open(&place()).unwrap().unwrap();
    let keeper = page.keeper().to_string();
    refused(&["--reserve", "5ms/50ms", &keeper], 2, "timecell's own");
    let child = *busy.all().last().unwrap();
    refused(
        &["--reserve", "5ms/50ms", &child.to_string()],
        2,
        "which is held, is around it",
    );
    let all = say(Path::new("/"), &["release", "--all"]).ends_with(0);
    assert!(all.out.contains(&format!("process {own}")), "{}", all.out);
    nothing_is_held();
    let none = say(Path::new("/"), &["release", "--all"]).ends_with(0);
    assert!(none.out.contains("nothing is held"), "{}", none.out);
}
