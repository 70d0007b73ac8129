//! Draws a run's results: the terminal's table, the HTML report, pictures, and two runs side by side; and the pictures of demand and
//! supply in a task set. Crates `study` and `feasibility` compute the data.
//!
//! To add something, extend one of two lists: `FIGURES` in `figure/mod.rs` and `SECTIONS` in `html/mod.rs`.

mod beside;
mod chart;
mod compare;
mod conclusion;
pub mod demand;
mod devices;
mod drawn;
mod figure;
mod findings;
mod grid;
mod html;
mod in_turns;
mod isolation;
mod judge;
mod loads;
mod measured;
mod patience;
mod published;
mod reserved;
mod scale;
mod series;
mod supply;
mod table;
mod table_conditions;
mod tails;
mod tasks;

pub use compare::{
    compare_figures, compare_html, compare_table, compared_html, compared_pictures, compared_table,
};
pub use conclusion::{conclusion, would_have_seen};
pub use devices::{Device, devices_figures, devices_html, devices_table};
pub use drawn::{Drawn, gap_notes, remark_notes, studied};
pub use figure::figures;
pub use findings::findings;
pub use html::{Extras, html, html_with, is_page};
pub use isolation::{isolation_figures, isolation_html, isolation_table};
pub use judge::judged_table;
pub use measured::{measured_html, measured_table};
pub use published::{beside_table, sources_table};
pub use scale::{scale_figures, scale_html, scale_table};
pub use series::{series_figures, series_html, series_table};
pub use supply::{supply_figures, supply_html, supply_table};
// Re-exports, so that callers need no further crate.
pub use record::run::Run;
pub use table::table;
pub use text::style::Style;
pub use text::units::{exact, rounded_up, time};
pub use text::words::{FEWEST_ROUNDS, grouped, part, plural};

/// The example of the README, so that it is tested.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
