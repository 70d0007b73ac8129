//! The client's end of the control socket.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use super::line::LineBuffer;
use super::message::{Answer, Ask, Refusal, Request, Say, line};
use super::{ControlError, peer, socket};

/// The longest answer that is read, bytes: the state of as many cells as a mission can have.
const MOST_ANSWER_BYTES: usize = 64 << 20;

/// Silence after which it is looked at whether the supervisor is stopped.
const SILENCE: Duration = Duration::from_secs(2);

/// One end of a conversation with a supervisor. Waits for answers.
#[derive(Debug)]
pub struct Client {
    stream: UnixStream,
    input: LineBuffer,
    /// The process that listens; 0: not known here.
    supervisor: i32,
}

/// Whether more answers are waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Follow {
    /// Yes.
    On,
    /// No.
    Enough,
}

impl Client {
    /// Connects to the supervisor of the mission in this directory.
    ///
    /// # Errors
    /// If nobody listens, it is not allowed, there is no such directory, or somebody else listens there or could.
    pub fn connect(dir: &Path) -> Result<Client, ControlError> {
        host::ground::check(dir)?;
        match socket::connect(dir) {
            Ok(stream) => {
                let supervisor = believed(dir, &stream)?;
                let waits = stream.set_read_timeout(Some(SILENCE));
                waits.map_err(|error| failed(dir, "reached", error))?;
                Ok(Client {
                    stream,
                    supervisor,
                    input: LineBuffer::default(),
                })
            }
            Err(error) => Err(match error.kind() {
                io::ErrorKind::NotFound if !dir.join("journal").exists() => {
                    match std::fs::symlink_metadata(dir.join("journal")) {
                        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                            no_permission(dir)
                        }
                        _ => ControlError::NoMission {
                            dir: dir.to_owned(),
                        },
                    }
                }
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
                    ControlError::NobodyListens {
                        dir: dir.to_owned(),
                    }
                }
                io::ErrorKind::PermissionDenied => no_permission(dir),
                _ => self::failed(dir, "reached", error),
            }),
        }
    }

    /// Sends a request, and waits for the last answer; earlier ones go to `meanwhile`.
    ///
    /// # Errors
    /// When the supervisor refuses, ends, or sends something that is not understood.
    pub fn ask(
        &mut self,
        dir: &Path,
        ask: Ask,
        meanwhile: &mut dyn FnMut(&str),
    ) -> Result<Say, ControlError> {
        self.send(dir, ask)?;
        loop {
            match self.next(dir, meanwhile)? {
                None => return Err(ControlError::Ended),
                Some(Say::Refused { kind, why }) => {
                    return Err(ControlError::Refused { kind, why });
                }
                Some(Say::Notice { text }) => meanwhile(&text),
                Some(say) => return Ok(say),
            }
        }
    }

    /// Subscribes, and passes every event to `each` until it has enough or the supervisor ends.
    ///
    /// # Errors
    /// As [`Client::ask`].
    pub fn follow(
        &mut self,
        dir: &Path,
        each: &mut dyn FnMut(Say) -> Result<Follow, ControlError>,
    ) -> Result<(), ControlError> {
        self.send(dir, Ask::Events)?;
        loop {
            let next = self.next(dir, &mut |text| {
                // The subscriber hears of its end by the next event.
                let _ = each(Say::Notice {
                    text: text.to_owned(),
                });
            })?;
            let Some(say) = next else {
                break;
            };
            if let Say::Refused { kind, why } = say {
                return Err(ControlError::Refused { kind, why });
            }
            if each(say)? == Follow::Enough {
                break;
            }
        }
        Ok(())
    }

    fn send(&mut self, dir: &Path, ask: Ask) -> Result<(), ControlError> {
        let sent = self.stream.write_all(&line(&Request::new(ask)));
        match sent {
            // The answer says why: the supervisor does not read from a refused client.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            Err(error) => Err(failed(dir, "asked", error)),
            Ok(()) => Ok(()),
        }
    }

    /// Whether the supervisor's process is stopped by a signal or a tracer.
    fn is_stopped(&self) -> bool {
        let status = host::process::status(self.supervisor);
        host::process::value(&status, "State").is_some_and(|state| state.starts_with(['T', 't']))
    }

    /// The next answer; `waits` is told once of a supervisor that is stopped.
    fn next(
        &mut self,
        dir: &Path,
        waits: &mut dyn FnMut(&str),
    ) -> Result<Option<Say>, ControlError> {
        let not_understood = |reason: String| ControlError::NotUnderstood { reason };
        let mut is_told = false;
        loop {
            let line = self.input.take(MOST_ANSWER_BYTES);
            if let Some(line) = line.map_err(|error| not_understood(error.to_string()))? {
                let answer: Answer = serde_json::from_slice(&line)
                    .map_err(|error| not_understood(error.to_string()))?;
                return Ok(Some(answer.say));
            }
            let mut bytes = [0; 64 << 10];
            match self.stream.read(&mut bytes) {
                Ok(0) => return Ok(None),
                Ok(count) => self.input.push(&bytes[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if !is_told && self.is_stopped() {
                        is_told = true;
                        let pid = self.supervisor;
                        waits(&format!(
                            "the supervisor (pid {pid}) is stopped and answers once it goes on: kill -CONT {pid}"
                        ));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(None),
                Err(error) => return Err(failed(dir, "heard", error)),
            }
        }
    }
}

/// The process that listens, if it is of root or of this process's user. Another one's words are neither read nor waited for.
fn believed(dir: &Path, stream: &UnixStream) -> Result<i32, ControlError> {
    let peer = peer::of(stream.as_fd()).map_err(|error| failed(dir, "reached", error))?;
    let user = peer.uid;
    match peer::may(user, peer::own_user()) {
        true => Ok(peer.pid),
        false => Err(ControlError::ForeignServer {
            path: socket::path(dir),
            user,
        }),
    }
}

impl ControlError {
    /// Whether the supervisor refused for this reason.
    pub fn is(&self, refusal: Refusal) -> bool {
        matches!(self, ControlError::Refused { kind, .. } if *kind == refusal)
    }
}

fn no_permission(dir: &Path) -> ControlError {
    ControlError::NoPermission {
        path: socket::path(dir),
    }
}

fn failed(dir: &Path, tried: &'static str, source: io::Error) -> ControlError {
    ControlError::System {
        path: socket::path(dir),
        tried,
        source,
    }
}
