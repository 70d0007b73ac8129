//! Our probe as a plain process, and the cpu time that it uses.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use host::process::scheduled_ns;
use host::sched;
use model::Work;
use probe::control::State;
use probe::{Barrier, BarrierError, ProbeArgs, clock};
use record::samples::{self, Samples};

use crate::BenchError;
use crate::error::failed;
use crate::sampler::{Sampler, Subject};

/// A child's peak memory, and its end.
pub(super) struct Usage {
    /// Largest resident set, bytes.
    pub peak_bytes: u64,
    /// Whether it exited with 0.
    pub ok: bool,
}

/// Waits for `child` and reads its usage.
pub(super) fn reap(child: &Child) -> Usage {
    let mut status = 0;
    // SAFETY: rusage is plain data; the pid is our own child's, which nobody else waits for.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::wait4(child.id().cast_signed(), &raw mut status, 0, &raw mut usage);
        usage
    };
    Usage {
        peak_bytes: usage.ru_maxrss.unsigned_abs() * 1024,
        ok: libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0,
    }
}

/// Cpu time per activation of the thread of `pid` that is in a real-time class, ns, as the scheduler counts it
/// (schedstat): sampled twice during the loop, so that neither start nor end of the program counts.
///
/// Call it right after the loop began; it takes `span_ns`. `None` if the process ended before, has no such thread, or the kernel does not
/// report it.
pub(super) fn cost_per_activation(pid: u32, period_ns: i64, span_ns: i64) -> Option<i64> {
    clock::sleep_for(span_ns / 10);
    let threads = host::process::threads(pid.cast_signed()).into_iter();
    let thread = threads
        .into_iter()
        .find(|tid| sched::get_class(*tid).is_ok_and(|class| class.is_real_time()))?;
    let read = || Some((scheduled_ns(thread).ok().flatten()?, clock::now()));
    let (cpu_before, before) = read()?;
    clock::sleep_for(span_ns * 8 / 10);
    let (cpu_after, after) = read()?;
    let activations = (after - before) / period_ns;
    (activations > 0).then(|| (cpu_after - cpu_before) / activations)
}

/// A probe that runs as a child of this process.
#[derive(Debug, Clone, Copy)]
pub(super) struct Probe<'a> {
    /// Where its files are made.
    pub dir: &'a Path,
    /// Cpu that it is pinned to.
    pub cpu: u32,
    /// SCHED_FIFO priority; `None`: class OTHER.
    pub fifo: Option<u8>,
    /// A job's work.
    pub work: Work,
    /// Time between releases, ns.
    pub period_ns: i64,
    /// Activations.
    pub jobs: u32,
    /// Whether counters of the machine are read beside it meanwhile, as an experiment may ask for.
    pub counters: bool,
}

impl Probe<'_> {
    /// Runs it to its end; returns its samples and, of one in a real-time class, its cpu time per activation in ns.
    pub(super) fn run(&self) -> Result<(Samples, Option<i64>), BenchError> {
        let dir = self.dir;
        let (control, file) = (dir.join("control"), dir.join("probe.samples"));
        let _ = std::fs::remove_file(&control);
        let _ = std::fs::remove_file(&file);
        let barrier =
            Barrier::create(&control, 1).map_err(failed(&control, "make the control page"))?;
        probe::prepare_samples(&file, self.jobs.into())
            .map_err(failed(&file, "make the samples file"))?;
        let args = ProbeArgs {
            control: control.clone(),
            slot: 0,
            samples: Some(file.clone()),
            work: self.work,
            period_ns: self.period_ns,
            jobs: self.jobs,
            fifo: self.fifo,
            cpu: self.cpu,
            ..ProbeArgs::default()
        };
        let child = Command::new("/proc/self/exe")
            .args(["probe", "run"])
            .args(args.to_words())
            .stdin(Stdio::null())
            .spawn()
            .map_err(failed(Path::new("/proc/self/exe"), "start the probe"))?;
        let mut cost = None;
        let span_ns = self.period_ns * i64::from(self.jobs);
        let deadline = clock::now() + span_ns * 3 + 30_000_000_000;
        let waited = (|| {
            barrier.wait_all(State::Present, "present", deadline, || false)?;
            barrier.permit(0);
            barrier.wait_all(State::Armed, "armed", deadline, || false)?;
            if barrier.failure(0).is_none() {
                let go_ns = barrier.open(Barrier::lead_ns(1));
                let probe = Subject {
                    id: "probe".to_owned(),
                    pid: Some(child.id().cast_signed()),
                    cpu: self.cpu,
                };
                let _counters = self.counters.then(|| Sampler::start(vec![probe], span_ns));
                clock::sleep_until(go_ns);
                cost = cost_per_activation(child.id(), self.period_ns, span_ns);
                barrier.wait_all(State::Done, "done", deadline, || false)?;
            }
            Ok(())
        })();
        barrier.abort();
        if waited.is_err() {
            // SAFETY: our own child, not reaped yet.
            unsafe { libc::kill(child.id().cast_signed(), libc::SIGKILL) };
        }
        reap(&child);
        if let Some(why) = barrier.failure(0) {
            return Err(BenchError::Failed(format!("the probe {why}")));
        }
        waited.map_err(|error: BarrierError| BenchError::Failed(error.to_string()))?;
        Ok((samples::read(&file)?, cost))
    }
}
