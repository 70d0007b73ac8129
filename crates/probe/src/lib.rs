//! The code that runs inside a cell: arming, the release barrier, the measuring loop.
//!
//! The cell's side is [`run`]; the coordinator's side of the barrier is [`Barrier`]. Both meet in one shared
//! page ([`control`]). Engines, which make cells, are one crate up.

mod args;
mod arm;
mod barrier;
mod bridge;
mod calibrate;
mod cell;
pub mod clock;
pub mod control;
mod count;
mod crowd;
mod futex;
mod helpers;
mod life;
mod machine;
mod map;
mod measure;
mod mirror;
mod oob;
mod partition;
mod program;
mod queens;
mod ring;
mod set;
mod sleep;
mod supply;
mod work;

pub use args::{ArgsError, BarrierKind, ClassBy, DeadlineArgs, ProbeArgs, ReportedArgs, TurnsArgs};
pub use barrier::{Barrier, BarrierError, Wake};
pub use bridge::{boots, bridge};
pub use cell::{EXIT_ABANDONED, EXIT_BAD_ARGS, EXIT_FAILED, run};
pub use life::{Life, life};
pub use machine::machine;
pub use map::{prepare_counted_samples, prepare_samples};
pub use mirror::mirror;
pub use oob::oob;
pub use partition::{beat, partition};
pub use program::{TaskOnPage, prepare_page, samples_beside, tasks_on};
pub use queens::{Queens, QueensArgs, Solved, queens};
pub use ring::{RingReader, prepare_ring, ring_records};
pub use set::{SetArgs, TaskArgs, set};
pub use supply::{SpinClass, SupplyArgs, prepare_gaps, supply};

/// The example of the README, so that it is tested.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
