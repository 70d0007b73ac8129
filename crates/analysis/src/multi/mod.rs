//! Several cpus: global tests for sporadic sets, the multiprocessor periodic resource (MPR) in front of a guest that
//! schedules globally, and partitioning of tasks into cells and of cells onto cpus.
//!
//! Every global test here is sufficient and says so: its yes is a proof, its no is only "not shown". Exact is
//! each bin of a partition, by the uniprocessor test that the caller hands in. Elsewhere: those tests
//! ([`crate::fp`], [`crate::edf`], [`crate::inside`]), and admission by Linux ([`crate::linux`]).
//!
//! ```
//! use timecell_analysis::{Task, edf, multi::{Fit, Order, partition}};
//!
//! // Three tasks of 0.6 on two cpus: one of them fits nowhere.
//! let fits = |bin: &[Task]| edf::verdict(bin).is_schedulable();
//! let found = partition(&[Task::new(6, 10); 3], 2, Fit::First, Order::AsGiven, &fits);
//! assert_eq!((found.is_complete(), found.homeless.as_slice()), (false, &[2][..]));
//! ```

mod bcl;
mod bin;
mod covered;
mod feasible;
mod fraction;
mod gfb;
mod interface;
mod mpr;
mod mpr_edf;
mod mpr_fp;
mod ovh;
mod partition;
mod rta_bc;
mod rta_lc;
mod synchronous;
mod walk;

pub use bcl::{bcl_edf, bcl_edf_with_slack, bcl_fp, bcl_fp_task};
pub use bin::{DedicatedCpu, Reservations};
pub use feasible::{overloaded, overloaded_inside};
pub use gfb::gfb;
pub use interface::{Inside, least_interface, least_theta};
pub use mpr::{EqualShare, Mpr, MprError};
pub use mpr_edf::mpr_edf;
pub use mpr_fp::mpr_fp;
pub use ovh::{Ovh, partition_ovh};
pub use partition::{BinTest, Fit, Order, Partition, partition};
pub use rta_bc::{BcBounds, rta_bc_edf, rta_bc_fp};
pub use rta_lc::{LcBounds, rta_lc};
pub use synchronous::{LateJob, late_in_synchronous_run};
