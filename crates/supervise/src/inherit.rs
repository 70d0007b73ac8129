//! A lock for threads of different priorities: its owner runs with the priority of the most urgent waiter
//! (PTHREAD_PRIO_INHERIT), so that a cell cannot keep a thread of class OTHER that owns it from continuing. And a bell to
//! wait for, which needs no lock inside.

use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::thread::futex::{self, Timespec};

/// A value that one thread at a time has.
pub(crate) struct Inheriting<T> {
    /// In a place of its own: it must not be moved once it was used.
    lock: Box<UnsafeCell<libc::pthread_mutex_t>>,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached by one thread at a time, the one that has the lock.
unsafe impl<T: Send> Sync for Inheriting<T> {}
// SAFETY: a lock that nobody has, as it can only be moved then, belongs to no thread.
unsafe impl<T: Send> Send for Inheriting<T> {}

impl<T> Inheriting<T> {
    pub(crate) fn new(value: T) -> Inheriting<T> {
        let lock = Box::new(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER));
        // SAFETY: attributes on the stack, made before they are used and gone after; nobody knows the lock yet. A kernel without
        // such locks refuses it, and the plain one that it was made as stays.
        unsafe {
            let mut kind = std::mem::zeroed::<libc::pthread_mutexattr_t>();
            if libc::pthread_mutexattr_init(&raw mut kind) == 0 {
                if libc::pthread_mutexattr_setprotocol(&raw mut kind, libc::PTHREAD_PRIO_INHERIT)
                    == 0
                {
                    libc::pthread_mutex_init(lock.get(), &raw const kind);
                }
                libc::pthread_mutexattr_destroy(&raw mut kind);
            }
        }
        Inheriting {
            lock,
            value: UnsafeCell::new(value),
        }
    }

    /// The value, once nobody else holds it. A thread that holds it must not call this.
    pub(crate) fn lock(&self) -> Had<'_, T> {
        // SAFETY: the lock was made, and is there as long as `self`.
        let error = unsafe { libc::pthread_mutex_lock(self.lock.get()) };
        assert_eq!(error, 0, "a lock that is asked for once is given");
        Had {
            of: self,
            _of_one_thread: PhantomData,
        }
    }
}

impl<T> fmt::Debug for Inheriting<T> {
    /// Without the value, for which another thread would be waited.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inheriting").finish_non_exhaustive()
    }
}

impl<T> Drop for Inheriting<T> {
    fn drop(&mut self) {
        // SAFETY: nobody else knows it, so nobody has it.
        unsafe { libc::pthread_mutex_destroy(self.lock.get()) };
    }
}

/// The value, until this is dropped.
pub(crate) struct Had<'a, T> {
    of: &'a Inheriting<T>,
    /// The thread that has a lock gives it back.
    _of_one_thread: PhantomData<*const ()>,
}

impl<T> Deref for Had<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: this thread has the lock.
        unsafe { &*self.of.value.get() }
    }
}

impl<T> DerefMut for Had<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this thread has the lock, and `self` is borrowed for as long.
        unsafe { &mut *self.of.value.get() }
    }
}

impl<T> Drop for Had<'_, T> {
    fn drop(&mut self) {
        // SAFETY: this thread has the lock.
        unsafe { libc::pthread_mutex_unlock(self.of.lock.get()) };
    }
}

/// Wakes a thread that waits for something to change.
#[derive(Debug, Default)]
pub(crate) struct Bell(AtomicU32);

impl Bell {
    /// How often it was rung, modulo 2^32: to be asked before a look at anything that may change.
    pub(crate) fn rung(&self) -> u32 {
        self.0.load(Ordering::Acquire)
    }

    pub(crate) fn ring(&self) {
        self.0.fetch_add(1, Ordering::Release);
        let _ = futex::wake(&self.0, futex::Flags::PRIVATE, i32::MAX as u32);
    }

    /// Waits until it was rung more often than that, or for this time; it may return before.
    pub(crate) fn wait(&self, rung: u32, time: Option<Duration>) {
        let time = time.and_then(|time| Timespec::try_from(time).ok());
        let _ = futex::wait(&self.0, futex::Flags::PRIVATE, rung, time.as_ref());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use host::process::thread_id;
    use host::sched::{self, Class};

    /// Priority that a thread of this process runs with, as the kernel counts: negative for a real-time one.
    fn priority(tid: i32) -> i64 {
        let stat = std::fs::read_to_string(format!("/proc/self/task/{tid}/stat")).unwrap();
        let rest = stat.rsplit_once(") ").unwrap().1;
        rest.split(' ').nth(15).unwrap().parse().unwrap()
    }

    #[test]
    fn whoever_has_it_inherits_the_priority_of_who_waits() {
        let own = thread_id();
        let value = Inheriting::new(1);
        let mut had = value.lock();
        let before = priority(own);
        let (tell, told) = channel();
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| {
                let urgent = sched::set_class(0, &Class::Fifo { priority: 1 }).is_ok();
                tell.send(urgent).unwrap();
                urgent.then(|| *value.lock())
            });
            if told.recv().unwrap() {
                while priority(own) == before {
                    std::thread::yield_now();
                }
                assert_eq!(priority(own), -2);
            } else {
                eprintln!("not tested: a real-time class needs CAP_SYS_NICE");
            }
            *had = 2;
            drop(had);
            assert!(waits.join().unwrap().is_none_or(|seen| seen == 2));
            assert_eq!(priority(own), before);
        });
    }

    #[test]
    fn one_at_a_time_has_it() {
        let value = Inheriting::new(0_u64);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..10_000 {
                        *value.lock() += 1;
                    }
                });
            }
        });
        assert_eq!(*value.lock(), 40_000);
    }

    #[test]
    fn a_bell_that_was_rung_before_the_wait_is_heard() {
        let bell = Bell::default();
        let rung = bell.rung();
        bell.ring();
        bell.wait(rung, None);
        bell.wait(bell.rung(), Some(Duration::from_millis(1)));
        std::thread::scope(|scope| {
            let rung = bell.rung();
            scope.spawn(|| bell.ring());
            while bell.rung() == rung {
                bell.wait(rung, None);
            }
        });
    }
}
