//! Processes: running a program to its end, and ending a cell's processes without hitting a stranger.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use host::file::at;
use host::isolate::PARTITION_PREFIX;
use host::pidfd;
use host::process::Stat;
use host::sched::bandwidth::release;
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::process::{
    Pid, Signal, WaitOptions, getppid, set_parent_process_death_signal, waitpid,
};

use crate::child::UNSAID;
use crate::error::{Doing, Error, Result, refused};
use crate::note::MARK;

/// How long a program that makes or removes a cell may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// How long such a program may take to die once it is killed.
const DYING: Duration = Duration::from_secs(10);
/// How long a killed process may take to end: the last of thousands waits until the kernel has taken the others apart.
pub(crate) const DEATH: Duration = Duration::from_secs(60);
/// How long a new process may be on its way to its program.
const UNMARKED: Duration = Duration::from_millis(2);

/// A process, told from a later one with the same pid by the instant of its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    started: u64,
}

impl Process {
    /// The process that has this pid now.
    pub(crate) fn of(pid: i32) -> Option<Process> {
        let started = Stat::of(pid)?.start_ticks()?;
        Some(Process { pid, started })
    }

    /// The process that had this pid when it started so many clock ticks after boot.
    pub(crate) const fn known(pid: i32, started: u64) -> Process {
        Process { pid, started }
    }

    /// When it started, in clock ticks after boot.
    pub(crate) const fn started(self) -> u64 {
        self.started
    }

    /// Opens it, never a later one with the same pid; `None` if it is gone.
    pub(crate) fn open(self) -> Option<OwnedFd> {
        let pidfd = pidfd::open(self.pid).ok()?;
        // Asked once the descriptor is there: what it stands for cannot change any more.
        (Process::of(self.pid) == Some(self)).then_some(pidfd)
    }

    /// Whether it has not ended.
    pub(crate) fn is_there(self) -> bool {
        Process::of(self.pid) == Some(self)
    }

    /// Sends SIGKILL; `None` if it had ended before. Deadline threads are taken out of their class before: those that end
    /// in it spoil the kernel's count of bandwidth when the cell's groups are removed.
    fn signal(self) -> Result<Option<OwnedFd>> {
        let Some(pidfd) = self.open() else {
            return Ok(None);
        };
        // It is to end in any case.
        let _ = release(self.pid);
        pidfd::kill(&pidfd).doing(|| format!("process {} cannot be killed", self.pid))?;
        Ok(Some(pidfd))
    }

    /// Kills it and waits until it has ended; fine if it had ended before.
    pub(crate) fn kill(self) -> Result<()> {
        let Some(pidfd) = self.signal()? else {
            return Ok(());
        };
        if !pidfd::ended_within(&pidfd, DEATH) {
            return Err(refused!(
                "process {} did not end within {} s of being killed",
                self.pid,
                DEATH.as_secs()
            ));
        }
        // An orphan is for the machine's init to reap, which may take its time; a child is for us.
        let _ = waitpid(Pid::from_raw(self.pid), WaitOptions::NOHANG);
        Ok(())
    }
}

/// Kills every process that carries the mark of the cell with this id, and waits for its end.
///
/// # Errors
/// Names the process that does not end.
pub fn kill_marked(id: &str) -> Result<()> {
    // Twice: a process that was just forked carries the mark only once it executes its program.
    for round in 0..2 {
        if round > 0 {
            std::thread::sleep(UNMARKED);
        }
        for process in others().filter(|process| is_of(process.pid, id)) {
            process.kill()?;
        }
    }
    Ok(())
}

/// As [`kill_marked`] for many cells at once: every process is examined twice, however many cells there are, and all are killed before the first is
/// waited for.
pub(crate) fn kill_all_marked(ids: &BTreeSet<String>) -> Vec<Error> {
    let mut left = Vec::new();
    for round in 0..2 {
        if round > 0 {
            std::thread::sleep(UNMARKED);
        }
        let marked = |process: &Process| carries(process.pid, |id| ids.contains(id));
        let found: Vec<Process> = others().filter(marked).collect();
        // In front of a crowd at high priority this process would hardly get to the second one.
        for process in &found {
            let _ = process.signal();
        }
        left.extend(found.into_iter().filter_map(|process| process.kill().err()));
    }
    left
}

/// Kills every process of the cell with this id, also those that such a process starts meanwhile; returns whether there were any.
///
/// # Errors
/// Names the process that does not end, or the cell whose processes never become fewer.
pub(crate) fn kill_to_the_last(id: &str) -> Result<bool> {
    const MOST_ROUNDS: usize = 20;
    for round in 0..MOST_ROUNDS {
        let mut found = false;
        for process in others().filter(|process| is_of(process.pid, id)) {
            // One that has ended stays in its groups until it is reaped.
            if (process.open()).is_some_and(|open| !pidfd::ended_within(open, Duration::ZERO)) {
                process.kill()?;
                found = true;
            }
        }
        if !found {
            return Ok(round > 0);
        }
    }
    Err(refused!("processes of {id} keep being started"))
}

/// Every process but this one.
fn others() -> impl Iterator<Item = Process> {
    let own = std::process::id().cast_signed();
    let pids = host::process::all().into_iter();
    pids.filter(move |pid| *pid != own).filter_map(Process::of)
}

/// Pids of the live processes that carry the mark of this cell or have `path` in their arguments.
pub(crate) fn belonging(id: &str, path: &Path) -> Vec<i32> {
    marked_or_with(|found| found == id, path)
}

/// Pids of the live processes whose mark begins with `mark` or that have `path` in their arguments: those of many cells, in one pass over all
/// processes.
pub fn of_many(mark: &str, path: &Path) -> Vec<i32> {
    marked_or_with(|id| id.starts_with(mark), path)
}

fn marked_or_with(meant: impl Fn(&str) -> bool, path: &Path) -> Vec<i32> {
    let path = path.display().to_string();
    let pids = others().map(|process| process.pid);
    pids.filter(|pid| carries(*pid, &meant) || has_word(*pid, &path))
        .collect()
}

/// Whether a process belongs to a cell whose id is meant: it is in that cell's groups, or carries its mark on the way there.
///
/// The environment of a process in a cell's groups is not read: that waits for whoever holds its address space, which may be a thread that its
/// budget, or the freezer, keeps from running.
fn carries(pid: i32, mut meant: impl FnMut(&str) -> bool) -> bool {
    if let Some(cell) = cell_of(pid) {
        return meant(&cell);
    }
    let environment = first_bytes(&format!("/proc/{pid}/environ"));
    environment.split(|byte| *byte == 0).any(|word| {
        let id = word.strip_prefix(MARK.as_bytes());
        let id = id.and_then(|rest| rest.strip_prefix(b"="));
        id.is_some_and(|id| meant(&String::from_utf8_lossy(id)))
    })
}

/// Bytes of a process's environment or arguments that are read. execve(2) passes at most 6 MiB, but a process may declare later that its own lie
/// anywhere in its memory (PR_SET_MM_MAP), a thousand GiB of it.
const MOST_BYTES: u64 = 6 << 20;

/// The contents of such a file, up to that bound; nothing if it cannot be read.
pub(crate) fn first_bytes(path: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    // What was read before it ended may still tell whose it is.
    let _ = File::open(path).and_then(|file| file.take(MOST_BYTES).read_to_end(&mut bytes));
    bytes
}

/// Whether a process that is in no cell's groups has this in its arguments.
fn has_word(pid: i32, path: &str) -> bool {
    cell_of(pid).is_none() && {
        let words = first_bytes(&format!("/proc/{pid}/cmdline"));
        String::from_utf8_lossy(&words).contains(path)
    }
}

/// Whether a process belongs to the cell with this id: is in its groups, or carries its mark.
pub(crate) fn is_of(pid: i32, id: &str) -> bool {
    carries(pid, |found| found == id)
}

/// Id of the cell to which a process belongs: the one in whose groups it is, or whose mark it carries.
pub fn cell_id_of(pid: i32) -> Option<String> {
    let mut found = None;
    carries(pid, |id| {
        found.get_or_insert_with(|| id.to_owned());
        true
    });
    found
}

/// The cell in whose groups a process is.
fn cell_of(pid: i32) -> Option<String> {
    cell_in(&fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?)
}

/// The cell of a process whose `/proc/<pid>/cgroup` this is. Only hierarchies count in which each cell has a group of its own:
/// of real-time groups, several may share one.
fn cell_in(groups: &str) -> Option<String> {
    groups.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        let own = controllers.is_empty()
            || (controllers.split(',')).any(|name| name == "pids" || name == "memory");
        let mut parts = path.trim_start_matches('/').split('/');
        // In a partition of cpus a cell is as it is at the top.
        let top = parts.find(|part| !part.starts_with(PARTITION_PREFIX))?;
        (own && top.starts_with("timecell-")).then(|| top.to_owned())
    })
}

/// Runs `command` to its end, its output appended to `log`; the error holds its last lines.
///
/// Output goes to a file, never to a pipe: what it starts in the background keeps its output open.
pub(crate) fn run(command: &mut Command, log: &Path) -> Result<()> {
    run_on(command, log, Stdio::null())
}

/// As [`run`], with this standard input.
pub(crate) fn run_on(command: &mut Command, log: &Path, input: Stdio) -> Result<()> {
    let output = open_log(log)?;
    run_with(command, log, input, output.into())
}

/// As [`run`], without what the program writes to its standard output.
pub(crate) fn run_quiet(command: &mut Command, log: &Path) -> Result<()> {
    run_with(command, log, Stdio::null(), Stdio::null())
}

fn run_with(command: &mut Command, log: &Path, input: Stdio, output: Stdio) -> Result<()> {
    let before = log.metadata().map_or(0, |log| log.len());
    let mut child = start(command, log, input, output)?;
    let status = wait(&mut child, PATIENCE)?;
    if status.success() {
        return Ok(());
    }
    let mut said = tail_from(log, before);
    if said.is_empty() && status.code() == Some(UNSAID) {
        said = format!(
            "it ended without a reason, as {} takes no more",
            log.display()
        );
    }
    Err(Error::Program {
        program: command.get_program().display().to_string(),
        status,
        said,
    })
}

/// Starts `command` with its output appended to `log` and no input.
pub(crate) fn spawn(command: &mut Command, log: &Path) -> Result<Child> {
    spawn_on(command, log, Stdio::null())
}

/// As [`spawn`], with this standard input.
pub(crate) fn spawn_on(command: &mut Command, log: &Path, input: Stdio) -> Result<Child> {
    let output = open_log(log)?;
    start(command, log, input, output.into())
}

fn start(command: &mut Command, log: &Path, input: Stdio, output: Stdio) -> Result<Child> {
    command
        .stdin(input)
        .stdout(output)
        .stderr(open_log(log)?)
        .spawn()
        .doing(|| format!("{} cannot be started", command.get_program().display()))
}

/// What a program said before it ended.
pub(crate) struct Answer {
    pub(crate) status: ExitStatus,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Answer {
    /// The error that this program failed, in its own words where it has any.
    pub(crate) fn failure(&self, program: &str) -> Error {
        Error::Program {
            program: program.to_owned(),
            status: self.status,
            said: self.err.trim().to_owned(),
        }
    }

    /// The first line of its error output; its exit status where there is none.
    pub(crate) fn why(&self) -> String {
        match self.err.lines().next().unwrap_or_default().trim() {
            "" => self.status.to_string(),
            said => said.to_owned(),
        }
    }
}

/// What `command` prints before it ends, as far as it fits into a pipe. A command that does not end within the time that programs have to make or
/// remove a cell is killed.
pub(crate) fn output(command: &mut Command) -> Result<Answer> {
    output_within(command, PATIENCE)
}

/// The same within `limit`.
pub(crate) fn output_within(command: &mut Command, limit: Duration) -> Result<Answer> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let status = wait(&mut child, limit)?;
    Ok(Answer {
        status,
        out: child.stdout.take().map(in_pipe).unwrap_or_default(),
        err: child.stderr.take().map(in_pipe).unwrap_or_default(),
    })
}

/// What is in a pipe now. Processes that a program has left running may hold it open; they are not waited for.
fn in_pipe(mut pipe: impl Read + AsFd) -> String {
    let mut text = Vec::new();
    let _ = fcntl_setfl(&pipe, OFlags::NONBLOCK);
    let _ = pipe.read_to_end(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// Waits until the child has ended; one that has not within `limit` is killed.
pub(crate) fn wait(child: &mut Child, limit: Duration) -> Result<ExitStatus> {
    let pidfd = pidfd::open(child.id().cast_signed())?;
    if pidfd::ended_within(&pidfd, limit) {
        return Ok(child.wait()?);
    }
    let _ = child.kill();
    // One that the kernel does not let go of is not waited for.
    if pidfd::ended_within(&pidfd, DYING) {
        let _ = child.wait();
    }
    Err(Error::NoAnswer(limit))
}

pub(crate) fn open_log(log: &Path) -> Result<File> {
    let mut options = OpenOptions::new();
    options
        .create(true)
        .append(true)
        .custom_flags(libc::O_NOFOLLOW);
    Ok(options.open(log).map_err(at(log))?)
}

/// The last lines of a log.
pub(crate) fn tail(log: &Path) -> String {
    tail_from(log, 0)
}

fn tail_from(log: &Path, from: u64) -> String {
    const MOST_BYTES: u64 = 4096;
    const MOST_LINES: usize = 6;
    let read = || -> io::Result<Vec<u8>> {
        let mut file = File::open(log)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(from.max(length.saturating_sub(MOST_BYTES))))?;
        let mut bytes = Vec::new();
        file.take(MOST_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text
        .lines()
        .map(plain)
        .filter(|line| !line.is_empty())
        .collect();
    lines[lines.len().saturating_sub(MOST_LINES)..].join("\n")
}

/// A line without the time and stream that podman's log puts before it.
fn plain(line: &str) -> &str {
    let mut fields = line.splitn(4, ' ');
    match (fields.next(), fields.next(), fields.next(), fields.next()) {
        (Some(_), Some("stdout" | "stderr"), Some("F" | "P"), Some(rest)) => rest.trim(),
        _ => line.trim(),
    }
}

/// Asks to be killed when the coordinator ends, so that nothing continues after its cells were swept.
pub(crate) fn die_with(parent: &str) -> Result<()> {
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    match Pid::as_raw(getppid()).to_string() == parent {
        true => Ok(()),
        false => Err("the coordinator has ended".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_program_is_quoted_and_only_its_own_words() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        fs::write(&log, "older\n").unwrap();
        let failed = run(
            Command::new("/bin/sh").args(["-c", "echo first; echo why >&2; exit 3"]),
            &log,
        );
        assert_eq!(failed.unwrap_err().to_string(), "first\nwhy");
        let silent = run(Command::new("/bin/sh").args(["-c", "exit 3"]), &log).unwrap_err();
        assert!(silent.to_string().contains("exit status: 3"), "{silent}");
        assert!(run(&mut Command::new("/nonexistent"), &log).is_err());
        assert_eq!(tail(&log), "older\nfirst\nwhy");
    }

    #[test]
    fn marked_processes_are_killed_and_no_others() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let id = format!("timecell-test-mark-{}", std::process::id());
        let mut marked = spawn(Command::new("/bin/sleep").arg("100").env(MARK, &id), &log).unwrap();
        let other_id = format!("{id}0");
        let mut other = spawn(
            Command::new("/bin/sleep").arg("100").env(MARK, &other_id),
            &log,
        )
        .unwrap();
        // The environment is only there once the program has been executed.
        while fs::read(format!("/proc/{}/environ", marked.id())).is_ok_and(|all| all.is_empty()) {}
        kill_marked(&id).unwrap();
        assert_eq!(Process::of(marked.id().cast_signed()), None);
        assert!(other.try_wait().unwrap().is_none());
        other.kill().unwrap();
        other.wait().unwrap();
        let _ = marked.wait();
    }

    #[test]
    fn a_process_in_the_groups_of_a_cell_is_known_by_them() {
        let v1 = "9:pids:/timecell-cell-m.app\n8:cpu,cpuacct:/timecell-mission-m.app\n0::/\n";
        assert_eq!(cell_in(v1).as_deref(), Some("timecell-cell-m.app"));
        let v2 = "0::/timecell-cell-m.app/inner\n";
        assert_eq!(cell_in(v2).as_deref(), Some("timecell-cell-m.app"));
        // A real-time group that a bench's plain processes share.
        assert_eq!(cell_in("8:cpu:/timecell-12\n9:pids:/user\n0::/\n"), None);
        assert_eq!(cell_in("0::/system.slice/timecell@m.service\n"), None);
        let inside = "0::/timecell-cpus-m.1/timecell-cell-m.app/cell\n";
        assert_eq!(cell_in(inside).as_deref(), Some("timecell-cell-m.app"));
        assert_eq!(cell_in("0::/timecell-cpus-m.1\n"), None);
        assert_eq!(cell_in(""), None);
    }

    #[test]
    fn a_pid_with_another_start_is_left_alone() {
        let own = Process::of(std::process::id().cast_signed()).unwrap();
        Process {
            started: own.started + 1,
            ..own
        }
        .kill()
        .unwrap();
    }

    #[test]
    fn no_more_of_an_environment_is_read_than_a_program_can_be_given() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("environ");
        File::create(&path).unwrap().set_len(1 << 36).unwrap();
        let read = first_bytes(&path.display().to_string());
        assert_eq!(read.len() as u64, MOST_BYTES);
        assert!(first_bytes("/proc/0/environ").is_empty());
    }
}
