//! Missions: admission, and cells that `up` keeps running.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use supervise::enforce::MissionGroups;
use supervise::page::Place;

use crate::control::ask;
use crate::support::{Need, eventually, say, timecell};

const CELLS: &[Need] = &[
    Need::Root,
    Need::RealTime,
    Need::Program("busybox"),
    Need::GroupBudget(300),
];

pub const PATIENCE: Duration = Duration::from_secs(60);

fn task(name: &str, wcet: &str, period: &str) -> String {
    // A static program; admission starts nothing.
    let program = env!("CARGO_BIN_EXE_timecell");
    format!(
        "[[cell]]\nname = \"{name}\"\nimage = {{ binary = \"{program}\" }}\n[[cell.task]]\nname = \"loop\"\nwcet = \"{wcet}\"\nperiod = \"{period}\"\n"
    )
}

/// Name of the mission of a test, made unique by its directory.
pub fn name(dir: &Path) -> String {
    let own = dir.file_name().unwrap().to_string_lossy().replace('.', "");
    format!("test-{own}")
}

pub fn mission(dir: &Path, cells: &str) -> PathBuf {
    let path = dir.join("mission.toml");
    fs::write(
        &path,
        format!("schema = 1\nname = \"{}\"\n{cells}", name(dir)),
    )
    .unwrap();
    path
}

#[case(RealTime, GroupBudget(150))]
fn what_holds_is_admitted_with_its_bounds(dir: &Path) {
    mission(dir, &task("control", "2ms", "100ms"));
    let said = say(dir, &["admit", "mission.toml"]).ends_with(0);
    assert!(
        said.out.contains(": admitted") && said.out.contains("loop: responds within"),
        "{}",
        said.out
    );
    assert!(
        said.out.contains("wake-up latency ignored; set `latency`"),
        "{}",
        said.out
    );
    let said = say(dir, &["admit", "mission.toml", "--json"]).ends_with(0);
    let json: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(
        (&json["schema"], &json["admitted"]),
        (&1.into(), &true.into())
    );
    let cell = &json["admission"]["cells"][0];
    assert_eq!(
        (&cell["outcome"], &cell["cell"]),
        (&"granted".into(), &"control".into())
    );
    let response = cell["tasks"][0]["response_ns"].as_u64().unwrap();
    assert!((2_000_000..=100_000_000).contains(&response), "{json}");
}

#[case(RealTime, GroupBudget(950))]
fn what_does_not_hold_is_refused_with_its_line_and_its_fix(dir: &Path) {
    let small = task("control", "20ms", "100ms").replace(
        "[[cell.task]]",
        "reservation = { budget = \"10ms\", period = \"100ms\" }\n[[cell.task]]",
    );
    mission(dir, &format!("enforcer = \"rt-cgroup\"\n{small}"));
    let said = say(dir, &["admit", "mission.toml"]);
    if host::rtgroup::detect().is_err() {
        assert!(
            said.ends_with(3)
                .out
                .contains("rt-cgroup cannot hold it here")
        );
        return;
    }
    let said = said.ends_with(3);
    for part in [
        "mission.toml:4",
        "its budget does not supply enough",
        "loop: needs ",
        "any one of these changes would be admitted",
        "fix, budget: reservation = ",
    ] {
        assert!(said.out.contains(part), "no `{part}` in:\n{}", said.out);
    }
    let json = say(dir, &["admit", "mission.toml", "--json"]).ends_with(3);
    let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    let fixes = json["fixes"]["found"].as_array().unwrap();
    let budget = fixes.iter().find(|fix| fix["kind"] == "budget").unwrap();
    let edit = &budget["edits"][0];
    assert_eq!(
        (&edit["cell"], &edit["key"]),
        (&"control".into(), &"reservation".into())
    );
    // The fixes can be written into the file as offered.
    let own = "reservation = { budget = \"10ms\", period = \"100ms\" }";
    let offered = format!("reservation = {}", edit["value"].as_str().unwrap());
    let fixed = small.replace(own, &offered);
    mission(dir, &format!("enforcer = \"rt-cgroup\"\n{fixed}"));
    say(dir, &["admit", "mission.toml"]).ends_with(0);
    mission(dir, &format!("enforcer = \"rt-cgroup\"\n{small}"));
    let said = say(dir, &["up", "mission.toml", "--dir", "state"]).ends_with(3);
    assert!(
        said.out.contains("refused") && said.out.contains("fix, budget"),
        "{}",
        said.out
    );
    assert!(!dir.join("state").exists(), "something was begun");
}

#[case]
fn all_faults_of_a_file_are_told_at_once(dir: &Path) {
    let text = "[[cell]]\nname = \"a\"\nimage = { rootfs = \"nowhere\" }\nreservation = { budget = \"20ms\", period = \"10ms\" }\nneeds = [\"b\"]\ncpus = [4000]\n\
        [[cell]]\nname = \"a\"\nimage = { binary = \"/bin/sh\" }\nreservation = { budget = \"1ms\", period = \"10ms\" }\n";
    mission(dir, text);
    for verb in [
        &["admit", "mission.toml"][..],
        &["up", "mission.toml", "--dir", "state"],
    ] {
        let said = say(dir, verb).ends_with(2);
        for line in [5, 6, 7, 8, 10] {
            let place = format!("error: mission.toml:{line}: ");
            assert!(
                said.err.contains(&place),
                "no fault in line {line}:\n{}",
                said.err
            );
        }
        assert!(!dir.join("state").exists(), "something was begun");
    }
    let said = say(dir, &["admit", "nowhere.toml"]).ends_with(2);
    assert!(said.error().contains("nowhere.toml"));
}

#[case]
fn the_schema_is_json(dir: &Path) {
    for (words, key) in [
        (["admit", "--schema"], "cell"),
        (["schema", "mission"], "cell"),
        (["schema", "taskset"], "refill"),
        (["schema", "experiment"], "trial"),
    ] {
        let said = say(dir, &words).ends_with(0);
        let schema: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        assert!(schema["properties"][key].is_object(), "{schema}");
    }
}

/// Removes the remains of a killed supervisor. Asserts nothing.
pub fn sweep(dir: &Path) {
    for cell in fs::read_dir(dir.join("state/cells"))
        .into_iter()
        .flatten()
        .flatten()
    {
        let _ = engine::sweep(&cell.path());
        let _ = Place::at(&dir.join("state/pages").join(cell.file_name())).remove();
    }
    if let Ok(groups) = MissionGroups::of(&name(dir)) {
        let _ = groups.keep_only(&[]);
    }
}

/// A running `timecell up`, and its output, line by line.
pub struct Up {
    pub child: Child,
    lines: Receiver<String>,
    pub said: Vec<String>,
    dir: PathBuf,
}

impl Drop for Up {
    /// Leaves no mission behind if the test fails.
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.signal(libc::SIGINT);
            let _ = self.child.wait();
        }
        if std::thread::panicking() {
            sweep(&self.dir);
        }
    }
}

impl Up {
    pub fn start(dir: &Path) -> Up {
        Up::of(
            timecell()
                .current_dir(dir)
                .args(["up", "mission.toml", "--dir", "state"]),
        )
    }

    /// The process of this command.
    pub fn of(command: &mut Command) -> Up {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let out = child.stdout.take().unwrap();
        let (tell, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                if tell.send(line).is_err() {
                    break;
                }
            }
        });
        Up {
            child,
            lines,
            said: Vec::new(),
            dir: (command.get_current_dir()).map_or_else(PathBuf::new, Path::to_owned),
        }
    }

    /// Waits for a line that contains this.
    #[track_caller]
    pub fn until(&mut self, part: &str) -> String {
        let end = Instant::now() + PATIENCE;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let Ok(line) = self.lines.recv_timeout(left) else {
                panic!("no `{part}` in:\n{}", self.said.join("\n"));
            };
            self.said.push(line.clone());
            if line.contains(part) {
                return line;
            }
        }
    }

    /// Waits until its first cell runs (`None`), or until it has ended, with the exit code.
    #[track_caller]
    pub fn runs_or_ends_with(&mut self) -> Option<i32> {
        let end = Instant::now() + PATIENCE;
        loop {
            if self.has_said(": runs (pid") {
                return None;
            }
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(Instant::now() < end, "neither runs nor ends");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// As [`Up::until`], for a line that may have been printed already.
    #[track_caller]
    pub fn told(&mut self, part: &str) -> String {
        let said = self.said.iter().find(|line| line.contains(part));
        said.cloned().unwrap_or_else(|| self.until(part))
    }

    /// Whether it has printed this by now.
    pub fn has_said(&mut self, part: &str) -> bool {
        self.said.extend(self.lines.try_iter());
        self.said.iter().any(|line| line.contains(part))
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// SIGKILL; its cells keep running.
    pub fn kill(mut self) {
        self.signal(libc::SIGKILL);
        self.child.wait().unwrap();
    }

    pub fn signal(&self, signal: i32) {
        // SAFETY: our own child, not reaped yet.
        unsafe { libc::kill(self.child.id().cast_signed(), signal) };
    }

    /// Asks it to end, and waits. Its exit code tells whether it has said that a bound was withdrawn.
    #[track_caller]
    pub fn end(self) {
        self.ended();
    }

    /// As [`Up::end`]; all lines that it has printed.
    #[track_caller]
    pub fn ended(mut self) -> Vec<String> {
        self.signal(libc::SIGINT);
        self.until("all cells stopped; logs kept in ");
        let was_withdrawn = self.said.iter().any(|line| line.contains(", withdrawn: "));
        let code = if was_withdrawn { 3 } else { 0 };
        assert_eq!(self.child.wait().unwrap().code(), Some(code));
        std::mem::take(&mut self.said)
    }
}

/// Waits until there is no such process. An adopted one is init's child, which reaps it at some time.
#[track_caller]
pub fn is_gone(pid: i32) {
    let end = Instant::now() + PATIENCE;
    while Path::new(&format!("/proc/{pid}")).exists() {
        assert!(Instant::now() < end, "process {pid} is still there");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether it runs; one that init has not reaped yet does not.
pub fn runs(pid: i32) -> bool {
    supervise::process::Process::of(pid).unwrap().is_some()
}

pub fn pid_of(line: &str) -> i32 {
    let (_, rest) = line.split_once("(pid ").unwrap();
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

/// Where busybox is.
pub fn busybox() -> PathBuf {
    std::env::split_paths(&std::env::var_os("PATH").unwrap())
        .map(|dir| dir.join("busybox"))
        .find(|path| path.is_file())
        .unwrap()
}

pub fn shell(name: &str, script: &str, more: &str) -> String {
    format!(
        "[[cell]]\nname = \"{name}\"\nimage = {{ binary = \"{}\" }}\nargs = [\"sh\", \"-c\", \"{script}\"]\n\
         stop_timeout = \"100ms\"\n{more}\n",
        busybox().display()
    )
}

pub const RESERVED: &str = "reservation = { budget = \"10ms\", period = \"100ms\" }";

/// A mission of this test leaves nothing behind on the machine.
#[track_caller]
pub fn nothing_is_left(dir: &Path) {
    let name = name(dir);
    let mut found = Vec::new();
    for hierarchy in fs::read_dir("/sys/fs/cgroup")
        .into_iter()
        .flatten()
        .flatten()
    {
        for group in fs::read_dir(hierarchy.path())
            .into_iter()
            .flatten()
            .flatten()
        {
            if group.file_name().to_string_lossy().contains(&name) {
                found.push(group.path().display().to_string());
            }
        }
    }
    let mounts = fs::read_to_string("/proc/thread-self/mounts").unwrap();
    let place = dir.display().to_string();
    found.extend(
        mounts
            .lines()
            .filter(|line| line.contains(&name) || line.contains(&place))
            .map(str::to_owned),
    );
    assert!(found.is_empty(), "{found:?}");
    let has_place = |pid: &i32| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&words).contains(&format!("{place}/"))
    };
    eventually("no process that makes its cells is left", || {
        !host::process::all().iter().any(has_place)
    });
}

/// A task that declares a priority, the lowest of its cell's.
const RANKED: &str = "priorities = { lowest = 70, highest = 79 }\n\
    [[cell.task]]\nname = \"t\"\nwcet = \"1ms\"\nperiod = \"400ms\"\npriority = 70";

/// The cell `ranked` of [`RANKED`] runs at that priority, as admission has said.
#[track_caller]
fn has_its_priority(up: &mut Up) {
    let pid = pid_of(&up.told("ranked: runs"));
    let is_bound = |line: &&String| line.trim_start().starts_with("t: ");
    let bound = up.said.iter().find(is_bound).unwrap();
    assert!(bound.ends_with(", FIFO 70"), "{bound}");
    let class = host::sched::get_class(pid);
    assert!(
        matches!(class, Ok(host::sched::Class::Fifo { priority: 70 })),
        "{class:?}"
    );
}

/// The cell `failing` was started three times, beside `steady`, `plain` and `ranked`.
#[track_caller]
fn a_start_that_fails_costs_a_line_of_events(dir: &Path) {
    // The journal is written after the message is printed.
    let mut text = String::new();
    eventually("it is on record", || {
        text = ask(dir, &["events"]).out;
        let last = ["failing: stays stopped", "plain: runs", "ranked: runs"];
        last.iter().all(|part| text.contains(part))
    });
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| line.contains("failing: "))
        .collect();
    // Each life began and ended; then the restart limit, and that it stays stopped.
    let ends = lines
        .iter()
        .filter(|line| line.contains("failing: exited with status 3"));
    assert_eq!(ends.count(), 3, "{text}");
    assert!((5..=3 * 2 + 3).contains(&lines.len()), "{text}");
    assert_eq!(text.matches("steady: ").count(), 1, "{text}");
    let json = ask(dir, &["events", "--json"]).out;
    assert!(
        json.lines().count() > text.lines().count() + 5,
        "all is there"
    );
}

#[case(..CELLS)]
fn cells_are_held_restarted_and_ended(dir: &Path) {
    let cells = shell("steady", "echo here I am; /busybox sleep 1000", RESERVED)
        + &shell(
            "failing",
            "exit 3",
            &format!("{RESERVED}\nrestart = {{ limit = 2, backoff_min = \"10ms\" }}"),
        )
        + &shell("plain", "/busybox sleep 1000", "class = \"other\"")
        + &shell("ranked", "/busybox sleep 1000", RANKED);
    mission(dir, &cells);
    let mut up = Up::start(dir);
    let pid = pid_of(&up.until("steady: runs"));
    assert!(matches!(
        host::sched::get_class(pid),
        Ok(host::sched::Class::Fifo { .. })
    ));
    if host::rtgroup::detect().is_ok() {
        let group = host::rtgroup::own_group(pid).unwrap();
        assert_eq!(
            (group.budget.runtime_us, group.budget.period_us),
            (10_000, 100_000)
        );
    }
    has_its_priority(&mut up);
    for part in [
        "failing: exited with status 3",
        "failing: restarting",
        "failing: stays stopped",
        "plain: runs",
    ] {
        if !up.said.iter().any(|line| line.contains(part)) {
            up.until(part);
        }
    }
    let starts = up
        .said
        .iter()
        .filter(|line| line.contains("failing: runs"))
        .count();
    assert_eq!(starts, 3, "{:?}", up.said);
    a_start_that_fails_costs_a_line_of_events(dir);
    up.end();
    let output = fs::read_to_string(dir.join("state/cells/steady/output")).unwrap();
    assert_eq!(output, "here I am\n");
    is_gone(pid);
    nothing_is_left(dir);
}

/// Exit code 1 tells a service manager that the mission is no longer kept running, although it should be.
#[case(..CELLS)]
fn a_mission_that_has_given_up_ends_in_failure(dir: &Path) {
    let restart = "class = \"other\"\nrestart = { limit = 1, backoff_min = \"10ms\" }";
    mission(dir, &shell("failing", "exit 3", restart));
    let run = || say(dir, &["up", "mission.toml", "--dir", "state"]);
    let said = run().ends_with(1);
    assert!(
        said.out.contains("restarted; some have failed"),
        "{}",
        said.out
    );
    let never = "class = \"other\"\nrestart = { policy = \"never\" }";
    mission(dir, &shell("done", "exit 0", never));
    run().ends_with(0);
    nothing_is_left(dir);
}
