//! Parallel work by a bounded number of threads: creating and removing cells.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, Builder, Thread};
use std::time::Duration;

/// Between two calls of `tick`.
const TICK: Duration = Duration::from_secs(1);

/// Calls `work` with every index below `count`, each once, by at most so many threads; `tick` about once a second meanwhile, and when all
/// is done. Where fewer threads can be started, they do the work of the others.
pub(crate) fn in_parallel(
    threads: usize,
    count: usize,
    work: impl Fn(usize) + Sync,
    mut tick: impl FnMut(),
) {
    let threads = threads.clamp(1, count.max(1));
    let next = AtomicUsize::new(0);
    let left = AtomicUsize::new(threads);
    let caller = thread::current();
    thread::scope(|scope| {
        for number in 0..threads {
            let (next, left, work, caller) = (&next, &left, &work, &caller);
            let go_on = move || {
                let _leaving = Leaving { left, caller };
                loop {
                    let index = next.fetch_add(1, Relaxed);
                    if index >= count {
                        return;
                    }
                    work(index);
                }
            };
            let started = Builder::new()
                .name(format!("maker-{number}"))
                .spawn_scoped(scope, go_on);
            if started.is_err() {
                go_on();
            }
        }
        while left.load(Acquire) > 0 {
            thread::park_timeout(TICK);
            tick();
        }
    });
}

/// Reports the end of a thread, however it ends: a waiter for the last one must not wait forever.
struct Leaving<'a> {
    left: &'a AtomicUsize,
    caller: &'a Thread,
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        if self.left.fetch_sub(1, AcqRel) == 1 {
            self.caller.unpark();
        }
    }
}

/// [`in_parallel`] for work that can fail: every index is worked on in any case. Returns the errors in the order in which they came.
pub(crate) fn failures<E: Send>(
    threads: usize,
    count: usize,
    work: impl Fn(usize) -> Result<(), E> + Sync,
) -> Vec<E> {
    let failed = Mutex::new(Vec::new());
    let try_one = |index| {
        // The work is done before the lock is taken: within it, the threads would work in turn.
        if let Err(error) = work(index) {
            let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
            failed.push(error);
        }
    };
    in_parallel(threads, count, try_one, || {});
    failed.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// The same.
///
/// # Errors
/// The first error in time.
pub(crate) fn all<E: Send>(
    threads: usize,
    count: usize,
    work: impl Fn(usize) -> Result<(), E> + Sync,
) -> Result<(), E> {
    let failed = failures(threads, count, work);
    failed.into_iter().next().map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_index_is_worked_on_once() {
        for (threads, count) in [(0, 4), (1, 5), (8, 3), (3, 100), (4, 0)] {
            let seen: Vec<AtomicUsize> = (0..count).map(|_| AtomicUsize::new(0)).collect();
            let mut ticks = 0;
            in_parallel(
                threads,
                count,
                |index| {
                    seen[index].fetch_add(1, Relaxed);
                },
                || ticks += 1,
            );
            assert!(
                seen.iter().all(|n| n.load(Acquire) == 1),
                "{threads} {count}"
            );
        }
    }

    #[test]
    fn no_more_threads_work_than_were_asked_for() {
        let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        in_parallel(
            3,
            50,
            |_| {
                most.fetch_max(now.fetch_add(1, AcqRel) + 1, AcqRel);
                thread::sleep(Duration::from_millis(1));
                now.fetch_sub(1, AcqRel);
            },
            || {},
        );
        assert!((1..=3).contains(&most.load(Acquire)), "{most:?}");
    }

    #[test]
    fn all_are_worked_on_and_the_first_error_is_told() {
        for threads in [1, 4] {
            let sum = AtomicUsize::new(0);
            let failed = all(threads, 100, |index| {
                sum.fetch_add(index, Relaxed);
                match index {
                    7 => Err("seven"),
                    _ => Ok(()),
                }
            });
            assert_eq!(sum.load(Relaxed), 4950);
            assert_eq!(failed, Err("seven"));
        }
        assert_eq!(all(1, 9, Err), Err(0));
        assert_eq!(all(2, 9, |_| Ok::<(), ()>(())), Ok(()));
    }

    #[test]
    fn what_fails_is_worked_on_at_the_same_time() {
        let (here, came) = (Mutex::new(0), std::sync::Condvar::new());
        let alone = failures(2, 2, |index| {
            let mut here = here.lock().unwrap();
            *here += 1;
            came.notify_all();
            let patience = Duration::from_secs(10);
            let (_here, waited) = came
                .wait_timeout_while(here, patience, |here| *here < 2)
                .unwrap();
            if waited.timed_out() {
                Err(index)
            } else {
                Ok(())
            }
        });
        assert_eq!(alone, Vec::<usize>::new());
    }

    #[test]
    #[should_panic(expected = "scoped thread panicked")]
    fn a_thread_that_panics_does_not_keep_the_others_waiting() {
        in_parallel(2, 4, |index| assert!(index != 2), || {});
    }
}
