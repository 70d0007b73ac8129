//! Runs of every kind whose coordinator is killed go on where they were, and end as if nothing had happened but for the gap.
//! Those of periodic jobs are in `long_runs`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;

use record::isolation::IsolationRecord;
use record::run::{Manifest, Run, Status};
use record::scale::ScaleSummary;
use record::series::SeriesRecord;
use record::supply::SupplyRecord;

use crate::support::{begun, eventually, only_run, say};

fn manifest(run: &Path) -> Manifest {
    Run::open(run).unwrap().manifest().unwrap()
}

/// Kills a bench once so many trials are on record.
fn killed(dir: &Path, mut bench: Child, trials: u32) -> PathBuf {
    eventually("so many trials are on record", || {
        if let Some(status) = bench.try_wait().unwrap() {
            let notes = fs::read_to_string(dir.join("begun.err")).unwrap();
            panic!("it ended too early: {status}\n{notes}");
        }
        let mut runs = fs::read_dir(dir.join("runs"))
            .into_iter()
            .flatten()
            .flatten();
        let manifest = |run: &Path| Run::open(run).ok()?.manifest().ok();
        runs.any(|run| manifest(&run.path()).is_some_and(|run| run.trials_done >= trials))
    });
    bench.kill().unwrap();
    bench.wait().unwrap();
    only_run(dir)
}

/// Resumes the run to its end; it is on record and told that it was.
#[track_caller]
fn resumed(dir: &Path, run: &Path, times: usize) -> serde_json::Value {
    resumed_with(dir, run, times, 0)
}

/// The same, for a run whose thresholds give this exit code.
#[track_caller]
fn resumed_with(dir: &Path, run: &Path, times: usize, code: i32) -> serde_json::Value {
    let name = run.to_string_lossy();
    let said = say(dir, &["bench", "--resume", &name, "--json"]).ends_with(code);
    let json: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let manifest = manifest(run);
    assert_eq!(manifest.status, Status::Complete);
    assert_eq!(manifest.trials_done, manifest.trials_planned);
    assert_eq!(manifest.resumed.len(), times, "{:?}", manifest.resumed);
    assert_eq!(
        json["resumed"].as_array().unwrap().len(),
        times,
        "{}",
        said.out
    );
    let gap = manifest.resumed.last().unwrap();
    assert!(gap.ended.contains("was killed when"), "{gap:?}");
    assert!(manifest.started <= gap.last_record && gap.last_record <= gap.resumed);
    let said = say(dir, &["report", &name]).ends_with(code);
    assert!(
        said.out.contains("nothing was measured from"),
        "{}",
        said.out
    );
    let page = fs::read_to_string(run.join("report.html")).unwrap();
    assert!(page.contains("Resumed:"));
    let error = say(dir, &["bench", "--resume", &name]).ends_with(2).error();
    assert!(error.contains("the run is complete"), "{error}");
    json
}

/// An option that would give another run is refused, and changes nothing.
fn is_held_to_its_plan(dir: &Path, run: &Path) {
    let name = run.to_string_lossy();
    let error = |words: &[&str]| {
        let words = [&["bench", "--resume", &name], words].concat();
        say(dir, &words).ends_with(2).error()
    };
    let path = run.join("plan.json");
    let plan = fs::read_to_string(&path).unwrap();
    let ours: serde_json::Value = serde_json::from_str(&plan).unwrap();
    let mut other = ours.clone();
    other["trials"][0] = "another".into();
    fs::write(&path, other.to_string()).unwrap();
    let said = error(&[]);
    assert!(said.contains("trial 1 was `another` and is `"), "{said}");
    assert_eq!(error(&["--dry-run"]), said);
    let mut other = ours;
    other["options"]["quick"] = "perhaps".into();
    fs::write(&path, other.to_string()).unwrap();
    let said = error(&[]);
    assert!(said.contains("its options are not those of"), "{said}");
    fs::remove_file(&path).unwrap();
    let said = error(&[]);
    assert!(said.contains("the run has no plan.json"), "{said}");
    fs::write(&path, &plan).unwrap();
    let said = error(&["--require-rt"]);
    assert!(said.contains("--require-rt"), "{said}");
    is_held_to_its_machine(dir, run);
    let said = error(&["--baseline", &name]);
    assert!(said.contains("it is the run that is resumed"), "{said}");
    // As another process that resumes it holds it.
    let lock = fs::File::open(run).unwrap();
    lock.lock().unwrap();
    let said = say(dir, &["bench", "--resume", &name]).ends_with(4).error();
    assert!(said.contains("is measuring this run"), "{said}");
    drop(lock);
    assert!(manifest(run).resumed.is_empty());
}

/// On another machine it is refused, by a dry run too.
fn is_held_to_its_machine(dir: &Path, run: &Path) {
    let name = run.to_string_lossy();
    let path = run.join("provenance.json");
    let provenance = fs::read_to_string(&path).unwrap();
    let mut other: serde_json::Value = serde_json::from_str(&provenance).unwrap();
    other["cpu_model"] = "Another 9000".into();
    fs::write(&path, other.to_string()).unwrap();
    let said = say(dir, &["bench", "--resume", &name]).ends_with(2).error();
    assert!(said.contains("begun on another machine"), "{said}");
    let dry = ["bench", "--resume", &name, "--dry-run"];
    assert_eq!(say(dir, &dry).ends_with(2).error(), said);
    fs::write(&path, &provenance).unwrap();
    say(dir, &dry).ends_with(0);
}

/// The numbers from 1, each once.
fn in_order(numbers: impl Iterator<Item = u32>) -> u32 {
    let numbers: Vec<u32> = numbers.collect();
    let all: Vec<u32> = (1..=numbers.len() as u32).collect();
    assert_eq!(numbers, all);
    all.len() as u32
}

#[case(Root, RealTime, DeadlineBudget)]
fn a_study_of_supply_goes_on_while_threads_spin(dir: &Path) {
    let words =
        "bench supply --quick --rounds 2 --enforcer deadline --reservation 3ms/10ms --no-try";
    let words: Vec<&str> = words.split(' ').collect();
    let path = killed(dir, begun(dir, &words), 1);
    let run = Run::open(&path).unwrap();
    let before = run.read::<SupplyRecord>().unwrap();
    is_held_to_its_plan(dir, &path);
    // As of a trial that was cut off before it was on record.
    fs::write(path.join("trials/4.gaps"), "cut short").unwrap();
    resumed(dir, &path, 1);
    let after = run.read::<SupplyRecord>().unwrap();
    assert!(after.trials.starts_with(&before.trials));
    assert_eq!(in_order(after.trials.iter().map(|trial| trial.number)), 4);
    let order: Vec<_> = after
        .trials
        .iter()
        .map(|trial| (trial.round, trial.held))
        .collect();
    let [(1, held), (1, host), (2, first), (2, last)] = order[..] else {
        panic!("{order:?}");
    };
    assert_eq!(
        (held.is_some(), host, first, last),
        (true, None, None, held)
    );
    assert!((1..=4).all(|number| run.gaps(number).is_ok()));
}

#[case(Root, RealTime, GroupsOfItsOwn(350))]
fn a_study_of_supply_goes_on_while_sets_are_tried(dir: &Path) {
    let words = "bench supply --quick --enforcer rt-cgroup --reservation 3ms/10ms";
    let words: Vec<&str> = words.split(' ').collect();
    let path = killed(dir, begun(dir, &words), 3);
    let run = Run::open(&path).unwrap();
    let before = run.read::<SupplyRecord>().unwrap();
    assert!(!before.tried.trials.is_empty());
    resumed(dir, &path, 1);
    let after = run.read::<SupplyRecord>().unwrap();
    assert_eq!(after.trials, before.trials);
    // The sets are not chosen again.
    assert_eq!(after.tried.sets, before.tried.sets);
    assert!(after.tried.trials.starts_with(&before.tried.trials));
    let tried = after.tried.trials.iter().map(|trial| trial.number);
    let all = in_order(after.trials.iter().map(|trial| trial.number).chain(tried));
    assert_eq!(all as usize, 2 + 2 * after.tried.sets.len());
}

#[case(Root, RealTime, Alone)]
fn a_study_of_isolation_goes_on(dir: &Path) {
    let words = "bench isolation contest --quick --duration 1s --utilisation 0.3";
    let words: Vec<&str> = words.split(' ').collect();
    let path = killed(dir, begun(dir, &words), 2);
    let run = Run::open(&path).unwrap();
    let before = run.read::<IsolationRecord>().unwrap();
    resumed(dir, &path, 1);
    let after = run.read::<IsolationRecord>().unwrap();
    assert_eq!(after.sets, before.sets);
    assert!(after.contests.starts_with(&before.contests));
    let all = in_order(after.contests.iter().map(|trial| trial.number));
    assert_eq!(all, manifest(&path).trials_planned);
    for (at, trial) in after.contests.iter().enumerate() {
        let again = after.contests[..at].iter().any(|one| one.arm == trial.arm);
        assert!(!again, "{:?}", trial.arm);
    }
}

#[case(Root, GroupsOfItsOwn(120))]
fn single_measurements_go_on() {
    // Each round takes longer than the heartbeat is waited for: all of them 7 s and more, of which 2.5 s are measured at first.
    const ROUNDS: u32 = 24;
    let dir = tempfile::tempdir().unwrap();
    let rounds = ROUNDS.to_string();
    let words = "bench recovery --engine bare --heartbeat-timeout 300ms --rounds";
    let words: Vec<&str> = words.split(' ').chain([rounds.as_str()]).collect();
    let mut bench = begun(dir.path(), &words);
    eventually("the run is there", || dir.path().join("runs").is_dir());
    std::thread::sleep(std::time::Duration::from_millis(2_500));
    // Measurements are written every ten seconds, and now.
    // SAFETY: our own child.
    unsafe { libc::kill(bench.id().cast_signed(), libc::SIGINT) };
    assert_eq!(bench.wait().unwrap().code(), Some(1));
    let path = only_run(dir.path());
    let on_record = manifest(&path).trials_done;
    assert!(on_record > 0 && on_record < 2 * ROUNDS, "{on_record}");
    let name = path.to_string_lossy().into_owned();
    let bench = begun(dir.path(), &["bench", "--resume", &name]);
    eventually("it goes on", || manifest(&path).status == Status::Running);
    std::thread::sleep(std::time::Duration::from_millis(400));
    killed(dir.path(), bench, on_record);
    resumed(dir.path(), &path, 2);
    assert_eq!(manifest(&path).resumed[0].ended, "interrupted");
    let run = Run::open(&path).unwrap();
    let record = run.read::<SeriesRecord>().unwrap();
    let mut orders = Vec::new();
    for part in ["payload killed", "payload wedged"] {
        let found = record.series.iter().find(|series| series.part == part);
        let series = found.unwrap();
        let values = series.values.iter().map(|value| (value.round, value.order));
        let failures = series.failures.iter().map(|one| (one.round, one.order));
        let mut all: Vec<(u32, u32)> = values.chain(failures).collect();
        all.sort_unstable();
        let rounds: Vec<u32> = all.iter().map(|(round, _)| *round).collect();
        assert_eq!(rounds, (1..=ROUNDS).collect::<Vec<_>>(), "{part}");
        orders.extend(all.into_iter().map(|(_, order)| order));
    }
    orders.sort_unstable();
    assert_eq!(in_order(orders.into_iter()), 2 * ROUNDS);
}

#[case(Root, GroupsOfItsOwn(200))]
fn growing_numbers_of_cells_go_on(dir: &Path) {
    let text = "schema = 1\nname = \"crowd\"\nrounds = 2\n[workload]\nkind = \"mac\"\nsteps = 1000\njobs = 100\nperiod = \"1ms\"\n\
                pacing = \"relative\"\n[scheduling]\nclass = \"other\"\n[scale]\nengines = [\"embedded\"]\ncounts = [1, 3]\n\
                total_jobs = 300\n";
    fs::write(dir.join("crowd.toml"), text).unwrap();
    // It always holds.
    let words = ["bench", "crowd.toml", "--fail-if", "failed >= 0"];
    let path = killed(dir, begun(dir, &words), 1);
    let run = Run::open(&path).unwrap();
    let first = run.trial(1).unwrap();
    is_held_to_its_machine(dir, &path);
    let json = resumed_with(dir, &path, 1, 3);
    assert_eq!(json["judged"]["outcome"], "fails", "{json}");
    assert_eq!(run.trial(1).unwrap(), first);
    let numbers = run.trial_numbers().unwrap();
    let mut whole = Vec::new();
    for number in &numbers {
        let trial = run.trial(*number).unwrap();
        if trial.cut_off.is_none() {
            whole.push((trial.round, trial.cells.len()));
        }
    }
    assert_eq!(whole, [(1, 1), (1, 3), (2, 1), (2, 3)]);
    let summary = run.read::<ScaleSummary>().unwrap();
    for point in &summary.points {
        assert_eq!(point.unexplained + point.not_reached, 0, "{}", point.trial);
        assert_eq!(point.executed + point.skipped, point.planned);
        // The parts of a round are one round.
        assert_eq!((point.rounds, point.crowds.len()), (2, 2));
        assert_eq!(point.cells.number.len() as u32, 2 * point.count);
    }
}
