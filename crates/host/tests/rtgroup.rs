//! Real-time groups on a real kernel, with real children. Each test needs root and the v1 cpu
//! controller with RT_GROUP_SCHED, and says so when it is skipped.

mod needs;

use std::process::{Child, Command};
use timecell_host::root::Root;
use timecell_host::rtgroup::{self, RtGroup, RtGroupError};
use timecell_host::sched::{self, Class, SchedError};

/// Tests whose need is unmet are counted as ignored, with the need in their names. They share one machine-wide
/// budget, so they take turns.
fn main() {
    let tests: [(&str, fn()); 7] = [
        (
            "root_a_child_gets_fifo_in_a_group_and_leaves_no_group",
            root_a_child_gets_fifo_in_a_group_and_leaves_no_group,
        ),
        (
            "root_groups_follow_one_another_without_refusal",
            root_groups_follow_one_another_without_refusal,
        ),
        (
            "root_too_much_is_refused_with_what_is_free",
            root_too_much_is_refused_with_what_is_free,
        ),
        (
            "root_ancestors_are_seeded_and_removed",
            root_ancestors_are_seeded_and_removed,
        ),
        (
            "root_fifo_in_a_group_without_budget_names_the_group",
            root_fifo_in_a_group_without_budget_names_the_group,
        ),
        (
            "root_a_group_with_a_process_is_not_removed_but_reported",
            root_a_group_with_a_process_is_not_removed_but_reported,
        ),
        (
            "root_all_that_is_called_free_can_be_had",
            root_all_that_is_called_free_can_be_had,
        ),
    ];
    let unmet = unmet();
    let trials = tests.map(|(name, run)| needs::trial(name, unmet.as_deref(), run));
    needs::run(trials.into(), needs::Threads::One);
}

/// Why groups cannot be made here.
fn unmet() -> Option<String> {
    let top = match rtgroup::detect() {
        Err(error) => return Some(error.to_string()),
        Ok(top) => top,
    };
    let opened = std::fs::OpenOptions::new()
        .write(true)
        .open(top.join("cgroup.procs"));
    if let Err(error) = opened {
        return Some(format!(
            "groups cannot be made in {}: {error}",
            top.display()
        ));
    }
    match rtgroup::largest_free_runtime() {
        Ok(free_us) if free_us >= 200_000 => None,
        Ok(free_us) => Some(format!("only {free_us} us per 1,000,000 us are free")),
        Err(error) => Some(error.to_string()),
    }
}

fn name(of: &str) -> String {
    format!("timecell-test-{}-{of}", std::process::id())
}

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

fn root_a_child_gets_fifo_in_a_group_and_leaves_no_group() {
    let group = RtGroup::create(&name("fifo"), 10_000, 100_000).unwrap();
    let top = rtgroup::budget_of(&Root::live(), &rtgroup::detect().unwrap()).unwrap();
    assert!(rtgroup::largest_free_runtime().unwrap() <= top.per_second_us() - 100_000);

    let child = Sleeper::start();
    group.add(child.pid()).unwrap();
    assert_eq!(group.processes(), [child.pid()]);
    let own = rtgroup::own_group(child.pid()).unwrap();
    assert_eq!(own.path, group.path());
    assert_eq!(own.budget.runtime_us, 10_000);
    let fifo = Class::Fifo { priority: 10 };
    sched::set_class(child.pid(), &fifo).unwrap();
    assert_eq!(sched::get_class(child.pid()).unwrap(), fifo);

    drop(child);
    let path = group.path().to_owned();
    group.remove().unwrap();
    assert!(!path.exists());
}

fn root_groups_follow_one_another_without_refusal() {
    // Each takes more than half of the free runtime, so an echo of the one before would refuse it.
    let most = rtgroup::largest_free_runtime().unwrap() * 3 / 4;
    for _ in 0..10 {
        let group = RtGroup::create(&name("again"), most, 1_000_000).unwrap();
        let child = Sleeper::start();
        group.add(child.pid()).unwrap();
        sched::set_class(child.pid(), &Class::Fifo { priority: 1 }).unwrap();
        drop(child);
        group.remove().unwrap();
    }
}

fn root_too_much_is_refused_with_what_is_free() {
    let group_name = name("much");
    match RtGroup::create(&group_name, 1_000_000, 1_000_000) {
        Err(RtGroupError::AncestorRefused {
            ancestor, free_us, ..
        }) => {
            assert_eq!(ancestor, rtgroup::detect().unwrap().display().to_string());
            // Others on the machine may hold or return some at the same time.
            assert!(free_us < 1_000_000);
        }
        other => panic!("{other:?}"),
    }
    let left = rtgroup::detect().unwrap().join(group_name);
    assert!(!left.exists(), "a refused group was left behind");
}

fn root_ancestors_are_seeded_and_removed() {
    let top = name("nest");
    let group = RtGroup::create(&format!("{top}/cell"), 20_000, 200_000).unwrap();
    let ancestor = rtgroup::detect().unwrap().join(&top);
    assert!(ancestor.exists());
    // The ancestor is full: a second cell in it is refused by the ancestor, not by the root.
    match RtGroup::create(&format!("{top}/other"), 20_000, 200_000) {
        Err(RtGroupError::AncestorRefused {
            ancestor: refused,
            free_us: 0,
            ..
        }) => assert_eq!(refused, ancestor.display().to_string()),
        other => panic!("{other:?}"),
    }
    drop(group);
    assert!(!ancestor.exists());
}

fn root_fifo_in_a_group_without_budget_names_the_group() {
    let path = rtgroup::detect().unwrap().join(name("empty"));
    std::fs::create_dir(&path).unwrap();
    let child = Sleeper::start();
    std::fs::write(path.join("cgroup.procs"), child.pid().to_string()).unwrap();
    let result = sched::set_class(child.pid(), &Class::Fifo { priority: 1 });
    drop(child);
    rtgroup::remove_group(&path).unwrap();
    match result {
        Err(SchedError::NoRtBudget { group, .. }) => {
            assert_eq!(group, path.display().to_string());
        }
        other => panic!("{other:?}"),
    }
}

fn root_a_group_with_a_process_is_not_removed_but_reported() {
    let group = RtGroup::create(&name("busy"), 10_000, 100_000).unwrap();
    let child = Sleeper::start();
    group.add(child.pid()).unwrap();
    let path = group.path().to_owned();
    let refused = group.remove();
    drop(child);
    rtgroup::remove_group(&path).unwrap();
    assert!(
        matches!(&refused, Err(RtGroupError::TasksRemain { .. })),
        "{refused:?}"
    );
}

fn root_all_that_is_called_free_can_be_had() {
    // 3,333 us every 10,007 us is a share that both the kernel and we have to round.
    let odd = RtGroup::create(&name("odd"), 3_333, 10_007).unwrap();
    for _ in 0..5 {
        let free = rtgroup::largest_free_runtime().unwrap();
        match RtGroup::create(&name("all"), free, 1_000_000) {
            Ok(all) => {
                assert_eq!(all.budget().per_second_us(), free);
                all.remove().unwrap();
                odd.remove().unwrap();
                return;
            }
            // Somebody else took some in between.
            Err(RtGroupError::AncestorRefused { free_us, .. }) if free_us < free => {}
            Err(error) => panic!("{error}"),
        }
    }
    panic!("others took budgets five times in between");
}
