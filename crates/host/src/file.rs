//! What almost every use of a file needs: an error that names the file, and treating what is already done as success.

use std::io;
use std::path::{Path, PathBuf};

/// What the system says about a file.
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
