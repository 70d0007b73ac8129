//! Earliest deadline first on a dedicated cpu: the processor demand criterion by QPA, response times, and virtual
//! deadlines for mixed criticality.
//!
//! The order of the set does not matter. This module assumes that a whole cpu serves the set; demand inside
//! reservations and global EDF live in the modules beside.
//!
//! ```
//! use timecell_analysis::{Task, Verdict, edf};
//!
//! assert!(edf::verdict(&[Task::new(1, 2), Task::new(3, 6)]).is_schedulable());
//! let Verdict::Unschedulable(why) = edf::verdict(&[Task::new(1, 2), Task::new(2, 3)]) else { panic!() };
//! assert_eq!((why.instant, why.demand, why.supply), (6, 7, 6)); // 7 are due by 6
//! ```

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
