//! A cell's sums so far: reads its samples file on from the last position.
//!
//! Records are filled in order and counted after they are written. The loop's rehearsal writes records too, before the release; the header
//! shows it, because it has no instant of release yet.

use std::io;
use std::mem::offset_of;
use std::path::PathBuf;

use record::samples::layout::{HEADER_BYTES, Header, MAGIC, RECORD_BYTES, Sample};

use super::files::{Allowance, Kept};

/// Records read at once.
const CHUNK: u64 = 4096;

/// The sums of a cell until a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sums {
    /// Jobs that ran.
    pub executed: u64,
    /// Activations skipped.
    pub skipped: u64,
    /// Jobs whose records found no room.
    pub lost: u64,
    /// Jobs that ran between two looks and could not be read: worse ones may be among them.
    pub unseen: u64,
    /// Largest wake-up latency, ns.
    pub worst_latency_ns: Option<i64>,
    /// Largest execution time, ns.
    pub worst_execution_ns: Option<i64>,
}

/// The end of one samples file.
#[derive(Debug)]
pub(super) struct Tail {
    file: Kept,
    ring: bool,
    /// Records that the file has room for.
    room: u64,
    /// Records read or given up.
    passed: u64,
    /// Activations up to the last record that was read.
    indexed: u64,
    skipped: u64,
    sums: Sums,
}

impl Tail {
    pub(super) fn of(path: PathBuf, ring: bool, allowance: &Allowance) -> Tail {
        Tail {
            file: Kept::new(path, allowance),
            ring,
            room: 0,
            passed: 0,
            indexed: 0,
            skipped: 0,
            sums: Sums::default(),
        }
    }

    /// Reads new records. A file that is missing or invalid leaves the sums unchanged.
    pub(super) fn look(&mut self, bytes: &mut Vec<u8>) -> Sums {
        let _ = self.read_on(bytes);
        self.sums
    }

    fn read_on(&mut self, bytes: &mut Vec<u8>) -> io::Result<()> {
        let mut head = [0; size_of::<Header>()];
        if self.file.read_at(&mut head, 0)? < head.len() {
            return Ok(());
        }
        let header = Header::from_bytes(&head);
        if header.magic != MAGIC || header.go_ns == 0 {
            return Ok(());
        }
        if self.room == 0 {
            let length = self.file.with(|file| file.metadata())?.len();
            let room = length.saturating_sub(HEADER_BYTES as u64) / RECORD_BYTES as u64;
            self.room = match (self.ring, room) {
                (true, 1..) => 1 << room.ilog2(),
                _ => room,
            };
        }
        let count = match self.ring {
            true => header.count,
            false => header.count.min(self.room),
        };
        if self.ring && self.room > 0 {
            self.give_up_before(count.saturating_sub(self.room));
        }
        while self.room > 0 && self.passed < count {
            let at = self.passed % self.room;
            let records = CHUNK.min(count - self.passed).min(self.room - at);
            bytes.resize(records as usize * RECORD_BYTES, 0);
            let offset = HEADER_BYTES as u64 + at * RECORD_BYTES as u64;
            let whole = self.file.read_at(bytes, offset)? / RECORD_BYTES;
            if whole == 0 {
                break;
            }
            // In a ring, records that the loop has overwritten meanwhile may be half old, half new.
            let intact_from = match self.ring {
                true => (self.count_now()? + 1).saturating_sub(self.room),
                false => 0,
            };
            for record in bytes.chunks_exact(RECORD_BYTES).take(whole) {
                if self.passed < intact_from {
                    self.give_up_before(self.passed + 1);
                } else if let Some(record) = record.first_chunk() {
                    self.passed += 1;
                    self.take(&Sample::from_bytes(record));
                }
            }
        }
        self.sums.executed = count;
        if header.complete == 1 {
            self.sums.skipped = header.skipped;
            self.sums.lost = header.planned.saturating_sub(count + header.skipped);
        } else {
            self.sums.skipped = self.skipped;
            self.sums.lost = match self.sums.unseen {
                0 => self.indexed.saturating_sub(count + self.skipped),
                _ => 0,
            };
        }
        Ok(())
    }

    fn give_up_before(&mut self, record: u64) {
        let unseen = record.saturating_sub(self.passed);
        self.sums.unseen += unseen;
        self.passed += unseen;
    }

    fn count_now(&mut self) -> io::Result<u64> {
        let mut word = [0; 8];
        self.file
            .read_at(&mut word, offset_of!(Header, count) as u64)?;
        Ok(u64::from_le_bytes(word))
    }

    fn take(&mut self, sample: &Sample) {
        self.skipped += u64::from(sample.skipped);
        self.indexed = u64::from(sample.index) + 1;
        let sums = &mut self.sums;
        sums.worst_latency_ns = sums.worst_latency_ns.max(Some(sample.wakeup_latency_ns()));
        sums.worst_execution_ns = sums
            .worst_execution_ns
            .max(Some(sample.execution_time_ns()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::os::unix::fs::FileExt;
    use std::path::Path;

    /// A samples file written as the probe does it.
    struct Written {
        file: std::fs::File,
        header: Header,
        room: u64,
        index: u32,
    }

    impl Written {
        fn new(path: &Path, room: u64, planned: u64, ring: bool) -> Written {
            match ring {
                true => probe::prepare_ring(path, room, planned).unwrap(),
                false => probe::prepare_samples(path, planned).unwrap(),
            }
            let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
            let header = Header {
                planned,
                ..Header::new()
            };
            Written {
                file,
                header,
                room,
                index: 0,
            }
        }

        fn put(&mut self, latency: i64, skipped: u32) {
            self.index += skipped;
            let release_ns = i64::from(self.index) * 1_000;
            let sample = Sample {
                index: self.index,
                skipped,
                release_ns,
                start_ns: release_ns + latency,
                end_ns: release_ns + latency + 2 * latency,
            };
            let at = HEADER_BYTES as u64 + self.header.count % self.room * 32;
            self.file.write_all_at(&sample.to_bytes(), at).unwrap();
            self.header.count += 1;
            self.index += 1;
            self.keep();
        }

        fn keep(&self) {
            self.file.write_all_at(&self.header.to_bytes(), 0).unwrap();
        }
    }

    #[test]
    fn a_rehearsal_counts_for_nothing_and_the_end_says_what_was_skipped_last() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.samples");
        let mut written = Written::new(&path, 10, 10, false);
        let mut tail = Tail::of(path, false, &Allowance::of(9));
        written.put(9_000, 0);
        let mut bytes = Vec::new();
        assert_eq!(tail.look(&mut bytes), Sums::default());
        written.header.count = 0;
        written.header.go_ns = 77;
        written.index = 0;
        written.put(10, 0);
        written.put(30, 2);
        let seen = tail.look(&mut bytes);
        assert_eq!((seen.executed, seen.skipped, seen.lost), (2, 2, 0));
        assert_eq!(
            (seen.worst_latency_ns, seen.worst_execution_ns),
            (Some(30), Some(60))
        );
        written.put(5, 0);
        written.header.skipped = 7;
        written.header.complete = 1;
        written.keep();
        let seen = tail.look(&mut bytes);
        assert_eq!((seen.executed, seen.skipped, seen.lost), (3, 7, 0));
        assert_eq!(seen.worst_latency_ns, Some(30));
    }

    #[test]
    fn no_file_and_no_samples_file_are_nothing_yet() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.samples");
        let mut tail = Tail::of(path.clone(), false, &Allowance::of(0));
        assert_eq!(tail.look(&mut Vec::new()), Sums::default());
        std::fs::write(&path, [7; 9_000]).unwrap();
        assert_eq!(tail.look(&mut Vec::new()), Sums::default());
    }

    proptest! {
        /// However writing and looking interleave, the sums are those of the records; in a ring, overwritten ones are counted.
        #[test]
        fn sums_are_those_of_the_records(turns in prop::collection::vec((0u32..700, 1i64..1000, 0u32..3), 1..8), ring in any::<bool>()) {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("x.samples");
            let room = if ring { 512 } else { 20_000 };
            let mut written = Written::new(&path, room, 20_000, ring);
            written.header.go_ns = 1;
            written.keep();
            let mut tail = Tail::of(path, ring, &Allowance::of(2));
            let (mut skipped, mut worst) = (0u64, None);
            for (jobs, latency, skip) in turns {
                for job in 0..jobs {
                    written.put(latency + i64::from(job), skip);
                    skipped += u64::from(skip);
                    worst = worst.max(Some(latency + i64::from(job)));
                }
                let seen = tail.look(&mut Vec::new());
                prop_assert_eq!(seen.executed, written.header.count);
                if seen.unseen == 0 {
                    prop_assert_eq!((seen.skipped, seen.lost, seen.worst_latency_ns), (skipped, 0, worst));
                } else {
                    prop_assert!(ring && seen.skipped <= skipped && seen.worst_latency_ns <= worst);
                }
            }
        }
    }
}
