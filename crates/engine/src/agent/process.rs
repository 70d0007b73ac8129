//! The agent's process. It waits for calls outside the cell; with the first it makes a worker inside the cell's pid
//! namespace, where the number of a thread that has ended cannot name a stranger, and the worker answers until no call
//! has come for a second: as long as it is there, the end of the cell waits for its end.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::{Duration, Instant};

use freezer::page::Down;
use host::sched::{Attributes, Class};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::socket_acceptconn;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use rustix::process::{Pid, WaitOptions, setpriority_process, setsid, waitpid};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space, set_name};

use super::call::{self, Judge, Setter};
use super::page::{Excess, Page};
use super::{bell_of, page_of};
use crate::app::record::Record;
use crate::app::{AppSpec, Granted, Scheduling};
use crate::error::{Doing, Result, refused};
use crate::process::Process;
use crate::seccomp::Listener;
use crate::{made, marks, note};

/// How long a worker stays after the last call.
const LINGERS: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};
/// Ordinary work of others makes the callers wait as little as possible.
const NICENESS: i32 = -20;

/// The rate of answers that a cell gets in the long run, 4,000 in a second, so that calls in a loop cost others a few percent of a cpu.
const BETWEEN_ANSWERS: Duration = Duration::from_micros(250);
/// Answers that a cell gets at once, which no program needs that sets up its threads.
const AT_ONCE: u32 = 1_000;

/// The pace of answers: a bucket of [`AT_ONCE`] that fills with one in each [`BETWEEN_ANSWERS`].
struct Pace {
    /// The time at which the next answer is due if none had been saved up.
    due: Instant,
}

impl Pace {
    /// A full one.
    fn new(now: Instant) -> Pace {
        let full = now.checked_sub(BETWEEN_ANSWERS * AT_ONCE);
        Pace {
            due: full.unwrap_or(now),
        }
    }

    /// The time that an answer has to wait, from now.
    fn wait(&mut self, now: Instant) -> Duration {
        let saved = now.checked_sub(BETWEEN_ANSWERS * AT_ONCE);
        self.due = saved.map_or(self.due, |earliest| self.due.max(earliest)) + BETWEEN_ANSWERS;
        self.due.saturating_duration_since(now)
    }
}

/// Sends the descriptor of a cell's calls to its agent.
pub(crate) fn send(agent: BorrowedFd<'_>, listener: BorrowedFd<'_>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let listeners = [listener];
    control.push(SendAncillaryMessage::ScmRights(&listeners));
    sendmsg(
        agent,
        &[IoSlice::new(b".")],
        &mut control,
        SendFlags::NOSIGNAL,
    )?;
    Ok(())
}

/// Receives it; `None`: the cell has ended before it began.
fn receive(socket: OwnedFd, state: &Path) -> Result<Option<OwnedFd>> {
    let mut asked = [PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::IN)];
    while !matches!(poll(&mut asked, Some(&LINGERS)), Ok(1..)) {
        if is_abandoned(state)? {
            return Ok(None);
        }
    }
    // A runtime connects to the socket, and says more than is of interest here.
    let socket = match socket_acceptconn(&socket)? {
        true => UnixListener::from(socket).accept()?.0.into(),
        false => socket,
    };
    let mut text = vec![0; 64 << 10];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC;
    recvmsg(
        &socket,
        &mut [IoSliceMut::new(&mut text)],
        &mut control,
        flags,
    )?;
    let mut rights = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut rights) => rights.next(),
        _ => None,
    });
    Ok(rights.next())
}

/// Whether there will be no cell: it was killed while it waited, or the supervisor was while it made it.
fn is_abandoned(state: &Path) -> Result<bool> {
    let has_ended = |record: Record| !record.process().is_some_and(Process::is_there);
    Ok(Record::read(state)?.is_some_and(has_ended) || !state.exists())
}

/// The process: `words` are the directory of the cell's note and the number of the socket's descriptor.
pub(crate) fn run(words: &[String]) -> Result<()> {
    let [work_dir, socket] = words else {
        return Err("agent: arguments are missing".into());
    };
    let socket: RawFd = (socket.parse()).map_err(|_| "agent: the descriptor is no number")?;
    let socket = alone_with(socket)?;
    let spec: AppSpec = note::read_whole(Path::new(work_dir))?;
    let Scheduling::Granted(granted) = &spec.grants.scheduling else {
        return Err("agent: nothing was granted".into());
    };
    let state = made::state(&spec);
    let page = Page::open(&page_of(&state))?;
    let bell = (File::options().read(true).write(true))
        .custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW)
        .open(bell_of(&state))?;
    let Some(listener) = receive(socket, &state)? else {
        return Ok(());
    };
    let gone = || refused!("agent: the cell has ended");
    // It is noted before the program is told to begin; some runtimes install the filter before that.
    let process = loop {
        match Record::read(&state)?.and_then(|record| record.process()) {
            Some(process) => break process,
            None if is_abandoned(&state)? => return Err(gone()),
            None => std::thread::sleep(Duration::from_millis(1)),
        }
    };
    let pidfd = process.open().ok_or_else(gone)?;
    let namespace = File::open(format!("/proc/{}/ns/pid", process.pid))?;
    if !process.is_there() {
        return Err(gone());
    }
    // For the processes that this one makes.
    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::ProcessID))
        .doing(|| "agent: cannot enter the cell's pid namespace")?;
    let agent = AgentProcess {
        listener: Listener::new(listener),
        bell,
        page,
        granted,
        id: &spec.id,
    };
    agent.serve(&pidfd)
}

/// Keeps nothing of its starter but this descriptor.
fn alone_with(socket: RawFd) -> Result<OwnedFd> {
    // Fails only for the leader of a group, which is as far from the terminal.
    let _ = setsid();
    let _ = set_name(c"timecell-agent");
    host::sched::set_class(0, &Class::Other)?;
    let cpus = host::cpus::possible()?;
    host::sched::set_affinity(0, &cpus)?;
    // A larger share of best effort than others have; without the right to it, the usual one.
    let _ = setpriority_process(None, NICENESS);
    // SAFETY: handed down by the supervisor for this, and nobody else's here.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    let kept = socket.as_raw_fd().unsigned_abs();
    for (from, to) in [(3, kept - 1), (kept + 1, u32::MAX)] {
        if from <= to {
            // SAFETY: no descriptor but the streams and the socket is in use.
            unsafe { libc::syscall(libc::SYS_close_range, from, to, 0) };
        }
    }
    Ok(socket)
}

struct AgentProcess<'a> {
    listener: Listener,
    bell: File,
    page: Page,
    granted: &'a Granted,
    id: &'a str,
}

/// The reason that ended a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Woke {
    /// A call, or grants to put in force.
    Wanted,
    /// Nothing, for the time that was given.
    Idle,
    /// The end of the cell.
    Over,
}

impl AgentProcess<'_> {
    /// Makes workers as they are needed, until the cell has ended.
    fn serve(&self, pidfd: &OwnedFd) -> Result<()> {
        while self.wait(pidfd.as_fd(), None)? != Woke::Over {
            // SAFETY: this process has one thread; the child shares nothing that is locked.
            match unsafe { libc::fork() } {
                0 => {
                    let end = self.work(pidfd.as_fd());
                    // SAFETY: ends the child; nothing of it is to be dropped.
                    unsafe { libc::_exit(i32::from(end.is_err())) }
                }
                worker @ 1.. => {
                    let worker = Pid::from_raw(worker);
                    while matches!(waitpid(worker, WaitOptions::empty()), Err(Errno::INTR)) {}
                }
                // The namespace takes no processes any more: the cell is ending. Else there is no memory or no number.
                _ => std::thread::sleep(Duration::from_millis(10)),
            }
        }
        Ok(())
    }

    fn wait(&self, pidfd: BorrowedFd<'_>, within: Option<&Timespec>) -> io::Result<Woke> {
        let mut asked = [
            PollFd::from_borrowed_fd(self.listener.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(pidfd, PollFlags::IN),
            PollFd::from_borrowed_fd(self.bell.as_fd(), PollFlags::IN),
        ];
        loop {
            match poll(&mut asked, within) {
                Ok(0) => return Ok(Woke::Idle),
                Ok(_) => break,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let [calls, ended, _] = asked.map(|asked| asked.revents());
        // Threads that are left of it get no more answers.
        let over = ended.contains(PollFlags::IN)
            || calls.intersects(PollFlags::HUP | PollFlags::ERR) && !calls.contains(PollFlags::IN);
        Ok(if over { Woke::Over } else { Woke::Wanted })
    }

    /// Answers calls and puts grants in force, as long as they come.
    fn work(&self, pidfd: BorrowedFd<'_>) -> io::Result<()> {
        // Nobody in the cell may look into it, not even its own user there.
        // SAFETY: no memory is involved.
        unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) };
        let is_own = |thread: i32| self.is_apart() || marks::is_of(thread, self.id);
        let held_in = self.granted.held_in.as_ref();
        let down = held_in.map(|(dir, group)| RefCell::new(Down::of(dir, group)));
        let page = &self.page;
        let setter = Setter { page, down };
        let judge = Judge {
            page,
            granted: self.granted,
            setter: &setter,
            is_own: &is_own,
        };
        let mut pace = Pace::new(Instant::now());
        loop {
            self.hear_bell();
            let put = |thread: u32, class: &Class| {
                let thread = thread.cast_signed();
                let own = std::process::id().cast_signed();
                if thread == own || !is_own(thread) {
                    return Err(libc::ESRCH);
                }
                let now = Attributes::of(thread).map_err(|error| call::number(&error))?;
                setter.set(thread, class, now.resets_on_fork())
            };
            if !self.page.is_suspended() {
                self.page.put_in_force(put);
            }
            match self.wait(pidfd, Some(&LINGERS))? {
                Woke::Wanted => {}
                Woke::Idle | Woke::Over => return Ok(()),
            }
            if !self.has_call()? {
                continue;
            }
            if let Some(call) = self.listener.receive()? {
                let answer = judge.answer(&call, &|| self.listener.waits(&call));
                self.listener.answer(&call, answer.err().unwrap_or(0));
                let early = pace.wait(Instant::now());
                if !early.is_zero() {
                    page.note_excess(Excess::CALLS);
                    std::thread::sleep(early);
                }
            }
        }
    }

    /// Whether a call is there: receiving would wait for one.
    fn has_call(&self) -> io::Result<bool> {
        let mut asked = [PollFd::from_borrowed_fd(
            self.listener.as_fd(),
            PollFlags::IN,
        )];
        poll(&mut asked, Some(&Timespec::default()))?;
        Ok(asked[0].revents().contains(PollFlags::IN))
    }

    /// Whether the cell has a pid namespace of its own, in which this process has a number of that namespace.
    fn is_apart(&self) -> bool {
        rustix::process::getppid().is_none()
    }

    fn hear_bell(&self) {
        let mut bells = [0; 64];
        while matches!((&self.bell).read(&mut bells), Ok(1..)) {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_answered_at_once_and_a_loop_at_its_rate() {
        let mut now = Instant::now() + Duration::from_secs(10);
        let mut pace = Pace::new(now);
        for _ in 0..AT_ONCE {
            assert_eq!(pace.wait(now), Duration::ZERO);
        }
        let began = now;
        for _ in 0..400 {
            let wait = pace.wait(now);
            assert!(!wait.is_zero());
            now += wait;
        }
        assert_eq!(now - began, BETWEEN_ANSWERS * 400);
        now += BETWEEN_ANSWERS * 10;
        let free = (0..20).filter(|_| pace.wait(now).is_zero()).count();
        assert_eq!(free, 10);
    }
}
