//! The supervisor's end of the control socket.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, EventData, EventFlags};

use super::line::LineBuffer;
use super::message::{Ask, Refusal, Request, Say, line};
use super::{Answer, Happening, MOST_REQUEST_BYTES, peer, socket};

/// Clients at once.
pub const MOST_CLIENTS: usize = 32;
/// Bytes that wait for a subscriber before he is behind.
const MOST_WAITING: usize = 256 << 10;
/// Connections that are taken, and bytes of one client that are read, in one turn.
const ACCEPTED: usize = 8;
const READ_BYTES: usize = 16 << 10;
/// The listening socket's mark; clients are counted from 1.
const LISTENER: u64 = 0;

/// The supervisor's end of the control socket. Never blocks: its work is done in [`Server::turn`], and one descriptor
/// becomes readable when there is something.
#[derive(Debug)]
pub(crate) struct Server {
    listener: UnixListener,
    epoll: OwnedFd,
    path: PathBuf,
    user: u32,
    clients: BTreeMap<u64, Client>,
    next: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// It may ask.
    Asks,
    /// It has asked, and the last answer is not there yet.
    Waits,
    /// It receives events.
    Subscribed,
    /// It gets the rest of its output, and nothing after that.
    Leaves,
}

#[derive(Debug)]
struct Client {
    stream: UnixStream,
    phase: Phase,
    input: LineBuffer,
    output: Vec<u8>,
    /// Bytes of the output that are sent.
    sent: usize,
    /// The last entry that a subscriber missed.
    behind: Option<u64>,
    /// The events that epoll was asked for.
    watched: EventFlags,
}

impl Server {
    /// Makes the socket of a mission's directory, whose lock the caller holds.
    ///
    /// # Errors
    /// When the file system or the kernel refuses.
    pub(crate) fn open(dir: &Path) -> io::Result<Server> {
        let server = Server {
            listener: socket::listen(dir)?,
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            path: socket::path(dir),
            user: peer::own_user(),
            clients: BTreeMap::new(),
            next: LISTENER + 1,
        };
        let mark = EventData::new_u64(LISTENER);
        epoll::add(&server.epoll, &server.listener, mark, EventFlags::IN)?;
        Ok(server)
    }

    /// The descriptor that becomes readable when [`Server::turn`] has something to do.
    pub(crate) fn ready(&self) -> RawFd {
        self.epoll.as_raw_fd()
    }

    /// Takes connections, sends waiting output, and reads: requests with their clients. At most one request of each client.
    pub(crate) fn turn(&mut self) -> Vec<(u64, Ask)> {
        let mut asked = Vec::new();
        for (mark, events) in self.events() {
            if mark == LISTENER {
                self.accept();
                continue;
            }
            if events.intersects(EventFlags::HUP | EventFlags::ERR) {
                self.clients.remove(&mark);
                continue;
            }
            if events.contains(EventFlags::OUT) {
                self.send(mark);
            }
            if events.contains(EventFlags::IN)
                && let Some(ask) = self.read(mark)
            {
                asked.push((mark, ask));
            }
            self.settle(mark);
        }
        asked
    }

    /// Says something to a client that is still there; `last`: it may ask again.
    pub(crate) fn answer(&mut self, to: u64, say: Say, last: bool) {
        let Some(client) = self.clients.get_mut(&to) else {
            return;
        };
        client.output.extend(line(&Answer::new(say)));
        if last && client.phase == Phase::Waits {
            client.phase = Phase::Asks;
        }
        self.send(to);
        self.settle(to);
    }

    /// A client receives the events after this entry of the journal.
    pub(crate) fn subscribe(&mut self, to: u64, sequence: u64) {
        if let Some(client) = self.clients.get_mut(&to) {
            client.phase = Phase::Subscribed;
        }
        self.answer(to, Say::Subscribed { sequence }, false);
    }

    /// Whether there are subscribers.
    pub(crate) fn has_subscribers(&self) -> bool {
        (self.clients.values()).any(|client| client.phase == Phase::Subscribed)
    }

    /// Sends to the subscribers. One that has not yet taken earlier events misses this one, and is told so.
    pub(crate) fn publish(&mut self, happening: &Happening) {
        let marks: Vec<u64> = self.clients.keys().copied().collect();
        let said = line(&Answer::new(Say::Happened(Box::new(happening.clone()))));
        for mark in marks {
            let Some(client) = self.clients.get_mut(&mark) else {
                continue;
            };
            if client.phase != Phase::Subscribed {
                continue;
            }
            if client.behind.is_some() || client.output.len() - client.sent > MOST_WAITING {
                client.behind = Some(happening.sequence);
            } else {
                client.output.extend(&said);
                self.send(mark);
            }
            self.settle(mark);
        }
    }

    /// Sends the queued output, for at most this long: it is lost when the supervisor ends.
    pub(crate) fn finish(&mut self, within: Duration) {
        let until = Instant::now() + within;
        let waits = |server: &Server| {
            (server.clients.values()).any(|client| client.sent < client.output.len())
        };
        while waits(self) && Instant::now() < until {
            let marks: Vec<u64> = self.clients.keys().copied().collect();
            marks.into_iter().for_each(|mark| self.send(mark));
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn events(&self) -> Vec<(u64, EventFlags)> {
        host::epoll::wait(&self.epoll, MOST_CLIENTS + 1, 0).unwrap_or_default()
    }

    fn accept(&mut self) {
        for _ in 0..ACCEPTED {
            let Ok((stream, _)) = self.listener.accept() else {
                return;
            };
            // A stream that cannot be looked after is closed.
            let Ok(user) = peer::of(stream.as_fd()).map(|peer| peer.uid) else {
                continue;
            };
            if stream.set_nonblocking(true).is_err() {
                continue;
            }
            let refusal = if !peer::may(user, self.user) {
                Some((
                    Refusal::NotAllowed,
                    format!(
                        "user {user} may not control this mission; only root and user {} may",
                        self.user
                    ),
                ))
            } else if !self.make_room() {
                Some((
                    Refusal::Busy,
                    format!("the supervisor already has {MOST_CLIENTS} clients; end one of them"),
                ))
            } else {
                None
            };
            if let Some((kind, why)) = refusal {
                let why = vec![why];
                // It fits into the empty buffer of a new socket; a client that has closed it already misses nothing.
                let _ = (&stream).write(&line(&Answer::new(Say::Refused { kind, why })));
                continue;
            }
            let mark = self.next;
            self.next += 1;
            let client = Client {
                stream,
                phase: Phase::Asks,
                input: LineBuffer::default(),
                output: Vec::new(),
                sent: 0,
                behind: None,
                watched: EventFlags::IN,
            };
            let known = EventData::new_u64(mark);
            if epoll::add(&self.epoll, &client.stream, known, client.watched).is_ok() {
                self.clients.insert(mark, client);
            }
        }
    }

    /// Whether there is a place: one that waits for nothing gives way, the eldest first.
    fn make_room(&mut self) -> bool {
        if self.clients.len() < MOST_CLIENTS {
            return true;
        }
        let idle = (self.clients.iter())
            .find(|(_, client)| matches!(client.phase, Phase::Asks | Phase::Leaves))
            .map(|(mark, _)| *mark);
        idle.is_some_and(|mark| self.clients.remove(&mark).is_some())
    }

    fn read(&mut self, mark: u64) -> Option<Ask> {
        let client = self.clients.get_mut(&mark)?;
        if client.phase != Phase::Asks {
            return None;
        }
        let mut bytes = [0; READ_BYTES];
        match client.stream.read(&mut bytes) {
            Ok(0) => {
                self.clients.remove(&mark);
                return None;
            }
            Ok(count) => client.input.push(&bytes[..count]),
            Err(error) if would_wait(&error) => return None,
            Err(_) => {
                self.clients.remove(&mark);
                return None;
            }
        }
        let read = match client.input.take(MOST_REQUEST_BYTES) {
            Ok(None) => return None,
            Ok(Some(_)) if !client.input.is_empty() => {
                Err("wait for the answer to this request before sending the next one".to_owned())
            }
            Ok(Some(line)) => Request::read(&line),
            Err(too_long) => Err(too_long.to_string()),
        };
        match read {
            Ok(request) => {
                client.phase = Phase::Waits;
                Some(request.ask)
            }
            Err(why) => {
                client.phase = Phase::Leaves;
                let (kind, why) = (Refusal::BadRequest, vec![why]);
                self.answer(mark, Say::Refused { kind, why }, true);
                None
            }
        }
    }

    /// Sends as much as the socket takes.
    fn send(&mut self, mark: u64) {
        let Some(client) = self.clients.get_mut(&mark) else {
            return;
        };
        loop {
            if client.sent == client.output.len() {
                client.output.clear();
                client.output.shrink_to(READ_BYTES);
                client.sent = 0;
                let Some(sequence) = client.behind.take() else {
                    return;
                };
                let behind = line(&Answer::new(Say::Behind { sequence }));
                client.output.extend(behind);
            }
            match client.stream.write(&client.output[client.sent..]) {
                Ok(count) if count > 0 => client.sent += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Ok(_) | Err(_) => {
                    self.clients.remove(&mark);
                    return;
                }
            }
        }
    }

    /// Registers the events of interest with epoll, and drops clients that have got their last answer.
    fn settle(&mut self, mark: u64) {
        let Some(client) = self.clients.get_mut(&mark) else {
            return;
        };
        let sends = client.sent < client.output.len();
        if client.phase == Phase::Leaves && !sends {
            self.clients.remove(&mark);
            return;
        }
        let watched = match client.phase {
            _ if sends => EventFlags::OUT,
            Phase::Asks => EventFlags::IN,
            _ => EventFlags::empty(),
        };
        if watched == client.watched {
            return;
        }
        client.watched = watched;
        let known = EventData::new_u64(mark);
        if epoll::modify(&self.epoll, &client.stream, known, watched).is_err() {
            self.clients.remove(&mark);
        }
    }
}

impl Drop for Server {
    /// No client should connect in vain.
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

fn would_wait(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}
