//! timecell measured against the field: the evidence behind the README's claims, for anyone to rerun.
//!
//! Each part compares interleaved, in one run on one machine, and says of each goal whether it holds.

#![expect(
    clippy::disallowed_methods,
    reason = "its parts write to a directory of their own in shared memory; the findings are written by who asked"
)]

mod barrier;
mod crowd;
mod loads;
mod memory;
mod probe_process;
mod section;
mod skew;
mod startup;
mod wakeup;

pub use section::{Finding, Section, Setup};

use crate::BenchError;

/// The question that it answers.
pub(crate) const SELF_QUESTION: &str =
    "How does timecell compare with cyclictest, polling barriers and other launchers?";

type Part = fn(Setup, &mut dyn FnMut(&str)) -> Result<Section, BenchError>;

/// The parts by name. Adding one: a file here and a line.
pub const PARTS: [(&str, Part); 6] = [
    ("wakeup", wakeup::run),
    ("barrier", barrier::run),
    ("startup", startup::run),
    ("memory", memory::run),
    ("loads", loads::run),
    ("crowd", crowd::run),
];
