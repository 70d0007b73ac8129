//! A brute-force simulator of one cpu, the oracle that the analyses are tested against: integer time, one tick after
//! the other, servers of each kind, fixed priorities and EDF inside.
//!
//! It shares no code with the analyses and takes no shortcut. Here are the machine, random numbers, and ways to release
//! jobs; the bounds that are compared with its observations are in `oracle_*.rs`.

pub mod horizon;
mod machine;
mod random;
mod release;

pub use machine::{Policy, SimServer, Source, simulate};
pub use random::{Random, set_count};
pub use release::{Job, Releases};
