//! Admission by Linux: the arithmetic of SCHED_DEADLINE, of rt-cgroups (cgroup v1) and of HCBS
//! (`cpu.rt.max`, cgroup v2), as the kernel computes it, rounding included.
//!
//! Admission is not feasibility: [`Standing`] tells apart sets that the kernel admits and sets that hold their deadlines. Nor is a
//! budget a supply: [`TickSupply`] is that of a kernel that looks at budgets in its tick, [`FreezerSupply`] that of a
//! thread that freezes and thaws by the clock.
//! Nothing here reads or writes a file.

mod ample;
mod beside;
mod deadline;
mod frames;
mod freezer;
mod hcbs;
mod least;
mod means;
mod ratio;
mod refusal;
mod rt_cgroup;
mod standing;
mod threads;
mod tick;

pub use ample::{Charged, ample_periods, is_ample, least_ample, responses_below, spare_of_ample};
pub use beside::{Crowded, Held, postponement};
pub use deadline::{DeadlineLimits, DeadlineParams, RootDomain};
pub use frames::{Cyclic, Frames, FramesError, Slot};
pub use freezer::{FreezerSupply, Reaction};
pub use hcbs::{HcbsGroup, HcbsTree};
pub use least::{
    BUDGET_GRID_NS, least_budget, least_reservation, less_bandwidth, reservation_periods,
};
pub use means::Means;
pub use ratio::{BW_SHIFT, BW_UNIT, Bandwidth, to_ratio};
pub use refusal::{Errno, Refusal};
pub use rt_cgroup::{RtGroup, RtTree, RtWrite};
pub use standing::Standing;
pub use threads::{own_work, thread_of, threads_hold};
pub use tick::{TickSupply, most_run, rt_most_charged};
