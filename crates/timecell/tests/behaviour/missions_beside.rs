//! Several missions on one machine: names, and the ledger of grants.

use std::path::Path;
use std::process::Command;

use crate::attacks::changed_view;
use crate::missions::{Up, mission, name, pid_of, runs, shell};
use crate::support::{Need, say, timecell};

const REAL_TIME: &[Need] = &[
    Need::Root,
    Need::RealTime,
    Need::Program("busybox"),
    Need::TwoCpus,
];

const MEMORY: &[Need] = &[Need::Root, Need::Program("busybox"), Need::MemoryGroups];

fn named(dir: &Path, file: &str, name: &str, cells: &str) {
    let text = format!("schema = 1\nname = \"{name}\"\n{cells}");
    std::fs::write(dir.join(file), text).unwrap();
}

fn up(dir: &Path, file: &str, state: &str) -> Up {
    Up::of(
        timecell()
            .current_dir(dir)
            .args(["up", file, "--dir", state]),
    )
}

fn best_effort(name: &str) -> String {
    shell(name, "while :; do sleep 1; done", "class = \"other\"")
}

#[case(..REAL_TIME)]
fn a_name_is_one_supervisors_in_whatever_directory(dir: &Path) {
    let spin = takes("spin", "40ms", "100ms", "");
    mission(dir, &format!("{PLAIN}{spin}{}", best_effort("a")));
    let mut first = Up::start(dir);
    let pid = pid_of(&first.until("a: runs (pid"));
    let elsewhere = ["up", "mission.toml", "--dir", "elsewhere"];
    let said = say(dir, &elsewhere).ends_with(1);
    assert!(said.error().contains("another timecell"));
    assert!(runs(pid));
    first.told("spin: runs (pid");
    first.kill();
    // The grants of a killed supervisor stay while its cells live.
    let held = ledger(dir);
    assert_eq!(held["entries"][0]["cells"][0]["cell"], "spin", "{held}");
    let said = say(dir, &elsewhere).ends_with(1);
    assert!(said.error().contains("in another directory still run"));
    assert!(runs(pid));
    let mut again = Up::start(dir);
    again.until("adopted");
    again.end();
    assert!(ledger(dir)["entries"].as_array().unwrap().is_empty());
}

/// A cell without a budget that declares this much.
fn takes(name: &str, wcet: &str, period: &str, more: &str) -> String {
    let task =
        format!("{more}\n[[cell.task]]\nname = \"t\"\nwcet = \"{wcet}\"\nperiod = \"{period}\"");
    shell(name, "while :; do sleep 1; done", &task)
}

const PLAIN: &str = "enforcer = \"cpuset-only\"\n";

fn cell_of(dir: &Path, file: &str) -> serde_json::Value {
    let said = say(dir, &["admit", file, "--json"]).ends_with(0);
    let json: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    json["admission"]["cells"][0].clone()
}

fn ledger(dir: &Path) -> serde_json::Value {
    let said = say(dir, &["ps", "--machine", "--json"]).ends_with(0);
    serde_json::from_str(&said.out).unwrap()
}

#[case(..REAL_TIME)]
fn of_several_that_start_at_once_one_gets_the_last_of_a_cpu() {
    const MISSIONS: usize = 4;
    let dir = tempfile::tempdir().unwrap();
    let cpu = host::sched::get_affinity(0).unwrap()[1];
    let base = name(dir.path());
    // Two of them do not fit on the cpu; each takes time to start, in which others can get in between.
    let cell = takes("c", "55ms", "100ms", &format!("cpus = [{cpu}]"));
    for i in 0..MISSIONS {
        named(
            dir.path(),
            &format!("{i}.toml"),
            &format!("{base}-{i}"),
            &format!("{PLAIN}{cell}"),
        );
    }
    for _ in 0..3 {
        let mut ups: Vec<Up> = (0..MISSIONS)
            .map(|i| up(dir.path(), &format!("{i}.toml"), &i.to_string()))
            .collect();
        let codes: Vec<Option<i32>> = ups.iter_mut().map(Up::runs_or_ends_with).collect();
        assert_eq!(
            codes.iter().filter(|code| code.is_none()).count(),
            1,
            "{codes:?}"
        );
        assert!(
            codes.iter().flatten().all(|code| *code == 3),
            "refused by admission: {codes:?}"
        );
        assert_eq!(ledger(dir.path())["entries"].as_array().unwrap().len(), 1);
        for (one, code) in ups.into_iter().zip(codes) {
            match code {
                None => one.end(),
                Some(_) => drop(one),
            }
        }
    }
}

#[case(..REAL_TIME)]
fn two_missions_keep_each_others_guarantees(dir: &Path) {
    let (a, b) = (name(dir), format!("{}-b", name(dir)));
    let spin = takes("spin", "40ms", "100ms", "");
    named(dir, "a.toml", &a, &format!("{PLAIN}{spin}"));
    let control = takes("control", "10ms", "30ms", "");
    named(dir, "b.toml", &b, &format!("{PLAIN}{control}"));
    // Alone, both would have the same cpu and the same priority.
    let (alone, first) = (cell_of(dir, "b.toml"), cell_of(dir, "a.toml"));
    assert_eq!(
        (&alone["cpus"], &alone["band"]),
        (&first["cpus"], &first["band"])
    );
    let mut one = up(dir, "a.toml", "a");
    one.until("spin: runs (pid");
    let second = cell_of(dir, "b.toml");
    assert_ne!(second["cpus"], first["cpus"]);
    assert_ne!(second["band"], first["band"]);
    let mut two = up(dir, "b.toml", "b");
    two.until(&format!("mission {b}: admitted, beside mission `{a}`"));
    two.until("control: runs (pid");
    // A mission that would make a cell of another one late is refused, and that cell is named.
    let cpu = &first["cpus"][0];
    let greedy = takes(
        "greedy",
        // Beside three supervisors.
        "70ms",
        "100ms",
        &format!("cpus = [{cpu}]\npriorities = {{ lowest = 95, highest = 95 }}"),
    );
    named(
        dir,
        "c.toml",
        &format!("{a}-c"),
        &format!("{PLAIN}{greedy}"),
    );
    let said = say(dir, &["up", "c.toml", "--dir", "c"]).ends_with(3);
    let words = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains(&format!("`spin` of mission `{a}` would be late")),
        "{words}"
    );
    assert_eq!(ledger(dir)["entries"].as_array().unwrap().len(), 2);
    two.end();
    one.end();
    assert!(ledger(dir)["entries"].as_array().unwrap().is_empty());
}

// Only the most urgent threads are named, SCHED_DEADLINE ones first: no parallel case has any.
#[case(Root, RealTime, Program("busybox"), TwoCpus, DeadlineBudget)]
fn a_real_time_thread_that_nobody_accounts_for_is_named(dir: &Path) {
    let mut sleeper = std::process::Command::new("sleep")
        .arg("60")
        .spawn()
        .unwrap();
    let pid = sleeper.id().cast_signed();
    // Parallel cases have threads of lower priorities.
    host::sched::set_class(pid, &host::sched::Class::Fifo { priority: 99 }).unwrap();
    mission(dir, &format!("{PLAIN}{}", takes("a", "1ms", "100ms", "")));
    let sentence = format!("FIFO 99 thread of process {pid} (sleep) on cpu");
    let said = say(dir, &["admit", "mission.toml"]).ends_with(0);
    let words = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
    let machine = say(dir, &["ps", "--machine"]).ends_with(0);
    let mut one = Up::start(dir);
    one.until("a: runs (pid");
    let events = say(dir, &["events", "--dir", "state"]).ends_with(0);
    one.end();
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    assert!(words.contains(&sentence), "{words}");
    assert!(
        machine.out.contains(&format!("process {pid}")),
        "{}",
        machine.out
    );
    assert!(events.out.contains(&sentence), "{}", events.out);
}

#[case(..REAL_TIME)]
fn a_measurement_and_a_mission_keep_off_each_other(dir: &Path) {
    let a = takes("a", "1ms", "100ms", "cpus = [0]");
    mission(dir, &format!("{PLAIN}{a}"));
    let bench = |cpu: &str, jobs: &str| {
        let mut command = timecell();
        command.current_dir(dir);
        command.args(["bench", "overhead", "--engine", "bare", "--rounds", "1"]);
        command.args(["--cpus", cpu, "--jobs", jobs]);
        command
    };
    let mut measuring = bench("0", "30000")
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    crate::support::eventually("the measurement is in the ledger", || {
        !ledger(dir)["entries"].as_array().unwrap().is_empty()
    });
    let said = say(dir, &["up", "mission.toml", "--dir", "state"]).ends_with(3);
    // Killed, it holds nothing any more.
    measuring.kill().unwrap();
    measuring.wait().unwrap();
    say(dir, &["clean"]);
    assert!(said.out.contains("is measuring on cpu 0"), "{}", said.out);
    let mut one = Up::start(dir);
    one.until("a: runs (pid");
    let refused = bench("0", "10").output().unwrap();
    one.end();
    assert_eq!(refused.status.code(), Some(4));
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(error.contains("--beside-missions"), "{error}");
}

#[case(
    Root,
    RealTime,
    RtGroups,
    GroupBudget(950),
    Program("busybox"),
    TwoCpus
)]
fn whoever_has_the_runtime_of_groups_is_named(dir: &Path) {
    let a = takes("a", "1ms", "100ms", "class = \"fifo\"\ncpus = [1]");
    mission(dir, &a);
    let refused = |who: &str| {
        let said = say(dir, &["admit", "mission.toml"]).ends_with(3);
        let words: Vec<&str> = said.out.split_whitespace().collect();
        let words = words.join(" ");
        assert!(words.contains("has no runtime left for it"), "{words}");
        assert!(words.contains(&format!("{who} holds")), "{words}");
        words
    };
    let group = format!("others-{}", std::process::id());
    let free_us = host::rtgroup::largest_free_runtime().unwrap();
    let others = host::rtgroup::RtGroup::create(&group, free_us, 1_000_000).unwrap();
    refused(&format!("somebody outside timecell (group `{group}`)"));
    others.remove().unwrap();
    let mut bench = timecell();
    bench.current_dir(dir);
    bench.args(["bench", "overhead", "--engine", "embedded", "--rounds", "1"]);
    bench.args(["--cpus", "0", "--jobs", "30000"]);
    let bench = bench.stdout(std::process::Stdio::null());
    let mut measuring = bench.stderr(std::process::Stdio::null()).spawn().unwrap();
    crate::support::eventually("the measurement has its group", || {
        host::rtgroup::largest_free_runtime().unwrap() == 0
    });
    let who = format!("`timecell bench overhead` (process {})", measuring.id());
    let words = refused(&who);
    measuring.kill().unwrap();
    measuring.wait().unwrap();
    say(dir, &["clean"]);
    let end = format!("fewer: end {who} first");
    assert!(words.contains(&end), "{words}");
    say(dir, &["admit", "mission.toml"]).ends_with(0);
}

/// Also where it is that of another mount namespace. Any `clean` beside this case would fail.
#[case(Alone, Root, Program("busybox"))]
fn a_damaged_ledger_is_one_sentence(dir: &Path) {
    mission(dir, &best_effort("a"));
    let own_ledger = "mount -t tmpfs none /run/timecell".to_owned();
    let (said, mut sleeps) = changed_view(&[own_ledger], || {
        std::fs::write("/run/timecell/ledger.json", "{\"schema\": 1, ").unwrap();
        let said = say(dir, &["up", "mission.toml", "--dir", "state"]).ends_with(1);
        // The mount namespace stays as long as a process is there.
        (said, Command::new("sleep").arg("60").spawn().unwrap())
    });
    assert!(said.error().contains("remove the file"), "{}", said.error());
    let cleaned = say(dir, &["clean"]);
    sleeps.kill().unwrap();
    sleeps.wait().unwrap();
    let theirs = format!("/proc/{}/root/run/timecell/ledger.json", sleeps.id());
    let cleaned = cleaned.ends_with(1);
    assert!(cleaned.error().contains(&theirs), "{}", cleaned.err);
}

/// A best-effort cell; `memory` in MiB, else its share of the free memory.
fn uses(name: &str, memory: Option<u64>) -> String {
    let says = memory.map_or(String::new(), |mib| {
        format!("\n[cell.rights]\nmemory = \"{mib}MiB\"")
    });
    shell(
        name,
        "while :; do sleep 1; done",
        &format!("class = \"other\"{says}"),
    )
}

#[case(..MEMORY)]
fn two_missions_share_the_memory(dir: &Path) {
    let (a, b) = (name(dir), format!("{}-b", name(dir)));
    let share = |file: &str, code: i32| {
        let said = say(dir, &["admit", file, "--json"]).ends_with(code);
        let json: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        json["admission"].clone()
    };
    let bytes = |of: &serde_json::Value, key: &str| of["memory"][key].as_u64().unwrap();
    named(dir, "b.toml", &b, &uses("b", None));
    let alone = share("b.toml", 0);
    let cells = bytes(&alone, "total_bytes") - bytes(&alone, "reserve_bytes");
    let most = (cells * 11 / 20) >> 20;
    named(dir, "a.toml", &a, &uses("a", Some(most)));
    let mut one = up(dir, "a.toml", "one");
    one.until("a: runs (pid");
    let entries = ledger(dir)["entries"].as_array().unwrap().clone();
    let own = entries
        .iter()
        .find(|entry| entry["holder"]["name"] == a.as_str());
    assert_eq!(own.unwrap()["memory"]["limits_bytes"], most << 20);
    // It uses next to nothing, so almost all of its limit is not free.
    let beside = share("b.toml", 0);
    let left = bytes(&beside, "others_left_bytes") - bytes(&alone, "others_left_bytes");
    assert!(left > (most - 64) << 20, "{beside}");
    assert!(
        bytes(&beside, "default_bytes") < bytes(&alone, "default_bytes"),
        "{beside}"
    );
    // Each fits on the machine, but not both.
    named(dir, "b.toml", &b, &uses("b", Some(most)));
    let refused = share("b.toml", 3)["refusals"][0].to_string();
    assert!(refused.contains(&format!("mission `{a}`")), "{refused}");
    let said = say(dir, &["up", "b.toml", "--dir", "two"]).ends_with(3);
    assert!(said.out.contains("lower it by"), "{}", said.out);
    // Changes of an update count, and cells that have ended do not.
    named(dir, "a.toml", &a, &uses("a", Some(32)));
    let update = ["update", "a.toml", "--dir", "one", "--window", "100ms"];
    say(dir, &update).ends_with(0);
    let mut two = up(dir, "b.toml", "two");
    two.until("b: runs (pid");
    // The other way round, it is refused too.
    named(dir, "a.toml", &a, &uses("a", Some(most)));
    let said = say(dir, &update).ends_with(3);
    assert!(said.err.contains(&format!("mission `{b}`")), "{}", said.err);
    one.end();
    two.end();
    share("a.toml", 0);
}
