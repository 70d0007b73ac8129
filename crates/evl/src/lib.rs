//! EVL (Xenomai 4), the real-time core beside Linux on a Dovetail kernel, through its devices and out-of-band calls alone. Its
//! library is not needed: it cannot be opened from a static program, and each version of it refuses the kernels of the others.
//!
//! An attached thread runs out of band between one wait and the next: no lock and no load of Linux holds it up there. A system call
//! of Linux, a fault or a signal brings it back in band; EVL counts that and tells the cause by a signal. A thread is pinned before it
//! attaches, and never moved after: that has crashed such kernels.
//!
//! The numbers and structures are those of the kernel's user interface, levels 23 to 43 of its ABI.

mod abi;
mod kernel;
mod quota;
mod thread;
mod tp;

pub use crate::abi::LEVELS;
pub use crate::kernel::{CONTROL, Core, EvlError, NODES};
pub use crate::quota::{GROUPS, Group, PERIOD_NS, Quota, Quotas, groups, listed, percent};
pub use crate::thread::{CAUSES, Kind, Policy, State, Thread, causes, count_causes};
pub use crate::tp::{PARTITIONS, Schedules, Window};

/// The example of the README, so that it is tested.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
