//! Samples whose coordinator is gone.

use std::os::unix::fs::FileExt;
use std::path::Path;

use host::foreign_file;
use record::RecordError;
use record::run::Run;
use record::samples::{self, Header, Samples};
use record::trial::Part;

use super::found::Found;

/// Whether the cell of this samples file was released: before that, the file holds at most a rehearsal.
pub(crate) fn was_released(path: &Path) -> bool {
    let mut bytes = [0; size_of::<Header>()];
    let read = foreign_file::open(path).and_then(|file| file.read_exact_at(&mut bytes, 0));
    read.is_ok() && Header::from_bytes(&bytes).go_ns != 0
}

/// Puts one trial on record, if any of its cells was released.
pub(super) fn trial(
    run: &Run,
    shared: &Path,
    part: Part,
    ended: bool,
    why: &str,
    found: &mut Found,
) -> Result<(), RecordError> {
    let Part {
        mut record,
        joint_ids,
    } = part;
    let mut kept = Vec::new();
    let (mut finished, mut jobs) = (0u32, 0u64);
    for (cell, joint) in record.cells.iter_mut().zip(&joint_ids) {
        let path = shared.join(format!("{joint}.samples"));
        if !was_released(&path) {
            continue;
        }
        let samples = match proven(&path) {
            Ok(samples) => samples,
            Err(error) => {
                cell.failure.get_or_insert(error.to_string());
                continue;
            }
        };
        let header = samples.header;
        jobs += header.count;
        found.last_ns = found.last_ns.max(samples.samples.last().map(|s| s.end_ns));
        if header.complete == 1 {
            finished += 1;
        } else if !ended {
            cell.notes.push(format!(
                "it had not finished when {why}: {} of {} activations are on record",
                header.count + header.skipped,
                header.planned
            ));
        }
        if !ended {
            record.go_ns = Some(header.go_ns);
            cell.started_ns = Some(header.started_ns);
        }
        kept.push((cell.id.clone(), path));
    }
    if kept.is_empty() && !ended {
        return Ok(());
    }
    let cells = record.cells.len();
    if !ended {
        record.cut_off = Some(format!(
            "{why} when {finished} of {cells} cells had finished"
        ));
    }
    // Begun by the coordinator, but not whole.
    run.forget_trial(record.number);
    run.write_trial(&record, &kept)?;
    found.sentences.push(format!(
        "salvaged trial {} ({}): {finished} of {cells} cells had finished, {jobs} jobs are on record in {}",
        record.number,
        record.name,
        run.dir().display()
    ));
    Ok(())
}

/// Samples whose header says no more than the records prove.
///
/// A cell that is killed while it writes its sums leaves some of them old and some new.
fn proven(path: &Path) -> Result<Samples, RecordError> {
    let first = match samples::read(path) {
        Ok(samples) => return Ok(samples),
        Err(error) => error,
    };
    let mut bytes = [0; size_of::<Header>()];
    // A rootless cell's user may put a link in its place.
    let corrected = foreign_file::open_to_write(path).and_then(|file| {
        file.read_exact_at(&mut bytes, 0)?;
        let header = Header {
            complete: 0,
            skipped: 0,
            ..Header::from_bytes(&bytes)
        };
        file.write_all_at(&header.to_bytes(), 0)
    });
    match corrected {
        Ok(()) => samples::read(path),
        Err(_) => Err(first),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;
    use record::samples::{HEADER_BYTES, Sample};

    /// A samples file of a cell with three of ten jobs.
    fn file(dir: &Path, change: impl FnOnce(&mut Header)) -> PathBuf {
        let mut header = Header {
            planned: 10,
            count: 3,
            go_ns: 5,
            ..Header::new()
        };
        change(&mut header);
        let mut bytes = vec![0; HEADER_BYTES];
        bytes[..size_of::<Header>()].copy_from_slice(&header.to_bytes());
        for index in 0..10 {
            let sample = Sample {
                index,
                ..Sample::default()
            };
            bytes.extend_from_slice(&sample.to_bytes());
        }
        let path = dir.join("1-bare.samples");
        fs::write(&path, bytes).unwrap();
        path
    }

    #[test]
    fn a_header_that_says_more_than_the_records_prove_is_corrected() {
        let dir = tempfile::tempdir().unwrap();
        // Killed between `complete` and the number of skipped activations.
        let path = file(dir.path(), |header| header.complete = 1);
        assert!(samples::read(&path).is_err());
        let samples = proven(&path).unwrap();
        assert_eq!((samples.header.complete, samples.unexplained()), (0, 7));
        assert_eq!(
            samples::read(&path).unwrap(),
            samples,
            "the file itself is whole now"
        );
        // The target of a link in its place stays unchanged.
        let path = file(dir.path(), |header| header.complete = 1);
        let aim = dir.path().join("aim");
        fs::rename(&path, &aim).unwrap();
        std::os::unix::fs::symlink(&aim, &path).unwrap();
        let before = fs::read(&aim).unwrap();
        assert!(proven(&path).is_err());
        assert!(fs::read(&aim).unwrap() == before, "written through a link");
        fs::remove_file(&path).unwrap();
        let path = file(dir.path(), |header| header.count = 11);
        assert!(proven(&path).unwrap_err().to_string().contains("cut short"));
    }

    #[test]
    fn a_rehearsal_is_no_measurement() {
        let dir = tempfile::tempdir().unwrap();
        assert!(was_released(&file(dir.path(), |_| {})));
        assert!(!was_released(&file(dir.path(), |header| header.go_ns = 0)));
        assert!(!was_released(&dir.path().join("none")));
    }
}
