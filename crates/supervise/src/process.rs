//! A process that can be told from a later one with the same pid, even by the next supervisor and after a reboot.

use std::io;

use host::process::Stat;
use serde::{Deserialize, Serialize};

/// A process of this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Its pid as the supervisor sees it.
    pub pid: i32,
    /// When it was started, in clock ticks since boot: field 22 of `/proc/PID/stat` (proc_pid_stat(5)).
    pub start_ticks: u64,
    /// The boot in which it was started: `/proc/sys/kernel/random/boot_id`.
    pub boot_id: String,
}

/// Why it is unknown whether a process runs.
#[derive(Debug, thiserror::Error)]
#[error("{path} cannot be read: {source}")]
pub struct ProcUnreadable {
    /// The file.
    path: String,
    /// Why not.
    source: io::Error,
}

impl Process {
    /// The process that has this pid now; `None`: there is none, or it has ended and waits to be reaped.
    ///
    /// # Errors
    /// When `/proc` cannot be read.
    pub fn of(pid: i32) -> Result<Option<Process>, ProcUnreadable> {
        let path = format!("/proc/{pid}/stat");
        let stat = match host::file::read(&path) {
            Ok(line) => Stat::parse(String::from_utf8_lossy(&line)),
            Err(error) if gone(&error) => None,
            Err(source) => return Err(ProcUnreadable { path, source }),
        };
        let living = stat.filter(|stat| !stat.has_ended());
        let Some(start_ticks) = living.and_then(|stat| stat.start_ticks()) else {
            return Ok(None);
        };
        Ok(Some(Process {
            pid,
            start_ticks,
            boot_id: boot_id()?,
        }))
    }

    /// Whether it still runs: this boot, this pid, this start. A zombie does not.
    ///
    /// # Errors
    /// When `/proc` cannot be read.
    pub fn still_runs(&self) -> Result<bool, ProcUnreadable> {
        Ok(Process::of(self.pid)?.as_ref() == Some(self))
    }
}

/// How far up a process's ancestors are looked at.
const GENERATIONS: usize = 64;

/// Whether a process is one of these or has one of them above it.
pub(crate) fn descends(pid: i32, from: &[i32]) -> bool {
    let above = std::iter::successors(Some(pid), |pid| Stat::of(*pid)?.parent());
    (above.take_while(|pid| *pid > 1).take(GENERATIONS)).any(|pid| from.contains(&pid))
}

pub(crate) use host::process::start_ticks as start_of;

/// This instant, in clock ticks since boot, as [`start_of`] tells starts.
pub(crate) fn ticks_now() -> u64 {
    let ns = host::clock::read(libc::CLOCK_BOOTTIME).unwrap_or(0);
    u64::try_from(ns / host::process::tick_ns()).unwrap_or(0)
}

/// The kernel's name for this boot.
///
/// # Errors
/// When `/proc` cannot be read.
pub fn boot_id() -> Result<String, ProcUnreadable> {
    host::process::boot_id().map_err(|source| ProcUnreadable {
        path: host::process::BOOT_ID.to_owned(),
        source,
    })
}

fn gone(error: &io::Error) -> bool {
    // ESRCH: it has ended between the opening and the reading.
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ESRCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_until_it_ends() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let process = Process::of(child.id().cast_signed()).unwrap().unwrap();
        let now = ticks_now();
        assert!(process.start_ticks <= now && now < process.start_ticks + 6_000);
        assert!(process.still_runs().unwrap());
        let of_another_boot = Process {
            boot_id: "another".to_owned(),
            ..process.clone()
        };
        assert!(!of_another_boot.still_runs().unwrap());
        let of_another_start = Process {
            start_ticks: process.start_ticks + 1,
            ..process.clone()
        };
        assert!(!of_another_start.still_runs().unwrap());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!process.still_runs().unwrap());
        assert_eq!(Process::of(i32::MAX).unwrap(), None);
    }
}
