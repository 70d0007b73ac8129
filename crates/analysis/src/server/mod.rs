//! Servers: several cells on one cpu, each held to a budget every period by a server, with tasks inside.
//!
//! This module has the servers' own schedulability, the cpu time each is guaranteed to supply despite those above it, the
//! response times of fixed-priority tasks inside, and utilisation bounds. Elsewhere: reservations whose supply does not
//! depend on their neighbours, which are supplies of their own.
//!
//! ```
//! use timecell_analysis::{Task, server::{Cell, Kind, LocalTask, Refill, Response, Server, analyze}};
//!
//! // 2 every 20 in a deferrable server of 3 every 10: after a budget that was used up, the next one is 7 away.
//! let cell = Cell {
//!     server: Server::new(Kind::Deferrable, 3, 10),
//!     tasks: vec![LocalTask::unbound(Task::new(2, 20))],
//! };
//! assert_eq!(analyze(&[cell], Refill::Apart).cells[0].tasks[0], Response::Bounded(7 + 2));
//! ```

mod analyze;
mod kind;
mod supply;
mod utilization;

pub use analyze::{
    Analysis, Cell, CellAnalysis, LocalTask, Place, Response, analyze, analyze_within,
};
pub use kind::{Kind, Refill, Server, ServerError};
pub use supply::{ServerSupply, response_time};
pub use utilization::{
    deferrable_hyperbolic, deferrable_least_upper_bound, polling_hyperbolic,
    polling_least_upper_bound,
};
