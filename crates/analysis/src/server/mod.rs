//! Servers: several cells on one cpu, each held to a budget every period by a server, with tasks inside.
//!
//! What lives here: the servers' own schedulability, the cpu time each is certain to supply in spite of those above
//! it, the response times of fixed-priority tasks inside, and utilisation bounds. What does not: reservations whose
//! supply does not depend on their neighbours, which are supplies of their own.

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
