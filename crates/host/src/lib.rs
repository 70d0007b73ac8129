//! Linux as timecell sees it: scheduling classes, cgroups, cpus, latency switches, provenance and
//! the doctor's checks. Here lives everything that reads or sets the state of the machine; the code that makes cells,
//! measures them or judges the numbers lives in other crates.

pub mod activity;
pub mod bounded;
pub mod caps;
pub mod cgroup;
pub mod clock;
pub mod confine;
pub mod counters;
pub mod cpu_use;
pub mod cpus;
pub mod debugfs;
pub mod doctor;
pub mod enforcers;
pub mod epoll;
mod error;
pub mod evl_quota;
pub mod evl_tp;
pub mod fair_server;
pub mod file;
pub mod fix;
pub mod foreign_file;
pub mod found;
pub mod given_file;
pub mod ground;
pub mod handover;
pub mod hcbs;
pub mod install;
pub mod isolate;
pub mod kernel;
pub mod latency;
pub mod limits;
pub mod lock;
pub mod loopback;
pub mod map;
pub mod mounts;
pub mod out_of_band;
pub mod perf;
pub mod pidfd;
pub mod process;
pub mod provenance;
pub mod quick_moves;
pub mod root;
pub mod rt_threads;
pub mod rtgroup;
pub mod sched;
pub mod thermal;
pub mod versioned;
pub mod virt;
pub mod writer;

#[cfg(test)]
pub(crate) mod testing;

pub use error::Error;

/// The example of the README, so that it is tested.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
