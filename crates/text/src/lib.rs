//! Words, numbers, units and columns as every table, sentence and page of timecell prints them.

pub mod amount;
pub mod grid;
pub mod style;
pub mod units;
pub mod words;

/// The example of the README, so that it is tested.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
