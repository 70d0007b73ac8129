//! Ctrl-C and similar signals: a flag, and a wake-up for sleepers on the barrier.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use probe::Wake;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};

/// Listens for SIGINT, SIGTERM and SIGHUP until dropped; a second SIGINT acts as usual.
pub(crate) struct Interrupt {
    flag: Arc<AtomicBool>,
    wake: Arc<Mutex<Option<Wake>>>,
    handle: Handle,
}

impl Interrupt {
    pub(crate) fn listen() -> std::io::Result<Interrupt> {
        let flag = Arc::new(AtomicBool::new(false));
        let wake: Arc<Mutex<Option<Wake>>> = Arc::default();
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
        let handle = signals.handle();
        let (set, waker) = (Arc::clone(&flag), Arc::clone(&wake));
        std::thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || {
                for _ in signals.forever() {
                    set.store(true, Ordering::Release);
                    if let Ok(wake) = waker.lock()
                        && let Some(wake) = wake.as_ref()
                    {
                        wake.wake();
                    }
                }
            })?;
        Ok(Interrupt { flag, wake, handle })
    }

    /// Whether a signal has come.
    pub(crate) fn came(&self) -> bool {
        self.flag.load(Ordering::Acquire)
    }

    /// Whom to wake from now on.
    pub(crate) fn wakes(&self, wake: Option<Wake>) {
        if let Ok(mut place) = self.wake.lock() {
            *place = wake;
        }
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        self.handle.close();
    }
}
