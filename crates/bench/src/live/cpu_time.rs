//! Cpu time of a cell's process. `schedstat` is a copy of the scheduler's sum in ns, without a lock; it is as old as the
//! last tick or switch.

use std::fs;
use std::io;
use std::path::PathBuf;

use super::files::{Allowance, Kept};

/// Where the cpu time of one process is read.
#[derive(Debug)]
pub(super) struct CpuTime {
    proc: PathBuf,
    /// Of a process with one thread.
    schedstat: Kept,
    threads: bool,
}

/// What was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// Cpu time so far, ns.
    Ns(u64),
    /// The process is there, its time is not told.
    Unknown,
    /// There is no such process.
    Gone,
}

impl CpuTime {
    /// Of process `pid`, whose threads are all counted where it has several.
    pub(super) fn of(pid: i32, threads: bool, allowance: &Allowance) -> CpuTime {
        let proc = PathBuf::from(format!("/proc/{pid}"));
        CpuTime {
            schedstat: Kept::new(proc.join("schedstat"), allowance),
            proc,
            threads,
        }
    }

    pub(super) fn look(&mut self) -> Found {
        let found = if self.threads {
            self.of_threads()
        } else {
            let mut bytes = [0; 64];
            (self.schedstat.read_at(&mut bytes, 0)).map(|length| first_number(&bytes[..length]))
        };
        match found {
            Ok(Some(ns)) => Found::Ns(ns),
            // A process that has ended and is not waited for yet has all of its time, and an open file of it is empty.
            Ok(None) | Err(_) if !self.proc.exists() => Found::Gone,
            Ok(None) | Err(_) => Found::Unknown,
        }
    }

    fn of_threads(&self) -> io::Result<Option<u64>> {
        let mut sum = None;
        for thread in fs::read_dir(self.proc.join("task"))?.flatten() {
            let text = fs::read(thread.path().join("schedstat")).unwrap_or_default();
            if let Some(ns) = first_number(&text) {
                sum = Some(sum.unwrap_or(0) + ns);
            }
        }
        Ok(sum)
    }
}

fn first_number(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    text.split_whitespace().next()?.parse().ok()
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

    #[test]
    fn the_first_number_is_the_time() {
        assert_eq!(first_number(b"1234 5 6\n"), Some(1234));
        assert_eq!(first_number(b""), None);
    }
}
