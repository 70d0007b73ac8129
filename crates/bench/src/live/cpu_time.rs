//! Cpu time of a cell's process. `schedstat` is a copy of the scheduler's sum in ns, without a lock; it is as old as the
//! last tick or switch.

use std::path::PathBuf;

use host::process::{cpu_ns_of_threads, scheduled_in};

use super::files::{Allowance, Kept};

/// Where the cpu time of one process is read.
#[derive(Debug)]
pub(super) struct CpuTime {
    pid: i32,
    proc: PathBuf,
    /// Of a process with one thread.
    schedstat: Kept,
    threads: bool,
}

/// The finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// Cpu time so far, ns.
    Ns(i64),
    /// The process exists, its time is unknown.
    Unknown,
    /// There is no such process.
    Gone,
}

impl CpuTime {
    /// The cpu time of process `pid`, over all threads if it has several.
    pub(super) fn of(pid: i32, threads: bool, allowance: &Allowance) -> CpuTime {
        let proc = PathBuf::from(format!("/proc/{pid}"));
        CpuTime {
            schedstat: Kept::new(proc.join("schedstat"), allowance),
            pid,
            proc,
            threads,
        }
    }

    pub(super) fn look(&mut self) -> Found {
        let found = if self.threads {
            cpu_ns_of_threads(self.pid)
        } else {
            let mut bytes = [0; 64];
            (self.schedstat.read_at(&mut bytes, 0)).map(|length| scheduled_in(&bytes[..length]))
        };
        match found {
            Ok(Some(ns)) => Found::Ns(ns),
            // A process that has ended and is not waited for yet has all of its time, and an open file of it is empty.
            Ok(None) | Err(_) if !self.proc.exists() => Found::Gone,
            Ok(None) | Err(_) => Found::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_ourselves_and_of_a_process_that_ended() {
        let allowance = Allowance::of(10);
        for threads in [false, true] {
            let mut ours = CpuTime::of(std::process::id().cast_signed(), threads, &allowance);
            assert!(matches!(ours.look(), Found::Ns(_) | Found::Unknown));
        }
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let mut its = CpuTime::of(child.id().cast_signed(), false, &allowance);
        assert_ne!(its.look(), Found::Gone);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(its.look(), Found::Gone);
    }
}
