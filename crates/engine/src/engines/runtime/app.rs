//! Cells of applications: the process that has prepared the root executes the runtime, so that the runtime sees that root.

use std::ffi::OsString;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use rustix::thread::UnshareFlags;

use super::{Runtime, with_bundle};
use crate::agent::Delivery;
use crate::app::engine::{Apps, Made, Making};
use crate::app::making::Handed;
use crate::app::spec::AppSpec;
use crate::app::{executor, root};
use crate::error::{Doing, Result};
use crate::mounts::{keep_mounts_private, unshare};
use crate::{made, process};

impl Apps for Runtime {
    fn make(&self, making: Making<'_>) -> Result<Made> {
        making.with_bundle(false)
    }

    fn delivery(&self) -> Delivery {
        Delivery::BySocket
    }

    /// Becomes the runtime that creates the cell; its program waits.
    fn child(&self, spec: &AppSpec, handed: Handed) -> Result<()> {
        let trees = handed.sources.trees()?;
        unshare(UnshareFlags::NEWNS).doing(|| "cannot make a mount namespace")?;
        keep_mounts_private().doing(|| "cannot mount /")?;
        root::build(spec, &trees)?;
        let mut command = self.logging(spec)?;
        with_bundle(command.arg("create"), spec)
            // That of this process, which is the cell's.
            .stdin(Stdio::inherit())
            .stdout(own(handed.stdout))
            .stderr(own(handed.stderr));
        // SAFETY: an open descriptor; closed when the runtime is executed.
        unsafe { libc::fcntl(handed.report, libc::F_SETFD, libc::FD_CLOEXEC) };
        executor::forget_signals()?;
        Err(command.exec()).doing(|| format!("{} cannot be executed", spec.engine))
    }

    fn start(&self, spec: &AppSpec) -> Result<bool> {
        let mut command = self.logging(spec)?;
        process::run(command.args(["start", &spec.id]), &made::log(spec))?;
        Ok(true)
    }
}

impl Runtime {
    /// The runtime with its words in the log: its own standard error is the cell's.
    fn logging(&self, spec: &AppSpec) -> Result<Command> {
        let log = made::log(spec);
        process::open_log(&log)?;
        let mut command = self.command(spec)?;
        let mut name = OsString::from(self.log_prefix);
        name.push(log);
        command.arg("--log").arg(name);
        Ok(command)
    }
}

fn own(end: RawFd) -> OwnedFd {
    // SAFETY: handed down by the supervisor for this, and nobody else's here.
    unsafe { OwnedFd::from_raw_fd(end) }
}
