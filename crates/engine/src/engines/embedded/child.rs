//! The child that makes an embedded cell and starts its payload.

use std::path::Path;

use libcontainer::container::Container;
use libcontainer::container::builder::ContainerBuilder;
use libcontainer::error::LibcontainerError;
use libcontainer::syscall::syscall::SyscallType;

use super::private_root;
use super::stamps::Stamps;
use super::words::Errors;
use crate::error::{Doing, Result, refused};
use crate::made::remove_dir;
use crate::own_groups::{self, Groups};
use crate::process::die_with;
use crate::programs::is_root;

/// Create and start; the payload goes on alone.
pub(super) const START: &str = "start";
/// Create, start, wait for the end, delete.
pub(super) const RUN: &str = "run";

/// Makes the cell that `words` describe; the engine put them there.
pub(crate) fn child(words: &[String]) -> Result<()> {
    let [deed, parent, id, state, rootfs, shared, vcpus, bytes] = words else {
        return Err("oci-child: arguments are missing".into());
    };
    let mut stamps = Stamps::new();
    Errors::listen();
    die_with(parent)?;
    let state = Path::new(state);
    let mut groups = if is_root() {
        let groups = Groups::make(id)?;
        // 0: no limit.
        let most = |word: &str| word.parse::<u64>().ok().filter(|most| *most > 0);
        own_groups::limit(id, most(vcpus), most(bytes))?;
        Some(groups)
    } else {
        None
    };
    stamps.take("cgroups made");
    private_root::enter(state, &[rootfs, shared].map(Path::new))?;
    // Entering a user namespace forgets it.
    die_with(parent)?;
    stamps.take("private root entered");
    let mut container = create(id, state)?;
    stamps.take("container built by libcontainer");
    let pid = container.pid().ok_or("the container has no pid")?.as_raw();
    if let Some(groups) = &mut groups {
        groups.enter(pid)?;
        groups.reap_helper();
    }
    stamps.take("cgroups joined");
    container.start()?;
    stamps.take("payload started");
    if deed == RUN {
        let mut status = 0;
        // SAFETY: the payload is a child of this process; `status` is valid.
        if unsafe { libc::waitpid(pid, &raw mut status, 0) } < 0 {
            return Err(std::io::Error::last_os_error()).doing(|| "wait for the payload");
        }
        stamps.take("payload executed and ended");
        groups.map_or(Ok(()), Groups::remove)?;
        remove_dir(&state.join("runtime"))?;
        stamps.take("cgroups and state removed");
        if !libc::WIFEXITED(status) || libc::WEXITSTATUS(status) != 0 {
            return Err(refused!("the payload ended with status {status:#x}"));
        }
    }
    Ok(())
}

fn create(id: &str, state: &Path) -> Result<Container, LibcontainerError> {
    ContainerBuilder::new(id.to_owned(), SyscallType::default())
        .with_root_path(state.join("runtime"))
        .and_then(|builder| builder.with_pid_file(Some(state.join("pid"))))
        .and_then(|builder| builder.validate_id())
        .and_then(|builder| {
            builder
                .as_init(state.join("bundle"))
                .with_systemd(false)
                .build()
        })
}
