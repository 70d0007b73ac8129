//! The signals that end an example early: Ctrl-C (SIGINT) and SIGTERM.

use std::sync::atomic::{AtomicBool, Ordering};

/// A signal came.
static CAME: AtomicBool = AtomicBool::new(false);

extern "C" fn on_signal(_: libc::c_int) {
    CAME.store(true, Ordering::Relaxed);
}

/// Has them noted, in place of ending the process and leaving its cells behind.
pub fn note() {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let handler = on_signal as extern "C" fn(libc::c_int);
        // SAFETY: the handler stores to an atomic only.
        unsafe { libc::signal(signal, handler as libc::sighandler_t) };
    }
}

/// Whether one has come.
pub fn came() -> bool {
    CAME.load(Ordering::Relaxed)
}
