//! The application's end of the page.

use core::ffi::CStr;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use crate::layout::{BEING_CLAIMED, CLAIMED, CLOSED, DECLARED, FREE, USUAL_PATH, VARIABLE};
use crate::map::Map;
use crate::name::{self, Name};
use crate::task::{Slot, Task, this_program};
use crate::{OpenError, TaskError};

/// The application's end of the page.
///
/// Opening makes a few system calls; do it before the real-time part of the program. The page stays mapped until the
/// process ends.
#[derive(Debug, Clone, Copy)]
pub struct Client {
    map: Option<Map>,
}

impl Client {
    /// Opens the page of this cell: the file that the environment variable `TIMECELL_PAGE` names, else `/cell/page`. If
    /// neither exists, the program does not run in a cell, and the client is [`Client::detached`].
    ///
    /// # Errors
    /// When there is a page that cannot be used, or the variable names a file that does not exist.
    pub fn open_from_env() -> Result<Client, OpenError> {
        // SAFETY: the name ends with a NUL; the value found is used at once.
        let named = unsafe { libc::getenv(VARIABLE.as_ptr()) };
        if !named.is_null() {
            // SAFETY: not null, and a C string.
            return Client::open(unsafe { CStr::from_ptr(named) });
        }
        match Client::open(USUAL_PATH) {
            Err(OpenError::System { errno, .. })
                if errno == libc::ENOENT || errno == libc::ENOTDIR =>
            {
                Ok(Client::detached())
            }
            opened => opened,
        }
    }

    /// Opens the page at `path`.
    ///
    /// # Errors
    /// When the file cannot be opened for writing or mapped, or is not a page that this library knows.
    pub fn open(path: &CStr) -> Result<Client, OpenError> {
        let map = Some(Map::open(path)?);
        Ok(Client { map })
    }

    /// A client that reports to nobody: its tasks do nothing.
    pub const fn detached() -> Client {
        Client { map: None }
    }

    /// Whether there is a page, which the supervisor reads.
    pub const fn is_attached(&self) -> bool {
        self.map.is_some()
    }

    /// Names of the tasks in the page, declared by the mission or claimed by this application.
    pub fn names(&self) -> impl Iterator<Item = Name> {
        let slots = self.map.into_iter();
        slots
            .flat_map(|map| (0..map.slots()).map(move |slot| map.identity(slot)))
            .filter(|identity| matches!(identity.state.load(Acquire), CLAIMED | DECLARED))
            .map(Name::of)
    }

    /// The task of this name. If the mission declares tasks for this cell, it must be one of them; if it declares none, any
    /// name is accepted while there are free slots.
    ///
    /// Returns immediately in a mission's cell. In a measurement, which starts programs together, it blocks until they may
    /// start: open tasks right before the loop that runs their jobs.
    ///
    /// A task has one writer: call this in the thread that runs its jobs, or move the [`Task`] there. A process that takes
    /// over from one that has ended continues its numbering.
    ///
    /// # Errors
    /// When there is no such task, this process has already opened it, or no slot is free.
    pub fn task(&self, name: &str) -> Result<Task, TaskError> {
        if !Name::is_good(name) {
            return Err(TaskError::BadName);
        }
        let Some(map) = self.map else {
            return Ok(Task::detached());
        };
        let slot = match self.find(map, name) {
            Some(slot) => slot,
            None if declares(map) => return Err(TaskError::Unknown),
            None => claim(map, name)?,
        };
        let identity = map.identity(slot);
        let me = this_program();
        if identity.writer.swap(me, AcqRel) == me {
            return Err(TaskError::AlreadyOpen);
        }
        pass(map.gate());
        Ok(Task::attached(Slot {
            counters: map.counters(slot),
            identity,
            ring: map.ring(slot),
            responses: map.responses(slot),
        }))
    }

    fn find(&self, map: Map, name: &str) -> Option<usize> {
        (0..map.slots()).find(|slot| {
            let identity = map.identity(*slot);
            matches!(identity.state.load(Acquire), CLAIMED | DECLARED)
                && Name::of(identity).as_bytes() == name.as_bytes()
        })
    }
}

/// Sleeps while the gate is closed.
fn pass(gate: &AtomicU32) {
    while gate.load(Acquire) == CLOSED {
        // SAFETY: the word outlives the call; there is no timeout, and no second word.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                gate.as_ptr(),
                libc::FUTEX_WAIT,
                CLOSED,
                core::ptr::null::<libc::timespec>(),
            );
        }
    }
}

fn declares(map: Map) -> bool {
    (0..map.slots()).any(|slot| map.identity(slot).state.load(Relaxed) == DECLARED)
}

fn claim(map: Map, name: &str) -> Result<usize, TaskError> {
    let free = |slot: &usize| {
        let state = &map.identity(*slot).state;
        state
            .compare_exchange(FREE, BEING_CLAIMED, AcqRel, Relaxed)
            .is_ok()
    };
    let slot = (0..map.slots()).find(free).ok_or(TaskError::NoSlotLeft)?;
    let identity = map.identity(slot);
    name::write(identity, name);
    identity.state.store(CLAIMED, Release);
    Ok(slot)
}
