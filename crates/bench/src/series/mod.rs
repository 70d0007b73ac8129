//! Scenarios that repeat one measured value instead of periodic jobs: one file each, and a common part: measuring every subject in turn,
//! round by round, and recording the values.
//!
//! Adding one: a file with `prepare`, and a line in [`SERIES_SCENARIOS`].

mod bench;
mod cells;
mod footprint;
mod mission;
mod nqueens;
mod recovery;
mod run;
mod startup;
mod sweep;

pub use bench::{OwnOption, SeriesOptions, SeriesPlan, SeriesScenario};
pub use recovery::BEAT_NS as HEARTBEAT_NS;
pub use run::run_series;
pub use sweep::Sweep;

/// Every scenario of this kind.
pub static SERIES_SCENARIOS: [SeriesScenario; 5] = [
    startup::SCENARIO,
    recovery::SCENARIO,
    mission::SCENARIO,
    footprint::SCENARIO,
    nqueens::SCENARIO,
];
