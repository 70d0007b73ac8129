//! The answers of an analysis.

use serde::{Deserialize, Serialize};

use crate::Ns;

/// The answer of an analysis on a task set.
///
/// ```
/// use timecell_analysis::{Task, Undecided, Verdict, edf};
///
/// assert_eq!(edf::verdict(&[Task::new(1, 2), Task::new(1, 2)]), Verdict::Schedulable);
/// let Verdict::Unschedulable(witness) = edf::verdict(&[Task::new(1, 2), Task::new(2, 3)]) else { panic!() };
/// assert_eq!((witness.instant, witness.demand, witness.supply), (6, 7, 6));
/// let out_of_range = edf::verdict(&[Task::new(0, 2)]);
/// assert!(matches!(out_of_range, Verdict::Undecided(Undecided::NotCovered(_))));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Every deadline holds.
    Schedulable,
    /// A deadline can be missed (exact tests), or the test cannot show that it holds (sufficient tests, which say
    /// so in their documentation).
    Unschedulable(Witness),
    /// The analysis gave up before an answer; never to be read as yes.
    Undecided(Undecided),
}

impl Verdict {
    /// Whether every deadline holds.
    ///
    /// ```
    /// use timecell_analysis::{Undecided, Verdict};
    ///
    /// assert!(Verdict::Schedulable.is_schedulable());
    /// assert!(!Verdict::Undecided(Undecided::Overflow).is_schedulable());
    /// ```
    pub fn is_schedulable(&self) -> bool {
        matches!(self, Verdict::Schedulable)
    }
}

/// Why a set was refused: an instant by which more is demanded than supplied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Witness {
    /// The task whose deadline is in question, as an index into the set.
    pub task: usize,
    /// The instant t, counted from the start of the worst-case interval, ns.
    pub instant: Ns,
    /// Work that must be done by then, ns.
    pub demand: Ns,
    /// Cpu time that is guaranteed to be supplied by then, ns.
    pub supply: Ns,
    /// The parts of the demand.
    pub parts: Vec<Part>,
}

/// One task's share of a demand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Index of the task in the set.
    pub task: usize,
    /// Jobs that count.
    pub jobs: u64,
    /// Their work, ns.
    pub demand: Ns,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum Undecided {
    /// A sum or product left the range of exact arithmetic.
    #[error("undecided: the times are too long for exact arithmetic")]
    Overflow,
    /// The number of steps allowed was used up.
    #[error("undecided: no answer within {steps} steps; the busy interval is too long")]
    TooManySteps {
        /// Steps that were taken.
        steps: u64,
    },
    /// The analysis does not cover such a task.
    #[error("undecided: {0}")]
    NotCovered(String),
}
