//! `timecell run`: one program under a budget.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::missions::{busybox, name};
use crate::support::{Need, Said, timecell};

const NEEDS: &[Need] = &[
    Need::Root,
    Need::RealTime,
    Need::Freezer,
    Need::TwoCpus,
    Need::Program("busybox"),
];

/// A tenth of cpu 1.
const RESERVED: [&str; 6] = [
    "--reserve",
    "5ms/50ms",
    "--cpu",
    "1",
    "--enforcer",
    "freezer",
];

fn run_in(dir: &Path, words: &[&str], program: &[&str]) -> Command {
    let mut command = timecell();
    command.current_dir(dir).arg("run").args(words);
    if !program.is_empty() {
        command.arg("--").args(program);
    }
    command
}

fn said(command: &mut Command) -> Said {
    command.output().unwrap().into()
}

/// Its output with this as its standard input.
fn typed(command: &mut Command, text: &str) -> Said {
    let (input, mut typed) = std::io::pipe().unwrap();
    typed.write_all(text.as_bytes()).unwrap();
    drop(typed);
    said(command.stdin(input))
}

/// Asserts that nothing of a mission of this name is left.
#[track_caller]
fn nothing_is_left(name: &str) {
    let mut found: Vec<PathBuf> = Vec::new();
    for dir in [
        "/var/lib/timecell",
        "/run/timecell",
        "/dev/shm",
        "/run",
        "/sys/fs/cgroup",
    ] {
        let below = fs::read_dir(dir).into_iter().flatten().flatten();
        for entry in below {
            let inner = fs::read_dir(entry.path()).into_iter().flatten().flatten();
            let all = [entry.path()]
                .into_iter()
                .chain(inner.map(|entry| entry.path()));
            found.extend(all.filter(|path| {
                let file = path.file_name().unwrap_or_default().to_string_lossy();
                file.ends_with(name) || file.contains(&format!("{name}."))
            }));
        }
    }
    assert!(found.is_empty(), "{found:?}");
}

/// A running command, killed on drop with its program.
struct Running {
    child: Child,
    name: String,
}

impl Running {
    /// Returns once its program has written its first line.
    fn start(mut command: Command, first: &str) -> Running {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let out = child.stdout.as_mut().unwrap();
        BufReader::new(out).read_line(&mut line).unwrap();
        let name = format!("run-{}", child.id());
        assert_eq!(line.trim(), first);
        Running { child, name }
    }

    fn signal(&self, signal: i32) {
        // SAFETY: our own child, not waited for yet.
        unsafe { libc::kill(self.child.id().cast_signed(), signal) };
    }

    /// How long it takes to end, and its exit status.
    fn ends(&mut self) -> (Duration, Option<i32>) {
        let began = Instant::now();
        let code = self.child.wait().unwrap().code();
        (began.elapsed(), code)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
            let _ = timecell().args(["down", &self.name]).output();
        }
    }
}

/// Ends a mission that still runs under this name, on drop.
struct Down(String);

impl Drop for Down {
    fn drop(&mut self) {
        if supervise::run::dir_of_one(&self.0).exists() {
            let _ = timecell().args(["down", &self.0]).output();
        }
    }
}

#[case(..NEEDS)]
fn output_exit_status_and_a_report_are_returned(dir: &Path) {
    let own = name(dir);
    let shell = busybox().display().to_string();
    let script = "echo to out; echo to err >&2; echo $A; pwd; exit 7";
    let words: Vec<&str> = RESERVED
        .iter()
        .copied()
        .chain(["--env", "A=b c", "--name", &own])
        .collect();
    let told = said(&mut run_in(dir, &words, &[&shell, "sh", "-c", script])).ends_with(7);
    assert_eq!(told.out, format!("to out\nb c\n{}\n", dir.display()));
    for part in [
        "to err\n",
        "5 ms of cpu 1 in every 50 ms",
        "of cpu time (",
        "its budget was used up in",
        "exited with status 7",
    ] {
        assert!(told.err.contains(part), "{part}: {}", told.err);
    }
    // One line when it starts, one when it has ended.
    let notes = told.err.lines().filter(|line| line.starts_with("note    "));
    assert_eq!(notes.count(), 2, "{}", told.err);
    nothing_is_left(&own);
    // As the first process in a root directory; nothing is printed but its own output.
    let root = dir.join("root");
    fs::create_dir(&root).unwrap();
    fs::copy(busybox(), root.join("busybox")).unwrap();
    let words: Vec<&str> = RESERVED
        .iter()
        .copied()
        .chain(["--quiet", "--rootfs", "root"])
        .collect();
    let program = [
        "/busybox",
        "sh",
        "-c",
        "echo $$; echo to err >&2; kill -9 $$; exit 3",
    ];
    let told = said(&mut run_in(dir, &words, &program)).ends_with(3);
    assert_eq!((told.out.as_str(), told.err.as_str()), ("1\n", "to err\n"));
    // The program can read this command's standard input.
    let cat = ["/busybox", "cat"];
    let told = typed(&mut run_in(dir, &words, &cat), "in a root\n").ends_with(0);
    assert_eq!(told.out, "in a root\n", "{}", told.err);
    let words: Vec<&str> = RESERVED.iter().copied().chain(["--quiet"]).collect();
    let cat = [&shell, "cat"];
    let told = typed(&mut run_in(dir, &words, &cat), "plain\n").ends_with(0);
    assert_eq!(told.out, "plain\n", "{}", told.err);
    // The program sees the name by which it is called, which selects the behaviour of some programs.
    std::os::unix::fs::symlink(busybox(), dir.join("echo")).unwrap();
    let told = said(&mut run_in(dir, &words, &["./echo", "as called"])).ends_with(0);
    assert_eq!(told.out, "as called\n");
    // A signal that ends it is reported as by a shell.
    said(&mut run_in(
        dir,
        &words,
        &[&shell, "sh", "-c", "kill -9 $$"],
    ))
    .ends_with(137);
}

#[case(..NEEDS)]
fn a_program_is_held_and_ends_at_once_without_a_handler(dir: &Path) {
    let root = dir.join("root");
    fs::create_dir(&root).unwrap();
    fs::copy(busybox(), root.join("busybox")).unwrap();
    let busy = "echo begins; while :; do :; done & while :; do :; done";
    let words: Vec<&str> = RESERVED
        .iter()
        .copied()
        .chain(["--rootfs", "root"])
        .collect();
    let mut running = Running::start(
        run_in(dir, &words, &["/busybox", "sh", "-c", busy]),
        "begins",
    );
    let top = freezer::hold::top(&host::root::Root::live()).unwrap();
    let group = top.join(supervise::names::cell_id(&running.name, "app"));
    let used = || {
        let text = fs::read_to_string(group.join("cpu.stat")).unwrap();
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("usage_usec "));
        Duration::from_micros(line.unwrap().parse().unwrap())
    };
    let (began, before) = (Instant::now(), used());
    std::thread::sleep(Duration::from_secs(1));
    let (used, lasted) = (used() - before, began.elapsed());
    assert!(
        used * 5 < lasted && used * 30 > lasted,
        "{used:?} of {lasted:?}"
    );
    let name = running.name.clone();
    let ps = timecell().args(["ps", &name]).output().unwrap();
    assert!(
        String::from_utf8_lossy(&ps.stdout).contains("app"),
        "{ps:?}"
    );
    running.signal(libc::SIGINT);
    let (took, code) = running.ends();
    // It might take 10 s.
    assert!(took < Duration::from_secs(5), "{took:?}");
    assert_eq!(code, Some(128 + libc::SIGINT));
    nothing_is_left(&name);
    assert!(!Path::new("/run/timecell/missions").join(&name).exists());
}

#[case(..NEEDS)]
fn signals_go_to_the_program(dir: &Path) {
    let shell = busybox().display().to_string();
    let script = "trap 'exit 3' USR1; trap 'exit 5' TERM; echo ready; while :; do sleep 0.05; done";
    for (signal, status) in [
        (libc::SIGUSR1, 3),
        (libc::SIGTERM, 5),
        (libc::SIGHUP, 128 + libc::SIGHUP),
    ] {
        let command = run_in(dir, &RESERVED, &[&shell, "sh", "-c", script]);
        let mut running = Running::start(command, "ready");
        running.signal(signal);
        assert_eq!(running.ends().1, Some(status));
    }
}

#[case(..NEEDS)]
fn one_that_was_killed_is_taken_over_or_ended(dir: &Path) {
    let own = name(dir);
    let shell = busybox().display().to_string();
    let script = "trap 'exit 3' USR1; echo ready; while :; do sleep 0.05; done";
    let named: Vec<&str> = (RESERVED.iter().copied()).chain(["--name", &own]).collect();
    let start = |words: &[&str]| {
        let command = run_in(dir, words, &[&shell, "sh", "-c", script]);
        Running::start(command, "ready")
    };
    let mut first = start(&named);
    let _down = Down(own.clone());
    first.signal(libc::SIGKILL);
    assert_eq!(first.ends().1, None);
    // No other request under its name ends it.
    let other = said(&mut run_in(dir, &named, &[&shell, "sleep", "60"])).ends_with(2);
    for part in [
        "another program of this name still runs",
        "trap 'exit 3' USR1",
        &format!("`timecell down {own}`"),
    ] {
        assert!(other.err.contains(part), "{part}: {}", other.err);
    }
    let clean = said(timecell().arg("clean")).ends_with(0);
    let runs_on = format!("`timecell down {own}` ends it");
    assert!(clean.out.contains(&runs_on), "{}", clean.out);
    let again = run_in(dir, &named, &[&shell, "sh", "-c", script])
        .stderr(Stdio::piped())
        .spawn();
    let mut again = Running {
        child: again.unwrap(),
        name: own.clone(),
    };
    let told = BufReader::new(again.child.stderr.take().unwrap());
    let mut told = told.lines().map(Result::unwrap);
    let process = told.find(|line| line.starts_with("note    process "));
    let process = process.unwrap();
    assert!(process.contains("is adopted"), "{process}");
    // The signal reaches the program of the first command.
    again.signal(libc::SIGUSR1);
    assert!(told.any(|line| line.contains("ran for")));
    assert_eq!(again.ends().1, Some(1));
    nothing_is_left(&own);
    let mut killed = start(&RESERVED);
    killed.signal(libc::SIGKILL);
    killed.ends();
    let said = said(timecell().args(["down", &killed.name])).ends_with(0);
    assert!(
        said.out.contains("all cells stopped; nothing is kept"),
        "{}",
        said.out
    );
    nothing_is_left(&killed.name);
    let names = Path::new("/run/timecell/missions");
    assert!(!names.join(&killed.name).exists());
}

#[case(..NEEDS)]
fn jobs_that_a_program_reports_are_told(dir: &Path) {
    let program = crate::support::binary().display().to_string();
    let words = ["--task", "control=5ms/100ms", "--enforcer", "freezer"];
    let command = run_in(dir, &words, &[&program, "probe", "demo", "control"]);
    let mut running = Running::start(command, "control runs, every 100 ms");
    std::thread::sleep(Duration::from_secs(1));
    running.signal(libc::SIGTERM);
    assert_eq!(running.ends().1, Some(0));
    let mut told = String::new();
    running
        .child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut told)
        .unwrap();
    let jobs = told
        .lines()
        .find_map(|line| line.strip_prefix("note    control: "));
    let jobs = jobs.and_then(|line| line.split(' ').next()?.parse::<u64>().ok());
    assert!(jobs.is_some_and(|jobs| jobs >= 5), "{told}");
}

/// The first program does not get the priority that a later one with a shorter period needs.
#[case(..NEEDS)]
fn the_order_in_which_programs_come_does_not_matter(dir: &Path) {
    let shell = busybox().display().to_string();
    let words =
        |reserve: &'static str| ["--reserve", reserve, "--cpu", "1", "--enforcer", "freezer"];
    let long = run_in(
        dir,
        &words("20ms/100ms"),
        &[&shell, "sh", "-c", "echo ready; sleep 60"],
    );
    let mut long = Running::start(long, "ready");
    let short = said(&mut run_in(dir, &words("2ms/10ms"), &[&shell, "true"]));
    long.signal(libc::SIGTERM);
    long.ends();
    short.ends_with(0);
}

#[case(Root, RealTime, Freezer, Program("busybox"), Program("podman"))]
fn an_image_of_podmans_runs_as_any_other(dir: &Path) {
    let image = crate::missions_reaction::Image::of_busybox(dir);
    let own = name(dir);
    let words: Vec<&str> = RESERVED
        .iter()
        .copied()
        .chain(["--image", &image.0, "--name", &own])
        .collect();
    let program = ["/busybox", "sh", "-c", "echo in podman; exit 9"];
    let told = said(&mut run_in(dir, &words, &program)).ends_with(9);
    assert_eq!(told.out, "in podman\n", "{}", told.err);
    assert!(
        told.err.contains("its budget was used up in"),
        "{}",
        told.err
    );
    assert!(!told.err.contains("not watched"), "{}", told.err);
    nothing_is_left(&own);
    // The image names the owner of its page.
    let words = ["--task", "control=5ms/100ms", "--enforcer", "freezer"];
    let words = [&words[..], &["--image", &image.0, "--name", &own]].concat();
    let program = [
        "/busybox",
        "sh",
        "-c",
        "test -w /cell/page && echo writable",
    ];
    let told = said(&mut run_in(dir, &words, &program)).ends_with(0);
    assert_eq!(told.out, "writable\n", "{}", told.err);
    assert!(told.err.contains("note    control: 0 jobs"), "{}", told.err);
    let words = [&words[..], &["--user", "1000:100"]].concat();
    let script = "test -w /cell/page && /busybox id -u && /busybox id -g";
    let program = ["/busybox", "sh", "-c", script];
    let told = said(&mut run_in(dir, &words, &program)).ends_with(0);
    assert_eq!(told.out, "1000\n100\n", "{}", told.err);
    nothing_is_left(&own);
}

#[case(..NEEDS)]
fn what_cannot_be_run_is_refused_and_nothing_is_left(dir: &Path) {
    let own = name(dir);
    let shell = busybox().display().to_string();
    let refused = |words: &[&str], program: &str, code: i32, told: &str| {
        let words: Vec<&str> = words.iter().copied().chain(["--name", &own]).collect();
        let said = said(&mut run_in(dir, &words, &[program])).ends_with(code);
        assert!(said.error().contains(told), "{told}: {}", said.err);
        assert!(said.out.is_empty(), "{}", said.out);
    };
    refused(
        &["--reserve", "5ms/50ms"],
        "./no-such-program",
        2,
        "there is no such program",
    );
    refused(
        &["--reserve", "5ms/50ms", "--cpu", "4095"],
        &shell,
        2,
        "4095",
    );
    let root = dir.display().to_string();
    let within = ["--reserve", "5ms/50ms", "--rootfs", &root];
    refused(&within, "/no-such", 2, "there is no such program in");
    let twice = ["--task", "a=1ms/50ms", "--task", "a=1ms/50ms"];
    refused(&twice, &shell, 2, "--task: two tasks are called `a`");
    let above = ["--reserve", "5ms/50ms", "--fifo", "99"];
    refused(&above, &shell, 2, "--fifo: 99 is too high");
    let all = ["--reserve", "94ms/100ms", "--enforcer", "freezer"];
    refused(&all, &shell, 3, "not admitted: ");
    nothing_is_left(&own);
}
