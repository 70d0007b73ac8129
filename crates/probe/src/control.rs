//! The shared page, with which coordinator and cells exchange their states.
//!
//! One file on tmpfs, mapped by all: a head of 128 bytes and a slot of 128 bytes for each cell (two cache
//! lines each, so that cells that stamp at the same instant do not share one).

use std::sync::atomic::{AtomicI32, AtomicI64, AtomicU32, AtomicU64};

/// First word of the page.
pub const MAGIC: u32 = u32::from_le_bytes(*b"TCBP");
/// Version of the layout; coordinator and cell are the same binary, so it only catches mix-ups.
pub const VERSION: u32 = 2;

/// The part that every cell and the coordinator share.
#[repr(C, align(128))]
pub struct Head {
    /// [`MAGIC`].
    pub magic: AtomicU32,
    /// [`VERSION`].
    pub version: AtomicU32,
    /// Number of slots.
    pub cells: AtomicU32,
    /// Futex of the coordinator: grows with everything that it may wait for.
    pub events: AtomicU32,
    /// Futex of the armed cells: 0 until the instant is published, then [`GO`], or [`ABORT`].
    pub go: AtomicU32,
    /// Futex of the cells that are done: 0 until they may leave.
    pub leave: AtomicU32,
    /// The published instant, CLOCK_MONOTONIC ns; valid once `go` is [`GO`].
    pub go_ns: AtomicI64,
}

/// Value of [`Head::go`]: the instant is published.
pub const GO: u32 = 1;
/// Value of [`Head::go`]: the trial is called off.
pub const ABORT: u32 = 2;

/// The state of one cell.
#[repr(C, align(128))]
pub struct Slot {
    /// A [`State`] as a number.
    pub state: AtomicU32,
    /// Futex of the cell between presence and arming: 1 once the coordinator has placed it.
    pub permit: AtomicU32,
    /// errno of the failure, or 0.
    pub errno: AtomicI32,
    /// A [`Stage`] as a number: where it failed.
    pub stage: AtomicU32,
    /// Scheduling policy number that the kernel reports, once armed.
    pub policy: AtomicI32,
    /// Static priority that the kernel reports, once armed.
    pub priority: AtomicI32,
    /// 1 if all memory is locked, 2 if samples and stack are, 0 if nothing is.
    pub memory_locked: AtomicU32,
    /// Cpu on which the cell ran when armed.
    pub cpu: AtomicU32,
    /// First instruction of the payload, CLOCK_MONOTONIC ns.
    pub present_ns: AtomicI64,
    /// When the cell was armed, CLOCK_MONOTONIC ns.
    pub armed_ns: AtomicI64,
    /// First clock reading after the published instant, CLOCK_MONOTONIC ns.
    pub started_ns: AtomicI64,
    /// Cpu time of one step of work in ps, where the work was calibrated.
    pub step_ps: AtomicU64,
    /// Tries of that calibration.
    pub calibrations: AtomicU32,
    /// How far apart the least two tries were, in millionths.
    pub spread_ppm: AtomicU32,
    /// Pid of the payload as the coordinator sees it, 0 until it knows; for outside observers.
    pub pid: AtomicI32,
}

const _: () = assert!(size_of::<Head>() == 128 && size_of::<Slot>() == 128);

/// The life of a cell, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum State {
    /// Not started yet.
    Absent = 0,
    /// Runs, and waits to be placed in its scheduling group.
    Present = 1,
    /// Memory locked, pages touched, class set; sleeps on the barrier.
    Armed = 2,
    /// Loop ended in order; waits to be let go.
    Done = 3,
    /// Gave up; `stage` and `errno` say why.
    Failed = 4,
}

impl State {
    /// The state of a number; unknown numbers count as failed.
    pub fn from_number(number: u32) -> State {
        match number {
            0 => State::Absent,
            1 => State::Present,
            2 => State::Armed,
            3 => State::Done,
            _ => State::Failed,
        }
    }
}

/// Where a cell gave up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Stage {
    /// Nowhere.
    None = 0,
    /// Mapping the samples file.
    MapSamples = 1,
    /// Pinning itself to its cpu.
    Affinity = 2,
    /// Setting its class.
    Class = 3,
    /// The coordinator was silent for too long, or called the trial off.
    Abandoned = 4,
    /// Starting its program.
    Start = 5,
    /// Its program ended otherwise than with 0; the number beside it is the wait status.
    Exit = 6,
    /// Its program ended with 0 before its jobs were done; the number beside it is how many it had done.
    EndedEarly = 7,
    /// Its program reported no job.
    Silent = 8,
    /// Its program's reports were overwritten before they were read.
    Lost = 9,
    /// Its program reported a job that ends before it begins or is released.
    Nonsense = 10,
    /// Its program, which was to be stopped, ended on its own; the number beside it is the wait status.
    Ended = 11,
    /// Its program never caught up in a turn with the jobs due while it was stopped.
    Behind = 12,
    /// The virtual machine that it is failed; its log says how.
    Machine = 13,
    /// Running out of band; the number beside it is that of an [`evl::EvlError`].
    Evl = 14,
}

impl Stage {
    /// The cell's failed step, as the start of a sentence.
    pub fn doing(number: u32) -> &'static str {
        match number {
            1 => "cannot map its samples file",
            2 => "cannot pin itself to its cpu",
            3 => "cannot set its scheduling class",
            4 => "was abandoned by the coordinator",
            5 => "cannot start its program",
            _ => "failed",
        }
    }
}

/// Bytes of the page file for `cells` cells.
pub const fn file_bytes(cells: usize) -> usize {
    size_of::<Head>() + cells * size_of::<Slot>()
}
