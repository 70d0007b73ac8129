//! Importing files of other tools. [`taskset`]: task sets to run. [`measured`]: measurements. Each has one list of its
//! formats.

mod format;
pub mod measured;
mod prefix;
mod source;
pub mod taskset;
mod words;

pub use format::{Described, Format};
