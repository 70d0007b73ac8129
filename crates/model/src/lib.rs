//! The words of timecell as types, and the files that users write (experiments, task sets, missions): parsing, validation,
//! writing.
//!
//! What lives here is pure: no clock, no file, no kernel. Everything above speaks in these types.

mod bytes;
mod counters;
mod duration;
mod enforcer;
mod engine;
mod experiment;
mod input_error;
mod input_errors;
mod load;
mod loads;
pub mod mission;
mod own;
mod parse;
mod program;
mod quantity;
mod reader;
mod requirement;
mod resolve;
mod scale;
mod scale_override;
mod scale_parse;
mod task_held;
pub mod task_load;
mod task_parse;
pub mod taskset;
mod timetable;
mod trials;
mod turns;
mod until;
mod value;

pub use bytes::{Bytes, BytesError};
pub use counters::Counters;
pub use duration::{Duration, DurationError};
pub use enforcer::Enforcer;
pub use engine::{EngineKind, Helper};
pub use experiment::{
    Class, Experiment, Keep, Limits, Pacing, SCHEMA, Scheduling, TrialPlan, Work, Workload,
};
pub use input_error::InputError;
pub use input_errors::InputErrors;
pub use load::{IDLE, LoadForm, LoadKind, LoadPlan};
pub use own::OwnTask;
pub use program::{ProgramJobs, ProgramLoad};
pub use reader::nearest;
pub use requirement::Requirement;
pub use resolve::{Overrides, quick};
pub use scale::{COUNTS, Scale};
pub use task_held::reserves as task_reserves;
pub use task_load::{TaskLoad, TaskPolicy};
pub use timetable::{MOST_ARMS, Timetable, shuffle};
pub use turns::Turns;

/// The example of the README, so that it is tested.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
