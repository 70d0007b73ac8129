//! crun and runc: the runtime is executed by the process that has prepared the root, so that it sees that root.

use std::ffi::OsString;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use model::EngineKind;

use super::child::Handed;
use super::program::Program;
use super::spec::AppSpec;
use super::{executor, root};
use crate::identity::Identity;
use crate::mounts::mount;
use crate::{made, oci, process};

/// Becomes the runtime that creates the cell; its program waits for [`start`].
pub(super) fn become_it(spec: &AppSpec, program: &Program, handed: Handed) -> Result<(), String> {
    // SAFETY: this process has one thread.
    if unsafe { libc::unshare(libc::CLONE_NEWNS) } != 0 {
        let error = std::io::Error::last_os_error();
        return Err(format!("cannot make a mount namespace: {error}"));
    }
    let flags = libc::MS_REC | libc::MS_PRIVATE;
    mount(None, Path::new("/"), None, flags)?;
    root::build(spec, program)?;
    let mut command = runtime(spec)?;
    command
        .args(["create", "--bundle"])
        .arg(oci::bundle(spec))
        .arg("--pid-file")
        .arg(oci::pid_file(spec))
        .arg(&spec.id)
        // That of this process, which is the cell's.
        .stdin(Stdio::inherit())
        .stdout(own(handed.stdout))
        .stderr(own(handed.stderr));
    // SAFETY: an open descriptor; closed when the runtime is executed.
    unsafe { libc::fcntl(handed.report, libc::F_SETFD, libc::FD_CLOEXEC) };
    executor::forget_signals()?;
    let error = command.exec();
    Err(format!("{} cannot be executed: {error}", spec.engine))
}

/// Lets the program begin.
pub(super) fn start(spec: &AppSpec) -> Result<(), String> {
    process::run(runtime(spec)?.args(["start", &spec.id]), &made::log(spec))
}

/// The runtime with its words in the log: its own standard error is the cell's.
fn runtime(spec: &AppSpec) -> Result<Command, String> {
    let log = made::log(spec);
    process::open_log(&log)?;
    let mut command = oci::runtime(spec.engine().name(), spec)?;
    let mut name = OsString::new();
    if spec.engine() == EngineKind::Crun {
        // What is before a colon would be taken for where to log.
        name.push("file:");
    }
    name.push(log);
    command.arg("--log").arg(name);
    Ok(command)
}

fn own(end: RawFd) -> OwnedFd {
    // SAFETY: handed down by the supervisor for this, and nobody else's here.
    unsafe { OwnedFd::from_raw_fd(end) }
}
