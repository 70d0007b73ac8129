//! Counters of the machine: those of one task by perf_event_open(2), hardware ones where there is a PMU and software
//! ones otherwise, and the interrupts of each cpu.
//!
//! Reading is a system call. It disturbs neither the task nor its cpu while the task sleeps: the count of a task that
//! is not on a cpu rests in memory. Counters of a whole cpu are not offered: the kernel reads those by interrupting the
//! cpu that is being measured.

use std::fs::File;
use std::io::Read;
use std::os::fd::AsRawFd;

use crate::perf::{Event, Of};
use crate::root::Root;

model::choice! {
    /// Something that perf counts for a task.
    pub enum Counter {
        /// Misses of the last-level cache.
        CacheMisses = "cache misses",
        /// Accesses to it.
        CacheReferences = "cache references",
        /// Instructions retired.
        Instructions = "instructions",
        /// Cpu cycles.
        Cycles = "cycles",
        /// Page faults, minor and major.
        PageFaults = "page faults",
        /// Moves to another cpu.
        Migrations = "migrations",
        /// Context switches.
        ContextSwitches = "context switches",
    }
}

/// Those that need a PMU.
pub const HARDWARE: [Counter; 4] = [
    Counter::CacheMisses,
    Counter::CacheReferences,
    Counter::Instructions,
    Counter::Cycles,
];

/// Those that the kernel counts by itself.
pub const SOFTWARE: [Counter; 3] = [
    Counter::PageFaults,
    Counter::Migrations,
    Counter::ContextSwitches,
];

impl Counter {
    /// The name of a column.
    pub const fn column(self) -> &'static str {
        match self {
            Counter::CacheMisses => "cache_misses",
            Counter::CacheReferences => "cache_references",
            Counter::Instructions => "instructions",
            Counter::Cycles => "cycles",
            Counter::PageFaults => "page_faults",
            Counter::Migrations => "migrations",
            Counter::ContextSwitches => "context_switches",
        }
    }

    /// A number for records, above 0; it never changes its meaning.
    pub const fn code(self) -> u8 {
        match self {
            Counter::CacheMisses => 1,
            Counter::CacheReferences => 2,
            Counter::Instructions => 3,
            Counter::Cycles => 4,
            Counter::PageFaults => 5,
            Counter::Migrations => 6,
            Counter::ContextSwitches => 7,
        }
    }

    /// The counter of a [`Counter::code`].
    pub fn from_code(code: u8) -> Option<Counter> {
        (HARDWARE.into_iter().chain(SOFTWARE)).find(|counter| counter.code() == code)
    }

    /// Type and number in `linux/perf_event.h`.
    const fn event(self) -> (u32, u64) {
        use crate::perf::{HARDWARE, SOFTWARE};
        match self {
            Counter::Cycles => (HARDWARE, 0),
            Counter::Instructions => (HARDWARE, 1),
            Counter::CacheReferences => (HARDWARE, 2),
            Counter::CacheMisses => (HARDWARE, 3),
            Counter::PageFaults => (SOFTWARE, 2),
            Counter::ContextSwitches => (SOFTWARE, 3),
            Counter::Migrations => (SOFTWARE, 4),
        }
    }
}

/// Why something is not counted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CounterError {
    /// The machine has no such hardware, or the hypervisor hides it.
    #[error("no PMU here: this machine has no counter for {}", .0.name())]
    NoPmu(Counter),
    /// Not allowed.
    #[error("{} may not be counted: run as root, or lower kernel.perf_event_paranoid", .0.name())]
    Refused(Counter),
    /// The task has ended, or the kernel lacks perf.
    #[error("{} cannot be counted ({reason})", counter.name())]
    Other {
        /// The requested counter.
        counter: Counter,
        /// The system's answer.
        reason: String,
    },
}

/// Members of a group at most.
pub const MOST: usize = 4;

/// One reading of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reading {
    /// Time that the group was to count, ns: that of the task on a cpu.
    pub enabled_ns: u64,
    /// Time that it did, ns: less where the PMU was taken by others meanwhile.
    pub running_ns: u64,
    /// The counts since the beginning, in the order of [`TaskCounters::counters`]; 0 beyond.
    pub counts: [u64; MOST],
}

/// Counters of one task, counting until they are dropped.
#[derive(Debug)]
pub struct TaskCounters {
    /// Members of one group, the leader first; they are counted together or not at all.
    files: Vec<File>,
    counters: Vec<Counter>,
}

impl TaskCounters {
    /// Counts for task `tid` (0: the calling thread), its children excluded. Counters beyond the first [`MOST`] are
    /// left out.
    ///
    /// # Errors
    /// When one of them cannot be counted, the first reason.
    pub fn attach(tid: i32, counters: &[Counter]) -> Result<TaskCounters, CounterError> {
        let counters = &counters[..counters.len().min(MOST)];
        let mut files: Vec<File> = Vec::with_capacity(counters.len());
        for &counter in counters {
            let leader = files.first().map_or(-1, |file| file.as_raw_fd());
            files.push(open(tid, leader, counter)?);
        }
        Ok(TaskCounters {
            files,
            counters: counters.to_vec(),
        })
    }

    /// The counters, in the order of [`TaskCounters::read`].
    pub fn counters(&self) -> &[Counter] {
        &self.counters
    }

    /// Reads the group by one system call, without allocating.
    ///
    /// # Errors
    /// The kernel's error; a short answer is an error too.
    pub fn reading(&self) -> std::io::Result<Reading> {
        let Some(leader) = self.files.first() else {
            return Ok(Reading::default());
        };
        // The number of members, the two times, then the counts.
        let mut bytes = [0u8; 8 * (3 + MOST)];
        let length = (&mut &*leader).read(&mut bytes)?;
        if length < 8 * (3 + self.counters.len()) {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let (words, _) = bytes.as_chunks::<8>();
        let word = |at: usize| u64::from_ne_bytes(words[at]);
        Ok(Reading {
            enabled_ns: word(1),
            running_ns: word(2),
            counts: std::array::from_fn(|at| word(3 + at)),
        })
    }

    /// The counts since the beginning.
    ///
    /// # Errors
    /// As [`TaskCounters::reading`].
    pub fn read(&self) -> std::io::Result<Vec<u64>> {
        let reading = self.reading()?;
        Ok(reading.counts[..self.counters.len()].to_vec())
    }
}

fn open(tid: i32, leader: i32, counter: Counter) -> Result<File, CounterError> {
    const FORMAT_GROUP_AND_TIMES: u64 = 1 << 3 | 1 << 1 | 1;
    let (kind, config) = counter.event();
    let mut event = Event::new(kind, config);
    event.read_format = FORMAT_GROUP_AND_TIMES;
    event
        .open(Of::Thread(tid, leader))
        .map_err(|error| match error.raw_os_error() {
            Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV | libc::ENXIO) => {
                CounterError::NoPmu(counter)
            }
            Some(libc::EACCES | libc::EPERM) => CounterError::Refused(counter),
            _ => CounterError::Other {
                counter,
                reason: crate::root::reason_of(&error),
            },
        })
}

/// Interrupts that cpus have taken since boot, local timer and inter-processor ones included, by cpu number.
///
/// # Errors
/// If `/proc/interrupts` cannot be read.
pub fn interrupts() -> Result<Vec<(u32, u64)>, crate::root::Unreadable> {
    Ok(sums(&Root::live().read("/proc/interrupts")?))
}

fn sums(text: &str) -> Vec<(u32, u64)> {
    let mut lines = text.lines();
    let heads = lines.next().unwrap_or_default().split_whitespace();
    let mut sums: Vec<(u32, u64)> = heads
        .filter_map(|head| Some((head.strip_prefix("CPU")?.parse().ok()?, 0)))
        .collect();
    for line in lines {
        let Some((_, rest)) = line.split_once(':') else {
            continue;
        };
        // Lines without a count for each cpu, such as `ERR: 0`, are of no cpu.
        let counts: Vec<u64> = (rest.split_whitespace().map_while(|word| word.parse().ok()))
            .take(sums.len())
            .collect();
        if counts.len() == sums.len() {
            for (sum, count) in sums.iter_mut().zip(counts) {
                sum.1 = sum.1.saturating_add(count);
            }
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn software_counters_count_what_the_task_does() {
        let counters = match TaskCounters::attach(0, &SOFTWARE) {
            Ok(counters) => counters,
            // Where perf is not allowed, the reason must say so.
            Err(error) => {
                assert!(error.to_string().contains("count"), "{error}");
                return;
            }
        };
        let before = counters.read().unwrap();
        // SAFETY: a new private mapping of our own; every page is touched once and given back.
        unsafe {
            let length = 64 * 4096;
            let page = libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            assert_ne!(page, libc::MAP_FAILED);
            libc::madvise(page, length, libc::MADV_NOHUGEPAGE);
            for at in (0..length).step_by(4096) {
                page.cast::<u8>().add(at).write_volatile(1);
            }
            libc::munmap(page, length);
        }
        for _ in 0..5 {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let after = counters.read().unwrap();
        assert_eq!(after.len(), SOFTWARE.len());
        assert!(after[0] - before[0] >= 64, "faults {before:?} {after:?}");
        assert!(after[2] - before[2] >= 5, "switches {before:?} {after:?}");
    }

    #[test]
    fn a_reading_says_how_long_was_counted() {
        if let Ok(counters) = TaskCounters::attach(0, &SOFTWARE) {
            let reading = counters.reading().unwrap();
            std::hint::black_box((0..100_000u64).fold(0u64, |a, b| a ^ b.wrapping_mul(a)));
            let later = counters.reading().unwrap();
            assert!(
                later.enabled_ns > reading.enabled_ns,
                "{reading:?} {later:?}"
            );
            assert_eq!(later.enabled_ns, later.running_ns, "software always counts");
            assert_eq!(later.counts[SOFTWARE.len()..], [0]);
        }
    }

    #[test]
    fn codes_tell_counters_apart() {
        for counter in HARDWARE.into_iter().chain(SOFTWARE) {
            assert_eq!(Counter::from_code(counter.code()), Some(counter));
        }
        assert_eq!(Counter::from_code(0), None);
    }

    #[test]
    fn hardware_counters_count_or_say_why_not() {
        match TaskCounters::attach(0, &HARDWARE) {
            Ok(counters) => {
                let before = counters.read().unwrap();
                std::hint::black_box((0..100_000u64).fold(0u64, |a, b| a ^ b.wrapping_mul(a)));
                let after = counters.read().unwrap();
                assert!(after[2] > before[2], "{before:?} {after:?}");
            }
            Err(error) => assert!(error.to_string().len() > 20, "{error}"),
        }
    }

    #[test]
    fn interrupts_are_summed_for_each_cpu() {
        let text = "           CPU0       CPU2\n 24:  1  5  IO-APIC  5-edge  x\nLOC: 10 20 Local timer\nERR:  7\n";
        assert_eq!(sums(text), [(0, 11), (2, 25)]);
        assert!(!interrupts().unwrap().is_empty());
    }
}
