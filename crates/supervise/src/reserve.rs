//! The supervisor's own reservation: its threads are of class FIFO until they have used up the budget of this period, and
//! of class OTHER until the period is over. So it reacts beside cells that use their whole grants, takes no more from
//! them than admission has counted, and is never slower than a process without a reservation.
//!
//! The budget is held here and not by the kernel, which checks budgets only at a tick: every cell would have to allow for
//! one more tick, 4 ms at 250 Hz. A thread of the highest priority sleeps until the budget can be used up, reads the cpu
//! time of the threads, and takes them out of the class. It counts its own use too. Threads and processes that any of
//! them creates begin in class OTHER (`SCHED_RESET_ON_FORK`).

use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use host::process::thread_id;
use host::sched::{self, Class};
use model::mission::Supervisor;
use timecell_client::now_ns;

use crate::inherit::{Bell, Had, Inheriting};

/// Priority of the thread that watches the budget.
const WATCHER: u8 = Supervisor::PRIORITY + 1;
/// The time that may pass until the threads are out of their class, ns; the budget is lessened by it.
const ALLOWANCE_NS: i64 = 100_000;
/// Shortest sleep between two looks, ns.
const SHORTEST_NS: i64 = 20_000;
/// How long one step may be of the class, ns: an engine that hangs in it would be watched for minutes.
const LONGEST_STEP_NS: i64 = 500_000_000;

/// The reservation, shared by all threads that draw on it.
#[derive(Debug, Clone)]
pub(crate) struct Reserve(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    state: Inheriting<State>,
    changed: Bell,
}

#[derive(Debug, Default)]
struct State {
    /// Budget and period, ns; `None`: nothing is reserved.
    reservation: Option<(i64, i64)>,
    /// On how many cpus threads use it up at the same time.
    cpus: i64,
    /// Whether the budget is used up: threads are of class OTHER.
    exhausted: bool,
    /// When this period began, CLOCK_MONOTONIC ns.
    since_ns: i64,
    /// The use in this period of threads that sleep or are gone, ns.
    used_ns: i64,
    members: Vec<Known>,
    /// Whether there is a thread that watches, which may not have begun yet.
    is_watched: bool,
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

impl Default for Reserve {
    fn default() -> Reserve {
        Reserve(Arc::new(Inner {
            state: Inheriting::new(State::default()),
            changed: Bell::default(),
        }))
    }
}

impl Reserve {
    /// Sets the reservation: budget and period, ns; `None`: nothing any more.
    ///
    /// # Errors
    /// Why the threads cannot have the class, a clause.
    pub(crate) fn set(&self, reservation: Option<(u64, u64)>) -> Result<(), String> {
        let ns = |time: u64| i64::try_from(time).unwrap_or(i64::MAX);
        let new = reservation.map(|(budget, period)| {
            let budget = ns(budget);
            ((budget - ALLOWANCE_NS).max(budget / 2), ns(period))
        });
        let mut state = self.lock();
        if state.reservation == new {
            return Ok(());
        }
        // Before the watcher begins.
        state.over = false;
        if new.is_some() && !state.is_watched {
            state.is_watched = true;
            drop(state);
            let watched = self.have_watched();
            state = self.lock();
            state.is_watched = watched.is_ok();
            watched?;
        }
        state.cpus = online_cpus();
        state.reservation = new;
        match new {
            Some(_) => state.refill(now_ns()),
            None => {
                state.exhausted = false;
                state.demote_all();
            }
        }
        drop(state);
        self.0.changed.ring();
        Ok(())
    }

    /// Makes the thread that watches. It has its class from its beginning, which the calling thread lends it: nobody waits for it, and
    /// any reservation from then on is watched.
    fn have_watched(&self) -> Result<(), String> {
        let own = sched::get_class(0).map_err(|error| error.to_string())?;
        let highest = Class::Fifo { priority: WATCHER };
        // A budget that nobody can watch is worthless.
        sched::set_class(0, &highest).map_err(|error| error.to_string())?;
        let inner = Arc::clone(&self.0);
        let thread = std::thread::Builder::new().name("timecell-budget".to_owned());
        let spawned = thread.spawn(move || inner.watch());
        sched::set_class(0, &own).map_err(|error| error.to_string())?;
        match spawned {
            Ok(_) => Ok(()),
            Err(error) => Err(format!("there is no thread to watch its budget: {error}")),
        }
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
        let tid = thread_id();
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
        if state.reservation.is_some() && !state.exhausted {
            promote(tid);
        }
        drop(state);
        member.wake();
        member
    }

    fn lock(&self) -> Had<'_, State> {
        self.0.state.lock()
    }
}

impl State {
    /// A new period begins.
    fn refill(&mut self, now_ns: i64) {
        self.since_ns = now_ns;
        self.used_ns = 0;
        self.exhausted = false;
        for member in self.members.iter_mut().chain(&mut self.watcher) {
            if member.runs {
                member.from_ns = cpu_ns(member.tid);
            }
        }
        for member in self.members.iter().filter(|one| one.until_ns > now_ns) {
            promote(member.tid);
        }
    }

    fn demote_all(&self) {
        for member in &self.members {
            demote(member.tid);
        }
    }

    /// Looks after the budget, and says when to look again, ns from now; `None`: when something has changed.
    fn look(&mut self, now_ns: i64) -> Option<i64> {
        let (budget_ns, period_ns) = self.reservation?;
        let end_ns = self.since_ns.saturating_add(period_ns);
        if self.exhausted {
            if now_ns < end_ns {
                return Some(end_ns - now_ns);
            }
            self.refill(now_ns);
        }
        let mut over = 0;
        for member in &mut self.members {
            if member.runs && member.until_ns <= now_ns {
                over += member.used_ns();
                member.runs = false;
                demote(member.tid);
            }
        }
        self.used_ns += over;
        let running = self.members.iter().filter(|member| member.runs).count();
        if running == 0 {
            return None;
        }
        if now_ns >= end_ns {
            self.refill(now_ns);
            return Some(soonest_ns(budget_ns, running, self.cpus));
        }
        let all = self.members.iter().chain(&self.watcher);
        let used_ns = self.used_ns + all.map(Known::used_ns).sum::<i64>();
        if used_ns >= budget_ns {
            self.exhausted = true;
            self.demote_all();
            return Some(end_ns - now_ns);
        }
        let soonest_ns = soonest_ns(budget_ns - used_ns, running, self.cpus);
        Some(soonest_ns.min(end_ns - now_ns))
    }
}

/// The earliest time at which this much can be used up, ns from now: by all threads running at once, one on each cpu.
fn soonest_ns(left_ns: i64, running: usize, cpus: i64) -> i64 {
    let at_once = i64::try_from(running).unwrap_or(i64::MAX).min(cpus);
    left_ns / at_once.max(1)
}

/// One more comes into use hardly ever, and costs a late look at most.
fn online_cpus() -> i64 {
    // SAFETY: a question about the system.
    unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }.max(1)
}

impl Inner {
    /// Enforces the budget until no thread uses it any more.
    fn watch(&self) {
        let tid = thread_id();
        self.state.lock().watcher = Some(Known {
            tid,
            runs: true,
            from_ns: cpu_ns(tid),
            until_ns: i64::MAX,
        });
        loop {
            let rung = self.changed.rung();
            let mut state = self.state.lock();
            if state.over {
                state.demote_all();
                state.watcher = None;
                state.is_watched = false;
                return;
            }
            let wait_ns = state.look(now_ns());
            drop(state);
            let time = |ns: i64| Duration::from_nanos(ns.max(SHORTEST_NS).unsigned_abs());
            self.changed.wait(rung, wait_ns.map(time));
        }
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

    /// Also where nothing is reserved: its use is counted from the instant at which something is.
    fn turn(&self, runs: bool) {
        let mut state = self.reserve.lock();
        let now = now_ns();
        let period_ns = state.reservation.map(|(_, period_ns)| period_ns);
        let is_over = |period_ns: i64| now >= state.since_ns.saturating_add(period_ns);
        if runs && period_ns.is_some_and(is_over) {
            state.refill(now);
        }
        let mut used_ns = 0;
        for member in state.members.iter_mut().filter(|one| one.tid == self.tid) {
            used_ns += member.used_ns();
            member.runs = runs && member.until_ns > now;
            member.from_ns = cpu_ns(self.tid);
        }
        state.used_ns += used_ns;
        drop(state);
        if runs && period_ns.is_some() {
            self.reserve.0.changed.ring();
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.rest();
        let mut state = self.reserve.lock();
        state.members.retain(|member| member.tid != self.tid);
        let reserved = state.reservation.is_some();
        // The watcher has nobody to watch; later threads are of class OTHER.
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
            self.reserve.0.changed.ring();
        }
    }
}

/// Where this process could run before it was kept off some cpus.
static BEFORE: Mutex<Option<Vec<u32>>> = Mutex::new(None);

/// The cpus on which this process may run, those that it leaves to cells among them.
///
/// # Errors
/// The kernel's error.
pub(crate) fn affinity() -> Result<Vec<u32>, sched::SchedError> {
    let before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner);
    (before.clone()).map_or_else(|| sched::get_affinity(0), Ok)
}

fn own_pid() -> i32 {
    i32::try_from(std::process::id()).unwrap_or(0)
}

/// Keeps all threads of this process to `cpus` where it is to leave some to cells; else they have again those that it had. Threads that are
/// begun later inherit it, cells do not. One that has just ended needs nothing.
pub(crate) fn keep_off(cpus: &[u32], spared: &[u32]) {
    let mut before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner);
    let to = match (spared, before.as_ref()) {
        ([], None) => return,
        ([], Some(before)) => before.clone(),
        _ => cpus.to_vec(),
    };
    let Ok(from) = sched::get_affinity(0) else {
        return;
    };
    // One that is kept to a cpu for itself stays there.
    for tid in host::process::threads(own_pid()) {
        if sched::get_affinity(tid).is_ok_and(|cpus| cpus == from) {
            let _ = sched::set_affinity(tid, &to);
        }
    }
    before.get_or_insert(from);
}

/// Whether threads of this process can get the class, and the thread that watches them its higher priority: a new
/// thread tries.
///
/// # Errors
/// Why not, a clause.
pub(crate) fn can_be_had() -> Result<(), String> {
    let thread = std::thread::Builder::new().name("timecell-try".to_owned());
    let tried = thread.spawn(|| {
        // The highest of them: a budget that nobody can watch is worthless.
        let class = Class::Fifo { priority: WATCHER };
        sched::set_class_reset_on_fork(0, &class).map_err(|error| error.to_string())
    });
    let tried = tried.map_err(|error| error.to_string())?;
    tried
        .join()
        .unwrap_or_else(|_| Err("the attempt panicked".to_owned()))
}

/// A thread that has just ended needs nothing; whether the class is available at all was tested before.
fn promote(tid: i32) {
    let priority = Supervisor::PRIORITY;
    let _ = sched::set_class_reset_on_fork(tid, &Class::Fifo { priority });
}

fn demote(tid: i32) {
    let _ = sched::set_class(tid, &Class::Other);
}

/// Cpu time of a thread of this process, ns; 0: it is gone.
fn cpu_ns(tid: i32) -> i64 {
    host::clock::read(host::clock::of_thread(tid)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class_of(tid: i32) -> Class {
        sched::get_class(tid).unwrap()
    }

    /// Uses cpu time until the class is gone: the watcher is late where the machine itself has no time.
    fn spin_until_other() {
        let most = cpu_ns(thread_id()) + 200_000_000;
        while class_of(0) != Class::Other {
            assert!(cpu_ns(thread_id()) < most, "a budget of 2 ms is not kept");
        }
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
        // Threads that it makes begin in class OTHER.
        let child = std::thread::spawn(|| class_of(0));
        assert_eq!(child.join().unwrap(), Class::Other);
        spin_until_other();
        member.rest();
        std::thread::sleep(Duration::from_millis(600));
        member.wake();
        assert_eq!(class_of(0), fifo);
        drop(member);
        assert_eq!(class_of(0), Class::Other);
    }

    #[test]
    fn a_step_that_began_before_the_reservation_is_held_to_it() {
        if can_be_had().is_err() {
            eprintln!("not tested: a real-time class needs CAP_SYS_NICE");
            return;
        }
        let reserve = Reserve::default();
        let _main = reserve.join();
        let (joined, wait) = std::sync::mpsc::channel();
        let (go_on, told) = std::sync::mpsc::channel::<()>();
        let theirs = reserve.clone();
        let step = std::thread::spawn(move || {
            let _member = theirs.join_for_a_step();
            joined.send(()).unwrap();
            told.recv().unwrap();
            spin_until_other();
        });
        wait.recv().unwrap();
        reserve.set(Some((2_000_000, 100_000_000_000))).unwrap();
        let count = || {
            let state = reserve.lock();
            let runs = state.members.iter().filter(|member| member.runs);
            (runs.count(), state.exhausted)
        };
        assert_eq!(count(), (2, false));
        go_on.send(()).unwrap();
        step.join().unwrap();
        assert_eq!(count(), (1, true));
        reserve.set(None).unwrap();
        assert_eq!(count(), (1, false));
    }

    #[test]
    fn a_second_reservation_has_no_second_watcher_and_an_end_is_no_end_for_ever() {
        if can_be_had().is_err() {
            eprintln!("not tested: a real-time class needs CAP_SYS_NICE");
            return;
        }
        let reserve = Reserve::default();
        let others = || Arc::strong_count(&reserve.0) - 1;
        reserve.set(Some((2_000_000, 500_000_000))).unwrap();
        assert_eq!(class_of(0), Class::Other);
        reserve.set(Some((3_000_000, 500_000_000))).unwrap();
        reserve.set(None).unwrap();
        reserve.set(Some((3_000_000, 500_000_000))).unwrap();
        assert_eq!(others(), 1);
        drop(reserve.join());
        assert!(!reserve.is_held());
        while others() > 0 {
            std::thread::yield_now();
        }
        let member = reserve.join();
        reserve.set(Some((2_000_000, 500_000_000))).unwrap();
        assert_eq!(others(), 2);
        drop(member);
    }

    #[test]
    fn threads_that_wait_for_a_cpu_use_nothing_up() {
        assert_eq!(soonest_ns(900, 1, 2), 900);
        assert_eq!(soonest_ns(900, 2, 2), 450);
        assert_eq!(soonest_ns(900, 20, 2), 450);
        assert_eq!(soonest_ns(900, 20, 0), 900);
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
