//! The thread beside the enforcing one, and one group.

use super::*;

const MS: i64 = 1_000_000;
const FAR_NS: i64 = 1_000_000 * MS;

/// A group whose `cgroup.freeze` is an ordinary file, and its directory.
fn group() -> (tempfile::TempDir, Beside) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("cgroup.freeze"), "-").unwrap();
    std::fs::write(
        dir.path().join("cgroup.threads"),
        "7
",
    )
    .unwrap();
    let path = dir.path().join("cgroup.freeze");
    let freeze = File::options().write(true).open(path);
    let beside = Beside::new(File::open(dir.path()).unwrap(), freeze.unwrap());
    (dir, beside)
}

fn written(dir: &tempfile::TempDir) -> String {
    let path = dir.path().join("cgroup.freeze");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(path, "-").unwrap();
    text
}

fn eventually(holds: impl Fn() -> bool) {
    let until = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while !holds() {
        assert!(std::time::Instant::now() < until);
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

fn waits(longest_ns: i64) -> Waits {
    let mut waits = Waits::new();
    (0..FEWEST_WAITS).for_each(|_| waits.note(0));
    waits.note(longest_ns);
    waits
}

#[test]
fn a_group_is_frozen_only_where_it_can_be_thawed_before_its_budget() {
    let waits = waits(5 * MS);
    assert_eq!(waits.thaw_at_ns(100 * MS), 95 * MS - MARGIN_NS);
    assert!(waits.may_freeze(89 * MS, 100 * MS));
    assert!(!waits.may_freeze(90 * MS, 100 * MS));
}

#[test]
fn nothing_is_frozen_until_some_waits_are_known_and_a_long_one_is_forgotten() {
    let mut waits = Waits::new();
    for _ in 0..FEWEST_WAITS {
        assert!(!waits.may_freeze(0, FAR_NS));
        waits.note(FAR_NS);
    }
    for _ in 0..MOST_WAITS {
        assert!(!waits.may_freeze(0, FAR_NS));
        waits.note(1);
    }
    assert!(waits.may_freeze(0, FAR_NS));
}

#[test]
fn a_budget_that_ends_freezes_and_one_that_comes_thaws() {
    let (dir, group) = group();
    let mut waits = waits(1);
    assert_eq!(
        (group.act(&mut waits), written(&dir)),
        (None, "-".to_owned())
    );
    let until_ns = sys::now_ns() + FAR_NS;
    group.go_down(until_ns, false);
    let next_ns = group.act(&mut waits);
    assert_eq!(
        (next_ns, written(&dir)),
        (Some(waits.thaw_at_ns(until_ns)), "1".to_owned())
    );
    // Nothing more until then.
    assert!(group.act(&mut waits).is_some() && written(&dir) == "-");
    assert!(group.go_up());
    assert_eq!(
        (group.act(&mut waits), written(&dir)),
        (None, "0".to_owned())
    );
    assert!(!group.is_frozen());
}

#[test]
fn it_is_thawed_before_its_budget_comes_however_long_that_takes() {
    let (dir, group) = group();
    let mut waits = waits(1);
    group.go_down(sys::now_ns() + FAR_NS, false);
    group.act(&mut waits);
    assert_eq!(written(&dir), "1");
    waits.note(2 * FAR_NS);
    assert_eq!(
        (group.act(&mut waits), written(&dir)),
        (None, "0".to_owned())
    );
}

#[test]
fn where_it_is_not_frozen_the_wait_is_measured_once_a_budget() {
    let (dir, group) = group();
    let mut waits = waits(FAR_NS);
    group.go_down(sys::now_ns() + FAR_NS, false);
    let count = waits.count;
    for written_now in ["0", "-"] {
        assert_eq!(
            (group.act(&mut waits), written(&dir)),
            (None, written_now.to_owned())
        );
        assert_eq!(waits.count, count + 1);
    }
    // Unless it has to be.
    group.go_down(sys::now_ns() + FAR_NS, true);
    group.act(&mut waits);
    assert_eq!(written(&dir), "1");
}

#[test]
fn what_is_in_doubt_is_thawed_and_what_is_let_go_stays_so() {
    let (dir, group) = group();
    let mut waits = waits(1);
    group.doubt();
    assert_eq!(
        (group.act(&mut waits), written(&dir)),
        (None, "0".to_owned())
    );
    group.go_down(sys::now_ns() + FAR_NS, false);
    group.act(&mut waits);
    assert!(group.go_up());
    group.thaw().unwrap();
    assert_eq!(written(&dir), "0");
    assert_eq!(
        (group.act(&mut waits), written(&dir)),
        (None, "-".to_owned())
    );
}

#[test]
fn lists_are_opened_anew_once_they_are_asked_for() {
    let (dir, group) = group();
    let mut own = Box::new(Lists::open(group.dir()));
    assert!(!group.renew() && !group.take_lists(&mut own));
    group.ask_for_lists();
    std::fs::write(
        dir.path().join("cgroup.threads"),
        "7
8
",
    )
    .unwrap();
    assert!(group.renew() && !group.renew());
    assert!(group.take_lists(&mut own) && !group.take_lists(&mut own));
    let mut found = Vec::new();
    own.each_thread(group.dir(), &mut |tid| found.push(tid));
    assert_eq!(found, [7, 8]);
}

/// The thread of a keeper that stands by leaves groups alone, and ends when it is told to.
#[test]
fn the_thread_acts_once_it_is_at_work() {
    let (dir, group) = group();
    let group = Arc::new(group);
    let bell = Arc::new(sys::event_file().unwrap());
    let mut helper = Helper::new(bell).unwrap();
    let cpu = sched::get_affinity(0).unwrap()[0];
    if helper.start(cpu, 1).is_err() {
        eprintln!("not tested: this user has no real-time class");
        return;
    }
    helper.set(3, Some(Arc::clone(&group)));
    group.doubt();
    helper.ring();
    group.ask_for_lists();
    helper.ring();
    eventually(|| !group.is_stale.load(SeqCst));
    assert!(group.is_frozen() && written(&dir) == "-");
    helper.go_to_work();
    eventually(|| !group.is_frozen());
    helper.end();
    assert_eq!(written(&dir), "0");
}
