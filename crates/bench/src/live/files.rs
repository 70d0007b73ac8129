//! Thousands of small files that are read repeatedly: kept open as far as the limit of open files allows.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::rc::Rc;

/// Descriptors left to everything else.
const SPARE: usize = 64;

/// How many more files may be kept open.
#[derive(Debug, Clone)]
pub(super) struct Allowance(Rc<Cell<usize>>);

impl Allowance {
    /// Raises this process's limit of open files as far as allowed, and hands it out.
    pub(super) fn new() -> Allowance {
        let most = usize::try_from(host::limits::raise()).unwrap_or(usize::MAX);
        Allowance::of(most.saturating_sub(SPARE))
    }

    pub(super) fn of(files: usize) -> Allowance {
        Allowance(Rc::new(Cell::new(files)))
    }
}

/// A file that is read at places of its own, read-only.
#[derive(Debug)]
pub(super) struct Kept {
    path: PathBuf,
    file: Option<File>,
    allowance: Allowance,
}

impl Kept {
    pub(super) fn new(path: PathBuf, allowance: &Allowance) -> Kept {
        Kept {
            path,
            file: None,
            allowance: allowance.clone(),
        }
    }

    /// Calls `read` with the open file.
    pub(super) fn with<T>(&mut self, read: impl FnOnce(&File) -> io::Result<T>) -> io::Result<T> {
        if let Some(file) = &self.file {
            return read(file);
        }
        // Root watches other users' runs.
        let file = host::foreign_file::open(&self.path)?;
        let result = read(&file);
        let left = self.allowance.0.get();
        if left > 0 {
            self.allowance.0.set(left - 1);
            self.file = Some(file);
        }
        result
    }

    /// Fills `bytes` from `offset` on as far as the file goes; returns how many there were.
    pub(super) fn read_at(&mut self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.with(|file| {
            let mut filled = 0;
            while filled < bytes.len() {
                match file.read_at(&mut bytes[filled..], offset + filled as u64)? {
                    0 => break,
                    some => filled += some,
                }
            }
            Ok(filled)
        })
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if self.file.is_some() {
            self.allowance.0.set(self.allowance.0.get() + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_beyond_the_allowance_are_read_too() {
        let dir = tempfile::tempdir().unwrap();
        let allowance = Allowance::of(1);
        let mut kept: Vec<Kept> = (0..3u8)
            .map(|n| {
                let path = dir.path().join(n.to_string());
                std::fs::write(&path, [n; 10]).unwrap();
                Kept::new(path, &allowance)
            })
            .collect();
        for _ in 0..2 {
            for (n, kept) in (0u8..).zip(&mut kept) {
                let mut bytes = [99; 8];
                assert_eq!(kept.read_at(&mut bytes, 4).unwrap(), 6);
                assert_eq!(bytes, [n, n, n, n, n, n, 99, 99]);
            }
        }
        assert_eq!(kept.iter().filter(|kept| kept.file.is_some()).count(), 1);
        drop(kept);
        assert_eq!(allowance.0.get(), 1);
    }
}
