//! A limit that a cell has reached, reported once in each of its lives.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::cause::ForMemory;

/// Which limit, and how large it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "limit", rename_all = "kebab-case")]
pub enum Limit {
    /// The kernel has killed a process of the cell for memory.
    Memory(ForMemory),
    /// The cell was refused a process or thread.
    Pids {
        /// The most that it may have; `None`: not known.
        most: Option<u64>,
    },
    /// The cell's tasks alone are not to use its budget up, and it was used up.
    AmpleBudget {
        /// In how many periods since its start ended.
        periods: u64,
    },
}

impl Limit {
    /// Whether both are the same limit, however large.
    pub fn is_like(self, other: Limit) -> bool {
        std::mem::discriminant(&self) == std::mem::discriminant(&other)
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Limit::Memory(memory) => write!(f, "a process of it was {memory}"),
            Limit::Pids { most: Some(most) } => {
                write!(f, "it was refused a process or thread: `pids` is {most}")
            }
            Limit::AmpleBudget { periods } => {
                let periods = match periods {
                    1 => "a period".to_owned(),
                    more => format!("{more} periods"),
                };
                write!(
                    f,
                    "its ample budget was used up in {periods}: something other than its tasks ran in it, its start went on \
                     after it was ready, a job exceeded its wcet, or its enforcer checked later than assumed"
                )
            }
            Limit::Pids { most: None } => {
                f.write_str("it was refused a process or thread: it has as many as it may have")
            }
        }
    }
}
