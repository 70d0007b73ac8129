//! Studies of temporal isolation: contests of two cells and cells that spin side by side.

mod readings;
mod received;
mod study;

pub(crate) use readings::isolation_readings;
pub use study::isolation_study;
pub(crate) use study::misses;
