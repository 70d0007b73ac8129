//! The switch that keeps idle cpus awake: `/dev/cpu_dma_latency`.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

const DEVICE: &str = "/dev/cpu_dma_latency";

/// Why idle states could not be held off.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DmaLatencyError {
    /// The kernel offers no such switch.
    #[error("{DEVICE} does not exist, so this kernel cannot be asked to stay out of idle states")]
    Absent,
    /// The switch is there but could not be used.
    #[error("{DEVICE} cannot be used ({0}); run as root or allow the user to write to it")]
    Refused(String),
}

/// Asks the kernel for an exit latency of 0 us from idle states for as long as it lives: cpus then
/// poll instead of sleeping. It also makes *other* work faster, which a measurement must state.
#[derive(Debug)]
#[must_use = "the kernel forgets the request when this is dropped"]
pub struct DmaLatency {
    _open: File,
}

impl DmaLatency {
    /// Holds all idle states off until the value is dropped.
    ///
    /// # Errors
    /// [`DmaLatencyError`] says whether the switch is absent or refused.
    pub fn hold() -> Result<Self, DmaLatencyError> {
        Self::hold_at(Path::new(DEVICE))
    }

    fn hold_at(device: &Path) -> Result<Self, DmaLatencyError> {
        // No `create`: a plain file of that name would hold nothing.
        let mut open = OpenOptions::new()
            .write(true)
            .open(device)
            .map_err(|error| match error.kind() {
                std::io::ErrorKind::NotFound => DmaLatencyError::Absent,
                _ => DmaLatencyError::Refused(crate::root::reason_of(&error)),
            })?;
        open.write_all(&0i32.to_ne_bytes())
            .map_err(|error| DmaLatencyError::Refused(crate::root::reason_of(&error)))?;
        Ok(Self { _open: open })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    #[test]
    fn an_absent_device_is_a_reason_and_is_not_made() {
        let tree = Tree::new();
        let path = tree.root().path(DEVICE);
        assert_eq!(
            DmaLatency::hold_at(&path).unwrap_err(),
            DmaLatencyError::Absent
        );
        assert!(!path.exists());
    }

    #[test]
    fn four_zero_bytes_are_written() {
        let tree = Tree::new().file(DEVICE, "");
        let path = tree.root().path(DEVICE);
        let held = DmaLatency::hold_at(&path).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), [0; 4]);
        drop(held);
    }

    #[test]
    fn root_the_real_device_can_be_held() {
        // Without the device or the right to it, the reason says which of the two.
        match DmaLatency::hold() {
            Ok(_held) => {}
            Err(DmaLatencyError::Absent) => assert!(!std::path::Path::new(DEVICE).exists()),
            Err(refused) => assert!(refused.to_string().len() > 10, "{refused}"),
        }
    }
}
