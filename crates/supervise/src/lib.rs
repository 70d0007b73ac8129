//! Keeps the cells of a mission running. Here live admission ([`admit`]: can the guarantees be kept?), the kernel
//! mechanisms that hold cells to their grants ([`enforce`]), holding running programs ([`held`]), the supervisor
//! ([`run`]), the page through which applications report their jobs ([`page`]), the [`journal`] of the supervisor's
//! acts and the [`state`] that it adds up to, and the records of [`incident`]s. Creating cells, budgets and
//! schedulability are separate crates.

pub mod admit;
pub mod assume;
mod cause;
pub mod control;
mod dirs;
mod end;
pub mod enforce;
pub mod health;
pub mod held;
pub mod incident;
mod inherit;
pub mod journal;
pub mod ledger;
mod lock_file;
pub mod machine;
pub mod names;
pub mod page;
pub mod process;
mod reserve;
pub mod run;
mod stamp;
pub mod state;
mod threads;
mod uids;
mod way;

pub use cause::{Cause, ForMemory, Reason, ended};
pub use end::End;
pub(crate) use host::lock;
pub use stamp::Stamp;

/// The example of the README, so that it is tested.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
