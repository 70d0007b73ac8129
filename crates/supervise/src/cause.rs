//! Why a program has ended, where its status alone does not tell: a kill by the supervisor and one for memory look alike.

use std::fmt;

use model::Bytes;
use serde::{Deserialize, Serialize};

use crate::end::End;

/// The cause of a program's end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "kebab-case")]
pub enum Cause {
    /// It was asked to end (SIGTERM), and did.
    Asked,
    /// The supervisor killed it.
    Supervisor {
        /// Its reason.
        reason: Reason,
    },
    /// The kernel killed it for memory.
    Memory(ForMemory),
    /// There was no program: the cell could not be made.
    NotStarted {
        /// Why, a clause.
        why: String,
    },
}

/// The memory that ran out when the kernel killed a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForMemory {
    /// The cell's limit in bytes; `None`: not the cell's limit was reached, the machine had no memory left.
    pub limit_bytes: Option<u64>,
}

/// The supervisor's reason for killing a cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
pub enum Reason {
    /// A health rule.
    Rule {
        /// The condition that the rule observes, as mission files call it.
        rule: String,
    },
    /// It ended no job in the time that it had for its start.
    NotReady {
        /// That time, ns.
        waited_ns: i64,
    },
    /// It was asked to end and did not in the time that it had.
    StopTimeout {
        /// That time, ns.
        waited_ns: i64,
    },
    /// The end of the mission was requested a second time.
    AskedTwice,
}

impl Cause {
    /// Whether a program that has ended so may have ended for this.
    pub(crate) fn fits(&self, end: End) -> bool {
        match self {
            Cause::Memory(_) => end == End::Unknown || is_kill(end),
            Cause::NotStarted { .. } => end == End::Unknown,
            Cause::Asked | Cause::Supervisor { .. } => true,
        }
    }
}

/// Whether a program was ended by SIGKILL.
pub(crate) fn is_kill(end: End) -> bool {
    matches!(end, End::Killed { signal, .. } if signal == libc::SIGKILL)
}

/// How a program has ended and why, a clause: `killed for memory: limit 64MiB`.
pub fn ended(end: End, cause: Option<&Cause>) -> String {
    match cause {
        None => end.to_string(),
        Some(Cause::Asked) => format!("{end} when asked to end"),
        Some(Cause::Supervisor { reason }) => format!("killed by the supervisor ({reason})"),
        Some(Cause::Memory(memory)) => memory.to_string(),
        Some(Cause::NotStarted { why }) => format!("could not be started: {why}"),
    }
}

impl fmt::Display for ForMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.limit_bytes {
            Some(bytes) => write!(f, "killed for memory: limit {}", Bytes::new(bytes)),
            None => f.write_str("killed for memory: the machine had none left"),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let span = |ns: i64| model::Duration::from_ns(ns.max(0));
        match self {
            Reason::Rule { rule } => write!(f, "rule `{rule}`"),
            Reason::NotReady { waited_ns } => {
                write!(f, "no job ended within {} of its start", span(*waited_ns))
            }
            Reason::StopTimeout { waited_ns } => {
                write!(f, "it did not end within {} of SIGTERM", span(*waited_ns))
            }
            Reason::AskedTwice => f.write_str("it was asked twice to end"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KILL: End = End::Killed {
        signal: libc::SIGKILL,
        core_dumped: false,
    };

    #[test]
    fn kills_are_told_from_one_another() {
        let by = |reason| Cause::Supervisor { reason };
        let rule = by(Reason::Rule {
            rule: "heartbeat".to_owned(),
        });
        let late = by(Reason::StopTimeout {
            waited_ns: 100_000_000,
        });
        let limit = Cause::Memory(ForMemory {
            limit_bytes: Some(64 << 20),
        });
        for (cause, text) in [
            (None, "killed by signal 9 (SIGKILL)"),
            (
                Some(Cause::Asked),
                "killed by signal 9 (SIGKILL) when asked to end",
            ),
            (Some(rule), "killed by the supervisor (rule `heartbeat`)"),
            (
                Some(late),
                "killed by the supervisor (it did not end within 100ms of SIGTERM)",
            ),
            (Some(limit), "killed for memory: limit 64MiB"),
        ] {
            assert_eq!(ended(KILL, cause.as_ref()), text);
            let json = serde_json::to_string(&cause).unwrap();
            assert_eq!(serde_json::from_str::<Option<Cause>>(&json).unwrap(), cause);
        }
    }

    #[test]
    fn an_exit_is_no_kill_for_memory() {
        let cause = Cause::Memory(ForMemory { limit_bytes: None });
        assert!(cause.fits(KILL) && cause.fits(End::Unknown));
        assert!(!cause.fits(End::Exited { code: 1 }));
    }
}
