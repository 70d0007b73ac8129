//! Importing files of other tools. [`taskset`]: what is to run. [`measured`]: what was measured. Each has one list of its
//! formats.

mod format;
pub mod measured;
mod prefix;
mod source;
pub mod taskset;
mod words;

pub use format::{Described, Format};
