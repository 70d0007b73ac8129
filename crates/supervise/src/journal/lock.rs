//! The lock of a journal's directory: one supervisor at a time.

use std::fs::{File, TryLockError};
use std::path::Path;

use super::JournalError;
use crate::lock_file;

/// Keeps a second supervisor out of a directory. Held as long as it lives; gone with the process, however it ends.
#[derive(Debug)]
pub(super) struct Lock {
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
        let file = lock_file::open(&path).map_err(failed("opened"))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(JournalError::Locked {
                    dir: dir.to_owned(),
                    pid: lock_file::said(&file, 20).trim().parse().ok(),
                });
            }
            Err(TryLockError::Error(source)) => return Err(failed("locked")(source)),
        }
        lock_file::say(&file, &format!("{}\n", std::process::id())).map_err(failed("written"))?;
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
