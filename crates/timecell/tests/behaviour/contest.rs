//! Temporal isolation: real contests of two cells on this machine, checked through the record of a study. How many
//! deadlines are missed depends on the machine; that every one is accounted for is asserted.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use model::Enforcer;
use record::isolation::{
    Arm, Attacker, ContestTrial, IsolationRecord, IsolationSummary, ReceivedVerdict,
};
use record::run::{Run, Status};

use crate::support::{Said, begins_with_its_place, eventually, only_run, say, timecell, traces_of};
use crate::unprivileged::{as_nobody, open_place};

/// The smallest study with a load.
const QUICK: [&str; 12] = [
    "bench",
    "isolation",
    "contest",
    "--quick",
    "--duration",
    "1s",
    // Small, so that it fits even where others hold the machine's real-time budget.
    "--utilisation",
    "0.3",
    "--load",
    "idle,cpu",
    // Holds for any measurement, and kept with the run.
    "--fail-if",
    "missed > 100000",
];

/// Whether the machine balances over all its cpus; `None` if that is unknown.
fn balancing() -> Option<String> {
    fs::read_to_string("/sys/fs/cgroup/cpuset/cpuset.sched_load_balance").ok()
}

fn is_whole(run: &Run, trial: &ContestTrial) {
    assert_eq!(trial.failure, None, "{trial:?}");
    let cells = if trial.arm.attacker == Attacker::Absent {
        1
    } else {
        2
    };
    assert_eq!(trial.jobs.len(), 3 * cells);
    for (task, jobs) in &trial.jobs {
        let samples = run.task_samples(trial.number, task).unwrap();
        assert_eq!(samples.header.complete, 1);
        assert_eq!(samples.header.planned, u64::from(*jobs));
        assert_eq!(
            samples.header.count + samples.header.skipped,
            samples.header.planned
        );
        let policy = match trial.arm.enforcer {
            Some(Enforcer::Deadline) => 6,
            _ => 1,
        };
        assert_eq!(samples.header.policy, policy, "{trial:?}");
        if trial.cpus.len() == 1 {
            assert_eq!(
                [samples.header.cpu_first, samples.header.cpu_last],
                [trial.cpus[0]; 2]
            );
        }
    }
}

#[case(Root, RealTime, Alone)]
fn every_arm_is_run_and_every_deadline_accounted_for_and_reported_again() {
    let before = balancing();
    let dir = tempfile::tempdir().unwrap();
    let said = say(dir.path(), &QUICK).ends_with(0);
    assert_eq!(balancing(), before, "cpusets are as they were");
    arms(dir.path(), &said);
    half_have_a_load(dir.path());
    again(dir.path(), &said);
}

fn arms(dir: &Path, said: &Said) {
    let run = Run::open(&only_run(dir)).unwrap();
    assert!(run.kind().unwrap() == record::Kind::Isolation && run.has_no_experiment());
    let summary = run.read::<IsolationSummary>().unwrap();
    let record = run.read::<IsolationRecord>().unwrap();
    assert_eq!(record.overrun_permille, 1_800);
    record
        .contests
        .iter()
        .for_each(|trial| is_whole(&run, trial));
    assert_eq!(
        summary.arms.len(),
        record.contests.len(),
        "one round of one utilisation"
    );
    let quiet = || record.contests.iter().filter(|trial| trial.load.is_none());
    let enforcers = quiet().filter(|trial| trial.arm.enforcer.is_some()).count();
    assert_eq!(quiet().count(), 3 + enforcers);
    let all = Enforcer::OF_BENCH.len();
    assert_eq!(enforcers + summary.not_measured.len(), all, "{}", said.out);
    // The record has the cells' budgets for every set that the enforcer takes part in.
    for &enforcer in Enforcer::OF_BENCH {
        let mut contests = record.contests.iter();
        let takes_part = contests.any(|trial| trial.arm.enforcer == Some(enforcer));
        let by_cell = takes_part && enforcer != Enforcer::Deadline;
        for set in &record.sets {
            let both = [&set.victim, &set.attacker].map(|cell| cell.budget_of(enforcer).is_some());
            assert_eq!(both, [by_cell; 2], "{enforcer:?}: {set:?}");
        }
    }
    assert_eq!(summary.arms[0].arm, Arm::NOISE);
    for arm in &summary.arms {
        let load = |trial: &ContestTrial| trial.load.as_ref().map(|load| load.name.clone());
        let trial = record
            .contests
            .iter()
            .find(|trial| trial.arm == arm.arm && load(trial) == arm.load)
            .unwrap();
        let jobs = |cell: &str| -> u64 {
            let of = trial.jobs.iter().filter(|(task, _)| task.starts_with(cell));
            of.map(|(_, jobs)| u64::from(*jobs)).sum()
        };
        assert_eq!(arm.victim.jobs, jobs("victim"));
        assert_eq!(
            arm.attacker.map_or(0, |misses| misses.jobs),
            jobs("attacker")
        );
        for misses in [Some(arm.victim), arm.attacker].into_iter().flatten() {
            assert!(misses.missed() <= misses.jobs, "{arm:?}");
            assert_eq!(misses.trials_with, u64::from(misses.missed() > 0));
        }
    }
    // An overrunning job computes longer than it declares, on any machine.
    let set = &record.sets[0];
    for trial in quiet() {
        let steps = |task: &str| run.task_samples(trial.number, task).unwrap().header.steps;
        if trial.arm.attacker == Attacker::Overruns {
            let [attack, victim] = [&set.attacker.tasks[0], &set.victim.tasks[0]];
            let per_ns = |task: &record::isolation::DrawnTask| {
                f64::from(steps(&task.name)) / task.wcet_ns as f64
            };
            // Each is calibrated separately, to within some per cent.
            let overrun = per_ns(attack) / per_ns(victim);
            assert!((1.5..3.4).contains(&overrun), "{overrun}");
        }
    }
    let page = fs::read_to_string(run.dir().join("report.html")).unwrap();
    assert!(page.contains("isolation-misses-t") && page.contains("The task sets"));
}

#[case(Root, RealTime, Alone)]
fn cells_that_spin_receive_and_are_billed(dir: &Path) {
    let words = [
        "bench",
        "isolation",
        "received",
        "--quick",
        "--reservation",
        "3ms/100ms,4ms/100ms",
        "--json",
    ];
    let said = say(dir, &words).ends_with(0);
    let summary: IsolationSummary = serde_json::from_str(&said.out).unwrap();
    assert!(summary.arms.is_empty() && summary.standings.is_empty());
    assert_eq!(
        summary.received.len() / 2 + summary.not_measured.len(),
        Enforcer::OF_BENCH.len(),
        "{}",
        said.out
    );
    assert!(!summary.received.is_empty(), "{}", said.out);
    for one in &summary.received {
        // 20 periods without the first; a cell that waits for its budget at the end sees one more.
        assert!(one.trials == 1 && one.periods >= 19, "{one:?}");
        assert_eq!(one.each.permille.len() as u64, one.periods);
        let each = &one.each;
        let ascending = [each.least, each.low, each.median, each.high, each.most];
        assert!(ascending.is_sorted(), "{one:?}");
        assert!(each.least <= one.received && one.received <= each.most);
        assert!(one.billed > 0.0);
        assert_eq!(
            one.verdict,
            ReceivedVerdict::TooShort,
            "a tick is more than a hundredth"
        );
    }
    let run = Run::open(&only_run(dir)).unwrap();
    assert_eq!(run.read::<IsolationSummary>().unwrap(), summary);
    for trial in &run.read::<IsolationRecord>().unwrap().received {
        assert_eq!(trial.failure, None);
        for place in 1..=2 {
            assert_eq!(
                run.cell_gaps(trial.number, place).unwrap().header.complete,
                1
            );
        }
    }
}

/// Half of the contests are beside the load, and each of those says how much it did.
fn half_have_a_load(dir: &Path) {
    let run = Run::open(&only_run(dir)).unwrap();
    let name = run.dir().to_str().unwrap();
    let said = say(dir, &["report", name, "--json"]).ends_with(0);
    let summary: IsolationSummary = serde_json::from_str(&said.out).unwrap();
    assert_eq!(run.read::<IsolationSummary>().unwrap(), summary);
    let standings = summary.standings.iter();
    let loads: Vec<_> = standings.map(|one| one.load.as_deref()).collect();
    assert!(
        loads.contains(&None) && loads.contains(&Some("cpu")),
        "{loads:?}"
    );
    let record = run.read::<IsolationRecord>().unwrap();
    let beside: Vec<_> = record
        .contests
        .iter()
        .filter_map(|trial| trial.load.as_ref())
        .collect();
    for load in &beside {
        assert!(
            load.failure.is_none() && !load.achieved.is_empty(),
            "{load:?}"
        );
    }
    assert_eq!(beside.len() * 2, record.contests.len());
}

fn again(dir: &Path, said: &Said) {
    assert!(
        said.out.contains("against the host's own noise"),
        "{}",
        said.out
    );
    assert!(said.out.contains("the machine's own noise"), "{}", said.out);
    let path = only_run(dir);
    let name = path.to_str().unwrap();
    let before = Run::open(&path)
        .unwrap()
        .read::<IsolationSummary>()
        .unwrap();
    fs::remove_file(path.join("summary.json")).unwrap();
    let said = say(dir, &["report", name, "--figures", "svg"]).ends_with(0);
    assert!(said.out.contains("SVG files in svg"), "{}", said.out);
    assert!(said.out.contains("missed > 100000"), "{}", said.out);
    assert_eq!(
        Run::open(&path)
            .unwrap()
            .read::<IsolationSummary>()
            .unwrap(),
        before
    );
    let judged = |threshold: &str, code: i32| {
        say(dir, &["report", name, "--fail-if", threshold]).ends_with(code)
    };
    judged("none.missed >= 0", 3);
    judged("latency.p99 > 1us", 4);
    say(dir, &["export", "--csv", name, "-o", "jobs.csv"]).ends_with(0);
    let csv = fs::read_to_string(dir.join("jobs.csv")).unwrap();
    assert!(csv.starts_with("run,host,trial,round,utilisation,set,load,attacker,"));
    assert!(begins_with_its_place(&path, csv.lines().skip(1)));
    assert!(
        csv.lines()
            .any(|line| line.contains(",overruns,,attacker,attacker-1,"))
    );
    let refused = say(dir, &["report", "jobs.csv"]).ends_with(2);
    let own = "does not read back its own table of a study of isolation";
    assert!(refused.error().contains(own), "{}", refused.error());
    crate::parquet::has_the_rows_of(dir, name, &csv);
    say(dir, &["export", "--cyclictest-json", name]).ends_with(2);
    let page = fs::read_to_string(path.join("report.html")).unwrap();
    assert!(page.contains("Thresholds: "), "verdicts stand on the page");
    let said = say(dir, &["report", name, "--baseline", name]).ends_with(0);
    assert!(said.out.contains("against the baseline"), "{}", said.out);
    let refused = say(dir, &["report", name, "--against", "published"]).ends_with(2);
    let what = "a study of isolation has no published figures to be shown beside";
    assert!(refused.error().contains(what), "{}", refused.error());
    let words = [
        "bench",
        "isolation",
        "--fail-if",
        "latency.p99 > 1us",
        "--dry-run",
    ];
    let refused = say(dir, &words).ends_with(2);
    assert!(
        refused.error().contains("it has missed and late"),
        "{}",
        refused.error()
    );
    let refused = say(dir, &["bench", "--resume", name]).ends_with(2);
    assert!(
        refused.error().contains("the run is complete"),
        "{}",
        refused.error()
    );
    // A truncated samples file is reported, and its trial left out.
    let samples = path.join("trials/1/victim-1.samples");
    let bytes = fs::read(&samples).unwrap();
    fs::write(&samples, &bytes[..bytes.len() - 1]).unwrap();
    let said = say(dir, &["report", name]).ends_with(0);
    assert!(said.out.contains("trial 1 ("), "{}", said.out);
    let after = Run::open(&path)
        .unwrap()
        .read::<IsolationSummary>()
        .unwrap();
    assert_eq!(after.arms.len() + 1, before.arms.len());
}

#[case(Root, RealTime, Alone)]
fn the_same_seed_gives_the_same_sets(dir: &Path) {
    let dry = |words: &[&str]| {
        let all = [
            &[
                "bench",
                "isolation",
                "contest",
                "--rounds",
                "2",
                "--dry-run",
            ],
            words,
        ]
        .concat();
        say(dir, &all).ends_with(0).out
    };
    let tight = ["--utilisation", "0.6"];
    assert!(dry(&tight).contains("utilisation 0.6: "), "{}", dry(&tight));
    assert_eq!(dry(&tight), dry(&tight));
    let text = dry(&["--utilisation", "0.4,0.6", "--enforcer", "deadline"]);
    assert!(!text.contains("overruns, rt-cgroup"), "{text}");
    assert!(
        text.contains("U 0.4, attacker overruns, deadline"),
        "{text}"
    );
    assert!(!dir.join("runs").exists());
}

#[case(Root)]
fn without_rights_it_says_what_is_missing() {
    let (dir, binary) = open_place();
    let said = as_nobody(dir.path(), &binary, &["bench", "isolation"]).ends_with(4);
    let error = said.error();
    assert!(
        error.contains("isolation cannot be measured here"),
        "{error}"
    );
    assert!(error.contains("sudo"), "{error}");
    as_nobody(dir.path(), &binary, &["bench", "isolation", "--dry-run"]).ends_with(4);
    assert!(!dir.path().join("runs").exists());
}

/// Starts a study and waits until `begun` holds for its run.
fn started(dir: &Path, words: &[&str], begun: &dyn Fn(u32) -> bool) -> std::process::Child {
    let child = timecell()
        .current_dir(dir)
        .args(["bench", "isolation"])
        .args(words)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    eventually("a trial under the enforcer runs", || begun(child.id()));
    child
}

/// Whether a cpuset of coordinator `pid` exists.
fn has_split(pid: u32) -> bool {
    ["/sys/fs/cgroup/cpuset", "/sys/fs/cgroup"]
        .iter()
        .any(|mount| Path::new(&format!("{mount}/timecell-cpus-{pid}")).exists())
}

#[case(Root, RealTime, Alone)]
fn ctrl_c_keeps_what_was_measured() {
    let dir = tempfile::tempdir().unwrap();
    let before = balancing();
    let words = [
        "contest",
        "--utilisation",
        "0.2",
        "--duration",
        "3s",
        "--rounds",
        "5",
        "--enforcer",
        "deadline",
    ];
    let on_record = || {
        let runs = fs::read_dir(dir.path().join("runs"));
        let runs = runs.into_iter().flatten().flatten();
        let mut done = runs.filter_map(|run| Run::open(&run.path()).ok()?.manifest().ok());
        done.any(|manifest| manifest.trials_done >= 1)
    };
    let mut child = started(dir.path(), &words, &|pid| on_record() && has_split(pid));
    // SAFETY: our own child.
    unsafe { libc::kill(child.id().cast_signed(), libc::SIGINT) };
    assert_eq!(child.wait().unwrap().code(), Some(1));
    let traces = traces_of(child.id());
    assert!(traces.is_empty(), "left {traces:#?}");
    assert!(!has_split(child.id()));
    assert_eq!(balancing(), before);
    let run = Run::open(&only_run(dir.path())).unwrap();
    assert_eq!(run.manifest().unwrap().status, Status::Interrupted);
    let record = run.read::<IsolationRecord>().unwrap();
    assert!(!record.contests.is_empty());
    record
        .contests
        .iter()
        .for_each(|trial| is_whole(&run, trial));
    assert!(run.dir().join("report.html").is_file());
}

/// How the only run in `dir` ended, by its own record.
fn status(dir: &Path) -> Status {
    let run = Run::open(&only_run(dir)).unwrap();
    run.manifest().unwrap().status
}

#[case(Root, RealTime, GroupsOfItsOwn(200))]
fn clean_removes_the_groups_of_a_killed_study(dir: &Path) {
    let groups = |pid: u32| {
        let top = host::rtgroup::detect()
            .unwrap()
            .join(format!("timecell-{pid}"));
        top.join("1").exists() && top.join("2").exists()
    };
    let words = [
        "received",
        "--reservation",
        "2ms/100ms,3ms/100ms",
        "--enforcer",
        "rt-cgroup",
    ];
    let mut child = started(dir, &words, &groups);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(
        !traces_of(child.id()).is_empty(),
        "the test sees nothing to remove"
    );
    let said = say(dir, &["clean"]).ends_with(0);
    assert!(
        said.out.contains(&format!("process {}", child.id())),
        "{}",
        said.out
    );
    eventually("no trace is left", || traces_of(child.id()).is_empty());
    assert_eq!(status(dir), Status::Killed);
    // The measurements until then can be studied.
    let run = only_run(dir);
    say(dir, &["report", run.to_str().unwrap()]).ends_with(0);
}
