//! Loads: each does something, in both forms; one that dies fails its trial; none outlives the run.

use std::path::Path;
use std::process::{Child, Stdio};

use record::run::Run;
use record::trial::TrialRecord;

use crate::support::{begun, eventually, only_run, say, timecell, traces_of};

/// An experiment of one bare cell with these trials, class OTHER.
fn file(dir: &Path, jobs: u32, trials: &str) -> String {
    let text = format!(
        "schema = 1\nname = \"loaded\"\nrounds = 1\n[workload]\nkind = \"timer\"\njobs = {jobs}\n\
         [scheduling]\nclass = \"other\"\n{trials}"
    );
    let path = dir.join("loaded.toml");
    std::fs::write(&path, text).unwrap();
    path.to_string_lossy().into_owned()
}

fn trials(dir: &Path) -> Vec<TrialRecord> {
    let run = Run::open(&only_run(dir)).unwrap();
    let numbers = run.trial_numbers().unwrap();
    numbers.into_iter().map(|n| run.trial(n).unwrap()).collect()
}

/// Every load achieved something, even in a shorter trial if it works once a second.
#[track_caller]
fn worked(trial: &TrialRecord) {
    assert_eq!(trial.failure, None, "{}", trial.name);
    for load in &trial.loads {
        assert_eq!(load.failure, None, "{}", load.name);
        assert!(load.achieved.iter().all(|a| a.window_ns > 0), "{load:?}");
        assert!(load.achieved[0].value > 0.0, "{load:?}");
        assert!(
            !load.cpus.is_empty() && !load.command.is_empty(),
            "{load:?}"
        );
    }
}

/// Every figure of every visit is present, each load has its verdict, and nothing is left behind.
#[case(Root, Load)]
fn bench_self_shows_what_a_load_moves(dir: &Path) {
    let words = [
        "bench", "self", "loads", "--quick", "--load", "cpu", "--json",
    ];
    let said = say(dir, &words);
    assert!([Some(0), Some(3)].contains(&said.code), "{}", said.err);
    let json: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let section = &json["sections"][0];
    for row in ["idle", "cpu", "idle, again", "counters read"] {
        let rounds = section["data"][row]["rounds"].as_array().unwrap();
        assert!(rounds.len() > 1, "{row}");
        for visit in rounds {
            let values = visit["values"].as_array().unwrap();
            assert_eq!(values.len(), 12);
            assert!(
                values.iter().all(|value| value.as_i64() > Some(0)),
                "{row}: {visit}"
            );
            assert!(
                visit["activity"]["context_switches"].as_u64() > Some(0),
                "{visit}"
            );
            assert_eq!(
                visit["achieved"].as_array().unwrap().is_empty(),
                row != "cpu"
            );
        }
    }
    let findings = section["findings"].as_array().unwrap();
    let judged = |what: &str| {
        findings
            .iter()
            .any(|f| f["what"] == what && f["holds"].is_boolean())
    };
    assert!(judged("cpu") && judged("idle, again"), "{findings:?}");
    assert!(!dir.join("runs/load-files").exists());
}

#[case(Root, Load)]
fn every_built_in_load_works_on_the_host_and_in_a_cell(dir: &Path) {
    let host = [
        "cpu", "ipc", "memory", "disk", "net-icmp", "net-tcp", "net-dev", "video",
    ];
    let mut loads: Vec<String> = (host.iter())
        .map(|kind| format!("{{ kind = \"{kind}\", form = \"built-in\" }}"))
        .collect();
    for kind in ["cpu", "ipc", "memory", "net-dev", "video"] {
        loads.push(format!(
            "{{ kind = \"{kind}\", name = \"in-{kind}\", in = \"cell\" }}"
        ));
    }
    let matrix = format!(
        "[matrix]\ncells = [[\"bare\"]]\nloads = [{}]\n",
        loads.join(", ")
    );
    // A load that changes network devices waits for others that do, such as crowds of cells in parallel cases.
    let file = file(dir, 500, &matrix);
    let mut child = timecell()
        .current_dir(dir)
        .args(["bench", &file])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let trials = trials(dir);
    assert_eq!(trials.len(), loads.len());
    for trial in &trials {
        worked(trial);
        assert_eq!(trial.loads[0].form, "built in");
        let place = match trial.loads[0].name.starts_with("in-") {
            true => "cell (embedded)",
            false => "host",
        };
        assert_eq!(trial.loads[0].place, place);
        assert_eq!(
            trial.loads[0].missed_seconds.is_some(),
            trial.loads[0].name == "net-tcp"
        );
    }
    let page = std::fs::read_to_string(only_run(dir).join("report.html")).unwrap();
    assert!(page.contains("Achieved rates") && page.contains("messages"));
    let traces = traces_of(child.id());
    assert!(traces.is_empty(), "{traces:#?}");
    assert_eq!(networks_of(child.id()), Vec::<String>::new());
    assert!(!only_run(dir).join("load-files").exists());
}

#[case(
    stress_ng_is_used_where_it_is("stress-ng", &["cpu", "memory", "disk", "net-dev"]);
    Root, Program("stress-ng"), Load
)]
#[case(hackbench_is_used_where_it_is("hackbench", &["ipc"]); Root, Program("hackbench"), Load)]
#[case(ping_is_used_where_it_is("ping", &["net-icmp"]); Root, Program("ping"), Load)]
#[case(ffmpeg_is_used_where_it_is("ffmpeg", &["video"]); Root, Program("ffmpeg"), Load)]
fn program(name: &str, kinds: &[&str]) {
    let dir = tempfile::tempdir().unwrap();
    let loads: Vec<String> = kinds.iter().map(|kind| format!("\"{kind}\"")).collect();
    let matrix = format!(
        "[matrix]\ncells = [[\"bare\"]]\nloads = [{}]\n",
        loads.join(", ")
    );
    let file = file(dir.path(), 1000, &matrix);
    say(dir.path(), &["bench", &file]).ends_with(0);
    for trial in trials(dir.path()) {
        worked(&trial);
        let load = &trial.loads[0];
        assert!(load.form.starts_with(name), "{load:?}");
        assert!(load.command.starts_with(name), "{load:?}");
        let quantities: Vec<&str> = load.achieved.iter().map(|a| a.quantity.as_str()).collect();
        assert!(
            quantities.len() > 1 && quantities.contains(&"cpu time"),
            "{name} tells more than its cpu time: {load:?}"
        );
    }
}

#[case(Load)]
fn a_load_that_ends_early_or_does_nothing_fails_its_trial(dir: &Path) {
    let file = file(
        dir,
        1500,
        "[[trial]]\nname = \"short\"\ncells = [\"bare\"]\nload = { kind = \"custom\", command = [\"sh\", \"-c\", \
         \"echo out of beans; exit 3\"] }\n\
         [[trial]]\nname = \"lazy\"\ncells = [\"bare\"]\nload = { kind = \"custom\", command = [\"sh\", \"-c\", \
         \"i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; sleep 1000\"] }\n\
         [[trial]]\ncells = [\"bare\"]\n",
    );
    let said = say(dir, &["bench", &file]).ends_with(1);
    let trials = trials(dir);
    let failure = trials[0].failure.clone().unwrap();
    assert!(failure.starts_with("load custom: "), "{failure}");
    assert!(
        failure.contains("out of beans") && failure.contains("exit status: 3"),
        "{failure}"
    );
    let failure = trials[1].failure.clone().unwrap();
    assert!(
        failure.starts_with("load custom: did nothing in the"),
        "{failure}"
    );
    // It was asked to end: its exit status does not matter.
    assert!(!failure.contains("ended with"), "{failure}");
    assert_eq!(trials[2].failure, None);
    assert!(said.err.contains("out of beans"), "{}", said.err);
}

/// Starts a bench whose single trial takes a minute under these loads, and waits until they and the cell run.
fn started(dir: &Path, loads: &str) -> Child {
    let file = file(
        dir,
        60_000,
        &format!("[[trial]]\nname = \"long\"\ncells = [\"bare\"]\nloads = [{loads}]\n"),
    );
    let mut child = begun(dir, &["bench", &file]);
    let count = loads.matches("kind").count();
    eventually("every load runs", || {
        assert!(child.try_wait().unwrap().is_none(), "the bench has ended");
        load_processes(child.id()).len() >= count
    });
    child
}

/// Pids of the built-in loads of coordinator `pid`.
fn load_processes(pid: u32) -> Vec<i32> {
    let name = format!("timecell-{pid}-");
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter_map(|entry| {
            let words = std::fs::read_to_string(entry.path().join("cmdline")).ok()?;
            let environment = std::fs::read(entry.path().join("environ")).ok()?;
            let ours = String::from_utf8_lossy(&environment).contains(&name);
            let works = words.contains("\0load\0run\0") && !words.contains("\0guard\0");
            (ours && works).then(|| entry.file_name().to_str()?.parse().ok())?
        })
        .collect()
}

/// Network namespaces and devices that this coordinator made.
fn networks_of(coordinator: u32) -> Vec<String> {
    ["/run/netns", "/sys/class/net"]
        .into_iter()
        .flat_map(|dir| std::fs::read_dir(dir).into_iter().flatten().flatten())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| {
            let number = name
                .trim_start_matches("timecell-")
                .trim_start_matches("tc");
            number.len() < name.len() && number.parse() == Ok(coordinator)
        })
        .collect()
}

const CPU: &str = "{ kind = \"cpu\", form = \"built-in\" }";
/// One on the host, one with a network, one with a disk, one in a cell.
const MANY: &str = "{ kind = \"cpu\", form = \"built-in\" }, { kind = \"net-icmp\", form = \"built-in\" }, \
                    { kind = \"disk\", form = \"built-in\" }, { kind = \"memory\", in = \"cell\" }";

#[case(Root, Load)]
fn a_killed_load_fails_its_trial_and_not_the_run(dir: &Path) {
    let child = started(dir, CPU);
    let id = child.id();
    for pid in load_processes(id) {
        // SAFETY: a process that the bench under test started.
        unsafe { libc::kill(pid, libc::SIGKILL) };
    }
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(1));
    let trials = trials(dir);
    let failure = trials[0].failure.clone().unwrap();
    assert!(
        failure.starts_with("load cpu: ended before the cells were done"),
        "{failure}"
    );
    assert!(trials[0].loads[0].failure.is_some());
    assert!(traces_of(id).is_empty());
}

#[case(Root, Load)]
fn nothing_of_a_load_is_left_after_kill_9_and_clean(dir: &Path) {
    let mut child = started(dir, MANY);
    child.kill().unwrap();
    child.wait().unwrap();
    // The kernel ends the loads itself, before anybody cleans up.
    eventually("no load runs", || load_processes(child.id()).is_empty());
    let said = say(dir, &["clean"]).ends_with(0);
    assert!(
        said.out.contains(&format!("process {}", child.id())),
        "{}",
        said.out
    );
    eventually("no trace is left", || traces_of(child.id()).is_empty());
    assert_eq!(networks_of(child.id()), Vec::<String>::new());
    assert!(!only_run(dir).join("load-files").exists());
}

#[case(Root, Load)]
fn ctrl_c_ends_loads_too(dir: &Path) {
    let mut child = started(dir, MANY);
    // SAFETY: our own child.
    unsafe { libc::kill(child.id().cast_signed(), libc::SIGINT) };
    assert_eq!(child.wait().unwrap().code(), Some(1));
    let traces = traces_of(child.id());
    assert!(traces.is_empty(), "{traces:#?}");
    assert_eq!(networks_of(child.id()), Vec::<String>::new());
    assert!(!only_run(dir).join("load-files").exists());
}

#[case]
fn what_a_trial_lacks_is_said_before_anything_runs(dir: &Path) {
    let file = file(
        dir,
        10,
        "[[trial]]\nname = \"none\"\ncells = [\"bare\"]\nload = { kind = \"custom\", command = [\"/no/program\"] }\n\
         [[trial]]\nname = \"wet\"\ncells = [\"bare\"]\nload = { kind = \"disk\", in = \"cell\" }\n\
         [[trial]]\nname = \"far\"\ncells = [\"bare\"]\nperiod = \"10ms\"\njobs = 7\n",
    );
    let said = say(dir, &["bench", &file, "--dry-run"]).ends_with(0);
    for line in [
        "none              will not be measured: the program `/no/program` was not found",
        "wet               will not be measured: the load disk needs a disk or a network, which cells do not have",
        ", 7 jobs of 10ms",
    ] {
        assert!(said.out.contains(line), "{line}\n{}", said.out);
    }
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(
        &file,
        text.replace("/no/program\"]", "sh\"], cpus = [4000]"),
    )
    .unwrap();
    let error = say(dir, &["bench", &file]).ends_with(2).error();
    assert!(
        error.contains("cpu 4000 of the load `custom` in trial `none` does not exist"),
        "{error}"
    );
}

#[case]
fn an_option_adds_loads_and_a_list_shows_them(dir: &Path) {
    let file = file(dir, 10, "[[trial]]\ncells = [\"bare\"]\nload = \"cpu\"\n");
    let said = say(dir, &["bench", &file, "--load", "cpu,memory", "--dry-run"]).ends_with(0);
    assert!(
        said.out.contains("memory (") && said.out.matches("cpu (").count() == 1,
        "{}",
        said.out
    );
    let error = say(dir, &["bench", &file, "--load", "icp"]).ends_with(2);
    assert!(error.err.contains("did you mean `ipc`?"), "{}", error.err);
    let error = say(dir, &["bench", &file, "--load", "custom"])
        .ends_with(2)
        .error();
    assert!(
        error.contains("the load `custom` needs a command"),
        "{error}"
    );
    let words = ["bench", "overhead", "--dry-run", "--load"];
    let plan = |load| say(dir, &[&words[..], &[load]].concat()).ends_with(0).out;
    assert!(!plan("idle").contains("net-tcp"));
    assert!(plan("idle,net-tcp").contains("net-tcp"));
    let list = say(dir, &["bench", "--list-loads"]).ends_with(0).out;
    for name in [
        "idle", "cpu", "ipc", "memory", "disk", "net-icmp", "net-tcp", "net-dev", "video", "custom",
    ] {
        assert!(
            list.lines()
                .any(|line| line.starts_with(&format!("{name} "))),
            "{list}"
        );
    }
}
