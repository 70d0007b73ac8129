//! Marks that differ in shape, all marks of one kind in one path.

use super::parts::n;
use std::fmt::Write;

model::choice! {
    /// The shape of a mark.
    pub(crate) enum Mark: path {
        Circle = "m-3 0a3 3 0 1 0 6 0a3 3 0 1 0-6 0",
        Square = "m-3-3h6v6h-6z",
        Triangle = "m0-4l3.7 6.5h-7.4z",
        Diamond = "m0-4l4 4l-4 4l-4-4z",
        Cross = "m-3-3l6 6m-6 0l6-6",
        Plus = "m-4 0h8m-4-4v8",
        Down = "m0 4l3.7-6.5h-7.4z",
        Bar = "m0-4v8",
        /// A small cross, for many marks close together.
        Small = "m-2-2l4 4m-4 0l4-4",
    }
}

impl Mark {
    /// The mark that goes with a look.
    pub fn of(look: usize) -> Mark {
        [
            Mark::Circle,
            Mark::Square,
            Mark::Triangle,
            Mark::Diamond,
            Mark::Cross,
            Mark::Plus,
            Mark::Down,
            Mark::Bar,
        ][look % super::LOOKS]
    }
}

/// The path of marks at these positions. Marks that would coincide within half a pixel are drawn once.
pub(crate) fn marks(mark: Mark, at: impl IntoIterator<Item = (f64, f64)>) -> String {
    let mut seen = std::collections::BTreeSet::new();
    let mut path = String::new();
    for (x, y) in at {
        if seen.insert(((x * 2.0) as i64, (y * 2.0) as i64)) {
            let _ = write!(path, "M{} {}{}", n(x), n(y), mark.path());
        }
    }
    path
}

/// One mark.
pub(crate) fn sample(mark: Mark, x: f64, y: f64) -> String {
    marks(mark, [(x, y)])
}
