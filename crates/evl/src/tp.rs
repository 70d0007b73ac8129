//! Time partitions: on one cpu, windows that repeat for ever, each of which belongs to the threads of one partition.
//!
//! A schedule outlives whoever installed it. Removing it while a thread is in one of its partitions crashes kernels up to level 43,
//! where replacing it is refused instead: so it is replaced by one of idle windows first. By then the cpu may already be in the handler
//! of the tick that ends a window, which relies on the schedule and on its count of windows; so the idle ones are as many, none of them
//! ends soon, and the change waits until such a handler must be over.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use crate::abi::{self, PolicyRequest, Time, TpHead, TpWindow};
use crate::kernel::{self, Core, EvlError};

/// The variable that names a cell's partitions to the program in it, in the form of [`listed`](crate::listed).
pub const PARTITIONS: &str = "TIMECELL_EVL_PARTITION";

/// The most windows that a kernel can be built for.
const MOST_WINDOWS: usize = 1_024;

/// Length of an idle window, ns: more than any frame.
const IDLE_NS: u64 = 1_000_000_000_000;
/// In how long the handler of a tick is over, also in an emulator that is paused for a while.
const HANDLED: Duration = Duration::from_millis(100);

/// A window of a schedule; it begins where the one before ends, and the first one again after the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Length, ns; more than 0.
    pub length_ns: u64,
    /// The number of its partition, from 0; `None`: no thread of any partition runs in it.
    pub partition: Option<i32>,
}

/// The schedules of all cpus.
#[derive(Debug)]
pub struct Schedules {
    control: OwnedFd,
}

#[repr(C)]
struct Table {
    head: TpHead,
    windows: [TpWindow; MOST_WINDOWS],
}

impl Table {
    fn of(operation: i32, windows: &[Window]) -> Box<Table> {
        let mut table = Box::new(Table {
            head: TpHead {
                operation,
                windows: windows.len() as i32,
            },
            windows: [TpWindow::default(); MOST_WINDOWS],
        });
        let mut offset_ns = 0;
        for (to, window) in table.windows.iter_mut().zip(windows) {
            *to = TpWindow {
                offset: time(offset_ns),
                duration: time(window.length_ns),
                partition: window.partition.unwrap_or(abi::TP_IDLE),
                padding: 0,
            };
            offset_ns = offset_ns.saturating_add(window.length_ns);
        }
        table
    }
}

const NS: u64 = 1_000_000_000;

fn time(ns: u64) -> Time {
    Time {
        seconds: (ns / NS) as i64,
        nanoseconds: (ns % NS) as i64,
    }
}

impl Schedules {
    /// Those of the running kernel.
    ///
    /// # Errors
    /// If it has no EVL, or one of an unknown level.
    pub fn open() -> Result<Schedules, EvlError> {
        Core::open()?;
        let control = kernel::open(0)?;
        Ok(Schedules { control })
    }

    fn ask(&self, cpu: u32, asked: &Table, answer: Option<&mut Table>) -> io::Result<()> {
        let request = PolicyRequest {
            policy: abi::SCHED_TP,
            cpu: cpu as i32,
            asked: &raw const *asked as u64,
            answer: answer.map_or(0, |table| &raw mut *table as u64),
        };
        kernel::ioctl(&self.control, abi::SCHEDCTL, &raw const request as usize)
    }

    fn order(&self, cpu: u32, asked: &Table) -> Result<(), EvlError> {
        self.ask(cpu, asked, None)
            .map_err(|source| match source.raw_os_error() {
                Some(libc::EBUSY) => EvlError::Partitioned { cpu },
                _ => EvlError::Cpu {
                    cpu,
                    what: kernel::SCHEDULE,
                    source,
                },
            })
    }

    /// Has a cpu of a kernel with `most` windows go through these from now on, instead of those that it had, for which it waits a while.
    ///
    /// # Errors
    /// If threads are in the partitions that it has, or the core refuses: there are more windows than `most`, or none.
    pub fn run(&self, cpu: u32, windows: &[Window], most: usize) -> Result<(), EvlError> {
        self.rest(cpu, most)?;
        let within = &windows[..windows.len().min(MOST_WINDOWS)];
        self.order(cpu, &Table::of(abi::TP_INSTALL, within))?;
        self.order(cpu, &Table::of(abi::TP_START, &[]))
    }

    /// Removes the schedule of a cpu, for which it waits a while; one that is gone already counts as removed.
    ///
    /// # Errors
    /// If threads are in its partitions; it stays then.
    pub fn remove(&self, cpu: u32, most: usize) -> Result<(), EvlError> {
        match self.rest(cpu, most)? {
            true => self.order(cpu, &Table::of(abi::TP_UNINSTALL, &[])),
            false => Ok(()),
        }
    }

    /// Has a cpu go through idle windows only, of which none ends soon; whether it had a schedule.
    fn rest(&self, cpu: u32, most: usize) -> Result<bool, EvlError> {
        let Some(windows) = self.get(cpu, most)? else {
            return Ok(false);
        };
        let idle = Window {
            length_ns: IDLE_NS,
            partition: None,
        };
        let idle = vec![idle; windows.len()];
        self.order(cpu, &Table::of(abi::TP_INSTALL, &idle))?;
        std::thread::sleep(HANDLED);
        Ok(true)
    }

    /// The windows of a cpu, of a kernel with `most` of them; `None`: it has no schedule.
    ///
    /// # Errors
    /// If the core refuses.
    pub fn get(&self, cpu: u32, most: usize) -> Result<Option<Vec<Window>>, EvlError> {
        let mut asked = Table::of(abi::TP_GET, &[]);
        asked.head.windows = most.min(MOST_WINDOWS) as i32;
        let mut answer = Table::of(0, &[]);
        let asking = self.ask(cpu, &asked, Some(&mut answer));
        asking.map_err(|source| EvlError::Cpu {
            cpu,
            what: kernel::SCHEDULE,
            source,
        })?;
        // Nothing is written where there is none.
        Ok((answer.head.operation > 0).then(|| read(&answer)))
    }
}

fn read(answer: &Table) -> Vec<Window> {
    let count = usize::try_from(answer.head.operation).unwrap_or(0);
    let ns = |time: Time| {
        let seconds = time.seconds.unsigned_abs().saturating_mul(NS);
        seconds.saturating_add(time.nanoseconds.unsigned_abs())
    };
    (answer.windows.iter().take(count))
        .map(|window| Window {
            length_ns: ns(window.duration),
            partition: (window.partition >= 0).then_some(window.partition),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes that a C compiler writes for the same values.
    #[test]
    fn a_schedule_has_its_bytes_and_is_read_again() {
        let windows = [
            Window {
                length_ns: 1_500_000_000,
                partition: Some(2),
            },
            Window {
                length_ns: 7,
                partition: None,
            },
        ];
        let mut table = Table::of(abi::TP_INSTALL, &windows);
        // SAFETY: head and two windows, without padding.
        let bytes = unsafe { std::slice::from_raw_parts((&raw const *table).cast::<u8>(), 88) };
        let word = |at: usize| i64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        assert_eq!(bytes[..8], [0, 0, 0, 0, 2, 0, 0, 0]);
        let words: Vec<i64> = (8..88).step_by(8).map(word).collect();
        let idle = 0xffff_ffff;
        let golden = [0, 0, 1, 500_000_000, 2, 1, 500_000_000, 0, 7, idle];
        assert_eq!(words, golden);
        table.head.operation = 2;
        assert_eq!(read(&table), windows);
        // Others may have installed anything.
        table.windows[1].duration.seconds = i64::MAX;
        table.head.operation = i32::MAX;
        let read = read(&table);
        assert_eq!((read.len(), read[1].length_ns), (MOST_WINDOWS, u64::MAX));
    }

    #[test]
    fn a_kernel_without_the_core_has_no_schedules() {
        if !std::path::Path::new(crate::CONTROL).exists() {
            let why = Schedules::open().unwrap_err().to_string();
            assert!(why.contains("no kernel with EVL"), "{why}");
        }
    }
}
