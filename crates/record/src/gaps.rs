//! The gaps file: when a spinning thread had the cpu, as the probe wrote it.
//!
//! A page of 4,096 bytes (header, and a table of stretches) and then records of 16 bytes, all little-endian. The probe
//! maps the file and writes into it directly. docs/src/run-formats.md tells the layout byte by byte.

use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::path::Path;

use host::{foreign_file, writer};
use serde::{Deserialize, Serialize};

use crate::RecordError;

/// First bytes of the file.
pub const MAGIC: [u8; 8] = *b"TCGAPS\0\0";
/// Version of the layout.
pub const VERSION: u32 = 1;
/// Bytes before the first record: one page.
pub const HEADER_BYTES: usize = 4096;
/// Offset of the table of stretches in that page.
pub const STRETCHES_AT: usize = 1024;
/// Maximum number of stretches of a trial.
pub const MOST_STRETCHES: usize = (HEADER_BYTES - STRETCHES_AT) / size_of::<Stretch>();
/// Bytes of one record.
pub const RECORD_BYTES: usize = size_of::<Gap>();

/// Time in which the thread wanted the cpu but did not have it. Instants are CLOCK_MONOTONIC nanoseconds.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Gap {
    /// The last clock reading before it.
    pub begin_ns: i64,
    /// The first clock reading after it.
    pub end_ns: i64,
}

/// A stretch of time in which the thread wanted the cpu without a pause.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Stretch {
    /// First clock reading.
    pub begin_ns: i64,
    /// Last clock reading.
    pub end_ns: i64,
    /// Records written by its end.
    pub gaps: u64,
    /// Cpu time that the kernel billed to the thread between the two readings, ns.
    pub billed_ns: u64,
    /// Clock readings.
    pub readings: u64,
    /// Cpu on which it began.
    pub cpu_first: u32,
    /// Cpu on which it ended.
    pub cpu_last: u32,
}

/// The header.
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
    /// 1 once the probe has ended its last stretch normally.
    pub complete: u32,
    /// Requested stretches.
    pub planned: u32,
    /// Stretches in the table.
    pub stretches: u32,
    /// Records for which there was room.
    pub capacity: u64,
    /// Records written.
    pub count: u64,
    /// Gaps for which there was no room and which were merged with the record before, together with all time between them:
    /// the file then understates the received time.
    pub merged: u64,
    /// Clock readings farther apart than this have a gap between them, ns; shorter distances count as received.
    pub least_gap_ns: i64,
    /// Median of one clock reading, ns.
    pub clock_cost_ns: u64,
    /// Scheduling policy number that the kernel reported when armed (sched(7)).
    pub policy: i32,
    /// Static priority that the kernel reported when armed.
    pub priority: i32,
    /// 1 if all memory was locked when armed, 2 if only file and stack were, 0 if nothing was.
    pub memory_locked: u32,
    /// Reserved, 0.
    pub reserved: u32,
    /// Minor page faults in the stretches.
    pub minor_faults: u64,
    /// Major page faults in the stretches.
    pub major_faults: u64,
}

const _: () = {
    assert!(size_of::<Gap>() == 16 && size_of::<Stretch>() == 48 && size_of::<Header>() == 104);
    assert!(size_of::<Header>() <= STRETCHES_AT && MOST_STRETCHES == 64);
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

    /// Reads the bytes of a header, without checks.
    pub fn from_bytes(bytes: &[u8; size_of::<Header>()]) -> Header {
        // SAFETY: every bit pattern is a valid Header, which is repr(C) of integers without padding.
        unsafe { std::mem::transmute(*bytes) }
    }
}

impl Stretch {
    /// Its bytes.
    pub fn to_bytes(&self) -> [u8; size_of::<Stretch>()] {
        // SAFETY: Stretch is repr(C) of integers without padding.
        unsafe { std::mem::transmute(*self) }
    }

    fn from_bytes(bytes: &[u8; size_of::<Stretch>()]) -> Stretch {
        // SAFETY: every bit pattern is a valid Stretch.
        unsafe { std::mem::transmute(*bytes) }
    }
}

impl Gap {
    /// Its bytes.
    pub fn to_bytes(&self) -> [u8; RECORD_BYTES] {
        // SAFETY: Gap is repr(C) of integers without padding.
        unsafe { std::mem::transmute(*self) }
    }

    fn from_bytes(bytes: &[u8; RECORD_BYTES]) -> Gap {
        // SAFETY: every bit pattern is a valid Gap.
        unsafe { std::mem::transmute(*bytes) }
    }
}

/// Size in bytes of a file with room for this number of gaps.
pub const fn file_bytes(gaps: u64) -> u64 {
    HEADER_BYTES as u64 + gaps * RECORD_BYTES as u64
}

/// A gaps file in memory, checked: stretches and gaps are in order, and every gap lies within its stretch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gaps {
    /// The header.
    pub header: Header,
    /// The stretches with their gaps.
    pub stretches: Vec<(Stretch, Vec<Gap>)>,
}

/// Reads and checks a gaps file.
///
/// # Errors
/// [`RecordError::CutShort`] when records are missing, [`RecordError::Newer`] for a later layout, and
/// [`RecordError::Malformed`] when counts or instants contradict each other.
pub fn read(path: &Path) -> Result<Gaps, RecordError> {
    let file = File::open(path).map_err(RecordError::io(path, "open"))?;
    let length = file
        .metadata()
        .map_err(RecordError::io(path, "inspect"))?
        .len();
    parse(path, length, BufReader::with_capacity(1 << 16, file))
}

/// [`read`] from any source of `length` bytes; the entry point of the fuzz target.
pub fn parse(path: &Path, length: u64, mut from: impl Read) -> Result<Gaps, RecordError> {
    let (page, header) = page(path, length, &mut from)?;
    let malformed = |what: String| RecordError::malformed(path, what);
    let mut stretches: Vec<(Stretch, Vec<Gap>)> = Vec::new();
    let (mut read, mut at) = (0u64, i64::MIN);
    let table = page[STRETCHES_AT..].chunks_exact(size_of::<Stretch>());
    for (place, bytes) in table.take(header.stretches as usize).enumerate() {
        let stretch = Stretch::from_bytes(bytes.first_chunk().expect("chunks of this size"));
        if stretch.begin_ns < at.max(0) || stretch.end_ns <= stretch.begin_ns {
            return Err(malformed(format!(
                "stretch {place} from {} to {} ns is out of order",
                stretch.begin_ns, stretch.end_ns
            )));
        }
        if stretch.gaps < read || stretch.gaps > header.count {
            return Err(malformed(format!(
                "stretch {place} ends with record {} of {}, the one before with {read}",
                stretch.gaps, header.count
            )));
        }
        at = stretch.begin_ns;
        let mut gaps = Vec::with_capacity((stretch.gaps - read) as usize);
        for record in read..stretch.gaps {
            let mut bytes = [0u8; RECORD_BYTES];
            from.read_exact(&mut bytes)
                .map_err(RecordError::io(path, "read"))?;
            let gap = Gap::from_bytes(&bytes);
            if gap.begin_ns < at || gap.end_ns <= gap.begin_ns || gap.end_ns > stretch.end_ns {
                return Err(malformed(format!(
                    "record {record} from {} to {} ns is out of order in stretch {place}",
                    gap.begin_ns, gap.end_ns
                )));
            }
            at = gap.end_ns;
            gaps.push(gap);
        }
        read = stretch.gaps;
        at = stretch.end_ns;
        stretches.push((stretch, gaps));
    }
    Ok(Gaps { header, stretches })
}

/// The first page and its header, checked against the length of the file.
fn page(
    path: &Path,
    length: u64,
    from: &mut impl Read,
) -> Result<([u8; HEADER_BYTES], Header), RecordError> {
    let cut = |what: String| RecordError::CutShort {
        path: path.to_owned(),
        what,
    };
    let malformed = |what: String| RecordError::malformed(path, what);
    if length < HEADER_BYTES as u64 {
        return Err(cut(format!(
            "{length} bytes, less than the header's {HEADER_BYTES}"
        )));
    }
    let mut page = [0u8; HEADER_BYTES];
    from.read_exact(&mut page)
        .map_err(RecordError::io(path, "read"))?;
    let header = Header::from_bytes(page.first_chunk().expect("a page holds a header"));
    if header.magic != MAGIC {
        return Err(malformed(
            "not a gaps file: the first bytes are not TCGAPS".to_owned(),
        ));
    }
    if header.version > VERSION {
        return Err(RecordError::Newer {
            path: path.to_owned(),
            found: header.version.into(),
            known: VERSION.into(),
        });
    }
    if header.header_bytes as usize != HEADER_BYTES || header.record_bytes as usize != RECORD_BYTES
    {
        return Err(malformed(format!(
            "a header of {} bytes and records of {} bytes, but version {VERSION} has {HEADER_BYTES} and {RECORD_BYTES}",
            header.header_bytes, header.record_bytes
        )));
    }
    let held = (length - HEADER_BYTES as u64) / RECORD_BYTES as u64;
    if held < header.count {
        return Err(cut(format!("it holds {held} of {} records", header.count)));
    }
    let table = header.planned as usize <= MOST_STRETCHES && header.stretches <= header.planned;
    let whole = header.complete == 0 || header.stretches == header.planned;
    if !table || !whole || header.count > header.capacity {
        return Err(malformed(format!(
            "{} of {} stretches and {} of {} records do not add up",
            header.stretches, header.planned, header.count, header.capacity
        )));
    }
    Ok((page, header))
}

/// Copies header, table and the records written.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<(), RecordError> {
    let mut source = foreign_file::open(from).map_err(RecordError::io(from, "open"))?;
    let length = source
        .metadata()
        .map_err(RecordError::io(from, "inspect"))?
        .len();
    let (bytes, header) = page(from, length, &mut source)?;
    let written = writer::create(to)
        .map_err(RecordError::io(to, "create"))
        .and_then(|mut out| {
            out.write_all(&bytes)
                .and_then(|()| {
                    let records = header.count * RECORD_BYTES as u64;
                    std::io::copy(&mut source.take(records), &mut out)
                })
                .and_then(|_| out.sync_all())
                .map_err(RecordError::io(to, "write"))
        });
    if written.is_err() {
        let _ = writer::remove_file(to);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Begin, end, and the gaps between.
    type Made<'a> = (i64, i64, &'a [(i64, i64)]);

    /// A file of stretches.
    fn file(stretches: &[Made<'_>], change: impl FnOnce(&mut Header)) -> Vec<u8> {
        let mut header = Header::new();
        (header.planned, header.stretches) = (stretches.len() as u32, stretches.len() as u32);
        header.count = stretches.iter().map(|s| s.2.len() as u64).sum();
        header.capacity = 100;
        header.complete = 1;
        change(&mut header);
        let mut bytes = vec![0; HEADER_BYTES];
        bytes[..size_of::<Header>()].copy_from_slice(&header.to_bytes());
        let mut count = 0;
        for (place, (begin_ns, end_ns, gaps)) in stretches.iter().enumerate() {
            count += gaps.len() as u64;
            let stretch = Stretch {
                begin_ns: *begin_ns,
                end_ns: *end_ns,
                gaps: count,
                ..Stretch::default()
            };
            let at = STRETCHES_AT + place * size_of::<Stretch>();
            bytes[at..at + size_of::<Stretch>()].copy_from_slice(&stretch.to_bytes());
            for &(begin_ns, end_ns) in *gaps {
                bytes.extend(Gap { begin_ns, end_ns }.to_bytes());
            }
        }
        bytes
    }

    fn parsed(bytes: &[u8]) -> Result<Gaps, String> {
        parse(Path::new("1.gaps"), bytes.len() as u64, bytes).map_err(|error| error.to_string())
    }

    fn two() -> Vec<u8> {
        file(
            &[(10, 50, &[(12, 20), (20, 30)]), (60, 90, &[(70, 90)])],
            |_| {},
        )
    }

    #[test]
    fn gaps_come_back_in_their_stretches() {
        let read = parsed(&two()).unwrap();
        let lengths: Vec<usize> = read.stretches.iter().map(|(_, gaps)| gaps.len()).collect();
        assert_eq!(lengths, [2, 1]);
        assert_eq!(
            read.stretches[1].1,
            [Gap {
                begin_ns: 70,
                end_ns: 90
            }]
        );
    }

    #[test]
    fn says_what_is_wrong_with_a_file() {
        let good = two();
        let message = |bytes: &[u8]| parsed(bytes).unwrap_err();
        assert!(message(&good[..100]).contains("cut short: 100 bytes"));
        assert!(message(&good[..good.len() - 1]).contains("it holds 2 of 3 records"));
        assert!(message(&[7; 5000]).contains("not a gaps file"));
        assert!(message(&file(&[], |h| h.version = 9)).contains("schema 9 is newer"));
        assert!(message(&file(&[], |h| h.planned = 65)).contains("do not add up"));
        assert!(message(&file(&[(5, 5, &[])], |_| {})).contains("stretch 0 from 5 to 5"));
        let apart = file(&[(10, 50, &[(12, 51)])], |_| {});
        assert!(message(&apart).contains("record 0 from 12 to 51 ns is out of order"));
        let twice = file(&[(10, 50, &[]), (40, 60, &[])], |_| {});
        assert!(message(&twice).contains("stretch 1"));
    }

    #[test]
    fn only_what_was_written_is_copied() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("shm"), dir.path().join("1.gaps"));
        let mut bytes = two();
        bytes.resize(bytes.len() + 1_000, 0);
        std::fs::write(&from, &bytes).unwrap();
        copy(&from, &to).unwrap();
        assert_eq!(std::fs::read(&to).unwrap(), two());
        std::fs::write(&from, [7; 5000]).unwrap();
        std::fs::remove_file(&to).unwrap();
        assert!(copy(&from, &to).is_err() && !to.exists());
    }

    proptest! {
        #[test]
        fn no_bytes_panic(mut bytes in prop::collection::vec(any::<u8>(), 4090..4300), real in any::<bool>()) {
            if real {
                bytes[..24].copy_from_slice(&Header::new().to_bytes()[..24]);
            }
            let _ = parsed(&bytes);
        }

        #[test]
        fn any_single_byte_changed_gives_gaps_or_a_sentence(at in 0usize..HEADER_BYTES + 48, to in any::<u8>()) {
            let mut bytes = two();
            bytes[at] = to;
            if let Ok(read) = parsed(&bytes) {
                let gaps: usize = read.stretches.iter().map(|(_, gaps)| gaps.len()).sum();
                prop_assert!(gaps as u64 <= read.header.count);
            }
        }
    }
}
