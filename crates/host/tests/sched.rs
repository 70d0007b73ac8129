//! Scheduling classes on a real kernel, with real children. Tests that need root say so when they
//! are skipped.

use host::sched::{self, Class, SchedError};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::Mutex;

/// Deadline bandwidth belongs to the whole machine, so tests that use it take turns.
static TURN: Mutex<()> = Mutex::new(());

/// A child that sleeps; ended and reaped when dropped.
struct Sleeper(Child);

impl Sleeper {
    fn start() -> Self {
        Self(Command::new("sleep").arg("30").spawn().unwrap())
    }
    fn pid(&self) -> i32 {
        self.0.id() as i32
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Whether this process is the machine's root; says that the test is skipped if not.
fn need_root(name: &str) -> bool {
    let privileged = host::caps::effective()
        .is_ok_and(|caps| caps.has("CAP_SYS_NICE") && caps.has("CAP_SETUID"))
        && !host::caps::in_user_namespace();
    if !privileged {
        eprintln!("skipped: {name}: it needs root");
    }
    privileged
}

/// Set in the environment of the child that plays the ordinary user.
const CHILD: &str = "TIMECELL_TEST_ORDINARY_USER";

#[test]
fn root_an_ordinary_user_is_told_which_privilege_is_missing() {
    let name = "root_an_ordinary_user_is_told_which_privilege_is_missing";
    if std::env::var_os(CHILD).is_some() {
        let result = sched::set_class(0, &Class::Fifo { priority: 1 });
        match result {
            Err(SchedError::NoPrivilege { why, .. }) => {
                assert!(why.contains("lacks CAP_SYS_NICE"), "{why}");
                assert!(why.contains("RLIMIT_RTPRIO) is 0"), "{why}");
            }
            other => panic!("{other:?}"),
        }
        return;
    }
    if !need_root(name) {
        return;
    }
    if host::rtgroup::own_group(0).is_ok_and(|own| !own.has_budget()) {
        eprintln!("skipped: {name}: the own group has no real-time budget");
        return;
    }
    if host::caps::limits().unwrap().rtprio.soft != Some(0) {
        eprintln!("skipped: {name}: real-time priorities are allowed to everyone here");
        return;
    }
    // A copy in a place where any user may run it.
    let directory = tempfile::tempdir().unwrap();
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(directory.path(), open.clone()).unwrap();
    let copy = directory.path().join("child");
    std::fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
    std::fs::set_permissions(&copy, open).unwrap();
    let output = Command::new(&copy)
        .args(["--exact", name])
        .env(CHILD, "1")
        .current_dir("/")
        .gid(65_534)
        .uid(65_534)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("1 passed"), "{said}");
}

#[test]
fn root_a_deadline_needs_the_whole_root_domain() {
    let name = "root_a_deadline_needs_the_whole_root_domain";
    if !need_root(name) {
        return;
    }
    let _turn = TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let child = Sleeper::start();
    let all = sched::get_affinity(child.pid()).unwrap();
    if all.len() < 2 {
        eprintln!("skipped: {name}: there is only one cpu");
        return;
    }
    let deadline = Class::Deadline {
        runtime_ns: 1_000_000,
        deadline_ns: 50_000_000,
        period_ns: 100_000_000,
    };
    sched::set_affinity(child.pid(), &all[..1]).unwrap();
    assert_eq!(
        sched::set_class(child.pid(), &deadline),
        Err(SchedError::AffinityTooNarrow {
            class: deadline.clone(),
            pid: child.pid()
        })
    );
    sched::set_affinity(child.pid(), &all).unwrap();
    sched::set_class_reset_on_fork(child.pid(), &deadline).unwrap();
    assert_eq!(sched::get_class(child.pid()).unwrap(), deadline);
    sched::set_class(child.pid(), &Class::Other).unwrap();
}

#[test]
fn root_every_class_is_read_back_as_it_was_set() {
    let name = "root_every_class_is_read_back_as_it_was_set";
    if !need_root(name) {
        return;
    }
    let child = Sleeper::start();
    for class in [
        Class::Fifo { priority: 1 },
        Class::RoundRobin { priority: 99 },
        Class::Batch,
        Class::Idle,
        Class::Other,
    ] {
        match sched::set_class(child.pid(), &class) {
            Err(error @ SchedError::NoRtBudget { .. }) => {
                eprintln!("skipped: {name}: {error}");
                return;
            }
            result => result.unwrap(),
        }
        assert_eq!(sched::get_class(child.pid()).unwrap(), class);
    }
}

#[test]
fn root_over_the_bandwidth_a_deadline_is_refused() {
    if !need_root("root_over_the_bandwidth_a_deadline_is_refused") {
        return;
    }
    let _turn = TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let child = Sleeper::start();
    let deadline = |runtime_ns: u64| Class::Deadline {
        runtime_ns,
        deadline_ns: 100_000_000,
        period_ns: 100_000_000,
    };
    match sched::set_class(child.pid(), &deadline(1_000_000)) {
        Ok(()) => assert_eq!(sched::get_class(child.pid()).unwrap(), deadline(1_000_000)),
        Err(error) => {
            eprintln!("skipped: root_over_the_bandwidth_a_deadline_is_refused: {error}");
            return;
        }
    }
    // Hungry children, until the kernel says that the cpus are full.
    let mut hungry = Vec::new();
    let refused = (0..10_000).find_map(|_| {
        let next = Sleeper::start();
        let result = sched::set_class(next.pid(), &deadline(90_000_000));
        hungry.push(next);
        result.err()
    });
    assert!(
        matches!(refused, Some(SchedError::OverBandwidth { .. })),
        "{refused:?}"
    );
}
