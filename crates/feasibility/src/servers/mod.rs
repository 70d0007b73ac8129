//! Cells whose reservations are enforced by servers, among the other servers on their cpu: whether each server gets
//! its budget, the deadlines inside, and the witness and the fixes for a server that does not. Cells without a
//! server are not here.

mod explain;
mod fix;
mod group;
mod proof;
mod study;
#[cfg(test)]
mod tests;

pub(super) use explain::{lines, sentence, words};
pub use fix::ServerFix;
pub(super) use group::Group;
pub(super) use study::studies;
pub use study::{ServerShortage, ServerStudy, ShortagePart};
