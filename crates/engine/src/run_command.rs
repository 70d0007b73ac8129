//! The command that runs a cell from its creation to its end in one call, with the instants of its steps.

use std::path::PathBuf;
use std::process::Command;

use model::EngineKind;

use crate::made;
use crate::{CellSpec, EngineError, embedded, oci, reach};

/// Set on the command of an embedded cell, names a file for the instants of its steps: lines of a CLOCK_MONOTONIC
/// instant in ns and the step that was done then.
pub const STAMPS: &str = embedded::STAMPS;

/// Where [`STAMPS`] may be written by whoever runs the cell; goes with the cell's other state.
pub fn stamps_file(spec: &CellSpec) -> PathBuf {
    made::state(spec).join("stamps")
}

/// The command that creates a cell, starts it, waits for its end and deletes it, from a bundle that is written now.
///
/// For timing `embedded`, `crun` and `runc` on equal terms, by root or, with `spec.user`, by that user: the bundle
/// is the same and not part of the time. The caller gives the command its standard streams and removes
/// `spec.work_dir`; what a failed command leaves behind, [`crate::sweep`] removes.
///
/// # Errors
/// For other engines, and when the bundle cannot be written or the runtime is not installed.
pub fn run_command(spec: &CellSpec) -> Result<Command, EngineError> {
    prepare(spec)?;
    if spec.engine == EngineKind::Embedded {
        return Ok(embedded::again(spec, embedded::RUN));
    }
    let mut command = runtime(spec)?;
    command
        .args(["run", "--bundle"])
        .arg(oci::bundle(spec))
        .arg("--pid-file")
        .arg(oci::pid_file(spec))
        .arg(&spec.id);
    Ok(command)
}

/// The same in the runtime's three steps.
pub struct Steps {
    /// Makes the container; its payload waits.
    pub create: Command,
    /// Lets the payload begin.
    pub start: Command,
    /// Removes the container once its payload has ended.
    pub delete: Command,
}

/// As [`run_command`], one command for each step; for `crun` and `runc`.
///
/// # Errors
/// As [`run_command`].
pub fn step_commands(spec: &CellSpec) -> Result<Steps, EngineError> {
    prepare(spec)?;
    let (mut create, mut start, mut delete) = (runtime(spec)?, runtime(spec)?, runtime(spec)?);
    create
        .args(["create", "--bundle"])
        .arg(oci::bundle(spec))
        .arg("--pid-file")
        .arg(oci::pid_file(spec))
        .arg(&spec.id);
    start.arg("start").arg(&spec.id);
    delete.arg("delete").arg(&spec.id);
    Ok(Steps {
        create,
        start,
        delete,
    })
}

/// Pid of the payload of a cell that such a command makes, as the host sees it, once the runtime has told it.
pub fn payload_pid(spec: &CellSpec) -> Option<i32> {
    oci::read_pid(&oci::pid_file(spec)).ok()
}

fn prepare(spec: &CellSpec) -> Result<(), EngineError> {
    let failed = |cause: String| made::error(spec, "prepare the cell", cause);
    crate::note::write(spec).map_err(failed)?;
    oci::write_bundle(spec, oci::power(spec)).map_err(failed)?;
    match reach::other_user(spec) {
        Some(user) => reach::give(spec, &[&made::state(spec)], user).map_err(failed),
        None => Ok(()),
    }
}

fn runtime(spec: &CellSpec) -> Result<Command, EngineError> {
    let failed = |cause: String| made::error(spec, "prepare the cell", cause);
    match spec.engine {
        kind @ (EngineKind::Crun | EngineKind::Runc) => {
            oci::runtime(kind.name(), spec).map_err(failed)
        }
        other => Err(failed(format!("{other} has no single command for this"))),
    }
}
