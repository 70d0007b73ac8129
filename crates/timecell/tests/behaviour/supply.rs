//! The supply of the kernel's enforcers: real budgets on this machine, checked through the record of a study.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use analysis::Supply;
use analysis::empirical::Envelope;
use model::Enforcer;
use record::run::{Run, Status};
use record::supply::{
    Budget, ChosenBy, Machine, MeasuredSupply, SupplyRecord, SupplySummary, find, load,
};

use crate::support::{Need, begins_with_its_place, eventually, only_run, say, timecell, traces_of};
use crate::unprivileged::{as_nobody, open_place};

/// A study of every enforcer.
const BUDGETS: &[Need] = &[
    Need::Root,
    Need::RealTime,
    Need::GroupBudget(350),
    Need::DeadlineBudget,
];
/// The same, if tried sets need real cgroups.
const GROUPS: &[Need] = &[
    Need::Root,
    Need::RealTime,
    Need::RtGroups,
    Need::GroupBudget(350),
    Need::DeadlineBudget,
];

const QUICK: [&str; 5] = [
    "bench",
    "supply",
    "--quick",
    "--reservation",
    "3ms/10ms,10ms/50ms",
];

/// The properties of every measured supply, on any machine.
fn is_sound(supply: &MeasuredSupply) {
    let Budget {
        budget_ns,
        period_ns,
        ..
    } = supply.held;
    let lines: Vec<_> = (supply.points.iter())
        .map(|point| (point.supplied, point.per, point.delay_ns))
        .collect();
    let envelope = Envelope::of(&lines).unwrap();
    let (supplied, per) = envelope.rate();
    assert!(
        u128::from(supplied) * u128::from(period_ns) <= u128::from(budget_ns) * u128::from(per),
        "no more than granted: {supply:?}"
    );
    let mut before = 0;
    for &(window, received) in &supply.least {
        assert!(before <= received && received <= window, "{window} ns");
        assert!(envelope.sbf(window) <= received, "{window} ns of {lines:?}");
        before = received;
    }
    assert!(supply.received.cpu_ns > 0 && supply.received.cpu_ns < supply.received.of_ns);
    // Something held it: it waited at least once.
    assert!(supply.longest_gap_ns.most > 0);
    assert_eq!(supply.rounds, 1);
    let periods = supply.periods.unwrap();
    assert!(periods.least_ns <= periods.mean_ns && periods.mean_ns <= periods.most_ns);
    assert!(periods.count >= 5);
    assert_eq!(supply.textbook.delay_ns, 2 * (period_ns - budget_ns));
}

#[case(..BUDGETS)]
fn every_enforcer_of_this_kernel_is_measured_and_its_fit_lies_below(dir: &Path) {
    let said = say(dir, &QUICK).ends_with(0);
    assert!(said.out.contains("textbook's bound"), "{}", said.out);
    assert!(said.out.contains("the whole cpu"), "{}", said.out);
    let path = only_run(dir);
    let name = path.to_str().unwrap();
    let said = say(dir, &["report", name, "--json"]).ends_with(0);
    let json: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let supplies = load(&path).unwrap();
    let absent = json["not_measured"].as_array().unwrap();
    let planned = 2 * Enforcer::OF_BENCH.len();
    assert_eq!(supplies.len() + absent.len(), planned, "{}", said.out);
    assert!(!supplies.is_empty(), "{}", said.out);
    if Need::Freezer.unmet().is_none() {
        let mut all = supplies.iter();
        let held = all.any(|supply| supply.held.enforcer == Enforcer::Freezer);
        assert!(held, "{}", said.out);
    }
    supplies.iter().for_each(is_sound);
    let here = Machine::here();
    for supply in &supplies {
        assert_eq!(find(&supplies, &supply.held, &here), Ok(supply));
    }
    let elsewhere = Machine {
        kernel_release: Some("2.4.0".to_owned()),
        ..here
    };
    assert!(find(&supplies, &supplies[0].held, &elsewhere).is_err());
    let run = Run::open(&path).unwrap();
    assert_eq!(run.kind().unwrap(), record::Kind::Supply);
    let record = run.read::<SupplyRecord>().unwrap();
    for trial in &record.trials {
        let gaps = run.gaps(trial.number).unwrap();
        assert_eq!(gaps.header.complete, 1);
        assert_eq!(gaps.header.stretches, gaps.header.planned);
        let class = if trial.class.starts_with("FIFO") {
            1
        } else {
            6
        };
        assert_eq!(gaps.header.policy, class, "{trial:?}");
    }
    let summary = run.read::<SupplySummary>().unwrap();
    let host = summary.host.as_ref().unwrap();
    assert!(host.received.cpu_ns <= host.received.of_ns);
    tried_sets_are_accounted_for(&run, &supplies, &json);
    let page = fs::read_to_string(path.join("report.html")).unwrap();
    assert_eq!(page.contains("id=\"deadlines\""), !summary.tried.is_empty());
    for supply in &supplies {
        let name = supply.held.enforcer.name();
        assert!(
            page.contains(&format!("supply-{name}-3000us-10000us-t")),
            "{name}"
        );
    }
    again(dir, &path);
}

/// The run is studied anew from its raw gaps, exported and judged; in the end one of its files is damaged.
fn again(dir: &Path, path: &Path) {
    let name = path.to_str().unwrap();
    let before = Run::open(path).unwrap().read::<SupplySummary>().unwrap();
    fs::remove_file(path.join("summary.json")).unwrap();
    assert!(load(path).is_err(), "nothing to load");
    let said = say(dir, &["report", name, "--figures", "svg"]).ends_with(0);
    assert!(said.out.contains("SVG files in svg"), "{}", said.out);
    assert_eq!(
        Run::open(path).unwrap().read::<SupplySummary>().unwrap(),
        before
    );
    let svg = fs::read_dir(dir.join("svg")).unwrap().count();
    assert_eq!(svg, before.supplies.len());
    say(dir, &["export", "--csv", name, "-o", "gaps.csv"]).ends_with(0);
    let csv = fs::read_to_string(dir.join("gaps.csv")).unwrap();
    assert!(
        csv.starts_with("run,host,trial,round,enforcer,budget_ns,"),
        "{}",
        &csv[..80]
    );
    assert!(csv.lines().count() > 10);
    assert!(begins_with_its_place(path, csv.lines().skip(1)));
    let refused = say(dir, &["report", "gaps.csv"]).ends_with(2);
    let own = "does not read back its own table of a study of supply";
    assert!(refused.error().contains(own), "{}", refused.error());
    crate::parquet::has_the_rows_of(dir, name, &csv);
    let refused = say(dir, &["report", name, "--fail-if", "latency.p99 > 1us"]).ends_with(4);
    let said = "a study of supply has no `latency.p99`";
    assert!(refused.out.contains(said), "{}", refused.out);
    let refused = say(dir, &["bench", "--resume", name]).ends_with(2);
    let said = "the run is complete, so there is nothing left to do";
    assert!(refused.error().contains(said), "{}", refused.error());
    // The longest gap of every budget is judged, on the page too, and the run is compared with itself.
    let words = [
        "report",
        name,
        "--fail-if",
        "gap.max > 1ns",
        "--baseline",
        name,
    ];
    let said = say(dir, &words).ends_with(3);
    assert!(said.out.contains("against the baseline"), "{}", said.out);
    let page = fs::read_to_string(path.join("report.html")).unwrap();
    assert!(page.contains("Thresholds: fails") && page.contains("id=\"baseline\""));
    // A truncated file is reported, and fails the run's report for that trial.
    let gaps = path.join("trials/1.gaps");
    let bytes = fs::read(&gaps).unwrap();
    fs::write(&gaps, &bytes[..bytes.len() - 1]).unwrap();
    let said = say(dir, &["report", name]).ends_with(0);
    assert!(said.out.contains("cut short"), "{}", said.out);
}

/// Every budget that can hold two tasks has its two sets or the reason why not, and every job of theirs is recorded.
fn tried_sets_are_accounted_for(run: &Run, supplies: &[MeasuredSupply], json: &serde_json::Value) {
    let tried = run.read::<SupplyRecord>().unwrap().tried;
    for supply in supplies {
        let sets: Vec<_> = tried
            .sets
            .iter()
            .filter(|set| set.held == supply.held)
            .collect();
        let name = supply.held.enforcer.name();
        let told = tried
            .without
            .iter()
            .any(|none| none.trial.starts_with(name));
        match sets.as_slice() {
            [] => assert!(told, "{supply:?}: neither sets nor a reason"),
            [one, two] => {
                assert_eq!(
                    [one.chosen_by, two.chosen_by],
                    [ChosenBy::Textbook, ChosenBy::Measured]
                );
                assert!(one.textbook.accepted && !one.measured.accepted, "{one:?}");
                assert!(one.measured.witness.is_some(), "{one:?}");
                assert!(two.measured.accepted, "{two:?}");
                assert!(one.tasks[0].period_ns < two.tasks[0].period_ns);
            }
            sets => panic!("{sets:?}"),
        }
    }
    assert_eq!(
        tried.trials.len(),
        2 * tried.sets.len(),
        "inside and without, one round"
    );
    for trial in &tried.trials {
        assert_eq!(trial.failure, None);
        let set = tried
            .sets
            .iter()
            .find(|set| set.number == trial.set)
            .unwrap();
        for (task, jobs) in set.tasks.iter().zip(&trial.jobs) {
            let header = run.task_samples(trial.number, &task.name).unwrap().header;
            assert_eq!(header.planned, u64::from(*jobs), "{trial:?}");
            assert_eq!(header.count + header.skipped, header.planned, "{trial:?}");
            assert_eq!(
                (header.policy, header.priority),
                (1, i32::from(task.priority))
            );
        }
    }
    let told = json["tried"].as_array().unwrap();
    assert_eq!(told.len(), tried.sets.len());
    for one in told {
        let number = one["set"]["number"].as_u64().unwrap();
        for (place, in_budget) in [("in_budget", true), ("without", false)] {
            let planned = (tried.trials.iter())
                .filter(|trial| u64::from(trial.set) == number && trial.in_budget == in_budget);
            let planned: u64 = planned
                .flat_map(|trial| &trial.jobs)
                .map(|jobs| u64::from(*jobs))
                .sum();
            let tasks = one[place]["tasks"].as_array().unwrap();
            let jobs = tasks.iter().map(|task| task["jobs"].as_u64().unwrap());
            assert_eq!(jobs.sum::<u64>(), planned, "{one}");
        }
    }
    let manifest = run.manifest().unwrap();
    assert_eq!(manifest.trials_done, manifest.trials_planned);
}

#[case(Root)]
fn without_rights_it_says_what_is_missing() {
    let (dir, binary) = open_place();
    let said = as_nobody(dir.path(), &binary, &["bench", "supply"]).ends_with(4);
    let error = said.error();
    assert!(error.contains("no supply can be measured here"), "{error}");
    assert!(error.contains("sudo"), "{error}");
    let dry = as_nobody(dir.path(), &binary, &["bench", "supply", "--dry-run"]).ends_with(4);
    assert!(dry.out.contains("will not be measured"), "{}", dry.out);
    assert!(!dir.path().join("runs").exists());
}

/// Only spinning threads, for long enough.
const SPINNING: [&str; 4] = ["--duration", "3s", "--reservation", "3ms/10ms"];
/// Two trials of spinning, then task sets that run for long enough.
const TRYING: [&str; 6] = [
    "--enforcer",
    "rt-cgroup",
    "--rounds",
    "1",
    "--reservation",
    "3ms/10ms",
];

/// Starts a study and waits until this many of its trials are recorded.
pub fn started(dir: &std::path::Path, words: &[&str], trials: u32) -> std::process::Child {
    let child = timecell()
        .current_dir(dir)
        .args(["bench", "supply"])
        .args(words)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    eventually("so many trials are on record", || {
        let runs = fs::read_dir(dir.join("runs"))
            .into_iter()
            .flatten()
            .flatten();
        let mut done = runs.filter_map(|run| Run::open(&run.path()).ok()?.manifest().ok());
        done.any(|manifest| manifest.trials_done >= trials)
    });
    child
}

#[case(..BUDGETS)]
fn ctrl_c_keeps_what_was_measured(dir: &Path) {
    let record = ends_by_ctrl_c(dir, started(dir, &SPINNING, 1));
    assert!(!record.trials.is_empty() && record.tried.trials.is_empty());
}

#[case(..GROUPS)]
fn ctrl_c_while_sets_are_tried_keeps_what_was_run(dir: &Path) {
    let words = [TRYING.as_slice(), &["--load", "cpu"]].concat();
    let record = ends_by_ctrl_c(dir, started(dir, &words, 3));
    assert_eq!(record.trials.len(), 2);
    assert!(!record.tried.trials.is_empty());
    let loads = record.tried.trials.iter().map(|trial| trial.load.as_ref());
    for load in loads.chain(record.trials.iter().map(|trial| trial.load.as_ref())) {
        assert_eq!(load.map(|load| load.name.as_str()), Some("cpu"));
    }
    let whole = record
        .tried
        .trials
        .iter()
        .find(|trial| trial.failure.is_none());
    let achieved = whole.and_then(|trial| Some(&trial.load.as_ref()?.achieved));
    assert!(achieved.is_some_and(|all| !all.is_empty()), "{whole:?}");
    let summary = Run::open(&only_run(dir))
        .unwrap()
        .read::<SupplySummary>()
        .unwrap();
    let tasks = summary
        .tried
        .iter()
        .flat_map(|one| one.in_budget.tasks.iter().chain(&one.without.tasks));
    assert!(
        tasks.map(|task| task.jobs).sum::<u64>() > 0,
        "{:?}",
        summary.tried
    );
}

/// Nothing is left but the measurements, which are studied.
fn ends_by_ctrl_c(dir: &std::path::Path, mut child: std::process::Child) -> SupplyRecord {
    // SAFETY: our own child.
    unsafe { libc::kill(child.id().cast_signed(), libc::SIGINT) };
    assert_eq!(child.wait().unwrap().code(), Some(1));
    let traces = traces_of(child.id());
    assert!(traces.is_empty(), "left {traces:#?}");
    let run = Run::open(&only_run(dir)).unwrap();
    assert_eq!(run.manifest().unwrap().status, Status::Interrupted);
    let record = run.read::<SupplyRecord>().unwrap();
    assert!((record.trials.iter()).all(|trial| run.gaps(trial.number).is_ok()));
    assert!(run.dir().join("report.html").is_file());
    record
}

#[case(..BUDGETS)]
fn clean_removes_the_group_of_a_killed_study() {
    killed_after(&SPINNING, 1);
}

#[case(..GROUPS)]
fn clean_removes_what_a_study_killed_while_it_tried_sets_left() {
    killed_after(&TRYING, 2);
}

/// How the only run in `dir` ended, by its own record.
fn status(dir: &Path) -> Status {
    let run = Run::open(&only_run(dir)).unwrap();
    run.manifest().unwrap().status
}

fn killed_after(words: &[&str], trials: u32) {
    let dir = tempfile::tempdir().unwrap();
    let mut child = started(dir.path(), words, trials);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(
        !traces_of(child.id()).is_empty(),
        "the test sees nothing to remove"
    );
    let said = say(dir.path(), &["clean"]).ends_with(0);
    assert!(
        said.out.contains(&format!("process {}", child.id())),
        "{}",
        said.out
    );
    eventually("no trace is left", || traces_of(child.id()).is_empty());
    assert_eq!(status(dir.path()), Status::Killed);
    // The measurements until then can be studied.
    let run = only_run(dir.path());
    say(dir.path(), &["report", run.to_str().unwrap()]).ends_with(0);
}
