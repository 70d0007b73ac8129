//! What holds a cell, and what those who do have in common.

use std::path::Path;
use std::time::Duration;

use analysis::linux::Means;
use host::sched::Class;
use model::{Enforcer, InputError, Requirement};
use probe::SpinClass;
use record::{Budget, Condition, Machine, Reacted};

use crate::here::{allowed_cpus, fifo_requirement};

/// How long a group may take until its last process has left it.
pub(super) const LEAVING: Duration = Duration::from_secs(5);

/// Where a cell is held, and how urgent it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Spot {
    /// Where its threads are pinned.
    pub cpu: u32,
    /// All that this process may use.
    pub allowed: Vec<u32>,
    /// Of its most urgent thread.
    pub priority: u8,
}

impl Spot {
    /// On the one cpu that is named, else on the highest that this process may use.
    ///
    /// # Errors
    /// When several are named, or one that this process may not use.
    pub(crate) fn on(cpus: &[u32], priority: u8) -> Result<Spot, InputError> {
        let refuse = |what: String, fix: String| Err(InputError::new("--cpus", what, fix));
        if cpus.len() > 1 {
            let what = format!("{} cpus are named", cpus.len());
            return refuse(
                what,
                "the study has one cpu for its cells; name one".to_owned(),
            );
        }
        let mut allowed = allowed_cpus();
        allowed.sort_unstable();
        let cpu = cpus.first().or(allowed.last()).copied().unwrap_or(0);
        if !allowed.contains(&cpu) {
            return refuse(
                format!("cpu {cpu} is not there, or this process may not use it"),
                format!("the usable cpus are {}", host::cpus::format_list(&allowed)),
            );
        }
        Ok(Spot {
            cpu,
            allowed,
            priority,
        })
    }
}

/// What that is called which is made for a cell. Both begin with [`group_name`]: by that whoever comes after a `kill -9` finds them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Names<'a> {
    /// The cell's own, by which whoever ends it finds its processes.
    pub id: &'a str,
    /// Of a real-time group, below the root; with another one before it, that is there.
    pub rt_group: &'a str,
}

/// Of the groups of this process, one at a time or one around the others.
pub(crate) fn group_name() -> String {
    format!("timecell-{}", std::process::id())
}

/// What the names of groups around cells begin with, of which those of the process that `name` is of do ([`group_name`]).
pub(super) fn cells_of(name: &str) -> String {
    format!("{name}-")
}

/// An enforcer under which cells are measured.
pub(crate) trait Holder: Sync {
    /// Which one it is.
    fn enforcer(&self) -> Enforcer;

    /// What it needs of the machine for this budget, met and unmet.
    fn needs(&self, held: &Budget, spot: &Spot) -> Vec<Requirement>;

    /// How the thread is held, for the report.
    fn condition(&self, spot: &Spot) -> Condition;

    /// How both cells of a contest are held, and to which budgets, for the report.
    fn in_contest(&self) -> &'static str;

    /// How it holds whole cells on such a machine, by which follows what is certain of a budget; `None`: it holds thread by thread.
    fn means(&self, machine: &Machine) -> Option<Means>;

    /// What cells that it holds as a whole may have together, us in every second: of each cpu, or where a budget counts on every cpu, of
    /// all.
    fn free_us(&self) -> u64;

    /// Whether its cells stop where the kernel stops all threads of class FIFO (`kernel.sched_rt_runtime_us`).
    fn is_throttled(&self) -> bool {
        true
    }

    /// Whether the mechanism itself has these budgets at the same time, each of a cell on this one of the cpus; `allowed` are all that this
    /// process may use, and `smaller` is how one asks for less of them.
    fn together(
        &self,
        _: &[Budget],
        _cpus: &[u32],
        _allowed: &[u32],
        _smaller: &str,
    ) -> Result<(), Requirement> {
        Ok(())
    }

    /// The class of a cell with one thread.
    fn class(&self, _: &Budget, spot: &Spot) -> SpinClass {
        SpinClass::Fifo {
            priority: spot.priority,
        }
    }

    /// Cpus that the thread may use.
    fn cpus(&self, spot: &Spot) -> Vec<u32> {
        vec![spot.cpu]
    }

    /// Why several tasks cannot share a budget, a clause; `None`: they can.
    fn unshared(&self) -> Option<&'static str> {
        None
    }

    /// Makes what holds the cell of these names on this cpu, before the cell is made; `None`: its class does. The error is one sentence, and
    /// nothing is left behind then.
    fn hold(&self, _: &Budget, _cpu: u32, _: &Names<'_>) -> Result<Option<Box<dyn Held>>, String> {
        Ok(None)
    }

    /// Removes what a process left that was killed, whose groups' names begin so ([`group_name`]); its cells were ended before.
    fn remove_left(&self, _name: &str) -> Result<(), String> {
        Ok(())
    }
}

/// What holds a cell. It outlives the cell.
pub(crate) trait Held: Send {
    /// Takes a process, while it is in no real-time class.
    fn join(&self, pid: i32) -> Result<(), String>;

    /// The budget is held from now on at the latest.
    fn begin(&self) -> Result<(), String> {
        Ok(())
    }

    /// How exact whoever holds it has been since [`Held::begin`]; `None` where that is the kernel itself.
    fn reacted(&self) -> Result<Option<Reacted>, String> {
        Ok(None)
    }

    /// Removes it; the cell has ended.
    fn end(self: Box<Self>) -> Result<(), String>;
}

/// What an enforcer needs of the machine itself, and class FIFO with this priority where it is there.
pub(super) fn and_fifo(own: Requirement, priority: u8) -> Vec<Requirement> {
    let fifo = own.met.then(|| fifo_requirement(priority));
    [own].into_iter().chain(fifo).collect()
}

/// The class that a spinning thread takes.
pub(crate) fn class_of(spin: SpinClass) -> Class {
    match spin {
        SpinClass::Fifo { priority } => Class::Fifo { priority },
        SpinClass::Deadline {
            budget_ns,
            period_ns,
        } => Class::Deadline {
            runtime_ns: budget_ns,
            deadline_ns: period_ns,
            period_ns,
        },
    }
}

/// The scheduler's tick, ns.
pub(super) fn tick_ns(machine: &Machine) -> u64 {
    machine.slowest_tick_ns()
}

/// Of every second, us, each rounded up.
pub(crate) fn together_us(all: &[Budget]) -> u64 {
    all.iter()
        .map(|held| per_second_us(held.budget_ns, held.period_ns))
        .fold(0, u64::saturating_add)
}

/// A budget in every period, of every second, us, rounded up.
pub(crate) fn per_second_us(budget_ns: u64, period_ns: u64) -> u64 {
    let us = u128::from(budget_ns) * 1_000_000;
    u64::try_from(us.div_ceil(u128::from(period_ns.max(1)))).unwrap_or(u64::MAX)
}

/// Whether the kernel takes the budgets of these groups together, which it adds up, on whichever cpus their cells are.
pub(super) fn on_every_cpu(
    what: &str,
    all: &[Budget],
    cpus: &[u32],
    free_us: u64,
    smaller: &str,
) -> Result<(), Requirement> {
    let asked_us = together_us(all);
    if asked_us <= free_us {
        return Ok(());
    }
    let several = cpus.iter().any(|cpu| *cpu != cpus[0]);
    let because = if several {
        ": a group has its budget on every cpu, so that the kernel adds up those of cells on different cpus"
    } else {
        ""
    };
    Err(Requirement::unmet(
        format!("{what}: budgets of the cells together"),
        format!(
            "{asked_us} us of real-time budget in every second are asked for and {free_us} us are free{because}"
        ),
        format!("take budget from other groups, {smaller}, or hold them by freezer"),
    ))
}

/// A budget or period that the kernel's files of groups, in which they are whole microseconds, cannot say.
pub(super) fn not_whole(what: &str, held: &Budget) -> Option<Requirement> {
    let is_whole = |ns: u64| ns > 0 && ns.is_multiple_of(1_000);
    let unmet = || {
        Requirement::unmet(
            what,
            format!(
                "a group has its budget and period in whole us, and {} ns in every {} ns are asked for",
                held.budget_ns, held.period_ns
            ),
            "ask for whole us (--reservation, or [[workload.reservation]])",
        )
    };
    (!is_whole(held.budget_ns) || !is_whole(held.period_ns)).then(unmet)
}

/// Puts a process into a control group of version 2.
#[expect(clippy::disallowed_methods, reason = "a control group")]
pub(crate) fn enter(group: &Path, pid: i32) -> Result<(), String> {
    let file = group.join("cgroup.procs");
    std::fs::write(&file, pid.to_string()).map_err(|error| format!("{}: {error}", file.display()))
}

/// That this process may write to a directory of control groups.
pub(super) fn writable(dir: &Path) -> Result<(), String> {
    let path = std::ffi::CString::new(std::os::unix::ffi::OsStrExt::as_bytes(dir.as_os_str()))
        .map_err(|error| error.to_string())?;
    // SAFETY: a valid C string; nothing is changed.
    match unsafe { libc::access(path.as_ptr(), libc::W_OK) } {
        0 => Ok(()),
        _ => Err(format!(
            "{}: {}",
            dir.display(),
            std::io::Error::last_os_error()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_adds_up_groups_of_different_cpus() {
        let of = |budget_ns, period_ns| Budget {
            enforcer: Enforcer::RtCgroup,
            budget_ns,
            period_ns,
        };
        let all = [of(7_500, 11_000), of(2_500, 33_000)];
        assert_eq!(together_us(&all), 681_819 + 75_758);
        assert_eq!(
            on_every_cpu("x", &all, &[0, 1], 757_577, "ask less"),
            Ok(())
        );
        let refused = |cpus| on_every_cpu("x", &all, cpus, 757_576, "ask less").unwrap_err();
        assert!(refused(&[0, 1]).reason.contains("on every cpu"));
        let on_one = refused(&[1, 1]);
        assert!(!on_one.reason.contains("on every cpu"));
        // What there is to write differs from one study to another.
        let fix = "take budget from other groups, ask less, or hold them by freezer";
        assert_eq!(on_one.fix.as_deref(), Some(fix));
    }
}
