//! Earliest deadline first on a dedicated cpu: the processor demand criterion by QPA, response times, and virtual
//! deadlines for mixed criticality.
//!
//! The order of the set does not matter. What lives here assumes that a whole cpu serves the set; demand inside
//! reservations and global EDF live in the modules beside.

mod deadlines;
mod demand;
mod fast;
mod horizon;
mod qpa;
mod response;
mod vd;

pub(crate) use deadlines::Deadlines;
pub use demand::demand;
pub use fast::decide;
pub use qpa::{verdict, verdict_within};
pub use response::{response_times, response_times_within};
pub use vd::{EdfVd, EdfVdLoad, edf_vd, edf_vd_load};
