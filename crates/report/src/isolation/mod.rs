//! Studies of temporal isolation: what contests of two cells and spinning cells amount to, their table, page and figures.

mod findings;
mod page;
mod picture;
mod readings;
mod received;
mod rows;
mod study;
mod table;

pub use page::isolation_html;
pub use picture::isolation_figures;
pub(crate) use readings::isolation_readings;
pub(crate) use rows::{lateness, missed};
pub use study::isolation_study;
pub(crate) use study::misses;
pub use table::isolation_table;
