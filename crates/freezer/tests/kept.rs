//! Groups held by a separate process, on a real kernel: succession, continuity, and remains. No timing is judged here.

#[path = "../../host/tests/needs/mod.rs"]
mod needs;
#[path = "kept/next.rs"]
mod next;
mod root;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use host::sched::{self, Class};
use timecell_freezer::page::{Page, Progress};
use timecell_freezer::process::{self, Place, PlaceError};
use timecell_freezer::{Hold, Reservation, Stop};

const MS: i64 = 1_000_000;
const PATIENCE: Duration = Duration::from_secs(30);
const CELL: Class = Class::Fifo { priority: 50 };

const TESTS: [(&str, fn()); 11] = [
    (
        "root_a_group_is_held_until_it_is_released_and_nothing_is_left",
        a_group_is_held_until_it_is_released_and_nothing_is_left,
    ),
    (
        "root_a_killed_keeper_is_replaced_where_it_was",
        a_killed_keeper_is_replaced_where_it_was,
    ),
    (
        "root_a_stopped_keeper_is_killed_and_replaced",
        a_stopped_keeper_is_killed_and_replaced,
    ),
    (
        "root_a_watcher_that_dies_or_is_stopped_is_replaced",
        a_watcher_that_dies_or_is_stopped_is_replaced,
    ),
    ("root_the_heir_replaces_both", the_heir_replaces_both),
    (
        "root_the_heir_ends_both_when_they_are_stopped",
        the_heir_ends_both_when_they_are_stopped,
    ),
    (
        "root_whoever_comes_next_adopts_when_all_are_dead",
        whoever_comes_next_adopts_when_all_are_dead,
    ),
    (
        "root_lowered_threads_get_their_class_back_whoever_dies",
        lowered_threads_get_their_class_back_whoever_dies,
    ),
    (
        "root_nobody_thaws_a_cell_from_within_its_hold",
        nobody_thaws_a_cell_from_within_its_hold,
    ),
    (
        "root_a_group_that_is_made_again_is_held_again",
        a_group_that_is_made_again_is_held_again,
    ),
    (
        "root_what_cannot_be_held_is_refused",
        what_cannot_be_held_is_refused,
    ),
];

/// The program is its own keeper; a cpu has one enforcing thread, so tests take turns.
fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().is_some_and(|word| word == process::WORD) {
        std::process::exit(process::inside(&words[1..], |_| {}));
    }
    let unmet = unmet();
    let tests = TESTS.into_iter().chain(next::TESTS);
    let trials = tests.map(|(name, run)| needs::trial(name, unmet, run));
    needs::run(trials.collect(), needs::Threads::One);
}

fn unmet() -> Option<&'static str> {
    let missing = root::missing();
    if missing.is_some() {
        return missing;
    }
    let id = format!("timecell-kept-{}", std::process::id());
    let hold = host::cgroup::detect().map(|cgroups| Hold::make(&cgroups, &id));
    match hold {
        Ok(Ok(hold)) => {
            let _ = hold.remove();
            None
        }
        Ok(Err(_)) | Err(_) => Some("no cgroup v2 with a freezer"),
    }
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < until, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A cell: a held group, the engine's in it, and a process in that.
struct Cell {
    hold: Hold,
    process: Child,
}

impl Cell {
    fn start(command: &str) -> Cell {
        static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let cgroups = host::cgroup::detect().unwrap();
        let id = format!("timecell-kept-{}-{number}", std::process::id());
        let hold = Hold::make(&cgroups, &id).unwrap();
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("read go; {command}")]);
        let process = shell.stdin(Stdio::piped()).spawn().unwrap();
        let cell = Cell { hold, process };
        fs::create_dir(cell.inner()).unwrap();
        fs::write(cell.inner().join("cgroup.procs"), cell.pid().to_string()).unwrap();
        sched::set_affinity(cell.pid(), &[host::cpus::default_rt_cpu()]).unwrap();
        cell
    }

    fn inner(&self) -> PathBuf {
        let inner = self.hold.inner();
        let top = self.hold.path().parent().unwrap();
        top.join(inner.trim_start_matches('/'))
    }

    fn pid(&self) -> i32 {
        self.process.id().cast_signed()
    }

    fn go(&self) {
        std::io::Write::write_all(&mut self.process.stdin.as_ref().unwrap(), b"\n").unwrap();
    }

    fn is_told_to_freeze(&self) -> bool {
        let told = fs::read_to_string(self.hold.path().join("cgroup.freeze")).unwrap();
        told.trim() == "1"
    }

    fn used_us(&self) -> u64 {
        let text = fs::read_to_string(self.hold.path().join("cpu.stat")).unwrap();
        let mut lines = text.lines();
        let us = lines.find_map(|line| line.strip_prefix("usage_usec "));
        us.unwrap().parse().unwrap()
    }
}

impl Drop for Cell {
    fn drop(&mut self) {
        let _ = fs::write(self.hold.path().join("cgroup.kill"), "1");
        let _ = fs::write(self.hold.path().join("cgroup.freeze"), "0");
        let _ = self.process.wait();
        let until = Instant::now() + PATIENCE;
        while self.hold.remove().is_err() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// A place with its keeper, all of which is ended when it is dropped.
struct Held {
    place: Place,
    _dir: tempfile::TempDir,
}

impl Held {
    fn new() -> Held {
        let dir = tempfile::Builder::new();
        let dir = { dir }
            .prefix("timecell-kept-")
            .tempdir_in(timecell_freezer::page::memory())
            .unwrap();
        let program = std::env::current_exe().unwrap();
        Held {
            place: Place::new(dir.path().join("place"), program),
            _dir: dir,
        }
    }

    fn hold(&self, cell: &Cell, budget_ms: i64, period_ms: i64) -> u64 {
        let reservation = Reservation::new(budget_ms * MS, period_ms * MS).unwrap();
        let cpu = host::cpus::default_rt_cpu();
        self.place
            .hold(cell.hold.path(), Stop::Lower, cpu, reservation)
            .unwrap()
    }

    fn page(&self) -> Page {
        self.place.page().unwrap().unwrap()
    }

    fn progress(&self, id: u64) -> Progress {
        let groups = self.place.groups().unwrap();
        let found = groups.into_iter().find(|group| group.which.id == id);
        found.unwrap().progress
    }

    fn wait_for_watcher(&self) -> i32 {
        let page = self.page();
        wait_until("there is a watcher", || lives(page.watcher()));
        page.watcher()
    }

    /// Keeper, watcher and heir, once all are there.
    fn kill_all(&self) {
        self.wait_for_watcher();
        wait_until("there is an heir", || self.heir().is_some());
        // Again and again: as long as one of them lives it may have started another, which has no command line while it is executed.
        let mut in_a_row = 0;
        wait_until("all are dead", || {
            let all = ["heir", "watcher", "keeper"].map(|role| members(self.place.dir(), role));
            for pid in all.concat() {
                // SAFETY: no memory is involved; it may have ended meanwhile.
                unsafe { libc::kill(pid, libc::SIGKILL) };
            }
            let are_dead = all.iter().all(Vec::is_empty);
            in_a_row = if are_dead { in_a_row + 1 } else { 0 };
            in_a_row > 25
        });
    }

    fn heir(&self) -> Option<i32> {
        members(self.place.dir(), "heir").first().copied()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        for group in self.place.groups().unwrap_or_default() {
            let _ = self.place.release(group.which.id);
        }
        let all = || ["keeper", "watcher", "heir"].map(|role| members(self.place.dir(), role));
        let until = Instant::now() + PATIENCE;
        while all().iter().any(|pids| !pids.is_empty()) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        let left = all().concat();
        left.iter().for_each(|pid| signal(*pid, libc::SIGKILL));
        assert!(
            left.is_empty() || std::thread::panicking(),
            "left: {left:?}"
        );
    }
}

/// The processes of a place by their role.
fn members(dir: &Path, role: &str) -> Vec<i32> {
    let words = format!("\0{}\0{role}\0{}\0", process::WORD, dir.display());
    let pids = fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| {
            let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
            let line = fs::read(entry.path().join("cmdline")).ok()?;
            (String::from_utf8_lossy(&line).contains(&words) && lives(pid)).then_some(pid)
        });
    pids.collect()
}

fn lives(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit_once(") ")
        .and_then(|(_, rest)| rest.chars().next());
    pid > 0 && state.is_some_and(|state| !"ZX".contains(state))
}

fn signal(pid: i32, signal: i32) {
    // SAFETY: no memory is involved.
    assert_eq!(unsafe { libc::kill(pid, signal) }, 0, "{pid}");
}

/// Waits until so many more budgets were used up.
fn wait_for_budgets(held: &Held, id: u64, more: u64) {
    let before = held.progress(id).totals.exhausted;
    wait_until("budgets are used up", || {
        held.progress(id).totals.exhausted >= before + more
    });
}

const SPIN: &str = "while :; do :; done";

fn a_group_is_held_until_it_is_released_and_nothing_is_left() {
    let (held, cell) = (Held::new(), Cell::start(SPIN));
    assert!(held.place.adopt().unwrap().is_empty());
    let id = held.hold(&cell, 10, 100);
    assert!(!cell.is_told_to_freeze(), "it begins with its budget");
    cell.go();
    wait_for_budgets(&held, id, 3);
    let totals = held.progress(id).totals;
    let most_ns = (totals.periods.cast_signed() + 1) * 10 * MS + totals.overrun_ns;
    assert!(totals.used_ns <= most_ns, "{totals:?}");
    let page = held.page();
    let reacted = page.reacted(id).unwrap();
    let counted = reacted.overruns.count();
    let until = held.progress(id).totals.exhausted + 1;
    assert!((totals.exhausted..=until).contains(&counted), "{counted}");
    assert!(reacted.overruns.most_ns() >= totals.overrun_ns);
    // One look to freeze it and one to thaw it, in each period.
    assert!(reacted.late.count() > counted);
    assert!(page.reacted(id + 1).is_none() && page.has_notice(60_000).is_none());
    let cpu = held.place.groups().unwrap()[0].which.cpu;
    assert!(page.has_notice(cpu).is_some());
    assert!(page.keeper_cpu_ns().is_some_and(|ns| ns > 0));
    // Asked for again, it is the same, with another budget.
    assert_eq!(held.hold(&cell, 20, 100), id);
    assert_eq!(held.progress(id).reservation.budget_ns(), 20 * MS);
    let other = Reservation::new(5 * MS, 50 * MS).unwrap();
    held.place.change(id, other).unwrap();
    assert_eq!(held.progress(id).reservation, other);
    wait_for_budgets(&held, id, 2);
    held.place.release(id).unwrap();
    assert!(!cell.is_told_to_freeze(), "whoever is let go may run");
    wait_until("all have ended", || {
        ["keeper", "watcher", "heir"]
            .iter()
            .all(|role| members(held.place.dir(), role).is_empty())
    });
    assert!(held.place.page().unwrap().is_none());
    assert!(!held.place.dir().join("socket").exists());
}

fn a_killed_keeper_is_replaced_where_it_was() {
    let (held, cell) = (Held::new(), Cell::start(SPIN));
    let id = held.hold(&cell, 10, 100);
    cell.go();
    for round in 1..=5 {
        let watcher = held.wait_for_watcher();
        wait_for_budgets(&held, id, 1);
        let (page, before) = (held.page(), held.progress(id).totals);
        signal(page.keeper(), libc::SIGKILL);
        wait_until("the watcher is keeper", || page.keeper() == watcher);
        assert_eq!(page.takeovers(), round);
        // Commands are answered, and nothing is forgotten.
        wait_for_budgets(&held, id, 2);
        let after = held.progress(id).totals;
        assert!(after.periods > before.periods && after.used_ns > before.used_ns);
        let most_ns = (after.periods.cast_signed() + 1) * 10 * MS + after.overrun_ns;
        assert!(after.used_ns <= most_ns, "{after:?}");
        // The killed keeper may have been about to count.
        let counted = page.reacted(id).unwrap().overruns.count();
        assert!(counted + round >= after.exhausted, "{counted}: {after:?}");
        assert_eq!(held.hold(&cell, 10, 100), id);
    }
}

fn a_stopped_keeper_is_killed_and_replaced() {
    let (held, cell) = (Held::new(), Cell::start(SPIN));
    let id = held.hold(&cell, 10, 100);
    cell.go();
    let watcher = held.wait_for_watcher();
    let page = held.page();
    let keeper = page.keeper();
    signal(keeper, libc::SIGSTOP);
    wait_until("the watcher is keeper", || page.keeper() == watcher);
    assert!(!lives(keeper), "two would work against each other");
    wait_for_budgets(&held, id, 2);
}

fn a_watcher_that_dies_or_is_stopped_is_replaced() {
    let (held, cell) = (Held::new(), Cell::start(SPIN));
    let id = held.hold(&cell, 10, 100);
    cell.go();
    let page = held.page();
    let keeper = page.keeper();
    for number in [libc::SIGKILL, libc::SIGSTOP, libc::SIGKILL] {
        let watcher = held.wait_for_watcher();
        signal(watcher, number);
        wait_until("there is another watcher", || {
            page.watcher() != watcher && lives(page.watcher())
        });
        assert!(!lives(watcher));
    }
    wait_for_budgets(&held, id, 2);
    assert_eq!(page.keeper(), keeper, "it was never disturbed");
    // The last one is as good as the first.
    let watcher = page.watcher();
    signal(keeper, libc::SIGKILL);
    wait_until("the watcher is keeper", || page.keeper() == watcher);
}

fn the_heir_replaces_both() {
    let (held, cell) = (Held::new(), Cell::start(SPIN));
    let id = held.hold(&cell, 10, 100);
    cell.go();
    for _ in 0..3 {
        let watcher = held.wait_for_watcher();
        wait_until("there is an heir", || held.heir().is_some());
        let (page, heir) = (held.page(), held.heir());
        let keeper = page.keeper();
        // The watcher first: it might be keeper before it is its turn to die.
        signal(watcher, libc::SIGKILL);
        signal(keeper, libc::SIGKILL);
        wait_until("there is another keeper", || {
            page.keeper() != keeper && lives(page.keeper())
        });
        wait_for_budgets(&held, id, 2);
        assert_eq!(held.heir(), heir, "it stays");
    }
    let heir = held.heir().unwrap();
    signal(heir, libc::SIGKILL);
    wait_until("there is another heir", || {
        held.heir().is_some_and(|other| other != heir)
    });
}

fn the_heir_ends_both_when_they_are_stopped() {
    let (held, cell) = (Held::new(), Cell::start(SPIN));
    let id = held.hold(&cell, 10, 100);
    cell.go();
    let watcher = held.wait_for_watcher();
    wait_until("there is an heir", || held.page().has_heir());
    let page = held.page();
    let keeper = page.keeper();
    signal(watcher, libc::SIGSTOP);
    signal(keeper, libc::SIGSTOP);
    wait_until("there is another keeper", || {
        page.keeper() != keeper && lives(page.keeper())
    });
    assert!(!lives(keeper) && !lives(watcher));
    wait_for_budgets(&held, id, 2);
}

fn whoever_comes_next_adopts_when_all_are_dead() {
    let (held, cell) = (Held::new(), Cell::start(SPIN));
    let id = held.hold(&cell, 10, 100);
    cell.go();
    wait_for_budgets(&held, id, 1);
    held.kill_all();
    let before = held.progress(id).totals;
    let groups = held.place.adopt().unwrap();
    assert_eq!((groups[0].which.id, groups[0].not_held), (id, None));
    wait_for_budgets(&held, id, 2);
    let after = held.progress(id).totals;
    assert!(after.periods > before.periods);
    // Its use while nobody held it is paid for, or reported as waived.
    let free_ns = after.overrun_ns + after.waived_ns;
    let most_ns = (after.periods.cast_signed() + 1) * 10 * MS + free_ns;
    assert!(after.used_ns <= most_ns, "{after:?}");
    held.wait_for_watcher();
}

fn lowered_threads_get_their_class_back_whoever_dies() {
    let held = Held::new();
    let cell = Cell::start("exec dd if=/dev/zero of=/dev/null bs=256M 2>/dev/null");
    sched::set_class(cell.pid(), &CELL).unwrap();
    let id = held.hold(&cell, 2, 20);
    cell.go();
    for _ in 0..20 {
        let watcher = held.wait_for_watcher();
        let page = held.page();
        // As likely as not within a call that goes on after the freeze: then it is lowered.
        wait_until("it is frozen, or lowered", || cell.is_told_to_freeze());
        std::thread::sleep(Duration::from_micros(700));
        signal(page.keeper(), libc::SIGKILL);
        wait_until("the watcher is keeper", || page.keeper() == watcher);
    }
    held.place.release(id).unwrap();
    assert_eq!(sched::get_class(cell.pid()).unwrap(), CELL);
    assert!(!cell.is_told_to_freeze());
}

fn nobody_thaws_a_cell_from_within_its_hold() {
    let (held, cell) = (Held::new(), Cell::start(SPIN));
    let id = held.hold(&cell, 1, 2_000);
    cell.go();
    wait_for_budgets(&held, id, 1);
    let frozen = || {
        wait_until("it is frozen", || cell.is_told_to_freeze());
        let before = cell.used_us();
        std::thread::sleep(Duration::from_millis(100));
        (before, cell.used_us())
    };
    // As an engine does that pauses and resumes the container.
    fs::write(cell.inner().join("cgroup.freeze"), "1").unwrap();
    fs::write(cell.inner().join("cgroup.freeze"), "0").unwrap();
    let (before, after) = frozen();
    // A period may have begun in between, at most.
    assert!(after - before < 20_000, "{before} {after}");
    // And a cell that is shed stays frozen, regardless of its budget.
    fs::write(cell.inner().join("cgroup.freeze"), "1").unwrap();
    held.hold(&cell, 50, 100);
    std::thread::sleep(Duration::from_millis(200));
    let before = cell.used_us();
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(cell.used_us(), before);
    fs::write(cell.inner().join("cgroup.freeze"), "0").unwrap();
    wait_until("it goes on", || cell.used_us() > before);
}

fn a_group_that_is_made_again_is_held_again() {
    let (held, other) = (Held::new(), Cell::start(SPIN));
    held.hold(&other, 10, 100);
    let first = Cell::start(SPIN);
    let id = held.hold(&first, 10, 100);
    let path = first.hold.path().to_owned();
    drop(first);
    // At once: nobody has looked at it since.
    fs::create_dir(&path).unwrap();
    let reservation = Reservation::new(10 * MS, 100 * MS).unwrap();
    let cpu = host::cpus::default_rt_cpu();
    let again = held
        .place
        .hold(&path, Stop::Lower, cpu, reservation)
        .unwrap();
    assert_ne!(again, id);
    other.go();
    fs::write(path.join("cgroup.procs"), other.pid().to_string()).unwrap();
    wait_for_budgets(&held, again, 2);
    // One that is removed for good is let go of by itself.
    fs::write(other.inner().join("cgroup.procs"), other.pid().to_string()).unwrap();
    wait_until("it is empty", || fs::remove_dir(&path).is_ok());
    wait_until("it is forgotten", || {
        held.place
            .groups()
            .unwrap()
            .iter()
            .all(|group| group.which.id != again)
    });
}

fn what_cannot_be_held_is_refused() {
    let (held, cell) = (Held::new(), Cell::start(SPIN));
    let reservation = Reservation::new(MS, 10 * MS).unwrap();
    let refused = |group: &Path, cpu: u32| {
        let error = held
            .place
            .hold(group, Stop::Lower, cpu, reservation)
            .unwrap_err();
        assert!(matches!(error, PlaceError::Refused(_)), "{error}");
        error.to_string()
    };
    let cpu = host::cpus::default_rt_cpu();
    let nowhere = cell.hold.path().join("nowhere");
    assert!(refused(&nowhere, cpu).contains("No such file"));
    assert_eq!(refused(cell.hold.path(), 9_999), "cpu 9999 is not online");
    let id = held.hold(&cell, 1, 10);
    let elsewhere = host::cpus::online()
        .unwrap()
        .into_iter()
        .find(|other| *other != cpu);
    if let Some(elsewhere) = elsewhere {
        let said = refused(cell.hold.path(), elsewhere);
        assert!(said.ends_with(&format!("is held on cpu {cpu}")), "{said}");
    }
    let error = held.place.release(id + 1).unwrap_err();
    assert_eq!(error.to_string(), "no such group is held on this cpu");
    let relative = held
        .place
        .hold(Path::new("a"), Stop::Lower, cpu, reservation);
    assert!(matches!(relative, Err(PlaceError::Path(_))));
    // On a disk wherever builds are; else there is nothing to refuse.
    let disk = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let place = |dir: &Path| Place::new(dir, std::env::current_exe().unwrap());
    let error = place(&disk.path().join("own"))
        .hold(cell.hold.path(), Stop::Lower, cpu, reservation)
        .unwrap_err();
    assert!(error.to_string().contains("is not on tmpfs"), "{error}");
    let open = disk.path().join("open");
    fs::create_dir(&open).unwrap();
    let error = place(&open)
        .hold(cell.hold.path(), Stop::Lower, cpu, reservation)
        .unwrap_err();
    assert!(matches!(error, PlaceError::Foreign(_)), "{error}");
}
