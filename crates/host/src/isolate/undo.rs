//! Undoing a journal, from its last line to its first, by any process that finds it. Paths that isolating never writes are refused.

use std::collections::HashMap;
use std::path::Path;

use super::journal::{Change, GROUP};
use super::{cpuset, tasks};
use crate::root::{Root, reason_of};

/// Undoes a journal and removes it; fine if there is none. For the journal of a process that is gone.
/// Returns one sentence for each thing that could not be put back; the journal stays then.
pub fn put_back(journal: &Path) -> Vec<String> {
    undo(&Root::live(), journal)
}

pub(super) fn undo(root: &Root, journal: &Path) -> Vec<String> {
    let text = match crate::file::text(journal) {
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
            Change::Group { path } => problems.extend(cpuset::remove(&path)),
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
    let now = crate::file::text(path).unwrap_or_default();
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
}
