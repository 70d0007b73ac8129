//! Scale studies: how growing numbers of cells of one engine fare. The samples are read once, one cell at a time.

mod cell;
mod point;
mod published;
mod readings;
mod sharing;
mod study;

pub use published::scale_beside;
pub(crate) use readings::scale_readings;
pub use study::{mean_response, median_of, scale_study};
