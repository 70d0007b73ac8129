//! The statistics from outside: properties, coverage of intervals, and tails whose truth is known.

mod coverage;
mod interleaved;
mod kept_tails;
mod properties;
mod simulated;
mod tails;
