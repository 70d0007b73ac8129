//! A task set run in cells, against its deadlines and its analysis.

use std::fs;
use std::path::Path;

use record::run::Run;

use crate::support::{Case, Need, only_run, say};

pub const CASES: &[Case] = &[
    Case {
        name: "taskset::threads_of_a_cell_have_samples_of_their_own",
        needs: &[],
        run: threads,
    },
    Case {
        name: "taskset::fifo_by_deadline_with_bounds_and_competitors",
        needs: &[Need::Root, Need::RealTime, Need::GroupBudget(950)],
        run: fifo,
    },
    Case {
        name: "taskset::deadline_threads_one_trial_after_the_other",
        needs: &[
            Need::Root,
            Need::RealTime,
            Need::GroupBudget(950),
            Need::DeadlineBudget,
        ],
        run: deadline,
    },
    Case {
        name: "taskset::a_file_of_analyze_is_run",
        needs: &[],
        run: file,
    },
    Case {
        name: "taskset::what_cannot_be_run_is_refused",
        needs: &[],
        run: refused,
    },
];

/// Little work, so that the tests hold on a busy machine.
fn experiment(dir: &Path, more: &str, trials: &str) {
    let text = format!(
        "schema = 1\nname = \"set\"\nrounds = 2\n[workload]\nkind = \"taskset\"\nduration = \"300ms\"\n{more}\
         [[workload.task]]\nname = \"slow\"\nwcet = \"2ms\"\nperiod = \"100ms\"\n\
         [[workload.task]]\nname = \"fast\"\nwcet = \"500us\"\nperiod = \"50ms\"\ndeadline = \"40ms\"\n{trials}"
    );
    fs::write(dir.join("set.toml"), text).unwrap();
}

fn threads() {
    let dir = tempfile::tempdir().unwrap();
    experiment(
        dir.path(),
        "",
        "[scheduling]\nclass = \"other\"\n[[trial]]\ncells = [\"bare\"]\n",
    );
    let said = say(dir.path(), &["bench", "set.toml"]).ends_with(0);
    let path = only_run(dir.path());
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
                samples.header.count + samples.header.missed,
                samples.header.planned
            );
            assert_eq!(samples.header.period_ns, task.period_ns);
        }
        let steps = |id: &str| f64::from(run.samples(number, id).unwrap().unwrap().header.steps);
        let ratio = steps("2-slow") / steps("1-fast");
        assert!((ratio - 4.0).abs() < 0.01, "work follows the wcet: {ratio}");
    }
    for cell in run.summary().unwrap().cells {
        let task = cell.task.unwrap();
        assert_eq!(task.bound_ns, None, "best effort has no bound");
        assert_eq!(cell.planned, if task.name == "fast" { 12 } else { 6 });
    }
    assert!(said.out.contains("no bound"), "{}", said.out);
    let page = fs::read_to_string(path.join("report.html")).unwrap();
    assert!(page.contains("Response times by their deadlines"));
    say(
        dir.path(),
        &["export", "--csv", path.to_str().unwrap(), "-o", "x.csv"],
    )
    .ends_with(0);
    let csv = fs::read_to_string(dir.path().join("x.csv")).unwrap();
    assert!(csv.contains("1-fast") && csv.contains("2-slow"));
}

fn fifo() {
    let dir = tempfile::tempdir().unwrap();
    experiment(
        dir.path(),
        "",
        "[[trial]]\ncells = [\"bare\"]\n[[trial]]\nname = \"rivals\"\ncells = [\"embedded\"]\ncompetitors = 0.1\n",
    );
    let said = say(dir.path(), &["bench", "set.toml", "--json"]).ends_with(0);
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

fn deadline() {
    let dir = tempfile::tempdir().unwrap();
    // Half of every cpu: what one trial held must be given back before the next can have it.
    experiment(
        dir.path(),
        "policy = \"deadline\"\nmargin = \"20ms\"\n",
        "[[trial]]\ncells = [\"bare\"]\n[[trial]]\ncells = [\"embedded\"]\n",
    );
    say(dir.path(), &["bench", "set.toml"]).ends_with(0);
    let run = Run::open(&only_run(dir.path())).unwrap();
    for number in run.trial_numbers().unwrap() {
        for cell in run.trial(number).unwrap().cells {
            let got = cell.class_got.unwrap();
            assert!(got.starts_with("DEADLINE 2"), "{got}");
            assert!(cell.real_time);
        }
    }
}

fn file() {
    let dir = tempfile::tempdir().unwrap();
    let set = "schema = 1\n[[cell]]\nname = \"one\"\n[[cell.task]]\nname = \"a\"\nwcet = \"100us\"\nperiod = \"50ms\"\n";
    fs::write(dir.path().join("set.toml"), set).unwrap();
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
    say(dir.path(), &words).ends_with(0);
    let run = Run::open(&only_run(dir.path())).unwrap();
    let trial = run.trial(1).unwrap();
    assert_eq!(trial.cells[0].task.as_ref().unwrap().jobs, 4);
    // What was run stands in the run, not in a file beside it.
    let kept = run.experiment().unwrap().tasks.unwrap();
    assert_eq!((kept.file, kept.cells[0].name.as_str()), (None, "one"));
}

fn refused() {
    let dir = tempfile::tempdir().unwrap();
    let error = |words: &[&str]| say(dir.path(), words).ends_with(2).error();
    assert!(error(&["bench", "taskset", "--jobs", "5"]).contains("the tasks of a set"));
    assert!(error(&["bench", "overhead", "--policy", "fifo"]).contains("only a task set"));
    assert!(error(&["bench", "overhead", "--tasks", "x.toml"]).contains("x.toml"));
    experiment(
        dir.path(),
        "margin = \"1ms\"\n",
        "[[trial]]\ncells = [\"bare\"]\n",
    );
    let margin = error(&["bench", "set.toml"]);
    assert!(
        margin.starts_with("set.toml:7: a FIFO thread has no runtime"),
        "{margin}"
    );
    experiment(dir.path(), "jobs = 5\n", "[[trial]]\ncells = [\"bare\"]\n");
    assert!(error(&["bench", "set.toml"]).contains("`jobs` says nothing of kind \"taskset\""));
    experiment(
        dir.path(),
        "",
        "[[trial]]\ncells = [\"bare\"]\ncompetitors = 2\n",
    );
    assert!(error(&["bench", "set.toml"]).contains("0.0 to 0.9"));
}
