//! Why a record could not be written or read.

use std::path::{Path, PathBuf};

/// Why a record could not be written or read. Each variant prints as one sentence that names the file.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The operating system refused, for example because of a full disk or a read-only directory.
    #[error("{}: cannot {doing}: {}", path.display(), plain(source))]
    Io {
        /// File or directory.
        path: PathBuf,
        /// The operation, such as `write`.
        doing: &'static str,
        /// The system's error.
        source: std::io::Error,
    },
    /// The file is not of the kind that its name indicates.
    #[error("{}: {what}", path.display())]
    Malformed {
        /// File.
        path: PathBuf,
        /// Its fault.
        what: String,
    },
    /// The file ends early.
    #[error("{}: cut short: {what}; the run cannot be studied unless this file is restored", path.display())]
    CutShort {
        /// File.
        path: PathBuf,
        /// The lost part.
        what: String,
    },
    /// A newer timecell wrote the file.
    #[error("{}: schema {found} is newer than this timecell, which reads up to {known}; use a newer timecell", path.display())]
    Newer {
        /// File.
        path: PathBuf,
        /// Schema of the file.
        found: u64,
        /// Newest schema known here.
        known: u64,
    },
    /// The directory is not a run.
    #[error("{}: not a run: it contains no {missing}", path.display())]
    NotARun {
        /// Directory.
        path: PathBuf,
        /// The file that every run has.
        missing: &'static str,
    },
}

fn plain(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::StorageFull => {
            "the disk is full; free some space or choose another place with --out or --output"
                .to_owned()
        }
        std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem => {
            format!("{error}; choose a writable place with --out or --output")
        }
        _ => error.to_string(),
    }
}

impl RecordError {
    pub(crate) fn io(
        path: &Path,
        doing: &'static str,
    ) -> impl FnOnce(std::io::Error) -> RecordError {
        let path = path.to_owned();
        move |source| RecordError::Io {
            path,
            doing,
            source,
        }
    }

    pub(crate) fn malformed(path: &Path, what: impl Into<String>) -> RecordError {
        RecordError::Malformed {
            path: path.to_owned(),
            what: what.into(),
        }
    }
}
