//! Why something cannot be held or released.

use std::io;
use std::path::PathBuf;
use text::units::exact;

use crate::ledger::LedgerError;

/// Why something is not held or not released; prints as one sentence. Nothing is changed then.
#[derive(Debug, thiserror::Error)]
pub enum HeldError {
    /// Groups, classes and the ledger are root's.
    #[error("budgets need root here; run it with `sudo`")]
    NotRoot,
    /// There is no freezer that holds budgets.
    #[error(transparent)]
    NoFreezer(#[from] freezer::hold::HoldError),
    /// The real-time threads that hold it cannot be created.
    #[error("the freezer's threads need a real-time class, which is not available: {0}")]
    NoRealTime(String),
    /// Not a cpu of this machine at this moment.
    #[error("cpu {cpu} is not online; {online} are")]
    Cpu {
        /// The one that was asked for.
        cpu: u32,
        /// Those that are, as a list.
        online: String,
    },
    /// Not a cpu that the container was given.
    #[error(
        "{what} cannot be held on cpu {cpu}: its cpuset has cpus {cpus} only; name one of them, or leave --cpu out"
    )]
    Cpuset {
        /// The thing to be held.
        what: String,
        /// The cpu that was asked for.
        cpu: u32,
        /// Those that it has, as a list.
        cpus: String,
    },
    /// More cpus than threads.
    #[error(
        "{what} has fewer threads ({threads}) than the {cpus} cpus named: every thread gets one cpu, and a budget without a thread \
         is nobody's; name fewer cpus"
    )]
    Few {
        /// The thing to be held.
        what: String,
        /// Its threads.
        threads: usize,
        /// The cpus that were asked for.
        cpus: usize,
    },
    /// Its threads are in several groups.
    #[error(
        "{what} cannot be held on several cpus: {why}; hold it on one cpu, or hold its processes one by one"
    )]
    Undivided {
        /// The thing to be held.
        what: String,
        /// Why its group cannot be divided, a clause.
        why: String,
    },
    /// No budget.
    #[error(transparent)]
    Reservation(#[from] freezer::ReservationError),
    /// A budget that the reaction leaves nothing of.
    #[error(
        "a budget of {} every {} is below what the freezer can hold: it {}, sees the first use after {}, and takes {} of each \
         period for itself, so a budget has to be above {} in a period above {}",
        span(*.budget_ns), span(*.period_ns), looks(*.late_ns, *.is_measured), span(super::hold::FIRST_USE_NS),
        span(super::hold::COST_NS), span(super::hold::least_budget_ns(*.late_ns)), span(super::hold::least_period_ns(*.late_ns))
    )]
    TooSmall {
        /// The budget, ns.
        budget_ns: i64,
        /// Its period, ns.
        period_ns: i64,
        /// How late its keeper looks, ns.
        late_ns: i64,
        /// Whether that was measured on this machine.
        is_measured: bool,
    },
    /// Above its keeper.
    #[error(
        "{what} has the priority FIFO {priority}, but the freezer's threads must run above it: at most {} is allowed",
        crate::admit::HIGHEST_HELD
    )]
    Priority {
        /// The thing to be held.
        what: String,
        /// The priority.
        priority: u8,
    },
    /// No container runs under this name.
    #[error("{}; a unit of systemd is named with its suffix, such as `{}.service`, and a process by its number", .0, .0.name())]
    NoContainer(engine::running::NotRunning),
    /// The container does not run, or two have the name.
    #[error(transparent)]
    Container(engine::running::NotRunning),
    /// No unit of this name runs.
    #[error(transparent)]
    Unit(#[from] engine::unit::NoUnit),
    /// No process has this number.
    #[error("there is no process {0}")]
    NoProcess(i32),
    /// A process of it could be taken out of its budget.
    #[error(
        "{what} cannot be given a real-time class: users other than root can move processes in {}, and a moved process keeps \
         the class without a budget; hold it without --fifo and --rr, or start it with `timecell run`",
        group.display()
    )]
    Movable {
        /// The thing to be held.
        what: String,
        /// The group in which others may.
        group: PathBuf,
    },
    /// Holding it failed, and its keeper does not release it.
    #[error(
        "{error}; it stays held because it could not be released ({why}): run `timecell release {name}`"
    )]
    StillHeld {
        /// Why it was not held as it should.
        error: String,
        /// Why it was not released.
        why: freezer::process::PlaceError,
        /// Its name.
        name: String,
    },
    /// A thread that is not the first of its process.
    #[error("{tid} is a thread of process {of}, and a process is held as a whole: name {of}")]
    Thread {
        /// The thread.
        tid: i32,
        /// Its process.
        of: i32,
    },
    /// The kernel's own.
    #[error("{0} is a kernel thread, which no group can hold")]
    Kernel(i32),
    /// The machine's init would stop with it.
    #[error(
        "{0} cannot be held: the machine's init (process 1) would stop with it, and everything that needs it"
    )]
    Init(String),
    /// timecell would stop itself.
    #[error(
        "{what} cannot be held: process {pid} in it is timecell's own, which would stop with it"
    )]
    Own {
        /// The thing to be held.
        what: String,
        /// The process.
        pid: i32,
    },
    /// A cell, which its mission holds.
    #[error(
        "{what} is a cell of timecell (`{id}`), which has a budget from its mission or from the `timecell run` that started it"
    )]
    Cell {
        /// The thing to be held.
        what: String,
        /// The cell's id.
        id: String,
    },
    /// Its processes are in the group at the top, or share theirs with others.
    #[error("{what} has no cgroup v2 group of its own: its processes share {} with others", group.display())]
    Shared {
        /// The thing to be held.
        what: String,
        /// The group.
        group: PathBuf,
    },
    /// The process that its engine names is not the container's.
    #[error(
        "{what} cannot be held: its first process according to its engine, {pid}, is in none of its groups here; it may run on \
         another machine, or without groups; if without groups, hold it by that number"
    )]
    Elsewhere {
        /// The thing to be held.
        what: String,
        /// The process.
        pid: i32,
    },
    /// Threads of SCHED_DEADLINE.
    #[error(
        "{what} cannot be held: its thread {tid} is of SCHED_DEADLINE, which runs before the freezer's threads and has its own budget"
    )]
    Deadline {
        /// The thing to be held.
        what: String,
        /// The thread.
        tid: i32,
    },
    /// It is held already.
    #[error("{what} is already held, with {} on cpu {cpus}; release it first with `timecell release {name}`", of_period(*.budget))]
    Already {
        /// The thing to be held.
        what: String,
        /// Under which name it is.
        name: String,
        /// The cpus, as a list.
        cpus: String,
        /// The budget on each of them and its period, ns.
        budget: Option<(u64, u64)>,
    },
    /// Another held thing has the same name.
    #[error("{other} is already held as `{name}`; name {what} by its id")]
    SameName {
        /// The thing to be held.
        what: String,
        /// The held thing.
        other: String,
        /// The name.
        name: String,
    },
    /// It is in, or around, a held thing.
    #[error("{what} cannot be held: {other}, which is held, is {how}")]
    Nested {
        /// The thing to be held.
        what: String,
        /// The held thing.
        other: String,
        /// Where, a clause.
        how: &'static str,
    },
    /// Nothing of this name is held.
    #[error("`{what}` is not held; {held}")]
    NotHeld {
        /// The name given.
        what: String,
        /// The held things, a clause.
        held: String,
    },
    /// Several are called so.
    #[error("`{what}` matches {}: name one of them", names.join(" and "))]
    Several {
        /// The name given.
        what: String,
        /// The held things that it matches.
        names: Vec<String>,
    },
    /// It has ended meanwhile.
    #[error("{0} has ended meanwhile; nothing is held")]
    Ended(String),
    /// There is no room for it.
    #[error("{what} cannot be held: {why}")]
    NotAdmitted {
        /// The thing to be held.
        what: String,
        /// Why, a clause.
        why: String,
    },
    /// Its threads.
    #[error("{what} cannot be held: {reason}")]
    Threads {
        /// The thing to be held.
        what: String,
        /// The kernel's error.
        reason: host::sched::SchedError,
    },
    /// Whether threads have left it.
    #[error("cannot tell whether threads of {what} have left its group: {why}")]
    Outside {
        /// The held thing.
        what: String,
        /// Why not, a clause.
        why: String,
    },
    /// A group, or a file of held things.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file or directory.
        path: PathBuf,
        /// Why.
        reason: io::Error,
    },
    /// The file of held things cannot be understood.
    #[error("{} cannot be understood: {why}; `timecell ps --machine` shows what is held, and removing the file forgets what was \
             to be restored", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// Why, a clause.
        why: String,
    },
    /// Those who hold it.
    #[error(transparent)]
    Place(#[from] freezer::process::PlaceError),
    /// One of its threads is attached to EVL.
    #[error(
        "thread {thread} of {what} is out of band by EVL, where no budget holds it and another cpu could crash the kernel; end it first"
    )]
    OutOfBand {
        /// The thing to be held.
        what: String,
        /// The thread's id.
        thread: i32,
    },
    /// The machine's ledger.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

/// The kind of answer that an error is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The user named the wrong thing.
    Input,
    /// A guarantee cannot be kept.
    NotGuaranteed,
    /// The machine lacks something.
    Unmet,
    /// The system refused something.
    Failed,
}

impl HeldError {
    /// Its kind of answer.
    pub fn fault(&self) -> Fault {
        match self {
            HeldError::NotAdmitted { .. } | HeldError::Movable { .. } => Fault::NotGuaranteed,
            HeldError::NotRoot
            | HeldError::NoFreezer(_)
            | HeldError::NoRealTime(_)
            | HeldError::Unit(engine::unit::NoUnit::NoSystemd(_)) => Fault::Unmet,
            HeldError::Ended(_)
            | HeldError::Threads { .. }
            | HeldError::Outside { .. }
            | HeldError::File { .. }
            | HeldError::Corrupt { .. }
            | HeldError::Place(_)
            | HeldError::StillHeld { .. }
            | HeldError::Ledger(_)
            | HeldError::Unit(engine::unit::NoUnit::Silent(..)) => Fault::Failed,
            _ => Fault::Input,
        }
    }
}

/// How late the freezer reacts, a clause.
fn looks(late_ns: i64, is_measured: bool) -> String {
    match is_measured {
        true => format!("checked up to {} late on this machine", span(late_ns)),
        false => format!("checks up to {} late", span(late_ns)),
    }
}

/// A budget and its period as sentences name them.
fn of_period(budget: Option<(u64, u64)>) -> String {
    let (budget, period) = budget.unwrap_or_default();
    format!("{} every {}", exact(budget), exact(period))
}

fn span(ns: i64) -> String {
    exact(ns.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_that_cannot_be_held_is_told_with_its_figures() {
        let error = HeldError::TooSmall {
            budget_ns: 100_000,
            period_ns: 10_000_000,
            late_ns: 100_000,
            is_measured: false,
        };
        let said = error.to_string();
        assert!(
            said.starts_with("a budget of 100 us every 10 ms is below"),
            "{said}"
        );
        assert!(
            said.contains("it checks up to 100 us late, sees")
                && said.contains("above 120 us in a period above 250 us"),
            "{said}"
        );
    }
}
