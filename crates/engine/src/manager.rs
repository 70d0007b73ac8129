//! Container managers driven by one call, as people use them: `podman run --rm` and `docker run --rm`, from an image
//! or a plain root directory, with and without a network of their own.
//!
//! A manager is made once and called often: image and storage exist beforehand, and a call leaves nothing of its container
//! behind. Podman's bridge, rules and mounts are made in namespaces of the coordinator, so the machine's network does not
//! change, and all of it disappears with the last process in them.

use std::path::Path;
use std::process::Command;

use model::{EngineKind, Requirement, Size};

use crate::engines::calls::{Calls, Namespaces};
pub use crate::engines::calls::{Form, Network, Source};
use crate::engines::info;
use crate::error::{Error, refused};
use crate::{CellSpec, EngineError, made, note};

/// A manager, set up; dropping it removes everything that was made for it.
pub struct Manager {
    spec: CellSpec,
    calls: &'static dyn Calls,
    own: Option<Namespaces>,
    /// Whether the directory in which podman mounts network namespaces was there before.
    had_mount_points: bool,
}

/// Where podman mounts the network namespaces of its containers.
const MOUNT_POINTS: &str = "/run/netns";

/// The ways in which an engine starts a container by one call; none where it is not a container manager.
pub fn forms(engine: EngineKind) -> &'static [Form] {
    info(engine).calls.map_or(&[], |calls| calls.forms())
}

/// Requirements of such a network for containers of an engine, besides the engine's own.
pub fn network_needs(engine: EngineKind, network: Network) -> Vec<Requirement> {
    (info(engine).calls).map_or_else(Vec::new, |calls| calls.network_needs(network))
}

impl Manager {
    /// Sets `spec.engine` (one that has [`forms`]) up with an image of `spec.rootfs`, where it can have one.
    ///
    /// # Errors
    /// In the manager's own words; all that was made until then is removed.
    pub fn set_up(spec: &CellSpec) -> Result<Manager, EngineError> {
        let failed = |cause: Error| made::error(spec, "set up the container manager", cause);
        let calls = (info(spec.engine).calls)
            .ok_or_else(|| failed(refused!("{} is not a container manager", spec.engine)))?;
        note::write(spec).map_err(failed)?;
        let mut manager = Manager {
            spec: spec.clone(),
            calls,
            own: None,
            had_mount_points: Path::new(MOUNT_POINTS).exists(),
        };
        manager.own = calls.prepare(spec).map_err(failed)?;
        Ok(manager)
    }

    /// One call that creates a container within these limits, runs the payload, waits for its end and removes the container.
    ///
    /// # Errors
    /// When the manager has no such form, or is not installed.
    pub fn run(
        &self,
        source: Source,
        network: Network,
        limits: Size,
    ) -> Result<Command, EngineError> {
        let mut spec = self.spec.clone();
        spec.rights.limits = limits;
        let made = (self.calls).call(&spec, self.own.as_ref(), source, network);
        made.map_err(|cause| made::error(&self.spec, "prepare the call", cause))
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        // `timecell clean` finds any remains by the note.
        let _ = crate::sweep(&self.spec.work_dir);
        if !self.had_mount_points {
            // Fails where somebody uses it by now.
            let _ = std::fs::remove_dir(MOUNT_POINTS);
        }
    }
}
