use std::process::Command;

use model::EngineKind;

use crate::made;
use crate::{CellSpec, EngineError, embedded, oci};

/// Set on the command of an embedded cell, names a file for the instants of its steps: lines of a CLOCK_MONOTONIC
/// instant in ns and the step that was done then.
pub const STAMPS: &str = embedded::STAMPS;

/// The command that creates a cell, starts it, waits for its end and deletes it, from a bundle that is written now.
///
/// For timing `embedded`, `crun` and `runc` on equal terms: the bundle is the same and not part of the time.
/// The caller gives the command its standard streams and removes `spec.work_dir`; what a failed command leaves
/// behind, [`crate::sweep`] removes.
///
/// # Errors
/// For other engines, and when the bundle cannot be written or the runtime is not installed.
pub fn run_command(spec: &CellSpec) -> Result<Command, EngineError> {
    let failed = |cause: String| made::error(spec, "prepare the cell", cause);
    crate::note::write(spec).map_err(failed)?;
    oci::write_bundle(spec, embedded::power()).map_err(failed)?;
    let runtime = match spec.engine {
        EngineKind::Embedded => return Ok(embedded::again(spec, embedded::RUN)),
        EngineKind::Crun => "crun",
        EngineKind::Runc => "runc",
        other => return Err(failed(format!("{other} has no single command for this"))),
    };
    let mut command = oci::runtime(runtime, spec).map_err(failed)?;
    command
        .args(["run", "--bundle"])
        .arg(oci::bundle(spec))
        .arg(&spec.id);
    Ok(command)
}
