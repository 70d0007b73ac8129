//! What a run says: summaries, the terminal's table, the HTML report, figures, and two runs side by side. And what
//! crate `analysis` says of a task set: verdicts with their witnesses and mends, tables, and the pictures of demand
//! and supply.
//!
//! Everything here is a pure function of the record or the task set and can be computed again at any time; a run is only read.
//! Measuring lives below, deciding whether a number is good enough lives with whoever asked for the number.
//!
//! Two lists are the places to add to: `FIGURES` in `figure/mod.rs` and `SECTIONS` in `html/mod.rs`.

mod chart;
mod compare;
mod conclusion;
mod conditions;
mod data;
mod data_of_conditions;
mod data_of_histograms;
pub mod demand;
pub mod feasibility;
mod figure;
mod findings;
mod html;
mod in_turns;
mod isolation;
pub mod judge;
mod kind;
mod loads;
mod measured;
mod patience;
mod plan;
mod published;
mod reserved;
mod scale;
mod series;
mod studied;
mod study;
mod style;
mod supply;
mod table;
mod table_conditions;
mod tails;
mod tasks;
#[cfg(test)]
mod testing;
mod units;
mod words;

pub use compare::{
    Change, Compared, Difference, Pair, ReadingPair, ReadingsComparison, RunComparison, compare,
    compare_figures, compare_html, compare_readings, compare_table, unlike, unlike_runs,
};
pub use conclusion::{conclusion, would_have_seen};
pub use figure::figures;
pub use findings::findings;
pub use html::{Extras, html, html_with};
pub use isolation::{isolation_figures, isolation_html, isolation_study, isolation_table};
pub use kind::{Ask, Kind};
pub use measured::{
    DistributionSummary, FileSummary, MeasuredSummary, OverflowSummary, QuantileSummary,
    measured_html, measured_readings, measured_summary, measured_table,
};
pub use plan::task;
pub use published::{
    About, Beside, Block, Kind as PublishedKind, Line, Ours, Without, beside, beside_table,
    series_beside, sources_table,
};
pub use scale::{scale_beside, scale_figures, scale_html, scale_study, scale_table};
pub use series::{series_figures, series_html, series_study, series_table};
pub use stats::Foreseen;
pub use studied::{Studied, studied};
pub use study::{Known, Standing, foresee, jobs_until, study};
pub use style::Style;
pub use supply::{supply_figures, supply_html, supply_reaction, supply_study, supply_table};
pub use table::table;
pub use units::{percent, time};
pub use words::{FEWEST_ROUNDS, grouped, plural};

/// The example of the README, so that it is tested.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
