//! The lock of a journal's directory: one supervisor at a time.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::JournalError;

/// Keeps a second supervisor out of a directory. Held as long as it lives; gone with the process, however it ends.
#[derive(Debug)]
pub(super) struct Lock {
    // Closed on exec, so that no cell inherits it and holds it when the supervisor is gone.
    file: File,
}

impl Lock {
    pub(super) fn take(dir: &Path) -> Result<Lock, JournalError> {
        let path = dir.join("lock");
        let failed = |tried| {
            let path = path.clone();
            move |source| JournalError::System {
                path,
                tried,
                source,
            }
        };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW)
            .open(&path)
            .map_err(failed("opened"))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut pid = String::new();
                let read = file.take(20).read_to_string(&mut pid);
                return Err(JournalError::Locked {
                    dir: dir.to_owned(),
                    pid: read.ok().and_then(|_| pid.trim().parse().ok()),
                });
            }
            Err(TryLockError::Error(source)) => return Err(failed("locked")(source)),
        }
        let own = format!("{}\n", std::process::id());
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| file.write_all(own.as_bytes()))
            .map_err(failed("written"))?;
        Ok(Lock { file })
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing is not enough: a child that another thread has just forked shares the lock until it executes its program.
        let _ = self.file.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_of_the_descriptor_does_not_keep_the_lock() {
        let dir = tempfile::tempdir().unwrap();
        let lock = Lock::take(dir.path()).unwrap();
        let in_a_forked_child = lock.file.try_clone().unwrap();
        drop(lock);
        Lock::take(dir.path()).unwrap();
        drop(in_a_forked_child);
    }
}
