//! Budgets held by the clock, the classes of threads and the freezer of cgroup v2: a thread above all cells lowers the
//! threads of a group whose budget is used up, or freezes it, and gives everything back when the next budget comes. Works
//! on every kernel with cgroup v2, PREEMPT_RT or not, with any number of threads and processes in a cell. The rule is
//! pure ([`rule`]); the rest is Linux. Which cell gets which budget is decided elsewhere.
//!
//! It relies on the enforcing thread running. If that thread dies while a group is thawed, nothing holds the group; if it
//! dies while a group is frozen, nothing thaws it. So a separate process holds the cells: it outlives the process that
//! asked for it, records its state on a [`page`], and is watched by another process that takes its place ([`process`]). A
//! program that uses [`Keeper`] by itself has to watch it ([`stats::Stats::alive_ns`]).

mod beside;
pub mod counter;
pub mod group;
pub mod hold;
pub mod keeper;
mod lists;
pub mod lower;
pub mod page;
pub mod process;
pub mod proof;
pub mod rule;
mod slot;
pub mod stats;
mod sys;

pub use counter::Senses;
pub use group::Stop;
pub use hold::Hold;
pub use keeper::{Handle, Id, Keeper, KeeperError};
pub use rule::{Reservation, ReservationError};

/// The example of the README, so that it is tested.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
