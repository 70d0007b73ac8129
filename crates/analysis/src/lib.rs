//! Schedulability: do the deadlines hold, and what is the least cpu each cell must reserve?
//!
//! Pure functions on integer nanoseconds: no input, no output, no clock, and no floating point in any verdict.
//! Ratios are compared exactly; all rounding is to the safe side; a question that cannot be decided within its bounds
//! is answered [`Undecided`] and never yes.
//!
//! From tasks to a verdict to the least budget:
//!
//! ```
//! use timecell_analysis::{Task, edf, fp, inside::{Policy, fixed_priority}, least_budget::least_budget, reservation::Periodic};
//!
//! let ms = 1_000_000;
//! let tasks = [Task::new(7 * ms, 50 * ms), Task::new(9 * ms, 75 * ms)]; // in order of priority, highest first
//! assert!(fp::verdict(&tasks).is_schedulable() && edf::verdict(&tasks).is_schedulable());
//! assert_eq!(fp::response_times(&tasks)[1].bound(), Some(16 * ms));
//! let least = least_budget(&tasks, Policy::FixedPriority, 10 * ms, 1_000)?.unwrap(); // every 10 ms, on 1 us
//! assert_eq!(least, 3_500_000);
//! let inside = fixed_priority(&tasks, &Periodic::new(least, 10 * ms).unwrap());
//! assert_eq!(inside.responses, [Some(26 * ms + 500_000), Some(75 * ms)]);
//! # Ok::<(), timecell_analysis::Undecided>(())
//! ```
//!
//! Declare a task with [`Task::new`] from its worst-case execution time and its period, and add its further parameters: a deadline, jitter,
//! blocking. Times are whole ns; where no kernel is modelled, any other unit does as well if it is the same throughout, as in some of the
//! examples. A *cell* is a set of tasks that share a reservation: a container, a partition, a virtual machine.
//!
//! | question | module |
//! |---|---|
//! | Do fixed priorities hold on a cpu of their own? How long do responses take, and which order is best? | [`fp`] |
//! | Does EDF hold on a cpu of its own? | [`edf`] |
//! | What if a high-criticality task runs longer than assumed? | [`fp::amc_rtb`], [`edf::edf_vd`] |
//! | How little does a reservation supply? | [`reservation`], and [`Supply`] for one's own |
//! | How little did a kernel supply, as measured? | [`empirical`] |
//! | Do the tasks of a cell hold inside its reservation? | [`inside`] |
//! | What is the least that the cell must reserve? | [`least_budget`] |
//! | Do several cells hold whose servers share a cpu under fixed priorities? | [`server`] |
//! | Which task goes into which cell, which cell onto which cpu? Does a global scheduler hold? | [`multi`] |
//! | The whole design: a least reservation and a cpu for every cell | [`design`](mod@design) |
//! | How much more work, or wake-up latency, does a set bear? | [`sensitivity`] |
//! | Is there room for one more cell, at once? | [`admission`] |
//! | What would Linux admit? | [`linux`] |
//! | Random task sets to try all this on | [`generate`] |
//!
//! Every answer is a [`Verdict`], or holds one: a refusal comes with a [`Witness`], an instant by which more work is due
//! than cpu time is certain. The refusal of an exact test proves that a deadline can be missed, that of a sufficient test only that it is not
//! shown to hold; each says which it is, and names its theorem's authors. Times are ns, 1 to [`MAX_NS`]; no search takes more than [`STEPS`].

pub mod admission;
mod budget;
pub mod design;
pub mod edf;
pub mod empirical;
pub mod fp;
pub mod generate;
pub mod inside;
pub mod least_budget;
pub mod linux;
mod mixed;
pub mod multi;
mod ns;
pub mod reservation;
pub mod sensitivity;
pub mod server;
mod supply;
mod task;
pub mod utilization;
mod verdict;

pub use budget::STEPS;
pub use mixed::MixedTask;
pub use ns::{MAX_NS, Ns};
pub use supply::Supply;
pub use task::{Task, TaskError};
pub use verdict::{Part, Undecided, Verdict, Witness};

/// The example of the README, so that it is tested.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
