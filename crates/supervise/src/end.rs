//! How a program ended.

use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use serde::{Deserialize, Serialize};

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// It ended by itself.
    Exited {
        /// With this status, 0 to 255.
        code: i32,
    },
    /// A signal ended it.
    Killed {
        /// Number of the signal.
        signal: i32,
        /// Whether it has left a core file.
        core_dumped: bool,
    },
    /// It ended while no supervisor could see it.
    Unknown,
}

impl End {
    /// Whether it is anything but an exit with status 0.
    pub fn is_failure(self) -> bool {
        self != End::Exited { code: 0 }
    }
}

impl From<ExitStatus> for End {
    fn from(status: ExitStatus) -> End {
        match (status.code(), status.signal()) {
            (Some(code), _) => End::Exited { code },
            (None, Some(signal)) => End::Killed {
                signal,
                core_dumped: status.core_dumped(),
            },
            (None, None) => End::Unknown,
        }
    }
}

/// `exited with status 3`, `killed by signal 11 (SIGSEGV), core dumped`.
impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            End::Exited { code } => write!(f, "exited with status {code}"),
            End::Killed {
                signal,
                core_dumped,
            } => {
                write!(f, "killed by signal {signal}")?;
                if let Some((_, name)) = NAMES.iter().find(|(number, _)| *number == signal) {
                    write!(f, " ({name})")?;
                }
                f.write_str(if core_dumped { ", core dumped" } else { "" })
            }
            End::Unknown => f.write_str("ended unobserved"),
        }
    }
}

/// The signals that end programs.
const NAMES: [(i32, &str); 23] = [
    (libc::SIGHUP, "SIGHUP"),
    (libc::SIGINT, "SIGINT"),
    (libc::SIGQUIT, "SIGQUIT"),
    (libc::SIGILL, "SIGILL"),
    (libc::SIGTRAP, "SIGTRAP"),
    (libc::SIGABRT, "SIGABRT"),
    (libc::SIGBUS, "SIGBUS"),
    (libc::SIGFPE, "SIGFPE"),
    (libc::SIGKILL, "SIGKILL"),
    (libc::SIGSEGV, "SIGSEGV"),
    (libc::SIGPIPE, "SIGPIPE"),
    (libc::SIGALRM, "SIGALRM"),
    (libc::SIGTERM, "SIGTERM"),
    (libc::SIGXCPU, "SIGXCPU"),
    (libc::SIGXFSZ, "SIGXFSZ"),
    (libc::SIGSYS, "SIGSYS"),
    (libc::SIGUSR1, "SIGUSR1"),
    (libc::SIGUSR2, "SIGUSR2"),
    (libc::SIGSTKFLT, "SIGSTKFLT"),
    (libc::SIGVTALRM, "SIGVTALRM"),
    (libc::SIGPROF, "SIGPROF"),
    (libc::SIGIO, "SIGIO"),
    (libc::SIGPWR, "SIGPWR"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_told_from_one_another() {
        let run = |script: &str| {
            let status = std::process::Command::new("sh")
                .args(["-c", script])
                .status();
            End::from(status.unwrap())
        };
        assert_eq!(run("exit 3").to_string(), "exited with status 3");
        assert!(!run("exit 0").is_failure());
        assert_eq!(
            run("kill -USR1 $$").to_string(),
            "killed by signal 10 (SIGUSR1)"
        );
        let killed = run("kill -TERM $$");
        assert_eq!(killed.to_string(), "killed by signal 15 (SIGTERM)");
        assert!(killed.is_failure() && End::Unknown.is_failure());
    }
}
