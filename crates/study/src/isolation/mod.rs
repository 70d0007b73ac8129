//! Studies of temporal isolation: what contests of two cells and spinning cells amount to.

mod readings;
mod received;
mod study;

pub(crate) use readings::isolation_readings;
pub use study::isolation_study;
pub(crate) use study::misses;
