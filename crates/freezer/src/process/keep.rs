//! The keeper's commander: takes commands, ensures that there are a watcher and an heir, and ends when nothing is held
//! any more.

use std::io::{self, Read, Write};
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::common::{COMMANDER, LONGEST_SLEEP_NS, ProcessError};
use super::crew::Crew;
use super::handed::{self, Handed, SOCKET};
use super::peer::{Doubt, Peer, Verdict};
use super::refusal::Refusal;
use super::wire::{self, Command};
use super::{setup, unheld};
use crate::keeper::KeeperError;
use crate::page::{Entry, PATIENCE_NS, Page};
use crate::slot::Came;
use crate::stats::MOST_GROUPS;
use crate::sys::{self, Waiting};

/// How long a client may take to send a command.
const SENDING: Duration = Duration::from_millis(50);
/// How long a keeper waits for its first group, ns.
const FIRST_GROUP_NS: i64 = 10_000_000_000;
/// How long a watcher that is not stopped may break its promise.
const WATCHER_PATIENCE: Duration = Duration::from_millis(200);
/// A watcher that could not be started, or ended at once, is not started again before, ns.
const AGAIN_NS: i64 = 100_000_000;
/// How long the commander may take for a command, ns: it opens files and starts processes.
const COMMAND_NS: i64 = 5_000_000_000;

/// The numbers of the files waited for.
const ASKED: u64 = 0;
const WATCHER_ENDED: u64 = 1;

/// The first keeper of a place, or one that continues the work of dead ones.
pub(super) fn begin(dir: &Path) -> Result<(), ProcessError> {
    let lock = handed::open_lock(dir).map_err(ProcessError::of("lock"))?;
    if !handed::try_lock(&lock).map_err(ProcessError::of("lock"))? {
        return Err(ProcessError::Taken(dir.to_owned()));
    }
    setup::become_orphan().map_err(ProcessError::of("fork"))?;
    // Nobody was left to take the place of the previous keeper.
    start(dir, Handed::make(dir, lock)?, Came::Late)
}

/// As [`begin`], with the lock that the heir got.
pub(super) fn inherit(dir: &Path, lock: RawFd) -> Result<(), ProcessError> {
    if !handed::is_open(lock) {
        return Err(ProcessError::Taken(dir.to_owned()));
    }
    handed::hand_down(lock, false).map_err(ProcessError::of("fcntl"))?;
    // SAFETY: open, and handed to this process for this; nobody else here has it.
    let lock = unsafe { OwnedFd::from_raw_fd(lock) };
    start(dir, Handed::make(dir, lock.into())?, Came::AtOnce)
}

fn start(dir: &Path, handed: Handed, came: Came) -> Result<(), ProcessError> {
    setup::leave_starter();
    setup::set_priority(COMMANDER).map_err(crate::KeeperError::from)?;
    setup::lock_memory(setup::Lock::Touched)?;
    let page = Arc::new(Page::open_or_make(dir)?);
    let crew = Crew::new(Arc::clone(&page), Arc::clone(&handed.bell), came);
    setup::say_ready();
    Keeping::new(dir, page, handed, crew).go()
}

/// A keeper at work.
pub(super) struct Keeping {
    dir: PathBuf,
    page: Arc<Page>,
    handed: Handed,
    crew: Crew,
    watcher: Option<Peer>,
    watcher_due_ns: i64,
    doubt: Doubt,
    began_ns: i64,
    /// There was a group to hold, or somebody asked: a keeper that then holds nothing has no reason to wait for more.
    held: bool,
}

impl Keeping {
    pub(super) fn new(dir: &Path, page: Arc<Page>, handed: Handed, crew: Crew) -> Keeping {
        let held = !page.is_empty();
        Keeping {
            dir: dir.to_owned(),
            page,
            handed,
            crew,
            watcher: None,
            watcher_due_ns: 0,
            doubt: Doubt::new(WATCHER_PATIENCE),
            began_ns: sys::now_ns(),
            held,
        }
    }

    /// Holds the groups on the page and those asked for, until none is left.
    pub(super) fn go(mut self) -> Result<(), ProcessError> {
        self.page.set_watcher(0);
        self.page.set_keeper(std::process::id());
        self.page.commander().begin();
        self.page.commander().promise(sys::now_ns() + COMMAND_NS);
        self.crew.activate();
        let waiting = Waiting::new().map_err(ProcessError::of("epoll"))?;
        waiting
            .add(&self.handed.listener, ASKED)
            .map_err(ProcessError::of("epoll"))?;
        loop {
            self.page.commander().promise(sys::now_ns() + COMMAND_NS);
            self.take_up();
            self.see_to_watcher(&waiting);
            self.see_to_heir();
            self.page
                .commander()
                .promise(sys::now_ns() + 2 * LONGEST_SLEEP_NS);
            let mut commands = false;
            let due_ns = self.next_look_ns();
            let sleep_ns = due_ns - sys::now_ns();
            let ready = |number| match number {
                ASKED => commands = true,
                WATCHER_ENDED => {}
                _ => {}
            };
            waiting
                .wait(sleep_ns, ready)
                .map_err(ProcessError::of("epoll"))?;
            self.page.commander().promise(sys::now_ns() + COMMAND_NS);
            if commands {
                self.serve();
            }
            self.look_at_watcher(due_ns);
            if let Some(cpu) = self.crew.ended() {
                // The watcher does better.
                let what = format!("the enforcing thread of cpu {cpu}");
                return Err(ProcessError::of(what)(std::io::ErrorKind::Other.into()));
            }
            for id in self.crew.gone() {
                let _ = self.crew.release(id);
            }
            let waited = sys::now_ns() - self.began_ns > FIRST_GROUP_NS;
            if self.page.is_empty() && (self.held || waited) {
                return self.end();
            }
        }
    }

    /// Takes up the groups that the page lists, and records there those that failed; the thread that takes a group up
    /// clears that. Groups that are gone are forgotten.
    fn take_up(&mut self) {
        let failed = self.crew.sync();
        for place in 0..MOST_GROUPS {
            let record = self.page.group(place);
            let id = record.id();
            let failure = failed.iter().find(|(which, _)| which.id == id && id != 0);
            match failure {
                // Not opened: nobody writes there but the caller.
                Some((which, _)) if matches!(which.path.try_exists(), Ok(false)) => {
                    record.set_not_held(None);
                    record.dismiss();
                    self.page.changed();
                }
                Some((_, error)) => record.set_not_held(Some(error.errno())),
                None if id == 0 => record.set_not_held(None),
                None => {}
            }
        }
    }

    fn end(self) -> Result<(), ProcessError> {
        // Under the lock: the next process finds nothing.
        let _ = std::fs::remove_file(self.dir.join(SOCKET));
        self.page.remove(&self.dir);
        // The watcher sees an empty page and the end of this process, and ends too.
        Ok(())
    }

    fn next_look_ns(&self) -> i64 {
        let longest_ns = sys::now_ns() + LONGEST_SLEEP_NS;
        match &self.watcher {
            Some(_) if self.watcher_due_ns <= sys::now_ns() => {
                sys::now_ns() + super::peer::DOUBT_NS
            }
            Some(_) => longest_ns.min(self.watcher_due_ns),
            // Nothing is to be watched until a group comes, and that is a command.
            None if self.page.is_empty() => longest_ns,
            None => longest_ns.min(self.watcher_due_ns.max(sys::now_ns())),
        }
    }

    /// Starts a watcher if there is none and something to watch.
    fn see_to_watcher(&mut self, waiting: &Waiting) {
        if self.watcher.is_some() || self.page.is_empty() || sys::now_ns() < self.watcher_due_ns {
            return;
        }
        self.watcher_due_ns = sys::now_ns() + AGAIN_NS;
        self.page.watching().promise(sys::now_ns() + COMMAND_NS);
        let Ok(child) = self.handed.start_watcher(&self.dir) else {
            return;
        };
        let peer = Peer::open(child.id().cast_signed()).and_then(|peer| {
            waiting.add(&peer.process, WATCHER_ENDED)?;
            Ok(peer)
        });
        self.watcher = kept_if(peer, child);
        self.doubt = Doubt::new(WATCHER_PATIENCE);
    }

    /// Whether the watcher keeps its promise; kills it if not.
    fn look_at_watcher(&mut self, meant_ns: i64) {
        let Some(watcher) = &self.watcher else { return };
        let ended = Waiting::new().and_then(|waiting| {
            let mut ended = false;
            waiting.add(&watcher.process, 0)?;
            waiting.wait(0, |_| ended = true)?;
            Ok(ended)
        });
        let now_ns = sys::now_ns();
        let verdict = match ended {
            Ok(true) => Verdict::Dead,
            _ => (self.doubt).judge(watcher.pid, self.page.watching(), now_ns, meant_ns),
        };
        let promised_ns = self.page.watching().promised_ns();
        self.watcher_due_ns = promised_ns.saturating_add(PATIENCE_NS);
        if verdict == Verdict::Dead {
            let _ = watcher.kill();
            self.page.set_watcher(0);
            self.watcher = None;
            self.watcher_due_ns = now_ns;
        }
    }

    /// Starts an heir if nobody has its lock.
    fn see_to_heir(&self) {
        let Ok(lock) = handed::open_heirs_lock(&self.dir) else {
            return;
        };
        if !self.page.is_empty() && handed::try_lock(&lock).unwrap_or(false) {
            drop(lock);
            let _ = handed::own_program("heir", &self.dir).spawn();
        }
    }

    fn serve(&mut self) {
        while let Ok((stream, _)) = self.handed.listener.accept() {
            // Many at once take longer than one.
            self.page.commander().promise(sys::now_ns() + COMMAND_NS);
            let prepared = stream
                .set_nonblocking(false)
                .and_then(|()| stream.set_write_timeout(Some(SENDING)));
            let Some(line) = prepared.ok().and_then(|()| sent(&stream)) else {
                continue;
            };
            let done = Command::from_line(&line)
                .map_err(Refusal::from)
                .and_then(|command| self.carry_out(command));
            let mut stream: UnixStream = stream;
            // A client that has gone meanwhile asks again: every command may be given twice. One that releases again
            // knows that it does.
            let _ = stream.write_all(wire::answer(&done).as_bytes());
        }
    }

    /// The place of a group that is on the page but that no thread could take up.
    fn unheld(&self, id: u64) -> Option<usize> {
        let is = |place: &usize| id != 0 && self.page.group(*place).id() == id;
        (0..MOST_GROUPS).find(is).filter(|_| !self.crew.has(id))
    }

    fn carry_out(&mut self, command: Command) -> Result<u64, Refusal> {
        match command {
            Command::Ping => {
                self.held = true;
                Ok(0)
            }
            Command::Change(id, reservation) => {
                match self.unheld(id) {
                    Some(place) => unheld::change(&self.page, place, reservation),
                    None => self.crew.change(id, reservation)?,
                }
                Ok(id)
            }
            Command::Release(id) => {
                match self.unheld(id) {
                    Some(place) => {
                        unheld::release(&self.page, place).map_err(KeeperError::from)?;
                        self.crew.told();
                    }
                    None => self.crew.release(id)?,
                }
                Ok(id)
            }
            Command::Hold(path, stop, cpu, reservation) => {
                self.held = true;
                let groups = self.page.groups();
                let named = |entry: &&Entry| entry.which.path == path;
                if let Some(Entry { which, .. }) = groups.iter().find(named) {
                    let unheld = self.unheld(which.id);
                    if which.cpu != cpu {
                        let cpu = which.cpu;
                        return Err(match unheld {
                            Some(_) => Refusal::Unheld { path, cpu },
                            None => Refusal::Elsewhere { path, cpu },
                        });
                    }
                    if let Some(place) = unheld {
                        self.crew.take_up(place, which)?;
                    }
                    self.crew.change(which.id, reservation)?;
                    // A group of that name may have been removed and recreated.
                    if !self.crew.gone().contains(&which.id) {
                        return Ok(which.id);
                    }
                    self.crew.release(which.id)?;
                }
                if let Some(held) = other_name(&groups, &path) {
                    let held = held.to_owned();
                    return Err(Refusal::OtherName { path, held });
                }
                if !host::cpus::online().is_ok_and(|online| online.contains(&cpu)) {
                    return Err(Refusal::Offline(cpu));
                }
                let place = (0..MOST_GROUPS).find(|place| self.page.group(*place).id() == 0);
                let place = place.ok_or(Refusal::Full)?;
                let id = self.page.new_id();
                self.crew
                    .hold((id, cpu), (&path, stop), place, reservation)?;
                Ok(id)
            }
        }
    }
}

/// The line that is sent, with its line break; `None` if there is none, or it takes too long in all.
fn sent(mut stream: &UnixStream) -> Option<Vec<u8>> {
    let until = Instant::now() + SENDING;
    let mut line = Vec::new();
    let mut piece = [0u8; wire::LONGEST_LINE];
    while !line.ends_with(b"\n") && line.len() < wire::LONGEST_LINE {
        // A timeout of zero would wait for ever.
        let left = until.checked_duration_since(Instant::now());
        let left = left.filter(|left| !left.is_zero())?;
        stream.set_read_timeout(Some(left)).ok()?;
        match stream.read(&mut piece) {
            Ok(0) => return None,
            Ok(length) => line.extend_from_slice(&piece[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
    line.ends_with(b"\n").then_some(line)
}

/// The path under which the group at another one is held.
fn other_name<'a>(groups: &'a [Entry], path: &Path) -> Option<&'a Path> {
    let inode = |path: &Path| std::fs::metadata(path).map(|dir| dir.ino()).ok();
    let is = inode(path)?;
    // Held twice, two threads would work against each other. If that path leads elsewhere by now, it is another group.
    let same = groups
        .iter()
        .map(|entry| &entry.which)
        .find(|which| which.path != path && which.inode == is && inode(&which.path) == Some(is));
    same.map(|which| which.path.as_path())
}

/// The result of a step with a child that was just started; if it failed, the child is killed: otherwise there would be
/// two the next time.
fn kept_if<T>(done: io::Result<T>, mut child: Child) -> Option<T> {
    if done.is_err() {
        let _ = child.kill();
    }
    done.ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counter::Senses;
    use crate::group::Stop;
    use crate::page::{Progress, Totals};
    use crate::rule::{Reservation, State};

    #[test]
    fn whoever_sends_a_command_bit_by_bit_is_not_waited_for() {
        let line = "x".repeat(wire::LONGEST_LINE);
        let (mut sender, stream) = UnixStream::pair().unwrap();
        let bits = std::thread::spawn(move || {
            let mut bits = line.bytes();
            bits.position(|byte| {
                std::thread::sleep(SENDING / 10);
                sender.write_all(&[byte]).is_err()
            })
        });
        assert_eq!(sent(&stream), None);
        drop(stream);
        // Some ten, and more where the machine stands still.
        let at = bits.join().unwrap();
        assert!(at.is_some_and(|at| at < wire::LONGEST_LINE / 2), "{at:?}");
        let (mut sender, stream) = UnixStream::pair().unwrap();
        for (text, is_one) in [("ping\n", true), ("pi", false)] {
            sender.write_all(text.as_bytes()).unwrap();
            assert_eq!(sent(&stream), is_one.then(|| text.as_bytes().to_vec()));
        }
    }

    #[test]
    fn a_watcher_that_is_not_watched_is_killed() {
        let start = || std::process::Command::new("sleep").arg("100").spawn();
        for is_watched in [true, false] {
            let child = start().unwrap();
            let peer = Peer::open(child.id().cast_signed()).unwrap();
            let done = match is_watched {
                true => Ok(()),
                false => Err(io::ErrorKind::OutOfMemory.into()),
            };
            assert_eq!(kept_if(done, child), is_watched.then_some(()));
            let waiting = Waiting::new().unwrap();
            waiting.add(&peer.process, 0).unwrap();
            let mut ended = false;
            let ns = if is_watched { 0 } else { 10_000_000_000 };
            waiting.wait(ns, |_| ended = true).unwrap();
            assert_eq!(ended, !is_watched);
            peer.kill().unwrap();
        }
    }

    /// A keeper with a group in `dir` on its page, at the third place.
    fn keeping(dir: &Path) -> Keeping {
        let page = Arc::new(Page::open_or_make(dir).unwrap());
        let lane = page.lane(page.lane_of(0).unwrap());
        lane.settle(0, &Senses::clock(""));
        page.group(2).note(Progress {
            id: 1,
            reservation: Reservation::new(1_000_000, 10_000_000).unwrap(),
            state: State::default(),
            lowered_at_ns: None,
            best_effort_ns: 0,
            totals: Totals::default(),
        });
        page.group(2).appoint(1, (0, Stop::Freeze), dir, 7);
        let handed = Handed::make(dir, handed::open_lock(dir).unwrap()).unwrap();
        let crew = Crew::new(Arc::clone(&page), Arc::clone(&handed.bell), Came::Late);
        Keeping::new(dir, page, handed, crew)
    }

    fn not_held(page: &Page) -> Option<i32> {
        page.groups()[0].not_held
    }

    #[test]
    fn what_cannot_be_taken_up_is_told_of_until_it_can() {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        // It is there, and no group.
        let mut keeping = keeping(dir.path());
        let page = Arc::clone(&keeping.page);
        for _ in 0..2 {
            keeping.take_up();
            let told = not_held(&page);
            assert!(matches!(told, Some(libc::ENOENT | libc::EPERM)), "{told:?}");
        }
        // The next one here begins without that.
        page.group(2).dismiss();
        page.changed();
        keeping.take_up();
        page.group(2).appoint(1, (0, Stop::Freeze), dir.path(), 7);
        assert_eq!(not_held(&page), None);
    }

    #[test]
    fn what_was_taken_up_is_told_of_by_who_has_it() {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let mut keeping = keeping(dir.path());
        let page = Arc::clone(&keeping.page);
        // As the keeper before has left it. This one's thread may have it open, and not have gone on with it yet.
        page.group(2).set_not_held(Some(libc::EMFILE));
        for name in ["cgroup.freeze", "cgroup.events", "cpu.stat"] {
            std::fs::write(dir.path().join(name), "usage_usec 0\n").unwrap();
        }
        keeping.take_up();
        assert!(not_held(&page).is_some());
    }

    #[test]
    fn what_is_taken_up_when_it_is_asked_for_is_not_said_to_be_what_could_not() {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let mut keeping = keeping(dir.path());
        let page = Arc::clone(&keeping.page);
        keeping.crew.activate();
        keeping.take_up();
        assert!(not_held(&page).is_some());
        for name in ["cgroup.freeze", "cgroup.events", "cpu.stat"] {
            std::fs::write(dir.path().join(name), "usage_usec 0\n").unwrap();
        }
        let other = Reservation::new(2_000_000, 20_000_000).unwrap();
        let command = Command::Hold(dir.path().to_owned(), Stop::Freeze, 0, other);
        match keeping.carry_out(command) {
            Ok(id) => {
                assert_eq!((id, not_held(&page)), (1, None));
                keeping.take_up();
                assert_eq!(not_held(&page), None);
                assert_eq!(keeping.carry_out(Command::Release(1)).unwrap(), 1);
            }
            // An unprivileged process gets no enforcing thread.
            Err(why) => {
                let is_class = matches!(why, Refusal::Keeper(KeeperError::Class(_)));
                assert!(is_class, "{why}");
            }
        }
    }

    #[test]
    fn what_could_not_be_taken_up_is_changed_released_and_asked_for_again() {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        // Enough to thaw it, too little to hold it.
        let freeze = dir.path().join("cgroup.freeze");
        std::fs::write(&freeze, "1").unwrap();
        let mut keeping = keeping(dir.path());
        keeping.take_up();
        let page = Arc::clone(&keeping.page);
        assert!(not_held(&page).is_some());
        let other = Reservation::new(2_000_000, 20_000_000).unwrap();
        assert_eq!(keeping.carry_out(Command::Change(1, other)).unwrap(), 1);
        assert_eq!(page.groups()[0].progress.reservation, other);
        let mut hold = |cpu| {
            let command = Command::Hold(dir.path().to_owned(), Stop::Freeze, cpu, other);
            keeping.carry_out(command).unwrap_err().to_string()
        };
        let why = hold(0);
        let path = dir.path().display();
        let is_told = why.starts_with(&format!("{path}/cgroup.events: No such file"))
            || why.starts_with("the enforcing thread cannot get its cpu and class");
        assert!(is_told, "{why}");
        assert_eq!(hold(1), format!("{path} is not held, and belongs to cpu 0"));
        let before = page.generation();
        assert_eq!(keeping.carry_out(Command::Release(1)).unwrap(), 1);
        assert_eq!(std::fs::read_to_string(&freeze).unwrap(), "0");
        assert!(page.is_empty() && page.generation() > before);
        assert!(keeping.carry_out(Command::Release(1)).is_err());
    }
}
