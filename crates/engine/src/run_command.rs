//! The command that runs a cell from its creation to its end in one call, with the instants of its steps.

use std::path::PathBuf;
use std::process::Command;

use model::EngineKind;

use crate::engines::info::Commands;
use crate::engines::{Steps, embedded, info};
use crate::error::{Error, refused};
use crate::made;
use crate::{CellSpec, EngineError, oci, reach};

/// Environment variable for the command of an embedded cell: names a file for the instants of its steps, each line a CLOCK_MONOTONIC instant in ns
/// and the step that was done then.
pub const STAMPS: &str = embedded::STAMPS;

/// Where [`STAMPS`] may be written by the cell's user; goes with the cell's other state.
pub fn stamps_file(spec: &CellSpec) -> PathBuf {
    made::state(spec).join("stamps")
}

/// The command that creates a cell, starts it, waits for its end and deletes it, from a bundle that is written now.
///
/// For timing OCI runtimes ([`EngineKind::runtimes`]) on equal terms, by root or, with `spec.user`, by that user: the bundle
/// is the same and not part of the time. The caller gives the command its standard streams and removes
/// `spec.work_dir`; remains of a failed command are removed by [`crate::sweep`].
///
/// # Errors
/// For other engines, and when the bundle cannot be written or the runtime is not installed.
pub fn run_command(spec: &CellSpec) -> Result<Command, EngineError> {
    prepare(spec, info(spec.engine).run)
}

/// Whether [`step_commands`] has any for this engine.
pub fn has_steps(engine: EngineKind) -> bool {
    info(engine).steps.is_some()
}

/// As [`run_command`], one command for each step, where [`has_steps`].
///
/// # Errors
/// As [`run_command`].
pub fn step_commands(spec: &CellSpec) -> Result<Steps, EngineError> {
    prepare(spec, info(spec.engine).steps)
}

/// Pid of the payload of a cell that such a command makes, as the host sees it, once the runtime has reported it.
pub fn payload_pid(spec: &CellSpec) -> Option<i32> {
    oci::read_pid(&oci::pid_file(spec)).ok()
}

/// Writes the bundle, and makes the commands for it.
fn prepare<T>(spec: &CellSpec, commands: Option<Commands<T>>) -> Result<T, EngineError> {
    let failed = |cause: Error| made::error(spec, "prepare the cell", cause);
    let commands = commands
        .ok_or_else(|| failed(refused!("{} has no such command for a cell", spec.engine)))?;
    crate::note::write(spec).map_err(failed)?;
    oci::write_bundle(spec, oci::power(spec)).map_err(failed)?;
    if let Some(user) = reach::other_user(spec) {
        reach::give(spec, &[&made::state(spec)], user).map_err(failed)?;
    }
    commands(spec).map_err(failed)
}
