//! The supply of budgets enforced by the freezer: measured, used by admission, and nothing left behind.

use std::fs;
use std::path::{Path, PathBuf};

use freezer::page::{Page, memory};
use model::Enforcer;
use record::run::{Run, Status};
use record::supply::{MeasuredSupply, SupplyRecord, WorstReaction, load};

use crate::missions::{mission, shell};
use crate::supply::started;
use crate::support::{Need, Said, eventually, only_run, say, timecell, traces_of};

const NEEDS: &[Need] = &[Need::Root, Need::RealTime, Need::Freezer];

const QUICK: [&str; 5] = ["bench", "supply", "--quick", "--enforcer", "freezer"];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [QUICK.as_slice(), more].concat()
}

#[case(Alone, Root, RealTime, Freezer, Program("busybox"))]
fn a_budget_is_measured_with_how_exact_it_is_held_and_counted_on(dir: &Path) {
    let words = ["--no-try", "--reservation", "30ms/100ms,3ms/10ms", "--json"];
    let said = say(dir, &with(&words)).ends_with(0);
    let json: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let path = only_run(dir);
    let supplies = load(&path).unwrap();
    assert_eq!(supplies.len(), 2, "{}", said.out);
    supplies.iter().for_each(is_held);
    let told = &json["supplies"][0]["reaction"];
    for times in ["late", "overruns"] {
        assert!(told[times]["most_ns"].as_u64().unwrap() > 0, "{told}");
        assert!(
            !told[times]["bins"].as_array().unwrap().is_empty(),
            "{told}"
        );
    }
    let run = Run::open(&path).unwrap();
    for trial in run.read::<SupplyRecord>().unwrap().trials {
        assert_eq!(trial.failure, None);
        assert_eq!(trial.reacted.is_some(), trial.held.is_some(), "{trial:?}");
    }
    let page = fs::read_to_string(path.join("report.html")).unwrap();
    for part in ["id=\"reaction\"", "supply-freezer-3000us-10000us-t"] {
        assert!(page.contains(part), "{part}");
    }
    let name = path.to_str().unwrap();
    let table = say(dir, &["report", name]).ends_with(0).out;
    for part in [
        "how exact the freezer was",
        "2(P-Q) and reaction",
        "the freezer checked up to",
    ] {
        assert!(table.contains(part), "{part}: {table}");
    }
    // Without sets there are no deadlines.
    assert!(!table.contains("deadlines"), "{table}");
    let none = say(dir, &["report", name, "--fail-if", "missed > 0"]).ends_with(4);
    let what = "there is no `missed` in it";
    assert!(none.out.contains(what), "{}", none.out);
    is_counted_on(dir, &supplies, name);
}

/// The properties of everything that the freezer holds, on any machine.
fn is_held(supply: &MeasuredSupply) {
    assert_eq!(supply.held.enforcer, Enforcer::Freezer);
    let reaction = supply.reaction.as_ref().unwrap();
    // Every budget is used up, and each is thawed and frozen at some time.
    assert!(reaction.overruns.count > 5, "{reaction:?}");
    assert!(
        reaction.late.count > reaction.overruns.count,
        "{reaction:?}"
    );
    for times in [&reaction.late, &reaction.overruns] {
        let bins: u64 = times.bins.iter().map(|(_, count)| count).sum();
        assert_eq!(bins, times.count);
        assert!(times.median_ns <= times.p99_ns && times.p99_ns <= times.most_ns);
    }
    let (Some(billed), Some(cost)) = (supply.billed, reaction.cost) else {
        panic!("{supply:?}");
    };
    assert!(cost.cpu_ns > 0 && cost.cpu_ns < cost.of_ns, "{cost:?}");
    // It is held, and gets its grant: less exactly on a machine with other work.
    let granted = supply.held.budget_ns as f64 / supply.held.period_ns as f64;
    let share = billed.ratio() / granted;
    assert!((0.5..1.5).contains(&share), "{share} of the grant");
    let idle_ns = supply.held.period_ns - supply.held.budget_ns;
    let [late_ns, overrun_ns] = [&reaction.late, &reaction.overruns].map(|times| times.most_ns);
    assert_eq!(reaction.textbook_gap_ns, 2 * idle_ns + late_ns + overrun_ns);
    // No line is better than the one that follows from the worst reaction.
    assert_eq!(supply.by_tick, None);
    match supply.by_reaction {
        Some(bound) => {
            let lines = supply.counted_on();
            assert!(
                lines.iter().all(|line| line.2 >= bound.delay_ns),
                "{lines:?}"
            );
        }
        None => assert!(supply.counted_on().is_empty()),
    }
}

/// `admit` and `analyze` use the run.
fn is_counted_on(dir: &std::path::Path, supplies: &[MeasuredSupply], run: &str) {
    let admitted = |budget: &str| {
        let reserved = format!("reservation = {{ budget = \"{budget}\", period = \"100ms\" }}");
        let task = "[[cell.task]]\nname = \"t\"\nwcet = \"1ms\"\nperiod = \"900ms\"";
        let cell = shell("c", "true", &format!("cpus = [1]\n{reserved}\n{task}"));
        mission(dir, &format!("enforcer = \"freezer\"\n{cell}"));
        let said = say(dir, &["admit", "mission.toml", "--supply", run]).ends_with(0);
        // Lines are wrapped at the width of the terminal.
        said.out.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let worst = WorstReaction::of(supplies.iter().filter_map(|s| s.reaction.as_ref())).unwrap();
    let own = admitted("30ms");
    assert!(own.contains("measured in all windows up to"), "{own}");
    let late = report::rounded_up(worst.late_ns);
    let by_rule = format!("the freezer's rule with checks up to {late} late");
    // A budget of another size that the freezer's lateness here does not use up.
    let left_ms = [worst.late_ns, worst.overrun_ns].map(|ns| ns.div_ceil(1_000_000));
    let other = match left_ms.iter().sum::<u64>() + 5 {
        ..=25 => admitted("25ms"),
        more => admitted(&format!("{}ms", more.max(31))),
    };
    for said in [&own, &other] {
        assert!(said.contains(&by_rule), "{by_rule}: {said}");
    }
    assert!(other.contains("measured on this machine, for other budgets"));
    let set = "schema = 1\nenforcer = \"freezer\"\n[[cell]]\nname = \"c\"\npolicy = \"fp\"\n\
               reservation = { budget = \"30ms\", period = \"100ms\" }\n\
               [[cell.task]]\nname = \"t\"\nwcet = \"1ms\"\nperiod = \"900ms\"\n";
    fs::write(dir.join("tasks.toml"), set).unwrap();
    let said = say(dir, &["analyze", "tasks.toml", "--supply", run, "--json"]).ends_with(0);
    let json: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let notes = json["linux"]["notes"].to_string();
    let late = format!("up to {} late", exact(worst.late_ns));
    assert!(notes.contains(&late), "{late}: {notes}");
    let both = [
        "analyze",
        "tasks.toml",
        "--supply",
        run,
        "--reaction",
        "1us/1us",
    ];
    say(dir, &both).ends_with(2);
}

/// In the format of notes: all digits, in the largest unit with at most three before the point.
fn exact(ns: u64) -> String {
    match ns {
        ..1_000_000 => format!("{} us", ns as f64 / 1e3),
        _ => format!("{} ms", ns as f64 / 1e6),
    }
}

/// The directory of the processes that hold a thread of this study.
fn place(pid: u32) -> PathBuf {
    memory().join(format!("timecell-{pid}-freezer"))
}

/// Starts a study and waits until its thread is held.
fn held(dir: &std::path::Path) -> std::process::Child {
    let words = [
        "--enforcer",
        "freezer",
        "--duration",
        "5s",
        "--reservation",
        "3ms/10ms",
    ];
    let child = started(dir, &words, 0);
    eventually("budgets are used up", || {
        let page = Page::open(&place(child.id())).ok().flatten();
        let groups = page.map_or_else(Vec::new, |page| page.groups());
        groups
            .iter()
            .any(|group| group.progress.totals.exhausted > 5)
    });
    child
}

#[case(..NEEDS)]
fn ctrl_c_while_a_thread_is_held_leaves_nothing(dir: &Path) {
    let mut child = held(dir);
    // SAFETY: our own child.
    unsafe { libc::kill(child.id().cast_signed(), libc::SIGINT) };
    assert_eq!(child.wait().unwrap().code(), Some(1));
    let traces = traces_of(child.id());
    assert!(traces.is_empty(), "left {traces:#?}");
    let run = Run::open(&only_run(dir)).unwrap();
    assert_eq!(run.manifest().unwrap().status, Status::Interrupted);
}

#[case(..NEEDS)]
fn clean_removes_those_who_hold_of_a_killed_study(dir: &Path) {
    let mut child = held(dir);
    child.kill().unwrap();
    child.wait().unwrap();
    let page = Page::open(&place(child.id())).unwrap().unwrap();
    let before = page.groups()[0].progress.totals.periods;
    eventually("it is held although the study is dead", || {
        page.groups()[0].progress.totals.periods > before + 5
    });
    let said = say(dir, &["clean"]).ends_with(0);
    let process = format!("process {}", child.id());
    assert!(said.out.contains(&process), "{}", said.out);
    eventually("no trace is left", || traces_of(child.id()).is_empty());
    let those = [page.keeper(), page.watcher(), page.heir()];
    assert!(!page.is_kept(), "{those:?}");
}

#[case(..NEEDS)]
fn what_cannot_be_held_is_refused(dir: &Path) {
    for (option, value, told) in [
        ("--priority", "97", "96 is the most"),
        ("--reservation", "10us/50us", "periods from 100 us"),
    ] {
        let error = say(dir, &with(&[option, value])).ends_with(4).error();
        assert!(error.contains("no supply can be measured here"), "{error}");
        assert!(error.contains(told), "{told}: {error}");
    }
    assert!(!dir.join("runs").exists(), "nothing was begun");
}

#[case(Root, RealTime, Freezer, Program("unshare"))]
fn without_cgroup_v2_it_says_so(dir: &Path) {
    let point = host::cgroup::detect().unwrap().v2.unwrap().point;
    let program = timecell().get_program().display().to_string();
    let script = format!(
        "umount -l '{}' && exec '{program}' bench supply --enforcer freezer",
        point.display()
    );
    // If it is not mounted for this process alone.
    let output = std::process::Command::new("unshare")
        .args(["-m", "sh", "-c", &script])
        .current_dir(dir)
        .output();
    let error = Said::from(output.unwrap()).ends_with(4).error();
    assert!(error.contains("cgroup v2 is not mounted"), "{error}");
    assert!(!dir.join("runs").exists(), "nothing was begun");
}
