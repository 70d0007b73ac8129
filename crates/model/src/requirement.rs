//! The requirements of a trial on the machine.

use serde::{Deserialize, Serialize};

/// Something a trial needs of the machine: a privilege, a kernel feature, a program.
///
/// An unmet requirement is recorded in the run and printed, never skipped in silence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Requirement {
    /// The thing needed, such as `SCHED_FIFO` or `podman`.
    pub what: String,
    /// Whether the machine has it.
    pub met: bool,
    /// Why it is unmet, or how it is met; one sentence without a full stop.
    pub reason: String,
    /// How to get it: a command or a setting.
    #[serde(alias = "mend")]
    pub fix: Option<String>,
}

impl Requirement {
    /// A requirement that the machine does not meet.
    pub fn unmet(
        what: impl Into<String>,
        reason: impl Into<String>,
        fix: impl Into<String>,
    ) -> Requirement {
        Requirement {
            what: what.into(),
            met: false,
            reason: reason.into(),
            fix: Some(fix.into()),
        }
    }

    /// A requirement that the machine meets; `found` says how.
    pub fn met(what: impl Into<String>, found: impl Into<String>) -> Requirement {
        Requirement {
            what: what.into(),
            met: true,
            reason: found.into(),
            fix: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_earlier_versions_wrote_is_read() {
        let old =
            r#"{"what":"podman","met":false,"reason":"not found","mend":"apt install podman"}"#;
        let read: Requirement = serde_json::from_str(old).unwrap();
        assert_eq!(
            read,
            Requirement::unmet("podman", "not found", "apt install podman")
        );
        let written = serde_json::to_value(&read).unwrap();
        assert_eq!(written["fix"], "apt install podman");
    }
}
