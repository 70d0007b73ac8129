//! Real-time budgets of cgroup v1 (`CONFIG_RT_GROUP_SCHED`): finding them, making a group with a
//! budget, and taking it away so that the next one is not refused.
//!
//! Two habits of the kernel shape this file. A group is checked against its ancestors when a budget
//! is written, so they are seeded from the top, and the period goes before the runtime. And a
//! removed group holds its share of its parent for 11 to 44 ms more, so the budget is set to 0
//! before the group goes, and a refusal is tried again for a bounded time.

mod budget;
mod error;

pub use budget::{Budget, OwnGroup};
pub use error::RtGroupError;

use crate::caps::proc_path;
use crate::cgroup;
use crate::root::{Root, Unreadable, reason_of};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long [`RtGroup::create`] tries again when the kernel still counts a group that is gone: until the end of an RCU grace
/// period, which a loaded machine puts off by hundreds of milliseconds, and by seconds where a thread of class IDLE is kept from its cpu
/// while it reads.
pub const CREATE_PATIENCE: Duration = Duration::from_millis(10_000);
/// How long [`RtGroup::remove`] waits for tasks to leave and for the group to become removable.
pub const REMOVE_PATIENCE: Duration = Duration::from_millis(1_000);
const BETWEEN_TRIES: Duration = Duration::from_millis(5);

/// Finds the root of the hierarchy with real-time budgets, such as `/sys/fs/cgroup/cpu`.
///
/// # Errors
/// [`RtGroupError::Absent`] with the reason.
pub fn detect() -> Result<PathBuf, RtGroupError> {
    detect_at(&Root::live())
}

/// [`detect`] under another root.
pub fn detect_at(root: &Root) -> Result<PathBuf, RtGroupError> {
    let cgroups = cgroup::detect_at(root).map_err(absent)?;
    let mount = cgroups.v1_mount("cpu").ok_or_else(|| {
        RtGroupError::Absent(format!(
            "no v1 cpu controller is mounted ({}); `rt_runtime` does not exist on v2",
            cgroups.layout()
        ))
    })?;
    if !root.exists(mount.point.join("cpu.rt_runtime_us")) {
        return Err(RtGroupError::Absent(
            "the kernel was built or booted without RT_GROUP_SCHED".to_owned(),
        ));
    }
    Ok(mount.point.clone())
}

/// The group of the process `pid` (0: the calling one) and its budget.
///
/// # Errors
/// [`RtGroupError::Absent`] if there are no such budgets, or the group is not visible from here.
pub fn own_group(pid: i32) -> Result<OwnGroup, RtGroupError> {
    own_group_at(&Root::live(), pid)
}

/// [`own_group`] under another root.
pub fn own_group_at(root: &Root, pid: i32) -> Result<OwnGroup, RtGroupError> {
    detect_at(root)?;
    let path = cgroup::detect_at(root)
        .map_err(absent)?
        .v1_group(root, "cpu", pid)
        .ok_or_else(|| {
            RtGroupError::Absent(format!(
                "the group named in {} is not visible from here",
                proc_path(pid, "cgroup")
            ))
        })?;
    let budget = budget_of(root, &path)?;
    Ok(OwnGroup { path, budget })
}

/// The budget of the group at this directory.
///
/// # Errors
/// [`RtGroupError::Absent`] if the directory has no such budget.
pub fn budget_of(root: &Root, group: &Path) -> Result<Budget, RtGroupError> {
    Ok(Budget {
        runtime_us: root
            .read_number(group.join("cpu.rt_runtime_us"))
            .map_err(absent)?,
        period_us: root
            .read_number(group.join("cpu.rt_period_us"))
            .map_err(absent)?,
    })
}

/// The largest runtime, in microseconds, that a new top-level group with a period of 1 s could get
/// on each cpu: the root group's runtime less its children's.
///
/// # Errors
/// [`RtGroupError::Absent`] if there are no such budgets.
pub fn largest_free_runtime() -> Result<u64, RtGroupError> {
    let root = Root::live();
    let top = detect_at(&root)?;
    free_in(&root, &top)
}

/// The part of `group`'s budget that its children leave, in microseconds per 1 s. Every child counts rounded up, so the
/// answer errs to the safe side.
///
/// # Errors
/// [`RtGroupError::Absent`] if the directory has no such budget.
pub fn free_in(root: &Root, group: &Path) -> Result<u64, RtGroupError> {
    let has = budget_of(root, group)?.per_second_us();
    let held = shares_in(root, group).into_iter().map(|(_, us)| us);
    Ok(has.saturating_sub(held.fold(0, u64::saturating_add)))
}

/// The children of `group` that hold a share of its budget, by their names in ascending order, and each share in
/// microseconds per 1 s, rounded up.
pub fn shares_in(root: &Root, group: &Path) -> Vec<(String, u64)> {
    let mut shares: Vec<(String, u64)> = (root.dirs_in(group).into_iter())
        .filter_map(|child| {
            let held = budget_of(root, &group.join(&child))
                .ok()?
                .per_second_up_us();
            (held > 0).then_some((child, held))
        })
        .collect();
    shares.sort();
    shares
}

/// The group of `pid` if it has no budget at all, so that FIFO is refused there.
pub(crate) fn group_without_budget(root: &Root, pid: i32) -> Option<String> {
    let own = own_group_at(root, pid).ok()?;
    (!own.has_budget()).then(|| own.path.display().to_string())
}

/// A group with a real-time budget, made by this process and removed when dropped.
///
/// Removal needs every process to have left the group. `drop` waits for a bounded time and then
/// leaves the group behind; use [`RtGroup::remove`] to learn about that.
#[derive(Debug)]
pub struct RtGroup {
    path: PathBuf,
    budget: Budget,
    /// Ancestors this call made, nearest first; removed after the group.
    made_ancestors: Vec<PathBuf>,
    gone: bool,
}

impl RtGroup {
    /// Makes the group `name` below the root of the cpu hierarchy with `runtime_us` on each cpu in
    /// every `period_us`, both in microseconds. In a name with `/`, ancestors that are missing are
    /// made with the same budget; those that are there must have enough of it free.
    ///
    /// Budgets are enforced by the tick: below two ticks (8 ms at 250 Hz) a group gets less than it
    /// was promised.
    ///
    /// # Errors
    /// [`RtGroupError`] names the ancestor that refused and its free runtime. Nothing is left behind.
    pub fn create(name: &str, runtime_us: u64, period_us: u64) -> Result<Self, RtGroupError> {
        check_name(name)?;
        let impossible = runtime_us == 0 || runtime_us > period_us;
        let budget = match i64::try_from(runtime_us) {
            Ok(runtime) if !impossible => Budget {
                runtime_us: runtime,
                period_us,
            },
            _ => {
                return Err(RtGroupError::BadBudget {
                    runtime_us,
                    period_us,
                });
            }
        };
        let top = detect()?;
        let mut group = Self {
            path: top.join(name),
            budget,
            made_ancestors: Vec::new(),
            gone: true,
        };
        if group.path.exists() {
            return Err(RtGroupError::Exists(group.path.display().to_string()));
        }
        let mut at = top;
        let parts: Vec<&str> = name.split('/').collect();
        for (index, part) in parts.iter().enumerate() {
            let parent = at.clone();
            at.push(part);
            let last = index + 1 == parts.len();
            if !last && at.exists() {
                continue;
            }
            fs::create_dir(&at).map_err(|error| io_error("making", &at, &error))?;
            // From here on `drop` removes the made groups, also if the budget is refused.
            if last {
                group.gone = false;
            } else {
                group.made_ancestors.insert(0, at.clone());
            }
            seed(&parent, &at, budget)?;
        }
        Ok(group)
    }

    /// The directory of the group.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The budget it was made with.
    pub fn budget(&self) -> Budget {
        self.budget
    }

    /// Moves the process `pid` with all its threads into the group (0: the calling one).
    ///
    /// # Errors
    /// [`RtGroupError::Io`] if there is no such process or the kernel refuses it.
    pub fn add(&self, pid: i32) -> Result<(), RtGroupError> {
        write(&self.path.join("cgroup.procs"), &pid.to_string())
    }

    /// Moves one thread into the group (0: the calling one).
    ///
    /// # Errors
    /// As [`RtGroup::add`].
    pub fn add_thread(&self, tid: i32) -> Result<(), RtGroupError> {
        write(&self.path.join("tasks"), &tid.to_string())
    }

    /// The processes in the group; empty if it cannot be read.
    pub fn processes(&self) -> Vec<i32> {
        processes_in(&self.path)
    }

    /// Removes the group: waits until its processes have left, gives the budget back, removes the
    /// directory; at most about [`REMOVE_PATIENCE`].
    ///
    /// # Errors
    /// [`RtGroupError::TasksRemain`] if processes do not leave in time.
    pub fn remove(mut self) -> Result<(), RtGroupError> {
        self.clear()
    }

    /// Lets the group live on after this value is dropped and returns its directory; take it away
    /// later with [`remove_group`].
    pub fn keep(mut self) -> PathBuf {
        self.gone = true;
        self.made_ancestors.clear();
        std::mem::take(&mut self.path)
    }

    fn clear(&mut self) -> Result<(), RtGroupError> {
        let mut result = Ok(());
        if !self.gone {
            self.gone = true;
            result = remove_group(&self.path);
        }
        for ancestor in std::mem::take(&mut self.made_ancestors) {
            // One that others put groups into in the meantime has to stay.
            if cgroup::below(&ancestor).is_empty() {
                result = result.and(remove_group(&ancestor));
            }
        }
        result
    }
}

impl Drop for RtGroup {
    fn drop(&mut self) {
        let _ = self.clear();
    }
}

/// Removes the group at this directory if no process is in it, as [`remove_group`]; does not wait for processes to leave.
///
/// # Errors
/// As [`remove_group`].
pub fn remove_if_empty(path: &Path) -> Result<(), RtGroupError> {
    let pids = processes_in(path);
    match pids.is_empty() {
        true => remove_group(path),
        false => Err(tasks_remain(path, &pids)),
    }
}

/// Removes the group at this directory the way [`RtGroup::remove`] does, for groups that an earlier
/// process left behind. A group that is not there is removed already.
///
/// # Errors
/// As [`RtGroup::remove`].
pub fn remove_group(path: &Path) -> Result<(), RtGroupError> {
    let until = Instant::now() + REMOVE_PATIENCE;
    while path.exists() {
        let pids = processes_in(path);
        let late = Instant::now() >= until;
        if pids.is_empty() {
            // Live real-time tasks block this write, so it comes after they have left. A process
            // that is gone from the list may take a moment more to let go of the group.
            let given_back = fs::write(path.join("cpu.rt_runtime_us"), "0");
            if given_back.is_ok() || late {
                match fs::remove_dir(path) {
                    Ok(()) => return Ok(()),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                    Err(error) if late || error.raw_os_error() != Some(libc::EBUSY) => {
                        return Err(io_error("removing", path, &error));
                    }
                    Err(_) => {}
                }
            }
        } else if late {
            return Err(tasks_remain(path, &pids));
        }
        std::thread::sleep(BETWEEN_TRIES);
    }
    Ok(())
}

/// As [`remove_group`], with the groups inside it first.
///
/// # Errors
/// As [`remove_group`], of the first that stays.
pub fn remove_group_with_inner(path: &Path) -> Result<(), RtGroupError> {
    let mut result = Ok(());
    for name in Root::live().dirs_in(path) {
        result = result.and(remove_group_with_inner(&path.join(name)));
    }
    result.and(remove_group(path))
}

/// Gives a new, empty group its budget: period first, then runtime.
fn seed(parent: &Path, group: &Path, budget: Budget) -> Result<(), RtGroupError> {
    let until = Instant::now() + CREATE_PATIENCE;
    loop {
        let result = fs::write(group.join("cpu.rt_period_us"), budget.period_us.to_string())
            .and_then(|()| {
                fs::write(
                    group.join("cpu.rt_runtime_us"),
                    budget.runtime_us.to_string(),
                )
            });
        let Err(error) = result else {
            return Ok(());
        };
        if error.raw_os_error() != Some(libc::EINVAL) {
            return Err(io_error("giving a budget to", group, &error));
        }
        // The parent's files tell a real lack (no use waiting) from the echo of a removed group.
        let root = Root::live();
        let has_us = budget_of(&root, parent)?.per_second_us();
        let free_us = free_in(&root, parent)?;
        let asked_us = budget.per_second_up_us();
        let runtime_us = budget.runtime_us.unsigned_abs();
        if asked_us > free_us {
            return Err(RtGroupError::AncestorRefused {
                ancestor: parent.display().to_string(),
                runtime_us,
                period_us: budget.period_us,
                has_us,
                free_us,
            });
        }
        if Instant::now() >= until {
            return Err(RtGroupError::Refused {
                group: group.display().to_string(),
                runtime_us,
                period_us: budget.period_us,
                free_us,
                reason: reason_of(&error),
            });
        }
        std::thread::sleep(BETWEEN_TRIES);
    }
}

fn check_name(name: &str) -> Result<(), RtGroupError> {
    let fine = |part: &str| {
        !part.is_empty()
            && part.len() <= 200
            && !part.starts_with('.')
            && part
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
    };
    if name.split('/').all(fine) {
        Ok(())
    } else {
        Err(RtGroupError::BadName(name.to_owned()))
    }
}

fn tasks_remain(path: &Path, pids: &[i32]) -> RtGroupError {
    let pids: Vec<String> = pids.iter().map(i32::to_string).collect();
    RtGroupError::TasksRemain {
        group: path.display().to_string(),
        pids: pids.join(", "),
    }
}

pub use crate::cgroup::processes as processes_in;

fn write(path: &Path, text: &str) -> Result<(), RtGroupError> {
    fs::write(path, text).map_err(|error| io_error("writing", path, &error))
}

fn io_error(action: &'static str, path: &Path, error: &io::Error) -> RtGroupError {
    RtGroupError::Io {
        action,
        path: path.display().to_string(),
        reason: reason_of(error),
    }
}

fn absent(error: Unreadable) -> RtGroupError {
    RtGroupError::Absent(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    fn tree() -> Tree {
        let cpu = "/sys/fs/cgroup/cpu";
        Tree::new()
            .file(
                "/proc/self/mountinfo",
                "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n",
            )
            .file("/proc/self/cgroup", "1:cpu:/a\n")
            .file(&format!("{cpu}/cpu.rt_runtime_us"), "950000\n")
            .file(&format!("{cpu}/cpu.rt_period_us"), "1000000\n")
            .file(&format!("{cpu}/a/cpu.rt_runtime_us"), "10000\n")
            .file(&format!("{cpu}/a/cpu.rt_period_us"), "30000\n")
            .file(&format!("{cpu}/b/cpu.rt_runtime_us"), "0\n")
            .file(&format!("{cpu}/b/cpu.rt_period_us"), "1000000\n")
    }

    #[test]
    fn what_children_hold_is_rounded_up() {
        let tree = tree();
        let top = detect_at(&tree.root()).unwrap();
        // 950,000 less the 333,334 that 10 ms every 30 ms come to.
        assert_eq!(free_in(&tree.root(), &top).unwrap(), 616_666);
        let holders = shares_in(&tree.root(), &top);
        assert_eq!(holders, [("a".to_owned(), 333_334)]);
    }

    #[test]
    fn the_own_group_is_found_with_its_budget() {
        let tree = tree();
        let own = own_group_at(&tree.root(), 0).unwrap();
        assert!(own.has_budget());
        assert_eq!(own.budget.to_string(), "10,000 us every 30,000 us");
        let tree = tree.file("/proc/self/cgroup", "1:cpu:/b\n");
        assert!(!own_group_at(&tree.root(), 0).unwrap().has_budget());
        assert_eq!(
            group_without_budget(&tree.root(), 0).unwrap(),
            "/sys/fs/cgroup/cpu/b"
        );
    }

    #[test]
    fn their_absence_has_a_reason() {
        let reason = |tree: Tree| detect_at(&tree.root()).unwrap_err().to_string();
        assert!(reason(Tree::new()).contains("mountinfo cannot be read"));
        let v2 = "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        assert!(reason(Tree::new().file("/proc/self/mountinfo", v2)).contains("cgroup v2"));
        let v1 = "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n";
        assert!(reason(Tree::new().file("/proc/self/mountinfo", v1)).contains("RT_GROUP_SCHED"));
    }

    #[test]
    fn no_limit_counts_as_everything() {
        let unlimited = Budget {
            runtime_us: -1,
            period_us: 1_000_000,
        };
        assert_eq!(unlimited.per_second_us(), 1_000_000);
    }

    #[test]
    fn bad_names_and_budgets_are_refused_before_anything_is_made() {
        for name in [
            "", "/", "/a", "a/", "a//b", "..", "a/../b", ".a", "a b", "a\n",
        ] {
            assert!(
                matches!(RtGroup::create(name, 1, 2), Err(RtGroupError::BadName(_))),
                "{name:?} was accepted"
            );
        }
        for (runtime, period) in [(0, 10), (11, 10), (0, 0), (u64::MAX, u64::MAX)] {
            assert!(matches!(
                RtGroup::create("x", runtime, period),
                Err(RtGroupError::BadBudget { .. })
            ));
        }
    }
}
