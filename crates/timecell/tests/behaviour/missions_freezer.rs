//! Missions whose cells are held by the freezer.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use freezer::page::{Page, memory};
use host::sched::{Class, get_class, set_affinity, set_class};
use supervise::names;

use crate::control::{SLEEPS, ask};
use crate::missions::{Up, mission, name, nothing_is_left, pid_of, runs, shell};
use crate::missions_assumptions::Ends;
use crate::missions_health::critical;
use crate::missions_reaction::shared;
use crate::support::{Need, begun, binary, eventually, say};

const NEEDS: &[Need] = &[
    Need::Root,
    Need::RealTime,
    Need::Freezer,
    Need::Program("busybox"),
];
/// A cell that is shed to best effort gets the cpu time that other tests leave, and stays shed until jobs come normally again.
const ALONE: &[Need] = &[
    Need::Root,
    Need::RealTime,
    Need::Freezer,
    Need::Program("busybox"),
    Need::Alone,
];

/// A tenth of cpu 1, which every machine with two cpus has.
const RESERVED: &str = "cpus = [1]\nreservation = { budget = \"5ms\", period = \"50ms\" }";
const BUSY: &str = "while :; do :; done & while :; do :; done";

/// The directory of the processes that hold the mission's cells.
fn place(dir: &Path) -> PathBuf {
    memory().join(names::freezer_of(&name(dir)))
}

/// The cgroup of a held cell.
fn group(dir: &Path, cell: &str) -> PathBuf {
    let top = freezer::hold::top(&host::root::Root::live()).unwrap();
    top.join(names::cell_id(&name(dir), cell))
}

fn used(group: &Path) -> Duration {
    let text = fs::read_to_string(group.join("cpu.stat")).unwrap();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("usage_usec "));
    Duration::from_micros(line.unwrap().parse().unwrap())
}

/// A cell that always wants the cpu and has a tenth of it gets at most twice that, and at least a third of it, beside all else that the machine does.
/// Ordinary work beside it takes the time that it would run beyond that in class IDLE.
#[track_caller]
fn is_held(dir: &Path, cell: &str) {
    let mut beside = Command::new("taskset");
    let _beside = Ends(
        beside
            .args(["-c", "1", "sh", "-c", "while :; do :; done"])
            .spawn()
            .unwrap(),
    );
    let group = group(dir, cell);
    let (began, before) = (Instant::now(), used(&group));
    std::thread::sleep(Duration::from_secs(1));
    let (used, lasted) = (used(&group) - before, began.elapsed());
    assert!(used * 5 < lasted, "{used:?} of {lasted:?}");
    assert!(used * 30 > lasted, "{used:?} of {lasted:?}");
}

fn holders(dir: &Path) -> Page {
    Page::open(&place(dir)).unwrap().unwrap()
}

fn kill_holders(dir: &Path) {
    let page = holders(dir);
    for pid in [page.heir(), page.watcher(), page.keeper()] {
        if pid > 1 {
            // SAFETY: no memory is involved.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
    }
}

/// Children of a process that have ended and have not been waited for.
fn zombies(pid: u32) -> usize {
    let children = format!("/proc/{pid}/task/{pid}/children");
    let children = fs::read_to_string(children).unwrap();
    let state = |child: &str| fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
    (children.split_whitespace())
        .filter(|child| {
            state(child)
                .rsplit_once(") ")
                .is_some_and(|(_, rest)| rest.starts_with('Z'))
        })
        .count()
}

/// Asserts that no process is left that holds anything of the mission.
#[track_caller]
fn nobody_is_left(dir: &Path) {
    nothing_is_left(dir);
    assert!(!place(dir).exists(), "{}", place(dir).display());
}

#[case(..NEEDS)]
fn all_threads_of_a_cell_together_get_its_budget(dir: &Path) {
    let cells = shell("busy", BUSY, RESERVED);
    mission(dir, &format!("enforcer = \"freezer\"\n{cells}"));
    let mut up = Up::start(dir);
    let line = up.until("busy: runs (pid");
    for part in ["5 ms of cpu 1 in every 50 ms", "the freezer of /"] {
        assert!(line.contains(part), "{part}: {line}");
    }
    // While its budget is used up it has another class.
    has_its_class_again(|| get_class(pid_of(&line)).into_iter().collect());
    let processes = || {
        let group = group(dir, "busy").join("cell/cgroup.procs");
        fs::read_to_string(group).map_or(0, |text| text.lines().count())
    };
    eventually("both loops run", || processes() == 2);
    is_held(dir, "busy");
    // The admission of others includes the processes that hold it, but does not list their threads.
    let page = holders(dir);
    let other = tempfile::tempdir().unwrap();
    mission(other.path(), &shell("other", BUSY, RESERVED));
    let said = say(other.path(), &["admit", "mission.toml"]).ends_with(0);
    for pid in [page.keeper(), page.watcher(), page.heir()] {
        let told = format!("of process {pid} ");
        assert!(
            pid > 1 && !said.out.replace('\n', " ").contains(&told),
            "{}",
            said.out
        );
    }
    up.end();
    nobody_is_left(dir);
}

// While nothing holds it for a moment, its cell takes all of a cpu from those of other tests.
#[case(Root, RealTime, Freezer, Program("busybox"), Alone)]
fn a_budget_outlives_whoever_is_killed(dir: &Path) {
    let cells = shell("busy", BUSY, RESERVED);
    mission(dir, &format!("enforcer = \"freezer\"\n{cells}"));
    let mut up = Up::start(dir);
    let pid = pid_of(&up.until("busy: runs (pid"));
    up.kill();
    assert!(runs(pid));
    is_held(dir, "busy");
    let mut up = Up::start(dir);
    up.until("busy: runs on, adopted");
    is_held(dir, "busy");
    // All processes that hold it at once: the supervisor replaces them. If some were left, those would do it themselves.
    eventually("all were killed at once", || {
        kill_holders(dir);
        std::thread::sleep(Duration::from_millis(300));
        up.has_said("its budget is held again")
    });
    is_held(dir, "busy");
    assert!(runs(pid));
    // The processes that this supervisor has started are its children.
    kill_holders(dir);
    is_held(dir, "busy");
    eventually("who has ended is waited for", || zombies(up.pid()) == 0);
    // A supervisor that comes after all are gone.
    up.kill();
    eventually("all were killed at once", || {
        kill_holders(dir);
        std::thread::sleep(Duration::from_millis(100));
        !holders(dir).is_kept()
    });
    let mut up = Up::start(dir);
    up.until("busy: runs on, adopted");
    is_held(dir, "busy");
    up.end();
    nobody_is_left(dir);
}

/// The lives of a cell that keeps ending get no more together than one that keeps running.
#[track_caller]
fn assert_lives_share_a_budget(dir: &Path, cell: &str) {
    let stat = group(dir, cell).join("cpu.stat");
    let now = || {
        // Between two lives there may be no cgroup.
        let text = fs::read_to_string(&stat).unwrap_or_default();
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("usage_usec "));
        line.map_or(0, |used| used.parse().unwrap())
    };
    let (began, mut last, mut used_us) = (Instant::now(), now(), 0_u64);
    while began.elapsed() < Duration::from_secs(2) {
        std::thread::sleep(Duration::from_millis(1));
        let now = now();
        used_us += if now < last { now } else { now - last };
        last = now;
    }
    let (used, lasted) = (Duration::from_micros(used_us), began.elapsed());
    assert!(used * 5 < lasted, "{used:?} of {lasted:?}");
    assert!(used * 100 > lasted, "{used:?} of {lasted:?}");
}

#[case(..NEEDS)]
fn a_cell_that_ends_is_held_again(dir: &Path) {
    let again = "restart = { limit = 1000, backoff_min = \"1ms\", backoff_max = \"10ms\" }";
    let cells = shell(
        "dying",
        "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; exit 3",
        &format!("{RESERVED}\n{again}"),
    ) + &shell("busy", BUSY, RESERVED);
    mission(dir, &format!("enforcer = \"freezer\"\n{cells}"));
    let mut up = Up::start(dir);
    let first = pid_of(&up.until("dying: runs (pid"));
    let next = pid_of(&up.until("dying: runs (pid"));
    assert_ne!(first, next);
    for _ in 0..3 {
        up.until("dying: runs (pid");
    }
    is_held(dir, "busy");
    assert_lives_share_a_budget(dir, "dying");
    // Killed while cells are created and removed, and cleaned up without it.
    up.kill();
    ask(dir, &["down"]).ends_with(0);
    nobody_is_left(dir);
}

#[case(..ALONE)]
fn holders_that_are_stopped_withdraw_bounds_and_of_a_dead_mission_are_removed(dir: &Path) {
    let task = "[[cell.task]]\nname = \"t\"\nwcet = \"1ms\"\nperiod = \"1s\"\n";
    let waits = shell(
        "c",
        "exec /busybox sleep 1000",
        &format!("{RESERVED}\n{task}"),
    );
    mission(dir, &format!("enforcer = \"freezer\"\n{waits}"));
    let mut up = Up::start(dir);
    let pid = pid_of(&up.told("c: runs"));
    eventually("the bound is in force", || {
        crate::control::cell(dir, "c")["bounds"][0]["state"] == "in_force"
    });
    let stopped = stop_holders(dir);
    up.until("withdrawn: its budget is not enforced: its keeper, watcher and heir have all ended, or are stopped");
    continue_holders(stopped);
    up.until(", in force again");
    up.kill();
    // SAFETY: the cell's process, which nobody has reaped.
    unsafe { libc::kill(pid, libc::SIGKILL) };
    eventually("the cell is gone", || host::process::name(pid).is_none());
    let said = say(dir, &["clean"]).ends_with(0).out;
    let own = format!(
        "groups that the freezer held for mission `{}`: removed",
        name(dir)
    );
    assert!(said.contains(&own), "{said}");
    // The page of its jobs is in the mission's own directory.
    ask(dir, &["down"]);
    nobody_is_left(dir);
    assert!(!place(dir).exists() && !group(dir, "c").exists());
}

#[case(
    Root,
    RealTime,
    Freezer,
    Program("busybox"),
    Program("crun"),
    Program("runc"),
    Program("podman")
)]
fn cells_of_every_engine_are_held(dir: &Path) {
    let engines = ["embedded", "crun", "runc", "podman"];
    let cells =
        engines.map(|engine| shell(engine, BUSY, &format!("engine = \"{engine}\"\n{RESERVED}")));
    mission(dir, &format!("enforcer = \"freezer\"\n{}", cells.concat()));
    let mut up = Up::start(dir);
    for engine in engines {
        up.until(&format!("{engine}: runs (pid"));
    }
    for engine in engines {
        is_held(dir, engine);
    }
    up.end();
    nobody_is_left(dir);
}

/// Usually its budget is used up when it is shed, and its threads are of class IDLE.
#[case(..ALONE)]
fn a_cell_that_is_shed_to_best_effort_has_no_class_till_it_comes_back(dir: &Path) {
    // How long it is idle between two jobs that are not long.
    let critical = critical(15).replace("300ms", "160ms");
    let payload = shell(
        "payload",
        BUSY,
        &format!("{RESERVED}\nwhen_shed = \"best-effort\""),
    );
    mission(dir, &format!("enforcer = \"freezer\"\n{critical}{payload}"));
    let mut up = Up::start(dir);
    up.until("payload: runs (pid");
    let group = group(dir, "payload");
    let classes = || -> Vec<Class> {
        let pids = fs::read_to_string(group.join("cell/cgroup.procs")).unwrap();
        (pids.lines().filter_map(|pid| pid.parse().ok()))
            .filter_map(|pid| get_class(pid).ok())
            .collect()
    };
    up.until("payload: is shed: it continues with leftover cpu time");
    let began = used(&group);
    for _ in 0..20 {
        let classes = classes();
        assert!(
            classes.len() >= 2 && classes.iter().all(|class| *class == Class::Other),
            "{classes:?}"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
    // Without a class it needs no budget.
    assert!(used(&group) - began > Duration::from_millis(40));
    up.until("payload: no longer shed");
    // If the machine stalls between two long jobs, it returns before they are over, and is shed once more.
    std::thread::sleep(Duration::from_secs(3));
    has_its_class_again(classes);
    is_held(dir, "payload");
    up.end();
    nobody_is_left(dir);
}

/// A cell of low criticality that is shed to best effort, and one whose jobs are late now and then.
fn shed_mission(dir: &Path) -> Up {
    shed_mission_of(dir, "freezer", BUSY).0
}

/// The same with this enforcer, and the first process of that cell, which runs this script.
fn shed_mission_of(dir: &Path, enforcer: &str, script: &str) -> (Up, i32) {
    let critical = critical(40).replace("300ms", "160ms");
    let payload = shell(
        "payload",
        script,
        &format!("{RESERVED}\nwhen_shed = \"best-effort\""),
    );
    mission(
        dir,
        &format!("enforcer = \"{enforcer}\"\n{critical}{payload}"),
    );
    let mut up = Up::start(dir);
    let pid = pid_of(&up.until("payload: runs (pid"));
    up.until("payload: is shed: it continues with leftover cpu time");
    (up, pid)
}

fn classes(group: &Path) -> Vec<Class> {
    let pids = fs::read_to_string(group.join("cell/cgroup.procs")).unwrap_or_default();
    (pids.lines().filter_map(|pid| pid.parse().ok()))
        .filter_map(|pid| get_class(pid).ok())
        .collect()
}

/// Sought from another cpu than the cell's: there this thread would run only while the cell's threads are lowered.
fn has_its_class_again(classes: impl Fn() -> Vec<Class> + Send) {
    let seek = move || {
        set_affinity(0, &[0]).unwrap();
        eventually("it has its class again", || {
            (classes().iter()).any(|class| matches!(class, Class::Fifo { .. }))
        });
    };
    std::thread::scope(|scope| scope.spawn(seek).join()).unwrap();
}

/// Files of root's that others may write, beneath these places.
fn written_by_others(places: &[&Path]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut left: Vec<PathBuf> = places.iter().map(|place| (*place).to_owned()).collect();
    while let Some(at) = left.pop() {
        let Ok(about) = fs::symlink_metadata(&at) else {
            continue;
        };
        if about.is_dir() {
            let inside = fs::read_dir(&at).into_iter().flatten().flatten();
            left.extend(inside.map(|entry| entry.path()));
        }
        let is_sticky = about.mode() & 0o1000 != 0;
        if about.mode() & 0o022 != 0 && !about.is_symlink() && !is_sticky {
            found.push(at);
        }
    }
    found
}

#[case(..NEEDS)]
fn started_with_a_mask_of_0_nothing_is_for_others_to_write(dir: &Path) {
    let cells = shell("busy", BUSY, RESERVED);
    mission(dir, &format!("enforcer = \"freezer\"\n{cells}"));
    let mut command = Command::new("sh");
    let up = "umask 0; exec \"$0\" up mission.toml --dir state";
    command.current_dir(dir).args(["-c", up]).arg(binary());
    let mut up = Up::of(&mut command);
    up.told("busy: runs");
    let ledger = Path::new("/run/timecell");
    let state = dir.join("state");
    assert!(state.join("journal").exists() && ledger.join("ledger.json").exists());
    let found = written_by_others(&[&state, ledger, &place(dir)]);
    assert!(found.is_empty(), "{found:?}");
    up.end();
    nobody_is_left(dir);
}

#[case(..ALONE)]
fn a_cell_that_a_killed_supervisor_had_shed_stays_so_and_is_started_anew(dir: &Path) {
    let up = shed_mission(dir);
    let group = group(dir, "payload");
    // Another thread writes its notes: the next supervisor cannot know those not written when it was killed.
    let journal = dir.join("state/journal");
    eventually("it is written that the cell is shed", || {
        fs::read_to_string(&journal).is_ok_and(|text| text.contains("\"why\":\"shed\""))
    });
    up.kill();
    let mut up = Up::start(dir);
    up.until("payload: runs on, adopted");
    let is_held = || {
        holders(dir)
            .groups()
            .iter()
            .any(|held| held.which.path == group)
    };
    for _ in 0..10 {
        let classes = classes(&group);
        assert!(
            classes.len() >= 2 && classes.iter().all(|class| *class == Class::Other),
            "{classes:?}"
        );
        assert!(!place(dir).exists() || !is_held());
        std::thread::sleep(Duration::from_millis(10));
    }
    // The class that its threads had is no longer known.
    up.until("payload: is no longer shed, and is restarted");
    up.until("payload: runs (pid");
    has_its_class_again(|| classes(&group));
    up.end();
    nobody_is_left(dir);
}

/// Stops the processes that hold the cells of a mission, once all three are there: one that was late is being replaced.
fn stop_holders(dir: &Path) -> [i32; 3] {
    let are_there = |pids: &[i32; 3]| pids.iter().all(|pid| host::process::user(*pid).is_some());
    let mut pids = [0; 3];
    eventually("all three who hold it are there", || {
        let page = holders(dir);
        pids = [page.heir(), page.watcher(), page.keeper()];
        are_there(&pids)
    });
    for pid in pids {
        // SAFETY: no memory is involved.
        assert_eq!(unsafe { libc::kill(pid, libc::SIGSTOP) }, 0);
    }
    pids
}

/// The keeper first. One that the others have found silent, and replaced, is gone.
fn continue_holders(pids: [i32; 3]) {
    for pid in pids.into_iter().rev() {
        // SAFETY: no memory is involved.
        unsafe { libc::kill(pid, libc::SIGCONT) };
    }
}

/// The processes that hold it answer only after an update has put it aside. The update is rolled back, and the cell comes back: still shed, or
/// after the mission has returned to low mode.
#[case(..ALONE)]
fn a_cell_that_is_put_aside_while_it_is_let_go_has_no_class() {
    put_aside_while_it_is_let_go(false);
    put_aside_while_it_is_let_go(true);
}

fn put_aside_while_it_is_let_go(is_over_before: bool) {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let never = "class = \"other\"\ncriticality = \"hi\"\nrestart = { policy = \"never\" }";
    let rule = "[[cell.health]]\nwhen = \"exit\"\ndo = \"switch-mode\"";
    let crashing = shell("crashing", SLEEPS, &format!("{never}\n{rule}"));
    // While this one runs, the mission stays in high mode.
    let spinning = shell("spinning", "while :; do :; done", never);
    let payload = |script: &str| {
        shell(
            "payload",
            script,
            &format!("{RESERVED}\nwhen_shed = \"best-effort\""),
        )
    };
    let of = |payload: &str, more: &str| {
        let modes = "[modes]\nreturn_after = \"300ms\"";
        mission(
            dir,
            &format!("enforcer = \"freezer\"\n{modes}\n{crashing}{spinning}{payload}{more}"),
        );
    };
    of(&payload(BUSY), "");
    let mut up = Up::start(dir);
    let [crashing, spinning, payload_pid] = ["crashing", "spinning", "payload"]
        .map(|cell| pid_of(&up.told(&format!("{cell}: runs (pid"))));
    let kill = |pid: i32| {
        // SAFETY: no memory is involved; it is a cell's process.
        assert_eq!(unsafe { libc::kill(pid, libc::SIGKILL) }, 0);
    };
    let group = group(dir, "payload");
    is_held(dir, "payload");
    let holders = stop_holders(dir);
    kill(crashing);
    up.until("mode: high");
    // One of low criticality would begin with the low mode.
    let go = dir.join("go");
    shared(&go);
    let rights = format!(
        "{never}\nrights = {{ mounts = [{{ source = \"{}\", target = \"/go\" }}] }}",
        go.display()
    );
    // Idle while it waits, or the mission would stay in high mode.
    let made = Command::new("mkfifo").arg(go.join("now")).status();
    assert!(made.unwrap().success());
    let script = "read line </go/now; exit 3";
    let fails = shell("fails", script, &rights);
    of(&payload(&format!("true; {BUSY}")), &fails);
    let mut update = begun(
        dir,
        &[
            "update",
            "mission.toml",
            "--dir",
            "state",
            "--window",
            "60s",
        ],
    );
    eventually("it is put aside", || {
        ask(dir, &["ps"])
            .out
            .contains("the version before the update")
    });
    assert!(!up.has_said("payload: is shed"), "it was not let go late");
    // As those who hold it give it back to a thread that did not stop when it was to.
    set_class(payload_pid, &Class::Fifo { priority: 1 }).unwrap();
    continue_holders(holders);
    let is_held_by_somebody = || {
        let page = Page::open(&place(dir)).ok().flatten();
        page.is_some_and(|page| page.groups().iter().any(|held| held.which.path == group))
    };
    eventually("it is let go", || !is_held_by_somebody());
    let has_none = || {
        let classes = classes(&group);
        classes.len() >= 2 && classes.iter().all(|class| *class == Class::Other)
    };
    eventually("it has no class", has_none);
    // And not only since it came back.
    assert!(!up.has_said("was rolled back"), "{:?}", up.said);
    if is_over_before {
        kill(spinning);
        up.until("mode: low");
    }
    fs::write(go.join("now"), "\n").unwrap();
    up.until("update 1 was rolled back");
    assert_eq!(update.wait().unwrap().code(), Some(1));
    if !is_over_before {
        for _ in 0..20 {
            assert!(
                has_none() && !is_held_by_somebody(),
                "{:?}",
                classes(&group)
            );
            std::thread::sleep(Duration::from_millis(10));
        }
        kill(spinning);
    }
    up.until("payload: no longer shed");
    has_its_class_again(|| classes(&group));
    is_held(dir, "payload");
    up.end();
    nobody_is_left(dir);
}

#[case(..ALONE)]
fn a_class_that_a_shed_cell_takes_again_is_taken_from_it() {
    // A cell of the second one needs no attention while it is not shed.
    for (enforcer, script) in [
        ("freezer", BUSY),
        ("cpuset-only", "while :; do sleep 1; done"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let (mut up, pid) = shed_mission_of(dir.path(), enforcer, script);
        // As one does that may have such a class.
        set_class(pid, &Class::Fifo { priority: 1 }).unwrap();
        up.until("of its threads retook a real-time class while shed, and lost it again");
        assert_eq!(get_class(pid), Ok(Class::Other), "{enforcer}");
        up.end();
        nobody_is_left(dir.path());
    }
}
