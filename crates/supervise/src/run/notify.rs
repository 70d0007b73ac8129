//! Messages to the service manager.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;

/// The messages to the service manager (sd_notify(3)): readiness, status, signs of life, the end. Silent if no service
/// manager asks.
#[derive(Debug, Default)]
pub struct Notify {
    to: Option<(UnixDatagram, SocketAddr)>,
    /// How often a sign of life is due, ns.
    every_ns: Option<i64>,
    next_ns: i64,
}

impl Notify {
    /// From the environment: `NOTIFY_SOCKET`, and `WATCHDOG_USEC` and `WATCHDOG_PID` (sd_watchdog_enabled(3)). They are
    /// for the supervisor only: the caller removes them for processes that it starts.
    pub fn of_environment() -> Notify {
        let text = |name: &str| std::env::var(name).ok();
        let Some(to) = text("NOTIFY_SOCKET").and_then(|path| open(&path).ok()) else {
            return Notify::default();
        };
        let own = std::process::id();
        let for_us = text("WATCHDOG_PID").is_none_or(|pid| pid.trim().parse() == Ok(own));
        let timeout_us: Option<i64> = (text("WATCHDOG_USEC").filter(|_| for_us))
            .and_then(|us| us.trim().parse().ok())
            .filter(|us| *us > 0);
        Notify {
            to: Some(to),
            // Half of it, as sd_watchdog_enabled(3) recommends.
            every_ns: timeout_us.map(|us| us.saturating_mul(1_000) / 2),
            next_ns: timecell_client::now_ns(),
        }
    }

    /// The mission is admitted and its cells were started.
    pub(super) fn ready(&mut self, status: &str) {
        self.say(&format!("READY=1\nSTATUS={status}"));
    }

    /// The end has begun.
    pub(super) fn stopping(&mut self) {
        self.say("STOPPING=1\nSTATUS=ending all cells");
    }

    /// A sign of life, if one is due.
    pub(super) fn beat(&mut self) {
        let now = timecell_client::now_ns();
        if let Some(every) = self.every_ns.filter(|_| self.next_ns <= now) {
            self.next_ns = now.saturating_add(every);
            self.say("WATCHDOG=1");
        }
    }

    /// When the next sign of life is due, CLOCK_MONOTONIC ns.
    pub(super) fn next_ns(&self) -> Option<i64> {
        self.every_ns.map(|_| self.next_ns)
    }

    fn say(&mut self, text: &str) {
        if let Some((socket, to)) = &self.to {
            // A manager that does not listen cannot be told; it will notice the silence.
            let _ = socket.send_to_addr(text.as_bytes(), to);
        }
    }
}

fn open(path: &str) -> io::Result<(UnixDatagram, SocketAddr)> {
    let to = match path.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(Path::new(path))?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    Ok((socket, to))
}
