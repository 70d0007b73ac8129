//! From an experiment to its trials to a run: plans for this machine, runs the cells, writes the record.
//!
//! Nothing is judged here; `report` reads the record.

// Root's output goes through `host::writer` or `record::output`; tests are exempt.
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod cells;
mod context;
mod counted;
mod crowd;
mod drain;
mod error;
mod held;
mod here;
mod isolation;
mod launch;
mod left;
pub mod live;
pub mod load;
mod needs;
mod payload;
mod periodic;
mod place;
mod plan;
mod planning;
mod program;
mod resume;
mod rt_group;
mod run;
mod salvage;
mod sampler;
pub mod scenario;
pub mod selfcheck;
pub mod series;
mod session;
mod supply;
mod sweep;
mod tasks;
mod todo;
mod together;
mod trial;
mod trial_record;
mod turns;
mod utc;

pub use crowd::ahead;
pub use error::BenchError;
pub use isolation::{IsolationOptions, IsolationPlan, Part, run_isolation};
pub use left::left_isolated;
pub use place::Place;
pub use plan::{Plan, PlannedOwn, PlannedTrial};
pub use program::{Tried, TriedTask, resolve_program, try_program};
pub use resume::check as check_experiment;
pub use run::run;
pub use series::{
    HEARTBEAT_NS, OwnOption, SeriesOptions, SeriesPlan, SeriesScenario, Sweep, run_series,
};
pub use session::{Finished, Going, Progress, Settings, check_machine, check_resume};
pub use supply::{Reservation, Subject, SupplyOptions, SupplyPlan, run_supply};
pub use sweep::{Swept, Unsaved, sweep_stale};
pub use tasks::PlannedTask;
pub use turns::PlannedTurns;

/// The example of the README, so that it is tested.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
