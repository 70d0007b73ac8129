//! Notices the death of cells: one thread that sleeps on their pidfds and wakes the coordinator.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use host::pidfd;
use probe::Wake;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{EventfdFlags, eventfd};

/// Watches the payloads of one trial until dropped.
pub(crate) struct Watch {
    shared: Arc<Shared>,
    bell: OwnedFd,
    thread: Option<std::thread::JoinHandle<()>>,
}

struct Shared {
    /// An epoll descriptor: it reports the ready ones, however many are watched.
    ready: OwnedFd,
    cells: Mutex<BTreeMap<usize, Arc<OwnedFd>>>,
    dead: Mutex<Vec<usize>>,
    over: AtomicBool,
}

/// The index that stands for the bell among the cells.
const BELL: u64 = u64::MAX;

impl Watch {
    pub(crate) fn start(wake: Wake) -> io::Result<Watch> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC)?;
        let ready = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        listen(&ready, &bell, BELL)?;
        let shared = Arc::new(Shared {
            ready,
            cells: Mutex::default(),
            dead: Mutex::default(),
            over: AtomicBool::new(false),
        });
        let inner = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("watch".to_owned())
            .spawn(move || watch(&inner, &wake))?;
        Ok(Watch {
            shared,
            bell,
            thread: Some(thread),
        })
    }

    /// Watches `pid` as cell `index`. A process that is gone already counts as dead.
    pub(crate) fn add(&self, index: usize, pid: i32) {
        let watched = pidfd::open(pid).and_then(|fd| {
            let fd = Arc::new(fd);
            // Before the kernel may tell of it.
            lock(&self.shared.cells).insert(index, Arc::clone(&fd));
            listen(&self.shared.ready, &fd, index as u64)
        });
        if watched.is_err() {
            lock(&self.shared.cells).remove(&index);
            lock(&self.shared.dead).push(index);
            self.ring();
        }
    }

    /// The cells whose payload has ended.
    pub(crate) fn dead(&self) -> Vec<usize> {
        lock(&self.shared.dead).clone()
    }

    /// Whether the payload of cell `index` has ended.
    pub(crate) fn is_dead(&self, index: usize) -> bool {
        lock(&self.shared.dead).contains(&index)
    }

    /// The payloads that live.
    pub(crate) fn living(&self) -> Vec<Arc<OwnedFd>> {
        lock(&self.shared.cells).values().cloned().collect()
    }

    /// Kills the payloads of the first `cells` and waits a moment for their end.
    pub(crate) fn kill(&self, cells: usize) {
        const PATIENCE: Duration = Duration::from_secs(1);
        let living: Vec<_> = lock(&self.shared.cells)
            .range(..cells)
            .map(|(_, fd)| Arc::clone(fd))
            .collect();
        for payload in &living {
            // If one cannot be killed, removing its cell says why.
            let _ = pidfd::kill(payload);
        }
        for payload in &living {
            pidfd::ended_within(payload, PATIENCE);
        }
    }

    fn ring(&self) {
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Release);
        self.ring();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn watch(shared: &Shared, wake: &Wake) {
    const AT_ONCE: usize = 64;
    while !shared.over.load(Ordering::Acquire) {
        let Ok(told) = host::epoll::wait(&shared.ready, AT_ONCE, -1) else {
            continue;
        };
        for &(name, _) in &told {
            // The bell is never silenced: it rings for deaths in `dead` anyway, or for the end.
            if let Ok(index) = usize::try_from(name)
                && let Some(fd) = lock(&shared.cells).remove(&index)
            {
                // Somebody else may still hold the descriptor, which would keep it in the epoll set.
                let _ = epoll::delete(&shared.ready, &fd);
                lock(&shared.dead).push(index);
            }
        }
        if !told.is_empty() {
            wake.wake();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn listen(ready: &OwnedFd, to: &OwnedFd, name: u64) -> io::Result<()> {
    // A bell rings once for each stroke.
    let edge = match name {
        BELL => EventFlags::ET,
        _ => EventFlags::empty(),
    };
    let name = EventData::new_u64(name);
    Ok(epoll::add(ready, to, name, EventFlags::IN | edge)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use probe::Barrier;

    #[test]
    fn a_death_wakes_the_coordinator() {
        let dir = tempfile::tempdir().unwrap();
        let barrier = Barrier::create(&dir.path().join("control"), 2).unwrap();
        let watch = Watch::start(barrier.waker()).unwrap();
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        watch.add(1, child.id().cast_signed());
        assert!(watch.dead().is_empty());
        child.kill().unwrap();
        let deadline = probe::clock::now() + 20_000_000_000;
        let ended = barrier.wait_all(probe::control::State::Done, "done", deadline, || {
            !watch.dead().is_empty()
        });
        assert_eq!(ended, Err(probe::BarrierError::Stopped));
        assert_eq!(watch.dead(), [1]);
        child.wait().unwrap();
        watch.add(0, child.id().cast_signed());
        assert_eq!(
            watch.dead(),
            [1, 0],
            "a process that is gone counts as dead at once"
        );
    }

    #[test]
    fn only_cells_are_killed() {
        let dir = tempfile::tempdir().unwrap();
        let barrier = Barrier::create(&dir.path().join("control"), 2).unwrap();
        let watch = Watch::start(barrier.waker()).unwrap();
        let mut children = [(); 3].map(|()| {
            let mut sleep = std::process::Command::new("sleep");
            sleep.arg("60").spawn().unwrap()
        });
        for (index, child) in children.iter().enumerate() {
            watch.add(index, child.id().cast_signed());
        }
        watch.kill(2);
        let [first, second, load] = &mut children;
        assert!(first.try_wait().unwrap().is_some() && second.try_wait().unwrap().is_some());
        assert!(load.try_wait().unwrap().is_none());
        load.kill().unwrap();
        load.wait().unwrap();
    }
}
