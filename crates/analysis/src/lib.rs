//! Schedulability: do the deadlines hold, and what is the least cpu each cell must reserve?
//!
//! Pure functions on integer nanoseconds: no input, no output, no clock, and no floating point in any verdict.
//! Ratios are compared exactly; whatever must be rounded is rounded to the safe side; whatever cannot be decided
//! within its bounds says [`Undecided`] and never yes.

mod ns;
mod supply;
mod task;
mod verdict;

pub use ns::{MAX_NS, Ns};
pub use supply::Supply;
pub use task::{Task, TaskError};
pub use verdict::{Part, Undecided, Verdict, Witness};
