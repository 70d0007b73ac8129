//! The commands that a keeper takes and its answers, one line each.

use std::ffi::OsStr;
use std::fmt::Display;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use crate::group::Stop;
use crate::page::LONGEST_PATH;
use crate::rule::{Reservation, ReservationError};

/// A keeper's message once it takes commands.
pub(super) const READY: &str = "ready";
/// The longest line, bytes.
pub(super) const LONGEST_LINE: usize = 256 + LONGEST_PATH;

/// A request to a keeper.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Command {
    /// Hold a group on a cpu, or to another budget if it is held there.
    Hold(PathBuf, Stop, u32, Reservation),
    /// Hold the group with this number to another budget.
    Change(u64, Reservation),
    /// Let it go.
    Release(u64),
    /// Nothing: whether anybody is there.
    Ping,
}

/// The fault of a line that is not a command.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum CommandError {
    /// The first word.
    #[error("`{0}` is not a command")]
    Kind(String),
    /// A word that has to be a number.
    #[error("`{0}` is not a number")]
    Number(String),
    /// The number of a group.
    #[error("a group's number is 0 or more, not {0}")]
    Id(i64),
    /// The number of a cpu.
    #[error("{0} is not a cpu")]
    Cpu(i64),
    /// A budget that cannot be held.
    #[error(transparent)]
    Reservation(#[from] ReservationError),
    /// The keeper is in another directory than the client, and the page has no room for more.
    #[error("the path is not absolute, or longer than {LONGEST_PATH} bytes")]
    Path,
    /// More words than the command has.
    #[error("too many words")]
    Words,
}

/// A keeper's answer when it does not carry out a command.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct KeeperRefusal(String);

impl Command {
    pub(super) fn to_line(&self) -> Vec<u8> {
        let times = |of: &Reservation| format!("{} {}", of.budget_ns(), of.period_ns());
        let mut line = match self {
            Command::Hold(_, stop, cpu, reservation) => {
                let kind = match stop {
                    Stop::Lower => "lower",
                    Stop::Freeze => "freeze",
                };
                format!("{kind} {cpu} {} ", times(reservation))
            }
            Command::Change(id, reservation) => format!("change {id} {}", times(reservation)),
            Command::Release(id) => format!("release {id}"),
            Command::Ping => "ping".to_owned(),
        }
        .into_bytes();
        if let Command::Hold(path, ..) = self {
            line.extend_from_slice(path.as_os_str().as_bytes());
        }
        line.push(b'\n');
        line
    }

    /// Reads a line, with or without its line break.
    ///
    /// # Errors
    /// The fault of the line.
    pub(super) fn from_line(line: &[u8]) -> Result<Command, CommandError> {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let mut words = line.splitn(5, |byte| *byte == b' ');
        let mut word = || words.next().unwrap_or_default();
        let kind = word();
        let mut number = || -> Result<i64, CommandError> {
            let word = word();
            let text = std::str::from_utf8(word).ok();
            let number = text.and_then(|text| text.parse().ok());
            number.ok_or_else(|| CommandError::Number(lossy(word)))
        };
        let id = |number: i64| u64::try_from(number).map_err(|_| CommandError::Id(number));
        let command = match kind {
            b"lower" | b"freeze" => {
                let stop = match kind {
                    b"lower" => Stop::Lower,
                    _ => Stop::Freeze,
                };
                let cpu = number()?;
                let cpu = u32::try_from(cpu).map_err(|_| CommandError::Cpu(cpu))?;
                let reservation = Reservation::new(number()?, number()?)?;
                let path = PathBuf::from(OsStr::from_bytes(word()));
                if !path.is_absolute() || path.as_os_str().len() > LONGEST_PATH {
                    return Err(CommandError::Path);
                }
                return Ok(Command::Hold(path, stop, cpu, reservation));
            }
            b"change" => Command::Change(id(number()?)?, Reservation::new(number()?, number()?)?),
            b"release" => Command::Release(id(number()?)?),
            b"ping" => Command::Ping,
            kind => return Err(CommandError::Kind(lossy(kind))),
        };
        match words.next() {
            None => Ok(command),
            Some(_) => Err(CommandError::Words),
        }
    }
}

fn lossy(word: &[u8]) -> String {
    String::from_utf8_lossy(word).into_owned()
}

/// An answer: the group's number (0 where there is none), or why not.
pub(super) fn answer(done: &Result<u64, impl Display>) -> String {
    match done {
        Ok(id) => format!("ok {id}\n"),
        Err(why) => format!("no {}\n", why.to_string().replace('\n', " ")),
    }
}

/// The content of an answer; `None` if the line is not an answer, or was cut off.
pub(super) fn answered(line: &str) -> Option<Result<u64, KeeperRefusal>> {
    let (kind, rest) = line.strip_suffix('\n')?.split_once(' ')?;
    match kind {
        "ok" => rest.parse().ok().map(Ok),
        "no" => Some(Err(KeeperRefusal(rest.to_owned()))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_arrive_as_they_were_sent() {
        let reservation = Reservation::new(3_000_000, 10_000_000).unwrap();
        let odd = PathBuf::from(OsStr::from_bytes(b"/a b\xff/ c"));
        for command in [
            Command::Hold(odd.clone(), Stop::Lower, 63, reservation),
            Command::Hold(odd, Stop::Freeze, 63, reservation),
            Command::Change(7, reservation),
            Command::Release(u64::MAX >> 1),
            Command::Ping,
        ] {
            assert_eq!(Command::from_line(&command.to_line()), Ok(command));
        }
    }

    #[test]
    fn what_is_no_command_is_told_so() {
        let long = format!("lower 1 1000000 10000000 /{}", "g".repeat(LONGEST_PATH));
        for (line, why) in [
            (long.as_str(), "the path is not absolute, or longer than"),
            ("lower 1 1000000 10000000 a", "the path is not absolute"),
            ("", "`` is not a command"),
            ("freeze x 1 2 /a", "`x` is not a number"),
            ("lower 1 20 10 /a", "10 ns"),
            ("freeze -1 1000000 10000000 /a", "-1 is not a cpu"),
            ("change -1 3000000 10000000", "not -1"),
            ("change 1 3000000", "`` is not a number"),
            ("release 1 2", "too many words"),
        ] {
            let error = Command::from_line(line.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(why), "{line}: {error}");
        }
    }

    #[test]
    fn answers_arrive_and_half_ones_do_not() {
        for done in [Ok(5), Err(KeeperRefusal("it is gone: ENODEV".to_owned()))] {
            assert_eq!(answered(&answer(&done)), Some(done));
        }
        assert_eq!(answered("ok 1"), None);
        assert_eq!(answered(""), None);
    }
}
