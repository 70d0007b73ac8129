//! Verdicts on thresholds, for terminal and page.

mod page;
mod text;

pub(crate) use page::section;
pub use text::judged_table;
pub(crate) use text::shown;
