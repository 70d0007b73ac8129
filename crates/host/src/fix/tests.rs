//! Fixes on made-up trees: whole or not at all, noted before they are made, put back as they were.

use super::*;
use crate::testing::Tree;

const TIMERS: &str = "/proc/sys/kernel/timer_migration";
const PAGES: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
const BOOT: &str = "/proc/sys/kernel/random/boot_id";

fn tree() -> Tree {
    Tree::new()
        .file(TIMERS, "1\n")
        .file(BOOT, "a-boot\n")
        .file("/proc/irq/9/smp_affinity_list", "0-3\n")
        .file("/proc/irq/default_smp_affinity", "f\n")
        .file("/sys/kernel/mm/other", "")
}

fn timers(root: &Root) -> Fix {
    Fix::of("timer-migration").write(root, TIMERS, Form::Plain, "0")
}

/// To be written to a file that is open already.
fn stubborn(path: &str) -> Write {
    Write {
        path: path.to_owned(),
        form: Form::Plain,
        was: "x".to_owned(),
        set: "y".to_owned(),
    }
}

fn holds(root: &Root, path: &str) -> String {
    root.read(path).unwrap()
}

#[test]
fn what_is_changed_is_put_back_and_a_second_time_does_nothing() {
    let (tree, dir) = (tree(), tempfile::tempdir().unwrap());
    let (root, undo) = (tree.root(), dir.path().join("made/undo.json"));
    let fixes = [
        timers(&root),
        Fix::of("irq-affinity")
            .write(&root, "/proc/irq/9/smp_affinity_list", Form::Plain, "0-2")
            .write(&root, "/proc/irq/default_smp_affinity", Form::Mask, "7"),
    ];
    let applied = apply(&root, &fixes, &undo).unwrap();
    assert_eq!(applied.changed.len(), 3, "{applied:?}");
    assert!(applied.failed.is_empty() && applied.stayed.is_empty());
    assert_eq!(holds(&root, TIMERS), "0");
    assert_eq!(holds(&root, "/proc/irq/default_smp_affinity"), "7");
    // Nothing is open any more, and the file keeps the machine's first values.
    let again = apply(&root, &[timers(&root)], &undo).unwrap();
    assert!(again.changed.is_empty());
    let back = undo::put_back(&root, &undo).unwrap().unwrap();
    assert_eq!(back.put_back.len(), 3, "{back:?}");
    assert_eq!(holds(&root, TIMERS), "1");
    assert_eq!(holds(&root, "/proc/irq/9/smp_affinity_list"), "0-3");
    assert_eq!(holds(&root, "/proc/irq/default_smp_affinity"), "f");
    let twice = undo::put_back(&root, &undo).unwrap().unwrap();
    assert_eq!(twice, undo::PutBack::default());
    let nowhere = dir.path().join("none.json");
    assert_eq!(undo::put_back(&root, &nowhere).unwrap(), None);
}

#[test]
fn of_two_calls_the_first_value_is_put_back() {
    let (tree, dir) = (tree(), tempfile::tempdir().unwrap());
    let (root, undo) = (tree.root(), dir.path().join("undo.json"));
    let path = "/proc/irq/9/smp_affinity_list";
    for set in ["0-2", "0-1"] {
        let fix = Fix::of("irq-affinity").write(&root, path, Form::Plain, set);
        assert_eq!(apply(&root, &[fix], &undo).unwrap().changed.len(), 1);
    }
    undo::put_back(&root, &undo).unwrap().unwrap();
    assert_eq!(holds(&root, path), "0-3");
}

#[test]
fn what_somebody_else_has_changed_is_left_and_what_is_absent_is_put_back_later() {
    let (tree, dir) = (tree(), tempfile::tempdir().unwrap());
    let (root, undo) = (tree.root(), dir.path().join("undo.json"));
    let irq =
        Fix::of("irq-affinity").write(&root, "/proc/irq/9/smp_affinity_list", Form::Plain, "0-2");
    let default =
        Fix::of("irq-affinity").write(&root, "/proc/irq/default_smp_affinity", Form::Mask, "7");
    apply(&root, &[timers(&root), irq, default], &undo).unwrap();
    let tree = tree
        .file(TIMERS, "2\n")
        .file("/proc/irq/default_smp_affinity", "0000000f\n");
    std::fs::remove_file(root.path("/proc/irq/9/smp_affinity_list")).unwrap();
    let back = undo::put_back(&root, &undo).unwrap().unwrap();
    let whys: Vec<&str> = back.gone.iter().map(|gone| gone.why.as_str()).collect();
    assert_eq!(whys.len(), 1, "{whys:?}");
    assert!(
        whys.iter().any(|why| why.contains("now 2, neither 0")),
        "{whys:?}"
    );
    assert_eq!(back.already.len(), 1);
    assert!(back.put_back.is_empty());
    assert_eq!(holds(&tree.root(), TIMERS), "2");
    let absent = |back: &undo::PutBack| -> Vec<String> {
        let paths = back.absent.iter().map(|absent| absent.change.path.clone());
        paths.collect()
    };
    let irq = "/proc/irq/9/smp_affinity_list";
    assert_eq!(absent(&back), [irq]);
    let again = undo::put_back(&root, &undo).unwrap().unwrap();
    assert_eq!(absent(&again), [irq]);
    // A file that is there and cannot be read is no cpu that is offline.
    std::fs::create_dir(root.path(irq)).unwrap();
    let unreadable = undo::put_back(&root, &undo).unwrap().unwrap();
    assert_eq!((unreadable.failed.len(), unreadable.absent.len()), (1, 0));
    std::fs::remove_dir(root.path(irq)).unwrap();
    // As of a cpu that is online again.
    let tree = tree.file(irq, "0-2\n");
    let last = undo::put_back(&tree.root(), &undo).unwrap().unwrap();
    assert_eq!((last.put_back.len(), last.absent.len()), (1, 0), "{last:?}");
    assert_eq!(holds(&tree.root(), irq), "0-3");
}

#[test]
fn what_was_changed_before_the_last_start_is_gone() {
    let (tree, dir) = (tree(), tempfile::tempdir().unwrap());
    let undo = dir.path().join("undo.json");
    apply(&tree.root(), &[timers(&tree.root())], &undo).unwrap();
    let tree = tree.file(BOOT, "another\n").file(TIMERS, "0\n");
    let back = undo::put_back(&tree.root(), &undo).unwrap().unwrap();
    assert!(back.other_boot && back.put_back.is_empty());
    assert_eq!(holds(&tree.root(), TIMERS), "0");
    // The next fix begins anew.
    let tree = tree.file(TIMERS, "1\n");
    apply(&tree.root(), &[timers(&tree.root())], &undo).unwrap();
    let back = undo::put_back(&tree.root(), &undo).unwrap().unwrap();
    assert_eq!((back.put_back.len(), back.other_boot), (1, false));
}

#[test]
fn a_fix_is_whole_or_not_made_and_others_are() {
    let (tree, dir) = (tree(), tempfile::tempdir().unwrap());
    let (root, undo) = (tree.root(), dir.path().join("undo.json"));
    // A file that takes nothing.
    let irq = "/proc/irq/24/smp_affinity_list";
    std::fs::create_dir_all(root.path("/proc/irq/24")).unwrap();
    std::os::unix::fs::symlink("/dev/full", root.path(irq)).unwrap();
    let mut half =
        Fix::of("irq-affinity").write(&root, "/proc/irq/9/smp_affinity_list", Form::Plain, "0-2");
    half.writes.push(stubborn(irq));
    let applied = apply(&root, &[half.clone(), timers(&root)], &undo).unwrap();
    assert_eq!(holds(&root, "/proc/irq/9/smp_affinity_list"), "0-3");
    assert_eq!(applied.failed.len(), 2, "{applied:?}");
    assert_eq!(holds(&root, TIMERS), "0");
    // Where each counts for itself, the others are written.
    half.one_by_one = true;
    let applied = apply(&root, &[half], &undo).unwrap();
    assert_eq!(holds(&root, "/proc/irq/9/smp_affinity_list"), "0-2");
    assert_eq!((applied.changed.len(), applied.stayed.len()), (1, 1));
    let back = undo::put_back(&root, &undo).unwrap().unwrap();
    assert_eq!(back.put_back.len(), 2, "{back:?}");
}

#[test]
fn nothing_is_changed_that_cannot_be_noted() {
    let (tree, dir) = (tree(), tempfile::tempdir().unwrap());
    let root = tree.root();
    std::fs::write(dir.path().join("file"), "").unwrap();
    // In the one directory nothing can be, and in the other not the file that takes the place of the old one.
    std::fs::create_dir(dir.path().join("undo.part")).unwrap();
    for (undo, why) in [
        ("file/undo.json", "not a directory"),
        ("undo.json", "cannot be written (file exists)"),
    ] {
        let error = apply(&root, &[timers(&root)], &dir.path().join(undo)).unwrap_err();
        let said = error.to_string();
        assert!(said.contains(why), "{said}");
        assert_eq!(holds(&root, TIMERS), "1");
    }
}

#[test]
fn nothing_is_noted_where_others_could_change_it() {
    use std::os::unix::fs::PermissionsExt;
    let (tree, dir) = (tree(), tempfile::tempdir().unwrap());
    let (root, undo) = (tree.root(), dir.path().join("undo.json"));
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let error = apply(&root, &[timers(&root)], &undo).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("users other than root can change"),
        "{error}"
    );
    assert!(!undo.exists());
    assert_eq!(holds(&root, TIMERS), "1");
}

#[test]
fn an_undo_file_that_names_other_files_is_not_obeyed() {
    let (tree, dir) = (tree(), tempfile::tempdir().unwrap());
    let (root, undo) = (tree.root(), dir.path().join("undo.json"));
    apply(&root, &[timers(&root)], &undo).unwrap();
    let good = std::fs::read_to_string(&undo).unwrap();
    let of = |from: &str, to: &str| {
        assert!(good.contains(from), "{good}");
        std::fs::write(&undo, good.replace(from, to)).unwrap();
        undo::put_back(&root, &undo).unwrap_err().to_string()
    };
    for other in [
        "/etc/passwd",
        "/proc/irq/../sysrq-trigger",
        "/proc/irq/9/smp_affinity",
        "/proc/irq/9a/smp_affinity_list",
        "/proc/irq//smp_affinity_list",
        "/proc/sys/kernel/timer_migration/more",
        "/sys/devices/system/cpu/cpu1/online",
        "/sys/devices/system/cpu/cpu/cpufreq/scaling_governor",
        "/sys/devices/system/cpu/smt/control",
        "/sys/kernel/debug/sched/base_slice_ns",
    ] {
        let said = of(TIMERS, other);
        assert!(said.contains("which no fix changes"), "{said}");
    }
    assert!(of("\"was\": \"1\"", "\"was\": \"1\\n2\"").contains("no fix"));
    assert!(of("\"schema\": 1", "\"schema\": 2").contains("version 2"));
    assert!(of("{", "").contains("not an undo file"));
    assert_eq!(holds(&root, TIMERS), "0");
}

#[test]
fn what_cannot_be_read_is_left_and_told() {
    let tree = tree();
    let fix =
        Fix::of("transparent-huge-pages").write(&tree.root(), PAGES, Form::Brackets, "madvise");
    assert!(fix.writes.is_empty());
    assert!(fix.left[0].starts_with(PAGES), "{:?}", fix.left);
}

#[test]
fn what_lasts_is_written_for_each_place() {
    let tree = tree().file("/proc/cmdline", "quiet isolcpus=3 preempt=full\n");
    let root = tree.root();
    let boot = Fix::of("cpu-isolation")
        .parameter("isolcpus", "managed_irq,domain,3")
        .parameter("preempt", "full")
        .parameter("irqaffinity", "0-2");
    let mut done = timers(&root);
    done.writes[0].was = "0".to_owned();
    let program = Path::new("/opt/my tools/time%cell");
    let pieces = persist::pieces(&root, &[boot.clone(), done], &[], &[2, 3], program);
    let [line, sysctl, unit] = pieces.as_slice() else {
        panic!("{pieces:?}");
    };
    assert_eq!(line.text, "isolcpus=managed_irq,domain,3 irqaffinity=0-2\n");
    assert!(line.how.ends_with("it replaces isolcpus=3"), "{}", line.how);
    // Also a value that is set already: it would not be after the next start.
    assert!(
        sysctl.text.contains("kernel.timer_migration = 0\n"),
        "{}",
        sysctl.text
    );
    let start = "ExecStart=\"/opt/my tools/time%%cell\" doctor --fix --cpus 2-3\n";
    assert!(unit.text.contains(start), "{}", unit.text);
    // Also where one fix fails, it is stopped with --undo.
    assert!(unit.text.contains("SuccessExitStatus=1\n"), "{}", unit.text);
    let names: Vec<&str> = pieces.iter().map(|piece| piece.name).collect();
    assert_eq!(names, persist::NAMES);
    assert!(persist::pieces(&root, &[Fix::of("smt")], &[], &[3], program).is_empty());
    // Missions are started on a machine that is fixed.
    let service = include_str!("../../../../dist/timecell@.service");
    let after = service.lines().find(|line| line.starts_with("After="));
    assert!(after.unwrap().contains(persist::NAMES[2]), "{service}");
}

#[test]
fn what_an_earlier_call_has_changed_lasts_as_well() {
    const RUNTIME: &str = "/proc/sys/kernel/sched_rt_runtime_us";
    const CLOCK: &str = "/sys/devices/system/clocksource/clocksource0";
    let current = format!("{CLOCK}/current_clocksource");
    let tree = tree()
        .file(RUNTIME, "100000\n")
        .file("/proc/sys/kernel/sched_rt_period_us", "1000000\n")
        .file(&current, "hpet\n")
        .file(&format!("{CLOCK}/available_clocksource"), "tsc hpet\n")
        .file(PAGES, "[always] madvise never\n");
    let (root, dir) = (tree.root(), tempfile::tempdir().unwrap());
    let undo = dir.path().join("undo.json");
    let program = Path::new("timecell");
    let pieces = |fixes: &[Fix]| {
        let earlier = undo::noted(&root, &undo).changes;
        let pieces = persist::pieces(&root, fixes, &earlier, &[3], program);
        pieces
            .iter()
            .map(|piece| piece.text.clone())
            .collect::<Vec<_>>()
    };
    let fixes = crate::doctor::fixes_for(&root, &[3], &[]);
    let first = pieces(&fixes);
    assert!(first[0].contains("transparent_hugepage=madvise clocksource=tsc"));
    assert!(first[1].contains("kernel.sched_rt_runtime_us = 950000\n"));
    // In a made-up tree a file holds the written text, and no list.
    let fixes: Vec<Fix> = (fixes.into_iter())
        .filter(|fix| fix.id != "transparent-huge-pages")
        .collect();
    let applied = apply(&root, &fixes, &undo).unwrap();
    assert!(applied.failed.is_empty(), "{applied:?}");
    let tree = tree.file(PAGES, "always [madvise] never\n");
    let mut noted = undo::Undo::read_or_new(&root, &undo).unwrap();
    noted.note([Change {
        id: "transparent-huge-pages".to_owned(),
        path: PAGES.to_owned(),
        form: Form::Brackets,
        was: "always".to_owned(),
        set: "madvise".to_owned(),
        earlier: None,
    }]);
    noted.save(&undo).unwrap();
    let after = crate::doctor::fixes_for(&root, &[3], &[]);
    assert!(after.iter().all(|fix| fix.open().next().is_none()));
    let mut words: Vec<String> = pieces(&after)[0]
        .split_whitespace()
        .map(str::to_owned)
        .collect();
    words.sort();
    let mut expected: Vec<&str> = first[0].split_whitespace().collect();
    expected.sort_unstable();
    assert_eq!(words, expected);
    assert_eq!(pieces(&after)[1..], first[1..]);
    // Files that somebody has changed since are theirs.
    let tree = tree.file(&current, "acpi_pm\n").file(RUNTIME, "600000\n");
    let root = tree.root();
    let earlier = undo::noted(&root, &undo).changes;
    let pieces = persist::pieces(&root, &[Fix::of("clocksource")], &earlier, &[3], program);
    assert_eq!(pieces, []);
}

#[test]
fn a_value_that_the_kernel_makes_another_of_is_taken_back() {
    let (tree, dir) = (tree(), tempfile::tempdir().unwrap());
    let (root, undo) = (tree.root(), dir.path().join("undo.json"));
    let irq = "/proc/irq/24/smp_affinity_list";
    // The name of a thread takes anything and keeps 15 bytes of it.
    std::fs::create_dir_all(root.path("/proc/irq/24")).unwrap();
    std::os::unix::fs::symlink("/proc/thread-self/comm", root.path(irq)).unwrap();
    let first = holds(&root, irq);
    let mut fix = Fix::of("irq-affinity").write(&root, irq, Form::Plain, "longer than a name is");
    fix.one_by_one = true;
    let applied = apply(&root, &[fix.clone()], &undo).unwrap();
    assert_eq!(holds(&root, irq), first);
    assert_eq!(
        (applied.stayed.len(), applied.changed.len()),
        (1, 0),
        "{applied:?}"
    );
    fix.one_by_one = false;
    let applied = apply(&root, &[fix.clone()], &undo).unwrap();
    assert_eq!(holds(&root, irq), first);
    assert_eq!(
        (applied.failed.len(), applied.changed.len()),
        (1, 0),
        "{applied:?}"
    );

    // Where it cannot be taken back either, it is changed, and the undo file says so.
    fix.writes[0].was = "as long as that is this".to_owned();
    for one_by_one in [true, false] {
        fix.one_by_one = one_by_one;
        let applied = apply(&root, &[fix.clone()], &undo).unwrap();
        assert_eq!(applied.failed.len(), 1, "{applied:?}");
        assert_eq!(applied.changed[0].set, "as long as that", "{applied:?}");
        assert_eq!(undo::noted(&root, &undo).changes, applied.changed);
    }
    // It is tried again for as long as nobody else has changed it.
    for _ in 0..2 {
        let back = undo::put_back(&root, &undo).unwrap().unwrap();
        assert_eq!((back.failed.len(), back.gone.len()), (1, 0), "{back:?}");
    }
    std::fs::write(root.path(irq), &first).unwrap();
}

#[test]
fn whoever_is_killed_before_a_second_change_leaves_what_can_be_put_back() {
    let (tree, dir) = (tree(), tempfile::tempdir().unwrap());
    let (root, undo) = (tree.root(), dir.path().join("undo.json"));
    let path = "/proc/irq/9/smp_affinity_list";
    let to = |set: &str| Fix::of("irq-affinity").write(&root, path, Form::Plain, set);
    apply(&root, &[to("0-2")], &undo).unwrap();
    // The file is as `apply` saves it before it writes; twice, since the next one can be killed as well.
    for set in ["0-1", "0"] {
        let mut kept = undo::Undo::read_or_new(&root, &undo).unwrap();
        kept.expect(Change::open_of(&to(set)));
        kept.save(&undo).unwrap();
    }
    let back = undo::put_back(&root, &undo).unwrap().unwrap();
    assert_eq!(back.put_back.len(), 1, "{back:?}");
    assert_eq!(holds(&root, path), "0-3");
    // Once it is made, nothing else counts.
    for set in ["0-2", "0-1"] {
        apply(&root, &[to(set)], &undo).unwrap();
    }
    assert_eq!(undo::noted(&root, &undo).changes[0].earlier, None);
    let tree = tree.file(path, "0-2\n");
    let back = undo::put_back(&tree.root(), &undo).unwrap().unwrap();
    assert_eq!(back.gone.len(), 1, "{back:?}");
}

#[test]
fn files_that_stay_are_known_until_they_do_not_or_all_is_put_back() {
    let (tree, dir) = (tree(), tempfile::tempdir().unwrap());
    let (root, undo) = (tree.root(), dir.path().join("undo.json"));
    let irq = "/proc/irq/24/smp_affinity_list";
    std::fs::create_dir_all(root.path("/proc/irq/24")).unwrap();
    std::os::unix::fs::symlink("/dev/full", root.path(irq)).unwrap();
    let mut fix = Fix::of("irq-affinity");
    fix.one_by_one = true;
    fix.writes.push(stubborn(irq));
    let stayed = || undo::noted(&root, &undo).stayed;
    apply(&root, &[fix.clone()], &undo).unwrap();
    apply(&root, &[fix.clone(), timers(&root)], &undo).unwrap();
    assert_eq!(stayed(), [irq]);
    let of_another_boot = Tree::new().file(BOOT, "another\n");
    assert_eq!(
        undo::noted(&of_another_boot.root(), &undo),
        undo::Noted::default()
    );
    std::fs::remove_file(root.path(irq)).unwrap();
    std::fs::write(root.path(irq), "x").unwrap();
    apply(&root, &[fix.clone()], &undo).unwrap();
    assert_eq!(stayed(), [""; 0]);
    std::fs::remove_file(root.path(irq)).unwrap();
    std::os::unix::fs::symlink("/dev/full", root.path(irq)).unwrap();
    apply(&root, &[fix], &undo).unwrap();
    undo::put_back(&root, &undo).unwrap().unwrap();
    assert_eq!(stayed(), [""; 0]);
}

#[test]
fn every_file_that_a_fix_writes_may_stand_in_the_undo_file() {
    let cpu = "/sys/devices/system/cpu";
    let debug = "/sys/kernel/debug/sched";
    let tree = tree()
        .file("/proc/sys/kernel/osrelease", "6.12.0\n")
        .file("/proc/sys/kernel/version", "#1 SMP PREEMPT_DYNAMIC\n")
        .file("/proc/sys/kernel/sched_rt_runtime_us", "0\n")
        .file("/proc/sys/kernel/sched_rt_period_us", "1000000\n")
        .file(&format!("{cpu}/online"), "0-12\n")
        .file(
            &format!("{cpu}/cpu12/cpufreq/scaling_governor"),
            "powersave\n",
        )
        .file(&format!("{cpu}/cpu12/cpuidle/state3/latency"), "100\n")
        .file(&format!("{cpu}/cpu12/cpuidle/state3/disable"), "0\n")
        .file(&format!("{debug}/fair_server/cpu12/runtime"), "200000000\n")
        .file(&format!("{debug}/fair_server/cpu12/period"), "1000000000\n")
        .file(&format!("{debug}/features"), "NO_HRTICK NO_HRTICK_DL\n")
        .file(&format!("{debug}/preempt"), "none (voluntary) full\n")
        .file("/proc/irq/9/smp_affinity_list", "0-12\n")
        .file("/proc/irq/default_smp_affinity", "1fff\n")
        .file(PAGES, "[always] madvise never\n")
        .file("/sys/module/rcutree/parameters/rcu_resched_ns", "3000000\n")
        .file(
            "/sys/devices/system/clocksource/clocksource0/current_clocksource",
            "hpet\n",
        )
        .file(
            "/sys/devices/system/clocksource/clocksource0/available_clocksource",
            "tsc\n",
        );
    let fixes = crate::doctor::fixes_for(&tree.root(), &[12], &[]);
    let all: Vec<Change> = fixes.iter().flat_map(Change::open_of).collect();
    assert_eq!(all.len(), undo::FILES.len(), "{all:#?}");
    for change in all {
        assert!(change.is_ours(), "{change:?}");
    }
}
