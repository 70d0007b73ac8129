//! Applies the tests of crate `analysis` to a task set: verdicts, margins, reasons and fixes;
//! as data, as a table, and as a picture. The tests themselves are not here.

mod acceptance;
mod admission;
mod design;
mod drawn;
mod explain;
mod fix;
mod generated;
mod global;
mod judge;
mod mixed;
mod ordered;
mod over_fixed;
mod picture;
#[cfg(test)]
mod sample;
mod servers;
mod special;
mod study;
mod sweep;
mod table;
mod together;

pub use acceptance::{Acceptance, Curve, acceptance_csv, acceptance_table};
pub use admission::{
    Admission, Bound, Known, ReactionText, RtLimit, Standing, Write, admission, admission_text,
    means,
};
pub use analysis::design::Fit;
pub use design::{DesignOptions, Designed, DesignedCell, DesignedCpu, design, design_table};
pub use drawn::{Mark, Picture, Touch};
pub use explain::explanation;
pub use fix::{Change, Fix, fixes};
pub use generated::generated;
pub use global::{GlobalStudy, GlobalTest};
pub use mixed::{MixedStudy, ModeBounds, Refusal, VirtualDeadlines};
// The input of a study, so that callers need no further crate.
pub use model::taskset::TaskSet;
pub use ordered::{NoLevel, OrderStudy};
pub use picture::picture;
pub use servers::{ServerFix, ServerShortage, ServerStudy, ShortagePart};
pub use special::Special;
pub use study::{
    CellStudy, Outcome, ReservationNs, Study, TaskStudy, Together, study, with_latency,
};
pub use sweep::{Sweep, sweep};
pub use table::feasibility_table;
pub use text::style::Style;

/// The example of the README, so that it is tested.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
