//! The lock of a run that is measured, so that nobody else resumes it meanwhile.

use std::fs::{File, TryLockError};
use std::time::{Duration, Instant};

use record::run::Run;

use crate::BenchError;

/// How long a run may still be locked by cells of a killed coordinator that are about to end.
const PATIENCE: Duration = Duration::from_secs(1);
/// Time between two attempts.
const AGAIN_AFTER: Duration = Duration::from_millis(20);

/// A run's directory, locked by this process until this is dropped or the process ends. The lock leaves no file in the record.
pub(crate) struct Lock {
    /// `None`: the file system has no locks.
    _dir: Option<File>,
}

impl Lock {
    /// Locks the run.
    ///
    /// # Errors
    /// [`BenchError::Unmet`] if another process has locked it.
    pub(crate) fn of(run: &Run) -> Result<Lock, BenchError> {
        let Ok(dir) = File::open(run.dir()) else {
            return Ok(Lock { _dir: None });
        };
        let begun = Instant::now();
        loop {
            match dir.try_lock() {
                Ok(()) => return Ok(Lock { _dir: Some(dir) }),
                Err(TryLockError::Error(_)) => return Ok(Lock { _dir: None }),
                Err(TryLockError::WouldBlock) if begun.elapsed() < PATIENCE => {
                    std::thread::sleep(AGAIN_AFTER);
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(BenchError::Unmet(format!(
                        "{}: another timecell is measuring this run; wait until it has ended",
                        run.dir().display()
                    )));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_locked_by_one_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        for file in ["run.json", "experiment.toml"] {
            std::fs::write(dir.path().join(file), "").unwrap();
        }
        let run = Run::open(dir.path()).unwrap();
        let first = Lock::of(&run).unwrap();
        let refused = Lock::of(&run).err().unwrap().to_string();
        assert!(refused.contains("is measuring this run"), "{refused}");
        drop(first);
        assert!(Lock::of(&run).is_ok());
    }
}
