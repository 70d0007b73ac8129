//! The bytes of a samples file.

use std::mem::{offset_of, size_of};

use host::counters::MOST;
use model::Metric;
use serde::{Deserialize, Serialize};

/// First eight bytes of every samples file.
pub const MAGIC: [u8; 8] = *b"TCSAMPL\n";
/// Version of the layout.
pub const VERSION: u32 = 1;
/// Bytes before the first record: one page, so that records start on a new page.
pub const HEADER_BYTES: usize = 4096;
/// Bytes of one record.
pub const RECORD_BYTES: usize = size_of::<Sample>();

/// One executed job. Instants are CLOCK_MONOTONIC nanoseconds.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sample {
    /// Activation number from 0. Numbers left out are skipped activations.
    pub index: u32,
    /// Activations skipped between the job before and this one.
    pub skipped: u32,
    /// When the job was released.
    pub release_ns: i64,
    /// When it began to run.
    pub start_ns: i64,
    /// When its work was done; equals the start for `timer`.
    pub end_ns: i64,
}

/// The header: the request, the cell's real class and cpu, and the sums that the records must match.
///
/// `Default` is all zero, which no reader accepts.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Header {
    /// [`MAGIC`].
    pub magic: [u8; 8],
    /// [`VERSION`].
    pub version: u32,
    /// [`HEADER_BYTES`].
    pub header_bytes: u32,
    /// [`RECORD_BYTES`].
    pub record_bytes: u32,
    /// 1 once the probe has ended its loop normally.
    pub complete: u32,
    /// Planned activations.
    pub planned: u64,
    /// Records written so far.
    pub count: u64,
    /// Skipped activations, including those after the last record. `count + skipped == planned` when complete.
    #[serde(alias = "missed")]
    pub skipped: u64,
    /// The instant that the barrier published, CLOCK_MONOTONIC ns.
    pub go_ns: i64,
    /// First clock reading after that instant: the cell's actual start.
    pub started_ns: i64,
    /// Clock reading after the last job.
    pub ended_ns: i64,
    /// Time between releases in ns.
    pub period_ns: i64,
    /// 1 `mac`, 2 `timer`, 3 a program, 4 one that neither ends nor reports its jobs.
    pub work: u32,
    /// 1 periodic, 2 relative.
    pub pacing: u32,
    /// Multiply-accumulate steps of one job; 0 for `timer`.
    pub steps: u32,
    /// Cpu on which the loop began.
    pub cpu_first: u32,
    /// Cpu on which the loop ended.
    pub cpu_last: u32,
    /// Scheduling policy number that the kernel reported when armed (sched(7)).
    pub policy: i32,
    /// Static priority that the kernel reported when armed.
    pub priority: i32,
    /// 1 if all memory was locked when armed, 2 if only samples and stack were, 0 if nothing was.
    pub memory_locked: u32,
    /// Cpu time of the measuring thread in the loop, ns.
    pub cpu_time_ns: u64,
    /// The probe's own cost: median of one clock reading, ns.
    pub clock_cost_ns: u64,
    /// The probe's own cost: mean of recording one job without work or sleep, ns.
    pub loop_cost_ns: u64,
    /// Minor page faults in the loop; more than 0 means that memory was not locked.
    pub minor_faults: u64,
    /// Major page faults in the loop.
    pub major_faults: u64,
    /// Voluntary context switches in the loop.
    pub voluntary_switches: u64,
    /// Involuntary context switches in the loop.
    pub involuntary_switches: u64,
    /// Whether the thread counted its own activations, a [`Counted`]; 0 in records from before this existed.
    #[serde(default)]
    pub counted: u32,
    /// Events counted for each activation: codes of [`host::counters::Counter`], 0 for none.
    #[serde(default)]
    pub counters: [u8; MOST],
    /// Cost of one reading of them before the release: the median of some readings after short sleeps, ns. Also set if
    /// reading was refused as too expensive.
    #[serde(default)]
    pub count_cost_ns: u64,
    /// Offset of the counts: a row of [`COUNT_BYTES`] for each record, in the order of records. 0: the file has no room for
    /// any.
    #[serde(default)]
    pub counts_at: u64,
    /// Time that the counters were enabled in the loop, ns of the thread's cpu time.
    #[serde(default)]
    pub count_enabled_ns: u64,
    /// Time that they really counted, ns: less if the PMU was shared.
    #[serde(default)]
    pub count_running_ns: u64,
    /// Cost of one reading in the loop: the mean, ns.
    #[serde(default)]
    pub count_loop_cost_ns: u64,
    /// Jobs that the kernel billed more cpu time than they declare; 0 if they do not check it.
    #[serde(default)]
    pub over_declared: u64,
    /// Level of the ABI of EVL if the thread ran out of band, and 0 if not.
    #[serde(default)]
    pub evl_level: u32,
    /// Switches in band in the loop: each is a fault.
    #[serde(default)]
    pub in_band_switches: u32,
    /// Those with a known cause: signal, system call, fault, watchdog.
    #[serde(default)]
    pub in_band_causes: [u32; 4],
}

/// Whether a thread counted its own activations, or why not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Counted {
    /// Not requested.
    NotAsked = 0,
    /// With hardware counters.
    Hardware = 1,
    /// With the kernel's counters, since there is no PMU.
    Software = 2,
    /// One reading would take too much of the period.
    TooDear = 3,
    /// The thread is not permitted to count, or the kernel cannot.
    Refused = 4,
}

impl Counted {
    /// The meaning of a header's number; `None` if this version does not know it.
    pub fn of(header: &Header) -> Option<Counted> {
        use Counted::{Hardware, NotAsked, Refused, Software, TooDear};
        [NotAsked, Hardware, Software, TooDear, Refused]
            .into_iter()
            .find(|one| *one as u32 == header.counted)
    }

    /// Whether there is a row of counts for each record.
    pub fn has_counts(self) -> bool {
        matches!(self, Counted::Hardware | Counted::Software)
    }
}

/// Counts of one activation, in the order of [`Header::counters`]: from the end of the job before, over the way to sleep
/// and the wake-up, to the end of its own. `u32::MAX`: as many or more. The first row of a file holds all since the cell
/// was armed.
pub type CountRow = [u32; MOST];

/// Bytes of a row of counts.
pub const COUNT_BYTES: usize = size_of::<CountRow>();

const _: () = {
    assert!(size_of::<Sample>() == 32);
    assert!(offset_of!(Sample, release_ns) == 8 && offset_of!(Sample, end_ns) == 24);
    assert!(size_of::<Header>() == 248);
    assert!(offset_of!(Header, planned) == 24 && offset_of!(Header, count) == 32);
    assert!(offset_of!(Header, work) == 80 && offset_of!(Header, cpu_time_ns) == 112);
    assert!(offset_of!(Header, counted) == 168 && offset_of!(Header, counts_at) == 184);
    assert!(COUNT_BYTES == 16);
    assert!(
        cfg!(target_endian = "little"),
        "the layout is little-endian"
    );
};

impl Header {
    /// A header with the constants of this version filled in.
    pub fn new() -> Header {
        Header {
            magic: MAGIC,
            version: VERSION,
            header_bytes: HEADER_BYTES as u32,
            record_bytes: RECORD_BYTES as u32,
            ..Header::default()
        }
    }

    /// The header's bytes, as they stand in a file.
    pub fn to_bytes(&self) -> [u8; size_of::<Header>()] {
        // SAFETY: Header is repr(C) of integers without padding (its size is asserted above).
        unsafe { std::mem::transmute(*self) }
    }

    /// Activations that neither ran nor were counted as skipped: a killed cell leaves some.
    pub fn unexplained(&self) -> u64 {
        let accounted = self.count.saturating_add(self.skipped);
        self.planned.saturating_sub(accounted)
    }

    /// Reads the bytes of a header, without checks.
    pub fn from_bytes(bytes: &[u8; size_of::<Header>()]) -> Header {
        // SAFETY: every bit pattern is a valid Header, which is repr(C) of integers without padding.
        unsafe { std::mem::transmute(*bytes) }
    }
}

impl Sample {
    /// The record's bytes.
    pub fn to_bytes(&self) -> [u8; RECORD_BYTES] {
        // SAFETY: Sample is repr(C) of integers without padding.
        unsafe { std::mem::transmute(*self) }
    }

    /// Reads the bytes of a record; every bit pattern is valid.
    pub fn from_bytes(bytes: &[u8; RECORD_BYTES]) -> Sample {
        // SAFETY: every bit pattern is a valid Sample.
        unsafe { std::mem::transmute(*bytes) }
    }

    /// The metric of the job, ns.
    pub fn of(&self, metric: Metric) -> i64 {
        match metric {
            Metric::WakeupLatency | Metric::StartTime => self.wakeup_latency_ns(),
            // The time in which the program runs is not part of its sample.
            Metric::ExecutionTime | Metric::ExitTime => self.execution_time_ns(),
            Metric::ResponseTime => self.response_time_ns(),
        }
    }

    /// How late the job began: start - release, ns. Early wake-ups are negative and kept so.
    pub fn wakeup_latency_ns(&self) -> i64 {
        self.start_ns.saturating_sub(self.release_ns)
    }

    /// How long the work took, preemption included: end - start, ns.
    pub fn execution_time_ns(&self) -> i64 {
        self.end_ns.saturating_sub(self.start_ns)
    }

    /// From release to completion: end - release, ns.
    pub fn response_time_ns(&self) -> i64 {
        self.end_ns.saturating_sub(self.release_ns)
    }
}

/// Size in bytes of a samples file that can hold `jobs` records.
pub const fn file_bytes(jobs: u64) -> u64 {
    HEADER_BYTES as u64 + jobs * RECORD_BYTES as u64
}

/// Size in bytes of a samples file that can hold `jobs` records and a row of counts for each.
pub const fn counted_file_bytes(jobs: u64) -> u64 {
    file_bytes(jobs) + jobs * COUNT_BYTES as u64
}
