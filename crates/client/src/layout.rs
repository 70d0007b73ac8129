//! The layout of the page, byte for byte, and the meaning of its numbers. `include/timecell.h` has the same in C.
//!
//! In this order, without gaps: one [`Head`], a [`Counters`] for each slot, an [`Identity`] for each slot, a [`Ring`] for each
//! slot, a [`Responses`] for each slot. A page of an earlier timecell may be too short for the last, and a program with an
//! earlier client leaves them 0. A slot is one task. Numbers are in the byte order of the machine, times are [`crate::now_ns`].
//!
//! **Writers.** The supervisor writes head and identities before the cell starts. From then on each slot has one writer, the
//! thread that runs the task's jobs. Jobs are numbered from 0. Job k stands in record `k % RING` of the ring, so that the last
//! [`RING`] jobs can be seen.
//!
//! **In which order** (job k, all stores relaxed unless said): release fence; number, release, begin, end = 0 of the record;
//! `begun` = k + 1 (release). At its end: `end_ns`; `late`, `worst_response_ns`; its bucket, `responses_ns`; `ended` = k + 1
//! (release).
//!
//! **How it is read without tearing.** Read `ended`; acquire fence; read the records; acquire fence; read `begun` again. A record
//! k below `ended` is intact if k + RING > `begun`: its slot is reused only while `begun` is k + RING or more. Records
//! overwritten meanwhile are known to be missing. Neither side ever waits for the other, and a writer that was killed at any
//! instruction leaves everything before its last job readable.

use core::ffi::CStr;
use core::sync::atomic::{AtomicI64, AtomicU8, AtomicU32, AtomicU64};

/// First word of a page: `TIMECELL` on a little-endian machine.
pub const MAGIC: u64 = 0x4c4c_4543_454d_4954;
/// Version of this layout. New fields use reserved space and do not change it.
pub const VERSION: u32 = 1;
/// Number of jobs of a task that can be seen at once.
pub const RING: usize = 32;
/// Maximum number of slots of a page.
pub const MAX_SLOTS: usize = 4096;
/// Longest name of a task in bytes: 64 characters of UTF-8.
pub const NAME_BYTES: usize = 256;
/// Environment variable that names the page.
pub const VARIABLE: &CStr = c"TIMECELL_PAGE";
/// Where the page is if the variable is not set.
pub const USUAL_PATH: &CStr = c"/cell/page";

/// Beginning of a page.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Head {
    /// [`MAGIC`].
    pub magic: AtomicU64,
    /// [`VERSION`].
    pub version: AtomicU32,
    /// Number of slots, 1 to [`MAX_SLOTS`].
    pub slots: AtomicU32,
    /// How often the cell has been started.
    pub generation: AtomicU64,
    /// [`CLOSED`] while a measurement holds its programs back: opening a task waits until it is not (futex(2)).
    pub gate: AtomicU32,
    /// 0.
    pub reserved_word: AtomicU32,
    /// 0.
    pub reserved: [AtomicU64; 4],
}

/// Value of [`Head::gate`] while opening a task must wait; any other value lets it proceed.
pub const CLOSED: u32 = 1;

/// Counters that change with every job, in their own cache line.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Counters {
    /// Number of the last job that was begun, plus one.
    pub begun: AtomicU64,
    /// Number of the last job that is over, plus one; equal to `begun`, or one less while a job runs.
    pub ended: AtomicU64,
    /// Jobs whose response time was longer than the deadline.
    pub late: AtomicU64,
    /// Jobs that were begun but never ended: their process ended, or the next job was begun.
    pub abandoned: AtomicU64,
    /// Longest response time of all jobs in ns.
    pub worst_response_ns: AtomicI64,
    /// Number of heartbeats of the task.
    pub heartbeats: AtomicU64,
    /// Sum of the response times in ns of the jobs that [`Responses`] counts; a negative one counts as 0.
    pub responses_ns: AtomicU64,
    /// 0.
    pub reserved: AtomicU64,
}

/// The identity of a slot's task.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Identity {
    /// One of [`FREE`], [`BEING_CLAIMED`], [`CLAIMED`] and [`DECLARED`].
    pub state: AtomicU32,
    /// A number that the writing program has drawn for itself; 0: there is no writer.
    pub writer: AtomicU32,
    /// Deadline relative to the release in ns; 0: none.
    pub deadline_ns: AtomicI64,
    /// Length of the name.
    pub name_bytes: AtomicU32,
    /// Id, in the cell's pid namespace, of the thread that begins the jobs; 0: none has begun one, or the application does not say.
    pub thread: AtomicU32,
    /// 0.
    pub reserved: [AtomicU32; 10],
    /// The name in UTF-8.
    pub name: [AtomicU8; NAME_BYTES],
}

/// The slot is free.
pub const FREE: u32 = 0;
/// A process is writing the slot's name.
pub const BEING_CLAIMED: u32 = 1;
/// The application has named the slot.
pub const CLAIMED: u32 = 2;
/// The mission has named the slot.
pub const DECLARED: u32 = 3;

/// One job.
#[repr(C)]
#[derive(Debug)]
pub struct JobRecord {
    /// Its number.
    pub number: AtomicU64,
    /// When it was released, in ns.
    pub release_ns: AtomicI64,
    /// When it began, in ns.
    pub begin_ns: AtomicI64,
    /// When it ended, in ns; 0: it has not ended.
    pub end_ns: AtomicI64,
}

/// The last jobs of a task.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Ring(pub [JobRecord; RING]);

/// Number of buckets of a task's response times.
pub const BUCKETS: usize = 24;
/// The end of the first bucket is 2 to this power, in ns.
const FIRST_END: u32 = 10;

/// Jobs by their response times: how many were in each bucket. The first ends at 1,024 ns, each of the others at twice the end
/// of the one before, which it includes; the last has no end.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Responses(pub [AtomicU64; BUCKETS]);

/// The bucket of a response time in ns.
#[inline]
pub const fn bucket_of(response_ns: i64) -> usize {
    if response_ns <= 0 {
        return 0;
    }
    let above = (response_ns.unsigned_abs() - 1) >> FIRST_END;
    let bucket = (u64::BITS - above.leading_zeros()) as usize;
    if bucket < BUCKETS {
        bucket
    } else {
        BUCKETS - 1
    }
}

/// The longest response time of a bucket in ns; `None` for the last.
pub const fn bucket_end_ns(bucket: usize) -> Option<u64> {
    if bucket + 1 < BUCKETS {
        Some(1 << (bucket + FIRST_END as usize))
    } else {
        None
    }
}

const HEAD: usize = size_of::<Head>();
const SLOT: usize = size_of::<Counters>() + size_of::<Identity>() + size_of::<Ring>();
const PAGE: usize = 4096;

const _: () = {
    assert!(HEAD == 64 && size_of::<Counters>() == 64);
    assert!(size_of::<Identity>() == 320 && size_of::<Ring>() == 1024);
    assert!(size_of::<Responses>() == 192);
};

/// Length in bytes of a page with this number of slots: a multiple of 4,096.
pub const fn page_bytes(slots: usize) -> usize {
    responses_at(slots, slots).div_ceil(PAGE) * PAGE
}

/// The least length of a page with this number of slots: that of one without [`Responses`].
pub const fn least_bytes(slots: usize) -> usize {
    (HEAD + slots * SLOT).div_ceil(PAGE) * PAGE
}

/// Byte offset of the counters of a slot.
pub const fn counters_at(slot: usize) -> usize {
    HEAD + slot * size_of::<Counters>()
}

/// Byte offset of the identity of a slot, in a page with this number of slots.
pub const fn identity_at(slots: usize, slot: usize) -> usize {
    counters_at(slots) + slot * size_of::<Identity>()
}

/// Byte offset of the ring of a slot, in a page with this number of slots.
pub const fn ring_at(slots: usize, slot: usize) -> usize {
    identity_at(slots, slots) + slot * size_of::<Ring>()
}

/// Byte offset of the response times of a slot, in a page with this number of slots.
pub const fn responses_at(slots: usize, slot: usize) -> usize {
    ring_at(slots, slots) + slot * size_of::<Responses>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_is_aligned_and_nothing_overlaps() {
        for slots in [1, 2, 3, 31, 32, MAX_SLOTS] {
            let last = slots - 1;
            assert_eq!(identity_at(slots, 0), counters_at(last) + 64);
            assert_eq!(ring_at(slots, 0), identity_at(slots, last) + 320);
            assert_eq!(responses_at(slots, 0), ring_at(slots, last) + 1024);
            assert!(responses_at(slots, last) + 192 <= page_bytes(slots));
            assert!((ring_at(slots, slots)..=page_bytes(slots)).contains(&least_bytes(slots)));
            assert_eq!(ring_at(slots, last) % 64, 0);
        }
        assert_eq!(page_bytes(2), 4096);
        assert_eq!(page_bytes(3), 8192);
    }

    #[test]
    fn each_response_time_is_in_the_bucket_that_it_does_not_exceed() {
        assert_eq!(
            [bucket_of(i64::MIN), bucket_of(0), bucket_of(1_024)],
            [0; 3]
        );
        for bucket in 1..BUCKETS - 1 {
            let end_ns = bucket_end_ns(bucket).unwrap().cast_signed();
            assert_eq!(bucket_of(end_ns), bucket);
            assert_eq!(bucket_of(end_ns + 1), bucket + 1);
            assert_eq!(bucket_of(end_ns / 2 + 1), bucket);
        }
        assert_eq!(bucket_of(i64::MAX), BUCKETS - 1);
        assert_eq!(bucket_end_ns(BUCKETS - 1), None);
    }
}
