//! Cells whose reservations are kept by servers, among the other servers on their cpu: whether each server gets its
//! budget, the deadlines inside, the witness and the mends of a server that does not. Cells without a server are not
//! here.

mod explain;
mod group;
mod mend;
mod proof;
mod study;
#[cfg(test)]
mod tests;

pub(super) use explain::{lines, sentence, words};
pub(super) use group::Group;
pub use mend::ServerMend;
pub(super) use study::studies;
pub use study::{ServerShortage, ServerStudy, ShortagePart};
