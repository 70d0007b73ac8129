//! The journal: one line for each change, written before the change is made.
//!
//! `file <path>\t<was>\t<set>`, `task <tid> <start> <was> <set>`, `kept <tid> <start>`, `group <path>`. It is undone
//! from its last line to its first. A path that this module never writes is refused.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::IsolateError;
use super::tasks;
use crate::cpus::{format_list, parse_list};
use crate::root::{Root, reason_of};

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

/// Undoes what a journal says and removes it; fine if there is none. For the journal of a process that is gone.
/// Returns one sentence for each thing that could not be put back; the journal stays then.
pub fn put_back(journal: &Path) -> Vec<String> {
    undo(&Root::live(), journal)
}

pub(super) fn undo(root: &Root, journal: &Path) -> Vec<String> {
    let text = match std::fs::read_to_string(journal) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Vec::new(),
        Err(error) => return vec![format!("{}: {}", journal.display(), reason_of(&error))],
    };
    let mut problems = Vec::new();
    let mut changes = Vec::new();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    for line in whole.lines() {
        match Change::parse(line).filter(|change| is_ours(root, change)) {
            Some(change) => changes.push(change),
            None => problems.push(format!("{}: not understood: {line}", journal.display())),
        }
    }
    let mut tasks = HashMap::new();
    for change in changes.into_iter().rev() {
        match change {
            Change::File { path, was, .. } => problems.extend(restore(&path, &was)),
            Change::Group { path } => problems.extend(super::cpuset::remove(&path)),
            // The first note of a task is from before any change.
            Change::Task {
                tid,
                start,
                was,
                set,
            } => {
                tasks.insert(tid, tasks::Known::moved(start, was, set));
            }
            Change::Kept { tid, start } => {
                tasks.insert(tid, tasks::Known::kept(start));
            }
        }
    }
    if !tasks.is_empty() {
        problems.extend(tasks::bring_back(&tasks));
    }
    if problems.is_empty()
        && let Err(error) = std::fs::remove_file(journal)
    {
        problems.push(format!("{}: {}", journal.display(), reason_of(&error)));
    }
    problems
}

/// Writes the old value of a file unless it is back already.
fn restore(path: &Path, was: &str) -> Option<String> {
    let now = std::fs::read_to_string(path).unwrap_or_default();
    if now.trim() == was {
        return None;
    }
    match std::fs::write(path, was) {
        Ok(()) => None,
        // An interrupt, or a group, that is gone needs nothing.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => Some(format!(
            "{} could not be set back to {was}: {}",
            path.display(),
            reason_of(&error)
        )),
    }
}

/// Whether this module could have written such a line.
fn is_ours(root: &Root, change: &Change) -> bool {
    let plain = |path: &Path| {
        path.components()
            .all(|part| !matches!(part, std::path::Component::ParentDir))
    };
    match change {
        Change::File { path, .. } => {
            let known = ["/proc/irq", "/sys/devices/virtual/workqueue"];
            let cpuset = ["cpuset.sched_load_balance", "cgroup.subtree_control"];
            let name = path.file_name().and_then(|name| name.to_str());
            plain(path)
                && (known.iter().any(|dir| path.starts_with(root.path(dir)))
                    || name.is_some_and(|name| cpuset.contains(&name)))
        }
        Change::Group { path } => {
            plain(path)
                && path.is_absolute()
                && path
                    .file_name()
                    .is_some_and(|name| name.to_string_lossy().starts_with(GROUP))
        }
        Change::Task { .. } | Change::Kept { .. } => true,
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

    #[test]
    fn a_journal_that_names_other_files_is_not_obeyed() {
        let dir = tempfile::tempdir().unwrap();
        let (victim, journal) = (dir.path().join("victim"), dir.path().join("journal"));
        std::fs::write(&victim, "mine").unwrap();
        let line = format!("file {}\tyours\tx\ngroup /home\n", victim.display());
        std::fs::write(&journal, line).unwrap();
        let problems = put_back(&journal);
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "mine");
        assert!(journal.exists());
    }

    #[test]
    fn a_line_that_was_cut_off_was_not_acted_upon() {
        let dir = tempfile::tempdir().unwrap();
        let journal = dir.path().join("journal");
        std::fs::write(&journal, "kept 1 2\nfile /proc/irq/9/smp_af").unwrap();
        assert_eq!(put_back(&journal), Vec::<String>::new());
        assert!(!journal.exists());
    }

    proptest! {
        #[test]
        fn no_line_panics(line in "(file|task|kept|group|x)[ \\t0-9/,a-z-]{0,30}") {
            let _ = Change::parse(&line);
        }
    }
}
