//! The two pictures of schedulability: demand against supply in one cell, with the witness marked, and the share of
//! generated sets that tests accept. Their data is computed elsewhere.

mod acceptance;
mod picture;

pub use acceptance::acceptance_svg;
pub use picture::picture_svg;

/// Width of both pictures in px, and the length of their vertical axes.
const SIZE: (f64, f64) = (720.0, 330.0);
