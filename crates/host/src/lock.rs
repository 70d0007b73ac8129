//! Files locked for a moment while state is changed that the whole machine shares. This is not the journal's lock, which a
//! supervisor holds all the time and which identifies it.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

/// The directory that all supervisors and measurements of a machine share; it lasts until the reboot.
pub const PLACE: &str = "/run/timecell";

/// Locks a file of this directory, which is made where it is not there, within this time; it is given back by closing the file.
///
/// # Errors
/// `TimedOut` when another process keeps it locked, or the system's error.
pub fn take(dir: &Path, name: &str, patience: Duration) -> io::Result<File> {
    (DirBuilder::new().mode(0o755).recursive(true)).create(dir)?;
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW)
        .open(dir.join(name))?;
    let until = Instant::now() + patience;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(2));
            }
            Err(TryLockError::WouldBlock) => {
                return Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    "another process keeps it locked",
                ));
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_has_it_and_others_do_not_wait_for_ever() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("made");
        let kept = take(&dir, "lock", Duration::ZERO).unwrap();
        let error = take(&dir, "lock", Duration::from_millis(5)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        kept.unlock().unwrap();
        take(&dir, "lock", Duration::from_secs(5)).unwrap();
    }
}
