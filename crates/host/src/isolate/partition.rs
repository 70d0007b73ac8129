//! Cpuset partitions for SCHED_DEADLINE threads, by cgroup v2: a group at the top whose cpus are a root domain of their own, so that
//! such threads can be kept to them, and on which nobody outside the group runs (the kernel's cgroup-v2, "cpuset.cpus.partition").
//! They outlive the process that made them. The threads in one are none of this module's business.

use std::io;
use std::path::{Path, PathBuf};

use super::affinities::{self, Affinities, Note};
use super::cpuset;
use super::journal::GROUP;
use crate::cgroup::{self, Layout};
use crate::cpus::{self, format_list, parse_list};
use crate::error::{Doing, Result};
use crate::file::gone;
use crate::root::Root;

/// The prefix of the names of all groups that have cpus for themselves.
pub const PREFIX: &str = GROUP;

/// The file that notes the affinities of tasks from before there were partitions.
const NOTE: &str = "partitions.affinities";

/// Where partitions are made, and which there are. A process that makes or removes one, or undoes half-done work, sees to it that nobody
/// else on the machine does so meanwhile.
#[derive(Debug, Clone)]
pub struct Partitions {
    root: Root,
    top: PathBuf,
    /// A directory for notes about them.
    notes: PathBuf,
}

/// A partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    /// Name of its group.
    pub name: String,
    /// Its group.
    pub path: PathBuf,
    /// Its cpus, ascending.
    pub cpus: Vec<u32>,
}

/// A cpu of which no partition can be made, because of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// The cpu.
    pub cpu: u32,
    /// The group.
    pub group: String,
    /// Whether nobody outside that group can run there; otherwise it only names the cpu.
    pub is_partition: bool,
}

impl Partitions {
    /// Those of this machine; `notes` is a directory of root's that goes with the boot.
    ///
    /// # Errors
    /// Why there can be none, a clause: the machine does not have cgroup v2 alone, or this process does not see all of it.
    pub fn detect(notes: impl Into<PathBuf>) -> Result<Partitions> {
        Partitions::detect_at(&Root::live(), notes)
    }

    pub(crate) fn detect_at(root: &Root, notes: impl Into<PathBuf>) -> Result<Partitions> {
        let cgroups = cgroup::detect_at(root)?;
        let layout = cgroups.layout();
        let Some(mount) = cgroups.v2.filter(|_| layout == Layout::V2) else {
            return Err(format!(
                "only a machine with cgroup v2 alone has cpuset partitions, and this one has {layout}"
            )
            .into());
        };
        if mount.root != "/" {
            return Err("the root of the cgroup hierarchy is not mounted here".into());
        }
        if !mount.controllers.iter().any(|name| name == "cpuset") {
            return Err("there is no cpuset controller".into());
        }
        Ok(Partitions {
            root: root.clone(),
            top: mount.point,
            notes: notes.into(),
        })
    }

    /// The existing ones whose names begin with `prefix`, valid or not.
    pub fn all(&self, prefix: &str) -> Vec<Partition> {
        let mut names = self.root.dirs_in(&self.top);
        names.retain(|name| name.starts_with(prefix));
        names.sort();
        let known = names.into_iter().map(|name| self.of(&name));
        known.collect()
    }

    fn of(&self, name: &str) -> Partition {
        let path = self.top.join(name);
        Partition {
            cpus: self.list(&path.join("cpuset.cpus")),
            name: name.to_owned(),
            path,
        }
    }

    fn list(&self, file: &Path) -> Vec<u32> {
        let text = self.root.read(file).unwrap_or_default();
        parse_list(&text).unwrap_or_default()
    }

    /// Cpus that groups at the top keep out of new partitions, except groups whose names begin with one of `own`.
    pub fn kept(&self, own: &[&str]) -> Vec<Kept> {
        let mut kept = Vec::new();
        for group in self.root.dirs_in(&self.top) {
            if own.iter().any(|own| group.starts_with(own)) {
                continue;
            }
            let dir = self.top.join(&group);
            let state = self.root.read(dir.join("cpuset.cpus.partition"));
            let state = state.unwrap_or_default();
            // One that the kernel calls invalid names its cpus all the same, and keeps others from having them.
            let is_partition = state == "root" || state == "isolated";
            for cpu in self.list(&dir.join("cpuset.cpus")) {
                kept.push(Kept {
                    cpu,
                    group: group.clone(),
                    is_partition,
                });
            }
        }
        kept
    }

    /// The partition of this name and these cpus, made if it is not there. Tasks elsewhere that are bound to some of the other cpus
    /// stay so. Those that are bound to these cpus alone the kernel puts on others.
    ///
    /// # Errors
    /// Why it cannot be had, a sentence; nothing is left of it then.
    pub fn make(&self, name: &str, cpus: &[u32]) -> Result<PathBuf> {
        // Where nothing can be written down, nothing is made.
        let _ = self.finish();
        let there = self.of(name);
        if self.root.exists(&there.path) {
            if there.cpus == cpus && invalid_at(&self.root, &there.path).is_none() {
                return Ok(there.path);
            }
            self.remove(name)?;
        }
        let online = cpus::online_at(&self.root)?;
        let doing = || {
            format!(
                "cpu {} cannot be made a cpuset partition",
                format_list(cpus)
            )
        };
        if let Some(off) = cpus.iter().find(|cpu| !online.contains(cpu)) {
            return Err(format!("cpu {off} is offline")).doing(doing);
        }
        // Before anything is changed: undoing needs it, also after this process was killed.
        let note = self.note().doing(doing)?;
        // Groups that had no cpusets get them now, by which kernels before 6.2 forget the affinities of tasks in them.
        let made = cgroup::hand_down_in(&self.root, &self.top, "cpuset")
            .and_then(|()| cpuset::make_partition(&self.root.path(&there.path), cpus, "root"));
        // `finish` does it again and tells; the partition is as it was asked for.
        let _ = self.bring_back(note);
        made.doing(doing)?;
        Ok(there.path)
    }

    /// Where the group of this name is, or would be.
    pub fn path(&self, name: &str) -> PathBuf {
        self.top.join(name)
    }

    /// Whether there are processes in it or in groups below it; false for one that is gone.
    pub fn is_populated(&self, name: &str) -> bool {
        let events = self.root.read(self.top.join(name).join("cgroup.events"));
        events.is_ok_and(|text| text.lines().any(|line| line == "populated 1"))
    }

    /// Removes the partition of this name with the empty groups in it: its cpus are everybody's again, and tasks elsewhere are
    /// bound to those that they were bound to. Fine if there is none.
    ///
    /// # Errors
    /// When processes are left in it, a sentence.
    pub fn remove(&self, name: &str) -> Result<()> {
        let _ = self.finish();
        let group = self.top.join(name);
        if !self.root.exists(&group) {
            return Ok(());
        }
        let doing = || group.display().to_string();
        if self.is_populated(name) {
            return Err("processes are left in it, so it stays").doing(doing);
        }
        let note = self.note().doing(doing)?;
        let removed = remove_partition(&self.root.path(&group));
        let _ = self.bring_back(note);
        removed.doing(doing)
    }

    /// Gives tasks their affinities back where the process that made or removed a partition last was killed over it or could not write
    /// down the outcome, or somebody else has removed the last one.
    ///
    /// # Errors
    /// When it cannot be written down, a sentence: it is done once more the next time, also to tasks that were bound otherwise meanwhile.
    pub fn finish(&self) -> Result<()> {
        let file = self.notes.join(NOTE);
        if file.exists() {
            let note = Note::read(&file);
            if note.is_open() || !self.are_there() {
                return self.bring_back(note);
            }
        }
        Ok(())
    }

    /// Where a path of the machine lies.
    pub(super) fn at(&self, path: &Path) -> PathBuf {
        self.root.path(path)
    }

    /// The names of the groups at the top.
    pub(super) fn groups(&self) -> Vec<String> {
        self.root.dirs_in(&self.top)
    }

    /// Writes down the affinities of tasks, before cpusets change.
    pub(super) fn note(&self) -> Result<Note> {
        let file = self.notes.join(NOTE);
        let mut note = Note::read(&file);
        note.open(&Affinities::now(&self.root));
        note.write(&file).doing(|| file.display().to_string())?;
        Ok(note)
    }

    /// Binds tasks to those of their old cpus that are there, after cpusets have changed. Where there is no room to write that down, the old
    /// note stays, and the next process does it once more.
    pub(super) fn bring_back(&self, mut note: Note) -> Result<()> {
        let file = self.notes.join(NOTE);
        note.close(&Affinities::now(&self.root), affinities::bind);
        let written = match self.are_there() {
            true => note.write(&file),
            // Its contents are true no more.
            false => gone(std::fs::remove_file(&file)),
        };
        written.doing(|| {
            format!(
                "{}: the affinities of tasks outside cpuset partitions cannot be saved, so they are restored again next time",
                file.display()
            )
        })
    }

    /// Whether there are any for which the note is kept. Those of measurements, which have but a process id behind the prefix, keep their own.
    fn are_there(&self) -> bool {
        let is_number = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit());
        let groups = self.root.dirs_in(&self.top).into_iter();
        let mut names = groups.filter_map(|group| group.strip_prefix(PREFIX).map(str::to_owned));
        names.any(|name| !is_number(&name))
    }
}

/// Why the group of a partition of this machine does not keep its processes to its cpus, a clause; `None`: it does.
pub fn invalid(group: &Path) -> Option<String> {
    invalid_at(&Root::live(), group)
}

fn invalid_at(root: &Root, group: &Path) -> Option<String> {
    match root.read(group.join("cpuset.cpus.partition")) {
        Ok(state) if state == "root" => None,
        Ok(state) => Some(format!("the kernel calls it `{state}`")),
        Err(error) => Some(error.to_string()),
    }
}

/// Removes a partition that nobody is in, with the groups below it.
fn remove_partition(group: &Path) -> io::Result<()> {
    for below in cgroup::below(group) {
        cgroup::remove_empty(&below)?;
    }
    // The kernel takes a removed group apart later on. This it does at once, and whomever it binds otherwise by that is seen after it.
    let state = group.join("cpuset.cpus.partition");
    if state.exists() {
        std::fs::write(state, "member")?;
    }
    cgroup::remove_empty(group)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    const V2: &str = "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
    const V1: &str = "31 23 0:27 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n";

    fn machine(mounts: &str, controllers: &str) -> Tree {
        Tree::new()
            .file("/proc/self/mountinfo", mounts)
            .file("/sys/devices/system/cpu/online", "0-3\n")
            .file("/sys/fs/cgroup/cgroup.controllers", controllers)
            .file("/sys/fs/cgroup/cgroup.subtree_control", "cpuset pids\n")
    }

    fn of(tree: &Tree) -> Result<Partitions> {
        Partitions::detect_at(&tree.root(), tree.root().path("/run"))
    }

    #[test]
    fn only_a_machine_with_v2_alone_has_them() {
        assert!(of(&machine(V2, "cpuset pids\n")).is_ok());
        let hybrid = machine(&format!("{V2}{V1}"), "cpuset pids\n");
        let why = of(&hybrid).unwrap_err().to_string();
        assert!(
            why.contains("cgroup v2 alone") && why.contains("hybrid"),
            "{why}"
        );
        assert!(
            of(&machine(V2, "pids\n"))
                .unwrap_err()
                .to_string()
                .contains("no cpuset controller")
        );
        let inside = V2.replace("0:26 / ", "0:26 /docker/a ");
        assert!(
            of(&machine(&inside, "cpuset\n"))
                .unwrap_err()
                .to_string()
                .contains("root of the cgroup")
        );
    }

    #[test]
    fn groups_that_name_a_cpu_are_found_and_ones_own_are_not() {
        let tree = machine(V2, "cpuset\n")
            .file("/sys/fs/cgroup/user.slice/cpuset.cpus", "\n")
            .file(
                "/sys/fs/cgroup/user.slice/cpuset.cpus.partition",
                "member\n",
            )
            .file("/sys/fs/cgroup/rt/cpuset.cpus", "2-3\n")
            .file("/sys/fs/cgroup/rt/cpuset.cpus.partition", "isolated\n")
            .file("/sys/fs/cgroup/pinned/cpuset.cpus", "1\n")
            .file("/sys/fs/cgroup/pinned/cpuset.cpus.partition", "member\n")
            .file("/sys/fs/cgroup/timecell-cpus-m.0/cpuset.cpus", "0\n")
            .file(
                "/sys/fs/cgroup/timecell-cpus-m.0/cpuset.cpus.partition",
                "root\n",
            );
        let partitions = of(&tree).unwrap();
        let mut kept = partitions.kept(&["timecell-cpus-m."]);
        kept.sort_by_key(|kept| kept.cpu);
        let kept = kept.into_iter();
        let kept: Vec<_> = kept
            .map(|kept| (kept.cpu, kept.group, kept.is_partition))
            .collect();
        let expected = [(1, "pinned", false), (2, "rt", true), (3, "rt", true)];
        assert_eq!(
            kept,
            expected.map(|(cpu, group, is)| (cpu, group.to_owned(), is))
        );
        let all = partitions.all(PREFIX);
        assert_eq!((all.len(), all[0].cpus.as_slice()), (1, &[0][..]));
    }

    #[test]
    fn a_cpu_that_is_offline_changes_nothing() {
        let tree = machine(V2, "cpuset\n");
        let partitions = of(&tree).unwrap();
        let why = partitions
            .make("timecell-cpus-m.7", &[7])
            .unwrap_err()
            .to_string();
        assert_eq!(
            why,
            "cpu 7 cannot be made a cpuset partition: cpu 7 is offline"
        );
        assert_eq!(partitions.all(PREFIX), []);
    }

    #[test]
    fn a_partition_of_somebody_else_is_not_touched() {
        let other = "/sys/fs/cgroup/rt/cpuset.cpus";
        let tree = machine(V2, "cpuset\n")
            .file(other, "2-3\n")
            .file("/sys/fs/cgroup/rt/cpuset.cpus.partition", "root\n");
        let partitions = of(&tree).unwrap();
        let why = partitions
            .make("timecell-cpus-m.1", &[1, 2])
            .unwrap_err()
            .to_string();
        assert!(
            why.contains("cpu 2 is in the partition") && why.ends_with("/rt"),
            "{why}"
        );
        assert_eq!(partitions.all(PREFIX), []);
        assert!(!tree.root().exists("/run/timecell-cpus-m.1"));
    }

    #[test]
    fn a_note_left_open_is_closed_and_goes_with_the_last_partition() {
        let tree = machine(V2, "cpuset\n")
            .file("/sys/fs/cgroup/timecell-cpus-m.2/cpuset.cpus", "2\n")
            .file("/sys/fs/cgroup/timecell-cpus-17/cpuset.cpus", "3\n")
            .file("/run/partitions.affinities", "4194304 9 1-2\n");
        let partitions = of(&tree).unwrap();
        let file = tree.root().path("/run/partitions.affinities");
        assert!(Note::read(&file).is_open());
        // The group whose removal was cut short is not there any more.
        partitions.remove("timecell-cpus-m.1").unwrap();
        assert!(file.exists() && !Note::read(&file).is_open());
        std::fs::remove_dir_all(tree.root().path("/sys/fs/cgroup/timecell-cpus-m.2")).unwrap();
        partitions.finish().unwrap();
        assert!(!file.exists());
    }

    #[test]
    fn a_note_that_cannot_be_closed_stays_and_without_one_nothing_is_made() {
        let tree = machine(V2, "cpuset\n")
            .file("/sys/fs/cgroup/timecell-cpus-m.2/cpuset.cpus", "2\n")
            .file("/run/partitions.affinities", "4194304 9 1-2\n");
        let partitions = of(&tree).unwrap();
        let file = tree.root().path("/run/partitions.affinities");
        // As where there is no room: a new file has this name first.
        let new = file.with_extension("new");
        std::fs::create_dir(&new).unwrap();
        let why = partitions.finish().unwrap_err().to_string();
        assert!(
            why.contains("partitions.affinities: ") && why.contains("restored again next time"),
            "{why}"
        );
        assert!(file.exists() && Note::read(&file).is_open());
        let why = partitions
            .make("timecell-cpus-m.1", &[1])
            .unwrap_err()
            .to_string();
        assert!(why.contains("partitions.affinities"), "{why}");
        assert!(!partitions.path("timecell-cpus-m.1").exists());
        assert!(file.exists() && Note::read(&file).is_open());
        std::fs::remove_dir(&new).unwrap();
        partitions.finish().unwrap();
        assert!(file.exists() && !Note::read(&file).is_open());
    }

    #[test]
    fn what_has_processes_in_it_stays() {
        let group = "/sys/fs/cgroup/timecell-cpus-m.1";
        let tree = machine(V2, "cpuset\n")
            .file(&format!("{group}/cgroup.events"), "populated 1\nfrozen 0\n")
            .file(&format!("{group}/cpuset.cpus"), "1\n")
            .file(&format!("{group}/cpuset.cpus.partition"), "root\n");
        let partitions = of(&tree).unwrap();
        let why = partitions
            .remove("timecell-cpus-m.1")
            .unwrap_err()
            .to_string();
        assert!(why.contains("processes are left in it"), "{why}");
        // Of other cpus it cannot be made anew, then; of these it is there.
        assert!(partitions.make("timecell-cpus-m.1", &[1, 2]).is_err());
        assert!(partitions.make("timecell-cpus-m.1", &[1]).is_ok());
        assert!(partitions.remove("timecell-cpus-m.2").is_ok());
    }
}
