//! Tasks of two criticalities.

use serde::{Deserialize, Serialize};

use crate::{Ns, Task};

/// A task of a dual-criticality set (Vestal, RTSS 2007).
///
/// `task.wcet` is the execution time that the low level of assurance assumes. Once a job of a high task has run for
/// that long without finishing, the system is in high mode: high tasks may run for `wcet_high`, low tasks are dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct MixedTask {
    /// The task with the wcet C(LO) of the low mode.
    pub task: Task,
    /// For a task of high criticality the wcet C(HI) >= C(LO) of the high mode, ns; `None` for one of low criticality.
    pub wcet_high: Option<Ns>,
}

impl MixedTask {
    /// A task of low criticality: guaranteed until the mode changes.
    ///
    /// ```
    /// use timecell_analysis::{MixedTask, Task};
    ///
    /// assert_eq!(MixedTask::low(Task::new(4, 15)).wcet_high, None);
    /// ```
    pub const fn low(task: Task) -> MixedTask {
        MixedTask {
            task,
            wcet_high: None,
        }
    }

    /// A task of high criticality: guaranteed in both modes.
    ///
    /// ```
    /// use timecell_analysis::{MixedTask, Task};
    ///
    /// assert_eq!(MixedTask::high(Task::new(2, 10), 3).wcet_high, Some(3));
    /// ```
    pub const fn high(task: Task, wcet_high: Ns) -> MixedTask {
        MixedTask {
            task,
            wcet_high: Some(wcet_high),
        }
    }
}
