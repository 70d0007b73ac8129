//! Missions whose cells are held by SCHED_DEADLINE.

use std::fs;
use std::path::Path;

use host::sched::{Class, bandwidth, get_class};

use crate::control::{ask, cell};
use crate::hostile::{
    itself, output,
    program::{AT_IT, INTO_DEADLINE},
};
use crate::missions::{Up, mission, nothing_is_left, pid_of, shell};
use crate::support::{eventually, say};

const RESERVED: &str = "reservation = { budget = \"5ms\", period = \"100ms\" }";
const MS: u64 = 1_000_000;

fn class(runtime_ns: u64, deadline_ns: u64, period_ns: u64) -> Class {
    Class::Deadline {
        runtime_ns,
        deadline_ns,
        period_ns,
    }
}

#[track_caller]
fn says(dir: &Path, cell: &str, what: &str) -> String {
    let path = output(dir, cell);
    eventually(what, || {
        fs::read_to_string(&path).is_ok_and(|said| said.contains(what))
    });
    fs::read_to_string(&path).unwrap()
}

/// The total of deadline threads is as before, once nobody else changes it. Or nobody holds anything, and the
/// kernel, made to recount, admits no more than without recounting: then it had lost count before the test and admitted
/// too much.
#[track_caller]
fn all_is_given_back(before_us: u64) {
    let mut tries = 0;
    eventually(&format!("{before_us} us are free again"), || {
        tries += 1;
        // 1 ms per second is less than any cell here holds.
        let free = free_us();
        free + 1_000 >= before_us || (tries % 50 == 0 && counted_anew_is_no_more(before_us, free))
    });
}

fn counted_anew_is_no_more(before_us: u64, free: u64) -> bool {
    let held = bandwidth::bandwidth_held_us();
    let counted = bandwidth::recount();
    let anew = free_us();
    eprintln!(
        "free before: {before_us} us, now: {free} us, counted anew ({counted:?}): {anew} us, held: {held} us"
    );
    held == 0 && counted.is_ok() && anew <= free + 1_000
}

fn free_us() -> u64 {
    bandwidth::free_bandwidth_us(&host::sched::get_affinity(0).unwrap()).unwrap()
}

#[case(Root, Deadline, Program("busybox"))]
fn a_thread_with_too_little_to_begin_with_gets_its_class_later(dir: &Path) {
    // The engine's work before the program begins would take minutes of such periods.
    let task = "[[cell.task]]\nname = \"loop\"\nwcet = \"20us\"\nperiod = \"1s\"";
    let cell = shell("rare", "exec /busybox sleep 1000", task);
    mission(dir, &format!("enforcer = \"deadline\"\n{cell}"));
    let mut up = Up::start(dir);
    let pid = pid_of(&up.told("rare: runs (pid"));
    up.told("by order, not checked");
    eventually(
        "it has its class",
        || matches!(get_class(pid), Ok(Class::Deadline { period_ns, .. }) if period_ns == 1000 * MS),
    );
    up.end();
    nothing_is_left(dir);
}

#[case(Root, Deadline, Program("busybox"))]
fn a_cell_is_added_beside_those_that_run_on_any_cpu() {
    let before_us = free_us();
    let dir = tempfile::tempdir().unwrap();
    let task = "[[cell.task]]\nname = \"loop\"\nwcet = \"1ms\"\nperiod = \"100ms\"";
    let of = |name: &str| shell(name, "exec /busybox sleep 1000", task);
    let write = |names: &[&str]| {
        let cells: String = names.iter().map(|name| of(name)).collect();
        mission(dir.path(), &format!("enforcer = \"deadline\"\n{cells}"));
    };
    write(&["a", "b"]);
    let mut up = Up::start(dir.path());
    let pids = ["a", "b"].map(|name| pid_of(&up.told(&format!("{name}: runs"))));
    write(&["a", "b", "c"]);
    ask(dir.path(), &["update", "mission.toml", "--window", "50ms"]).ends_with(0);
    let after = ["a", "b"].map(|name| cell(dir.path(), name)["pid"].as_i64());
    assert_eq!(after, pids.map(|pid| Some(i64::from(pid))));
    let added = pid_of(&up.told("c: runs"));
    assert!(matches!(get_class(added), Ok(Class::Deadline { .. })));
    up.end();
    nothing_is_left(dir.path());
    all_is_given_back(before_us);
}

#[case(Root, Deadline)]
fn one_thread_is_in_the_class_and_what_it_makes_is_not() {
    let before_us = free_us();
    let dir = tempfile::tempdir().unwrap();
    let task =
        "[[cell.task]]\nname = \"loop\"\nwcet = \"9ms\"\nperiod = \"200ms\"\ndeadline = \"50ms\"";
    let cells = itself("control", &["classes"], task);
    mission(dir.path(), &format!("enforcer = \"deadline\"\n{cells}"));
    let mut up = Up::start(dir.path());
    let line = up.until("control: runs");
    for part in [
        "10 ms of cpu time within 50 ms in every 200 ms",
        "SCHED_DEADLINE",
    ] {
        assert!(line.contains(part), "{line}");
    }
    let pid = pid_of(&line);
    let own = class(10 * MS, 50 * MS, 200 * MS);
    assert_eq!(get_class(pid), Ok(own.clone()));
    // Its first thread had the class when its program started; nothing that it creates has it, or can get it.
    let said = says(dir.path(), "control", AT_IT);
    for line in [
        format!("first Ok({own:?})"),
        "thread Ok(Other)".to_owned(),
        "child Ok(Other)".to_owned(),
    ] {
        assert!(
            said.lines().any(|said| said == line),
            "no `{line}` in:\n{said}"
        );
    }
    up.end();
    assert!(!Path::new(&format!("/proc/{pid}")).exists());
    nothing_is_left(dir.path());
    all_is_given_back(before_us);
}

#[case(Root, Deadline)]
fn the_class_outlives_the_supervisor() {
    let before_us = free_us();
    let dir = tempfile::tempdir().unwrap();
    let cells = itself("steady", &["threads"], RESERVED) + &itself("gone", &["threads"], RESERVED);
    mission(dir.path(), &format!("enforcer = \"deadline\"\n{cells}"));
    let mut up = Up::start(dir.path());
    let pids = [
        pid_of(&up.told("steady: runs")),
        pid_of(&up.told("gone: runs")),
    ];
    up.kill();
    let own = class(5 * MS, 100 * MS, 100 * MS);
    assert_eq!(pids.map(get_class), [Ok(own.clone()), Ok(own.clone())]);
    // SAFETY: a cell of this test.
    unsafe { libc::kill(pids[1], libc::SIGKILL) };
    let mut up = Up::start(dir.path());
    assert_eq!(pid_of(&up.told("steady: runs on, adopted")), pids[0]);
    let again = pid_of(&up.told("gone: runs (pid"));
    assert_eq!(
        [pids[0], again].map(get_class),
        [Ok(own.clone()), Ok(own.clone())]
    );
    // A supervisor that finds a thread in another class puts it back.
    bandwidth::leave(pids[0]).unwrap();
    up.until("was made OTHER by others, and gets DEADLINE");
    eventually("it has it", || get_class(pids[0]).as_ref() == Ok(&own));
    up.end();
    nothing_is_left(dir.path());
    all_is_given_back(before_us);
}

#[case(Root, Deadline)]
fn threads_are_found_by_their_names(dir: &Path) {
    let task = |name: &str, more: &str| {
        format!("[[cell.task]]\nname = \"{name}\"\nwcet = \"1.8ms\"\nperiod = \"100ms\"\n{more}\n")
    };
    let tasks = "start_timeout = \"300ms\"\n".to_owned()
        + &task("control", "")
        + &task("vision", "thread = \"camera\"")
        + &task("absent", "");
    let cells = itself("both", &["threads", "camera", "control", "other"], &tasks);
    mission(dir, &format!("enforcer = \"deadline\"\n{cells}"));
    let mut up = Up::start(dir);
    let pid = pid_of(&up.until("both: runs"));
    let thread = |line: String| -> i32 {
        let (_, rest) = line.split_once("is thread ").unwrap();
        rest.split(' ').next().unwrap().parse().unwrap()
    };
    let mut held = [
        up.told("both: control is thread"),
        up.told("both: vision is thread"),
    ]
    .map(thread);
    held.sort_unstable();
    let own = class(2 * MS, 100 * MS, 100 * MS);
    for thread in held {
        eventually("it is in the class", || {
            get_class(thread).as_ref() == Ok(&own)
        });
    }
    up.told("withdrawn: no thread has the name `absent`");
    let mut in_class = 0;
    for entry in fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten() {
        let id: i32 = entry.file_name().to_str().unwrap().parse().unwrap();
        if held.contains(&id) {
            in_class += 1;
        } else {
            assert_eq!(get_class(id), Ok(Class::Other));
        }
    }
    assert_eq!(in_class, 2);
    up.end();
    nothing_is_left(dir);
}

#[case(Root, Deadline)]
fn a_cell_that_ends_is_held_again() {
    let before_us = free_us();
    let dir = tempfile::tempdir().unwrap();
    // Half of the free part: the next instance is refused while the last one is still counted.
    let half = before_us / 2 / 1_000;
    let more = format!(
        "reservation = {{ budget = \"{}us\", period = \"200ms\" }}\nrestart = {{ limit = 2, backoff_min = \"0ms\" }}",
        (half * 3 / 2).min(900) * 200
    );
    mission(
        dir.path(),
        &format!(
            "enforcer = \"deadline\"\n{}",
            itself("short", &["end", "50"], &more)
        ),
    );
    let mut up = Up::start(dir.path());
    for start in 1..=3 {
        let line = up.until("short: runs (pid");
        assert!(line.contains(&format!("start {start},")), "{line}");
        up.until("short: exited with status 3");
    }
    up.until("short: stays stopped");
    up.until("no cell runs any more");
    nothing_is_left(dir.path());
    all_is_given_back(before_us);
}

#[case(Root, RealTime, Deadline, GroupBudget(100))]
fn no_cell_makes_itself_one_under_any_enforcer() {
    for enforcer in ["rt-cgroup", "deadline", "cpuset-only"] {
        if enforcer == "rt-cgroup" && host::rtgroup::detect().is_err() {
            continue;
        }
        let dir = tempfile::tempdir().unwrap();
        // In the best-effort cell, the real-time cgroup has no budget at all, which the kernel does not require for this class.
        let cells = itself("held", &["classes"], RESERVED)
            + &itself("plain", &["classes"], "class = \"other\"");
        mission(dir.path(), &format!("enforcer = \"{enforcer}\"\n{cells}"));
        let mut up = Up::start(dir.path());
        up.until("held: runs");
        for cell in ["held", "plain"] {
            let said = says(dir.path(), cell, AT_IT);
            // In a cell of a real-time class the calls succeed, and set the granted values.
            let answer = match cell {
                "held" => "done".to_owned(),
                _ => libc::EPERM.to_string(),
            };
            for attack in INTO_DEADLINE {
                let answer = format!("{attack} {answer}");
                assert!(
                    said.lines().any(|said| said == answer),
                    "{enforcer}: {said}"
                );
            }
        }
        let status = crate::control::json_of(dir.path(), &["ps"]);
        let pids = status["cells"].as_array().unwrap().iter();
        for pid in pids.map(|cell| i32::try_from(cell["pid"].as_i64().unwrap()).unwrap()) {
            for thread in host::process::threads(pid) {
                let is_in_class = matches!(get_class(thread), Ok(Class::Deadline { .. }));
                assert!(
                    !is_in_class || (enforcer == "deadline" && thread == pid),
                    "{enforcer}"
                );
            }
        }
        up.end();
        nothing_is_left(dir.path());
    }
}

#[case(Deadline, TwoCpus)]
fn cpus_of_their_own_are_refused_where_there_are_none(dir: &Path) {
    let more = format!("cpus = [0]\n{RESERVED}");
    mission(
        dir,
        &format!(
            "enforcer = \"deadline\"\n{}",
            itself("one", &["threads"], &more)
        ),
    );
    let said = say(dir, &["admit", "mission.toml"]).ends_with(3);
    for part in [
        "mission.toml:4",
        "cannot be confined to some of cpus",
        "fix: leave `cpus` out",
    ] {
        assert!(said.out.contains(part), "no `{part}` in:\n{}", said.out);
    }
    let said = say(dir, &["up", "mission.toml", "--dir", "state"]).ends_with(3);
    assert!(said.out.contains("refused"), "{}", said.out);
    assert!(!dir.join("state").exists(), "something was begun");
}
