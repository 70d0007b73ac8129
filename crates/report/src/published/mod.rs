//! Published figures beside those of a run, for terminal and page.

mod page;
mod text;

pub(crate) use page::section;
pub use text::{beside_table, sources_table};
