//! Real-time budgets of cgroup v2: the files `cpu.rt.max` of the hierarchical constant bandwidth servers, which only patched kernels
//! have. This file reads and writes one budget and gives the kernel's answer; [`Top`] keeps each owner's reservation in the group at
//! the top. The shares are decided elsewhere.
//!
//! A group's budget is `<runtime> <period>` in microseconds, on each cpu, or `max`: its threads run by the budget of the nearest group
//! above that has one. The group at the top has a runtime of 0 until somebody writes one, and runs nothing by it: it is the total that
//! all groups below may have together. This follows version 6 of the patch series; the interface may change.

mod earlier;
mod room;
mod top;

pub use room::{limit_us, ordinary_us};
pub use top::{CELLS_PREFIX, Note, Top};

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::root::{Root, reason_of};
use crate::rtgroup::Budget;
use crate::sched::bandwidth::{self, GIVEN_BACK};
use crate::{cgroup, cpus, fair_server};

/// The file with a group's budget.
pub const MAX: &str = "cpu.rt.max";

/// A group's budget for its own threads, without those of the groups below: as version 6 of the series calls the file, and as
/// version 7 does. The group at the top has neither.
pub const OWN: [&str; 2] = ["cpu.rt.internal", "cpu.rt.max.effective.local"];

/// How long a refused budget is retried while the kernel still counts removed groups: until the end of an RCU grace
/// period, which a loaded machine puts off by hundreds of milliseconds.
pub const PATIENCE: Duration = Duration::from_millis(3_000);
const BETWEEN_TRIES: Duration = Duration::from_millis(5);

/// Why there are no such budgets here, or why one was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HcbsError {
    /// The kernel or the mounts offer none; a clause.
    #[error("{0}")]
    Absent(String),
    /// The group at the top cannot reserve so much.
    #[error(
        "the kernel refuses groups a total of {} on each cpu (it now reserves {} for them): {}",
        per_second(*.asked_us), per_second(*.has_us), beside(*.busy)
    )]
    Top {
        /// Asked for, us in every second.
        asked_us: u64,
        /// Its present reservation, us in every second.
        has_us: u64,
        /// Whether that is because of SCHED_DEADLINE (EBUSY), and not of the limit of all real time (EINVAL).
        busy: bool,
    },
    /// A group's budget was refused.
    #[error(
        "{group} does not accept {asked} ({reason}): the top group reserves {} for groups, of which others hold {}; \
         a group with real-time threads cannot change between `max` and a budget either",
        per_second(*.has_us), per_second(*.held_us)
    )]
    Group {
        /// The directory of the group.
        group: String,
        /// The budget that was asked for.
        asked: Budget,
        /// The top group's reservation, us in every second.
        has_us: u64,
        /// Other groups' share of it, us in every second.
        held_us: u64,
        /// The kernel's reason.
        reason: String,
    },
    /// A budget that was accepted, but that the group does not have.
    #[error("{file} says `{says}` after {asked} was written to the group")]
    NotTaken {
        /// The file that says so.
        file: String,
        /// Its text.
        says: String,
        /// The budget that was written.
        asked: Budget,
    },
    /// The reservation cannot be noted, a sentence.
    #[error("{0}")]
    Note(String),
    /// A file could not be read or written.
    #[error("{path}: {reason}")]
    Io {
        /// The file.
        path: String,
        /// The operating system's reason.
        reason: String,
    },
}

fn per_second(us: u64) -> String {
    format!("{:.3} ms of every second", us as f64 / 1e3)
}

fn beside(busy: bool) -> &'static str {
    match busy {
        true => {
            "on some cpus, SCHED_DEADLINE threads and the fair server have the rest of what kernel.sched_rt_runtime_us allows"
        }
        false => "it is more than kernel.sched_rt_runtime_us allows, or less than they hold",
    }
}

/// The top of the tree of cgroup v2, on a kernel that has these budgets.
///
/// # Errors
/// [`HcbsError::Absent`] with the missing part.
pub fn detect_at(root: &Root) -> Result<PathBuf, HcbsError> {
    let cgroups = cgroup::detect_at(root).map_err(|error| HcbsError::Absent(error.to_string()))?;
    let top = cgroups.v2.map(|mount| mount.point);
    top.filter(|top| root.exists(top.join(MAX))).ok_or_else(|| {
        HcbsError::Absent(format!(
            "the kernel has no {MAX}, which no released Linux has"
        ))
    })
}

/// The budget of a group; `None`: it has none (`max`).
///
/// # Errors
/// When the file is not there, or says something else.
pub fn budget_of(root: &Root, group: &Path) -> Result<Option<Budget>, HcbsError> {
    let file = group.join(MAX);
    let text = root.read(&file).map_err(|error| HcbsError::Io {
        path: error.path,
        reason: error.reason,
    })?;
    parse(&text).ok_or_else(|| HcbsError::Io {
        path: file.display().to_string(),
        reason: format!(
            "it says {:?}, which is not a budget",
            crate::root::shorten(&text)
        ),
    })
}

fn parse(text: &str) -> Option<Option<Budget>> {
    let (runtime, period) = text.split_once(' ')?;
    if runtime == "max" {
        return Some(None);
    }
    Some(Some(Budget {
        runtime_us: runtime.parse().ok().filter(|us| *us >= 0)?,
        period_us: period.trim().parse().ok()?,
    }))
}

/// The top group's reservation for groups; 0 where it has none.
///
/// # Errors
/// As [`budget_of`].
pub fn reserved(root: &Root, top: &Path) -> Result<Budget, HcbsError> {
    Ok(budget_of(root, top)?.unwrap_or(Budget {
        runtime_us: 0,
        period_us: 1_000_000,
    }))
}

/// The groups at the top that hold a share of its reservation, by their names in ascending order, each with the share of it and the
/// groups below it: us in every second, rounded up.
pub fn shares_in(root: &Root, top: &Path) -> Vec<(String, u64)> {
    let mut shares: Vec<(String, u64)> = (root.dirs_in(top).into_iter())
        .map(|group| {
            let held = held_by(root, &top.join(&group));
            (group, held)
        })
        .filter(|(_, held)| *held > 0)
        .collect();
    shares.sort();
    shares
}

/// A group's share of the next one above with a budget: its own budget, else those of the groups in it.
fn held_by(root: &Root, group: &Path) -> u64 {
    if let Ok(Some(budget)) = budget_of(root, group) {
        return budget.per_second_up_us();
    }
    (root.dirs_in(group).iter())
        .map(|child| held_by(root, &group.join(child)))
        .fold(0, u64::saturating_add)
}

/// Makes the group at the top reserve this much, retrying while removed groups and ended SCHED_DEADLINE threads still count.
///
/// # Errors
/// [`HcbsError::Top`], or the system's error.
pub fn reserve(root: &Root, top: &Path, budget: Budget) -> Result<(), HcbsError> {
    let has = reserved(root, top)?;
    let is_more = budget.per_second_us() > has.per_second_us();
    let patience = |errno: i32| match errno {
        // An old reservation has room for groups that are gone: more is refused for other reasons.
        libc::EINVAL if !is_more => Some(PATIENCE),
        libc::EBUSY if is_more && !have_it(root, budget.per_second_up_us()) => Some(GIVEN_BACK),
        _ => None,
    };
    let tried = write_patiently(root, top, &text_of(budget), patience);
    tried.map_err(|error| match error.raw_os_error() {
        Some(errno @ (libc::EBUSY | libc::EINVAL)) => HcbsError::Top {
            asked_us: budget.per_second_up_us(),
            has_us: has.per_second_us(),
            busy: errno == libc::EBUSY,
        },
        _ => io_error(top, &error),
    })
}

/// Gives a group a budget, before any thread in it has a real-time class: afterwards the kernel only accepts another budget, and neither adds nor
/// removes one.
///
/// # Errors
/// [`HcbsError::Group`] with the kernel's reason, [`HcbsError::NotTaken`] where the group does not have it then.
pub fn give(root: &Root, top: &Path, group: &Path, budget: Budget) -> Result<(), HcbsError> {
    if budget_of(root, group)? == Some(budget) {
        return Ok(());
    }
    let name = group.file_name().unwrap_or_default().to_string_lossy();
    let figures = || {
        let has_us = reserved(root, top).map_or(0, |has| has.per_second_us());
        let shares = shares_in(root, top).into_iter();
        let others = shares.filter(|(other, _)| *other != name).map(|(_, us)| us);
        (has_us, others.fold(0, u64::saturating_add))
    };
    // The files tell a lack of room, for which there is no use in waiting, from the echo of a removed group.
    let lacks_room = || {
        let (has_us, held_us) = figures();
        held_us.saturating_add(budget.per_second_up_us()) > has_us
    };
    // EBUSY is said of threads that are there.
    let patience = |errno: i32| (errno == libc::EINVAL && !lacks_room()).then_some(PATIENCE);
    let written = write_patiently(root, group, &text_of(budget), patience);
    written.map_err(|error| match error.raw_os_error() {
        Some(libc::EBUSY | libc::EINVAL) => {
            let (has_us, held_us) = figures();
            HcbsError::Group {
                group: group.display().to_string(),
                asked: budget,
                has_us,
                held_us,
                reason: reason_of(&error),
            }
        }
        _ => io_error(group, &error),
    })?;
    let says = |file: &str| root.read(group.join(file)).unwrap_or_default();
    let not_taken = |file: &str, says: String| {
        Err(HcbsError::NotTaken {
            file: group.join(file).display().to_string(),
            says,
            asked: budget,
        })
    };
    if parse(&says(MAX)) != Some(Some(budget)) {
        return not_taken(MAX, says(MAX));
    }
    // The rest for its own threads is all of it but for the rounding of the kernel's fractions, as it has no groups with budgets
    // below.
    match own_file(root, group) {
        Some(file) if says(file).starts_with("0 ") => not_taken(file, says(file)),
        _ => Ok(()),
    }
}

/// Which of the two files this kernel has with a group's budget for its own threads; `None`: neither.
pub fn own_file(root: &Root, group: &Path) -> Option<&'static str> {
    OWN.into_iter().find(|file| root.exists(group.join(file)))
}

/// Takes a group's budget away; a group that is gone, or has real-time threads, stays as it is.
pub fn give_up(root: &Root, group: &Path) {
    if let Ok(Some(budget)) = budget_of(root, group) {
        let _ = fs::write(
            root.path(group.join(MAX)),
            format!("max {}", budget.period_us),
        );
    }
}

fn text_of(budget: Budget) -> String {
    format!("{} {}", budget.runtime_us, budget.period_us)
}

/// Whether threads of SCHED_DEADLINE that are there hold the asked reservation: there is no use in waiting for those that have ended.
fn have_it(root: &Root, asked_us: u64) -> bool {
    let cpus = cpus::online_at(root).unwrap_or_default();
    let ordinary_us = fair_server::most(root, &cpus).map_or(0, |server| {
        let us = u128::from(server.runtime_ns) * 1_000_000;
        u64::try_from(us / u128::from(server.period_ns.max(1))).unwrap_or(u64::MAX)
    });
    let limit_us = bandwidth::bandwidth_limit_us(root, cpus.len());
    let of_each = asked_us.saturating_add(ordinary_us);
    let others_us = of_each.saturating_mul(cpus.len() as u64);
    limit_us.is_some_and(|limit| others_us.saturating_add(bandwidth::bandwidth_held_us()) > limit)
}

fn write_patiently(
    root: &Root,
    group: &Path,
    text: &str,
    patience: impl Fn(i32) -> Option<Duration>,
) -> io::Result<()> {
    patiently(|| fs::write(root.path(group.join(MAX)), text), patience)
}

/// Tries for as long as `patience` says for the error, from the beginning on; `None`: not again.
fn patiently(
    mut write: impl FnMut() -> io::Result<()>,
    patience: impl Fn(i32) -> Option<Duration>,
) -> io::Result<()> {
    let began = Instant::now();
    loop {
        let Err(error) = write() else {
            return Ok(());
        };
        let patience = error.raw_os_error().and_then(&patience);
        if patience.is_none_or(|patience| began.elapsed() >= patience) {
            return Err(error);
        }
        std::thread::sleep(BETWEEN_TRIES);
    }
}

fn io_error(group: &Path, error: &io::Error) -> HcbsError {
    HcbsError::Io {
        path: group.join(MAX).display().to_string(),
        reason: reason_of(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    const TOP: &str = "/sys/fs/cgroup";

    fn tree(top: &str) -> Tree {
        Tree::new()
            .file(
                "/proc/self/mountinfo",
                "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            )
            .file("/sys/fs/cgroup/cpu.rt.max", top)
    }

    fn group(tree: Tree, name: &str, text: &str) -> Tree {
        tree.file(&format!("{TOP}/{name}/{MAX}"), text)
    }

    const fn budget(runtime_us: i64, period_us: u64) -> Budget {
        Budget {
            runtime_us,
            period_us,
        }
    }

    #[test]
    fn budgets_are_read_as_the_kernel_writes_them() {
        assert_eq!(parse("max 100000"), Some(None));
        assert_eq!(parse("30000 100000"), Some(Some(budget(30_000, 100_000))));
        assert_eq!(parse("0 1000000"), Some(Some(budget(0, 1_000_000))));
        for text in ["", "max", "30000", "-1 100000", "x 1", "1 x"] {
            assert_eq!(parse(text), None, "{text}");
        }
        let tree = tree("0 1000000\n");
        let top = detect_at(&tree.root()).unwrap();
        assert_eq!(reserved(&tree.root(), &top).unwrap(), budget(0, 1_000_000));
        let none = Tree::new().file("/proc/self/mountinfo", "");
        let error = detect_at(&none.root()).unwrap_err().to_string();
        assert!(error.contains("no released Linux has"), "{error}");
    }

    #[test]
    fn groups_hold_what_they_have_else_what_those_in_them_have() {
        let tree = tree("500000 1000000\n");
        let tree = group(tree, "a", "10000 30000\n");
        // Its own budget contains that of the one in it.
        let tree = group(tree, "a/in", "1000 30000\n");
        let tree = group(tree, "b", "max 0\n");
        let tree = group(tree, "b/c", "max 0\n");
        let tree = group(tree, "b/c/d", "30000 100000\n");
        let tree = group(tree, "b/e", "1 10\n");
        let tree = group(tree, "f", "max 0\n").file("/sys/fs/cgroup/g/cgroup.procs", "");
        let shares = shares_in(&tree.root(), Path::new(TOP));
        let expected = [("a".to_owned(), 333_334), ("b".to_owned(), 400_000)];
        assert_eq!(shares, expected);
    }

    #[test]
    fn a_budget_that_is_given_is_looked_at() {
        let tree = group(tree("500000 1000000\n"), "cell", "max 0\n");
        let (root, top) = (tree.root(), Path::new(TOP));
        let cell = top.join("cell");
        give(&root, top, &cell, budget(30_000, 100_000)).unwrap();
        assert_eq!(
            budget_of(&root, &cell).unwrap(),
            Some(budget(30_000, 100_000))
        );
        give_up(&root, &cell);
        assert_eq!(root.read(cell.join(MAX)).unwrap(), "max 100000");
        for file in OWN {
            let none = root.path(cell.join(file));
            fs::write(&none, "0 100000\n").unwrap();
            assert_eq!(own_file(&root, &cell), Some(file));
            let error = give(&root, top, &cell, budget(30_000, 100_000)).unwrap_err();
            assert!(matches!(error, HcbsError::NotTaken { .. }), "{error}");
            fs::remove_file(none).unwrap();
            give_up(&root, &cell);
        }
        let nowhere = top.join("nowhere");
        assert!(give(&root, top, &nowhere, budget(1, 10)).is_err());
        give_up(&root, &nowhere);
        assert!(!root.exists(&nowhere));
    }

    /// The kernel counts the bandwidth of ended SCHED_DEADLINE threads until it would have been due, and says EBUSY meanwhile.
    #[test]
    fn what_is_given_back_late_is_tried_for_again_and_nothing_else() {
        let refusing = |times: u32, errno: i32, patience: fn(i32) -> Option<Duration>| {
            let mut left = times;
            let tried = patiently(
                || match left {
                    0 => Ok(()),
                    _ => {
                        left -= 1;
                        Err(io::Error::from_raw_os_error(errno))
                    }
                },
                patience,
            );
            (tried.map_err(|error| error.raw_os_error()), times - left)
        };
        let late = |errno: i32| (errno == libc::EBUSY).then_some(GIVEN_BACK);
        assert_eq!(refusing(3, libc::EBUSY, late), (Ok(()), 3));
        assert_eq!(
            refusing(3, libc::EINVAL, late),
            (Err(Some(libc::EINVAL)), 1)
        );
        let at_once = |_: i32| Some(Duration::ZERO);
        assert_eq!(
            refusing(3, libc::EBUSY, at_once),
            (Err(Some(libc::EBUSY)), 1)
        );
    }

    #[test]
    fn threads_that_are_there_are_not_waited_for() {
        let tree = tree("0 1000000\n")
            .file("/sys/devices/system/cpu/online", "0-1\n")
            .file("/proc/sys/kernel/sched_rt_runtime_us", "950000\n")
            .file("/proc/sys/kernel/sched_rt_period_us", "1000000\n");
        assert!(have_it(&tree.root(), 950_001));
        // With any threads of this machine, up to a cpu.
        assert!(!have_it(&tree.root(), 450_000));
    }

    #[test]
    fn refusals_say_what_there_is() {
        let top = |busy| HcbsError::Top {
            asked_us: 960_000,
            has_us: 300_000,
            busy,
        };
        let busy = top(true).to_string();
        assert!(
            busy.contains("960.000 ms") && busy.contains("300.000 ms"),
            "{busy}"
        );
        assert!(busy.contains("SCHED_DEADLINE"), "{busy}");
        assert!(!top(false).to_string().contains("SCHED_DEADLINE"));
        let group = HcbsError::Group {
            group: "/c".to_owned(),
            asked: budget(30_000, 100_000),
            has_us: 500_000,
            held_us: 250_000,
            reason: "invalid argument".to_owned(),
        };
        let told = group.to_string();
        for part in [
            "/c does not accept 30,000 us every 100,000 us",
            "500.000 ms",
            "250.000 ms",
        ] {
            assert!(told.contains(part), "{told}");
        }
    }
}
