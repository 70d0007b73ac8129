//! Our probe as a plain process, with what it cost the cpu.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use model::{Pacing, Work};
use probe::control::State;
use probe::{Barrier, BarrierKind, ClassBy, ProbeArgs, clock};
use record::samples::{self, Samples};

use crate::BenchError;
use crate::place::failed;

/// Cpu time and end of a child.
pub(super) struct Usage {
    /// User and system time of the whole process, ns.
    pub cpu_ns: i64,
    /// Largest resident set, bytes.
    pub peak_bytes: u64,
    /// Whether it exited with 0.
    pub ok: bool,
}

/// Waits for `child` and reads what it used.
pub(super) fn reap(child: &Child) -> Usage {
    let mut status = 0;
    // SAFETY: rusage is plain data; the pid is our own child's, which nobody else waits for.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::wait4(child.id().cast_signed(), &raw mut status, 0, &raw mut usage);
        usage
    };
    let ns = |time: libc::timeval| time.tv_sec * 1_000_000_000 + time.tv_usec * 1_000;
    Usage {
        cpu_ns: ns(usage.ru_utime) + ns(usage.ru_stime),
        peak_bytes: usage.ru_maxrss.unsigned_abs() * 1024,
        ok: libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0,
    }
}

/// Runs `jobs` activations of the timer workload in a child of our own and returns its samples and cost.
pub(super) fn timer(
    dir: &Path,
    cpu: u32,
    priority: u8,
    period_ns: i64,
    jobs: u32,
) -> Result<(Samples, Usage), BenchError> {
    let (control, file) = (dir.join("control"), dir.join("timer.samples"));
    let _ = std::fs::remove_file(&control);
    let _ = std::fs::remove_file(&file);
    let barrier =
        Barrier::create(&control, 1).map_err(failed(&control, "make the control page"))?;
    probe::prepare_samples(&file, jobs.into()).map_err(failed(&file, "make the samples file"))?;
    let args = ProbeArgs {
        control: control.clone(),
        slot: 0,
        samples: Some(file.clone()),
        work: Work::Timer,
        pacing: Pacing::Periodic,
        period_ns,
        jobs,
        fifo: Some(priority),
        cpu,
        class_by: ClassBy::Cell,
        barrier: BarrierKind::Futex,
    };
    let child = Command::new("/proc/self/exe")
        .args(["probe", "run"])
        .args(args.to_words())
        .stdin(Stdio::null())
        .spawn()
        .map_err(failed(Path::new("/proc/self/exe"), "start the probe"))?;
    let deadline = clock::now() + period_ns * i64::from(jobs) * 3 + 30_000_000_000;
    let waited = (|| {
        barrier.wait_all(State::Present, "present", deadline, || false)?;
        barrier.permit(0);
        barrier.wait_all(State::Armed, "armed", deadline, || false)?;
        if barrier.failure(0).is_none() {
            barrier.open(Barrier::lead_ns(1));
        }
        barrier.wait_all(State::Done, "done", deadline, || false)
    })();
    barrier.abort();
    if waited.is_err() {
        // SAFETY: our own child, not reaped yet.
        unsafe { libc::kill(child.id().cast_signed(), libc::SIGKILL) };
    }
    let usage = reap(&child);
    if let Some(why) = barrier.failure(0) {
        return Err(BenchError::Failed(format!("the probe {why}")));
    }
    waited.map_err(|error| BenchError::Failed(error.to_string()))?;
    Ok((samples::read(&file)?, usage))
}
