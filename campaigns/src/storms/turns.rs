//! The order of attacks: turns follow each other on CLOCK_MONOTONIC, which all cells see alike.

/// Length of a turn, ns.
pub const TURN_NS: u64 = 2_000_000_000;
/// At the ends of a turn nobody attacks and nothing counts, ns: the remains of one attack are not the next one's.
pub const QUIET_NS: u64 = 100_000_000;

/// A kind of turn.
pub struct Turn {
    /// Heading of its column.
    pub name: &'static str,
    /// The cell that attacks; `None`: nobody does.
    pub cell: Option<&'static str>,
    /// Whether it is where best-effort cells of a mission are by default: on none of its cpus.
    pub apart: bool,
    /// Its rights beyond the defaults, as lines of the mission file.
    pub rights: &'static str,
}

/// One entry for each kind.
pub const TURNS: &[Turn] = &[
    Turn {
        name: "alone",
        cell: None,
        apart: false,
        rights: "",
    },
    Turn {
        name: "critical cpu, limits lifted",
        cell: Some("lifted"),
        apart: false,
        rights: "pending_signals = 100000\nopen_files = 20000\npids = 1024\n",
    },
    Turn {
        name: "critical cpu, default limits",
        cell: Some("limited"),
        apart: false,
        rights: "",
    },
    Turn {
        name: "other cpus, default limits",
        cell: Some("apart"),
        apart: true,
        rights: "",
    },
];

/// CLOCK_MONOTONIC, ns.
pub fn now_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: a structure on the stack.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Sleeps until then, CLOCK_MONOTONIC.
pub fn sleep_until(ns: u64) {
    let time = libc::timespec {
        tv_sec: (ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (ns % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: a structure on the stack; an interrupted sleep is begun again.
    while unsafe {
        libc::clock_nanosleep(
            libc::CLOCK_MONOTONIC,
            libc::TIMER_ABSTIME,
            &raw const time,
            std::ptr::null_mut(),
        )
    } == libc::EINTR
    {}
}

/// Which kind of turn an instant belongs to, and how far into it it is, ns.
pub fn at(ns: u64) -> (usize, u64) {
    ((ns / TURN_NS) as usize % TURNS.len(), ns % TURN_NS)
}
