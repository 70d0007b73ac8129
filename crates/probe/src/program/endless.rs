//! A program that neither ends nor reports its jobs: it is started, runs for a while and is stopped.
//!
//! It may never give up its cpu. The thread that stops it starts it from another cpu, if there is one, and only the program is
//! pinned to the cell's.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};

use host::sched::{self, Class};
use record::samples::layout::Sample;

use super::ENDING_NS;
use crate::control::Stage;
use crate::measure::{Recorder, Tally};
use crate::{arm, clock};

/// A program, ready to be started.
pub(crate) struct Endless {
    command: Command,
}

/// Dropping this ends it.
struct Running(Child);

impl Endless {
    /// The program of these words on this cpu, with this priority.
    pub fn new(words: &[String], cpu: u32, fifo: Option<u8>) -> Endless {
        let (path, arguments) = words.split_first().map_or(("", words), |(p, a)| (p, a));
        let mut command = Command::new(path);
        command
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .env_remove("TIMECELL_PAGE")
            .process_group(0);
        let own = move || {
            arm::pin(cpu).map_err(|error| io::Error::from_raw_os_error(error.errno()))?;
            // Its starter may have given up the class. Without the right to take it back it stays as it is.
            if let Some(priority) = fifo {
                let _ = arm::take_class(&Class::Fifo { priority });
            }
            Ok(())
        };
        // SAFETY: the process has one thread, so that no lock is held behind the fork.
        unsafe { command.pre_exec(own) };
        Endless { command }
    }

    /// Starts it, lets it run for so long, and ends it: a sample from which the time of running is left out.
    pub fn live<R: Recorder>(&mut self, run_ns: i64, sheet: &mut R) -> Result<Tally, (Stage, i32)> {
        make_way();
        let asked_ns = clock::now();
        let child = self.command.spawn();
        let started_ns = clock::now();
        let errno = |error: io::Error| (Stage::Start, error.raw_os_error().unwrap_or(libc::EIO));
        let mut running = Running(child.map_err(errno)?);
        let pid = running.0.id().cast_signed();
        let ending = pidfd(pid).map_err(errno)?;
        let cpu_before_ns = clock::process_cpu_time_of(pid);
        if has_ended(&ending, run_ns) {
            let status = running.0.wait().map_err(errno)?;
            return Err((Stage::Ended, status.into_raw()));
        }
        let told_ns = clock::now();
        let ran_ns = (told_ns - started_ns).max(1);
        let used_ns = clock::process_cpu_time_of(pid) - cpu_before_ns;
        // Of a longer run, if the end came late, that part.
        let cpu_ns = (i128::from(used_ns) * i128::from(run_ns) / i128::from(ran_ns)) as i64;
        running.signal(libc::SIGTERM);
        if !has_ended(&ending, ENDING_NS) {
            running.signal(libc::SIGKILL);
        }
        running.0.wait().map_err(errno)?;
        let exit_ns = clock::now() - told_ns;
        sheet.put(Sample {
            index: 0,
            skipped: 0,
            release_ns: asked_ns,
            start_ns: started_ns,
            end_ns: started_ns + exit_ns,
        });
        Ok(Tally {
            executed: 1,
            program_cpu_ns: cpu_ns,
            ..Tally::default()
        })
    }
}

/// Leaves the cpu to the program that is to be started; the class too, where there is no other cpu: the kernel lets ordinary work
/// have a part of it.
fn make_way() {
    // A cell has no file that tells which there are. The kernel leaves out those that there are not.
    let own = arm::current_cpu();
    let others: Vec<u32> = (0..=host::cpus::HIGHEST_CPU)
        .filter(|cpu| *cpu != own)
        .collect();
    if sched::set_affinity(0, &others).is_err() {
        let _ = arm::take_class(&Class::Other);
    }
}

fn pidfd(pid: libc::pid_t) -> io::Result<OwnedFd> {
    // SAFETY: no memory is involved; the answer is checked.
    let answer = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    match i32::try_from(answer) {
        // SAFETY: the descriptor is new and nobody else's.
        Ok(descriptor) if descriptor >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(descriptor) }),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Waits until the process has ended, for so long at most.
fn has_ended(process: &OwnedFd, patience_ns: i64) -> bool {
    let until = clock::now().saturating_add(patience_ns);
    loop {
        let left = (until - clock::now()).max(0);
        let left = libc::timespec {
            tv_sec: left / 1_000_000_000,
            tv_nsec: left % 1_000_000_000,
        };
        let mut asked = libc::pollfd {
            fd: process.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one entry and a timespec, valid for the call; no signal mask.
        let ready = unsafe { libc::ppoll(&raw mut asked, 1, &raw const left, std::ptr::null()) };
        match ready {
            1 => return true,
            0 => return false,
            _ if clock::now() >= until => return false,
            _ => {}
        }
    }
}

impl Running {
    /// Sends a signal to its process group.
    fn signal(&self, signal: libc::c_int) {
        // SAFETY: no memory is involved. The group is that of a child that was not waited for, and nobody else's.
        unsafe { libc::kill(-self.0.id().cast_signed(), signal) };
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Ok(None) = self.0.try_wait() {
            self.signal(libc::SIGKILL);
            let _ = self.0.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::samples::layout::Header;

    struct One(Option<Sample>);

    impl Recorder for One {
        fn capacity(&self) -> usize {
            1
        }
        fn read_header(&self) -> Header {
            Header::new()
        }
        fn write_header(&mut self, _: &Header) {}
        fn put(&mut self, sample: Sample) {
            self.0 = Some(sample);
        }
        fn restart(&mut self) {}
        fn lost(&self) -> u32 {
            0
        }
    }

    /// In a thread of its own, which moves to another cpu.
    fn lived(script: &'static str) -> (Result<Tally, (Stage, i32)>, Option<Sample>) {
        let live = move || {
            let words = ["/bin/sh", "-c", script].map(str::to_owned);
            let cpu = arm::current_cpu();
            let mut kept = One(None);
            let tally = Endless::new(&words, cpu, None).live(100_000_000, &mut kept);
            (tally, kept.0)
        };
        std::thread::spawn(live).join().unwrap()
    }

    #[test]
    fn it_is_started_and_ended_and_its_cpu_time_counts() {
        let (tally, sample) = lived("while :; do :; done");
        let (tally, sample) = (tally.map_err(|_| ()).unwrap(), sample.unwrap());
        assert!(tally.program_cpu_ns > 1_000_000, "{}", tally.program_cpu_ns);
        assert!(sample.start_ns > sample.release_ns);
        // Not the time in which it ran.
        assert!((1..ENDING_NS).contains(&(sample.end_ns - sample.start_ns)));
    }

    #[test]
    fn one_that_does_not_mind_is_killed_with_what_it_started() {
        let (tally, sample) = lived("trap '' TERM; sleep 61 & while :; do sleep 1; done");
        assert!(tally.is_ok());
        let sample = sample.unwrap();
        assert!(sample.end_ns - sample.start_ns >= ENDING_NS);
    }

    #[test]
    fn one_that_ends_by_itself_is_told() {
        let (tally, _) = lived("exit 3");
        let (stage, status) = tally.map(|_| ()).unwrap_err();
        assert_eq!(stage, Stage::Ended);
        assert_eq!(libc::WEXITSTATUS(status), 3);
    }
}
