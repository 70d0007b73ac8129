//! Notices the death of cells: one thread that sleeps on their pidfds and wakes the coordinator.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use probe::Wake;

use crate::pidfd;

/// Watches the payloads of one trial until dropped.
pub(crate) struct Watch {
    shared: Arc<Shared>,
    bell: OwnedFd,
    thread: Option<std::thread::JoinHandle<()>>,
}

struct Shared {
    cells: Mutex<Vec<(usize, OwnedFd)>>,
    dead: Mutex<Vec<usize>>,
    over: AtomicBool,
}

impl Watch {
    pub(crate) fn start(wake: Wake) -> io::Result<Watch> {
        let bell = event_fd()?;
        let shared = Arc::new(Shared {
            cells: Mutex::default(),
            dead: Mutex::default(),
            over: AtomicBool::new(false),
        });
        let (inner, bell_number) = (Arc::clone(&shared), bell.as_raw_fd());
        let thread = std::thread::Builder::new()
            .name("watch".to_owned())
            .spawn(move || watch(&inner, bell_number, &wake))?;
        Ok(Watch {
            shared,
            bell,
            thread: Some(thread),
        })
    }

    /// Watches `pid` as cell `index`. A process that is gone already counts as dead.
    pub(crate) fn add(&self, index: usize, pid: i32) {
        match pidfd::open(pid) {
            Ok(fd) => lock(&self.shared.cells).push((index, fd)),
            Err(_) => lock(&self.shared.dead).push(index),
        }
        self.ring();
    }

    /// The cells whose payload has ended.
    pub(crate) fn dead(&self) -> Vec<usize> {
        lock(&self.shared.dead).clone()
    }

    fn ring(&self) {
        let one = 1u64.to_ne_bytes();
        // SAFETY: writes eight bytes to an eventfd that lives as long as self.
        unsafe { libc::write(self.bell.as_raw_fd(), one.as_ptr().cast(), one.len()) };
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

fn watch(shared: &Shared, bell: i32, wake: &Wake) {
    while !shared.over.load(Ordering::Acquire) {
        let mut polled = vec![entry(bell)];
        polled.extend(
            lock(&shared.cells)
                .iter()
                .map(|(_, fd)| entry(fd.as_raw_fd())),
        );
        // SAFETY: the vector holds as many entries as are passed; descriptors stay open while in `cells`,
        // which only this thread shortens.
        unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, -1) };
        if polled[0].revents != 0 {
            let mut drained = [0u8; 8];
            // SAFETY: reads eight bytes from an eventfd into eight bytes.
            unsafe { libc::read(bell, drained.as_mut_ptr().cast(), drained.len()) };
        }
        let ended: Vec<i32> = polled[1..]
            .iter()
            .filter(|entry| entry.revents != 0)
            .map(|entry| entry.fd)
            .collect();
        if !ended.is_empty() {
            let mut cells = lock(&shared.cells);
            let mut dead = lock(&shared.dead);
            cells.retain(|(index, fd)| {
                let gone = ended.contains(&fd.as_raw_fd());
                if gone {
                    dead.push(*index);
                }
                !gone
            });
        }
        if !ended.is_empty() || polled[0].revents != 0 {
            wake.wake();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn entry(fd: i32) -> libc::pollfd {
    libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    }
}

fn event_fd() -> io::Result<OwnedFd> {
    // SAFETY: no pointers; the answer is checked.
    let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) };
    owned(fd)
}

fn owned(fd: i32) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel just gave us this descriptor and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
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
}
