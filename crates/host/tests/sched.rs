//! Scheduling classes on a real kernel, with real children.

mod needs;

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use timecell_host::sched::{self, Class, SchedError, bandwidth};

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

/// A test and its need: the reason why it cannot run here, if it cannot.
type Test = (&'static str, fn(), fn() -> Option<&'static str>);

const TESTS: [Test; 7] = [
    (
        "root_an_ordinary_user_is_told_which_privilege_is_missing",
        root_an_ordinary_user_is_told_which_privilege_is_missing,
        || {
            if std::env::var_os(CHILD).is_some() {
                return None;
            }
            let budget = timecell_host::rtgroup::own_group(0).is_ok_and(|own| !own.has_budget());
            let allowed =
                timecell_host::caps::limits().is_ok_and(|limits| limits.rtprio.soft != Some(0));
            root()
                .or(budget.then_some("the own group has no real-time budget"))
                .or(allowed.then_some("real-time priorities are allowed to everyone here"))
        },
    ),
    (
        "root_a_deadline_needs_the_whole_root_domain",
        root_a_deadline_needs_the_whole_root_domain,
        || {
            root().or(
                (timecell_host::cpus::online().map_or(1, |cpus| cpus.len()) < 2)
                    .then_some("there is only one cpu"),
            )
        },
    ),
    (
        "root_every_class_is_read_back_as_it_was_set",
        root_every_class_is_read_back_as_it_was_set,
        || {
            let empty = timecell_host::rtgroup::own_group(0).is_ok_and(|own| !own.has_budget());
            root().or(empty.then_some("the own group has no real-time budget"))
        },
    ),
    (
        "root_over_the_bandwidth_a_deadline_is_refused",
        root_over_the_bandwidth_a_deadline_is_refused,
        || root().or(deadline_here()),
    ),
    (
        "root_what_a_deadline_thread_held_is_free_at_once_when_it_is_released",
        root_what_a_deadline_thread_held_is_free_at_once_when_it_is_released,
        || root().or(deadline_here()),
    ),
    (
        "root_what_a_thread_held_that_has_ended_is_waited_for",
        root_what_a_thread_held_that_has_ended_is_waited_for,
        || {
            root().or(deadline_here()).or(bandwidth::recount()
                .err()
                .map(|_| "there are no cpusets of cgroup version 1"))
        },
    ),
    (
        "root_where_the_kernel_has_lost_count_it_is_made_to_count_anew",
        root_where_the_kernel_has_lost_count_it_is_made_to_count_anew,
        || {
            root().or(deadline_here()).or(bandwidth::recount()
                .err()
                .map(|_| "there are no cpusets of cgroup version 1"))
        },
    ),
];

/// Tests whose need is unmet are counted as ignored, with the need in their names. Deadline bandwidth belongs to the
/// whole machine, so they take turns.
fn main() {
    let trials = TESTS.map(|(name, run, unmet)| needs::trial(name, unmet(), run));
    needs::run(trials.into(), needs::Threads::One);
}

/// Why SCHED_DEADLINE is not to be had, if it is not: some kernels are built without it.
fn deadline_here() -> Option<&'static str> {
    let child = Sleeper::start();
    let least = Class::Deadline {
        runtime_ns: 1_000_000,
        deadline_ns: 100_000_000,
        period_ns: 100_000_000,
    };
    let refused = sched::set_class(child.pid(), &least).is_err();
    refused.then_some("SCHED_DEADLINE is refused here")
}

/// Why this process is not the machine's root, if it is not.
fn root() -> Option<&'static str> {
    let privileged = timecell_host::caps::effective()
        .is_ok_and(|caps| caps.has("CAP_SYS_NICE") && caps.has("CAP_SETUID"))
        && !timecell_host::caps::in_user_namespace();
    (!privileged).then_some("needs root")
}

/// Set in the environment of the child that plays the ordinary user.
const CHILD: &str = "TIMECELL_TEST_ORDINARY_USER";

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

fn root_a_deadline_needs_the_whole_root_domain() {
    let child = Sleeper::start();
    let all = sched::get_affinity(child.pid()).unwrap();
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

fn root_every_class_is_read_back_as_it_was_set() {
    let child = Sleeper::start();
    for class in [
        Class::Fifo { priority: 1 },
        Class::RoundRobin { priority: 99 },
        Class::Batch,
        Class::Idle,
        Class::Other,
    ] {
        sched::set_class(child.pid(), &class).unwrap();
        assert_eq!(sched::get_class(child.pid()).unwrap(), class);
    }
}

fn root_over_the_bandwidth_a_deadline_is_refused() {
    let child = Sleeper::start();
    let deadline = |runtime_ns: u64| Class::Deadline {
        runtime_ns,
        deadline_ns: 100_000_000,
        period_ns: 100_000_000,
    };
    sched::set_class(child.pid(), &deadline(1_000_000)).unwrap();
    assert_eq!(sched::get_class(child.pid()).unwrap(), deadline(1_000_000));
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

fn root_what_a_deadline_thread_held_is_free_at_once_when_it_is_released() {
    let cpus = sched::get_affinity(0).unwrap();
    let child = Sleeper::start();
    // Waits until the threads of the tests before are not counted any more.
    let held = Class::Deadline {
        runtime_ns: 100_000_000,
        deadline_ns: 1_000_000_000,
        period_ns: 1_000_000_000,
    };
    bandwidth::set_class_when_free(child.pid(), &held, bandwidth::GIVEN_BACK).unwrap();
    let others_us = bandwidth::bandwidth_held_us() - 100_000;
    std::thread::sleep(std::time::Duration::from_millis(200));
    let during_us = bandwidth::free_bandwidth_us(&cpus).unwrap();
    bandwidth::release(child.pid()).unwrap();
    assert_eq!(sched::get_class(child.pid()).unwrap(), Class::Other);
    let after_us = bandwidth::free_bandwidth_us(&cpus).unwrap();
    // Bandwidth is found to 10 us, and counted by the kernel to 1.
    assert!(
        after_us.abs_diff(during_us + 100_000) <= 50,
        "{during_us} us were free beside 100,000 and {others_us} of others, then {after_us}"
    );
    let fifo = Class::Fifo { priority: 50 };
    if sched::set_class(child.pid(), &fifo).is_ok() {
        bandwidth::release(child.pid()).unwrap();
        assert_eq!(sched::get_class(child.pid()).unwrap(), fifo);
        bandwidth::make_ordinary(child.pid()).unwrap();
        assert_eq!(sched::get_class(child.pid()).unwrap(), Class::Other);
    }
}

/// The kernel counts it until the runtime that it has used would have been due.
fn root_what_a_thread_held_that_has_ended_is_waited_for() {
    let cpus = sched::get_affinity(0).unwrap();
    let of = |share_us: u64| Class::Deadline {
        runtime_ns: share_us * 1_000,
        deadline_ns: 1_000_000_000,
        period_ns: 1_000_000_000,
    };
    let free_us = || bandwidth::free_bandwidth_us(&cpus).unwrap();
    let mut others = Vec::new();
    // One thread could then take the rest alone.
    while free_us() > 900_000 {
        let other = Sleeper::start();
        bandwidth::set_class_when_free(other.pid(), &of(450_000), bandwidth::GIVEN_BACK).unwrap();
        others.push(other);
    }
    let left_us = free_us();
    assert!(left_us > 300_000, "{left_us} us are left");
    let was_refused = (0..5).any(|_| {
        let spins = std::thread::spawn(move || {
            bandwidth::set_class_when_free(0, &of(left_us / 2), bandwidth::GIVEN_BACK).unwrap();
            let began = std::time::Instant::now();
            while began.elapsed() < std::time::Duration::from_millis(100) {}
        });
        spins.join().unwrap();
        let asked = of(left_us * 4 / 5);
        let (_asker, was_refused) = bandwidth::Asker::new(move || {
            let at_once = sched::set_class(0, &asked);
            if at_once.is_err() {
                bandwidth::set_class_when_free(0, &asked, bandwidth::GIVEN_BACK).unwrap();
            }
            matches!(at_once, Err(SchedError::OverBandwidth { .. }))
        })
        .unwrap();
        was_refused
    });
    assert!(was_refused, "nothing was given back late");
    for other in &others {
        bandwidth::release(other.pid()).unwrap();
    }
}

fn root_where_the_kernel_has_lost_count_it_is_made_to_count_anew() {
    let most = Class::Deadline {
        runtime_ns: 450_000_000,
        deadline_ns: 500_000_000,
        period_ns: 500_000_000,
    };
    // One that has used most of its runtime is counted until its period is over; a change of cpusets forgets it before.
    std::thread::spawn(move || {
        bandwidth::set_class_when_free(0, &most, bandwidth::GIVEN_BACK).unwrap();
        let began = std::time::Instant::now();
        while began.elapsed() < std::time::Duration::from_millis(300) {}
    })
    .join()
    .unwrap();
    bandwidth::recount().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(600));
    let little = || Class::Deadline {
        runtime_ns: 10_000_000,
        deadline_ns: 100_000_000,
        period_ns: 100_000_000,
    };
    // Some kernels do not lose it; then this shows that a recount does no harm.
    let lost = std::thread::spawn(move || sched::set_class(0, &little())).join();
    println!("the count was lost: {}", lost.unwrap().is_err());
    std::thread::spawn(move || {
        bandwidth::set_class_when_free(0, &little(), bandwidth::GIVEN_BACK).unwrap();
    })
    .join()
    .unwrap();
}
