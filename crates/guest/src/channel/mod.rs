//! The channel between host and guest: one serial line that carries commands, output, files and signs of life. Frames find their
//! beginning again after noise ([`frame`]); [`message`] says what is in them. Backpressure is that of the line.

pub mod frame;
mod line;
pub mod message;

pub use line::{Sender, received};
