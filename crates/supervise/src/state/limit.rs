//! A limit of a cell that was reached, told once in each of its lives.

use std::fmt;

use model::Bytes;
use serde::{Deserialize, Serialize};

/// Which limit, and how large it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "limit", rename_all = "kebab-case")]
pub enum Limit {
    /// The kernel has killed a process of the cell for memory.
    Memory {
        /// The cell's limit in bytes; `None`: not the cell's limit was reached, the machine had no memory left.
        limit_bytes: Option<u64>,
    },
    /// The cell was refused a process or thread.
    Pids {
        /// The most that it may have; `None`: not known.
        most: Option<u64>,
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
            Limit::Memory {
                limit_bytes: Some(bytes),
            } => write!(
                f,
                "a process of it was killed for memory: limit {}",
                Bytes::new(bytes)
            ),
            Limit::Memory { limit_bytes: None } => {
                f.write_str("a process of it was killed for memory: the machine had none left")
            }
            Limit::Pids { most: Some(most) } => {
                write!(f, "it was refused a process or thread: `pids` is {most}")
            }
            Limit::Pids { most: None } => {
                f.write_str("it was refused a process or thread: it has as many as it may")
            }
        }
    }
}
