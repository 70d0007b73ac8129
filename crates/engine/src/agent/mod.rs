//! A cell's agent: a small process of ours beside the cell that answers its calls of sched_setscheduler(2),
//! sched_setparam(2), sched_setattr(2) and sched_setaffinity(2), which the cell's filter hands to it. It sets the grant,
//! never the request, notes the request, and lets the call succeed, so that no thread of the cell runs at a class, at a
//! priority or on a cpu that was not granted, not for an instant.
//!
//! Here live its process, the page through which the supervisor grants classes to single threads, and the supervisor's
//! side of both. Which thread gets which class is the supervisor's decision. The filter is [`crate::seccomp`]'s.
//!
//! The agent outlives the supervisor: a call that nobody answers would fail with ENOSYS. It is no child of the cell, has no
//! right of the cell's to lose, and ends with the cell.

mod call;
mod page;
mod process;

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::{Mutex, PoisonError};

use host::file::at;
use host::sched::Class;
use rustix::fs::{CWD, Mode, mkfifoat};

pub use page::{Excess, Noted, ROWS, Standing};
pub(crate) use process::{run, send};

use self::page::Page;
use crate::app::{AppSpec, Launcher, Scheduling, Seccomp};
use crate::error::{Doing, Result};
use crate::made;
use crate::seccomp::Answers;

/// The hidden word of an agent's process.
pub(crate) const WORD: &str = "agent";

fn page_of(state: &Path) -> PathBuf {
    state.join("agent.page")
}

/// The pipe by which the agent is called for grants that were written.
fn bell_of(state: &Path) -> PathBuf {
    state.join("agent.bell")
}

/// The socket where a runtime delivers the descriptor of the calls.
pub(crate) fn socket_of(state: &Path) -> PathBuf {
    state.join("agent.sock")
}

/// How the agent gets the descriptor of the calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// The process that becomes the cell's program sends it, over a descriptor that it was handed.
    Handed,
    /// The runtime sends it to a socket ([`socket_of`]): `listenerPath` of an OCI bundle.
    BySocket,
    /// The engine cannot.
    Never,
}

/// How the calls of a cell with these grants are answered; `None`: they are refused, or nobody's business.
pub(crate) fn answers(spec: &AppSpec, delivery: Delivery) -> Option<Answers> {
    match (&spec.grants.scheduling, delivery) {
        _ if spec.grants.seccomp == Seccomp::Off => None,
        (Scheduling::FromOutside | Scheduling::Any, _) => None,
        (Scheduling::Granted(_), Delivery::Never) => Some(Answers::Nothing),
        (Scheduling::Granted(_), Delivery::Handed | Delivery::BySocket) => Some(Answers::here()),
    }
}

/// Starts the agent of a cell that is to be made, where its calls are for one; also returned is the end for the process
/// that becomes the cell's program, where that delivers.
pub(crate) fn start(
    spec: &AppSpec,
    launcher: &Launcher,
    delivery: Delivery,
) -> Result<Option<(Agent, Option<OwnedFd>)>> {
    if answers(spec, delivery) != Some(Answers::Agent) {
        return Ok(None);
    }
    let state = made::state(spec);
    let page = page_of(&state);
    drop(Page::make(&page).map_err(at(&page))?);
    let bell = bell_of(&state);
    mkfifoat(CWD, &bell, Mode::RUSR | Mode::WUSR)
        .map_err(io::Error::from)
        .map_err(at(&bell))?;
    let (own, cells): (OwnedFd, Option<OwnedFd>) = match delivery {
        Delivery::BySocket => (listen(&socket_of(&state))?.into(), None),
        _ => {
            let (own, cells) = UnixStream::pair().doing(|| "cannot make a socket")?;
            (own.into(), Some(cells.into()))
        }
    };
    let mut command = launcher.agent(spec, &own);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let child = (command.stderr(Stdio::null()).spawn()).doing(|| "its agent cannot be started")?;
    reap(Some(child));
    Ok(Some((Agent::of(&state)?, cells)))
}

/// A socket's address has 108 bytes, fewer than a path may have.
fn listen(path: &Path) -> Result<UnixListener> {
    let dir = path.parent().unwrap_or(path);
    let opened = File::open(dir).map_err(at(dir))?;
    let name = path.file_name().unwrap_or_default();
    let short = Path::new("/proc/self/fd")
        .join(opened.as_raw_fd().to_string())
        .join(name);
    Ok(UnixListener::bind(short).map_err(at(path))?)
}

/// Reaps those agents that have ended, and remembers this one.
fn reap(started: Option<Child>) {
    static RUNNING: Mutex<Vec<Child>> = Mutex::new(Vec::new());
    let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    running.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
    running.extend(started);
}

/// The agent of a cell, as the supervisor sees it.
#[derive(Debug)]
pub struct Agent {
    page: Page,
    bell: PathBuf,
}

impl Agent {
    fn of(state: &Path) -> Result<Agent> {
        let path = page_of(state);
        Ok(Agent {
            page: Page::open(&path).map_err(at(&path))?,
            bell: bell_of(state),
        })
    }

    /// That of a cell which exists; `None`: it has none.
    pub(crate) fn find(spec: &AppSpec) -> Result<Option<Agent>> {
        let state = made::state(spec);
        match page_of(&state).exists() {
            true => Agent::of(&state).map(Some),
            false => Ok(None),
        }
    }

    /// Grants these threads, by their ids in the cell's pid namespace, a class each: from now on, and against any request of
    /// theirs. Returns whether all could be noted; more than 1,023 threads cannot.
    ///
    /// # Errors
    /// When the agent is gone.
    pub fn grant<'a>(
        &self,
        classes: impl IntoIterator<Item = (u32, &'a Class)>,
    ) -> io::Result<bool> {
        let mut all = true;
        for (thread, class) in classes {
            all &= self.page.give(thread, class);
        }
        self.ring()?;
        Ok(all)
    }

    /// From now on the cell's threads may have no real-time class, against all requests and grants; or again.
    pub fn suspend(&self, suspended: bool) {
        self.page.suspend(suspended);
        // Grants that came meanwhile. Where nobody hears it, that is seen otherwise.
        let _ = self.ring();
    }

    /// Forgets all threads but those that this names: their ids may come again.
    pub fn keep(&self, threads: impl Fn(u32) -> bool) {
        self.page.keep(threads);
    }

    /// The threads that have asked for something or were granted a class.
    pub fn noted(&self) -> Vec<Noted> {
        self.page.noted()
    }

    /// Requests beyond the grants since the cell began.
    pub fn excess(&self) -> Excess {
        self.page.excess()
    }

    /// Calls answered since the cell began, and those of threads that could not be noted.
    pub fn counts(&self) -> (u64, u64) {
        self.page.counts()
    }

    /// Whether its process is there. It may have been stopped.
    pub fn is_there(&self) -> bool {
        self.open_bell().is_ok()
    }

    fn open_bell(&self) -> io::Result<File> {
        // Nobody reads: ENXIO.
        let flags = libc::O_NONBLOCK | libc::O_NOFOLLOW;
        (OpenOptions::new().write(true))
            .custom_flags(flags)
            .open(&self.bell)
    }

    fn ring(&self) -> io::Result<()> {
        match self.open_bell()?.write(&[1]) {
            // It has not heard the bells before.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            rung => rung.map(drop),
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        reap(None);
    }
}
