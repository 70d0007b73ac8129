//! The state that the next keeper finds: groups that were recreated or cannot be opened, debts from a time in which
//! nobody held them, threads of a dead keeper, and commands that were already carried out.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::symlink;
use std::os::unix::net::{UnixListener, UnixStream};

use super::*;

pub(crate) const TESTS: [(&str, fn()); 15] = [
    (
        "root_a_group_made_again_while_nobody_held_it_begins",
        a_group_made_again_while_nobody_held_it_begins,
    ),
    (
        "root_a_long_time_without_a_keeper_is_not_owed",
        a_long_time_without_a_keeper_is_not_owed,
    ),
    (
        "root_a_watcher_that_takes_over_waives_nothing",
        a_watcher_that_takes_over_waives_nothing,
    ),
    (
        "root_a_release_right_after_a_take_over_ends_all",
        a_release_right_after_a_take_over_ends_all,
    ),
    (
        "root_a_cpu_without_groups_kills_no_keeper",
        a_cpu_without_groups_kills_no_keeper,
    ),
    (
        "root_an_heir_that_comes_late_is_that_of_the_next_page",
        an_heir_that_comes_late_is_that_of_the_next_page,
    ),
    (
        "root_what_cannot_be_adopted_is_told_of",
        what_cannot_be_adopted_is_told_of,
    ),
    (
        "root_what_could_not_be_adopted_is_released",
        what_could_not_be_adopted_is_released,
    ),
    (
        "root_what_could_not_be_adopted_is_held_when_asked_for",
        what_could_not_be_adopted_is_held_when_asked_for,
    ),
    (
        "root_a_group_taken_up_long_after_its_keeper_came_does_not_owe_that",
        a_group_taken_up_long_after_its_keeper_came_does_not_owe_that,
    ),
    (
        "root_a_group_is_not_held_under_two_names",
        a_group_is_not_held_under_two_names,
    ),
    (
        "root_a_keeper_whose_starter_has_gone_is_at_work",
        a_keeper_whose_starter_has_gone_is_at_work,
    ),
    (
        "root_a_keeper_whose_first_group_never_comes_waits_and_ends_with_its_place",
        a_keeper_whose_first_group_never_comes_waits_and_ends_with_its_place,
    ),
    (
        "root_a_release_whose_answer_was_lost_is_done",
        a_release_whose_answer_was_lost_is_done,
    ),
    (
        "root_a_release_of_what_was_never_held_is_refused_though_an_answer_was_lost",
        a_release_of_what_was_never_held_is_refused_though_an_answer_was_lost,
    ),
];

/// A group that is gone at the end, with its contents.
struct Made(PathBuf);

impl Drop for Made {
    fn drop(&mut self) {
        let _ = fs::write(self.0.join("cgroup.kill"), "1");
        let _ = fs::write(self.0.join("cgroup.freeze"), "0");
        let until = Instant::now() + PATIENCE;
        while self.0.exists() && fs::remove_dir(&self.0).is_err() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn a_group_made_again_while_nobody_held_it_begins() {
    let (held, first) = (Held::new(), Cell::start(SPIN));
    // So much that the next group of this path could use much before it had used as much.
    let id = held.hold(&first, 90, 100);
    first.go();
    wait_until("it uses much", || first.used_us() > 800_000);
    assert_eq!(held.hold(&first, 10, 100), id);
    wait_for_budgets(&held, id, 1);
    held.kill_all();
    let path = first.hold.path().to_owned();
    drop(first);
    fs::create_dir(&path).unwrap();
    let other = Cell::start(SPIN);
    // Dropped before the cell whose process gets into it.
    let _made = Made(path.clone());
    let reservation = Reservation::new(10 * MS, 100 * MS).unwrap();
    let cpu = host::cpus::default_rt_cpu();
    let again = held
        .place
        .hold(&path, Stop::Lower, cpu, reservation)
        .unwrap();
    fs::write(path.join("cgroup.procs"), other.pid().to_string()).unwrap();
    other.go();
    wait_for_budgets(&held, again, 1);
    let text = fs::read_to_string(path.join("cpu.stat")).unwrap();
    let us = text
        .lines()
        .find_map(|line| line.strip_prefix("usage_usec "));
    let used_us: i64 = us.unwrap().parse().unwrap();
    // One budget or two, and how late a look can be.
    assert!(used_us < 400_000, "{used_us} us without a budget");
    let counted_ns = held.progress(again).totals.used_ns;
    assert!(
        counted_ns <= used_us * 1_000,
        "{counted_ns} ns are not all its own"
    );
    held.place.release(again).unwrap();
}

/// Use that is not owed: waived, or free where the keeper had the group's threads lowered when it died, which they stay.
fn free_ns(progress: Progress) -> i64 {
    progress.totals.waived_ns + progress.best_effort_ns
}

fn a_long_time_without_a_keeper_is_not_owed() {
    let (held, cell) = (Held::new(), Cell::start(SPIN));
    let id = held.hold(&cell, 10, 100);
    cell.go();
    wait_for_budgets(&held, id, 1);
    held.kill_all();
    fs::write(cell.hold.path().join("cgroup.freeze"), "0").unwrap();
    let before = cell.used_us();
    wait_until("it uses much", || cell.used_us() > before + 2_000_000);
    // That would be 200 periods, 20 s.
    let free_before_ns = free_ns(held.progress(id));
    held.place.adopt().unwrap();
    let began = Instant::now();
    // The new keeper answers before it has settled.
    wait_until("much of it is not owed", || {
        free_ns(held.progress(id)) > free_before_ns + 1_500 * MS
    });
    let at = cell.used_us();
    wait_until("it has its budget", || cell.used_us() > at + 5_000);
    assert!(began.elapsed() < Duration::from_secs(5));
}

fn a_watcher_that_takes_over_waives_nothing() {
    let (held, cell) = (Held::new(), Cell::start(SPIN));
    let id = held.hold(&cell, 10, 100);
    cell.go();
    wait_for_budgets(&held, id, 1);
    let watcher = held.wait_for_watcher();
    wait_until("there is an heir", || held.heir().is_some());
    let (page, heir) = (held.page(), held.heir().unwrap());
    let free_before_ns = held.progress(id).best_effort_ns;
    // Nobody can do anything, and the cell runs; then the watcher goes on.
    for pid in [heir, watcher, page.keeper()] {
        signal(pid, libc::SIGSTOP);
    }
    fs::write(cell.hold.path().join("cgroup.freeze"), "0").unwrap();
    let before = cell.used_us();
    wait_until("it uses much", || cell.used_us() > before + 400_000);
    let before_ns = page.resumed_ns();
    signal(watcher, libc::SIGCONT);
    wait_until("the watcher is keeper", || {
        page.keeper() == watcher && page.resumed_ns() > before_ns
    });
    // Some 30 budgets: many more than are owed after all are dead. It is free, not owed, where the keeper had its threads
    // lowered when it was stopped.
    let progress = held.progress(id);
    signal(heir, libc::SIGCONT);
    assert_eq!(progress.totals.waived_ns, 0);
    let owed_ns = -progress.state.left_ns;
    let free_ns = progress.best_effort_ns - free_before_ns;
    assert!(
        owed_ns.max(free_ns) > 10 * 10 * MS,
        "{owed_ns} owed, {free_ns} free"
    );
}

fn a_release_right_after_a_take_over_ends_all() {
    let (held, cell) = (Held::new(), Cell::start(SPIN));
    let id = held.hold(&cell, 10, 100);
    let watcher = held.wait_for_watcher();
    let page = held.page();
    signal(page.keeper(), libc::SIGKILL);
    held.place.release(id).unwrap();
    assert_eq!(page.keeper(), watcher);
    // One that never had a group to hold would wait for one, 10 s.
    let began = Instant::now();
    wait_until("all have ended", || {
        let all = ["keeper", "watcher", "heir"].map(|role| members(held.place.dir(), role));
        all.concat().is_empty()
    });
    assert!(began.elapsed() < Duration::from_secs(5));
}

fn a_cpu_without_groups_kills_no_keeper() {
    let cpu = host::cpus::default_rt_cpu();
    let online = host::cpus::online().unwrap();
    // With one cpu there is no other one.
    let Some(elsewhere) = online.into_iter().find(|other| *other != cpu) else {
        return;
    };
    let (held, cell, other) = (Held::new(), Cell::start(SPIN), Cell::start("true"));
    let id = held.hold(&cell, 10, 100);
    let reservation = Reservation::new(10 * MS, 100 * MS).unwrap();
    let path = other.hold.path();
    let gone = held
        .place
        .hold(path, Stop::Lower, elsewhere, reservation)
        .unwrap();
    held.place.release(gone).unwrap();
    cell.go();
    // The next watcher knows of no group there and has no thread for it.
    let watcher = held.wait_for_watcher();
    signal(watcher, libc::SIGKILL);
    let page = held.page();
    wait_until("there is another watcher", || {
        page.watcher() != watcher && lives(page.watcher()) && page.is_watched()
    });
    let watcher = page.watcher();
    signal(page.keeper(), libc::SIGKILL);
    wait_until("the watcher is keeper", || page.keeper() == watcher);
    wait_until("it is watched", || page.is_watched());
    // Longer than any promise of the dead thread.
    std::thread::sleep(Duration::from_millis(1_500));
    assert_eq!((page.keeper(), page.takeovers()), (watcher, 1));
    wait_for_budgets(&held, id, 2);
}

fn an_heir_that_comes_late_is_that_of_the_next_page() {
    let (held, cell) = (Held::new(), Cell::start(SPIN));
    let id = held.hold(&cell, 10, 100);
    held.wait_for_watcher();
    wait_until("there is an heir", || held.heir().is_some());
    let heir = held.heir().unwrap();
    // It does not get the lock before the next keeper does.
    signal(heir, libc::SIGSTOP);
    held.place.release(id).unwrap();
    wait_until("the others have ended", || {
        let others = ["keeper", "watcher"].map(|role| members(held.place.dir(), role));
        others.concat().is_empty()
    });
    let id = held.hold(&cell, 10, 100);
    cell.go();
    held.wait_for_watcher();
    signal(heir, libc::SIGCONT);
    let page = held.page();
    wait_until("the next page has it", || page.heir() == heir);
    let (keeper, watcher) = (page.keeper(), held.wait_for_watcher());
    signal(watcher, libc::SIGKILL);
    signal(keeper, libc::SIGKILL);
    wait_until("there is another keeper", || {
        page.keeper() != keeper && lives(page.keeper())
    });
    wait_for_budgets(&held, id, 2);
}

/// A path of a group that leads to one directory or another.
struct Link(PathBuf);

impl Link {
    /// Beside the place of `held`.
    fn new(held: &Held, at: &Path) -> Link {
        let link = Link(beside(held, "group"));
        link.aim(at);
        link
    }

    /// At no instant it leads nowhere.
    fn aim(&self, at: &Path) {
        let half = self.0.with_extension("new");
        symlink(at, &half).unwrap();
        fs::rename(&half, &self.0).unwrap();
    }

    fn hold(&self, held: &Held, budget_ms: i64) -> Result<u64, PlaceError> {
        let reservation = Reservation::new(budget_ms * MS, 100 * MS).unwrap();
        let cpu = host::cpus::default_rt_cpu();
        held.place.hold(&self.0, Stop::Lower, cpu, reservation)
    }
}

fn beside(held: &Held, name: &str) -> PathBuf {
    held.place.dir().with_file_name(name)
}

fn not_held(groups: &[timecell_freezer::page::Entry], id: u64) -> Option<i32> {
    let group = groups.iter().find(|group| group.which.id == id);
    group.unwrap().not_held
}

fn wait_until_held(held: &Held, id: u64) {
    wait_until("it is held after all", || {
        not_held(&held.place.groups().unwrap(), id).is_none()
    });
}

/// A spinning cell, held by way of a link, all of whose holders were killed; and its id.
fn held_by_nobody() -> (Held, Cell, Link, u64) {
    let (held, cell) = (Held::new(), Cell::start(SPIN));
    let link = Link::new(&held, cell.hold.path());
    let id = link.hold(&held, 10).unwrap();
    cell.go();
    wait_for_budgets(&held, id, 1);
    held.kill_all();
    (held, cell, link, id)
}

fn what_cannot_be_adopted_is_told_of() {
    let (held, cell, link, id) = held_by_nobody();
    // It is there, and cannot be opened as a group.
    link.aim(link.0.parent().unwrap());
    let groups = held.place.adopt().unwrap();
    assert_eq!(not_held(&groups, id), Some(libc::ENOENT));
    link.aim(cell.hold.path());
    wait_until_held(&held, id);
    wait_for_budgets(&held, id, 2);
}

fn what_could_not_be_adopted_is_released() {
    let (held, cell, link, id) = held_by_nobody();
    // Enough of the group to thaw it, and too little to hold it.
    let part = beside(&held, "part");
    fs::create_dir(&part).unwrap();
    let freeze = cell.hold.path().join("cgroup.freeze");
    symlink(&freeze, part.join("cgroup.freeze")).unwrap();
    link.aim(&part);
    fs::write(&freeze, "1").unwrap();
    let groups = held.place.adopt().unwrap();
    assert_eq!(not_held(&groups, id), Some(libc::ENOENT));
    let other = Reservation::new(20 * MS, 200 * MS).unwrap();
    held.place.change(id, other).unwrap();
    assert_eq!(held.progress(id).reservation, other);
    let said = link.hold(&held, 10).unwrap_err().to_string();
    assert!(said.contains("cgroup.events: No such file"), "{said}");
    assert!(cell.is_told_to_freeze(), "nobody has thawed it");
    held.place.release(id).unwrap();
    assert!(!cell.is_told_to_freeze(), "whoever is let go may run");
    assert!(held.place.groups().unwrap().is_empty());
    wait_until("all have ended", || {
        let all = ["keeper", "watcher", "heir"].map(|role| members(held.place.dir(), role));
        all.concat().is_empty()
    });
}

fn what_could_not_be_adopted_is_held_when_asked_for() {
    let (held, cell, link, id) = held_by_nobody();
    link.aim(link.0.parent().unwrap());
    let groups = held.place.adopt().unwrap();
    assert_eq!(not_held(&groups, id), Some(libc::ENOENT));
    link.aim(cell.hold.path());
    assert_eq!(link.hold(&held, 20).unwrap(), id);
    assert_eq!(not_held(&held.place.groups().unwrap(), id), None);
    assert_eq!(held.progress(id).reservation.budget_ns(), 20 * MS);
    wait_for_budgets(&held, id, 2);
    assert_eq!(not_held(&held.place.groups().unwrap(), id), None);
    // The next keeper holds it as any other.
    let (page, watcher) = (held.page(), held.wait_for_watcher());
    signal(page.keeper(), libc::SIGKILL);
    wait_until("the watcher is keeper", || page.keeper() == watcher);
    wait_until_held(&held, id);
    wait_for_budgets(&held, id, 2);
}

fn a_group_taken_up_long_after_its_keeper_came_does_not_owe_that() {
    let (held, cell) = (Held::new(), Cell::start(SPIN));
    let link = Link::new(&held, cell.hold.path());
    let id = link.hold(&held, 10).unwrap();
    cell.go();
    wait_for_budgets(&held, id, 1);
    let watcher = held.wait_for_watcher();
    wait_until("there is an heir", || held.heir().is_some());
    let (page, heir) = (held.page(), held.heir().unwrap());
    let keeper = page.keeper();
    // The heir's keeper comes at once, and finds no group at that path. Stopped first, none of them starts another one.
    for pid in [heir, watcher, keeper] {
        signal(pid, libc::SIGSTOP);
    }
    signal(watcher, libc::SIGKILL);
    signal(keeper, libc::SIGKILL);
    link.aim(link.0.parent().unwrap());
    signal(heir, libc::SIGCONT);
    wait_until("there is another keeper, without that group", || {
        let groups = held.place.groups().unwrap();
        page.keeper() != keeper && not_held(&groups, id).is_some()
    });
    fs::write(cell.hold.path().join("cgroup.freeze"), "0").unwrap();
    let before = cell.used_us();
    let free_before_ns = free_ns(held.progress(id));
    wait_until("it uses much", || cell.used_us() > before + 1_000_000);
    link.aim(cell.hold.path());
    wait_until_held(&held, id);
    // Four budgets of 10 ms are owed.
    wait_until("much of it is not owed", || {
        free_ns(held.progress(id)) > free_before_ns + 500 * MS
    });
    wait_for_budgets(&held, id, 1);
}

fn a_group_is_not_held_under_two_names() {
    let (held, cell) = (Held::new(), Cell::start(SPIN));
    let id = held.hold(&cell, 10, 100);
    let link = Link::new(&held, cell.hold.path());
    let said = link.hold(&held, 10).unwrap_err().to_string();
    let name = cell.hold.path().display();
    assert!(said.ends_with(&format!("is held as {name}")), "{said}");
    held.place.release(id).unwrap();
    let id = link.hold(&held, 10).unwrap();
    held.place.release(id).unwrap();
}

/// A keeper that was started, and not asked for anything.
fn start_keeper(dir: &Path) {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().mode(0o700).create(dir).unwrap();
    let (nobody, out) = std::io::pipe().unwrap();
    drop(nobody);
    let mut starting = Command::new(std::env::current_exe().unwrap());
    starting.args([process::WORD, "keeper"]).arg(dir);
    starting.stdin(Stdio::null()).stdout(out);
    assert!(starting.status().unwrap().success());
    wait_until("it takes commands", || dir.join("socket").exists());
}

fn a_keeper_whose_starter_has_gone_is_at_work() {
    let (held, cell) = (Held::new(), Cell::start(SPIN));
    let dir = held.place.dir();
    start_keeper(dir);
    let keeper = members(dir, "keeper");
    held.hold(&cell, 10, 100);
    assert_eq!(keeper, [held.page().keeper()]);
}

/// Its starter was killed before it could ask: nobody's cells are kept from a cpu by a keeper that has nothing to do.
fn a_keeper_whose_first_group_never_comes_waits_and_ends_with_its_place() {
    let held = Held::new();
    let dir = held.place.dir();
    start_keeper(dir);
    let keeper = members(dir, "keeper")[0];
    let used_ns = || {
        let line = fs::read_to_string(format!("/proc/{keeper}/schedstat")).unwrap();
        line.split(' ').next().unwrap().parse::<u64>().unwrap()
    };
    let (before, began) = (used_ns(), Instant::now());
    std::thread::sleep(Duration::from_secs(1));
    let (used, passed) = (used_ns() - before, began.elapsed().as_nanos());
    assert!(
        u128::from(used) < passed / 4,
        "{used} ns of cpu time in {passed} ns"
    );
    held.place.remove().unwrap();
    assert!(!dir.exists() && !lives(keeper));
}

/// Stands between the keeper and the client: has the next command carried out, and loses the answer.
fn lose_the_next_answer(dir: &Path) -> std::thread::JoinHandle<String> {
    let (socket, real) = (dir.join("socket"), dir.join("socket.real"));
    fs::rename(&socket, &real).unwrap();
    let between = UnixListener::bind(&socket).unwrap();
    std::thread::spawn(move || {
        let (asker, _) = between.accept().unwrap();
        let mut line = String::new();
        BufReader::new(&asker).read_line(&mut line).unwrap();
        let mut keeper = UnixStream::connect(&real).unwrap();
        keeper.write_all(line.as_bytes()).unwrap();
        let mut answer = String::new();
        BufReader::new(&keeper).read_line(&mut answer).unwrap();
        // The keeper has removed it if nothing is held any more.
        if socket.exists() {
            fs::rename(&real, &socket).unwrap();
        } else {
            fs::remove_file(&real).unwrap();
        }
        answer
    })
}

fn a_release_whose_answer_was_lost_is_done() {
    let held = Held::new();
    let cells = [Cell::start(SPIN), Cell::start(SPIN)];
    let ids = cells.each_ref().map(|cell| held.hold(cell, 10, 100));
    // One of two, and then the last one, after which there is no keeper to ask again.
    for id in ids {
        held.wait_for_watcher();
        let lost = lose_the_next_answer(held.place.dir());
        held.place.release(id).unwrap();
        assert_eq!(lost.join().unwrap(), format!("ok {id}\n"));
        let groups = held.place.groups().unwrap();
        assert!(groups.iter().all(|group| group.which.id != id));
        // A client that did not have to repeat it gets the error.
        let is_last = groups.is_empty();
        assert!(is_last || held.place.release(id).is_err());
    }
    wait_until("all have ended, and none was started", || {
        let all = ["keeper", "watcher", "heir"].map(|role| members(held.place.dir(), role));
        all.concat().is_empty()
    });
}

fn a_release_of_what_was_never_held_is_refused_though_an_answer_was_lost() {
    let (held, cell) = (Held::new(), Cell::start(SPIN));
    let id = held.hold(&cell, 10, 100);
    let lost = lose_the_next_answer(held.place.dir());
    let error = held.place.release(id + 1).unwrap_err();
    assert!(matches!(error, PlaceError::Refused(_)), "{error}");
    assert!(lost.join().unwrap().starts_with("no "));
    held.place.release(id).unwrap();
}
