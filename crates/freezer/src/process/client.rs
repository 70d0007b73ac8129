//! What a program calls that wants groups held: starts a keeper where there is none, and talks to it.

use std::fs::DirBuilder;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command as Program, Stdio};
use std::time::{Duration, Instant};

use super::WORD;
use super::handed::SOCKET;
use super::wire::{self, Command};
use crate::page::{Entry, LONGEST_PATH, Page, PageError};
use crate::rule::Reservation;

/// How long a keeper may take to start, to be replaced, and to do what it is asked.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between attempts.
const AGAIN: Duration = Duration::from_millis(2);

/// Why a command was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// The directory.
    #[error("{}: {reason}", path.display())]
    Dir {
        /// The directory or file.
        path: PathBuf,
        /// Why.
        reason: io::Error,
    },
    /// Others may change what is in the directory.
    #[error("{} belongs to somebody else, or others may enter it", .0.display())]
    Foreign(PathBuf),
    /// The page.
    #[error(transparent)]
    Page(#[from] PageError),
    /// The keeper does not start.
    #[error("the keeper does not start: {0}")]
    Start(String),
    /// The keeper says why not.
    #[error("{0}")]
    Refused(String),
    /// Nobody answers.
    #[error("no keeper answers in {} within {} s", .0.display(), PATIENCE.as_secs())]
    Silent(PathBuf),
    /// The path of a group.
    #[error("{}: the path of a group is absolute, in UTF-8 or not, without a line break, and has at most {LONGEST_PATH} bytes", .0.display())]
    Path(PathBuf),
}

/// Where a keeper and what it knows are: a directory in memory (below [`crate::page::memory`]), which nobody else may enter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    dir: PathBuf,
    program: PathBuf,
}

impl Place {
    /// The place in `dir`, which is made when something is to be held, directly in the directory in memory or below others that
    /// only the caller may write to; `program` is started as the keeper and has to call
    /// [`super::inside`] with the words behind [`WORD`].
    pub fn new(dir: impl Into<PathBuf>, program: impl Into<PathBuf>) -> Place {
        Place {
            dir: dir.into(),
            program: program.into(),
        }
    }

    /// Its directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Has a group held to a budget on a cpu from now on, with a keeper started if there is none. A group that is held there
    /// already gets this budget. Returns its number. May be called again if it is not known whether it worked.
    ///
    /// # Errors
    /// [`PlaceError`]; the group is then as it was.
    pub fn hold(
        &self,
        group: &Path,
        cpu: u32,
        reservation: Reservation,
    ) -> Result<u64, PlaceError> {
        let bytes = group.as_os_str().as_encoded_bytes();
        if !group.is_absolute() || bytes.len() > LONGEST_PATH || bytes.contains(&b'\n') {
            return Err(PlaceError::Path(group.to_owned()));
        }
        self.ask(&Command::Hold(group.to_owned(), cpu, reservation))
    }

    /// Has a group held to another budget from now on; see [`crate::rule::Server::change`].
    ///
    /// # Errors
    /// If it is not held, or [`PlaceError`].
    pub fn change(&self, id: u64, reservation: Reservation) -> Result<(), PlaceError> {
        self.ask(&Command::Change(id, reservation)).map(drop)
    }

    /// Has a group let go: it is thawed, and its threads have their classes. To be called once the cell in it has ended, too.
    ///
    /// # Errors
    /// If it is not held, or [`PlaceError`].
    pub fn release(&self, id: u64) -> Result<(), PlaceError> {
        self.ask(&Command::Release(id)).map(drop)
    }

    /// Sees to it that what was held here is held, by a new keeper if all are dead, and says what that is: also of which group that did not
    /// work ([`Entry::not_held`]), and what it does not owe of what it used meanwhile ([`crate::page::Totals::waived_ns`]).
    ///
    /// # Errors
    /// [`PlaceError`].
    pub fn adopt(&self) -> Result<Vec<Entry>, PlaceError> {
        if self.groups()?.is_empty() {
            return Ok(Vec::new());
        }
        self.ask(&Command::Ping)?;
        self.groups()
    }

    /// What is to be held here, how far it has come and what the keeper could not take up, by the page alone.
    ///
    /// # Errors
    /// If there is a page that cannot be read.
    pub fn groups(&self) -> Result<Vec<Entry>, PlaceError> {
        Ok(self.page()?.map_or_else(Vec::new, |page| page.groups()))
    }

    /// The page; `None`: nothing is held here.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn page(&self) -> Result<Option<Page>, PlaceError> {
        Ok(Page::open(&self.dir)?)
    }

    fn ask(&self, command: &Command) -> Result<u64, PlaceError> {
        let until = Instant::now() + PATIENCE;
        let mut repeats = false;
        while Instant::now() < until {
            let answer = self.try_once(command);
            // Whoever did it the first time was killed before it could say so.
            let is_refused = !matches!(answer, Ok(None | Some(Ok(_))));
            if let Command::Release(id) = command
                && repeats
                && is_refused
                && self.groups()?.iter().all(|group| group.which.id != *id)
            {
                return Ok(*id);
            }
            match answer {
                Ok(Some(answer)) => return answer.map_err(PlaceError::Refused),
                // It was killed before it could answer; another one takes its place.
                Ok(None) => {
                    repeats = true;
                    std::thread::sleep(AGAIN);
                }
                Err(error) if is_nobody(&error) => self.start(until)?,
                Err(reason) => {
                    let path = self.dir.join(SOCKET);
                    return Err(PlaceError::Dir { path, reason });
                }
            }
        }
        Err(PlaceError::Silent(self.dir.clone()))
    }

    fn try_once(&self, command: &Command) -> io::Result<Option<Result<u64, String>>> {
        let mut stream = UnixStream::connect(self.dir.join(SOCKET))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut line = String::new();
        let talked = stream.write_all(&command.to_line()).and_then(|()| {
            let limited = (&stream).take(wire::LONGEST_LINE * 4);
            BufReader::new(limited).read_line(&mut line)
        });
        Ok(talked.ok().and_then(|_| wire::answered(&line)))
    }

    fn start(&self, until: Instant) -> Result<(), PlaceError> {
        let failed = |reason| PlaceError::Dir {
            path: self.dir.clone(),
            reason,
        };
        let mut builder = DirBuilder::new();
        (builder.mode(0o700).recursive(true).create(&self.dir)).map_err(failed)?;
        // In a directory like /dev/shm anybody may have made it before.
        let made = std::fs::symlink_metadata(&self.dir).map_err(failed)?;
        // SAFETY: no arguments, cannot fail.
        let own = unsafe { libc::geteuid() };
        if !made.is_dir() || made.uid() != own || made.mode() & 0o077 != 0 {
            return Err(PlaceError::Foreign(self.dir.clone()));
        }
        let mut child = Program::new(&self.program)
            .args([WORD, "keeper"])
            .arg(&self.dir)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|reason| PlaceError::Dir {
                path: self.program.clone(),
                reason,
            })?;
        let mut line = String::new();
        if let Some(out) = child.stdout.take() {
            let _ = BufReader::new(out).read_line(&mut line);
        }
        // The keeper itself is nobody's child.
        let _ = child.wait();
        match line.trim() {
            wire::READY => Ok(()),
            // A watcher or heir that takes its place just now, or ends.
            said if said.ends_with("is held by another keeper") && Instant::now() < until => {
                std::thread::sleep(AGAIN);
                Ok(())
            }
            said => Err(PlaceError::Start(said.to_owned())),
        }
    }
}

/// No keeper has the socket.
fn is_nobody(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
    )
}
