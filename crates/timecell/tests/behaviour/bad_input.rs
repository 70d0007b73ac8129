//! Bad input: one sentence that names the place and the fix, the documented exit code, and nothing left behind.

use std::fs;
use std::path::Path;

use crate::support::{experiment, say};

#[case]
fn each_gets_its_sentence_and_code(dir: &Path) {
    let good = fs::read_to_string(experiment(dir, &["bare"], 10)).unwrap();
    let refused = |words: &[&str], parts: &[&str]| {
        let said = say(dir, words).ends_with(2);
        let error = said.error();
        for part in parts {
            assert!(error.contains(part), "`{part}` is not in: {error}");
        }
    };
    let text = good.replace("[workload]", "[scheduling]\ncpus = [4095]\n[workload]");
    fs::write(dir.join("mine.toml"), text).unwrap();
    refused(
        &["bench", "mine.toml"],
        &["cpu 4095 does not exist", "usable cpus are"],
    );
    refused(
        &["bench", "overhaed"],
        &[
            "no such scenario",
            "did you mean `overhead`? the scenarios are overhead, concurrency",
        ],
    );
    refused(&["bench", "absent.toml"], &["absent.toml", "No such file"]);
    refused(
        &["bench", "overhead", "--priority", "0"],
        &["--priority", "1 to 99"],
    );
    refused(
        &["bench", "overhead", "--priority", "100"],
        &["--priority", "1 to 99"],
    );
    refused(
        &["bench", "overhead", "--jobs", "-5"],
        &["--jobs", "1 to 100000000"],
    );
    refused(
        &["bench", "overhead", "--cpus", "4095"],
        &["cpu 4095 does not exist"],
    );
    refused(&["bench", "overhead", "--cpus", "x"], &["--cpus"]);
    refused(&["bench", "overhead", "extra"], &["extra", "self"]);
    refused(&["bench", "self", "tea"], &["no part `tea`", "wakeup"]);
    refused(
        &["bench", "self", "--histogram"],
        &["--histogram", "--quick, "],
    );
    refused(
        &["bench", "startup", "--counts", "3"],
        &["--counts", "startup"],
    );
    for part in ["0", "nan", "inf", "1.5", "0.00001", "200%"] {
        refused(
            &["bench", "overhead", "--decide", part],
            &["--decide", "0.0001 to 1"],
        );
    }
    fs::write(dir.join("mine.toml"), &good).unwrap();
    refused(
        &["bench", "mine.toml", "--decide", "5%"],
        &["--decide", "take no turns", "add [turns]"],
    );
    for deadline in ["1us", "2h"] {
        refused(
            &["bench", "overhead", "--deadline", deadline],
            &["--deadline", "10us to 1h"],
        );
    }
    refused(
        &["bench", "taskset", "--deadline", "5ms"],
        &["--deadline", "does not take this option"],
    );
    refused(
        &["bench", "overhead", "--program", "."],
        &["--program", "is a directory", "name a program in it"],
    );
    refused(
        &["report", "absent"],
        &["absent", "no such file or directory"],
    );
    refused(&["export", "absent", "--csv"], &["absent", "not a run"]);
    // These come from clap: a differently worded sentence, the same code.
    let clap = |words: &[&str], part: &str| {
        let said = say(dir, words).ends_with(2);
        assert!(said.err.contains(part), "{}", said.err);
    };
    clap(
        &["bench", "overhead", "--engine", "podmna"],
        "did you mean `podman`?",
    );
    clap(&["bench", "overhead", "--period=-1ms"], "negative");
    clap(&["bench", "overhead", "--duration", "5"], "no unit");
    for condition in ["latency.p99 < 5", "latency.p99 < 5 parsecs"] {
        clap(
            &["bench", "overhead", "--until", condition],
            "character 15: ",
        );
    }
    clap(&["bench"], "required");
    clap(&["report"], "required");
    clap(&["export", "x"], "required");
}

/// Each option of a scenario has its range, and is refused by the scenarios that have no use for it. Nothing is left behind.
#[case]
fn what_does_not_apply_to_a_scenario_is_refused(dir: &Path) {
    for (scenario, option, part) in [
        ("isolation", "--utilisation -1", "0.1 to 1"),
        ("isolation", "--overrun 0.5", "above 1"),
        ("isolation", "--duration 100ms", "1s to 1h"),
        ("isolation", "--priority 3", "6 to 99"),
        (
            "isolation",
            "--reservation 60ms/100ms,60ms/100ms",
            "0.9 of the cpu",
        ),
        ("isolation", "--no-try", "only `supply`"),
        ("isolation", "wakeup", "contest and received"),
        ("supply", "--reservation 2ms/1ms", "larger than its period"),
        ("supply", "--duration 1ms", "500ms to 30s"),
        ("supply", "--cpus 0,60000", "name one"),
        ("supply", "--load cpu,disk", "name one"),
        ("supply", "--threads 65", "1 to 64"),
        ("supply", "--seed 3", "only `isolation`"),
        ("startup", "--rounds 0", "the number of rounds is 0"),
        ("startup", "--period 1ms", "does not take this option"),
        ("recovery", "--heartbeat-timeout 1ms", "3ms or more"),
        ("scale", "--counts 2,1", ": the counts do not ascend"),
        ("scale", "--set scale.failure_limit=1.5", "0.0 to 1.0"),
        ("scale", "--set scale.starvation_limit=10ms", "1s to 60s"),
        ("scale", "--set scale.memory_reserve=1", "has no unit"),
        ("scale", "--set scale.paralel=1", "did you mean `parallel`?"),
        ("overhead", "--set scale.parallel=1", "[scale]"),
        ("overhead", "--set rounds", "KEY=VALUE"),
        (
            "overhead",
            "--set trial.none.jobs=1",
            "no table `trial.none`",
        ),
        ("overhead", "--counts 2", "only `scale`"),
    ] {
        let mut all = vec!["bench", scenario];
        all.extend(option.split(' '));
        let error = say(dir, &all).ends_with(2).error();
        let name = option.split(' ').next().unwrap();
        assert!(error.contains(name) && error.contains(part), "{error}");
    }
    let listed = say(dir, &["bench", "--list"]).ends_with(0).out;
    for name in ["isolation", "supply", "startup", "recovery", "footprint"] {
        assert!(listed.contains(&format!("\n{name} ")), "{listed}");
    }
    for name in ["startup", "recovery", "footprint", "overhead"] {
        let said = say(dir, &["bench", name, "--dry-run"]).ends_with(0);
        assert!(said.out.contains("requirements"), "{}", said.out);
    }
    files_are_read(dir);
    assert_eq!(fs::read_dir(dir).unwrap().count(), 0);
}

/// Whether an option applies to a file is known when it is read; the template is one that is measured.
fn files_are_read(dir: &Path) {
    let files = tempfile::tempdir().unwrap();
    let file = |text: &str| {
        let path = files.path().join("x.toml");
        fs::write(&path, text).unwrap();
        path.to_string_lossy().into_owned()
    };
    let scale = file(
        "schema = 1\nname = \"x\"\n[workload]\nkind = \"mac\"\nsteps = 1000\njobs = 20\nperiod = \"1ms\"\n\
         pacing = \"relative\"\n[scale]\nengines = [\"embedded\"]\ncounts = [1]\n",
    );
    let refused = say(dir, &["bench", &scale, "--load", "cpu"]).ends_with(2);
    let what = "--load: a scale study has no loads";
    assert!(refused.error().starts_with(what), "{}", refused.err);
    let template = file(&say(dir, &["bench", "--template"]).ends_with(0).out);
    let said = say(dir, &["bench", &template, "--dry-run"]).ends_with(0);
    assert!(said.out.contains("disturbed"), "{}", said.out);
}

#[case]
fn the_probe_refuses_words_it_does_not_know(dir: &Path) {
    for (part, words) in [
        ("queens", "n=12 threads=1"),
        ("queens", "knights=1"),
        ("supply", "fifo=80"),
        ("supply", "knights=1"),
    ] {
        let mut all = vec!["probe", part];
        all.extend(words.split(' '));
        say(dir, &all).ends_with(2);
    }
}

/// Every verb is told its mission in the same ways.
#[case]
fn a_mission_that_is_not_there(dir: &Path) {
    let unknown = |words: &[&str]| {
        let said = say(dir, words).ends_with(2);
        let what = "there is no mission `nowhere`";
        assert!(said.error().contains(what), "{words:?}: {}", said.err);
    };
    for verb in ["ps", "top", "events", "down"] {
        unknown(&[verb, "nowhere"]);
        unknown(&[verb, "-m", "nowhere"]);
        let said = say(dir, &[verb, "nowhere/cell"]).ends_with(2);
        assert!(said.error().contains("such as `nowhere`"), "{}", said.err);
    }
    for verb in ["logs", "stop", "start", "restart"] {
        unknown(&[verb, "nowhere/cell"]);
        unknown(&[verb, "cell", "-m", "nowhere"]);
        let said = say(dir, &[verb, "nowhere/cell", "-m", "other"]).ends_with(2);
        assert!(said.error().contains("MISSION/CELL"), "{}", said.err);
    }
}

#[case]
fn an_unwritable_run_directory(dir: &Path) {
    let file = experiment(dir, &["bare"], 10);
    // Not even root can create directories in /proc.
    let error = say(dir, &["bench", &file, "--out", "/proc/runs"])
        .ends_with(2)
        .error();
    assert!(error.contains("/proc/runs"), "{error}");
    fs::write(dir.join("taken"), "").unwrap();
    let said = say(dir, &["bench", &file, "--out", "taken"]).ends_with(2);
    assert!(said.error().contains("taken"));
}

/// Runs `see` with a file system of `bytes` bytes.
pub fn on_small_disk(bytes: u64, see: impl FnOnce(&Path)) {
    struct Mounted(std::path::PathBuf);
    impl Drop for Mounted {
        fn drop(&mut self) {
            let _ = std::process::Command::new("umount").arg(&self.0).status();
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", &format!("size={bytes}"), "none"])
        .arg(dir.path())
        .status()
        .unwrap();
    assert!(mounted.success());
    let mounted = Mounted(dir.path().to_owned());
    see(&mounted.0);
}

#[case(Root)]
fn a_full_disk() {
    on_small_disk(64 << 10, |disk| {
        let work = tempfile::tempdir().unwrap();
        let file = experiment(work.path(), &["bare"], 5_000);
        let out = disk.to_string_lossy();
        let error = say(work.path(), &["bench", &file, "--out", &out])
            .ends_with(1)
            .error();
        assert!(error.contains("the disk has 0 MiB free"), "{error}");
        assert_eq!(fs::read_dir(disk).unwrap().count(), 0);
    });
}

#[case(Root)]
fn a_disk_that_fills_up() {
    on_small_disk(100 << 10, |disk| {
        let work = tempfile::tempdir().unwrap();
        let file = experiment(work.path(), &["bare"], 500);
        let out = disk.to_string_lossy();
        // The samples fit, but the page does not.
        let error = say(work.path(), &["bench", &file, "--out", &out])
            .ends_with(1)
            .error();
        assert!(error.contains("the disk is full"), "{error}");
        let run = fs::read_dir(disk).unwrap().next().unwrap().unwrap().path();
        let halves: Vec<_> = fs::read_dir(&run)
            .unwrap()
            .filter(|e| {
                e.as_ref()
                    .unwrap()
                    .file_name()
                    .to_string_lossy()
                    .ends_with(".part")
            })
            .collect();
        assert!(halves.is_empty(), "{halves:?}");
    });
}
