//! Scale studies: how growing numbers of cells of one engine fare. Their table, page and pictures.
//!
//! Everything below is drawn from the [`ScaleSummary`](record::scale::ScaleSummary) alone, which holds a few numbers
//! for each cell: the samples are read once, one cell at a time.

mod findings;
mod growth;
mod page;
mod panels;
mod picture;
mod table;
mod tables;
mod words;

pub use page::scale_html;
pub use picture::scale_figures;
pub use table::scale_table;
