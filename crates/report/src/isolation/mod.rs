//! Studies of temporal isolation: what contests of two cells and spinning cells amount to, their table, page and figures.

mod findings;
mod page;
mod picture;
mod rows;
mod table;

pub use page::isolation_html;
pub use picture::isolation_figures;
pub(crate) use rows::{lateness, missed};
pub use table::isolation_table;
