//! Experiment to trials to run: plans against the machine, runs the cells, writes the record.
//!
//! Nothing is judged here; `report` reads what this crate wrote.

// Whatever root writes goes through `host::writer` or `record::output`; a test may write as it likes.
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod counted;
mod crowd;
mod drain;
mod elsewhere;
mod error;
mod held;
mod interrupt;
mod isolation;
mod launch;
mod left;
pub mod live;
pub mod load;
mod parallel;
mod payload;
mod periodic;
mod pidfd;
mod place;
mod plan;
mod program;
mod resume;
mod run;
mod salvage;
mod sampler;
pub mod scenario;
pub mod selfcheck;
pub mod series;
mod supply;
mod tasks;
mod together;
mod trial;
mod trial_record;
mod turns;
mod utc;
mod verify;
mod watch;

pub use crowd::ahead;
pub use error::BenchError;
pub use isolation::{ISOLATION_QUESTION, IsolationOptions, IsolationPlan, Part, run_isolation};
pub use left::left_isolated;
pub use place::{Place, Swept, Unsaved, sweep_stale};
pub use plan::{Plan, PlannedOwn, PlannedTrial};
pub use program::{Tried, resolve_program, try_program};
pub use resume::{check as check_resume, resume};
pub use run::{Going, Progress, Settings, run};
pub use series::{HEARTBEAT_NS, SERIES_SCENARIOS, SeriesOptions, SeriesPlan, run_series};
pub use supply::{
    Reservation, SUPPLY_QUESTION, Subject, SupplyOptions, SupplyPlan, SupplyStudy, run_supply,
};
pub use tasks::PlannedTask;
pub use turns::PlannedTurns;
