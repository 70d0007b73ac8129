//! `doctor --fix` on the machine itself, which is as before after `--undo`, and after a failed test.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::missions::{Up, busybox, mission, shell};
use crate::support::{Said, binary, eventually, experiment, say, timecell};
use crate::unprivileged::{as_nobody, open_place};

const TIMERS: &str = "/proc/sys/kernel/timer_migration";
const DEFAULT: &str = "/proc/irq/default_smp_affinity";
const UNDO: &str = "/run/timecell/doctor-undo.json";

/// All files that a fix may change, with their contents; written back at any end of the test.
struct Machine(BTreeMap<PathBuf, String>);

impl Machine {
    fn now() -> Machine {
        let mut files: Vec<PathBuf> = vec![
            TIMERS.into(),
            DEFAULT.into(),
            "/proc/sys/kernel/sched_rt_runtime_us".into(),
            "/sys/kernel/mm/transparent_hugepage/enabled".into(),
            "/sys/kernel/debug/sched/preempt".into(),
            "/sys/module/rcutree/parameters/rcu_resched_ns".into(),
            "/sys/kernel/debug/sched/features".into(),
            "/sys/devices/system/clocksource/clocksource0/current_clocksource".into(),
        ];
        let below = |dir: &str, file: &str| -> Vec<PathBuf> {
            let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
            entries.map(|entry| entry.path().join(file)).collect()
        };
        files.extend(below("/proc/irq", "smp_affinity_list"));
        files.extend(below("/sys/devices/system/cpu", "cpufreq/scaling_governor"));
        files.extend(below("/sys/kernel/debug/sched/fair_server", "runtime"));
        for cpu in below("/sys/devices/system/cpu", "cpuidle") {
            files.extend(below(&cpu.to_string_lossy(), "disable"));
        }
        let read = |file: PathBuf| Some((file.clone(), std::fs::read_to_string(file).ok()?));
        Machine(files.into_iter().filter_map(read).collect())
    }

    #[track_caller]
    fn is_as_it_was(&self) {
        assert_eq!(Machine::now().0, self.0);
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        let _ = timecell().args(["doctor", "--undo"]).output();
        // Even if the undo fails, these files get their contents back.
        for (file, was) in &self.0 {
            let plain = file.starts_with("/proc") || was.split_whitespace().count() == 1;
            if plain && std::fs::read_to_string(file).is_ok_and(|now| now != *was) {
                let _ = std::fs::write(file, was);
            }
        }
    }
}

fn timers() -> String {
    std::fs::read_to_string(TIMERS).unwrap().trim().to_owned()
}

fn json(said: Said) -> serde_json::Value {
    serde_json::from_str(&said.out).unwrap()
}

fn of<'a>(list: &'a serde_json::Value, path: &str) -> Option<&'a serde_json::Value> {
    (list.as_array().unwrap().iter()).find(|change| change["path"] == path)
}

/// The machine with something to fix, and as it was once `see` is over.
fn with_timers_that_move(see: impl FnOnce(&Path, &Machine)) {
    let first = Machine::now();
    let was = timers();
    std::fs::write(TIMERS, "1").unwrap();
    let dir = tempfile::tempdir().unwrap();
    let fixed = Machine::now();
    see(dir.path(), &fixed);
    fixed.is_as_it_was();
    std::fs::write(TIMERS, was).unwrap();
    first.is_as_it_was();
}

#[case(Alone, Root, File(TIMERS))]
fn what_is_changed_is_told_and_put_back() {
    with_timers_that_move(|dir, before| {
        let tried = say(dir, &["doctor", "--fix", "--dry-run"]).ends_with(0);
        let line = format!("{TIMERS}: 1 -> 0");
        assert!(tried.out.contains(&line), "{}", tried.out);
        before.is_as_it_was();
        assert!(!Path::new(UNDO).exists());

        let fixed = json(say(dir, &["doctor", "--fix", "--json"]).ends_with(0));
        let change = of(&fixed["changed"], TIMERS).unwrap();
        assert_eq!((&change["was"], &change["set"]), (&"1".into(), &"0".into()));
        assert_eq!((timers().as_str(), &fixed["undo"]), ("0", &UNDO.into()));
        let checks = json(say(dir, &["doctor", "--json"]).ends_with(0));
        let check = (checks["checks"].as_array().unwrap().iter())
            .find(|check| check["id"] == "timer-migration");
        assert_eq!(check.unwrap()["state"], "good");
        // The second time there is nothing to do, and the first values are still recorded.
        let again = json(say(dir, &["doctor", "--fix", "--json"]).ends_with(0));
        assert!(of(&again["changed"], TIMERS).is_none(), "{again}");

        // A copy of the undo file finds everything already undone.
        let copy = dir.join("copy.json");
        std::fs::copy(UNDO, &copy).unwrap();
        let back = say(dir, &["doctor", "--undo"]).ends_with(0);
        let line = format!("{TIMERS}: 0 -> 1");
        assert!(back.out.contains(&line), "{}", back.out);
        before.is_as_it_was();
        assert!(!Path::new(UNDO).exists(), "nothing is left behind");
        let twice = say(dir, &["doctor", "--undo"]).ends_with(0);
        assert!(twice.out.contains("nothing to put back"), "{}", twice.out);
        let copied = say(dir, &["doctor", "--undo", "copy.json"]).ends_with(0);
        assert!(copied.out.contains("is already 1"), "{}", copied.out);
        before.is_as_it_was();
    });
}

#[case(Alone, Root, TwoCpus, File(DEFAULT))]
fn interrupts_leave_the_cpus_that_are_named() {
    let before = Machine::now();
    let dir = tempfile::tempdir().unwrap();
    let online = host::cpus::online().unwrap();
    let (last, rest) = online.split_last().unwrap();
    let cpus = last.to_string();
    let words = ["doctor", "--fix", "--json", "--cpus", &cpus];
    let fixed = json(say(dir.path(), &words).ends_with(0));
    let default = std::fs::read_to_string(DEFAULT).unwrap();
    let default = host::cpus::parse_mask(&default).unwrap();
    assert!(
        !default.contains(last) && !default.is_empty(),
        "{default:?}"
    );
    for change in fixed["changed"].as_array().unwrap() {
        let path = change["path"].as_str().unwrap();
        if path.ends_with("smp_affinity_list") {
            let now = std::fs::read_to_string(path).unwrap();
            let now = host::cpus::parse_list(&now).unwrap();
            assert!(now.iter().all(|cpu| rest.contains(cpu)), "{path}: {now:?}");
        }
    }
    // Those that stay are listed, and all others have moved.
    for irq in std::fs::read_dir("/proc/irq").unwrap().flatten() {
        let path = irq.path().join("smp_affinity_list");
        let Ok(text) = std::fs::read_to_string(&path) else {
            continue;
        };
        let stays = of(&fixed["stayed"], &path.to_string_lossy()).is_some();
        let there = host::cpus::parse_list(&text).unwrap().contains(last);
        assert!(!there || stays, "{}: {text}", path.display());
    }
    say(dir.path(), &["doctor", "--undo"]).ends_with(0);
    before.is_as_it_was();
}

#[case(Alone, Root, File(TIMERS))]
fn bad_input_is_one_sentence_and_changes_nothing() {
    with_timers_that_move(|dir, before| {
        let (place, binary) = open_place();
        for words in [&["doctor", "--fix"][..], &["doctor", "--undo"]] {
            let said = as_nobody(place.path(), &binary, words).ends_with(4);
            assert!(said.error().starts_with("only root may"), "{}", said.err);
        }
        // Printing the possible changes needs no privilege.
        let tried =
            as_nobody(place.path(), &binary, &["doctor", "--fix", "--dry-run"]).ends_with(0);
        assert!(tried.out.contains(TIMERS), "{}", tried.out);

        let error = |words: &[&str]| say(dir, words).ends_with(2).error();
        assert!(error(&["doctor", "--fix", "--cpus", "4095"]).contains("4095 is not online"));
        assert!(error(&["doctor", "--cpus", "one"]).contains("--cpus: `one` is not a cpu"));
        assert!(error(&["doctor", "--undo", "none.json"]).contains("no such file"));
        std::fs::write(dir.join("other.json"), "{}").unwrap();
        assert!(error(&["doctor", "--undo", "other.json"]).contains("not an undo file"));
        let change = format!(
            "{{\"schema\": 1, \"boot_id\": \"\", \"changes\": [{{\"id\": \"x\", \"path\": \"{}\", \"form\": \"plain\", \"was\": \"1\", \"set\": \"0\"}}]}}",
            dir.join("other.json").display()
        );
        std::fs::write(dir.join("forged.json"), change).unwrap();
        assert!(error(&["doctor", "--undo", "forged.json"]).contains("which no fix changes"));
        std::os::unix::fs::chown(dir.join("forged.json"), Some(65_534), None).unwrap();
        assert!(error(&["doctor", "--undo", "forged.json"]).contains("belongs to user 65534"));
        // A file that cannot be written is found before anything is changed.
        let said = error(&["doctor", "--fix", "--persist", "other.json"]);
        assert!(said.starts_with("other.json: "), "{said}");
        for words in [
            &["doctor", "--dry-run"][..],
            &["doctor", "--fix", "--undo"],
            &["doctor", "--fix", "--strict"],
        ] {
            say(dir, words).ends_with(2);
        }
        before.is_as_it_was();
        assert!(!Path::new(UNDO).exists());
    });
}

/// Runs the binary with another view of the file system.
fn seeing(dir: &Path, mount: &str, words: &[&str]) -> Said {
    let script = format!("{mount} && exec \"$0\" \"$@\"");
    let mut command = Command::new("unshare");
    (command.args(["-m", "sh", "-c", &script]).arg(binary()))
        .args(words)
        .current_dir(dir)
        .output()
        .unwrap()
        .into()
}

#[case(Alone, Root, Program("unshare"), File(TIMERS))]
fn what_is_read_only_or_closed_is_told() {
    with_timers_that_move(|dir, before| {
        let read_only = "mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys";
        let said = seeing(dir, read_only, &["doctor", "--fix"]).ends_with(4);
        assert!(said.error().contains("mounted read-only"), "{}", said.err);
        assert!(said.error().contains(TIMERS), "{}", said.err);
        before.is_as_it_was();
        assert!(!Path::new(UNDO).exists());

        // If the undo file cannot be written, or others cannot be kept from measuring meanwhile, nothing is changed.
        let no_undo =
            "mount -t tmpfs -o mode=755 none /run/timecell && mkdir /run/timecell/doctor-undo.part";
        let said = seeing(dir, no_undo, &["doctor", "--fix"]).ends_with(1);
        let error = said.error();
        assert!(
            error.starts_with(UNDO) && error.contains("without it nothing is changed"),
            "{error}"
        );
        before.is_as_it_was();
        let no_run = "mount -t tmpfs -o ro none /run/timecell";
        let said = seeing(dir, no_run, &["doctor", "--fix"]).ends_with(1);
        assert!(said.error().contains("/run/timecell"), "{}", said.err);
        before.is_as_it_was();

        let no_debugfs = "{ [ ! -d /sys/kernel/debug ] || mount -t tmpfs none /sys/kernel/debug; }";
        let said = seeing(dir, no_debugfs, &["doctor", "--json"]).ends_with(0);
        let checks = json(said);
        let of_check = |id: &str| {
            let checks = checks["checks"].as_array().unwrap();
            checks
                .iter()
                .find(|check| check["id"] == id)
                .unwrap()
                .clone()
        };
        let said =
            seeing(dir, no_debugfs, &["doctor", "--fix", "--dry-run", "--json"]).ends_with(0);
        let left = json(said)["left"].to_string();
        for id in ["deadline-timer", "fair-server"] {
            // Kernels that have neither have nothing to read either.
            if of_check(id)["state"] == "unknown" {
                let found = of_check(id)["found"].to_string();
                assert!(found.contains("debugfs is not mounted"), "{found}");
                assert!(
                    left.contains(id) && left.contains("mount -t debugfs"),
                    "{left}"
                );
            }
        }
    });
}

#[case(Alone, Root, Program("busybox"), File(TIMERS))]
fn nobody_changes_the_machine_under_a_measurement_or_a_mission() {
    with_timers_that_move(|dir, before| {
        let file = experiment(dir, &["bare"], 30_000);
        let mut bench = timecell()
            .current_dir(dir)
            .args(["bench", &file])
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let mut refused = String::new();
        eventually("the measurement is in the ledger", || {
            let said = say(dir, &["doctor", "--undo"]);
            refused.clone_from(&said.err);
            said.code == Some(4)
        });
        let fix = say(dir, &["doctor", "--fix"]);
        let place = || {
            let entries = std::fs::read_dir("/dev/shm").unwrap().flatten();
            let mut places = entries.map(|entry| entry.path()).filter(|path| {
                let note = std::fs::read(path.join("owner.json")).unwrap_or_default();
                serde_json::from_slice::<serde_json::Value>(&note)
                    .is_ok_and(|note| note["pid"] == bench.id())
            });
            places.next()
        };
        eventually("the measurement has a place", || place().is_some());
        let place = place().unwrap();
        bench.kill().unwrap();
        bench.wait().unwrap();
        // The changes of a killed one would be recorded as the machine's old state.
        std::fs::write(place.join("isolation-99"), "").unwrap();
        let left = ["--fix", "--undo"].map(|word| say(dir, &["doctor", word]));
        say(dir, &["clean"]).ends_with(0);
        for said in left {
            let said = said.ends_with(4).error();
            assert!(
                said.contains(&*place.to_string_lossy()) && said.contains("timecell clean"),
                "{said}"
            );
        }
        let fix = fix.ends_with(4).error();
        let who = "small.toml` (process ";
        assert!(fix.contains(who) && fix.contains("is measuring"), "{fix}");
        assert!(refused.contains(who), "{refused}");
        before.is_as_it_was();

        mission(
            dir,
            &shell("a", "while :; do sleep 1; done", "class = \"other\""),
        );
        let mut up = Up::start(dir);
        up.until("a: runs (pid");
        // Beside a mission, the machine can be made fitter, but not less fit.
        let fix = say(dir, &["doctor", "--fix"]);
        let undo = say(dir, &["doctor", "--undo"]);
        up.end();
        let back = say(dir, &["doctor", "--undo"]);
        fix.ends_with(0);
        let undo = undo.ends_with(4).error();
        assert!(
            undo.starts_with("mission `") && undo.contains("end it first"),
            "{undo}"
        );
        back.ends_with(0);
    });
}

#[case(Alone, Root, RealTime, Freezer, TwoCpus, Program("busybox"))]
fn what_is_held_is_given_back_first(dir: &Path) {
    let mut sleeper = Command::new(busybox())
        .args(["sleep", "1000"])
        .spawn()
        .unwrap();
    let pid = sleeper.id().to_string();
    let hold = say(dir, &["hold", "--reserve", "5ms/50ms", "--cpu", "1", &pid]);
    let undo = say(dir, &["doctor", "--undo"]);
    let release = say(dir, &["release", &pid]);
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    hold.ends_with(0);
    release.ends_with(0);
    let undo = undo.ends_with(4).error();
    assert!(
        undo.starts_with("the hold of `") && undo.contains("`timecell release`"),
        "{undo}"
    );
}

#[case(Alone, Root, Deadline, TwoCpus, Program("busybox"))]
fn a_mission_on_any_cpu_takes_none(dir: &Path) {
    let task = "[[cell.task]]\nname = \"loop\"\nwcet = \"1ms\"\nperiod = \"100ms\"";
    let cell = shell("a", "exec /busybox sleep 1000", task);
    mission(dir, &format!("enforcer = \"deadline\"\n{cell}"));
    let before = json(say(dir, &["doctor", "--json"]));
    let mut up = Up::start(dir);
    up.until("a: runs (pid");
    let beside = json(say(dir, &["doctor", "--json"]));
    let ledger = say(dir, &["ps", "--machine"]);
    up.end();
    assert!(ledger.out.contains("0-"), "{}", ledger.out);
    assert_eq!(beside["cpus"], before["cpus"]);
}

#[case(File(TIMERS))]
fn what_lasts_is_written_and_nothing_put_in_place(dir: &Path) {
    let places = [
        "/etc/sysctl.d/90-timecell.conf",
        "/etc/systemd/system/timecell-doctor.service",
    ];
    let in_place = || places.map(|place| Path::new(place).exists());
    let before = (timers(), in_place());
    let said = say(dir, &["doctor", "--persist", "made/here"]).ends_with(0);
    let read = |name: &str| std::fs::read_to_string(dir.join("made/here").join(name));
    let sysctl = read("90-timecell.conf").unwrap();
    assert!(sysctl.contains("kernel.timer_migration = 0\n"), "{sysctl}");
    let unit = read("timecell-doctor.service").unwrap();
    let start = format!("ExecStart={} doctor --fix --cpus ", binary().display());
    assert!(unit.contains(&start), "{unit}");
    if let Ok(line) = read("kernel-parameters") {
        assert_eq!(line.lines().count(), 1, "{line}");
        assert!(
            line.split_whitespace().all(|word| word.contains('=')),
            "{line}"
        );
    }
    assert!(said.out.contains("/etc/sysctl.d"), "{}", said.out);
    let printed = say(dir, &["doctor", "--persist"]).ends_with(0);
    assert!(
        printed.out.contains("    kernel.timer_migration = 0\n"),
        "{}",
        printed.out
    );
    let json = json(say(dir, &["doctor", "--persist", "--json"]).ends_with(0));
    let pieces = json["persist"].as_array().unwrap();
    assert!(
        pieces.iter().any(|piece| piece["text"] == unit.as_str()),
        "{json}"
    );
    std::fs::write(dir.join("file"), "").unwrap();
    let error = say(dir, &["doctor", "--persist", "file"])
        .ends_with(2)
        .error();
    assert!(error.starts_with("file: "), "{error}");
    assert_eq!((timers(), in_place()), before);
}
