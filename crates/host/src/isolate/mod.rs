//! Keeping cpus free of other work while something is measured on them: affinities of tasks, interrupts and
//! workqueues, and the cpuset file system where it allows it. Every change is written down in a journal before it is
//! made, so that any process that finds the journal can undo it. Work on the cpus is no concern of this module.

mod affinities;
mod controllers;
mod cpuset;
mod files;
mod found;
mod journal;
mod partition;
mod process;
mod tasks;
mod undo;

use std::path::Path;

use crate::cpus::{self, format_list};
use crate::root::Root;
use found::others;
use journal::Journal;

pub use controllers::PREFIX as CONTROLLERS_PREFIX;
pub use found::{IsolateError, Isolated};
pub use partition::{Kept, PREFIX as PARTITION_PREFIX, Partition, Partitions, invalid};
pub use undo::put_back;

/// Cpus kept free for as long as this lives.
#[derive(Debug)]
#[must_use = "everything is put back when this is dropped"]
pub struct Isolation {
    journal: Journal,
    root: Root,
    found: Isolated,
    group: Option<std::path::PathBuf>,
    over: bool,
}

impl Isolation {
    /// Keeps `cpus` free of other work. `journal` is a new file on which every change is noted before it is made;
    /// [`put_back`] undoes them from it.
    ///
    /// Work that cannot be moved is not an error: [`Isolation::found`] counts and names it.
    ///
    /// # Errors
    /// When no cpu would be left for other work, or the journal cannot be written. Then every change is undone.
    pub fn hold(cpus: &[u32], journal: &Path) -> Result<Isolation, IsolateError> {
        Isolation::hold_at(&Root::live(), cpus, journal)
    }

    /// Only takes `cpus` out of load balancing: where that is possible ([`Isolation::is_split`]) they are a root domain of
    /// their own, to whose cpus SCHED_DEADLINE threads can be bound. No task and no interrupt is moved. `journal` as in
    /// [`Isolation::hold`].
    ///
    /// # Errors
    /// As [`Isolation::hold`].
    pub fn split(cpus: &[u32], journal: &Path) -> Result<Isolation, IsolateError> {
        let root = Root::live();
        let mut isolation = Isolation::begin(&root, cpus, journal)?;
        isolation.group = cpuset::split(&root, &mut isolation.journal, &mut isolation.found)?;
        Ok(isolation)
    }

    fn begin(root: &Root, cpus: &[u32], journal: &Path) -> Result<Isolation, IsolateError> {
        let online = cpus::online_at(root)?;
        let rest = others(&online, cpus);
        if rest.is_empty() {
            return Err(IsolateError::NothingLeft {
                cpus: format_list(&online),
            });
        }
        Ok(Isolation {
            journal: Journal::create(journal)?,
            root: root.clone(),
            found: Isolated {
                cpus: cpus.to_vec(),
                rest,
                isolcpus: cpus::isolated_at(root),
                nohz_full: cpus::list_file(root, "/sys/devices/system/cpu/nohz_full")
                    .unwrap_or_default(),
                ..Isolated::default()
            },
            group: None,
            over: false,
        })
    }

    fn hold_at(root: &Root, cpus: &[u32], journal: &Path) -> Result<Isolation, IsolateError> {
        let mut isolation = Isolation::begin(root, cpus, journal)?;
        files::move_away(root, &mut isolation.journal, &mut isolation.found)?;
        if root.is_live() {
            tasks::move_away(&mut isolation.journal, &mut isolation.found)?;
        }
        isolation.group = cpuset::split(root, &mut isolation.journal, &mut isolation.found)?;
        Ok(isolation)
    }

    /// The work moved, and the work left.
    pub fn found(&self) -> &Isolated {
        &self.found
    }

    /// Whether the cpus are out of load balancing; if not, [`Isolated::balancing`] says why.
    pub fn is_split(&self) -> bool {
        self.found.balancing.starts_with("off")
    }

    /// The cgroup that a process must join to use the cpus: there is one where they are a cpuset partition.
    pub fn group(&self) -> Option<&Path> {
        self.group.as_deref()
    }

    /// Puts everything back; returns one sentence for each thing that could not be.
    pub fn end(mut self) -> Vec<String> {
        self.over = true;
        undo::undo(&self.root, self.journal.path())
    }
}

impl Drop for Isolation {
    fn drop(&mut self) {
        if !self.over {
            let _ = undo::undo(&self.root, self.journal.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    fn tree() -> Tree {
        Tree::new()
            .file("/sys/devices/system/cpu/online", "0-3\n")
            .file("/sys/devices/system/cpu/isolated", "\n")
            .file("/sys/devices/system/cpu/nohz_full", "3\n")
            .file("/proc/irq/default_smp_affinity", "f\n")
            .file("/proc/irq/9/smp_affinity_list", "0-3\n")
            .file("/proc/irq/24/smp_affinity_list", "3\n")
            .file("/proc/irq/25/smp_affinity_list", "0\n")
            .file("/sys/devices/virtual/workqueue/cpumask", "f\n")
            .file("/proc/self/mountinfo", "")
    }

    #[test]
    fn interrupts_and_workqueues_go_and_come_back() {
        let tree = tree();
        let journal = tempfile::tempdir().unwrap();
        let journal = journal.path().join("isolation");
        let isolation = Isolation::hold_at(&tree.root(), &[2, 3], &journal).unwrap();
        let read = |path: &str| tree.root().read(path).unwrap();
        assert_eq!(read("/proc/irq/9/smp_affinity_list"), "0-1");
        // An interrupt that was wholly on the cpus goes to all the others.
        assert_eq!(read("/proc/irq/24/smp_affinity_list"), "0-1");
        assert_eq!(read("/proc/irq/default_smp_affinity"), "3");
        assert_eq!(read("/sys/devices/virtual/workqueue/cpumask"), "3");
        let found = isolation.found().clone();
        assert_eq!((found.irqs_moved, found.workqueues), (2, Some(true)));
        assert_eq!((found.rest, found.nohz_full), (vec![0, 1], vec![3]));
        assert_eq!(isolation.end(), Vec::<String>::new());
        assert_eq!(read("/proc/irq/9/smp_affinity_list"), "0-3");
        assert_eq!(read("/proc/irq/24/smp_affinity_list"), "3");
        assert_eq!(read("/proc/irq/25/smp_affinity_list"), "0");
        assert_eq!(read("/proc/irq/default_smp_affinity"), "f");
        assert_eq!(read("/sys/devices/virtual/workqueue/cpumask"), "f");
        assert!(!journal.exists());
    }

    #[test]
    fn dropping_puts_back_too() {
        let tree = tree();
        let journal = tempfile::tempdir().unwrap();
        let journal = journal.path().join("isolation");
        drop(Isolation::hold_at(&tree.root(), &[1], &journal).unwrap());
        let read = |path: &str| tree.root().read(path).unwrap();
        assert_eq!(read("/proc/irq/9/smp_affinity_list"), "0-3");
        assert!(!journal.exists());
    }

    #[test]
    fn all_cpus_are_too_many() {
        let tree = tree();
        let journal = tempfile::tempdir().unwrap();
        let journal = journal.path().join("isolation");
        let error = Isolation::hold_at(&tree.root(), &[0, 1, 2, 3], &journal).unwrap_err();
        assert_eq!(
            error.to_string(),
            "no cpu is left for other work: the machine has only 0-3"
        );
        assert!(!journal.exists());
    }
}
