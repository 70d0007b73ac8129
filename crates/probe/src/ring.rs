//! The ring of a histogram run: a shared file of fixed size that the loop fills and the coordinator empties.
//!
//! The loop does the same as in a raw run, one 32-byte record and one count, at addresses that come round again. A
//! histogram kept by the loop itself would cost it a search for the bin and a read-modify-write for each metric, on
//! addresses that depend on the measured values, and would forget which job was the slow one.
//!
//! One writer, one reader, no lock. The loop looks at the reader's place only when the ring seems full to it, so
//! that no cache line goes back and forth for each job. A record that finds no room is lost, and counted: the next
//! record's index tells the reader how many.

use std::io;
use std::path::Path;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::atomic::{AtomicU64, fence};

use host::foreign_file;
use record::samples::layout::{HEADER_BYTES, Header, Sample};

use crate::map::Map;
use crate::measure::Recorder;

/// Where in the header page the reader's place stands: on a cache line of its own.
const READ_AT: usize = 2048;
/// Time that a ring holds without being read, ns: the reader is an ordinary process of a loaded machine.
const HOLDS_NS: i64 = 2_000_000_000;
/// Fewest records of a ring.
const LEAST: u64 = 1 << 10;
/// Most records of a ring: 8 MB.
const MOST: u64 = 1 << 18;

/// Records of the ring for jobs of this period, a power of two: two seconds' worth, 1,024 to 262,144.
pub fn ring_records(period_ns: i64) -> u64 {
    (HOLDS_NS / period_ns.max(1))
        .unsigned_abs()
        .next_power_of_two()
        .clamp(LEAST, MOST)
}

fn records_of(map: &Map) -> usize {
    let room = map.len().saturating_sub(HEADER_BYTES) / size_of::<Sample>();
    if room == 0 { 0 } else { 1 << room.ilog2() }
}

fn reader_place(map: &Map) -> &AtomicU64 {
    // SAFETY: the page is longer than this offset, aligned, and both sides use atomics on it.
    unsafe { &*map.as_ptr().add(READ_AT).cast::<AtomicU64>() }
}

/// The loop's end.
pub(crate) struct Ring<'a> {
    map: &'a Map,
    mask: usize,
    /// Records written so far.
    written: usize,
    /// The reader's place when last looked at.
    read: usize,
    /// Activations skipped since the last record that found room.
    owed: u32,
    lost: u32,
}

impl<'a> Ring<'a> {
    /// The ring in `map`, or `None` if it has no room for a record.
    pub(crate) fn new(map: &'a Map) -> Option<Ring<'a>> {
        let records = records_of(map);
        (records > 0).then(|| Ring {
            map,
            mask: records - 1,
            written: 0,
            read: 0,
            owed: 0,
            lost: 0,
        })
    }

    fn header(&self) -> *mut Header {
        self.map.as_ptr().cast()
    }
}

impl Recorder for Ring<'_> {
    fn capacity(&self) -> usize {
        self.mask + 1
    }

    fn read_header(&self) -> Header {
        // SAFETY: the mapping is page-aligned and longer than a header, which only this process writes.
        unsafe { self.header().read() }
    }

    fn write_header(&mut self, header: &Header) {
        // SAFETY: as above.
        unsafe { self.header().write(*header) }
    }

    #[inline(always)]
    fn put(&mut self, sample: Sample) {
        if self.written - self.read > self.mask {
            self.read = reader_place(self.map).load(Acquire) as usize;
            if self.written - self.read > self.mask {
                self.lost += 1;
                self.owed += sample.skipped;
                return;
            }
        }
        let sample = Sample {
            skipped: sample.skipped + self.owed,
            ..sample
        };
        self.owed = 0;
        // SAFETY: the masked index is below the number of records; the reader is past this one, and the fence keeps
        // the record before the count.
        unsafe {
            let records = self.map.as_ptr().add(HEADER_BYTES).cast::<Sample>();
            records.add(self.written & self.mask).write(sample);
            fence(Release);
            (&raw mut (*self.header()).count).write_volatile(self.written as u64 + 1);
        }
        self.written += 1;
    }

    fn restart(&mut self) {
        self.written = 0;
        self.owed = 0;
        self.lost = 0;
        let mut header = self.read_header();
        header.count = 0;
        self.write_header(&header);
    }

    fn lost(&self) -> u32 {
        self.lost
    }
}

/// Makes the ring's file on tmpfs at `path`, with room for `records` (see [`ring_records`]) and the number of
/// `planned` activations in its header.
///
/// # Errors
/// When shared memory is full or the place is not writable.
pub fn prepare_ring(path: &Path, records: u64, planned: u64) -> io::Result<()> {
    crate::map::prepare(path, records, planned)
}

/// The coordinator's end.
pub struct RingReader {
    map: Map,
    records: usize,
    read: u64,
}

impl RingReader {
    /// Opens the ring at `path`.
    ///
    /// # Errors
    /// When the file cannot be opened or mapped, or is no ring.
    pub fn open(path: &Path) -> io::Result<RingReader> {
        // A rootless cell's user may put a link in its place.
        let file = foreign_file::open_to_write(path)?;
        let map = Map::of(&file)?;
        let records = records_of(&map);
        if records == 0 {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "too short for a ring",
            ));
        }
        Ok(RingReader {
            map,
            records,
            read: 0,
        })
    }

    /// The header as the cell has it now.
    pub fn header(&self) -> Header {
        // SAFETY: the mapping is page-aligned and longer than a header; the copy may be of two moments while the
        // loop runs, which changes nothing but `count` then.
        unsafe { self.map.as_ptr().cast::<Header>().read_volatile() }
    }

    /// Every record that the ring still holds, oldest first, those that were taken included. For a ring whose cell
    /// is gone; the place of the record that it may have been writing is left out.
    pub fn held(&self, take: &mut dyn FnMut(&Sample)) {
        let written = self.header().count;
        for record in (written + 1).saturating_sub(self.records as u64)..written {
            let at = record as usize & (self.records - 1);
            // SAFETY: the masked index is below the number of records.
            take(&unsafe {
                let records = self.map.as_ptr().add(HEADER_BYTES).cast::<Sample>();
                records.add(at).read_volatile()
            });
        }
    }

    /// Takes every record that is there, oldest first.
    pub fn drain(&mut self, mut take: impl FnMut(&Sample)) {
        // SAFETY: as in `header`; one aligned word.
        let written = unsafe {
            let header = self.map.as_ptr().cast::<Header>();
            (&raw const (*header).count).read_volatile()
        };
        fence(Acquire);
        // A cell that writes nonsense into its count is its own loss, not ours.
        let end = written.clamp(self.read, self.read + self.records as u64);
        while self.read < end {
            let at = self.read as usize & (self.records - 1);
            // SAFETY: the masked index is below the number of records; the loop wrote this one before its count and
            // does not write it again until it sees our place beyond it.
            let sample = unsafe {
                let records = self.map.as_ptr().add(HEADER_BYTES).cast::<Sample>();
                records.add(at).read_volatile()
            };
            take(&sample);
            self.read += 1;
            // Room is given back early: the loop may be waiting for it.
            if self.read.is_multiple_of(1024) {
                reader_place(&self.map).store(self.read, Release);
            }
        }
        reader_place(&self.map).store(self.read, Release);
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;

    use super::*;
    use proptest::prelude::*;

    fn ring_in(dir: &Path, records: u64) -> (Map, RingReader) {
        let path = dir.join("x.samples");
        prepare_ring(&path, records, 1_000_000).unwrap();
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(&path)
            .unwrap();
        (Map::of(&file).unwrap(), RingReader::open(&path).unwrap())
    }

    #[test]
    fn two_seconds_of_jobs_within_bounds() {
        assert_eq!(ring_records(3_600_000_000_000), 1 << 10);
        assert_eq!(ring_records(1_000_000), 1 << 11);
        assert_eq!(ring_records(100_000), 1 << 15);
        assert_eq!(ring_records(1), 1 << 18);
    }

    #[test]
    fn a_reader_on_another_thread_sees_every_record_once_and_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let (map, mut reader) = ring_in(dir.path(), 1 << 10);
        let jobs = 300_000u32;
        let (mut next, mut lost, mut skipped) = (0u64, 0u64, 0u64);
        let mut check = |sample: &Sample| {
            assert_eq!(sample.start_ns, i64::from(sample.index) * 3, "torn record");
            let gap = u64::from(sample.index) - next;
            skipped += u64::from(sample.skipped);
            lost += gap - u64::from(sample.skipped);
            next = u64::from(sample.index) + 1;
        };
        let (at_end, last) = std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let mut ring = Ring::new(&map).unwrap();
                let mut index = 0;
                while index < jobs {
                    let skipped = u32::from(index % 1000 == 999);
                    ring.put(Sample {
                        index: index + skipped,
                        skipped,
                        start_ns: i64::from(index + skipped) * 3,
                        ..Sample::default()
                    });
                    index += 1 + skipped;
                }
                (ring.lost, index)
            });
            while !writer.is_finished() {
                reader.drain(&mut check);
            }
            reader.drain(&mut check);
            writer.join().unwrap()
        });
        // Records lost after the last that found room show in the sum only.
        assert!(lost <= u64::from(at_end));
        assert!(u64::from(last) >= next);
        let trailing = u64::from(at_end) - lost;
        assert!(u64::from(last) - next >= trailing);
    }

    proptest! {
        /// However reading and writing take turns, the records taken, skipped and lost add up to those put.
        #[test]
        fn taken_skipped_and_lost_add_up(turns in prop::collection::vec((0u32..3000, any::<bool>(), 0u32..3), 1..20)) {
            let dir = tempfile::tempdir().unwrap();
            let (map, mut reader) = ring_in(dir.path(), 1 << 10);
            let mut ring = Ring::new(&map).unwrap();
            let (mut index, mut taken, mut told_skipped, mut skipped) = (0u32, 0u64, 0u64, 0u64);
            for (jobs, read, skip) in turns {
                for _ in 0..jobs {
                    ring.put(Sample { index: index + skip, skipped: skip, ..Sample::default() });
                    skipped += u64::from(skip);
                    index += skip + 1;
                }
                if read {
                    reader.drain(|sample| { taken += 1; told_skipped += u64::from(sample.skipped); });
                }
            }
            reader.drain(|sample| { taken += 1; told_skipped += u64::from(sample.skipped); });
            prop_assert_eq!(told_skipped + u64::from(ring.owed), skipped);
            prop_assert_eq!(taken + u64::from(ring.lost) + skipped, u64::from(index));
        }
    }
}
