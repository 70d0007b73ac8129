//! A task that reports its jobs.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, fence};

use crate::clock::now_ns;
use crate::layout::{self, Counters, Identity, JobRecord, RING, Responses, Ring};

/// The parts of the page that belong to a task.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slot {
    pub(crate) counters: &'static Counters,
    pub(crate) identity: &'static Identity,
    pub(crate) ring: &'static Ring,
    pub(crate) responses: Option<&'static Responses>,
}

impl Slot {
    fn record(&self, job: u64) -> &'static JobRecord {
        &self.ring.0[(job % RING as u64) as usize]
    }
}

/// One task, whose jobs are reported by one thread. Every report is a handful of stores; none waits, fails or allocates.
///
/// [`Task::begin`] and [`Task::end`] read the clock. Programs that have already read it can pass the time instead.
#[derive(Debug)]
pub struct Task {
    slot: Option<Slot>,
    /// Number of the next job.
    next: u64,
    /// Whether job `next - 1` runs.
    runs: bool,
    /// Whether the page says which thread begins the jobs.
    has_thread: bool,
    release_ns: i64,
    deadline_ns: i64,
    late: u64,
    worst_response_ns: i64,
    heartbeats: u64,
}

impl Task {
    pub(crate) const fn detached() -> Task {
        Task {
            slot: None,
            next: 0,
            runs: false,
            has_thread: false,
            release_ns: 0,
            deadline_ns: 0,
            late: 0,
            worst_response_ns: 0,
            heartbeats: 0,
        }
    }

    /// Continues where the slot's last writer stopped; a job that it left unfinished is abandoned.
    pub(crate) fn attached(slot: Slot) -> Task {
        let counters = slot.counters;
        slot.identity.thread.store(0, Relaxed);
        let mut task = Task {
            slot: Some(slot),
            next: counters.begun.load(Acquire),
            runs: false,
            has_thread: false,
            release_ns: 0,
            deadline_ns: slot.identity.deadline_ns.load(Relaxed),
            late: counters.late.load(Relaxed),
            worst_response_ns: counters.worst_response_ns.load(Relaxed),
            heartbeats: counters.heartbeats.load(Relaxed),
        };
        if counters.ended.load(Relaxed) != task.next {
            let last = task.next.wrapping_sub(1);
            let record = slot.record(last);
            if record.number.load(Relaxed) == last && record.end_ns.load(Relaxed) != 0 {
                // It was killed between the end of the job and the count.
                counters.ended.store(task.next, Release);
            } else {
                task.abandon(&slot);
            }
        }
        task
    }

    /// Begins a job that is released now. A job that was begun but not ended is abandoned, and counted as such.
    #[inline]
    pub fn begin(&mut self) {
        let now_ns = now_ns();
        self.begin_at(now_ns, now_ns);
    }

    /// Begins a job that was released at `release_ns` (of [`now_ns`]), from which its deadline and response time count.
    #[inline]
    pub fn begin_released(&mut self, release_ns: i64) {
        self.begin_at(release_ns, now_ns());
    }

    /// Like [`Task::begin_released`], at an instant that the program has already read.
    #[inline]
    pub fn begin_at(&mut self, release_ns: i64, now_ns: i64) {
        let Some(slot) = self.slot else { return };
        if !self.has_thread {
            self.has_thread = true;
            slot.identity.thread.store(this_thread(), Relaxed);
        }
        if self.runs {
            self.abandon(&slot);
        }
        let job = self.next;
        let record = slot.record(job);
        // A reader that sees these stores also sees the count of the job before, and knows that the record is being reused.
        fence(Release);
        record.number.store(job, Relaxed);
        record.release_ns.store(release_ns, Relaxed);
        record.begin_ns.store(now_ns, Relaxed);
        record.end_ns.store(0, Relaxed);
        self.next = job.wrapping_add(1);
        slot.counters.begun.store(self.next, Release);
        self.release_ns = release_ns;
        self.runs = true;
    }

    /// Ends the job that was begun. Without one, does nothing.
    #[inline]
    pub fn end(&mut self) {
        self.end_at(now_ns());
    }

    /// Like [`Task::end`], at an instant that the program has already read.
    #[inline]
    pub fn end_at(&mut self, now_ns: i64) {
        let (Some(slot), true) = (self.slot, self.runs) else {
            return;
        };
        let record = slot.record(self.next.wrapping_sub(1));
        record.end_ns.store(now_ns, Relaxed);
        let response_ns = now_ns.saturating_sub(self.release_ns);
        if self.deadline_ns > 0 && response_ns > self.deadline_ns {
            self.late = self.late.wrapping_add(1);
            slot.counters.late.store(self.late, Relaxed);
        }
        if response_ns > self.worst_response_ns {
            self.worst_response_ns = response_ns;
            slot.counters.worst_response_ns.store(response_ns, Relaxed);
        }
        if let Some(Responses(buckets)) = slot.responses {
            // This thread alone writes them.
            let bucket = &buckets[layout::bucket_of(response_ns)];
            bucket.store(bucket.load(Relaxed).wrapping_add(1), Relaxed);
            let sum_ns = &slot.counters.responses_ns;
            let response_ns = response_ns.max(0).unsigned_abs();
            sum_ns.store(sum_ns.load(Relaxed).wrapping_add(response_ns), Relaxed);
        }
        slot.counters.ended.store(self.next, Release);
        self.runs = false;
    }

    /// Sends a heartbeat, outside of jobs or within a long one. Does not read the clock.
    #[inline]
    pub fn heartbeat(&mut self) {
        let Some(slot) = self.slot else { return };
        self.heartbeats = self.heartbeats.wrapping_add(1);
        slot.counters.heartbeats.store(self.heartbeats, Release);
    }

    /// Deadline relative to the release in ns, as the mission declares it.
    pub fn deadline_ns(&self) -> Option<i64> {
        Some(self.deadline_ns).filter(|ns| *ns > 0)
    }

    #[cold]
    fn abandon(&mut self, slot: &Slot) {
        let abandoned = slot.counters.abandoned.load(Relaxed);
        slot.counters
            .abandoned
            .store(abandoned.wrapping_add(1), Relaxed);
        slot.counters.ended.store(self.next, Release);
        self.runs = false;
    }
}

/// Another [`Task`] of the same name may be opened afterwards.
impl Drop for Task {
    fn drop(&mut self) {
        if let Some(slot) = self.slot {
            if self.has_thread {
                slot.identity.thread.store(0, Relaxed);
            }
            let writer = &slot.identity.writer;
            // Unless a program that took over has already put its own number there.
            let _ = writer.compare_exchange(this_program(), 0, Release, Relaxed);
        }
    }
}

/// The id of the calling thread, by the system call: `libc::gettid` is null in static binaries that are built with fat LTO.
#[cold]
fn this_thread() -> u32 {
    // SAFETY: no arguments, cannot fail.
    let id = unsafe { libc::syscall(libc::SYS_gettid) };
    u32::try_from(id).unwrap_or(0)
}

/// A number that this program has drawn for itself: unlike a pid, another one after `exec`, and across pid namespaces.
pub(crate) fn this_program() -> u32 {
    static DRAWN: AtomicU32 = AtomicU32::new(0);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let new = now_ns() as u32 | 1;
    match DRAWN.compare_exchange(0, new, Relaxed, Relaxed) {
        Ok(_) => new,
        Err(drawn) => drawn,
    }
}
