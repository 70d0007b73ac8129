//! What keeps the cells of a mission running. Here live the page through which applications report their jobs ([`page`]), the
//! [`journal`] of what the supervisor has done and the [`state`] that it adds up to, the health rules that decide what is
//! done about a failing cell, and the records of [`incident`]s. Making cells, budgets and schedulability are crates of
//! their own.

mod end;
pub mod incident;
pub mod journal;
pub mod page;
pub mod process;
mod stamp;
pub mod state;

pub use end::End;
pub use stamp::Stamp;
