//! Events of a cell that the supervisor has seen.

use crate::End;

/// The times of a task for the rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskTimes {
    /// Its name.
    pub name: String,
    /// Its deadline relative to the release in ns; `None`: no job is late.
    pub deadline_ns: Option<i64>,
    /// Its wcet in ns; `None`: no job overruns.
    pub wcet_ns: Option<i64>,
}

/// Something that the supervisor has seen of a cell. A task is its index in [`super::Config::tasks`], or, in a cell that declares
/// none, its slot in the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// Its first process is there: from now on it is watched. Tell a start that fails later as its end.
    Started,
    /// It is about to be stopped or restarted, because that was asked for by hand or by another cell's rule.
    Stopping,
    /// Its program has ended.
    Ended(End),
    /// It was frozen, and cannot report.
    Frozen,
    /// It continues where it was frozen.
    Thawed,
    /// A task has given a sign of life.
    Heartbeat {
        /// The task.
        task: usize,
    },
    /// A job has begun.
    JobBegun {
        /// Its task.
        task: usize,
    },
    /// A job has ended.
    JobEnded {
        /// Its task.
        task: usize,
        /// From its release to its end, in ns.
        response_ns: i64,
        /// The cpu time that it took, in ns; `None`: not known.
        ran_ns: Option<i64>,
    },
    /// Jobs ended that nobody has seen one by one.
    JobsUnseen {
        /// Their task.
        task: usize,
        /// Their number.
        jobs: u64,
        /// How many of them were late. In which order is not known; the worst is assumed, that the late ones were the last.
        late: u64,
        /// They were more than a look in time leaves unseen, because nobody looked: then the late ones are taken to be spread
        /// among them.
        stalled: bool,
    },
    /// Jobs were never begun, or begun and abandoned: each is a late one.
    JobsMissed {
        /// Their task.
        task: usize,
        /// Their number.
        jobs: u64,
    },
    /// The cell has used more cpu time than jobs that keep to their wcet could have.
    Overran {
        /// The task whose jobs they were, if the cell has only this one.
        task: Option<usize>,
    },
    /// The bound of a task counts no more: something that its proof assumes is otherwise.
    Unproved {
        /// The task.
        task: usize,
    },
    /// A period of the cell's budget is over.
    BudgetPeriod {
        /// Whether the budget was used up.
        exhausted: bool,
    },
    /// The cell has come up against its memory limit.
    MemoryLimit,
    /// A thread of the cell has run since the last look.
    Ran,
}
