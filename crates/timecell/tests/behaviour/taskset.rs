//! A task set run in cells, compared with its deadlines and its analysis.

use record::summary::RunSummary;
use std::fs;
use std::path::Path;

use record::run::Run;

use crate::support::{begun, eventually, only_run, say, traces_of};

/// Little work, so that the tests pass on a busy machine.
fn experiment(dir: &Path, more: &str, trials: &str) {
    let text = format!(
        "schema = 1\nname = \"set\"\nrounds = 2\n[workload]\nkind = \"taskset\"\nduration = \"300ms\"\n{more}\
         [[workload.task]]\nname = \"slow\"\nwcet = \"2ms\"\nperiod = \"100ms\"\n\
         [[workload.task]]\nname = \"fast\"\nwcet = \"500us\"\nperiod = \"50ms\"\ndeadline = \"40ms\"\n{trials}"
    );
    fs::write(dir.join("set.toml"), text).unwrap();
}

#[case]
fn threads_of_a_cell_have_samples_of_their_own(dir: &Path) {
    experiment(
        dir,
        "",
        "[scheduling]\nclass = \"other\"\n[[trial]]\ncells = [\"bare\"]\n",
    );
    let said = say(dir, &["bench", "set.toml"]).ends_with(0);
    let path = only_run(dir);
    let run = Run::open(&path).unwrap();
    for number in run.trial_numbers().unwrap() {
        let trial = run.trial(number).unwrap();
        let ids: Vec<&str> = trial.cells.iter().map(|cell| cell.id.as_str()).collect();
        assert_eq!(ids, ["1-fast", "2-slow"], "the most urgent first");
        for cell in &trial.cells {
            let task = cell.task.as_ref().unwrap();
            assert!(task.calibration.unwrap().tries >= 2);
            let samples = run.samples(number, &cell.id).unwrap().unwrap();
            assert_eq!(samples.header.planned, u64::from(task.jobs));
            assert_eq!(
                samples.header.count + samples.header.skipped,
                samples.header.planned
            );
            assert_eq!(samples.header.period_ns, task.period_ns);
        }
        let steps = |id: &str| f64::from(run.samples(number, id).unwrap().unwrap().header.steps);
        let ratio = steps("2-slow") / steps("1-fast");
        assert!((ratio - 4.0).abs() < 0.01, "work follows the wcet: {ratio}");
    }
    for cell in run.read::<RunSummary>().unwrap().cells {
        let task = cell.task.unwrap();
        assert_eq!(task.bound_ns, None, "best effort has no bound");
        assert_eq!(cell.planned, if task.name == "fast" { 12 } else { 6 });
    }
    assert!(said.out.contains("no bound"), "{}", said.out);
    let page = fs::read_to_string(path.join("report.html")).unwrap();
    assert!(page.contains("Response times by their deadlines"));
    say(
        dir,
        &["export", "--csv", path.to_str().unwrap(), "-o", "x.csv"],
    )
    .ends_with(0);
    let csv = fs::read_to_string(dir.join("x.csv")).unwrap();
    assert!(csv.contains("1-fast") && csv.contains("2-slow"));
}

#[case(Root, RealTime, GroupsOfItsOwn(280))]
fn fifo_by_deadline_with_bounds_and_competitors(dir: &Path) {
    experiment(
        dir,
        "",
        "[[trial]]\ncells = [\"bare\"]\n[[trial]]\nname = \"rivals\"\ncells = [\"embedded\"]\ncompetitors = 0.1\n",
    );
    let said = say(dir, &["bench", "set.toml", "--json"]).ends_with(0);
    let json: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let of = |label: &str| {
        let cells = json["cells"].as_array().unwrap();
        let found = cells.iter().find(|cell| cell["label"] == label);
        found
            .unwrap_or_else(|| panic!("{label} is not in:\n{}", said.out))
            .clone()
    };
    for (label, class, bound_ns) in [
        ("bare/fast", "FIFO 79", 500_000),
        ("bare/slow", "FIFO 78", 2_500_000),
        ("rivals/fast", "FIFO 79", 1_500_000),
        ("rivals/slow", "FIFO 78", 3_500_000),
    ] {
        let cell = of(label);
        assert_eq!(cell["class"], class, "{label}");
        assert_eq!(cell["task"]["bound_ns"], bound_ns, "{label}");
        assert_eq!(cell["real_time"], true);
    }
}

#[case(Root, RealTime, GroupsOfItsOwn(120), DeadlineBudget)]
fn deadline_threads_one_trial_after_the_other(dir: &Path) {
    // Half of every cpu: the share held by one trial must be released before the next can have it.
    experiment(
        dir,
        "policy = \"deadline\"\nmargin = \"20ms\"\n",
        "[[trial]]\ncells = [\"bare\"]\n[[trial]]\ncells = [\"embedded\"]\n",
    );
    say(dir, &["bench", "set.toml"]).ends_with(0);
    let run = Run::open(&only_run(dir)).unwrap();
    for number in run.trial_numbers().unwrap() {
        for cell in run.trial(number).unwrap().cells {
            let got = cell.class_got.unwrap();
            assert!(got.starts_with("DEADLINE 2"), "{got}");
            assert!(cell.real_time);
        }
    }
}

/// With both that hold whole cells: a set that wants more than its budget gets no more, and one that wants less is within its bounds.
#[case(Root, RealTime, Freezer, RtGroups, GroupsOfItsOwn(280))]
fn cells_are_held_to_their_reservations_beside_the_analysis() {
    let dir = tempfile::tempdir().unwrap();
    let trial = |name: &str, cell: &str| {
        format!(
            "[[trial]]\nname = \"{cell}-{name}\"\ncells = [\"bare\"]\nparts = [\"{cell}\"]\nreserve = \"{name}\"\n"
        )
    };
    let trials = ["freezer", "rt-cgroup"].map(|by| trial(by, "greedy") + &trial(by, "modest"));
    let text = format!(
        "schema = 1\nname = \"held\"\nrounds = 1\n[workload]\nkind = \"taskset\"\nduration = \"600ms\"\n\
         [[workload.task]]\nname = \"a\"\ncell = \"greedy\"\nwcet = \"20ms\"\nperiod = \"600ms\"\n\
         [[workload.task]]\nname = \"b\"\ncell = \"modest\"\nwcet = \"1ms\"\nperiod = \"100ms\"\n\
         [[workload.task]]\nname = \"c\"\ncell = \"modest\"\nwcet = \"2ms\"\nperiod = \"200ms\"\n\
         [[workload.reservation]]\ncell = \"greedy\"\nbudget = \"5ms\"\nperiod = \"50ms\"\n\
         [scheduling]\nclass = \"fifo\"\n[[trial]]\nname = \"free\"\ncells = [\"bare\"]\nparts = [\"greedy\"]\n{}",
        trials.concat()
    );
    fs::write(dir.path().join("held.toml"), text).unwrap();
    let said = say(dir.path(), &["bench", "held.toml"]).ends_with(0);
    assert!(
        said.out
            .contains("the reservations: what the analysis says"),
        "{}",
        said.out
    );
    let run = Run::open(&only_run(dir.path())).unwrap();
    let summary = run.read::<RunSummary>().unwrap();
    let of = |trial: &str| {
        let mut cells = summary.cells.iter();
        cells.find(|cell| cell.trial == trial).unwrap().clone()
    };
    let longest = |trial: &str| of(trial).metrics[0].summary.max_ns;
    for by in ["freezer", "rt-cgroup"] {
        // 5 ms of every 50: a job of 20 ms waits for three refills, less a tick's overdraft in each budget of a cgroup.
        let (held, free) = (longest(&format!("greedy-{by}")), longest("free"));
        assert!(
            held > 80_000_000,
            "{by}: {held} ns, {free} ns where nothing holds it"
        );
        let modest = of(&format!("modest-{by}"));
        let task = modest.task.unwrap();
        let held = task.held.unwrap();
        assert_eq!(held.by.held.enforcer.name(), by);
        assert!(!held.by.given, "no file names its budget");
        let bounds = [task.bound_ns, held.certain_ns].map(|bound| bound.unwrap());
        assert!(
            bounds[0] <= bounds[1] && bounds[1] <= task.deadline_ns,
            "{bounds:?}"
        );
        assert_eq!(held.latest_look_ns.is_some(), by == "freezer");
    }
    for number in run.trial_numbers().unwrap() {
        let trial = run.trial(number).unwrap();
        assert_eq!(trial.failure, None);
        assert_eq!(
            trial.holds.is_some(),
            trial.name != "free",
            "{}",
            trial.name
        );
        for cell in trial.holds.iter().flat_map(|holds| &holds.cells) {
            let by_freezer = cell.by.held.enforcer == model::Enforcer::Freezer;
            assert_eq!(cell.reacted.is_some(), by_freezer);
        }
    }
    let page = fs::read_to_string(run.dir().join("report.html")).unwrap();
    assert!(page.contains("The reservations: what") && page.contains("(least)"));
}

#[case(Root, RealTime, DeadlineBudget)]
fn a_thread_alone_is_held_by_its_class_and_several_are_not(dir: &Path) {
    experiment(
        dir,
        "",
        "[[workload.task]]\nname = \"alone\"\ncell = \"one\"\nwcet = \"1ms\"\nperiod = \"50ms\"\n\
         [[workload.task]]\nname = \"due\"\ncell = \"due\"\nwcet = \"1ms\"\nperiod = \"50ms\"\ndeadline = \"40ms\"\n\
         [[workload.reservation]]\ncell = \"one\"\nbudget = \"3ms\"\nperiod = \"25ms\"\n\
         [[trial]]\ncells = [\"bare\"]\nname = \"one\"\nparts = [\"one\"]\nreserve = \"deadline\"\n\
         [[trial]]\ncells = [\"bare\"]\nname = \"two\"\nparts = [\"set\"]\nreserve = \"deadline\"\n\
         [[trial]]\ncells = [\"bare\"]\nname = \"due\"\nparts = [\"due\"]\nreserve = \"deadline\"\n",
    );
    let said = say(dir, &["bench", "set.toml"]).ends_with(0);
    // The terminal's lines are folded.
    let flat = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("which two tasks cannot share"), "{flat}");
    // A job that takes no more than its thread's runtime ends by the thread's deadline.
    assert!(!said.out.contains("not shown"), "{}", said.out);
    let run = Run::open(&only_run(dir)).unwrap();
    for number in run.trial_numbers().unwrap() {
        let trial = run.trial(number).unwrap();
        assert_eq!(trial.cells.len(), 1);
        let class = match trial.name.as_str() {
            "one" => "DEADLINE 3 ms/25 ms/25 ms",
            // The least that is certain to suffice: a ninth more than the wcet by each deadline.
            "due" => "DEADLINE 1.112 ms/40 ms/40 ms",
            other => panic!("{other}"),
        };
        assert_eq!(trial.cells[0].class_got.as_deref(), Some(class));
    }
    for cell in run.read::<RunSummary>().unwrap().cells {
        let task = cell.task.unwrap();
        let by_ns = if cell.trial == "one" { 25 } else { 40 } * 1_000_000;
        let certain_ns = task.held.unwrap().certain_ns;
        assert_eq!([task.bound_ns, certain_ns], [Some(by_ns); 2]);
    }
}

#[case(Root, RealTime, Freezer)]
fn ctrl_c_and_kill_leave_nothing_that_holds_a_set(dir: &Path) {
    experiment(
        dir,
        "",
        "[[trial]]\ncells = [\"bare\"]\nreserve = \"freezer\"\n",
    );
    let words = ["bench", "set.toml", "--duration", "60s"];
    let has_group = |pid: u32| {
        let top = freezer::hold::top(&host::root::Root::live()).unwrap();
        let prefix = format!("timecell-{pid}-");
        let groups = fs::read_dir(top).into_iter().flatten().flatten();
        let mut names = groups.map(|group| group.file_name().to_string_lossy().into_owned());
        names.any(|name| name.starts_with(&prefix))
    };
    let has_place = |pid: u32| {
        freezer::page::memory()
            .join(format!("timecell-{pid}-freezer"))
            .exists()
    };
    let is_held = |pid| has_group(pid) && has_place(pid);
    let is_free = |pid| !has_group(pid) && !has_place(pid);
    let mut child = begun(dir, &words);
    eventually("the cell is held", || is_held(child.id()));
    // SAFETY: our own child.
    unsafe { libc::kill(child.id().cast_signed(), libc::SIGINT) };
    child.wait().unwrap();
    assert!(is_free(child.id()) && traces_of(child.id()).is_empty());
    let mut child = begun(dir, &words);
    eventually("the cell is held", || is_held(child.id()));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(
        !traces_of(child.id()).is_empty(),
        "the test sees nothing to remove"
    );
    say(dir, &["clean"]).ends_with(0);
    eventually("no trace is left", || traces_of(child.id()).is_empty());
    assert!(is_free(child.id()));
}

#[case]
fn a_file_of_analyze_is_run(dir: &Path) {
    let set = "schema = 1\n[[cell]]\nname = \"one\"\n[[cell.task]]\nname = \"a\"\nwcet = \"100us\"\nperiod = \"50ms\"\n";
    fs::write(dir.join("set.toml"), set).unwrap();
    let words = [
        "bench",
        "taskset",
        "--tasks",
        "set.toml",
        "--duration",
        "200ms",
        "--rounds",
        "1",
        "--engine",
        "bare",
        "--class",
        "other",
    ];
    say(dir, &words).ends_with(0);
    let run = Run::open(&only_run(dir)).unwrap();
    let trial = run.trial(1).unwrap();
    assert_eq!(trial.cells[0].task.as_ref().unwrap().jobs, 4);
    // The tasks are recorded in the run, not in a file beside it.
    let kept = run.experiment().unwrap().tasks.unwrap();
    assert_eq!((kept.file, kept.cells[0].name.as_str()), (None, "one"));
}

#[case]
fn what_cannot_be_run_is_refused(dir: &Path) {
    let error = |words: &[&str]| say(dir, words).ends_with(2).error();
    for option in ["--tasks=x.toml", "--reserve=freezer"] {
        let error = error(&["bench", "overhead", option]);
        assert!(error.contains("`taskset`"), "{error}");
    }
    // The option can also say that nothing holds them.
    let words = "bench reservations --reserve none --class other --dry-run";
    let words: Vec<&str> = words.split(' ').collect();
    say(dir, &words).ends_with(0);
    // A trial that another one repeats is then left out.
    let words = "bench reservations --reserve freezer --dry-run";
    let words: Vec<&str> = words.split(' ').collect();
    let said = say(dir, &words);
    assert!(
        said.err
            .contains("--reserve leaves out two: trials are compared with two-freezer"),
        "{}",
        said.err
    );
    let scale = error(&["bench", "scale", "--reserve", "freezer"]);
    assert!(scale.contains("cannot be held by `freezer`"), "{scale}");
    experiment(dir, "", "[[trial]]\ncells = [\"bare\"]\ncompetitors = 2\n");
    assert!(error(&["bench", "set.toml"]).contains("0.0 to 0.9"));
}
