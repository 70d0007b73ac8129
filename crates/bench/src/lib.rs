//! Experiment to trials to run: plans against the machine, runs the cells, writes the record.
//!
//! Nothing is judged here; `report` reads what this crate wrote.

mod error;
mod interrupt;
pub mod load;
mod place;
mod plan;
mod run;
pub mod scenario;
pub mod selfcheck;
mod trial;
mod verify;
mod watch;

pub use error::BenchError;
pub use place::{Place, sweep_stale};
pub use plan::{Plan, PlannedTrial};
pub use run::{Progress, Settings, run};
