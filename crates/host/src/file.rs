//! The needs of almost every use of a file: an error that names it, and success where nothing is left to do.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::foreign_file::read_from;

/// The most bytes of a file that is read whole, without another bound: room for a list of all the process ids that Linux has.
const MOST_BYTES: u64 = 64 << 20;

/// The system's error about a file.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", path.display())]
pub struct FileError {
    /// The file or directory.
    pub path: PathBuf,
    /// Why it could not be used.
    pub source: io::Error,
}

impl From<FileError> for String {
    fn from(error: FileError) -> String {
        error.to_string()
    }
}

/// Names the file at `path` in an error.
pub fn at<E: Into<io::Error>>(path: &Path) -> impl Fn(E) -> FileError {
    move |error| FileError {
        path: path.to_owned(),
        source: error.into(),
    }
}

/// The contents of a file of at most 64 MiB that the kernel or timecell writes, and whose reading waits for no process: for files on the memory
/// and the descriptors of processes, see [`crate::bounded`].
///
/// # Errors
/// When there is more, or on an error of the system.
pub fn read(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    read_from(File::open(path)?, MOST_BYTES)
}

/// The same as text; bytes that are not UTF-8, such as in the name of a process, are replaced.
///
/// # Errors
/// As [`read`].
pub fn text(path: impl AsRef<Path>) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&read(path)?).into_owned())
}

/// Treats a missing file as removed.
///
/// # Errors
/// Any other.
pub fn gone(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Treats an existing file as made.
///
/// # Errors
/// Any other.
pub fn there(made: io::Result<()>) -> io::Result<()> {
    match made {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}
