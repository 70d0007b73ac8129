//! Deliberate interference beside the cells: one file per load behind one trait, in `kinds`, and shared parts (the guard that ends them,
//! the page on which they count, the kernel's accounts).
//!
//! A load runs as a separate process, in class OTHER: the field's program where it is installed, or built in, which is our own binary with
//! a hidden command. Nothing is measured here but a load's work.

mod account;
mod ground;
mod guard;
mod inside;
mod kind;
mod kinds;
mod planned;
mod running;
mod tally;

pub(crate) use ground::{Ground, remove_network};
pub use inside::inside;
pub(crate) use kind::Setting;
pub(crate) use planned::resolve;
pub use planned::{LoadOffer, PlannedLoad, offers};
pub(crate) use running::{Running, Start, record, start, with_words};
