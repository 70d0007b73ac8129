//! A brute-force simulator of one cpu, the oracle that the analyses are tested against: integer time, one tick after
//! the other, servers of each kind, fixed priorities and EDF inside.
//!
//! It shares no code with the analyses and takes no shortcut. What lives here: the machine, random numbers, and ways
//! to release jobs. What does not: which bounds are compared with what it observes; that is in `oracle_*.rs`.
#![allow(
    dead_code,
    reason = "each test that includes this module uses another part of it"
)]

pub mod horizon;
mod machine;
mod random;
mod release;

pub use machine::{Policy, SimServer, Source, simulate};
pub use random::Random;
pub use release::{Job, Releases};

/// How many random sets each oracle tries: `default`, or what the environment variable `TIMECELL_ORACLE_SETS` says.
///
/// The long run is `TIMECELL_ORACLE_SETS=100000 cargo test --release -p analysis --test 'oracle_*'`.
pub fn set_count(default: u64) -> u64 {
    match std::env::var("TIMECELL_ORACLE_SETS") {
        Ok(count) => count.parse().expect("TIMECELL_ORACLE_SETS is a number"),
        Err(_) => default,
    }
}
