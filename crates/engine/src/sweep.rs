use std::path::Path;

use model::EngineKind;

use crate::made::{self, Wipe};
use crate::{EngineError, bare, crun, docker, embedded, note, podman, podman_rootless, runc};

/// Removes whatever the cell of this private directory left behind when its coordinator was killed.
///
/// Does nothing if there is no note of a cell; may be called again. The cell's log stays.
///
/// # Errors
/// Names what could not be removed.
pub fn sweep(work_dir: &Path) -> Result<(), EngineError> {
    let spec = match note::read(work_dir) {
        Ok(Some(spec)) => spec,
        Ok(None) => return Ok(()),
        Err(cause) => {
            return Err(EngineError {
                engine: EngineKind::Bare,
                doing: "read the note of a left cell".to_owned(),
                cause,
            });
        }
    };
    made::clear(&spec, wipe(spec.engine))
        .map_err(|cause| made::error(&spec, "sweep the cell away", cause))
}

fn wipe(kind: EngineKind) -> Wipe {
    match kind {
        EngineKind::Bare => bare::wipe,
        EngineKind::Embedded => embedded::wipe,
        EngineKind::Crun => crun::wipe,
        EngineKind::Runc => runc::wipe,
        EngineKind::Podman => podman::wipe,
        EngineKind::PodmanRootless => podman_rootless::wipe,
        EngineKind::Docker => docker::wipe,
    }
}
