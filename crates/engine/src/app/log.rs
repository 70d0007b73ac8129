//! The output of a cell, kept in files of bounded size.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{OpenOptionsExt, chown};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use host::{foreign_file, ground};
use rustix::fs::{CWD, Mode, mkfifoat};
use rustix::pipe::fcntl_setpipe_size;

use super::Ids;

/// The output of a cell, kept in files of bounded size.
///
/// The cell writes into a named pipe that it holds open at both ends itself, so that neither the end nor the killing of
/// the supervisor breaks it: until somebody adopts the cell, up to 256 KiB wait in the pipe, and a cell that
/// writes more waits too. The log's holder calls [`Log::drain`] when it is readable. The newer half is in the file `output`, the older in
/// `output.old`; still older output is counted. A later cell in the same directory continues where the last one ended.
#[derive(Debug)]
pub struct Log {
    pipe: File,
    file: File,
    written: u64,
    dir: PathBuf,
    half: u64,
    /// Shared with the thread that reports it while another one drains.
    dropped_bytes: Arc<AtomicU64>,
}

/// The most that one call of [`Log::drain`] moves, bytes: a full pipe. A cell that writes without end must not keep the drainer from the
/// others.
pub const DRAINED_BYTES: u64 = PIPE_BYTES as u64;

/// Most reads of one call: the writes in a full pipe where each has a page to itself (O_DIRECT), however short it is.
const READS: u64 = DRAINED_BYTES >> 12;

/// Room in the pipe, in bytes, where the kernel grants it; else 64 KiB.
const PIPE_BYTES: usize = 256 << 10;

fn pipe_path(dir: &Path) -> PathBuf {
    dir.join("state/output.pipe")
}

fn new_path(dir: &Path) -> PathBuf {
    dir.join("output")
}

fn old_path(dir: &Path) -> PathBuf {
    dir.join("output.old")
}

fn dropped_path(dir: &Path) -> PathBuf {
    dir.join("output.dropped")
}

impl Log {
    /// Makes files in a cell's private directory and the pipe in its state; returns the cell's end beside it.
    pub(crate) fn make(dir: &Path, most_bytes: u64, ids: Ids) -> io::Result<(Log, OwnedFd)> {
        let path = pipe_path(dir);
        mkfifoat(CWD, &path, Mode::RUSR | Mode::WUSR)?;
        // Programs open /dev/stdout again, as their own user.
        chown(&path, Some(ids.uid), Some(ids.gid))?;
        let end = OpenOptions::new().read(true).write(true).open(&path)?;
        // A refusal leaves it as it is.
        let _ = fcntl_setpipe_size(&end, PIPE_BYTES);
        Ok((Log::open(dir, most_bytes)?, end.into()))
    }

    /// Opens the log of a cell that another process has made.
    pub(crate) fn open(dir: &Path, most_bytes: u64) -> io::Result<Log> {
        let pipe = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(pipe_path(dir))?;
        let file = append(&new_path(dir))?;
        let dropped = host::file::text(dropped_path(dir)).unwrap_or_default();
        Ok(Log {
            pipe,
            written: file.metadata()?.len(),
            file,
            dir: dir.to_owned(),
            half: (most_bytes / 2).max(1),
            dropped_bytes: Arc::new(AtomicU64::new(dropped.trim().parse().unwrap_or(0))),
        })
    }

    /// Moves the cell's output since the last call into the files, at most [`DRAINED_BYTES`] and by no more reads than a full
    /// pipe takes; never waits for the cell. Returns the number of bytes.
    ///
    /// # Errors
    /// When the files cannot be written; output read by then is counted as dropped.
    pub fn drain(&mut self) -> io::Result<u64> {
        let mut buffer = [0; 64 << 10];
        let mut moved = 0;
        for _ in 0..READS {
            if moved >= DRAINED_BYTES {
                break;
            }
            match self.pipe.read(&mut buffer) {
                Ok(0) => return Ok(moved),
                Ok(length) => {
                    moved += length as u64;
                    self.keep(&buffer[..length])?;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(moved),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(moved)
    }

    /// The present contents of the pipe, which are lost with it.
    pub(crate) fn take(&mut self) -> io::Result<String> {
        let mut bytes = Vec::new();
        // Processes that are left of the cell may go on writing.
        let pipe = (&self.pipe).take(PIPE_BYTES as u64);
        match { pipe }.read_to_end(&mut bytes) {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            _ => Ok(String::from_utf8_lossy(&bytes).trim().to_owned()),
        }
    }

    /// Bytes of output that are no longer kept.
    pub fn dropped_bytes(&self) -> u64 {
        self.dropped_bytes.load(Ordering::Relaxed)
    }

    /// The count behind [`Log::dropped_bytes`], for a thread that does not have the log.
    pub(crate) fn dropped_counter(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.dropped_bytes)
    }

    /// The kept output, the oldest first: at most `most_bytes` of its end.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn tail(&self, most_bytes: usize) -> io::Result<Vec<u8>> {
        tail(&self.dir, most_bytes)
    }

    fn keep(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            if self.written >= self.half {
                self.turn()?;
            }
            let room = usize::try_from(self.half - self.written).unwrap_or(usize::MAX);
            let (now, rest) = bytes.split_at(bytes.len().min(room));
            if let Err(error) = self.file.write_all(now) {
                self.dropped_bytes
                    .fetch_add(bytes.len() as u64, Ordering::Relaxed);
                return Err(error);
            }
            self.written += now.len() as u64;
            bytes = rest;
        }
        Ok(())
    }

    /// The newer half becomes the older one.
    fn turn(&mut self) -> io::Result<()> {
        let old = old_path(&self.dir);
        if let Ok(found) = fs::metadata(&old) {
            self.dropped_bytes.fetch_add(found.len(), Ordering::Relaxed);
            let dropped = self.dropped_bytes().to_string();
            ground::replace(&dropped_path(&self.dir), dropped.as_bytes())?;
        }
        fs::rename(new_path(&self.dir), old)?;
        self.file = append(&new_path(&self.dir))?;
        self.written = 0;
        Ok(())
    }
}

impl AsFd for Log {
    /// Readable when there is something to drain.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}

/// The kept output of the cell with this private directory; see [`Log::tail`].
pub(crate) fn tail(dir: &Path, most_bytes: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for path in [old_path(dir), new_path(dir)] {
        match foreign_file::open(&path).and_then(|mut file| file.read_to_end(&mut bytes)) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(bytes.split_off(bytes.len().saturating_sub(most_bytes)))
}

/// Bytes of output that the cells with this private directory have written, kept or dropped.
pub(crate) fn position(dir: &Path) -> u64 {
    let dropped = host::file::text(dropped_path(dir)).unwrap_or_default();
    let kept =
        [old_path(dir), new_path(dir)].map(|path| fs::metadata(path).map_or(0, |file| file.len()));
    dropped.trim().parse::<u64>().unwrap_or(0) + kept.iter().sum::<u64>()
}

fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW)
        .open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own_ids() -> Ids {
        Ids {
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
        }
    }

    fn place() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("state")).unwrap();
        dir
    }

    #[test]
    fn the_newest_is_kept_and_the_rest_is_counted() {
        let dir = place();
        let (mut log, end) = Log::make(dir.path(), 1000, own_ids()).unwrap();
        let mut end = File::from(end);
        let mut all = Vec::new();
        for number in 0..400 {
            let line = format!("line {number}\n");
            all.extend(line.bytes());
            end.write_all(line.as_bytes()).unwrap();
            if number % 7 == 0 {
                log.drain().unwrap();
            }
        }
        log.drain().unwrap();
        let kept = log.tail(usize::MAX).unwrap();
        assert!((500..=1000).contains(&kept.len()), "{}", kept.len());
        assert!(all.ends_with(&kept));
        assert_eq!(kept.len() as u64 + log.dropped_bytes(), all.len() as u64);
        assert_eq!(log.tail(9).unwrap(), b"line 399\n");
    }

    #[test]
    fn a_cell_that_writes_without_end_is_drained_in_turns() {
        let dir = place();
        let (mut log, end) = Log::make(dir.path(), 1 << 20, own_ids()).unwrap();
        let mut end = File::from(end);
        let writer = std::thread::spawn(move || {
            // Until nobody reads any more, or much more than one turn takes.
            for _ in 0..64 {
                end.write_all(&[b'x'; 64 << 10]).unwrap();
            }
        });
        let mut moved = 0;
        while moved < 64 * (64 << 10) {
            let now = log.drain().unwrap();
            assert!(now < DRAINED_BYTES + (64 << 10), "{now}");
            moved += now;
        }
        writer.join().unwrap();
    }

    #[test]
    fn a_pipe_of_packets_is_drained_in_turns() {
        let dir = place();
        let (mut log, end) = Log::make(dir.path(), 1 << 20, own_ids()).unwrap();
        assert!(fcntl_setpipe_size(&end, 1 << 20).unwrap() >= 1 << 20);
        rustix::fs::fcntl_setfl(&end, rustix::fs::OFlags::DIRECT).unwrap();
        let mut end = File::from(end);
        for _ in 0..READS + 10 {
            end.write_all(b"x").unwrap();
        }
        assert_eq!(log.drain().unwrap(), READS);
        assert_eq!(log.drain().unwrap(), 10);
    }

    #[test]
    fn the_position_counts_what_was_dropped_too() {
        let dir = place();
        assert_eq!(position(dir.path()), 0);
        let (mut log, end) = Log::make(dir.path(), 1000, own_ids()).unwrap();
        let mut end = File::from(end);
        for written in 1..=9_u64 {
            end.write_all(&[b'x'; 300]).unwrap();
            log.drain().unwrap();
            assert_eq!(position(dir.path()), 300 * written);
        }
        assert!(log.dropped_bytes() > 0);
    }

    #[test]
    fn a_pipe_without_a_reader_keeps_what_is_written_for_the_next() {
        let dir = place();
        let (mut log, end) = Log::make(dir.path(), 1 << 20, own_ids()).unwrap();
        let mut end = File::from(end);
        end.write_all(b"one\n").unwrap();
        log.drain().unwrap();
        drop(log);
        end.write_all(b"two\n").unwrap();
        let mut log = Log::open(dir.path(), 1 << 20).unwrap();
        assert_eq!(log.drain().unwrap(), 4);
        assert_eq!(log.tail(100).unwrap(), b"one\ntwo\n");
        assert_eq!(log.drain().unwrap(), 0);
        drop(end);
        assert_eq!(log.drain().unwrap(), 0);
    }
}
