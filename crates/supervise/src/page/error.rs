//! Why a page could not be created or read.

use std::path::PathBuf;

use timecell_client::layout::MAX_SLOTS;

/// Why a page could not be created or read.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// The operating system refused something.
    #[error("{} cannot be {tried}: {source}", path.display())]
    System {
        /// The page, or the directory it lies in.
        path: PathBuf,
        /// The failed operation.
        tried: &'static str,
        /// Why it was refused.
        source: std::io::Error,
    },
    /// The cell has cut the page short, or it is another page.
    #[error("{} is cut off: it has fewer than {needed_bytes} bytes", path.display())]
    Cut {
        /// The page.
        path: PathBuf,
        /// How long it has to be.
        needed_bytes: usize,
    },
    /// Something other than a file is there now.
    #[error("{} is not a regular file", path.display())]
    NotAFile {
        /// The page.
        path: PathBuf,
    },
    /// The cell declares more tasks than a page holds.
    #[error("{tasks} tasks in one cell; a job page holds at most {MAX_SLOTS}")]
    TooManyTasks {
        /// Their number.
        tasks: usize,
    },
    /// A task has a name that the page cannot hold.
    #[error("{name:?} is not a valid task name; use 1 to 256 bytes without control characters")]
    BadName {
        /// The name.
        name: String,
    },
}
