//! Reading a samples file, checked.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use host::counters::Counter;

use super::layout::{
    COUNT_BYTES, CountRow, Counted, HEADER_BYTES, Header, MAGIC, RECORD_BYTES, Sample, VERSION,
};
use crate::RecordError;

/// A samples file in memory, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Samples {
    /// The header.
    pub header: Header,
    /// The executed jobs, in order of activation.
    pub samples: Vec<Sample>,
    /// The counts of each, in the order of the header's counters; empty if the thread did not count.
    pub counts: Vec<CountRow>,
}

impl Samples {
    /// A count of the record at this index; `None` if the thread did not count it.
    pub fn count(&self, place: usize, counter: Counter) -> Option<u32> {
        let mut codes = self.header.counters.iter();
        let column = codes.position(|code| *code == counter.code())?;
        self.counts.get(place).map(|row| row[column])
    }

    /// As [`Header::unexplained`].
    pub fn unexplained(&self) -> u64 {
        self.header.unexplained()
    }
}

/// Reads and checks a samples file.
///
/// # Errors
/// [`RecordError::CutShort`] when records are missing, [`RecordError::Newer`] for a later layout, and
/// [`RecordError::Malformed`] when the counts or the order of the records contradict each other.
pub fn read(path: &Path) -> Result<Samples, RecordError> {
    read_into(path, Vec::with_capacity, Vec::push).map(whole)
}

fn whole((header, samples, counts): (Header, Vec<Sample>, Vec<CountRow>)) -> Samples {
    Samples {
        header,
        samples,
        counts,
    }
}

/// [`read`] into the caller's own collection: `room` creates it for a number of jobs, `push` adds the next.
pub(crate) fn read_into<C>(
    path: &Path,
    room: impl FnOnce(usize) -> C,
    push: impl Fn(&mut C, Sample),
) -> Result<(Header, C, Vec<CountRow>), RecordError> {
    let file = File::open(path).map_err(RecordError::io(path, "open"))?;
    let length = file
        .metadata()
        .map_err(RecordError::io(path, "inspect"))?
        .len();
    let from = BufReader::with_capacity(1 << 16, file);
    parse_into(path, length, from, room, push)
}

/// [`read`] from any source of `length` bytes; the entry point of the fuzz target.
pub fn parse(path: &Path, length: u64, from: impl Read) -> Result<Samples, RecordError> {
    parse_into(path, length, from, Vec::with_capacity, Vec::push).map(whole)
}

fn parse_into<C>(
    path: &Path,
    length: u64,
    mut from: impl Read,
    room: impl FnOnce(usize) -> C,
    push: impl Fn(&mut C, Sample),
) -> Result<(Header, C, Vec<CountRow>), RecordError> {
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
            "not a samples file: the first bytes are not TCSAMPL".to_owned(),
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
    let accounted = header.count.checked_add(header.skipped);
    let fits = accounted.is_some_and(|n| n <= header.planned && header.planned <= 1 << 32);
    if !fits || (header.complete == 1 && accounted != Some(header.planned)) {
        return Err(malformed(format!(
            "{} records and {} skipped activations do not add up to the {} planned",
            header.count, header.skipped, header.planned
        )));
    }
    let mut samples = room(header.count as usize);
    let mut bytes = [0u8; RECORD_BYTES];
    let mut next = 0u64;
    let mut skipped = 0u64;
    for position in 0..header.count {
        from.read_exact(&mut bytes)
            .map_err(RecordError::io(path, "read"))?;
        let sample = Sample::from_bytes(&bytes);
        skipped += u64::from(sample.skipped);
        if u64::from(sample.index) != next + u64::from(sample.skipped) {
            return Err(malformed(format!(
                "record {position} has index {} after {} skipped activations, expected {}",
                sample.index,
                sample.skipped,
                next + u64::from(sample.skipped)
            )));
        }
        next = u64::from(sample.index) + 1;
        push(&mut samples, sample);
    }
    if (header.complete == 1 && skipped > header.skipped) || next > header.planned {
        return Err(malformed(format!(
            "the records count {skipped} skipped activations up to index {}, the header {} of {} planned",
            next.saturating_sub(1),
            header.skipped,
            header.planned
        )));
    }
    // A cell that was killed had no time to write its sum; the records have it.
    let skipped = if header.complete == 1 {
        header.skipped
    } else {
        skipped
    };
    let counts = counts(&header, length, &mut from)
        .map_err(RecordError::io(path, "read"))?
        .ok_or_else(|| {
            let at = header.counts_at;
            cut(format!(
                "no room for the counts of {} records at byte {at}",
                header.count
            ))
        })?;
    Ok((Header { skipped, ..header }, samples, counts))
}

/// The rows after the records, which have been read; `None` if the file cannot hold them.
fn counts(
    header: &Header,
    length: u64,
    from: &mut impl Read,
) -> std::io::Result<Option<Vec<CountRow>>> {
    if header.counts_at == 0 || !Counted::of(header).is_some_and(Counted::has_counts) {
        return Ok(Some(Vec::new()));
    }
    let read = HEADER_BYTES as u64 + header.count * RECORD_BYTES as u64;
    let needed = header.count * COUNT_BYTES as u64;
    let (Some(gap), Some(end)) = (
        header.counts_at.checked_sub(read),
        header.counts_at.checked_add(needed),
    ) else {
        return Ok(None);
    };
    if end > length {
        return Ok(None);
    }
    std::io::copy(&mut from.take(gap), &mut std::io::sink())?;
    let mut bytes = [0u8; COUNT_BYTES];
    let mut rows = Vec::with_capacity(header.count as usize);
    for _ in 0..header.count {
        from.read_exact(&mut bytes)?;
        let (words, _) = bytes.as_chunks::<4>();
        rows.push(std::array::from_fn(|at| u32::from_le_bytes(words[at])));
    }
    Ok(Some(rows))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn file(jobs: &[(u32, u32)], change: impl FnOnce(&mut Header)) -> Vec<u8> {
        let mut header = Header::new();
        header.count = jobs.len() as u64;
        header.skipped = jobs.iter().map(|(_, skipped)| u64::from(*skipped)).sum();
        header.planned = header.count + header.skipped;
        header.complete = 1;
        change(&mut header);
        let mut bytes = vec![0; HEADER_BYTES];
        bytes[..header.to_bytes().len()].copy_from_slice(&header.to_bytes());
        for (index, skipped) in jobs {
            let sample = Sample {
                index: *index,
                skipped: *skipped,
                ..Sample::default()
            };
            bytes.extend_from_slice(&sample.to_bytes());
        }
        bytes
    }

    fn parsed(bytes: &[u8]) -> Result<Samples, String> {
        parse(Path::new("x.samples"), bytes.len() as u64, bytes).map_err(|e| e.to_string())
    }

    #[test]
    fn an_index_skipped_is_an_index_counted() {
        let read = parsed(&file(&[(0, 0), (3, 2), (4, 0)], |_| {})).unwrap();
        assert_eq!((read.samples.len(), read.header.skipped), (3, 2));
        let lost = parsed(&file(&[(0, 0), (3, 0)], |h| h.planned = 4)).unwrap_err();
        assert!(lost.contains("do not add up"), "{lost}");
        let lost = parsed(&file(&[(0, 0), (3, 1)], |h| h.planned = 3)).unwrap_err();
        assert!(lost.contains("record 1 has index 3"), "{lost}");
    }

    #[test]
    fn counts_stand_behind_the_room_of_all_records() {
        let counted = |at: u64| {
            file(&[(0, 0), (1, 0)], |h| {
                h.counted = Counted::Software as u32;
                h.counts_at = at;
            })
        };
        // Room for a third job that did not run.
        let mut bytes = counted(HEADER_BYTES as u64 + 96);
        bytes.extend_from_slice(&[0; 32]);
        for row in [[1u32, 0, 3, 0], [u32::MAX, 7, 0, 0]] {
            bytes.extend(row.iter().flat_map(|count| count.to_le_bytes()));
        }
        let read = parsed(&bytes).unwrap();
        assert_eq!(read.counts, [[1, 0, 3, 0], [u32::MAX, 7, 0, 0]]);
        let cut = parsed(&bytes[..bytes.len() - 1]).unwrap_err();
        assert!(cut.contains("no room for the counts of 2 records"), "{cut}");
        let inside = parsed(&counted(HEADER_BYTES as u64)).unwrap_err();
        assert!(inside.contains("no room for the counts"), "{inside}");
        let none = parsed(&file(&[(0, 0)], |_| {})).unwrap();
        assert!(none.counts.is_empty(), "as before there were counts");
    }

    #[test]
    fn a_killed_cell_leaves_unexplained_activations() {
        let bytes = file(&[(0, 0)], |h| {
            h.planned = 10;
            h.complete = 0;
        });
        assert_eq!(parsed(&bytes).unwrap().unexplained(), 9);
        let with_skipped = file(&[(0, 0), (3, 2)], |h| {
            h.skipped = 0;
            h.planned = 10;
            h.complete = 0;
        });
        let read = parsed(&with_skipped).unwrap();
        assert_eq!((read.header.skipped, read.unexplained()), (2, 6));
    }

    #[test]
    fn says_what_is_wrong_with_a_file() {
        let good = file(&[(0, 0), (1, 0)], |_| {});
        let message = |bytes: &[u8]| parsed(bytes).unwrap_err();
        assert!(message(&good[..100]).contains("cut short: 100 bytes"));
        assert!(message(&good[..good.len() - 1]).contains("it holds 1 of 2 records"));
        assert!(message(&[7; 5000]).contains("not a samples file"));
        assert!(message(&file(&[], |h| h.version = 9)).contains("schema 9 is newer"));
        assert!(message(&file(&[], |h| h.count = u64::MAX)).contains("it holds 0 of"));
        assert!(message(&file(&[], |h| h.skipped = u64::MAX)).contains("do not add up"));
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
        fn any_single_byte_changed_gives_samples_or_a_sentence(at in 0usize..HEADER_BYTES + 96, to in any::<u8>()) {
            let mut bytes = file(&[(0, 0), (2, 1), (3, 0)], |_| {});
            bytes[at] = to;
            if let Ok(samples) = parsed(&bytes) {
                prop_assert_eq!(samples.samples.len() as u64, samples.header.count);
            }
        }
    }
}
