//! Every key of the experiment file is read, described, and known to the schema.

use super::FORMAT;
use crate::Experiment;
use crate::file::agree::assert_agree;
use crate::file::reference::{assert_has_every_key, block, page};

fn read(text: &str) -> Result<(), String> {
    let experiment = Experiment::parse("mine.toml", text);
    experiment.map(|_| ()).map_err(|faults| faults.to_string())
}

/// Between them these say every key.
const FULL: [&str; 4] = [
    r#"schema = 1
name = "full"
question = "Is it read?"
rounds = 5
baseline = "one"
record = "histogram"
interval = "30s"
rootless_user = "ann"
machine = { board = "q35", vcpus = 2, memory = "1GiB", kernel = "linux-image-amd64", accel = "tcg", helpers = { class = "idle", cpus = [0] } }
until = ["latency.p99 < 1ms"]
counters = "window"
workload = { kind = "mac", steps = 9, jobs = 7, period = "2ms", pacing = "periodic", deadline = "1ms", stage = "inband" }
scheduling = { class = "fifo", priority = 70, cpus = [1, 2] }
[[trial]]
name = "one"
cells = ["bare", { engine = "crun", name = "c", steps = 5, period = "3ms", deadline = "2ms", jobs = 4, priority = 60 }]
loads = ["cpu", { kind = "custom", name = "own", form = "program", command = ["true"], cpus = [0] }]
period = "5ms"
jobs = 3
stage = "oob"
isolate = true
cpus = [3]
per_cpu = true
machine = { board = "q35", vcpus = 2, memory = "1GiB", kernel = "linux-image-amd64", accel = "tcg", helpers = { class = "idle", cpus = [0] } }
[[trial]]
name = "two"
cells = ["bare"]
copies = 2
load = { kind = "cpu", in = "cell", engine = "crun", budget = "1ms", period = "10ms" }
"#,
    r#"schema = 1
name = "set"
[workload]
kind = "taskset"
policy = "fifo"
duration = "3s"
[[workload.task]]
name = "t"
cell = "c"
wcet = "1ms"
period = "10ms"
deadline = "9ms"
priority = 3
[[workload.reservation]]
cell = "c"
budget = "2ms"
period = "5ms"
cpu = 1
priority = 4
[[trial]]
cells = ["bare"]
competitors = 0.25
reserve = "freezer"
parts = ["c"]
"#,
    r#"schema = 1
name = "scale"
counters = true
workload = { kind = "timer" }
[scale]
engines = ["bare", "crun"]
counts = [1, 2]
failure_limit = 0.5
parallel = 4
total_jobs = 1_000
reserve = "none"
memory_reserve = "1GiB"
starvation_limit = "2s"
"#,
    r#"schema = 1
name = "program"
[workload]
kind = "program"
program = ["./app"]
reports = true
reported = [{ name = "a", period = "1ms" }]
[turns]
length = "20ms"
settle = 1
catch_up = 3
decide = 0.02
[[trial]]
name = "own"
cells = [
  { engine = "bare", program = ["./b"], reports = false, endless = false },
  { engine = "crun", program = ["./c"], reports = true, reported = [{ name = "b", period = "2ms" }] },
]
[matrix]
cells = [["bare"], ["crun", "crun"]]
loads = ["idle", ["cpu", "disk"], { kind = "ipc" }]
periods = ["1ms"]
isolate = [false, true]
per_cpu = false
duration = "1s"
"#,
];

#[test]
fn the_reader_and_the_schema_agree_on_what_is_spoilt() {
    let deadline = FULL[1]
        .replace(
            "policy = \"fifo\"",
            "policy = \"deadline\"\nmargin = \"1ms\"",
        )
        .replace("budget = \"2ms\"\nperiod = \"5ms\"\n", "")
        .replace("reserve = \"freezer\"\n", "");
    let file = "schema = 1\nname = \"x\"\nworkload = { kind = \"taskset\", tasks = \"s.toml\" }\n[[trial]]\ncells = [\"bare\"]\n";
    let endless = "schema = 1\nname = \"x\"\nworkload = { kind = \"program\", program = [\"a\"], endless = true }\n[[trial]]\ncells = [\"bare\"]\n";
    let text = page("experiment-file.md");
    let mut texts = FULL.to_vec();
    texts.extend([&deadline, file, endless, block(&text, "toml")]);
    assert_agree(&FORMAT, &texts, read);
}

#[test]
fn every_scenario_is_read_and_fits_the_schema() {
    let validator = jsonschema::validator_for(&Experiment::schema()).unwrap();
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../bench/scenarios");
    let files = std::fs::read_dir(directory).unwrap();
    let texts: Vec<String> = files
        .map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap())
        .collect();
    assert!(texts.len() >= 7);
    for text in texts {
        assert_eq!(read(&text), Ok(()));
        let table: toml::Table = toml::from_str(&text).unwrap();
        let json = serde_json::to_value(table).unwrap();
        assert!(validator.validate(&json).is_ok(), "{text}");
        // A run's copy of it, too.
        let kept = Experiment::parse("x", &text).unwrap().to_toml();
        let json = serde_json::to_value(toml::from_str::<toml::Table>(&kept).unwrap()).unwrap();
        assert!(validator.validate(&json).is_ok(), "{kept}");
    }
}

#[test]
fn the_documentation_has_every_key() {
    assert_has_every_key(&page("experiment-file.md"), FORMAT.top);
}

#[test]
fn all_faults_of_a_file_are_told_at_once() {
    let text = "schema = 1\nname = \"a b\"\nrounds = 0\nbaseline = \"nobody\"\n[workload]\nkind = \"mac\"\nperoid = \"1ms\"\njobs = 5\n\
        [scheduling]\nclass = \"other\"\npriority = 3\n[[trial]]\nname = \"t\"\ncells = [\"podmna\"]\n[[trial]]\nname = \"u\"\ncells = [\"bare\"]\n\
        loads = [\"cpu\", \"cpu\", \"idle\"]\nreserve = \"freezer\"\n[[trial]]\nname = \"u\"\ncells = [{ engine = \"crun\", reports = true }]\n[turns]\ndecide = 2\n";
    let faults = read(text).unwrap_err();
    let told: Vec<&str> = faults.lines().collect();
    assert_eq!(
        told,
        [
            "mine.toml:2: `name` is `a b`, which cannot be part of a directory name; use 1 to 64 letters, digits, `-` and `_`",
            "mine.toml:3: `rounds` is 0; it must be a whole number of 1 to 10000",
            "mine.toml:7: unknown key `peroid` in [workload]; did you mean `period`?",
            "mine.toml:11: class \"other\" has no priority; remove the line or set class = \"fifo\"",
            "mine.toml:14: unknown engine `podmna`; did you mean `podman`? the engines are bare, embedded, crun, runc, podman, podman-rootless, docker, qemu",
            "mine.toml:18: this trial has two loads named `cpu`; give one a different `name`",
            "mine.toml:18: `idle` is the absence of load and cannot be combined with loads; remove it or the others",
            "mine.toml:21: there are two trials named `u`; give each a different name",
            "mine.toml:22: a cell has no `program`; add a line such as `program = [\"./app\"]`",
            "mine.toml:24: `decide` is 2; it must be a number of 0.0001 to 1.0",
        ]
    );
}
