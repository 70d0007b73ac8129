//! Scale studies: how growing numbers of cells of one engine fare. What their runs amount to, the table, the page and
//! the figures.
//!
//! Everything below is drawn from the [`ScaleSummary`](record::scale::ScaleSummary) alone, which holds a few numbers
//! for each cell: the samples are read once, one cell at a time.

mod cell;
mod findings;
mod growth;
mod page;
mod panels;
mod picture;
mod point;
mod published;
mod readings;
mod sharing;
mod study;
mod table;
mod tables;
mod words;

pub use page::scale_html;
pub use picture::scale_figures;
pub use published::scale_beside;
pub(crate) use readings::scale_readings;
pub use study::scale_study;
pub use table::scale_table;
