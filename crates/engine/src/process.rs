//! Processes: running a program to its end, and ending a cell's processes without hitting a stranger.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use host::file::at;
use host::pidfd;
use host::process::Stat;
use host::sched::bandwidth::{make_ordinary, release};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::process::{
    Pid, Signal, WaitOptions, getppid, set_parent_process_death_signal, waitpid,
};

use crate::child::UNSAID;
use crate::error::{Doing, Error, Result, refused};

/// How long a program that makes or removes a cell may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// How long such a program may take to die once it is killed.
const DYING: Duration = Duration::from_secs(10);
/// How long a killed process may take before it loses its class: one that spins in the kernel, and at its priority keeps a thread of its
/// own group from the cpu that it waits for (see `timecell_probe::program`), then lets it go on.
pub(crate) const STUCK: Duration = Duration::from_millis(200);
/// How long a killed process may take to end: the last of thousands waits until the kernel has taken the others apart.
pub(crate) const DEATH: Duration = Duration::from_secs(60);

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
        // Asked once the descriptor is there: its process cannot change any more.
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
        self.kill_by(Instant::now() + DEATH)
    }

    fn kill_by(self, until: Instant) -> Result<()> {
        let Some(pidfd) = self.signal()? else {
            return Ok(());
        };
        let left = || until.saturating_duration_since(Instant::now());
        if !pidfd::ended_within(&pidfd, STUCK.min(left())) {
            let _ = make_ordinary(self.pid);
        }
        if !pidfd::ended_within(&pidfd, left()) {
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

/// Kills these processes and waits for all of them together. Returns why, for each that does not end.
pub(crate) fn kill_each(processes: &[Process]) -> Vec<Error> {
    // All before the first is waited for: in front of a crowd at high priority this process would hardly get to the second one.
    for process in processes {
        let _ = process.signal();
    }
    let until = Instant::now() + DEATH;
    let killed = processes.iter().map(|process| process.kill_by(until));
    killed.filter_map(Result::err).collect()
}

/// Runs `command` to its end, its output appended to `log`; the error holds its last lines.
///
/// Output goes to a file, never to a pipe: its background processes keep its output open.
pub(crate) fn run(command: &mut Command, log: &Path) -> Result<()> {
    run_on(command, log, Stdio::null())
}

/// As [`run`], with this standard input.
pub(crate) fn run_on(command: &mut Command, log: &Path, input: Stdio) -> Result<()> {
    let output = open_log(log)?;
    run_with(command, log, input, output.into())
}

/// As [`run`], without the program's standard output.
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

/// The output and the end of a program.
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

/// The output of `command`, as far as it fits into a pipe. A command that does not end within the time that programs have to make or remove a
/// cell is killed.
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

/// The present contents of a pipe. Processes that a program has left running may hold it open, and go on writing; they are not waited for.
fn in_pipe(pipe: impl Read + AsFd) -> String {
    const MOST_BYTES: u64 = 1 << 20;
    let mut text = Vec::new();
    let _ = fcntl_setfl(&pipe, OFlags::NONBLOCK);
    let _ = pipe.take(MOST_BYTES).read_to_end(&mut text);
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
    use std::fs;

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
    fn a_pid_with_another_start_is_left_alone() {
        let own = Process::of(std::process::id().cast_signed()).unwrap();
        Process {
            started: own.started + 1,
            ..own
        }
        .kill()
        .unwrap();
    }
}
