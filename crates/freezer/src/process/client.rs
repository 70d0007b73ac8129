//! The client side: starts a keeper where there is none, and asks it to hold groups.

use std::fs::{DirBuilder, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command as Program, Stdio};
use std::time::{Duration, Instant, SystemTime};

use super::common::WORD;
use super::handed::{self, SOCKET};
use super::wire::{self, Command, KeeperRefusal};
use crate::group::Stop;
use crate::page::{Entry, LONGEST_PATH, Page, PageError};
use crate::rule::Reservation;
use crate::sys::Waiting;

/// How long a keeper may take to start, to be replaced, and to carry out a command.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long the last processes of a place may take to end.
const ENDING: Duration = Duration::from_secs(2);
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
    /// Others may change the contents of the directory.
    #[error("{} belongs to another user, or others may enter it", .0.display())]
    Foreign(PathBuf),
    /// The page.
    #[error(transparent)]
    Page(#[from] PageError),
    /// The keeper does not start.
    #[error("the keeper did not start: {0}")]
    Start(String),
    /// The keeper refuses, and says why.
    #[error(transparent)]
    Refused(#[from] KeeperRefusal),
    /// Nobody answers.
    #[error("no keeper answers in {} within {} s", .0.display(), PATIENCE.as_secs())]
    Silent(PathBuf),
    /// The path of a group.
    #[error("{}: a group's path must be absolute, without line breaks, and at most {LONGEST_PATH} bytes long", .0.display())]
    Path(PathBuf),
}

/// Where a keeper and its state are: a directory in memory (below [`crate::page::memory`]), which nobody else may
/// enter.
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
    /// already gets this budget; one that the keeper could not take up is tried again now. Returns its number. May be called again if it is not known whether
    /// it worked.
    ///
    /// # Errors
    /// [`PlaceError`]; the group is then as it was.
    pub fn hold(
        &self,
        group: &Path,
        stop: Stop,
        cpu: u32,
        reservation: Reservation,
    ) -> Result<u64, PlaceError> {
        let bytes = group.as_os_str().as_encoded_bytes();
        if !group.is_absolute() || bytes.len() > LONGEST_PATH || bytes.contains(&b'\n') {
            return Err(PlaceError::Path(group.to_owned()));
        }
        self.ask(&Command::Hold(group.to_owned(), stop, cpu, reservation))
    }

    /// Has a group held to another budget from now on, or, where the keeper could not take it up, from when it can; see
    /// [`crate::rule::Server::change`].
    ///
    /// # Errors
    /// If it is not held, or [`PlaceError`].
    pub fn change(&self, id: u64, reservation: Reservation) -> Result<(), PlaceError> {
        self.ask(&Command::Change(id, reservation)).map(drop)
    }

    /// Has a group released: it is thawed, and its threads have their classes, even if the keeper could not take it up.
    /// Call it once the cell in it has ended, too.
    ///
    /// # Errors
    /// If the page did not list it before, or [`PlaceError`].
    pub fn release(&self, id: u64) -> Result<(), PlaceError> {
        self.ask(&Command::Release(id)).map(drop)
    }

    /// The same by the group's path; fine if it is not held, or the keeper has seen that it is gone.
    ///
    /// # Errors
    /// [`PlaceError`].
    pub fn let_go(&self, group: &Path) -> Result<(), PlaceError> {
        let known = || {
            let groups = self.groups()?;
            let named = groups.iter().find(|entry| entry.which.path == group);
            Ok::<_, PlaceError>(named.map(|entry| entry.which.id))
        };
        let Some(id) = known()? else {
            return Ok(());
        };
        match self.release(id) {
            Err(_) if known()? != Some(id) => Ok(()),
            released => released,
        }
    }

    /// Removes the directory, where nothing is held any more and nobody asks for it: waits up to 2 s until its
    /// processes have ended. A keeper whose first group never came, because its starter was killed, ends with it.
    ///
    /// # Errors
    /// When they have not, or [`PlaceError::Dir`].
    pub fn remove(&self) -> Result<(), PlaceError> {
        let failed = |reason| self.failed(reason);
        if !self.is_there()? {
            return Ok(());
        }
        let until = Instant::now() + ENDING;
        // Nobody there is as well.
        let _ = self.try_once(&Command::Ping, until);
        // An heir that has its own waits for the other one, to end when it sees the empty page.
        let locks = handed::open_heirs_lock(&self.dir)
            .and_then(|heirs| Ok([heirs, handed::open_lock(&self.dir)?]))
            .map_err(failed)?;
        for lock in &locks {
            while !handed::try_lock(lock).map_err(failed)? {
                if Instant::now() > until {
                    return Err(failed(io::ErrorKind::ResourceBusy.into()));
                }
                std::thread::sleep(AGAIN);
            }
        }
        if !self.groups()?.is_empty() {
            return Err(failed(io::ErrorKind::ResourceBusy.into()));
        }
        std::fs::remove_dir_all(&self.dir).map_err(failed)
    }

    /// Makes sure that the groups here are held, by a new keeper if all are dead, and returns them: including those for
    /// which that failed ([`Entry::not_held`]), and the part of each one's use meanwhile that it does not owe
    /// ([`crate::page::Totals::waived_ns`]).
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

    /// The groups to be held here, their progress and why any was not taken up, from the page alone.
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
        Ok(match self.is_there()? {
            true => Page::open(&self.dir)?,
            false => None,
        })
    }

    /// Whether the directory was made by this user. In a directory like /dev/shm, another user may have made one of its name before and answer
    /// in its socket: nothing is held there, and nobody there is asked.
    ///
    /// # Errors
    /// If it is this user's and others may change it.
    fn is_there(&self) -> Result<bool, PlaceError> {
        let made = match std::fs::symlink_metadata(&self.dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            made => made.map_err(|reason| self.failed(reason))?,
        };
        if made.uid() != rustix::process::geteuid().as_raw() {
            return Ok(false);
        }
        match made.is_dir() && made.mode() & 0o077 == 0 {
            true => Ok(true),
            false => Err(PlaceError::Foreign(self.dir.clone())),
        }
    }

    fn failed(&self, reason: io::Error) -> PlaceError {
        PlaceError::Dir {
            path: self.dir.clone(),
            reason,
        }
    }

    /// Makes the directory. One of another user's is put aside, as root can even where anybody may create files.
    fn make(&self) -> Result<(), PlaceError> {
        let mut builder = DirBuilder::new();
        if let Some(parent) = self.dir.parent() {
            (builder.mode(0o700).recursive(true).create(parent))
                .map_err(|reason| self.failed(reason))?;
        }
        builder.recursive(false);
        // Its owner may make it again and again, and is not waited for.
        for _ in 0..8 {
            if self.is_there()? {
                return Ok(());
            }
            match builder.create(&self.dir) {
                // Another client of this user may have made it meanwhile.
                Err(error)
                    if error.kind() == io::ErrorKind::AlreadyExists && !self.is_there()? =>
                {
                    let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
                    let mut aside = self.dir.clone().into_os_string();
                    aside.push(format!(".not-ours-{}", since.as_nanos()));
                    if std::fs::rename(&self.dir, aside).is_err() && !self.is_there()? {
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => made.map_err(|reason| self.failed(reason))?,
            }
        }
        Err(PlaceError::Foreign(self.dir.clone()))
    }

    fn ask(&self, command: &Command) -> Result<u64, PlaceError> {
        self.ask_until(command, Instant::now() + PATIENCE)
    }

    fn ask_until(&self, command: &Command, until: Instant) -> Result<u64, PlaceError> {
        let mut repeats = false;
        // A group that was not held before is not released either, however often that is requested.
        let was_there = match command {
            Command::Release(id) => self.has(*id)?,
            _ => false,
        };
        while Instant::now() < until {
            if !self.is_there()? {
                self.start(until)?;
            }
            let answer = self.try_once(command, until);
            // The keeper that did it the first time was killed before it could say so.
            let is_refused = !matches!(answer, Ok(None | Some(Ok(_))));
            if let Command::Release(id) = command
                && repeats
                && was_there
                && is_refused
                && !self.has(*id)?
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

    /// Whether the page lists a group with this number.
    fn has(&self, id: u64) -> Result<bool, PlaceError> {
        Ok(self.groups()?.iter().any(|group| group.which.id == id))
    }

    fn try_once(
        &self,
        command: &Command,
        until: Instant,
    ) -> io::Result<Option<Result<u64, KeeperRefusal>>> {
        let mut stream = UnixStream::connect(self.dir.join(SOCKET))?;
        let left = until.saturating_duration_since(Instant::now());
        // A timeout of zero would wait for ever.
        let left = Some(left.max(AGAIN));
        stream.set_read_timeout(left)?;
        stream.set_write_timeout(left)?;
        let mut line = String::new();
        let talked = stream.write_all(&command.to_line()).and_then(|()| {
            let limited = (&stream).take(wire::LONGEST_LINE as u64 * 4);
            BufReader::new(limited).read_line(&mut line)
        });
        Ok(talked.ok().and_then(|_| wire::answered(&line)))
    }

    fn start(&self, until: Instant) -> Result<(), PlaceError> {
        self.make()?;
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
        let said = child.stdout.take().and_then(|out| first_line(out, until));
        // The keeper itself is nobody's child. If it has said nothing by now, it may not have detached yet.
        let Some(line) = said else {
            let _ = child.kill();
            let _ = child.wait();
            return Err(PlaceError::Silent(self.dir.clone()));
        };
        let _ = child.wait();
        match line.trim() {
            wire::READY => Ok(()),
            // A watcher or heir that is just taking its place, or is ending.
            said if said.ends_with("is held by another keeper") && Instant::now() < until => {
                std::thread::sleep(AGAIN);
                Ok(())
            }
            said => Err(PlaceError::Start(said.to_owned())),
        }
    }
}

/// The first line, in one piece, or nothing if all that could write it have closed; `None`: nothing by then.
fn first_line(out: ChildStdout, until: Instant) -> Option<String> {
    let out = File::from(OwnedFd::from(out));
    let waiting = Waiting::new().ok()?;
    waiting.add(&out, 0).ok()?;
    let mut is_there = false;
    while !is_there {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return None;
        }
        let left_ns = i64::try_from(left.as_nanos()).unwrap_or(i64::MAX);
        (waiting.wait(left_ns, |_| is_there = true)).ok()?;
    }
    let mut line = String::new();
    let _ = BufReader::new(out).read_line(&mut line);
    Some(line)
}

/// No keeper has the socket.
fn is_nobody(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    /// The result of a keeper's start with a program that does something else.
    fn started(script: &str, patience: Duration) -> PlaceError {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("program");
        std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&program, Permissions::from_mode(0o700)).unwrap();
        let place = Place::new(dir.path().join("place"), program);
        loop {
            match place.start(Instant::now() + patience).unwrap_err() {
                // A child of another test has the file open that was just written.
                PlaceError::Dir { reason, .. }
                    if reason.kind() == io::ErrorKind::ExecutableFileBusy => {}
                error => return error,
            }
        }
    }

    /// A user who made a directory in /dev/shm before could tell that a group is held, and release it.
    #[test]
    fn nobody_is_asked_in_a_directory_that_others_may_change() {
        let dir = tempfile::tempdir_in(crate::page::memory()).unwrap();
        let place = Place::new(dir.path().join("place"), "/nonexistent");
        assert!(place.page().unwrap().is_none());
        std::fs::create_dir(place.dir()).unwrap();
        Page::open_or_make(place.dir()).unwrap();
        let listener = std::os::unix::net::UnixListener::bind(place.dir().join(SOCKET)).unwrap();
        listener.set_nonblocking(true).unwrap();
        for (mode, is_own) in [(0o700, true), (0o770, false), (0o701, false)] {
            std::fs::set_permissions(place.dir(), Permissions::from_mode(mode)).unwrap();
            let page = place.page();
            assert_eq!(page.is_ok(), is_own, "{mode:o}");
            if !is_own {
                let refused = |error| matches!(error, PlaceError::Foreign(_));
                assert!(page.is_err_and(refused));
                assert!(place.release(1).is_err_and(refused));
            }
        }
        let asked = listener.accept().unwrap_err();
        assert_eq!(asked.kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn a_directory_of_another_user_is_put_aside_and_nobody_in_it_is_asked() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let place = Place::new(dir.path().join("place"), "/nonexistent");
        std::fs::create_dir(place.dir()).unwrap();
        Page::open_or_make(place.dir()).unwrap();
        let listener = std::os::unix::net::UnixListener::bind(place.dir().join(SOCKET)).unwrap();
        listener.set_nonblocking(true).unwrap();
        std::os::unix::fs::chown(place.dir(), Some(65534), None).unwrap();
        assert!(place.page().unwrap().is_none());
        place.remove().unwrap();
        assert!(place.dir().exists());
        // There is no such program, which is found out after the directory was made.
        assert!(place.ask(&Command::Ping).is_err());
        assert_eq!(place.dir().metadata().unwrap().uid(), 0);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
        let asked = listener.accept().unwrap_err();
        assert_eq!(asked.kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn a_keeper_that_takes_commands_and_says_nothing_is_not_waited_for_twice() {
        let dir = tempfile::tempdir_in(crate::page::memory()).unwrap();
        std::fs::set_permissions(dir.path(), Permissions::from_mode(0o700)).unwrap();
        let place = Place::new(dir.path(), "/nonexistent");
        let _silent = std::os::unix::net::UnixListener::bind(place.dir().join(SOCKET)).unwrap();
        let began = Instant::now();
        let until = began + Duration::from_millis(50);
        let error = place.ask_until(&Command::Ping, until).unwrap_err();
        assert!(matches!(error, PlaceError::Silent(_)), "{error}");
        assert!(began.elapsed() < PATIENCE / 2, "{:?}", began.elapsed());
    }

    #[test]
    fn a_program_that_says_nothing_is_waited_for_for_a_time() {
        let error = started("exec sleep 30", Duration::from_millis(200));
        assert!(matches!(error, PlaceError::Silent(_)), "{error}");
        let told = |script| started(script, Duration::from_secs(60)).to_string();
        let does_not = "the keeper did not start: ";
        assert_eq!(told("echo no, really"), format!("{does_not}no, really"));
        assert_eq!(told("exit 1"), does_not);
    }
}
