//! Figures printed in papers, theses and slides, beside a run: `timecell report RUN --against published`.
//!
//! The figures are a data file (`data/published.toml`), each with its document, place, board, kernel and conditions.
//! They were measured by others on other hardware. So they are shown with that label beside ours, and nothing is
//! computed from the two: no ratio, no verdict, no colour.

mod beside;
mod ours;
mod source;

pub(crate) use beside::beside_own;
pub use beside::{Beside, Block, Line, Ours, Without, beside, series_beside};
pub(crate) use ours::Own;
pub use source::{About, Kind, published};
