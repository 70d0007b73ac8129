//! The root under which `/proc`, `/sys`, `/dev` and `/etc` are read: the machine itself, or a small
//! made-up tree in a test.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The most bytes read from one file. Files of `/proc` and `/sys` are far smaller; the bound keeps
/// a wrong path (a device, a pipe that never ends) from filling memory.
const MOST_BYTES: u64 = 8 << 20;

/// Room for most files of `/proc` and `/sys`, which do not report their size: this way they are read at once, not in small pieces.
const USUAL_BYTES: usize = 4096;

/// Where the machine's files are found. `Root::live()` is the machine itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root(PathBuf);

/// A file that could not be read, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path} cannot be read ({reason})")]
pub struct Unreadable {
    /// The path as a program on the machine would name it, without the root.
    pub path: String,
    /// The reason in the words of the operating system.
    pub reason: String,
}

impl Default for Root {
    fn default() -> Self {
        Self::live()
    }
}

impl Root {
    /// The machine itself.
    pub fn live() -> Self {
        Self(PathBuf::from("/"))
    }

    /// A tree that holds `proc/`, `sys/`, ... below `path`.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Whether this is the machine itself, so that system calls and files speak of the same thing.
    pub fn is_live(&self) -> bool {
        self.0 == Path::new("/")
    }

    /// The place of `absolute` (such as `/proc/stat`) under this root.
    pub fn path(&self, absolute: impl AsRef<Path>) -> PathBuf {
        let absolute = absolute.as_ref();
        self.0.join(absolute.strip_prefix("/").unwrap_or(absolute))
    }

    /// Whether something exists at `absolute`.
    pub fn exists(&self, absolute: impl AsRef<Path>) -> bool {
        self.path(absolute).exists()
    }

    /// The bytes of a file, at most 8 MiB of them.
    pub fn read_bytes(&self, absolute: impl AsRef<Path>) -> Result<Vec<u8>, Unreadable> {
        let absolute = absolute.as_ref();
        let read = || -> std::io::Result<Vec<u8>> {
            let mut bytes = Vec::with_capacity(USUAL_BYTES);
            File::open(self.path(absolute))?
                .take(MOST_BYTES)
                .read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        read().map_err(|error| Unreadable {
            path: absolute.display().to_string(),
            reason: reason_of(&error),
        })
    }

    /// Whether there is nothing to be read at `absolute` for now: no such file, or one of a device that is gone or offline (the governor of a cpu
    /// that is offline is "busy").
    pub(crate) fn is_absent(&self, absolute: impl AsRef<Path>) -> bool {
        let read = File::open(self.path(absolute)).and_then(|mut file| file.read(&mut [0]));
        let why = read.err().and_then(|error| error.raw_os_error());
        matches!(
            why,
            Some(libc::ENOENT | libc::ENODEV | libc::ENXIO | libc::EBUSY)
        )
    }

    /// The text of a file without white space at its ends; bytes that are not UTF-8 are replaced.
    pub fn read(&self, absolute: impl AsRef<Path>) -> Result<String, Unreadable> {
        let bytes = self.read_bytes(absolute)?;
        Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    /// One number from a file, in the file's unit.
    pub fn read_number<N: std::str::FromStr>(
        &self,
        absolute: impl AsRef<Path>,
    ) -> Result<N, Unreadable> {
        let absolute = absolute.as_ref();
        let text = self.read(absolute)?;
        text.parse().map_err(|_| Unreadable {
            path: absolute.display().to_string(),
            reason: format!("it holds {:?} instead of a number", shorten(&text)),
        })
    }

    /// The names of the directories in a directory, in no order. Empty if it cannot be read.
    pub fn dirs_in(&self, absolute: impl AsRef<Path>) -> Vec<String> {
        let entries = std::fs::read_dir(self.path(absolute));
        (entries.into_iter().flatten().flatten())
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect()
    }

    /// The names in a directory, sorted; numbers in them sort by value. Empty if it cannot be read.
    pub fn names_in(&self, absolute: impl AsRef<Path>) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.path(absolute)) else {
            return Vec::new();
        };
        let mut names: Vec<String> = entries
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
        names
    }
}

/// The operating system's words without Rust's "(os error 2)".
pub(crate) fn reason_of(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(end) => text[..end].to_lowercase(),
        None => text,
    }
}

/// At most 60 characters of `text`, for messages.
pub(crate) fn shorten(text: &str) -> String {
    if text.chars().count() <= 60 {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(57).collect();
    short.push_str("...");
    short
}
