//! The samples file: the jobs of one cell in one trial, as the probe wrote it.
//!
//! A header page of 4,096 bytes and then records of 32 bytes, all little-endian; behind them, where the thread counted
//! its own activations, a row of counts for each record. The probe maps the file and
//! writes into it directly, so the file *is* the shared memory and nothing is converted between the measuring
//! loop and the record. docs/src/run-formats.md tells the layout byte by byte; [`layout`] is its one source.

mod copy;
pub mod layout;
mod read;

pub(crate) use copy::copy_samples;
pub use layout::{CountRow, Counted, HEADER_BYTES, Header, RECORD_BYTES, Sample};
pub(crate) use read::read_into;
pub use read::{Samples, parse, read};
