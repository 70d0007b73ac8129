//! A cell of an application: starting, watching, freezing, ending and removing it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use host::pidfd;
use host::sched::bandwidth::make_ordinary;

use super::asking::{self, Asking, Looks};
use super::ended::{self, Ended, Told};
use super::engine::Apps;
use super::log::{self, Log};
use super::record::Record;
use super::spec::AppSpec;
use super::start::Report;
use super::{Freezing, freezer};
use crate::agent::Agent;
use crate::error::{Error, Result, refused};
use crate::made::Wipe;
use crate::process::{self, Process};
use crate::{Cell, CellProcess, EngineError, made, marks};

/// How long a program may take from being told to start to being executed. Nothing happens in between, so only a lack of cpu time makes it long.
const EXECUTION: Duration = Duration::from_secs(5);
/// How long the kernel may take to report how a process that is not our child ended.
const TELLING: Duration = Duration::from_secs(1);

/// A cell that runs an application, created or adopted.
///
/// Dropping it leaves the cell as it is.
#[derive(Debug)]
pub struct AppCell {
    pub(super) spec: AppSpec,
    pub(super) apps: &'static dyn Apps,
    pub(super) wipe: Wipe,
    pub(super) process: Process,
    pub(super) pidfd: OwnedFd,
    pub(super) record: Record,
    pub(super) agent: Option<Agent>,
    pub(super) log: Option<Log>,
    /// The counter of dropped bytes of a log that is drained elsewhere.
    pub(super) lent: Option<Arc<AtomicU64>>,
    /// Where the maker still listens for the program's execution.
    pub(super) report: Option<Report>,
    pub(super) ended: Option<Ended>,
    /// When a process that is not our child was first seen to have ended.
    pub(super) gone: Option<Instant>,
    pub(super) removed: bool,
    /// Bytes of output of earlier cells in its place: [`Cell::log_tail`] quotes this one's own.
    pub(super) said_before: u64,
}

impl AppCell {
    /// Its specification, with the paths of the host as they were found.
    pub fn spec(&self) -> &AppSpec {
        &self.spec
    }

    /// Whether only its engine may know how its program ended, and reports it when the cell is removed.
    pub fn is_told_of_by_engine(&self) -> bool {
        self.apps.knows_ends()
    }

    /// Whether its program sleeps until it is started, and so stays on the cpu where it ran last, in any group.
    pub fn sleeps_before_start(&self) -> bool {
        self.apps.sleeps()
    }

    /// Its agent; `None`: its calls are refused, or answered without any effect.
    pub const fn agent(&self) -> Option<&Agent> {
        self.agent.as_ref()
    }

    /// Whether it was told to start.
    pub fn is_started(&self) -> bool {
        self.record.started
    }

    /// Starts the program: returns once it has been executed, where the engine can tell (embedded, bare).
    ///
    /// # Errors
    /// When it has already been started, or could not be executed, with the reason; and when it got no cpu time for 5 s, after which it may still
    /// start.
    pub fn start(&mut self) -> Result<(), EngineError> {
        self.try_start()
            .map_err(|cause| made::error(&self.spec, "start the cell", cause))
    }

    fn try_start(&mut self) -> Result<()> {
        const TWICE: &str = "it has already been started";
        if self.record.started {
            return Err(TWICE.into());
        }
        if !self.apps.start(&self.spec)? {
            // The supervisor before was killed between the word and its note.
            self.note_start()?;
            return Err(TWICE.into());
        }
        self.note_start()?;
        match self.report.take() {
            Some(report) => report.executed(EXECUTION),
            None => Ok(()),
        }
    }

    fn note_start(&mut self) -> Result<()> {
        self.record.started = true;
        (self.record.write(&made::state(&self.spec))).map_err(Error::from)
    }

    /// How its program ended; `None` as long as it runs, or waits to begin.
    ///
    /// For the status, this process must have been a subreaper when the cell was created
    /// ([`super::become_subreaper`]); for an adopted cell, the kernel must be Linux 6.15 or later.
    ///
    /// # Errors
    /// In the kernel's words.
    pub fn try_wait(&mut self) -> io::Result<Option<Ended>> {
        let ended = self.try_wait_kernel()?;
        if ended == Some(Ended::Unknown) {
            self.ended = self.apps.end(&self.spec).or(ended);
        }
        Ok(self.ended)
    }

    /// As [`AppCell::try_wait`], but asks only the kernel, and so never waits; an end that only the engine knows is
    /// [`Ended::Unknown`] until [`AppCell::remove`] has asked it.
    ///
    /// # Errors
    /// In the kernel's words.
    pub fn try_wait_kernel(&mut self) -> io::Result<Option<Ended>> {
        if self.ended.is_some() {
            return Ok(self.ended);
        }
        self.ended = match ended::reap(&self.pidfd) {
            Ok(ended) => ended,
            Err(error) if error.raw_os_error() == Some(libc::ECHILD) => self.ask(),
            Err(error) => return Err(error),
        };
        Ok(self.ended)
    }

    fn ask(&mut self) -> Option<Ended> {
        if !pidfd::ended_within(&self.pidfd, Duration::ZERO) {
            return None;
        }
        let since = *self.gone.get_or_insert_with(Instant::now);
        match ended::ask(&self.pidfd) {
            Told::Status(ended) => Some(ended),
            Told::NotYet if since.elapsed() < TELLING => None,
            Told::NotYet | Told::Never => Some(Ended::Unknown),
        }
    }

    /// How its program ended, as far as is known by now.
    pub const fn end(&self) -> Option<Ended> {
        self.ended
    }

    /// As [`AppCell::try_wait`], waiting for the end for at most `within`. The log is drained meanwhile, so that a cell that writes a lot can end.
    ///
    /// # Errors
    /// In the kernel's words, also those about the log.
    pub fn wait(&mut self, within: Duration) -> io::Result<Option<Ended>> {
        const STEP: Duration = Duration::from_millis(20);
        let began = Instant::now();
        loop {
            if let Some(log) = &mut self.log {
                log.drain()?;
            }
            let ended = self.try_wait()?;
            let left = within.saturating_sub(began.elapsed());
            if ended.is_some() || left.is_zero() {
                if let Some(log) = &mut self.log {
                    log.drain()?;
                }
                return Ok(ended);
            }
            if pidfd::ended_within(&self.pidfd, left.min(STEP)) {
                // Of a stranger, the status comes a moment after the end.
                std::thread::sleep(Duration::from_micros(100));
            }
        }
    }

    /// Sends a signal to the program. As the first process of its cell it gets only those that it handles, besides
    /// SIGKILL and SIGSTOP; a bare cell's is like any other.
    ///
    /// # Errors
    /// In the kernel's words; ESRCH after its end.
    pub fn kill(&self, signal: i32) -> io::Result<()> {
        pidfd::send(&self.pidfd, signal)
    }

    /// Asks the program to end by this signal, or kills it where the kernel would drop the signal, which would end a program without a handler
    /// anywhere else.
    ///
    /// # Errors
    /// As [`AppCell::kill`].
    pub fn ask_to_end(&self, signal: i32) -> io::Result<Asking> {
        asking::to_end(self.process.pid, &self.pidfd, signal)
    }

    /// Ends a program that was asked by this signal while it blocked it, if the kernel has dropped it since. Call it every 5 ms or so with the last
    /// observations, as long as the answer is [`Asking::Blocked`].
    ///
    /// # Errors
    /// As [`AppCell::kill`].
    pub fn ask_again(&self, signal: i32, looks: Looks) -> io::Result<Asking> {
        asking::again(self.process.pid, &self.pidfd, signal, looks)
    }

    /// Freezes every process of the cell, without a signal; returns when the last one is frozen.
    ///
    /// # Errors
    /// Where there is no freezer, or a process does not freeze within 5 s; then none stays frozen.
    pub fn freeze(&self) -> Result<(), EngineError> {
        freezer::freeze(&self.spec)
            .map_err(|cause| made::error(&self.spec, "freeze the cell", cause))
    }

    /// Begins to freeze every process of the cell, and does not wait for it.
    ///
    /// # Errors
    /// Where there is no freezer.
    pub fn begin_freeze(&self) -> Result<Freezing, EngineError> {
        Freezing::begin(&self.spec)
            .map_err(|cause| made::error(&self.spec, "freeze the cell", cause))
    }

    /// Thaws a frozen cell; fine if it was not frozen.
    ///
    /// # Errors
    /// Where there is no freezer.
    pub fn thaw(&self) -> Result<(), EngineError> {
        freezer::thaw(&self.spec).map_err(|cause| made::error(&self.spec, "thaw the cell", cause))
    }

    /// The log of its output; `None` where the maker gave it other streams.
    pub fn log(&mut self) -> Option<&mut Log> {
        self.log.as_mut()
    }

    /// Hands the log to somebody who drains it elsewhere; `None` where there is none, or it has already been handed over.
    pub fn lend_log(&mut self) -> Option<Log> {
        let log = self.log.take()?;
        self.lent = Some(log.dropped_counter());
        Some(log)
    }

    /// Takes the log back.
    pub fn take_back_log(&mut self, log: Log) {
        self.lent = None;
        self.log = Some(log);
    }

    /// The end of its kept output, at most `most_bytes`, and how many bytes have been dropped.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn output_tail(&self, most_bytes: usize) -> io::Result<(Vec<u8>, u64)> {
        let tail = log::tail(&self.spec.work_dir, most_bytes)?;
        let lent = (self.lent.as_ref()).map_or(0, |dropped| dropped.load(Ordering::Relaxed));
        Ok((tail, self.log.as_ref().map_or(lent, Log::dropped_bytes)))
    }

    /// The groups of the cell, one in each hierarchy: to read its usage, and to set limits that are not in the spec.
    pub fn groups(&self) -> Vec<PathBuf> {
        crate::cgroups::places(&self.spec.id)
    }

    fn try_remove(&mut self) -> Result<()> {
        // On version 1 a frozen process does not even die; where there is no freezer nothing is frozen.
        let _ = freezer::thaw(&self.spec);
        if let Err(error) = self.kill(libc::SIGKILL)
            && error.raw_os_error() != Some(libc::ESRCH)
        {
            return Err(refused!("its program cannot be killed: {error}"));
        }
        if !pidfd::ended_within(&self.pidfd, process::STUCK) {
            let others = self.processes().into_iter().map(|process| process.pid);
            others
                .chain([self.pid()])
                .for_each(|pid| drop(make_ordinary(pid)));
        }
        if !pidfd::ended_within(&self.pidfd, process::DEATH) {
            return Err(refused!(
                "its program did not end within {} s of being killed",
                process::DEATH.as_secs()
            ));
        }
        if !self.record.started {
            // The runtime of a supervisor that was killed may still wait for the program that it was to start.
            marks::kill_of(&self.spec)?;
        }
        // Its output is the log owner's: a full disk is no reason to leave a cell behind.
        let log = self.log.take();
        // Reaps it where it is ours; the status is asked for once more where it was not told yet.
        let waited = self.wait(TELLING).map_err(Error::from);
        self.log = log;
        waited?;
        made::finish(&self.spec, self.wipe)
    }
}

impl Cell for AppCell {
    fn pid(&self) -> i32 {
        self.process.pid
    }

    fn processes(&self) -> Vec<CellProcess> {
        let home = made::home(&self.spec);
        marks::belonging(&self.spec, &home)
            .into_iter()
            .filter(|pid| *pid != self.process.pid)
            .map(|pid| CellProcess {
                pid,
                name: host::process::name(pid).unwrap_or_default(),
            })
            .collect()
    }

    fn log_tail(&self) -> String {
        const MOST_BYTES: usize = 4096;
        let dir = &self.spec.work_dir;
        let own = log::position(dir).saturating_sub(self.said_before);
        let most = usize::try_from(own).unwrap_or(usize::MAX).min(MOST_BYTES);
        let output = log::tail(dir, most).unwrap_or_default();
        let output = String::from_utf8_lossy(&output);
        let engine = process::tail(&made::log(&self.spec));
        [output.trim_end(), engine.as_str()]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join("\n")
    }

    fn remove(&mut self) -> Result<(), EngineError> {
        if self.removed {
            return Ok(());
        }
        self.try_remove()
            .map_err(|cause| made::error(&self.spec, "remove the cell", cause))?;
        self.removed = true;
        Ok(())
    }
}

impl AsFd for AppCell {
    /// Readable once the program has ended.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }
}
