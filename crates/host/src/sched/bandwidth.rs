//! Bandwidth of SCHED_DEADLINE: the free part, the part that threads hold, and giving it back. The kernel admits
//! threads while the sum of their runtime / period stays within `kernel.sched_rt_runtime_us` /
//! `kernel.sched_rt_period_us` of each cpu (`__dl_overflow` in kernel/sched/deadline.c); newer kernels count a server
//! of 5 % of each cpu for ordinary work among them.
//!
//! Giving back wants care, as seen on Linux 6.18. A thread that ends or leaves the class is counted until its period is
//! over. When cpusets change within that time, as they do when a container's groups are removed on cgroup v1, the
//! kernel counts anew without it and subtracts it all the same afterwards; a sum below 0 is then taken for a huge one,
//! and next to nothing is admitted on the machine until cpusets change again. And a thread that sleeps while somebody
//! else takes it out of the class is counted for ever. So threads are first given a runtime that is no share of its
//! period in the kernel's arithmetic, which leaves nothing to be counted: [`release`], [`leave`]. Others do that to a thread, and not it
//! to itself ([`Asker`]): a tick that came in between would have it stand still for hours. Where the sum is lost
//! all the same, by threads of others, the kernel is made to count anew: [`recount`].

use std::fs;
use std::io;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::{Class, SchedError, get_class, set_affinity, set_class, set_class_reset_on_fork};
use crate::file::there;
use crate::process;
use crate::root::Root;

/// The least runtime that the kernel takes, ns (`1 << DL_SCALE`).
pub const LEAST_RUNTIME_NS: u64 = 1_024;

/// How long [`set_class_when_free`] should be given: threads that have ended hold their bandwidth until their period
/// is over, which is 4.2 s at most unless it was changed.
pub const GIVEN_BACK: Duration = Duration::from_secs(5);

/// How often a waiting caller checks whether the kernel has lost count.
const BETWEEN_LOOKS: Duration = Duration::from_millis(250);

/// A share that a kernel that has lost count refuses: a thousandth of a cpu, ns.
const LITTLE_NS: u64 = 100_000;
const LITTLE_PERIOD_NS: u64 = 100_000_000;

const BETWEEN_TRIES: Duration = Duration::from_millis(20);
const SECOND_US: u64 = 1_000_000;
/// Period of the threads that ask, ns.
const ASKING_NS: u64 = 10_000_000;
/// A period of which the least runtime is no share: it is counted in 2^-20, rounded down.
const NO_SHARE_NS: u64 = 2_000_000_000;
/// How closely they ask, ns of that period: 10 us in a second.
const STEP_NS: u64 = 100;

/// As [`set_class`]; a refusal because other deadline threads hold the bandwidth (EBUSY) is tried again until
/// `patience` is over.
///
/// # Errors
/// As [`set_class`], [`SchedError::OverBandwidth`] only after that time.
pub fn set_class_when_free(pid: i32, class: &Class, patience: Duration) -> Result<(), SchedError> {
    when_free(patience, || set_class(pid, class))
}

/// As [`set_class_when_free`], but children start as OTHER.
///
/// # Errors
/// As [`set_class_when_free`].
pub fn set_class_reset_on_fork_when_free(
    pid: i32,
    class: &Class,
    patience: Duration,
) -> Result<(), SchedError> {
    when_free(patience, || set_class_reset_on_fork(pid, class))
}

fn when_free(
    patience: Duration,
    mut set: impl FnMut() -> Result<(), SchedError>,
) -> Result<(), SchedError> {
    let until = Instant::now() + patience;
    let mut look_at = Instant::now() + BETWEEN_LOOKS;
    loop {
        match set() {
            Err(SchedError::OverBandwidth { .. }) if Instant::now() < until => {
                if Instant::now() >= look_at {
                    if count_is_lost() {
                        // If that is not allowed, the refusal stays.
                        let _ = recount();
                    }
                    look_at = Instant::now() + BETWEEN_LOOKS;
                }
                std::thread::sleep(BETWEEN_TRIES);
            }
            result => return result,
        }
    }
}

/// Whether the kernel refuses next to nothing though threads hold less than half of its limit. Threads that have ended
/// and are counted still do not look like this unless they fill the other half to a thousandth of a cpu.
fn count_is_lost() -> bool {
    let Ok(cpus) = crate::cpus::online() else {
        return false;
    };
    let limit = bandwidth_limit_us(&Root::live(), cpus.len());
    if limit.is_none_or(|limit| bandwidth_held_us() >= limit / 2) {
        return false;
    }
    let asked = Asker::new(move || {
        set_affinity(0, &cpus)?;
        set_class(0, &implicit(LITTLE_NS, LITTLE_PERIOD_NS))
    });
    matches!(asked, Some((_, Err(SchedError::OverBandwidth { .. }))))
}

/// Makes the kernel count the bandwidth of deadline threads anew, by a cpuset that comes and goes (cgroup v1, where each
/// change does so; on version 2 only partitions do). Threads that have ended and are counted still are subtracted once
/// too often by it, so it is for a count that is lost already.
///
/// # Errors
/// Where there is no cpuset hierarchy of version 1, or it may not be changed.
pub fn recount() -> io::Result<()> {
    let missing = || io::Error::other("no cpusets of cgroup version 1");
    let cgroups = crate::cgroup::detect().map_err(|_| missing())?;
    let top = &cgroups.v1_mount("cpuset").ok_or_else(missing)?.point;
    // Of two at once, or one that was killed in between, either's change will do.
    let group = top.join("timecell-recount");
    there(fs::create_dir(&group))?;
    for file in ["cpuset.mems", "cpuset.cpus"] {
        let all = crate::file::text(top.join(file))?;
        fs::write(group.join(file), all.trim())?;
    }
    fs::remove_dir(&group)
}

/// Takes every deadline thread of process `pid` out of its class, its bandwidth free at once; it is in class OTHER then.
///
/// # Errors
/// The kernel's error, except that a thread has ended.
pub fn release(pid: i32) -> Result<(), SchedError> {
    each_thread(pid, |thread, class| match class {
        Class::Deadline { .. } => leave(thread),
        _ => Ok(()),
    })
}

/// Takes every real-time thread of process `pid` out of its class; it is in class OTHER then.
///
/// # Errors
/// The kernel's error, except that a thread has ended.
pub fn make_ordinary(pid: i32) -> Result<(), SchedError> {
    each_thread(pid, |thread, class| match class {
        Class::Deadline { .. } => leave(thread),
        class if class.is_real_time() => set_class(thread, &Class::Other),
        _ => Ok(()),
    })
}

/// Does this with each thread of a process that has not ended; the first error.
fn each_thread(
    pid: i32,
    act: impl Fn(i32, Class) -> Result<(), SchedError>,
) -> Result<(), SchedError> {
    let mut first = Ok(());
    for thread in process::threads(pid) {
        let done = get_class(thread).and_then(|class| act(thread, class));
        if !matches!(done, Err(SchedError::NoSuchProcess { .. })) {
            first = first.and(done);
        }
    }
    first
}

/// A thread that asks the kernel for deadline classes, and keeps the granted one until this is dropped. It is taken out of the class
/// from outside then.
#[derive(Debug)]
pub struct Asker {
    thread: i32,
    /// It ends when this is dropped.
    stay: Option<mpsc::Sender<()>>,
    ends: Option<JoinHandle<()>>,
}

impl Asker {
    /// Has a thread ask so; with the answer. `None`: there is no such thread, or it ended before it said so.
    pub fn new<T: Send + 'static>(ask: impl FnOnce() -> T + Send + 'static) -> Option<(Asker, T)> {
        let (say, said) = mpsc::channel();
        let (stay, gone) = mpsc::channel::<()>();
        let asks = move || {
            let _ = say.send((crate::process::thread_id(), ask()));
            // Ends when the asker has let go of its end.
            let _ = gone.recv();
        };
        let ends = std::thread::Builder::new().spawn(asks).ok()?;
        let (thread, asked) = said.recv().ok()?;
        let asker = Asker {
            thread,
            stay: Some(stay),
            ends: Some(ends),
        };
        Some((asker, asked))
    }
}

impl Drop for Asker {
    fn drop(&mut self) {
        if let Ok(Class::Deadline { .. }) = get_class(self.thread) {
            // Where it is refused, the bandwidth is given back with the thread's period.
            let _ = leave(self.thread);
        }
        self.stay = None;
        let _ = self.ends.take().map(JoinHandle::join);
    }
}

/// Takes one deadline thread out of its class, its bandwidth free at once. Not the calling one: it has the least runtime every two
/// seconds for a moment, and a tick that comes just then has it pay that back, a whole tick by thousands of periods. Of another thread
/// the caller ends that moment, in any case.
///
/// # Errors
/// The kernel's error.
pub fn leave(thread: i32) -> Result<(), SchedError> {
    let (least, longest) = period_bounds_us(&Root::live());
    let period_ns = NO_SHARE_NS.clamp(least * 1_000, longest.max(least).saturating_mul(1_000));
    // Refused where the kernel has lost count already, which leaving does not make worse.
    let _ = set_class(thread, &implicit(LEAST_RUNTIME_NS, period_ns));
    set_class(thread, &Class::Other)
}

/// Shortest and longest period that the kernel takes, us.
pub fn period_bounds_us(root: &Root) -> (u64, u64) {
    let bound = |name: &str, usual: u64| {
        let read = root.read_number(format!("/proc/sys/kernel/sched_deadline_period_{name}_us"));
        read.unwrap_or(usual)
    };
    // The kernel's own values; before Linux 5.10 there was no longest one.
    (bound("min", 100), bound("max", 1 << 22))
}

/// The limit of all deadline threads on `cpus` cpus together, us of every second; `None` where nothing is set, or -1,
/// which takes every thread.
pub fn bandwidth_limit_us(root: &Root, cpus: usize) -> Option<u64> {
    let runtime: i64 = root
        .read_number("/proc/sys/kernel/sched_rt_runtime_us")
        .ok()?;
    let period: u64 = root
        .read_number("/proc/sys/kernel/sched_rt_period_us")
        .ok()?;
    let runtime = u64::try_from(runtime).ok()?;
    Some(per_second(runtime, period)? * cpus as u64)
}

/// The bandwidth of all deadline threads of this machine together, us of every second. Looks at every thread.
pub fn bandwidth_held_us() -> u64 {
    let threads = process::all().into_iter().flat_map(process::threads);
    let held = |thread: i32| match get_class(thread).ok()? {
        Class::Deadline {
            runtime_ns,
            period_ns,
            ..
        } => {
            let name = process::name(thread)?;
            // The governor's threads bear a class that the kernel does not count.
            (!name.starts_with("sugov:")).then(|| per_second(runtime_ns, period_ns))?
        }
        _ => None,
    };
    threads.filter_map(held).sum()
}

/// The bandwidth that the kernel would still admit on `cpus` in deadline threads, us of every second, all cpus
/// together; rounded down. Threads of this process ask for it, hold it for about a millisecond and give it back; `cpus`
/// must be the whole root domain.
///
/// # Errors
/// The kernel's errors but "too much".
pub fn free_bandwidth_us(cpus: &[u32]) -> Result<u64, SchedError> {
    let (least, longest) = period_bounds_us(&Root::live());
    let ns = |us: u64| us.saturating_mul(1_000);
    let period_ns = ASKING_NS.clamp(ns(least), ns(longest).max(ns(least)));
    let mut all = 0;
    let mut askers = Vec::new();
    // No thread takes more than one cpu.
    for _ in cpus {
        let own = cpus.to_vec();
        let Some((asker, taken)) = Asker::new(move || take_the_most(&own, period_ns)) else {
            break;
        };
        askers.push(asker);
        let taken_ns = taken?;
        all += per_second(taken_ns, period_ns).unwrap_or(0);
        if taken_ns < period_ns {
            break;
        }
    }
    Ok(all)
}

/// Gives the calling thread as much as there is; returns its runtime, ns.
fn take_the_most(cpus: &[u32], period_ns: u64) -> Result<u64, SchedError> {
    set_affinity(0, cpus)?;
    let admits = |runtime_ns: u64| match set_class(0, &implicit(runtime_ns, period_ns)) {
        Ok(()) => Ok(true),
        Err(SchedError::OverBandwidth { .. }) => Ok(false),
        Err(other) => Err(other),
    };
    if admits(period_ns)? {
        return Ok(period_ns);
    }
    let (mut low, mut high) = (0, period_ns);
    while high - low > STEP_NS && high > LEAST_RUNTIME_NS {
        let middle = low.midpoint(high).max(LEAST_RUNTIME_NS);
        if admits(middle)? {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok(low)
}

fn implicit(runtime_ns: u64, period_ns: u64) -> Class {
    Class::Deadline {
        runtime_ns,
        deadline_ns: period_ns,
        period_ns,
    }
}

/// Runtime in every second, us, rounded down; `None` for no period.
fn per_second(runtime: u64, period: u64) -> Option<u64> {
    let us = u128::from(runtime) * u128::from(SECOND_US) / u128::from(period).max(1);
    (period > 0).then(|| u64::try_from(us).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    #[test]
    fn the_limit_is_of_every_cpu_and_may_be_none() {
        let tree = |runtime: &str| {
            Tree::new()
                .file("/proc/sys/kernel/sched_rt_runtime_us", runtime)
                .file("/proc/sys/kernel/sched_rt_period_us", "500000\n")
        };
        let limit = |runtime: &str| bandwidth_limit_us(&tree(runtime).root(), 3);
        assert_eq!(limit("475000\n"), Some(2_850_000));
        assert_eq!(limit("-1\n"), None);
        assert_eq!(bandwidth_limit_us(&Tree::new().root(), 3), None);
    }

    #[test]
    fn bounds_of_the_period_are_the_kernels_where_nothing_is_said() {
        assert_eq!(period_bounds_us(&Tree::new().root()), (100, 4_194_304));
        let tree = Tree::new().file("/proc/sys/kernel/sched_deadline_period_max_us", "50000\n");
        assert_eq!(period_bounds_us(&tree.root()), (100, 50_000));
    }

    #[test]
    fn runtimes_of_any_size_are_scaled_to_a_second() {
        assert_eq!(per_second(3_000_000, 10_000_000), Some(300_000));
        assert_eq!(per_second(u64::MAX, u64::MAX), Some(1_000_000));
        assert_eq!(per_second(1, 0), None);
    }

    /// A delay of any length between the two system calls of leaving: a thread that does both itself goes on no more.
    #[test]
    fn whoever_stands_still_in_between_goes_on_when_it_is_taken_out_from_outside() {
        let (say, said) = mpsc::channel();
        let (end, ended) = mpsc::channel();
        let asks = std::thread::spawn(move || {
            let _ = say.send(crate::process::thread_id());
            let cpus = crate::cpus::online().unwrap_or_default();
            let class = implicit(LEAST_RUNTIME_NS, NO_SHARE_NS);
            let asked = set_affinity(0, &cpus).and_then(|()| set_class(0, &class));
            let until = Instant::now() + Duration::from_millis(20);
            while asked.is_ok() && Instant::now() < until {}
            let _ = end.send(asked);
        });
        let thread = said.recv().unwrap();
        match ended.recv_timeout(Duration::from_millis(300)) {
            // Without the right to such a thread, none stands still.
            Ok(Err(_)) => {}
            Ok(Ok(())) => panic!("it ran 20 ms of a runtime of 1 us"),
            Err(_) => {
                leave(thread).unwrap();
                let asked = ended.recv_timeout(Duration::from_secs(10));
                assert!(matches!(asked, Ok(Ok(()))), "{asked:?}");
            }
        }
        asks.join().unwrap();
    }

    #[test]
    fn who_asks_keeps_its_class_until_it_is_let_go() {
        let (asker, asked) = Asker::new(|| {
            let cpus = crate::cpus::online().unwrap_or_default();
            set_affinity(0, &cpus)?;
            set_class(0, &implicit(LITTLE_NS, LITTLE_PERIOD_NS))
        })
        .unwrap();
        let thread = asker.thread;
        let is_deadline = matches!(get_class(thread), Ok(Class::Deadline { .. }));
        assert_eq!(is_deadline, asked.is_ok());
        drop(asker);
        assert!(get_class(thread).is_err(), "it has ended");
    }
}
