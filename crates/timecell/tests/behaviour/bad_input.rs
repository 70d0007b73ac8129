//! Bad input: one sentence that names the place and the fix, the documented exit code, and nothing left behind.

use std::fs;
use std::path::Path;

use crate::support::{experiment, only_run, say};

#[case]
fn each_gets_its_sentence_and_code(dir: &Path) {
    let good = fs::read_to_string(experiment(dir, &["bare"], 10)).unwrap();
    let file = |from: &str, to: &str| {
        fs::write(dir.join("mine.toml"), good.replace(from, to)).unwrap();
    };
    let refused = |words: &[&str], parts: &[&str]| {
        let said = say(dir, words).ends_with(2);
        let error = said.error();
        for part in parts {
            assert!(error.contains(part), "`{part}` is not in: {error}");
        }
    };
    for (from, to, parts) in [
        (
            "jobs = 10",
            "jobs = 10\nperoid = \"1ms\"",
            ["mine.toml:8:", "did you mean `period`?"],
        ),
        (
            "jobs = 10",
            "period = \"-1ms\"",
            ["mine.toml:7:", "negative"],
        ),
        ("jobs = 10", "jobs = 0", ["mine.toml:7:", "1 to 100000000"]),
        (
            "\"bare\"",
            "\"dcoker\"",
            ["mine.toml:9:", "did you mean `docker`?"],
        ),
        (
            "[workload]",
            "[scheduling]\npriority = 100\n[workload]",
            ["mine.toml:5:", "1 to 99"],
        ),
        (
            "[workload]",
            "[scheduling]\npriority = 0\n[workload]",
            ["mine.toml:5:", "1 to 99"],
        ),
        (
            "[workload]",
            "[scheduling]\ncpus = [4095]\n[workload]",
            ["cpu 4095 does not exist", "usable cpus are"],
        ),
        ("schema = 1", "schema = 7", ["mine.toml:1:", "newer"]),
    ] {
        file(from, to);
        refused(&["bench", "mine.toml"], &parts);
    }
    // All faults at once, in the order of their lines.
    file("jobs = 10", "jobs = 0\npace = 1\ndeadline = \"9\"");
    let said = say(dir, &["bench", "mine.toml"]).ends_with(2).err;
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 3, "{said}");
    for (line, number) in lines.iter().zip(7..) {
        assert!(
            line.starts_with(&format!("error: mine.toml:{number}: ")),
            "{said}"
        );
    }
    refused(
        &["bench", "overhaed"],
        &["no such scenario", "overhead, concurrency"],
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
        &["bench", "startup", "--parallel", "3"],
        &["--parallel", "startup"],
    );
    for part in ["0", "nan", "inf", "1.5", "0.00001", "200%"] {
        refused(
            &["bench", "overhead", "--decide", part],
            &["--decide", "0.0001 to 1"],
        );
    }
    file("", "");
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

#[case]
fn nothing_is_left_behind(dir: &Path) {
    say(dir, &["bench", "overhead", "--cpus", "4095"]).ends_with(2);
    say(dir, &["bench", "overhead", "--dry-run"]).ends_with(0);
    assert_eq!(fs::read_dir(dir).unwrap().count(), 0);
}

#[case]
fn a_run_cut_short_or_newer(dir: &Path) {
    let file = experiment(dir, &["bare"], 20);
    say(dir, &["bench", &file]).ends_with(0);
    let run = only_run(dir);
    let name = run.to_string_lossy().into_owned();
    let broken = |path: &str, change: &dyn Fn(Vec<u8>) -> Vec<u8>, part: &str| {
        let path = run.join(path);
        let good = fs::read(&path).unwrap();
        fs::write(&path, change(good.clone())).unwrap();
        for words in [
            vec!["report", &name],
            vec!["export", &name, "--csv", "-o", "x.csv"],
        ] {
            if path.ends_with("experiment.toml") && words[0] == "export" {
                continue;
            }
            let error = say(dir, &words).ends_with(2).error();
            assert!(error.contains(part), "`{part}` is not in: {error}");
            assert!(
                error.contains(path.file_name().unwrap().to_str().unwrap()),
                "{error}"
            );
        }
        assert!(
            !dir.join("x.csv").exists(),
            "a part-written export stays behind"
        );
        fs::write(&path, good).unwrap();
    };
    let half = |mut bytes: Vec<u8>| {
        bytes.truncate(bytes.len() - 40);
        bytes
    };
    broken("trials/1/1-bare.samples", &half, "cut short");
    broken("trials/2/trial.json", &half, "cut short");
    let newer = |bytes: Vec<u8>| {
        let text = String::from_utf8(bytes).unwrap();
        text.replacen("\"schema\": 1", "\"schema\": 2", 1)
            .into_bytes()
    };
    broken("trials/1/trial.json", &newer, "schema 2 is newer");
    say(dir, &["report", &name]).ends_with(0);
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
fn on_small_disk(bytes: u64, see: impl FnOnce(&Path)) {
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
