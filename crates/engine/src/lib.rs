//! What makes cells: one file per engine behind one trait.
//!
//! An engine creates a cell that runs words of our own static binary, tells its pid, kills and removes it.
//! It measures nothing and decides nothing about scheduling; placing and classes are the coordinator's.

mod cell;
mod error;

pub use cell::{Cell, CellSpec, Engine, Rights, User};
pub use error::EngineError;
