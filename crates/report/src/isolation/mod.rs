//! Studies of temporal isolation: contests of two cells and cells that spin side by side; their table, page and pictures.

mod findings;
mod page;
mod picture;
mod rows;
mod table;

pub use page::isolation_html;
pub use picture::isolation_figures;
pub(crate) use rows::{lateness, missed};
pub use table::isolation_table;
