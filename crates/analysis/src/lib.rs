//! Schedulability: do the deadlines hold, and what is the least cpu each cell must reserve?
//!
//! Pure functions on integer nanoseconds: no input, no output, no clock, and no floating point in any verdict.
//! Ratios are compared exactly; whatever must be rounded is rounded to the safe side; whatever cannot be decided
//! within its bounds says [`Undecided`] and never yes.

pub mod admission;
mod budget;
pub mod design;
pub mod edf;
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
