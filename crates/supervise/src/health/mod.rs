//! The health monitor: observations of a cell, and the decisions about them. In the spirit of the health monitors
//! of ARINC 653 and cFS, a table of rules instead of code, and a pure state machine that reads it: events and instants go
//! in, findings come out. No clock, no process and no file is touched here; the supervisor watches, and carries out the
//! findings.
//!
//! **How a rule counts.** Each time its condition is met is an *observation*. After `times` of them within the `window`
//! the rule acts, and those observations are used up: nothing counts twice. During the `cooldown` after an action it only
//! counts. The more often it has acted within the window, the further it escalates.
//!
//! **Observations of a condition.** The same holds below: k budgets exhausted in a row, m late jobs of the last n, or a
//! silence of a heartbeat's timeout are one observation, and the next one needs as much again.
//!
//! The end of a program and a reached memory limit are reported without a rule, too; single late jobs, overruns and
//! exhausted budgets are counters of their reporter.
//!
//! **Which action takes precedence.** One event may call for several actions. Stopping goes before restarting, restarting
//! at once before restarting later, and any rule before the cell's restart policy; the others are recorded. Every restart
//! counts towards the restart limit, and at the limit the cell is stopped instead.
//!
//! **When nothing is observed.** Between the end of a cell and its next start, and while it is frozen, no rule counts
//! anything: events then are late news of a life that is over. Report everything else known of a cell before its end.

mod cell;
mod counting;
mod event;
mod finding;
mod lateness;
mod restarts;
mod silence;
#[cfg(test)]
mod tests;
mod watch;

pub use cell::{CellHealth, Config, UnknownTask};
pub use event::{Event, TaskTimes};
pub use finding::{Context, Decision, Finding, Sight, Why};
