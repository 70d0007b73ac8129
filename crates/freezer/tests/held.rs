//! Groups held on a real kernel: the classes that threads are left with, and remains. No timing is judged here.

#[path = "../../host/tests/needs/mod.rs"]
mod needs;
mod root;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use host::sched::{self, Class};
use timecell_freezer::counter::Senses;
use timecell_freezer::group::{Group, Stop};
use timecell_freezer::{Handle, Keeper, KeeperError, Reservation, proof};

const PRIORITY: u8 = 98;
const MS: i64 = 1_000_000;
const PATIENCE: Duration = Duration::from_secs(30);
const CELL: Class = Class::Fifo { priority: 50 };

const TESTS: [(&str, fn()); 6] = [
    (
        "root_a_group_is_held_and_let_go",
        a_group_is_held_and_let_go,
    ),
    (
        "root_by_the_clock_a_group_is_held_too",
        by_the_clock_a_group_is_held_too,
    ),
    (
        "root_lowered_threads_and_their_children_get_their_classes_back",
        lowered_threads_and_their_children_get_their_classes_back,
    ),
    (
        "root_threads_in_a_group_made_later_are_held_and_get_their_class_back",
        threads_in_a_group_made_later_are_held,
    ),
    (
        "root_a_group_that_is_removed_is_let_go",
        a_group_that_is_removed_is_let_go,
    ),
    (
        "root_the_proof_leaves_nothing_behind",
        the_proof_leaves_nothing_behind,
    ),
];

/// A cpu has one enforcing thread, so they take turns.
fn main() {
    let unmet = unmet();
    let trials = TESTS.map(|(name, run)| needs::trial(name, unmet, run));
    needs::run(trials.into(), needs::Threads::One);
}

fn unmet() -> Option<&'static str> {
    let missing = root::missing();
    if missing.is_some() {
        return missing;
    }
    let group = top().and_then(|top| Place::make(&top).ok());
    let has_freezer = group.is_some_and(|group| group.0.join("cgroup.freeze").exists());
    (!has_freezer).then_some("no cgroup v2 with a freezer")
}

fn top() -> Option<PathBuf> {
    let cgroups = host::cgroup::detect().ok()?;
    cgroups.v2_group(&host::root::Root::live(), 0)
}

/// A group of its own, removed with its contents.
struct Place(PathBuf);

impl Place {
    fn make(top: &Path) -> io::Result<Place> {
        let mut dir = tempfile::Builder::new();
        let dir = dir.prefix("timecell-held-").tempdir_in(top)?;
        Ok(Place(dir.keep()))
    }

    fn new() -> Place {
        Place::make(&top().unwrap()).unwrap()
    }

    fn put(&self, process: &Running) {
        fs::write(self.0.join("cgroup.procs"), process.pid().to_string()).unwrap();
    }

    fn is_told_to_freeze(&self) -> bool {
        let told = fs::read_to_string(self.0.join("cgroup.freeze")).unwrap();
        told.trim() == "1"
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::write(self.0.join("cgroup.kill"), "1");
        let until = Instant::now() + PATIENCE;
        while host::cgroup::remove_empty(&self.0).is_err() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// A child process, killed and waited for when it is dropped.
struct Running(Child);

impl Running {
    fn start(command: &str) -> Running {
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).stdin(Stdio::piped());
        Running(shell.spawn().unwrap())
    }

    fn pid(&self) -> i32 {
        self.0.id().cast_signed()
    }

    fn go(&self) {
        io::Write::write_all(&mut self.0.stdin.as_ref().unwrap(), b"\n").unwrap();
    }

    fn class(&self) -> Class {
        sched::get_class(self.pid()).unwrap()
    }

    fn children(&self) -> Vec<i32> {
        let path = format!("/proc/{0}/task/{0}/children", self.pid());
        let text = fs::read_to_string(path).unwrap();
        let pids = text.split_whitespace().map(|pid| pid.parse().unwrap());
        pids.collect()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A keeper at work, stopped when it is dropped.
struct AtWork {
    handle: Handle,
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<Result<(), KeeperError>>>,
}

impl AtWork {
    fn start(senses: Senses) -> AtWork {
        let mut keeper = Keeper::with(host::cpus::default_rt_cpu(), PRIORITY, senses).unwrap();
        let handle = keeper.handle();
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        AtWork {
            handle,
            stop,
            thread: Some(std::thread::spawn(move || keeper.run(&told))),
        }
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        self.handle.wake();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap().unwrap();
        }
    }
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < until, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn hold_a_spinner(senses: Senses, stop: Stop) {
    let place = Place::new();
    let spinner = Running::start("read go; while :; do :; done");
    place.put(&spinner);
    sched::set_affinity(spinner.pid(), &[host::cpus::default_rt_cpu()]).unwrap();
    let work = AtWork::start(senses);
    let reservation = Reservation::new(10 * MS, 100 * MS).unwrap();
    let id = work.handle.add(&place.0, stop, reservation).unwrap();
    assert!(!place.is_told_to_freeze(), "it begins with its budget");
    spinner.go();
    let stats = work.handle.stats().group(id).unwrap();
    wait_until("three budgets are used up", || {
        stats.exhausted.load(Relaxed) >= 3
    });
    // The enforcing thread may be in the middle of counting a period.
    let (used_ns, periods) = (stats.used_ns.load(Relaxed), stats.periods.load(Relaxed));
    let most_ns = (periods.cast_signed() + 1) * 10 * MS + stats.overruns.most_ns();
    assert!(used_ns <= most_ns, "{used_ns} in {periods} periods");
    assert_eq!(stats.errors.load(Relaxed), 0);
    wait_until("it is frozen", || place.is_told_to_freeze());
    work.handle.remove(id).unwrap();
    assert!(!place.is_told_to_freeze(), "whoever is let go may run");
    assert!(work.handle.stats().group(id).is_none());
    let again = work.handle.remove(id);
    assert!(matches!(again, Err(KeeperError::NotHeld)));
    // Held again, and let go by the end of the keeper.
    let id = work.handle.add(&place.0, stop, reservation).unwrap();
    let stats = work.handle.stats().group(id).unwrap();
    wait_until("a budget is used up again", || {
        stats.exhausted.load(Relaxed) >= 1
    });
    drop(work);
    assert!(!place.is_told_to_freeze(), "nobody is left frozen");
}

fn a_group_is_held_and_let_go() {
    let cpu = host::cpus::default_rt_cpu();
    for stop in [Stop::Lower, Stop::Freeze] {
        hold_a_spinner(proof::senses(&top().unwrap(), cpu, PRIORITY), stop);
    }
}

fn by_the_clock_a_group_is_held_too() {
    for stop in [Stop::Lower, Stop::Freeze] {
        hold_a_spinner(Senses::clock("tried here"), stop);
    }
}

fn lowered_threads_and_their_children_get_their_classes_back() {
    let place = Place::new();
    let cell = Running::start("read go; sleep 100 & sleep 100");
    let idle = Running::start("sleep 100");
    let ordinary = Running::start("sleep 100");
    for process in [&cell, &idle, &ordinary] {
        place.put(process);
    }
    sched::set_class(cell.pid(), &CELL).unwrap();
    sched::set_class(idle.pid(), &Class::Idle).unwrap();
    let mut group = Group::open(&place.0, 0, &Senses::clock("")).unwrap();
    let done = group.lower();
    assert_eq!((done.lowered, done.deadline, done.refused), (1, 0, 0));
    assert!(group.is_lowered());
    assert_eq!(cell.class(), Class::Idle);
    assert_eq!(ordinary.class(), Class::Other);
    // Children of the lowered one, which inherit.
    cell.go();
    wait_until("it has children", || cell.children().len() == 2);
    for child in cell.children() {
        assert_eq!(sched::get_class(child).unwrap(), Class::Idle);
    }
    group.thaw().unwrap();
    assert!(!group.is_lowered());
    assert_eq!(cell.class(), CELL);
    for child in cell.children() {
        assert_eq!(sched::get_class(child).unwrap(), CELL);
    }
    assert_eq!(idle.class(), Class::Idle, "it was so before");
    assert_eq!(ordinary.class(), Class::Other);
}

fn threads_in_a_group_made_later_are_held() {
    let place = Place::new();
    let spinner = Running::start("read go; while :; do :; done");
    place.put(&spinner);
    sched::set_affinity(spinner.pid(), &[host::cpus::default_rt_cpu()]).unwrap();
    sched::set_class(spinner.pid(), &CELL).unwrap();
    let work = AtWork::start(Senses::clock("tried here"));
    let reservation = Reservation::new(10 * MS, 100 * MS).unwrap();
    let id = (work.handle.add(&place.0, Stop::Lower, reservation)).unwrap();
    let stats = work.handle.stats().group(id).unwrap();
    let below = place.0.join("below");
    fs::create_dir(&below).unwrap();
    fs::write(below.join("cgroup.procs"), spinner.pid().to_string()).unwrap();
    spinner.go();
    wait_until("it is lowered", || stats.lowered.load(Relaxed) >= 3);
    work.handle.remove(id).unwrap();
    assert_eq!(spinner.class(), CELL);
    assert!(!place.is_told_to_freeze());
}

fn a_group_that_is_removed_is_let_go() {
    let place = Place::new();
    let work = AtWork::start(Senses::clock("tried here"));
    let reservation = Reservation::new(MS, 10 * MS).unwrap();
    let id = work.handle.add(&place.0, Stop::Lower, reservation).unwrap();
    let stats = work.handle.stats().group(id).unwrap();
    fs::remove_dir(&place.0).unwrap();
    wait_until("that is noticed", || stats.gone.load(Relaxed) == 1);
    let looks = stats.looks.load(Relaxed);
    work.handle.remove(id).unwrap();
    assert_eq!(stats.looks.load(Relaxed), looks);
    let again = work.handle.add(&place.0, Stop::Lower, reservation);
    assert!(again.is_err(), "there is no such group");
}

fn the_proof_leaves_nothing_behind() {
    let top = top().unwrap();
    let cpu = host::cpus::default_rt_cpu();
    let senses = proof::senses(&top, cpu, PRIORITY);
    assert!(senses.notice.is_some() || !senses.reason.is_empty());
    let own = format!("timecell-proof-{}", std::process::id());
    let left = fs::read_dir(&top).unwrap().flatten();
    let left = left.filter(|entry| entry.file_name().to_string_lossy().starts_with(&own));
    assert_eq!(left.count(), 0);
    let nowhere = proof::senses(Path::new("/nowhere"), cpu, PRIORITY);
    assert!(nowhere.notice.is_none() && !nowhere.reason.is_empty());
}
