//! The two pictures of schedulability: demand against supply in one cell, with the witness marked, and the share of
//! generated sets that tests accept. What is drawn is computed elsewhere.

mod acceptance;
mod picture;

pub use acceptance::acceptance_svg;
pub use picture::picture_svg;

use crate::chart::{Axis, n};
use std::fmt::Write;

/// Width of both pictures in px.
const WIDTH: f64 = 720.0;

/// Straight lines from point to point.
fn line(points: &[(f64, f64)], x: &Axis, y: &Axis) -> String {
    let mut path = String::new();
    for (place, &(across, up)) in points.iter().enumerate() {
        let letter = if place == 0 { 'M' } else { 'L' };
        let _ = write!(path, "{letter}{} {}", n(x.at(across)), n(y.at(up)));
    }
    path
}
