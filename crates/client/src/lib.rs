//! The library with which an application reports its jobs to the supervisor of its cell: when each began and ended, and that it
//! is alive. It maps one page that the supervisor reads, and from then on reports by a few stores: no system call, no lock, no
//! allocation, and never a wait for the reader. `include/timecell.h` ([`C_HEADER`]) does the same in C. The supervisor's side,
//! reading the page, is not here.
//!
//! ```no_run
//! # fn control_step() {}
//! # fn sleep_until(_: i64) {}
//! let client = timecell_client::Client::open_from_env()?;
//! let mut control = client.task("control")?;
//! let mut release_ns = timecell_client::now_ns();
//! loop {
//!     sleep_until(release_ns);
//!     control.begin_released(release_ns);
//!     control_step();
//!     control.end();
//!     release_ns += 10_000_000;
//! }
//! # #[allow(unreachable_code)]
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Outside a cell, where there is no page, the same program runs and reports to nobody: [`Client::is_attached`].
#![cfg_attr(not(test), no_std)]

mod client;
mod clock;
mod error;
mod heartbeat;
pub mod layout;
mod map;
mod name;
mod task;

pub use client::Client;
pub use clock::now_ns;
pub use error::{OpenError, TaskError};
pub use heartbeat::Heartbeat;
pub use name::Name;
pub use task::Task;

/// The same in C: the whole text of `include/timecell.h`, for build scripts that write it where their C compiler looks.
pub const C_HEADER: &str = include_str!("../include/timecell.h");

/// The signs of life of programs without an operating system, in cells of Jailhouse: the whole text of `include/timecell_inmate.h`.
pub const INMATE_HEADER: &str = include_str!("../include/timecell_inmate.h");

/// The example of the README, so that it is tested.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
