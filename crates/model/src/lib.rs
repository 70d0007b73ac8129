//! The words of timecell as types, and the files that users write (experiments, task sets, missions): parsing, validation,
//! writing.
//!
//! This crate is pure: no clock, no file, no kernel. Everything above speaks in these types.

#[macro_use]
mod choice;

mod board;
mod bytes;
mod duration;
mod enforcer;
mod engine;
mod experiment;
mod file;
mod input_error;
mod input_errors;
mod load;
mod machine;
mod metric;
pub mod mission;
mod quantity;
mod requirement;
mod size;
pub mod taskset;
pub mod threshold;
mod timetable;

pub use board::{Accel, Architecture, Board, BoardKernel, Card, Qemu, RootSystem};
pub use bytes::{Bytes, BytesError, grouped, mib};
pub use choice::Choice;
pub use duration::{Duration, DurationError};
pub use enforcer::Enforcer;
pub use engine::{EngineKind, Helper};
pub use experiment::{
    COUNTS, Class, Counters, ExecutionStage, Experiment, Keep, Limits, Overrides, OwnTask, Pacing,
    ProgramJobs, ProgramLoad, ReportedTask, SCHEMA, Scale, Scheduling, TaskLoad, TaskPolicy,
    TrialPlan, Turns, Work, Workload, quick, task_load, task_reserves,
};
pub use file::{foreign, nearest};
pub use input_error::InputError;
pub use input_errors::InputErrors;
pub use load::{IDLE, LoadForm, LoadKind, LoadPlan};
pub use machine::{HelperClass, Helpers, Machine};
pub use metric::Metric;
pub use requirement::Requirement;
pub use size::Size;
pub use threshold::Threshold;
pub use timetable::{MOST_ARMS, Timetable, shuffle};

/// The example of the README, so that it is tested.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
