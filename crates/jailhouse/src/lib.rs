//! Jailhouse, a hypervisor that gives cpus, memory and devices of a machine to cells beside Linux.
//!
//! Pure: [`config`] reads and writes configurations, [`partition`] makes them, [`check`] finds those that the driver accepts
//! and that then stop the machine, [`console`] divides the hypervisor's console into lines. On the machine: [`driver`] makes
//! the driver's requests, [`inmate`] runs a cell from its configuration to its first [`heartbeat`] and to its end, and
//! [`register`] knows the cells that timecell has created.

pub mod check;
pub mod config;
pub mod console;
pub mod driver;
pub mod heartbeat;
pub mod inmate;
pub mod machine;
pub mod partition;
pub mod register;
mod span;

pub use driver::{CellStatus, Console, Driver, DriverError, Image, State};
pub use heartbeat::Heartbeat;
pub use inmate::{Began, Calls, Inmate, InmateError};
pub use span::{PAGE, Span};

/// The example of the README, so that it is tested.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
