//! The journal: one line for each change, written before the change is made.
//!
//! `file <path>\t<was>\t<set>`, `task <tid> <start> <was> <set>`, `kept <tid> <start>`, `group <path>`.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::found::IsolateError;
use crate::cpus::{format_list, parse_list};
use crate::root::reason_of;

/// Prefix of the cgroups that are made.
pub(super) const GROUP: &str = "timecell-cpus-";

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Change {
    /// A file of /proc or /sys held `was` and is set to `set`.
    File {
        path: PathBuf,
        was: String,
        set: String,
    },
    /// A task could use `was` and is bound to `set`.
    Task {
        tid: i32,
        /// Start in clock ticks since boot: a tid alone may be given again.
        start: u64,
        was: Vec<u32>,
        set: Vec<u32>,
    },
    /// A task was seen and needed no change.
    Kept { tid: i32, start: u64 },
    /// A cgroup is made.
    Group { path: PathBuf },
}

impl Change {
    fn line(&self) -> String {
        match self {
            Change::File { path, was, set } => {
                format!("file {}\t{was}\t{set}\n", path.display())
            }
            Change::Task {
                tid,
                start,
                was,
                set,
            } => format!(
                "task {tid} {start} {} {}\n",
                format_list(was),
                format_list(set)
            ),
            Change::Kept { tid, start } => format!("kept {tid} {start}\n"),
            Change::Group { path } => format!("group {}\n", path.display()),
        }
    }

    /// Reads a line; `None` if it is not whole, which is the last one of a writer that was killed.
    pub(super) fn parse(line: &str) -> Option<Change> {
        let (kind, rest) = line.split_once(' ')?;
        let words: Vec<&str> = rest.split(' ').collect();
        Some(match (kind, words.as_slice()) {
            ("file", _) => {
                let mut parts = rest.split('\t');
                let change = Change::File {
                    path: PathBuf::from(parts.next()?),
                    was: parts.next()?.to_owned(),
                    set: parts.next()?.to_owned(),
                };
                return parts.next().is_none().then_some(change);
            }
            ("task", [tid, start, was, set]) => Change::Task {
                tid: tid.parse().ok()?,
                start: start.parse().ok()?,
                was: parse_list(was).ok()?,
                set: parse_list(set).ok()?,
            },
            ("kept", [tid, start]) => Change::Kept {
                tid: tid.parse().ok()?,
                start: start.parse().ok()?,
            },
            ("group", _) => Change::Group {
                path: PathBuf::from(rest),
            },
            _ => return None,
        })
    }
}

/// A journal that is being written.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    file: File,
}

impl Journal {
    pub(super) fn create(path: &Path) -> Result<Journal, IsolateError> {
        let file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .map_err(|error| failed(path, &error))?;
        Ok(Journal {
            path: path.to_owned(),
            file,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a change down. One write: a killed process leaves whole lines, or the beginning of one that was not
    /// acted upon.
    pub(super) fn note(&mut self, change: &Change) -> Result<(), IsolateError> {
        self.note_all(std::slice::from_ref(change))
    }

    pub(super) fn note_all(&mut self, changes: &[Change]) -> Result<(), IsolateError> {
        let text: String = changes.iter().map(Change::line).collect();
        self.file
            .write_all(text.as_bytes())
            .map_err(|error| failed(&self.path, &error))
    }
}

fn failed(path: &Path, error: &std::io::Error) -> IsolateError {
    IsolateError::Journal {
        path: path.display().to_string(),
        reason: reason_of(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lines_come_back() {
        for change in [
            Change::File {
                path: "/proc/irq/9/smp_affinity_list".into(),
                was: "0-3".to_owned(),
                set: "0".to_owned(),
            },
            Change::Task {
                tid: 7,
                start: 99,
                was: vec![0, 1, 5],
                set: vec![0],
            },
            Change::Kept { tid: 1, start: 2 },
            Change::Group {
                path: "/sys/fs/cgroup/cpuset/timecell-cpus-9".into(),
            },
        ] {
            assert_eq!(Change::parse(change.line().trim_end()), Some(change));
        }
    }

    proptest! {
        #[test]
        fn no_line_panics(line in "(file|task|kept|group|x)[ \\t0-9/,a-z-]{0,30}") {
            let _ = Change::parse(&line);
        }
    }
}
