//! Keeping the cgroup v2 controllers that our groups at the top depend on. Another manager of the tree takes away those that none of its own
//! groups needs: systemd does, when its units start and stop and at `daemon-reload`, and with a controller everybody's groups lose their
//! partitions, cpus and limits. The kernel refuses that (EBUSY) as long as any group below hands the controller down, even an empty one (the
//! kernel's cgroup-v2, "Top-down Constraint"). That empty group is made here.

use std::fs;
use std::path::Path;

use super::partition::Partitions;
use crate::cgroup::SUBTREE_CONTROL as CONTROL;
use crate::error::{Doing, Result};
use crate::file::{gone, there};

/// The prefix of the names of such groups.
pub const PREFIX: &str = "timecell-controllers-";

/// Controllers whose files cells have: of cpus, memory and the number of processes.
const KEPT: [&str; 3] = ["cpuset", "memory", "pids"];

impl Partitions {
    /// Whether the group of this name keeps all controllers that it could.
    pub fn are_controllers_kept(&self, name: &str) -> bool {
        missing(self, &self.path(name)).is_empty()
    }

    /// Hands the controllers down from the top and makes the group of this name, which keeps anybody else from taking them away. Tasks stay bound to
    /// their cpus, which kernels before 6.2 forget when a group gets a cpuset.
    ///
    /// # Errors
    /// The step that the kernel refused, a sentence. Fine if they are kept already.
    pub fn keep_controllers(&self, name: &str) -> Result<()> {
        let group = self.path(name);
        let _ = self.finish();
        let top = self.path("");
        let absent = missing(self, &top);
        // Before anything is changed: undoing needs it, also after this process was killed.
        let note = match absent.contains(&"cpuset") {
            true => Some(self.note()?),
            false => None,
        };
        let done = self
            .hand_down(&top, &absent)
            .and_then(|()| {
                there(fs::create_dir(self.at(&group))).doing(|| group.display().to_string())
            })
            .and_then(|()| self.hand_down(&group, &missing(self, &group)));
        if let Some(note) = note {
            // `finish` does it again and tells.
            let _ = self.bring_back(note);
        }
        done
    }

    /// Stops keeping them for this name; the top goes on handing them down until somebody takes them away. Fine if there is no such group.
    ///
    /// # Errors
    /// The step that the kernel refused, a sentence.
    pub fn leave_controllers(&self, name: &str) -> Result<()> {
        let group = self.path(name);
        gone(fs::remove_dir(self.at(&group))).doing(|| group.display().to_string())
    }

    /// Runs `change`, and if it fails, restores whether controllers were kept for this name: a group that it has made is removed again.
    ///
    /// # Errors
    /// Those of `change`.
    pub fn or_controllers_as_before<T, E>(
        &self,
        name: &str,
        change: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        let was_there = self.at(&self.path(name)).exists();
        let done = change();
        if done.is_err() && !was_there {
            // The refusal of the change is told; `timecell clean` removes it else.
            let _ = self.leave_controllers(name);
        }
        done
    }

    /// The rests of the names of all such groups, behind [`PREFIX`].
    pub fn kept_for(&self) -> Vec<String> {
        let groups = self.groups().into_iter();
        let rests = groups.filter_map(|name| name.strip_prefix(PREFIX).map(str::to_owned));
        rests.collect()
    }

    fn hand_down(&self, group: &Path, controllers: &[&str]) -> Result<()> {
        let file = group.join(CONTROL);
        // One by one: of several in one write the kernel takes all or none.
        controllers.iter().try_for_each(|controller| {
            let text = format!("+{controller}");
            fs::write(self.at(&file), &text)
                .doing(|| format!("{} does not accept `{text}`", file.display()))
        })
    }
}

/// Controllers that the machine has and this group does not hand down.
fn missing(partitions: &Partitions, group: &Path) -> Vec<&'static str> {
    let words = |file: &Path| crate::file::text(partitions.at(file)).unwrap_or_default();
    let there = words(&partitions.path("cgroup.controllers"));
    let handed = words(&group.join(CONTROL));
    let has = |words: &str, name: &str| words.split_whitespace().any(|word| word == name);
    let mut kept = KEPT.to_vec();
    kept.retain(|name| has(&there, name) && !has(&handed, name));
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    const TOP: &str = "/sys/fs/cgroup";

    fn machine(controllers: &str, handed: &str) -> Tree {
        let mounts = "30 20 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        Tree::new()
            .file("/proc/mounts", mounts)
            .file("/proc/self/mountinfo", mounts)
            .file(&format!("{TOP}/cgroup.controllers"), controllers)
            .file(&format!("{TOP}/{CONTROL}"), handed)
    }

    fn of(tree: &Tree) -> Partitions {
        Partitions::detect_at(&tree.root(), tree.root().path("/run")).unwrap()
    }

    #[test]
    fn what_the_top_lacks_is_handed_down_from_there_and_on_from_a_group() {
        let tree = machine("cpuset cpu memory pids\n", "memory pids\n").file("/run/x", "");
        let partitions = of(&tree);
        assert!(!partitions.are_controllers_kept("timecell-controllers-m"));
        partitions
            .keep_controllers("timecell-controllers-m")
            .unwrap();
        // A file takes the last word; the kernel would have added it.
        let read = |path: &str| tree.root().read(path).unwrap();
        assert_eq!(read(&format!("{TOP}/{CONTROL}")), "+cpuset");
        let group = format!("{TOP}/timecell-controllers-m");
        assert_eq!(read(&format!("{group}/{CONTROL}")), "+pids");
        assert_eq!(partitions.kept_for(), ["m"]);
        // No partition is there, so nothing is noted any more.
        assert!(!tree.root().exists("/run/partitions.affinities"));
    }

    #[test]
    fn one_that_keeps_what_the_machine_has_is_enough() {
        let group = format!("{TOP}/timecell-controllers-m/{CONTROL}");
        let tree = machine("cpuset pids\n", "cpuset pids\n").file(&group, "cpuset pids\n");
        assert!(of(&tree).are_controllers_kept("timecell-controllers-m"));
        assert!(!of(&tree).are_controllers_kept("timecell-controllers-n"));
        let tree =
            machine("cpuset memory pids\n", "cpuset memory pids\n").file(&group, "cpuset pids\n");
        assert!(!of(&tree).are_controllers_kept("timecell-controllers-m"));
    }

    #[test]
    fn what_is_refused_leaves_none_that_it_has_made() {
        let tree = machine("cpuset pids\n", "cpuset pids\n");
        let partitions = of(&tree);
        let name = "timecell-controllers-m";
        let make = || fs::create_dir_all(tree.root().path(format!("{TOP}/{name}"))).unwrap();
        let then = |result: Result<u8, &'static str>| {
            partitions.or_controllers_as_before(name, || {
                make();
                result
            })
        };
        assert_eq!(then(Err("no")), Err("no"));
        assert!(partitions.kept_for().is_empty());
        assert_eq!(then(Ok(3)), Ok(3));
        assert_eq!(partitions.kept_for(), ["m"]);
        // Another one's refusal leaves the old one.
        assert_eq!(then(Err("no")), Err("no"));
        assert_eq!(partitions.kept_for(), ["m"]);
    }

    #[test]
    fn it_goes_once_it_is_left() {
        let tree = machine("cpuset pids\n", "cpuset pids\n");
        let partitions = of(&tree);
        std::fs::create_dir(tree.root().path(format!("{TOP}/timecell-controllers-m"))).unwrap();
        partitions
            .leave_controllers("timecell-controllers-m")
            .unwrap();
        assert!(partitions.kept_for().is_empty());
        partitions
            .leave_controllers("timecell-controllers-m")
            .unwrap();
    }
}
