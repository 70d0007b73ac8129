//! Fixed priorities on a dedicated cpu: response times, priority assignment, sections that cannot be preempted, and
//! mixed criticality.
//!
//! Sets are slices in priority order, the highest first. This module assumes that a whole cpu serves the set;
//! reservations, servers and several cpus live in the modules beside.
//!
//! ```
//! use timecell_analysis::{Task, fp};
//!
//! // 3 every 10, above 4 every 12 that are due by 8 and done by 7.
//! let tasks = [Task::new(3, 10), Task::new(4, 12).due(8)];
//! assert!(fp::verdict(&tasks).is_schedulable());
//! assert_eq!(fp::response_times(&tasks)[1].bound(), Some(7));
//! ```

mod amc;
mod assign;
mod fast;
mod level;
pub(crate) use response::legal;
mod response;
mod sections;

pub use amc::{AmcRefusal, AmcResponse, amc_rtb, amc_rtb_refusal};
pub use assign::{
    Assignment, audsley, deadline_minus_jitter_monotonic, deadline_monotonic, optimal_order,
    rate_monotonic,
};
pub(crate) use fast::high;
pub use fast::{Fast, response_times_into};
pub use response::{
    Response, response_time, response_times, response_times_within, verdict, verdict_within,
};
pub use sections::{Section, response_times_with_sections};
