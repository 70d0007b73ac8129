//! Trials that take turns on their cpus.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use record::run::{Run, Status};
use record::summary::RunSummary;
use study::Standing;

use crate::long_runs::ended_by;
use crate::support::{Said, begun, eventually, in_its_loop, only_run, payloads, say, traces_of};

/// Trials `one`, `two` (a pair of cells) and `three` in turns, and `other`, which differs and has the machine to itself.
fn file(dir: &Path, rounds: u32, jobs: u32) -> String {
    let text = format!(
        "schema = 1\nname = \"small\"\nrounds = {rounds}\n[workload]\nkind = \"mac\"\nsteps = 1000\njobs = {jobs}\n\
         [turns]\n\
         [[trial]]\nname = \"one\"\ncells = [\"bare\"]\n\
         [[trial]]\nname = \"two\"\ncells = [\"embedded\", \"embedded\"]\n\
         [[trial]]\nname = \"three\"\ncells = [\"bare\"]\n\
         [[trial]]\nname = \"other\"\nperiod = \"2ms\"\njobs = 20\ncells = [\"bare\"]\n"
    );
    let path = dir.join("small.toml");
    fs::write(&path, text).unwrap();
    path.to_string_lossy().into_owned()
}

fn summary(run: &Path) -> RunSummary {
    serde_json::from_slice(&fs::read(run.join("summary.json")).unwrap()).unwrap()
}

#[case(GroupBudget(950))]
fn nobody_works_in_the_turn_of_another(dir: &Path) {
    let file = file(dir, 3, 60);
    let plan = say(dir, &["bench", &file, "--dry-run"]).ends_with(0);
    assert!(plan.out.contains("in turns of 12ms"), "{}", plan.out);
    let said = say(dir, &["bench", &file]).ends_with(0);
    let path = only_run(dir);
    let run = Run::open(&path).unwrap();
    let trials: Vec<_> = (1..=12).map(|n| run.trial(n).unwrap()).collect();
    for round in trials.chunks(4) {
        let turns: Vec<_> = round[..3].iter().map(|t| t.turns.unwrap()).collect();
        assert_eq!(round[3].turns, None);
        assert!(
            turns
                .iter()
                .all(|t| (t.jobs, t.arms, t.seed) == (12, 3, turns[0].seed))
        );
        // The order of creation is random.
        let mut arms: Vec<u32> = turns.iter().map(|t| t.arm).collect();
        arms.sort_unstable();
        assert_eq!(arms, [0, 1, 2]);
        // First and last release of each turn of each trial.
        let mut spans: Vec<(i64, i64, usize)> = Vec::new();
        for (place, trial) in round[..3].iter().enumerate() {
            for cell in &trial.cells {
                let samples = run.samples(trial.number, &cell.id).unwrap().unwrap();
                assert_eq!(samples.header.count + samples.header.skipped, 60);
                for lap in 0..5 {
                    let own = samples.samples.iter().filter(|s| s.index / 12 == lap);
                    let releases: Vec<i64> = own.map(|s| s.release_ns).collect();
                    if let (Some(first), Some(last)) = (releases.first(), releases.last()) {
                        spans.push((*first, *last, place));
                    }
                }
            }
        }
        spans.sort_unstable();
        for pair in spans.windows(2) {
            let [(_, end, of), (begin, _, next)] = [pair[0], pair[1]];
            assert!(of == next || begin - end >= 2_000_000, "{spans:?}");
        }
    }
    assert_ne!(trials[0].turns.unwrap().seed, trials[4].turns.unwrap().seed);
    let cells = summary(&path).cells;
    for cell in &cells {
        let laps: Vec<u64> = cell.in_turns.iter().map(|turns| turns.laps).collect();
        match cell.trial.as_str() {
            "two" | "three" => {
                assert_eq!(laps.len(), 3, "one for each metric");
                // A lap counts unless the machine delayed all jobs of a turn.
                assert!(laps.iter().all(|laps| (1..=15).contains(laps)), "{laps:?}");
                assert!(cell.against_baseline.is_some());
            }
            _ => assert!(laps.is_empty()),
        }
    }
    assert!(
        said.out.contains("the median execution time"),
        "{}",
        said.out
    );
}

#[case(Root, GroupsOfItsOwn(280))]
fn a_killed_cell_fails_its_trial_and_no_other(dir: &Path) {
    let file = file(dir, 1, 1_500);
    let child = begun(dir, &["bench", &file]);
    // One process for each of the four cells.
    eventually("the cells run", || payloads(child.id()).len() == 4);
    let of_pair = payloads(child.id())
        .into_iter()
        .find(|(_, environment)| environment.contains("-embedded"));
    let (pid, _) = of_pair.expect("a cell named after its engine");
    eventually("the cell has run some jobs", || in_its_loop(pid));
    // SAFETY: a process that the bench under test started.
    unsafe { libc::kill(pid, libc::SIGKILL) };
    let id = child.id();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let run = Run::open(&only_run(dir)).unwrap();
    assert_eq!(run.manifest().unwrap().status, Status::Complete);
    let failure = |n: u32| run.trial(n).unwrap().failure;
    assert_eq!([failure(1), failure(3), failure(4)], [None, None, None]);
    let why = failure(2).unwrap();
    assert!(why.contains("ended before its jobs were done"), "{why}");
    for (trial, cell) in [(1, "1-bare"), (3, "1-bare")] {
        let samples = run.samples(trial, cell).unwrap().unwrap();
        assert_eq!(samples.header.count + samples.header.skipped, 1_500);
    }
    let kept = run.samples(2, "1-embedded").unwrap().unwrap();
    assert!(
        kept.unexplained() > 0,
        "what was measured until then is kept"
    );
    assert!(traces_of(id).is_empty());
}

/// Rounds with a lap in which both trials of a run have a job: a machine that stalls for a whole round leaves none.
fn with_a_lap(run: &Run) -> usize {
    let mut laps: BTreeMap<u32, Vec<BTreeSet<u32>>> = BTreeMap::new();
    for number in run.trial_numbers().unwrap() {
        let trial = run.trial(number).unwrap();
        let turns = trial.turns.unwrap();
        let samples = run.samples(number, &trial.cells[0].id).unwrap().unwrap();
        // The first jobs of a turn let it settle.
        let compared =
            (samples.samples.iter()).filter(|job| job.index % turns.jobs >= turns.settle);
        let own = compared.map(|job| job.index / turns.jobs).collect();
        laps.entry(trial.round).or_default().push(own);
    }
    let meet = |laps: &&Vec<BTreeSet<u32>>| !laps[0].is_disjoint(&laps[1]);
    laps.values().filter(meet).count()
}

/// Printed if the machine stalled while the pilot ran.
const STALLED: &str = "sees    not known: the pilot failed: it had too few turns";

/// The plan of an experiment, once the machine has given its pilot enough time.
fn with_its_pilot(dir: &Path, file: &str) -> Said {
    let mut plans = (0..5).map(|_| say(dir, &["bench", file, "--dry-run"]).ends_with(0));
    let seen = plans.find(|plan| !plan.out.contains(STALLED));
    seen.expect("a pilot with enough turns")
}

/// On any machine, two plain processes are alike to within a factor of two, and not to within a ten-thousandth.
#[case(GroupsOfItsOwn(280))]
fn a_run_ends_once_every_ratio_is_known(dir: &Path) {
    let text = "schema = 1\nname = \"small\"\nrounds = 3\n[workload]\nkind = \"mac\"\nsteps = 1000\njobs = 36\n[turns]\n\
                [[trial]]\nname = \"one\"\ncells = [\"bare\"]\n[[trial]]\nname = \"two\"\ncells = [\"bare\"]\n";
    fs::write(dir.join("small.toml"), text).unwrap();
    let loaded = format!("{text}load = \"cpu\"\n[[trial]]\nname = \"three\"\ncells = [\"bare\"]\n");
    fs::write(dir.join("loaded.toml"), loaded).unwrap();
    let rounds_of = |words: &[&str]| {
        let said = say(dir, &[&["bench", "small.toml"], words].concat());
        let path = only_run(dir);
        let run = Run::open(&path).unwrap();
        // An undecided question is a failure, and nothing else here is one.
        let asked = words.contains(&"--decide");
        let is_open = asked && Standing::of(&run).unwrap().is_open();
        assert_eq!(said.out.contains("\ndecide  "), is_open, "{}", said.out);
        let said = said.ends_with(i32::from(is_open));
        let manifest = run.manifest().unwrap();
        assert_eq!(manifest.status, Status::Complete);
        assert_eq!(manifest.trials_done, manifest.trials_planned);
        let rounds = run.trial_numbers().unwrap().len() / 2;
        let summary = summary(&path);
        let two = summary.cells.iter().find(|cell| cell.trial == "two");
        let ratio = &two.unwrap().in_turns[0].comparison;
        let compared = with_a_lap(&run);
        assert_eq!(ratio.rounds as usize, compared);
        if words.is_empty() && report::would_have_seen(&summary).is_some() {
            let again = with_its_pilot(dir, "small.toml");
            assert!(
                again.out.contains("; the last run of this plan: "),
                "{}",
                again.out
            );
            let other = say(dir, &["bench", "loaded.toml", "--dry-run"]).ends_with(0);
            assert!(!other.out.contains("the last run"), "{}", other.out);
        }
        fs::remove_dir_all(dir.join("runs")).unwrap();
        (said, [rounds, compared], ratio.ratio_of_medians.confidence)
    };
    let (said, [rounds, compared], _) = rounds_of(&["--rounds", "2"]);
    assert_eq!(rounds, 2);
    assert!(said.out.contains("sees    no differences"), "{}", said.out);
    let told = said.out.contains("undecided: two rounds");
    assert_eq!(told, compared == 2, "{}", said.out);
    assert!(!said.out.contains("would have been seen"), "{}", said.out);
    let of_whole_rounds =
        say(dir, &["bench", "small.toml", "--dry-run", "--histogram"]).ends_with(0);
    assert!(
        of_whole_rounds.out.contains("sees    not known in advance"),
        "{}",
        of_whole_rounds.out
    );
    let under_load = with_its_pilot(dir, "loaded.toml");
    assert!(
        under_load
            .out
            .contains(" among trials without a load (a pilot of one against itself, ")
            && under_load.out.contains(" slow; the upper end allows for "),
        "{}",
        under_load.out
    );
    let (said, [rounds, _], _) = rounds_of(&[]);
    assert_eq!(rounds, 3);
    let told = said.out.contains("sees    differences of the median");
    assert_ne!(told, said.out.contains(STALLED), "{}", said.out);
    // At most twelve rounds, with looks after three, five, eight, ten and twelve.
    let (said, [rounds, _], confidence) = rounds_of(&["--decide", "100%"]);
    assert!([3, 5, 8, 10, 12].contains(&rounds), "{}", said.err);
    assert!((confidence - (1.0 - 0.0158)).abs() < 1e-9, "{confidence}");
    assert!(said.out.contains("at most about"), "{}", said.out);
    assert!(said.err.contains("after round 3"), "{}", said.err);
    let (said, [rounds, _], _) = rounds_of(&["--decide", "0.01%", "--rounds", "4"]);
    // A busy machine can tell equals apart after three rounds, which is a decision, too.
    let differs = said.err.contains("after round 3: every ratio");
    assert_eq!(rounds, if differs { 3 } else { 4 }, "{}", said.err);
    let json = say(
        dir,
        &[
            "bench",
            "small.toml",
            "--decide",
            "0.01%",
            "--rounds",
            "3",
            "--json",
        ],
    );
    let told: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    let (compared, open) = (&told["decide"]["compared"], &told["decide"]["undecided"]);
    assert_eq!(
        (compared, &told["decide"]["within"]),
        (&1.into(), &0.0001.into())
    );
    let open = open.as_array().unwrap().len();
    json.ends_with(i32::from(open > 0));
    let refused = say(dir, &["bench", "small.toml", "--decide", "5"]).ends_with(2);
    assert!(refused.err.contains("0.0001 to 1"), "{}", refused.err);
}

#[case(GroupsOfItsOwn(280))]
fn killed_and_resumed_the_totals_add_up(dir: &Path) {
    let file = file(dir, 2, 600);
    let run = ended_by(dir, &file, libc::SIGKILL, |run| {
        run.join("trials/4").exists()
    });
    say(dir, &["bench", "--resume", &run.to_string_lossy()]).ends_with(0);
    let manifest = Run::open(&run).unwrap().manifest().unwrap();
    assert_eq!(manifest.status, Status::Complete);
    for cell in summary(&run).cells {
        let planned = if cell.trial == "other" { 40 } else { 1_200 };
        assert_eq!(
            (cell.planned, cell.executed + cell.skipped),
            (planned, planned)
        );
    }
}

/// Without the user of its other trial, a run has no ratio: it does not continue, and says so.
#[case(GroupsOfItsOwn(280))]
fn a_run_with_nothing_to_compare_decides_nothing(dir: &Path) {
    let text = "schema = 1\nname = \"small\"\nrounds = 3\nrootless_user = \"nobody-of-this-name\"\n\
                [workload]\nkind = \"mac\"\nsteps = 1000\njobs = 36\n[turns]\n\
                [[trial]]\nname = \"one\"\ncells = [\"bare\"]\n[[trial]]\nname = \"two\"\ncells = [\"podman-rootless\"]\n";
    fs::write(dir.join("small.toml"), text).unwrap();
    let no_ratio = "there is no ratio: only the baseline was measured";
    let said = say(dir, &["bench", "small.toml", "--decide", "1%"]).ends_with(1);
    assert!(
        said.out.contains(&format!("decide  {no_ratio}")),
        "{}",
        said.out
    );
    assert!(
        said.err.contains(&format!("after round 3: {no_ratio}")) && !said.err.contains("round 4"),
        "{}",
        said.err
    );
}

#[case(GroupBudget(950))]
fn a_run_goes_on_until_it_is_known_whether_something_holds(dir: &Path) {
    let text = "schema = 1\nname = \"small\"\nrounds = 1\n[workload]\nkind = \"timer\"\njobs = 110\n\
        [[trial]]\nname = \"a\"\ncells = [\"bare\"]\n[[trial]]\nname = \"b\"\nperiod = \"2ms\"\ncells = [\"bare\"]\n";
    fs::write(dir.join("small.toml"), text).unwrap();
    let rounds_of = |words: &[&str], code: i32| {
        let said = say(dir, &[&["bench", "small.toml"], words].concat()).ends_with(code);
        let run = Run::open(&only_run(dir)).unwrap();
        let rounds = run.trial_numbers().unwrap().len() / 2;
        fs::remove_dir_all(dir.join("runs")).unwrap();
        (said, rounds)
    };
    // p90 at 99 % takes 44 jobs: known at the first look, after one round of at most 16. A machine that stalls for
    // 300 ms leaves as many of 400, and one that stalls for longer is given three tries.
    let p90 = ["--until", "latency.p90 < 10s", "--jobs", "400"];
    let mut tries = (0..3).map(|_| rounds_of(&p90, 0));
    let known = tries.find(|(_, rounds)| *rounds == 1);
    let (said, _) = known.expect("one of three is known after one round");
    assert!(
        said.out.contains("first look after 1 round"),
        "{}",
        said.out
    );
    assert!(said.err.contains("after round 1: known"), "{}", said.err);
    assert!(said.out.contains("latency.p90 >= 10s"), "{}", said.out);
    // 44 of 45 leave no room for skipped activations.
    let words = [
        "bench",
        "small.toml",
        "--dry-run",
        "--until",
        "latency.p90 < 10s",
        "--jobs",
        "45",
    ];
    let narrow = say(dir, &words).ends_with(0);
    assert!(
        narrow.out.contains("first look after 2 rounds"),
        "{}",
        narrow.out
    );
    // A condition known to be false is decided, and fails.
    let (_, rounds) = rounds_of(&["--until", "latency.p90 < 1ns"], 3);
    assert_eq!(rounds, 1);
    // p99 takes 459 jobs: 440 tell nothing, and 880 do on a machine that stalls in between.
    let (said, rounds) = rounds_of(&["--until", "a.latency.p99 < 10s", "--rounds", "16"], 0);
    assert_eq!(rounds, 8, "{}", said.err);
    assert!(
        said.err
            .contains("after round 4: 1 of 1 not known: a: latency.p99"),
        "{}",
        said.err
    );
    // 360 jobs suffice at 95 %, but not at the confidence of three looks: the end is one of them.
    let end = [
        "--until",
        "a.latency.p99 < 10s",
        "--rounds",
        "3",
        "--jobs",
        "120",
    ];
    let (said, rounds) = rounds_of(&end, 1);
    assert_eq!(rounds, 3);
    assert!(said.out.contains("needs 408 jobs"), "{}", said.out);
    for (condition, told) in [
        ("late < 1", "more jobs cannot answer this"),
        ("latency.p99 100us", "the comparison is missing"),
        ("c.latency.p99 < 1ms", "no trial or cell is called `c`"),
    ] {
        let said = say(dir, &["bench", "small.toml", "--until", condition]).ends_with(2);
        assert!(said.err.contains(told), "{}", said.err);
    }
}

#[case(GroupsOfItsOwn(280))]
fn a_run_that_goes_on_ends_in_the_time_that_it_may_take(dir: &Path) {
    let text = "schema = 1\nname = \"small\"\nrounds = 3\n[workload]\nkind = \"mac\"\nsteps = 1000\njobs = 36\n[turns]\n\
                [[trial]]\nname = \"one\"\ncells = [\"bare\"]\n[[trial]]\nname = \"two\"\ncells = [\"bare\"]\n";
    fs::write(dir.join("small.toml"), text).unwrap();
    let rounds_of = |words: &[&str], code: Option<i32>| {
        let said = say(dir, &[&["bench"], words].concat());
        let run = Run::open(&only_run(dir)).unwrap();
        let is_open = || Standing::of(&run).unwrap().is_open();
        let said = said.ends_with(code.unwrap_or_else(|| i32::from(is_open())));
        let manifest = run.manifest().unwrap();
        assert_eq!(manifest.status, Status::Complete);
        assert_eq!(manifest.trials_done, manifest.trials_planned);
        let experiment = run.experiment().unwrap();
        fs::remove_dir_all(dir.join("runs")).unwrap();
        let rounds = manifest.trials_done as usize / experiment.trials.len();
        (said, experiment.rounds, rounds)
    };
    // Of twelve rounds of some 200 ms each, the first look would be after three.
    let decide = ["small.toml", "--decide", "0.01%", "--at-most", "1s"];
    let (said, planned, rounds) = rounds_of(&decide, None);
    assert!((3..8).contains(&planned), "{planned}");
    assert!((1..=planned as usize).contains(&rounds), "{rounds}");
    assert!(said.out.contains("at most about 1 s"), "{}", said.out);
    // Nothing tells in advance that each execution takes a hundred times its pause.
    let slow = "schema = 1\nname = \"slow\"\nrounds = 1\n[workload]\nkind = \"program\"\nprogram = [\"/bin/sleep\", \"0.1\"]\n\
                period = \"1ms\"\npacing = \"relative\"\njobs = 10\n[[trial]]\ncells = [\"bare\"]\n";
    fs::write(dir.join("slow.toml"), slow).unwrap();
    let until = [
        "slow.toml",
        "--until",
        "execution.p90 < 10s",
        "--rounds",
        "16",
        "--at-most",
        "2500ms",
    ];
    let (said, planned, rounds) = rounds_of(&until, Some(1));
    assert_eq!(planned, 16);
    assert!((1..=2).contains(&rounds), "{rounds}: {}", said.err);
    assert!(said.err.contains("exceed --at-most"), "{}", said.err);
    for (words, told) in [
        (&["--at-most", "1min"][..], "whatever is known"),
        (
            &["--decide", "2%", "--at-most", "100ms"],
            "the 3 rounds that ratios need take about 1 s",
        ),
        (
            &["--until", "latency.p90 < 1s", "--at-most", "1ms"],
            "one round takes about",
        ),
    ] {
        let said = say(dir, &[&["bench", "small.toml"], words].concat()).ends_with(2);
        assert!(said.err.contains(told), "{}", said.err);
    }
}

#[case(GroupsOfItsOwn(280))]
fn what_is_to_be_known_is_found_out_across_a_resumption_also_from_histograms() {
    for record in ["", "record = \"histogram\"\ninterval = \"1s\"\n"] {
        let dir = tempfile::tempdir().unwrap();
        let text = format!(
            "schema = 1\nname = \"small\"\nrounds = 16\nuntil = [\"a.latency.p99 < 10s\"]\n{record}\
             [workload]\nkind = \"timer\"\njobs = 60\n[[trial]]\nname = \"a\"\ncells = [\"bare\"]\n\
             [[trial]]\nname = \"b\"\nperiod = \"2ms\"\ncells = [\"bare\"]\n"
        );
        fs::write(dir.path().join("small.toml"), text).unwrap();
        let path = ended_by(dir.path(), "small.toml", libc::SIGKILL, |run| {
            run.join("trials/5").exists()
        });
        let resume = ["bench", "--resume", &path.to_string_lossy()];
        let said = say(dir.path(), &resume).ends_with(0);
        assert!(said.out.contains("latency.p99 >= 10s"), "{}", said.out);
        let run = Run::open(&path).unwrap();
        assert_eq!(run.manifest().unwrap().status, Status::Complete);
        let numbers = run.trial_numbers().unwrap();
        let rounds = numbers.iter().map(|n| run.trial(*n).unwrap().round).max();
        // 459 of the 480 jobs of eight rounds suffice, including those from before the run was resumed.
        let cell = summary(&path)
            .cells
            .into_iter()
            .find(|cell| cell.trial == "a")
            .unwrap();
        let at_eight = cell.skipped <= 21;
        assert_eq!(
            rounds,
            Some(if at_eight { 8 } else { 16 }),
            "{record}: {}",
            said.err
        );
        assert_eq!(
            at_eight,
            said.err.contains("after round 8: known"),
            "{}",
            said.err
        );
        let planned = if at_eight { 480 } else { 960 };
        assert_eq!(cell.executed + cell.skipped, planned, "{record}");
    }
}
