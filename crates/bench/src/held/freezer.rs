//! The clock and the freezer of cgroup v2: a group around the cell, held by separate processes as long as a trial lasts, as a mission's
//! cells are held.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use freezer::hold::{self, Hold};
use freezer::page::{Entry, Page, memory};
use freezer::process::{HIGHEST_HELD, Place, WATCHER};
use freezer::stats::Histogram;
use freezer::{Reservation, ReservationError, Stop};
use host::cpu_use::{RtLimit, rt_limit};
use host::kernel;
use host::root::Root;
use model::{Enforcer, Requirement};
use probe::clock;
use record::{Budget, Condition, Reacted, Share, Times};

use super::holder::{
    Held, Holder, LEAVING, Names, Spot, and_fifo, cells_of, enter, group_name, writable,
};

pub(super) struct Freezer;

impl Holder for Freezer {
    fn enforcer(&self) -> Enforcer {
        Enforcer::Freezer
    }

    fn needs(&self, held: &Budget, spot: &Spot) -> Vec<Requirement> {
        and_fifo(group(held, spot.priority), WATCHER)
    }

    fn condition(&self, spot: &Spot) -> Condition {
        Condition::new(
            "freezer",
            format!(
                "SCHED_FIFO {} on cpu {} in a group of cgroup v2 of its own, frozen and thawed by a keeper with a watcher and an heir \
                 as cells of missions are; looks and overruns are counted from when the thread is armed until it is done, in bins \
                 of 12.5 %",
                spot.priority, spot.cpu
            ),
        )
    }

    fn in_contest(&self) -> &'static str {
        "each cell in a group of cgroup v2 of its own, frozen and thawed by a keeper with a watcher and an heir as cells of \
         missions are: the two budgets of least bandwidth together with which both cells meet all deadlines, with the \
         lateness of another machine and the keeper's own time in every period (as `timecell admit` reckons)"
    }

    fn free_us(&self) -> u64 {
        real_time_us(&Root::live())
    }

    fn hold(
        &self,
        held: &Budget,
        cpu: u32,
        names: &Names<'_>,
    ) -> Result<Option<Box<dyn Held>>, String> {
        let cgroups = host::cgroup::detect().map_err(|error| error.to_string())?;
        let reservation = reservation(held).map_err(|error| error.to_string())?;
        Ok(Some(Box::new(Group {
            place: place(&group_name()),
            // A cell's processes are found by the name of its group when it is ended.
            hold: Hold::make(&cgroups, names.id).map_err(|error| error.to_string())?,
            cpu,
            reservation,
            begun: OnceCell::new(),
        })))
    }

    fn remove_left(&self, name: &str) -> Result<(), String> {
        remove_left(name)
    }
}

/// The group of a trial, and its holders.
struct Group {
    place: Place,
    hold: Hold,
    cpu: u32,
    reservation: Reservation,
    begun: OnceCell<Begun>,
}

/// When it was held first.
struct Begun {
    id: u64,
    page: Page,
    at_ns: i64,
    /// The keeper then, and its cpu time.
    keeper: i32,
    keeper_ns: Option<i64>,
}

impl Held for Group {
    fn join(&self, pid: i32) -> Result<(), String> {
        enter(self.hold.path(), pid)
    }

    fn begin(&self) -> Result<(), String> {
        let path = self.hold.path();
        let id = (self
            .place
            .hold(path, Stop::Lower, self.cpu, self.reservation))
        .map_err(|error| error.to_string())?;
        let page = self.place.page().map_err(|error| error.to_string())?;
        let page = page.ok_or("nobody holds its group")?;
        let begun = Begun {
            id,
            at_ns: clock::now(),
            keeper: page.keeper(),
            keeper_ns: page.keeper_cpu_ns(),
            page,
        };
        (self.begun.set(begun)).map_err(|_| "its group is held twice".to_owned())
    }

    fn reacted(&self) -> Result<Option<Reacted>, String> {
        let Some(begun) = self.begun.get() else {
            return Ok(None);
        };
        let page = &begun.page;
        let groups = page.groups();
        let entry = groups.iter().find(|entry| entry.which.id == begun.id);
        let (Some(Entry { progress, .. }), Some(reacted)) = (entry, page.reacted(begun.id)) else {
            return Err("nobody holds its group now".to_owned());
        };
        let cost = (begun.keeper_ns.zip(page.keeper_cpu_ns()))
            .filter(|_| page.keeper() == begun.keeper)
            .map(|(before, after)| Share {
                cpu_ns: (after - before).max(0).unsigned_abs(),
                of_ns: (clock::now() - begun.at_ns).max(0).unsigned_abs(),
            });
        Ok(Some(Reacted {
            late: times(&reacted.late),
            overruns: times(&reacted.overruns),
            noticed: page.has_notice(self.cpu),
            cost,
            takeovers: page.takeovers(),
            errors: progress.totals.errors,
        }))
    }

    fn end(self: Box<Self>) -> Result<(), String> {
        remove(&self.place, self.hold.path())
    }
}

fn times(histogram: &Histogram) -> Times {
    let bins = histogram.bins().into_iter();
    Times {
        bins: bins
            .map(|(end, count)| (end.unsigned_abs(), count))
            .collect(),
        most_ns: histogram.most_ns().unsigned_abs(),
    }
}

fn reservation(held: &Budget) -> Result<Reservation, ReservationError> {
    Reservation::of_unsigned(held.budget_ns, held.period_ns)
}

/// The place of the processes that hold the groups of a study; `name` is the prefix of its groups' names.
fn place(name: &str) -> Place {
    // This is the running program, even if its path names another.
    Place::new(memory().join(format!("{name}-freezer")), "/proc/self/exe")
}

/// Releases the group and removes it; with the last one also the processes that held them, and their directory.
fn remove(place: &Place, group: &Path) -> Result<(), String> {
    let released = place.let_go(group).map_err(|error| error.to_string());
    let removed = remove_group(group);
    released.and(removed).and_then(|()| {
        let left = place.groups().map_err(|error| error.to_string())?;
        match left.is_empty() {
            true => place.remove().map_err(|error| error.to_string()),
            false => Ok(()),
        }
    })
}

fn remove_group(group: &Path) -> Result<(), String> {
    hold::remove(group, LEAVING).map_err(|error| error.to_string())
}

fn remove_left(name: &str) -> Result<(), String> {
    let (place, root) = (place(name), Root::live());
    // Without cgroups there are none of them.
    let Ok(top) = hold::top(&root) else {
        return Ok(());
    };
    let of_study = cells_of(name);
    let mut groups: Vec<PathBuf> = (root.dirs_in(&top).into_iter())
        .filter(|group| group.starts_with(&of_study))
        .map(|group| top.join(group))
        .collect();
    // One that is gone already is still on the page.
    let held = place.groups().map_err(|error| error.to_string())?;
    groups.extend(held.into_iter().map(|entry| entry.which.path));
    let released = (groups.iter()).try_for_each(|group| {
        let released = place.let_go(group).map_err(|error| error.to_string());
        released.and(remove_group(group))
    });
    let ended = place.remove().map_err(|error| error.to_string());
    released.and(ended)
}

fn top() -> Result<PathBuf, hold::HoldError> {
    hold::top(&Root::live())
}

/// Whether a group can be held to this budget, with a cell of this priority.
fn group(held: &Budget, priority: u8) -> Requirement {
    let what = "freezer (cgroup v2 with cgroup.freeze)";
    let unmet = |reason: String, fix: &str| Requirement::unmet(what, reason, fix);
    let top = match top() {
        Ok(top) => top,
        Err(error) => {
            let fix =
                "use Linux 5.2 or later with cgroup v2, which may be mounted beside cgroup v1";
            return unmet(error.to_string(), fix);
        }
    };
    if let Err(why) = writable(&top) {
        return unmet(why, "run the same command with sudo");
    }
    if let Err(why) = reservation(held) {
        return unmet(
            why.to_string(),
            "request another one (--reservation, or [[workload.reservation]])",
        );
    }
    if priority > HIGHEST_HELD {
        return unmet(
            format!(
                "what holds a thread of priority {priority} must run before it: {HIGHEST_HELD} is the most"
            ),
            "lower --priority",
        );
    }
    if is_stopped(held, &Root::live()) {
        return unmet(
            "the kernel stops all real-time threads before the budget is used up (sched_rt_runtime_us)".to_owned(),
            "request less (--reservation, or [[workload.reservation]])",
        );
    }
    Requirement::met(what, format!("found at {}", top.display()))
}

/// Whether the kernel stops all real-time threads before this budget is used up.
fn is_stopped(held: &Budget, root: &Root) -> bool {
    limit(root).is_some_and(|limit| is_beyond(held, limit))
}

/// The kernel's limit on real-time threads; `None`: there is none. Where that is unknown, one is assumed.
fn limit(root: &Root) -> Option<RtLimit> {
    rt_limit(root).filter(|_| kernel::throttles_real_time(root) != Some(false))
}

/// The kernel's limit for real-time threads of a cpu, us in every second, rounded down.
pub(crate) fn real_time_us(root: &Root) -> u64 {
    match limit(root) {
        Some(RtLimit::Of {
            runtime_us,
            period_us,
        }) => runtime_us.saturating_mul(1_000_000) / period_us.max(1),
        Some(RtLimit::Off) | None => 1_000_000,
    }
}

/// Whether the kernel's limit on all real-time threads comes before this budget.
fn is_beyond(held: &Budget, limit: RtLimit) -> bool {
    match limit {
        RtLimit::Of {
            runtime_us,
            period_us,
        } => {
            let asked = u128::from(held.budget_ns) * u128::from(period_us);
            asked > u128::from(held.period_ns) * u128::from(runtime_us)
        }
        RtLimit::Off => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(budget_ns: u64, period_ns: u64) -> Budget {
        Budget {
            enforcer: Enforcer::Freezer,
            budget_ns,
            period_ns,
        }
    }

    #[test]
    fn a_budget_beyond_what_the_kernel_lets_real_time_threads_have_is_not_measured() {
        let limit = RtLimit::Of {
            runtime_us: 950_000,
            period_us: 1_000_000,
        };
        assert!(!is_beyond(&held(95, 100), limit));
        assert!(is_beyond(&held(96, 100), limit));
        assert!(!is_beyond(&held(100, 100), RtLimit::Off));
    }

    #[test]
    fn a_limit_that_the_kernel_does_not_ask_for_stops_no_budget() {
        let on = |release: &str, config: &str| {
            let dir = tempfile::tempdir().unwrap();
            let file = |path: &str, text: &str| {
                let path = dir.path().join(path);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, text).unwrap();
            };
            file("proc/sys/kernel/osrelease", &format!("{release}\n"));
            file("proc/sys/kernel/sched_rt_runtime_us", "950000\n");
            file("proc/sys/kernel/sched_rt_period_us", "1000000\n");
            file(&format!("boot/config-{release}"), config);
            let root = Root::at(dir.path());
            [95, 96].map(|budget| is_stopped(&held(budget, 100), &root))
        };
        let groups = "CONFIG_HZ=250\nCONFIG_RT_GROUP_SCHED=y\n";
        let none = "CONFIG_HZ=250\n# CONFIG_RT_GROUP_SCHED is not set\n";
        assert_eq!(on("6.18.0", none), [false, false]);
        assert_eq!(on("6.18.0", groups), [false, true]);
        assert_eq!(on("6.1.0", none), [false, true]);
    }

    #[test]
    fn what_cannot_be_held_is_said_before_anything_is_made() {
        let reason = |held: &Budget, priority| group(held, priority).reason;
        if group(&held(1_000_000, 10_000_000), 80).met {
            let short = reason(&held(10_000, 50_000), 80);
            assert!(short.contains("periods from 100 us"), "{short}");
            let high = reason(&held(1_000_000, 10_000_000), 97);
            assert!(high.contains("96 is the most"), "{high}");
        }
        assert!(reservation(&held(1, u64::MAX)).is_err());
        assert!(remove_left("timecell-nobody").is_ok());
    }
}
