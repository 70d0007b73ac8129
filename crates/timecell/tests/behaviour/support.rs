//! Helpers: running the binary, and looking at its remains.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::LazyLock;

use model::Enforcer;

/// A test and its requirements, as `#[case]` registers it.
pub struct Case {
    /// The module path of its function.
    pub module: &'static str,
    pub function: &'static str,
    pub needs: &'static [Need],
    pub run: fn(),
}

impl Case {
    /// The outermost module and the function.
    pub fn name(&self) -> String {
        let outermost = self.module.split("::").nth(1).unwrap_or_default();
        format!("{outermost}::{}", self.function)
    }
}

#[linkme::distributed_slice]
pub static CASES: [Case];

/// A requirement of a test.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// That no other test runs: it changes settings that belong to everybody, observes them, or judges how long something takes.
    Alone,
    /// This many thousandths of a cpu for its real-time cgroups.
    GroupBudget(u16),
    /// This many, and it sees no others: for trials with contained cells of class FIFO, which take the free part.
    GroupsOfItsOwn(u16),
    /// That no test runs that has all budgets of cgroups: those keep others from a cpu.
    Unhindered,
    /// That few others load all cpus, as it does.
    Load,
    /// That no other test holds a budget of SCHED_DEADLINE, if that class exists.
    DeadlineBudget,
    Root,
    RealTime,
    /// SCHED_DEADLINE.
    Deadline,
    TwoCpus,
    /// Real-time cgroups, of cgroup v1.
    RtGroups,
    /// The freezer of cgroup v2.
    Freezer,
    /// Any [`enforcer`] for a critical cell; real-time cgroups have this many thousandths of a cpu.
    AnyEnforcer(u16),
    /// The same, with a budget that is enforced.
    AnyBudget(u16),
    /// Cgroups with a memory limit.
    MemoryGroups,
    /// A program on the PATH.
    Program(&'static str),
    File(&'static str),
}

impl Need {
    /// Why the requirement is unmet, if it is.
    pub fn unmet(self) -> Option<String> {
        match self {
            Need::Alone
            | Need::GroupBudget(_)
            | Need::GroupsOfItsOwn(_)
            | Need::Unhindered
            | Need::Load
            | Need::DeadlineBudget => None,
            // SAFETY: no arguments, cannot fail.
            Need::Root => (unsafe { libc::geteuid() } != 0).then(|| "needs root".to_owned()),
            Need::Program(name) => {
                let path = std::env::var_os("PATH").unwrap_or_default();
                let found = std::env::split_paths(&path).any(|dir| dir.join(name).is_file());
                (!found).then(|| format!("needs {name}"))
            }
            Need::File(path) => (!Path::new(path).exists()).then(|| format!("needs {path}")),
            Need::TwoCpus => (host::sched::get_affinity(0).map_or(0, |cpus| cpus.len()) < 2)
                .then(|| "needs two cpus".to_owned()),
            Need::RtGroups => host::rtgroup::detect()
                .err()
                .map(|error| format!("needs real-time groups: {error}")),
            Need::Freezer => freezer::hold::top(&host::root::Root::live())
                .err()
                .map(|error| format!("needs the freezer: {error}")),
            Need::AnyEnforcer(_) => enforcer().err(),
            Need::AnyBudget(_) => match enforcer() {
                Ok(enforcer) if enforcer.has_budgets() => None,
                Ok(enforcer) => Some(format!(
                    "needs a budget, which {} does not enforce",
                    enforcer.name()
                )),
                Err(why) => Some(why),
            },
            Need::MemoryGroups => {
                (!has_memory_groups()).then(|| "needs a memory controller".to_owned())
            }
            Need::RealTime => {
                let granted = has_class(host::sched::Class::Fifo { priority: 1 });
                (!granted).then(|| "needs SCHED_FIFO".to_owned())
            }
            Need::Deadline => {
                let granted = has_class(host::sched::Class::Deadline {
                    runtime_ns: 100_000,
                    deadline_ns: 100_000_000,
                    period_ns: 100_000_000,
                });
                (!granted).then(|| "needs SCHED_DEADLINE".to_owned())
            }
        }
    }
}

/// Names the enforcer to use, instead of the best available.
const ENFORCER_SET: &str = "TIMECELL_TEST_ENFORCER";

/// The enforcer of a critical cell if a test needs no particular one: the best that this machine has, or the one that is
/// asked for. The error names the missing thing.
pub fn enforcer() -> Result<Enforcer, String> {
    static FOUND: LazyLock<Result<Enforcer, String>> = LazyLock::new(|| {
        let unmet = |enforcer: Enforcer| match enforcer {
            Enforcer::RtCgroup => Need::RtGroups.unmet(),
            Enforcer::Hcbs => host::hcbs::detect_at(&host::root::Root::live())
                .err()
                .map(|error| format!("needs cpu.rt.max: {error}")),
            Enforcer::Deadline => Need::Deadline.unmet(),
            Enforcer::Freezer => Need::Freezer.unmet().or(Need::RealTime.unmet()),
            _ => Need::RealTime.unmet(),
        };
        if let Ok(asked) = std::env::var(ENFORCER_SET) {
            let known = Enforcer::named(&asked, Enforcer::OF_MISSIONS);
            let asked = known.ok_or_else(|| format!("no enforcer is called `{asked}`"))?;
            return unmet(asked).map_or(Ok(asked), Err);
        }
        let mut all = Enforcer::OF_MISSIONS.iter().copied();
        all.find(|enforcer| unmet(*enforcer).is_none())
            .ok_or_else(|| "needs real-time groups, SCHED_DEADLINE or SCHED_FIFO".to_owned())
    });
    FOUND.clone()
}

fn has_memory_groups() -> bool {
    host::cgroup::detect().is_ok_and(|cgroups| {
        let v2 = (cgroups.v2.iter()).flat_map(|mount| &mount.controllers);
        cgroups.v1_mount("memory").is_some() || v2.into_iter().any(|name| name == "memory")
    })
}

/// Whether a thread of this process may have the class.
fn has_class(class: host::sched::Class) -> bool {
    let tried = host::sched::bandwidth::Asker::new(move || host::sched::set_class(0, &class));
    matches!(tried, Some((_, Ok(()))))
}

/// Another binary to test instead of the one that was built, such as an earlier one.
pub const OTHER_BINARY: &str = "TIMECELL_TEST_BINARY";

/// Where the binary under test is.
pub fn binary() -> PathBuf {
    std::env::var_os(OTHER_BINARY)
        .map_or_else(|| env!("CARGO_BIN_EXE_timecell").into(), PathBuf::from)
}

/// The binary under test.
pub fn timecell() -> Command {
    let mut command = Command::new(binary());
    command
        .stdin(Stdio::null())
        .env_remove("SUDO_USER")
        .env_remove("COLUMNS");
    command
}

/// The output of a run of the binary, and how it ended.
pub struct Said {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl From<Output> for Said {
    fn from(output: Output) -> Said {
        Said {
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// Starts the binary with `words` in `dir`. Notes and errors go to `begun.err` there; other output is discarded.
pub fn begun(dir: &Path, words: &[&str]) -> Child {
    let notes = std::fs::File::create(dir.join("begun.err")).unwrap();
    timecell()
        .current_dir(dir)
        .args(words)
        .stdout(Stdio::null())
        .stderr(notes)
        .spawn()
        .expect("the binary starts")
}

/// Waits for the end of a process, at most a minute; kills it otherwise.
pub fn end_of(mut child: Child) -> Option<ExitStatus> {
    let late = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while std::time::Instant::now() < late {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status);
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    None
}

/// Runs the binary with `words` in `dir`.
pub fn say(dir: &Path, words: &[&str]) -> Said {
    timecell()
        .current_dir(dir)
        .args(words)
        .output()
        .expect("the binary starts")
        .into()
}

impl Said {
    /// Asserts the exit code, and shows the output if it differs.
    #[track_caller]
    pub fn ends_with(self, code: i32) -> Said {
        assert_eq!(
            self.code,
            Some(code),
            "\nstdout:\n{}\nstderr:\n{}",
            self.out,
            self.err
        );
        self
    }

    /// The one line that begins with `error: `, without it.
    #[track_caller]
    pub fn error(&self) -> String {
        let lines: Vec<&str> = self
            .err
            .lines()
            .filter_map(|line| line.strip_prefix("error: "))
            .collect();
        assert_eq!(
            lines.len(),
            1,
            "one sentence, not {lines:?} of:\n{}",
            self.err
        );
        lines[0].to_owned()
    }
}

/// The only run directory in `dir/runs`.
#[track_caller]
pub fn only_run(dir: &Path) -> PathBuf {
    let runs: Vec<PathBuf> = std::fs::read_dir(dir.join("runs"))
        .expect("runs/ exists")
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(runs.len(), 1, "{runs:?}");
    runs.into_iter().next().unwrap()
}

/// Whether every row of a table starts with the names of the run and of this machine.
pub fn begins_with_its_place<'a>(run: &Path, mut rows: impl Iterator<Item = &'a str>) -> bool {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let run = run.file_name().unwrap().to_string_lossy();
    let place = format!("{run},{},", host.trim());
    rows.all(|row| row.starts_with(&place))
}

/// A small experiment with these engines, as a file in `dir`; returns its path.
pub fn experiment(dir: &Path, engines: &[&str], jobs: u32) -> String {
    let trials: String = engines
        .iter()
        .map(|engine| format!("[[trial]]\ncells = [\"{engine}\"]\n"))
        .collect();
    let text = format!(
        "schema = 1\nname = \"small\"\nrounds = 2\n[workload]\nkind = \"mac\"\nsteps = 1000\njobs = {jobs}\n{trials}"
    );
    let path = dir.join("small.toml");
    std::fs::write(&path, text).unwrap();
    path.to_string_lossy().into_owned()
}

/// Everything on this machine that has the name of coordinator `pid`: shared memory, cgroups, mounts, processes.
pub fn traces_of(pid: u32) -> Vec<String> {
    let mut found = Vec::new();
    let name = format!("timecell-{pid}");
    let place = format!("-{pid}");
    for dir in ["/dev/shm", "/run", "/tmp", "/var/tmp"] {
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            let file = entry.file_name().to_string_lossy().into_owned();
            if file.starts_with("timecell-") && (file.ends_with(&place) || file.contains(&name)) {
                found.push(entry.path().display().to_string());
            }
        }
    }
    below(Path::new("/sys/fs/cgroup"), 3, &mut |path| {
        if path.file_name().is_some_and(|f| {
            let f = f.to_string_lossy();
            f == name.as_str() || f.starts_with(&format!("{name}-"))
        }) {
            found.push(path.display().to_string());
        }
    });
    let mounts = std::fs::read_to_string("/proc/thread-self/mountinfo").unwrap_or_default();
    found.extend(
        mounts
            .lines()
            .filter(|l| l.contains(&name))
            .map(str::to_owned),
    );
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        if String::from_utf8_lossy(&environment).contains(&format!("{name}-")) {
            let words = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            found.push(String::from_utf8_lossy(&words).replace('\0', " "));
        }
    }
    found
}

/// The processes that measure for coordinator `pid`, with their environments.
pub fn payloads(pid: u32) -> Vec<(i32, String)> {
    let name = format!("timecell-{pid}-");
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let measures = processes.filter_map(|entry| {
        let words = std::fs::read_to_string(entry.path().join("cmdline")).ok()?;
        let environment = std::fs::read(entry.path().join("environ")).ok()?;
        let environment = String::from_utf8_lossy(&environment).into_owned();
        let ours = environment.contains(&name) && words.contains("\0probe\0run\0");
        ours.then(|| Some((entry.file_name().to_str()?.parse().ok()?, environment)))
            .flatten()
    });
    measures.collect()
}

/// Whether a payload has slept and run so often that it must be in its loop.
pub fn in_its_loop(pid: i32) -> bool {
    let text = std::fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap_or_default();
    // The third number counts how often it was scheduled.
    let turns = text.split_whitespace().nth(2);
    turns
        .and_then(|n| n.parse::<u64>().ok())
        .is_some_and(|turns| turns > 200)
}

fn below(dir: &Path, depth: usize, see: &mut dyn FnMut(&Path)) {
    if depth == 0 {
        return;
    }
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            see(&entry.path());
            below(&entry.path(), depth - 1, see);
        }
    }
}

/// Waits until `true_now` holds, at most a minute, because a test must pass on a slow machine.
#[track_caller]
pub fn eventually(what: &str, mut true_now: impl FnMut() -> bool) {
    let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
    // Steps of different lengths see every phase of an event that happens once a period.
    for step in (11..100).step_by(7).cycle() {
        if true_now() {
            return;
        }
        assert!(std::time::Instant::now() < end, "never happened: {what}");
        std::thread::sleep(std::time::Duration::from_millis(step));
    }
}

/// A copy of this test's own program, for cells. A cell without a budget may hold the lock of a file that it maps: with the same file here,
/// every fork of this process would wait for it.
pub fn own_program() -> &'static Path {
    static COPY: LazyLock<std::path::PathBuf> = LazyLock::new(|| {
        let own = std::env::current_exe().unwrap();
        let copy = own.with_extension("cell");
        let made = own.with_extension(format!("cell.{}", std::process::id()));
        copy_program(&own, &made);
        std::fs::rename(made, &copy).unwrap();
        copy
    });
    &COPY
}

/// Copies a program that is to be executed at once, and keeps its permissions. Another process does it: while this one
/// had the copy open for writing, a process that another case starts would inherit that, and the kernel executes no
/// file that anybody may be writing to (ETXTBSY).
pub fn copy_program(from: impl AsRef<Path>, to: &Path) {
    let copied = Command::new("cp").arg(from.as_ref()).arg(to).status();
    assert!(copied.unwrap().success(), "{}", to.display());
}
