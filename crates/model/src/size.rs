//! The size of a cell: its share of the machine.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Bytes;

/// Number of cpus and memory of a cell: those of a virtual machine, or the limits of a container. Prints as `2 vcpus, 128MiB`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Size {
    /// Virtual cpus of a machine, or cpu time of a container in cpus; `None`: the usual number, no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vcpus: Option<u32>,
    /// Memory, bytes; `None`: the usual amount, no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
}

impl Size {
    /// Its number of cpus as it is printed.
    pub fn cpus_text(vcpus: u32) -> String {
        format!("{vcpus} vcpu{}", if vcpus == 1 { "" } else { "s" })
    }

    /// The size where room is scarce: `2×128MiB`, or all of the one that is set.
    pub fn short(self) -> String {
        match (self.vcpus, self.memory_bytes) {
            (Some(vcpus), Some(bytes)) => format!("{vcpus}×{}", Bytes::new(bytes)),
            _ => self.to_string(),
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cpus = self.vcpus.map(Size::cpus_text);
        let memory = (self.memory_bytes).map(|bytes| Bytes::new(bytes).to_string());
        let both: Vec<String> = cpus.into_iter().chain(memory).collect();
        f.write_str(&both.join(", "))
    }
}
