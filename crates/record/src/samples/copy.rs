//! A samples file taken from shared memory to the run.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::Path;

use host::{foreign_file, writer};

use super::layout::{COUNT_BYTES, Counted, HEADER_BYTES, Header, RECORD_BYTES};
use crate::RecordError;

/// Copies the header, the records written and their counts, not the room for skipped activations.
pub(crate) fn copy_samples(from: &Path, to: &Path) -> Result<(), RecordError> {
    let mut source = foreign_file::open(from).map_err(RecordError::io(from, "open"))?;
    let mut page = [0u8; HEADER_BYTES];
    source
        .read_exact(&mut page)
        .map_err(RecordError::io(from, "read"))?;
    let mut header = Header::from_bytes(page.first_chunk().expect("a page holds a header"));
    let records = header.count * RECORD_BYTES as u64;
    let counted = Counted::of(&header).is_some_and(Counted::has_counts);
    let counts_from = std::mem::take(&mut header.counts_at);
    let counts = (counted && counts_from > 0).then(|| header.count * COUNT_BYTES as u64);
    if counts.is_some() {
        header.counts_at = HEADER_BYTES as u64 + records;
    }
    page[..size_of::<Header>()].copy_from_slice(&header.to_bytes());
    let mut out = writer::create(to).map_err(RecordError::io(to, "create"))?;
    out.write_all(&page).map_err(RecordError::io(to, "write"))?;
    let mut copy = |source: &mut File, bytes: u64, what: &str| {
        let copied = std::io::copy(&mut source.take(bytes), &mut out)
            .map_err(RecordError::io(to, "write"))?;
        if copied != bytes {
            return Err(RecordError::CutShort {
                path: from.to_owned(),
                what: format!("{copied} of {bytes} bytes of {what}"),
            });
        }
        Ok(())
    };
    copy(&mut source, records, "records")?;
    if let Some(counts) = counts {
        source
            .seek(std::io::SeekFrom::Start(counts_from))
            .map_err(RecordError::io(from, "read"))?;
        copy(&mut source, counts, "counts")?;
    }
    out.sync_all().map_err(RecordError::io(to, "write"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn only_written_records_are_copied() {
        let dir = tempfile::tempdir().unwrap();
        let from = dir.path().join("shm");
        let mut header = Header::new();
        header.count = 2;
        header.planned = 100;
        let mut bytes = vec![0u8; 4096 + 32 * 100];
        bytes[..size_of::<Header>()].copy_from_slice(&header.to_bytes());
        fs::write(&from, &bytes).unwrap();
        let to = dir.path().join("out");
        copy_samples(&from, &to).unwrap();
        assert_eq!(fs::metadata(&to).unwrap().len(), 4096 + 64);
        fs::write(&from, &bytes[..4096 + 33]).unwrap();
        assert!(
            copy_samples(&from, &to)
                .unwrap_err()
                .to_string()
                .contains("cut short")
        );
    }

    #[test]
    fn nothing_is_copied_through_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let (secret, link) = (dir.path().join("secret"), dir.path().join("1.samples"));
        fs::write(&secret, [0; 4096]).unwrap();
        std::os::unix::fs::symlink(&secret, &link).unwrap();
        let to = dir.path().join("out");
        assert!(copy_samples(&link, &to).is_err() && !to.exists());
        assert!(crate::supply::gaps::copy(&link, &to).is_err() && !to.exists());
    }

    #[test]
    fn counts_follow_their_records_when_they_are_copied() {
        let dir = tempfile::tempdir().unwrap();
        let from = dir.path().join("shm");
        let header = Header {
            count: 1,
            planned: 3,
            counted: Counted::Software as u32,
            counts_at: 4096 + 96,
            ..Header::new()
        };
        let mut bytes = vec![0u8; 4096 + 96 + 48];
        bytes[..size_of::<Header>()].copy_from_slice(&header.to_bytes());
        bytes[4096 + 96] = 9;
        fs::write(&from, &bytes).unwrap();
        let to = dir.path().join("out");
        copy_samples(&from, &to).unwrap();
        assert_eq!(fs::metadata(&to).unwrap().len(), 4096 + 32 + 16);
        assert_eq!(super::super::read(&to).unwrap().counts, [[9, 0, 0, 0]]);
    }
}
