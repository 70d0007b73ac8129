//! The supervisor's own reservation: its threads are of class FIFO until they have used the budget of this period up, and of
//! class OTHER from then until the period is over. So it reacts beside cells that use all that they were granted, takes no
//! more from them than admission has counted, and is never slower than a process without a reservation.
//!
//! The budget is held here and not by the kernel, which looks at budgets only at a tick: every cell would have to count with a tick
//! more, 4 ms where there are 250 of them a second. A thread of the highest priority sleeps until the budget can be used up, reads
//! the cpu time of the threads, and takes them out of the class. It counts what it takes itself. Threads and processes that any of
//! them makes begin in class OTHER (`SCHED_RESET_ON_FORK`).

use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use host::sched::{self, Class};
use model::mission::Supervisor;
use timecell_client::now_ns;

/// Priority of the thread that watches the budget.
const WATCHER: u8 = Supervisor::PRIORITY + 1;
/// What may pass until the threads are out of their class, ns, which the budget is lessened by.
const ALLOWANCE_NS: i64 = 100_000;
/// Shortest sleep between two looks, ns.
const SHORTEST_NS: i64 = 20_000;
/// How long one step may be of the class, ns: an engine that hangs in it would be watched for minutes.
const LONGEST_STEP_NS: i64 = 500_000_000;

/// The reservation, shared by all threads that draw on it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reserve(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    state: Mutex<State>,
    changed: Condvar,
    /// Whether there is a budget that is used up: threads are of class OTHER.
    exhausted: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    /// Budget and period, ns; `None`: nothing is reserved.
    reservation: Option<(i64, i64)>,
    /// When this period began, CLOCK_MONOTONIC ns.
    since_ns: i64,
    /// What threads have used in this period that sleep or are gone, ns.
    used_ns: i64,
    members: Vec<Known>,
    watcher: Option<Known>,
    over: bool,
}

/// A thread that draws on it.
#[derive(Debug, Clone, Copy)]
struct Known {
    tid: i32,
    /// Whether it does something; one that sleeps uses nothing and keeps its class.
    runs: bool,
    /// Its cpu time when its turn or the period began, ns.
    from_ns: i64,
    /// Until when it is of the class, CLOCK_MONOTONIC ns.
    until_ns: i64,
}

impl Known {
    fn used_ns(&self) -> i64 {
        match self.runs {
            true => (cpu_ns(self.tid) - self.from_ns).max(0),
            false => 0,
        }
    }
}

impl Reserve {
    /// Reserves so much: budget and period, ns; `None`: nothing any more.
    ///
    /// # Errors
    /// Why the threads cannot have the class, a clause.
    pub(crate) fn set(&self, reservation: Option<(u64, u64)>) -> Result<(), String> {
        let ns = |time: u64| i64::try_from(time).unwrap_or(i64::MAX);
        let new = reservation.map(|(budget, period)| {
            let budget = ns(budget);
            ((budget - ALLOWANCE_NS).max(budget / 2), ns(period))
        });
        if new.is_some() {
            can_be_had()?;
        }
        let mut state = self.lock();
        if state.reservation == new {
            return Ok(());
        }
        state.reservation = new;
        match new {
            Some(_) => self.refill(&mut state, now_ns()),
            None => self.0.demote(&state),
        }
        let watched = state.watcher.is_some();
        drop(state);
        if new.is_some() && !watched {
            let inner = Arc::clone(&self.0);
            let thread = std::thread::Builder::new().name("timecell-budget".to_owned());
            if let Err(error) = thread.spawn(move || inner.watch()) {
                let mut state = self.lock();
                state.reservation = None;
                self.0.demote(&state);
                return Err(format!("there is no thread to watch its budget: {error}"));
            }
        }
        self.0.changed.notify_one();
        Ok(())
    }

    /// Whether anything is reserved.
    pub(crate) fn is_held(&self) -> bool {
        self.lock().reservation.is_some()
    }

    /// The calling thread draws on it from now on, until the answer is dropped.
    pub(crate) fn join(&self) -> Member {
        self.add(i64::MAX)
    }

    /// The same for one step, whose first half a second counts.
    pub(crate) fn join_for_a_step(&self) -> Member {
        self.add(now_ns().saturating_add(LONGEST_STEP_NS))
    }

    fn add(&self, until_ns: i64) -> Member {
        // SAFETY: it cannot fail.
        let tid = unsafe { libc::gettid() };
        let member = Member {
            reserve: self.clone(),
            tid,
            _of_one_thread: PhantomData,
        };
        let mut state = self.lock();
        state.members.push(Known {
            tid,
            runs: false,
            from_ns: 0,
            until_ns,
        });
        if state.reservation.is_some() && !self.is_exhausted() {
            promote(tid);
        }
        drop(state);
        member.wake();
        member
    }

    /// Whoever holds the lock must not wait behind a cell while others wait for it.
    fn lock(&self) -> Locked<'_> {
        let raised = self.is_exhausted();
        if raised {
            promote(0);
        }
        let state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        Locked {
            state: Some(state),
            inner: &self.0,
            raised,
        }
    }

    fn is_exhausted(&self) -> bool {
        self.0.exhausted.load(Ordering::Relaxed)
    }

    fn refill(&self, state: &mut State, now_ns: i64) {
        self.0.refill(state, now_ns);
    }
}

/// The state, and whether its holder has the class for as long as that.
struct Locked<'a> {
    state: Option<MutexGuard<'a, State>>,
    inner: &'a Inner,
    raised: bool,
}

impl std::ops::Deref for Locked<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        self.state
            .as_ref()
            .expect("it is there until it is dropped")
    }
}

impl std::ops::DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut State {
        self.state
            .as_mut()
            .expect("it is there until it is dropped")
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        drop(self.state.take());
        if self.raised && self.inner.exhausted.load(Ordering::Relaxed) {
            demote(0);
        }
    }
}

impl Inner {
    /// A new period begins.
    fn refill(&self, state: &mut State, now_ns: i64) {
        state.since_ns = now_ns;
        state.used_ns = 0;
        self.exhausted.store(false, Ordering::Relaxed);
        for member in state.members.iter_mut().chain(&mut state.watcher) {
            if member.runs {
                member.from_ns = cpu_ns(member.tid);
            }
        }
        for member in state.members.iter().filter(|one| one.until_ns > now_ns) {
            promote(member.tid);
        }
    }

    fn demote(&self, state: &State) {
        for member in &state.members {
            demote(member.tid);
        }
    }

    /// Sees to it that no more is used than there is, until nobody draws on it any more.
    fn watch(&self) {
        let class = Class::Fifo { priority: WATCHER };
        // It can be had: that was tried before anything was reserved.
        let _ = sched::set_class_reset_on_fork(0, &class);
        let lock = || self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = lock();
        // SAFETY: it cannot fail.
        let tid = unsafe { libc::gettid() };
        state.watcher = Some(Known {
            tid,
            runs: true,
            from_ns: cpu_ns(tid),
            until_ns: i64::MAX,
        });
        while !state.over {
            let wait_ns = self.look(&mut state, now_ns());
            state = match wait_ns {
                None => (self.changed.wait(state)).unwrap_or_else(PoisonError::into_inner),
                Some(ns) => {
                    let time = Duration::from_nanos(ns.max(SHORTEST_NS).unsigned_abs());
                    let waited = self.changed.wait_timeout(state, time);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        self.demote(&state);
    }

    /// Looks after the budget, and says when to look again, ns from now; `None`: when something has changed.
    fn look(&self, state: &mut State, now_ns: i64) -> Option<i64> {
        let (budget_ns, period_ns) = state.reservation?;
        let end_ns = state.since_ns.saturating_add(period_ns);
        if self.exhausted.load(Ordering::Relaxed) {
            if now_ns < end_ns {
                return Some(end_ns - now_ns);
            }
            self.refill(state, now_ns);
        }
        let mut over = 0;
        for member in &mut state.members {
            if member.runs && member.until_ns <= now_ns {
                over += member.used_ns();
                member.runs = false;
                demote(member.tid);
            }
        }
        state.used_ns += over;
        let running = state.members.iter().filter(|member| member.runs).count();
        if running == 0 {
            return None;
        }
        if now_ns >= end_ns {
            self.refill(state, now_ns);
            return Some(budget_ns);
        }
        let all = state.members.iter().chain(&state.watcher);
        let used_ns = state.used_ns + all.map(Known::used_ns).sum::<i64>();
        if used_ns >= budget_ns {
            self.exhausted.store(true, Ordering::Relaxed);
            self.demote(state);
            return Some(end_ns - now_ns);
        }
        // All of them at once use it up so much sooner.
        let least = (budget_ns - used_ns) / i64::try_from(running).unwrap_or(i64::MAX);
        Some(least.min(end_ns - now_ns))
    }
}

/// A thread's part in the reservation.
#[derive(Debug)]
pub(crate) struct Member {
    reserve: Reserve,
    tid: i32,
    _of_one_thread: PhantomData<*const ()>,
}

impl Member {
    /// It does something from now on.
    pub(crate) fn wake(&self) {
        self.turn(true);
    }

    /// It sleeps from now on.
    pub(crate) fn rest(&self) {
        self.turn(false);
    }

    fn turn(&self, runs: bool) {
        let mut state = self.reserve.lock();
        let Some((_, period_ns)) = state.reservation else {
            return;
        };
        let now = now_ns();
        if runs && now >= state.since_ns.saturating_add(period_ns) {
            self.reserve.refill(&mut state, now);
        }
        let mut used_ns = 0;
        for member in state.members.iter_mut().filter(|one| one.tid == self.tid) {
            used_ns += member.used_ns();
            member.runs = runs && member.until_ns > now;
            member.from_ns = cpu_ns(self.tid);
        }
        state.used_ns += used_ns;
        drop(state);
        if runs {
            self.reserve.0.changed.notify_one();
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.rest();
        let mut state = self.reserve.lock();
        state.members.retain(|member| member.tid != self.tid);
        let reserved = state.reservation.is_some();
        // The watcher has nobody to watch; whoever comes later is of class OTHER.
        let last = state.members.is_empty();
        if last {
            state.over = true;
            state.reservation = None;
        }
        drop(state);
        if reserved {
            demote(0);
        }
        if last {
            self.reserve.0.changed.notify_one();
        }
    }
}

/// Whether threads of this process can have the class, and the one that watches them its higher priority: a new one tries.
///
/// # Errors
/// Why not, a clause.
pub(crate) fn can_be_had() -> Result<(), String> {
    let thread = std::thread::Builder::new().name("timecell-try".to_owned());
    let tried = thread.spawn(|| {
        // The highest of them: a budget that nobody can watch is none.
        let class = Class::Fifo { priority: WATCHER };
        sched::set_class_reset_on_fork(0, &class).map_err(|error| error.to_string())
    });
    let tried = tried.map_err(|error| error.to_string())?;
    tried
        .join()
        .unwrap_or_else(|_| Err("it cannot be tried".to_owned()))
}

/// One that has just ended needs nothing; whether the class can be had at all was tried before.
fn promote(tid: i32) {
    let priority = Supervisor::PRIORITY;
    let _ = sched::set_class_reset_on_fork(tid, &Class::Fifo { priority });
}

fn demote(tid: i32) {
    let _ = sched::set_class(tid, &Class::Other);
}

/// Cpu time of a thread of this process, ns; 0: it is gone.
fn cpu_ns(tid: i32) -> i64 {
    // MAKE_THREAD_CPUCLOCK(tid, CPUCLOCK_SCHED), include/linux/posix-timers_types.h.
    let clock = (!tid << 3) | 6;
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: a time on the stack.
    match unsafe { libc::clock_gettime(clock, &raw mut time) } {
        0 => time.tv_sec * 1_000_000_000 + time.tv_nsec,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class_of(tid: i32) -> Class {
        sched::get_class(tid).unwrap()
    }

    fn spin(ns: i64) {
        let until = cpu_ns(unsafe { libc::gettid() }) + ns;
        while cpu_ns(unsafe { libc::gettid() }) < until {}
    }

    #[test]
    fn a_thread_has_the_class_until_the_budget_is_used_up_and_again_in_the_next_period() {
        if can_be_had().is_err() {
            eprintln!("not tested: a real-time class needs CAP_SYS_NICE");
            return;
        }
        let reserve = Reserve::default();
        let member = reserve.join();
        assert_eq!(class_of(0), Class::Other);
        reserve.set(Some((2_000_000, 500_000_000))).unwrap();
        let fifo = Class::Fifo {
            priority: Supervisor::PRIORITY,
        };
        assert_eq!(class_of(0), fifo);
        member.wake();
        // What it makes begins in class OTHER.
        let child = std::thread::spawn(|| class_of(0));
        assert_eq!(child.join().unwrap(), Class::Other);
        spin(6_000_000);
        assert_eq!(class_of(0), Class::Other);
        member.rest();
        std::thread::sleep(Duration::from_millis(600));
        member.wake();
        assert_eq!(class_of(0), fifo);
        drop(member);
        assert_eq!(class_of(0), Class::Other);
    }

    #[test]
    fn without_a_reservation_nothing_changes() {
        let reserve = Reserve::default();
        let member = reserve.join();
        member.wake();
        member.rest();
        assert_eq!(class_of(0), Class::Other);
        reserve.set(None).unwrap();
    }
}
