//! Holding a cell: the trait of all enforcers, and their common parts.

use std::path::Path;
use std::time::Duration;

use analysis::linux::Means;
use host::sched::Class;
use model::grouped;
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
    /// On the cpu that is named, else on the highest that this process may use.
    ///
    /// # Errors
    /// When several are named, or one that this process may not use.
    pub(crate) fn on(cpus: &[u32], priority: u8) -> Result<Spot, InputError> {
        let refuse = |what: String, fix: String| Err(InputError::new("--cpus", what, fix));
        if cpus.len() > 1 {
            let what = format!("{} cpus are named", cpus.len());
            return refuse(
                what,
                "the study uses one cpu for its cells; name one".to_owned(),
            );
        }
        let mut allowed = allowed_cpus();
        allowed.sort_unstable();
        let cpu = cpus.first().or(allowed.last()).copied().unwrap_or(0);
        if !allowed.contains(&cpu) {
            return refuse(
                format!("cpu {cpu} does not exist, or this process may not use it"),
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

/// Names for a cell and its group. Both begin with [`group_name`], by which they are found after a `kill -9`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Names<'a> {
    /// The cell's own id, by which its processes are found when it is ended.
    pub id: &'a str,
    /// The name of a real-time group, below the root; may begin with that of an existing group.
    pub rt_group: &'a str,
}

/// The name of this process's groups, one at a time or one around the others.
pub(crate) fn group_name() -> String {
    format!("timecell-{}", std::process::id())
}

/// The prefix of the names of groups around cells, for the process that has this `name` ([`group_name`]).
pub(super) fn cells_of(name: &str) -> String {
    format!("{name}-")
}

/// An enforcer under which cells are measured.
pub(crate) trait Holder: Sync {
    /// Which one it is.
    fn enforcer(&self) -> Enforcer;

    /// Its requirements for this budget, met and unmet.
    fn needs(&self, held: &Budget, spot: &Spot) -> Vec<Requirement>;

    /// How the thread is held, for the report.
    fn condition(&self, spot: &Spot) -> Condition;

    /// How both cells of a contest are held, and to which budgets, for the report.
    fn in_contest(&self) -> &'static str;

    /// How it holds whole cells on such a machine, which decides the minimum supply of a budget; `None`: it holds thread by thread.
    fn means(&self, machine: &Machine) -> Option<Means> {
        feasibility::means(self.enforcer(), machine).filter(|_| !self.enforcer().is_by_thread())
    }

    /// Bandwidth for all whole cells that it holds, us in every second: of each cpu, or of all cpus where a budget counts on every cpu.
    fn free_us(&self) -> u64;

    /// Whether its cells stop where the kernel stops all threads of class FIFO (`kernel.sched_rt_runtime_us`).
    fn is_throttled(&self) -> bool {
        true
    }

    /// Checks that the mechanism itself can grant these budgets at the same time, each to a cell on the cpu at the same place; `allowed`
    /// are all cpus that this process may use, `smaller` says how to request less.
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

    /// Makes the holder of these names on this cpu, before the cell is created; `None`: the cell's class holds it. The error is one
    /// sentence; nothing is left behind then.
    fn hold(&self, _: &Budget, _cpu: u32, _: &Names<'_>) -> Result<Option<Box<dyn Held>>, String> {
        Ok(None)
    }

    /// Removes the remains of a killed process, whose groups' names begin with this ([`group_name`]); its cells have been ended before.
    fn remove_left(&self, _name: &str) -> Result<(), String> {
        Ok(())
    }
}

/// A cell's holder. It outlives the cell.
pub(crate) trait Held: Send {
    /// Takes a process, while it is in no real-time class.
    fn join(&self, pid: i32) -> Result<(), String>;

    /// Takes one thread of a process, while it is in no real-time class.
    fn join_thread(&self, _: i32) -> Result<(), String> {
        Err("its enforcer holds whole processes".to_owned())
    }

    /// What its program is told, so that its threads enter their group by themselves.
    fn words(&self) -> Vec<String> {
        Vec::new()
    }

    /// The budget is held from now on at the latest.
    fn begin(&self) -> Result<(), String> {
        Ok(())
    }

    /// How exactly it has been held since [`Held::begin`]; `None` where the kernel itself holds it.
    fn reacted(&self) -> Result<Option<Reacted>, String> {
        Ok(None)
    }

    /// Removes it; the cell has ended.
    fn end(self: Box<Self>) -> Result<(), String>;
}

/// The enforcer's own requirement, and class FIFO with this priority where it is met.
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

/// Checks that the kernel accepts the sum of these groups' budgets, which it adds up over all cpus.
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
        ": a group has its budget on every cpu, so the kernel adds up the budgets of cells on different cpus"
    } else {
        ""
    };
    Err(Requirement::unmet(
        format!("{what}: budgets of the cells together"),
        format!(
            "{} us of real-time budget in every second are requested, {} us are free{because}",
            grouped(asked_us),
            grouped(free_us)
        ),
        format!("take budget from other groups, {smaller}, or hold them by freezer"),
    ))
}

/// The unmet requirement for a budget or period that is not in whole microseconds, as the kernel's group files need.
pub(super) fn not_whole(what: &str, held: &Budget) -> Option<Requirement> {
    let is_whole = |ns: u64| ns > 0 && ns.is_multiple_of(1_000);
    let unmet = || {
        Requirement::unmet(
            what,
            format!(
                "budget and period of a group are whole us, and {} ns in every {} ns are requested",
                held.budget_ns, held.period_ns
            ),
            "request whole us (--reservation, or [[workload.reservation]])",
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

/// Checks that this process may write to a directory of control groups.
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
        // Studies differ in their advice.
        let fix = "take budget from other groups, ask less, or hold them by freezer";
        assert_eq!(on_one.fix.as_deref(), Some(fix));
    }
}
