//! Cells of applications: the container is built by the runtime library, in a root of its own.

use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd};

use libcontainer::container::builder::ContainerBuilder;
use libcontainer::syscall::syscall::SyscallType;

use super::private_root;
use crate::app::engine::{Apps, Made, Making};
use crate::app::executor::Guard;
use crate::app::making::Handed;
use crate::app::spec::{AppSpec, Network};
use crate::app::{groups, root, start};
use crate::error::{Doing, Result};
use crate::seccomp::{Filter, policy};
use crate::{agent, made, oci};

/// Such cells.
#[derive(Debug)]
pub(super) struct Cells;

impl Apps for Cells {
    fn make(&self, making: Making<'_>) -> Result<Made> {
        making.with_bundle(true)
    }

    fn complete(&self, spec: &AppSpec, process: BorrowedFd<'_>) -> Result<()> {
        if spec.network != Network::None {
            return Ok(());
        }
        // The other engines bring it up themselves.
        host::loopback::up(process).doing(|| "its loopback device cannot be brought up")
    }

    fn child(&self, spec: &AppSpec, handed: Handed) -> Result<()> {
        let guard = Guard {
            filter: Filter::of(
                &policy(&spec.grants, spec.network),
                agent::answers(spec, self.delivery()),
            )?,
            capabilities: spec.grants.capabilities.clone(),
            report: handed.report,
            agent: handed.agent,
        };
        let mut groups = groups::make(spec)?;
        groups::limit(spec)?;
        let state = made::state(spec);
        let trees = handed.sources.trees()?;
        private_root::enter(&state, &[])?;
        root::build(spec, &trees)?;
        // The container is not to inherit them.
        drop(trees);
        drop(handed.sources);
        // SAFETY: handed down by the supervisor for this, and nobody else's here.
        let (stdout, stderr) = unsafe {
            (
                OwnedFd::from_raw_fd(handed.stdout),
                OwnedFd::from_raw_fd(handed.stderr),
            )
        };
        let mut container = ContainerBuilder::new(spec.id.clone(), SyscallType::default())
            .with_executor(guard)
            .with_stdout(stdout)
            .with_stderr(stderr)
            .with_root_path(oci::runtime_state(spec))
            .and_then(|builder| builder.with_pid_file(Some(oci::pid_file(spec))))
            .and_then(ContainerBuilder::validate_id)
            .and_then(|builder| {
                builder
                    .as_init(oci::bundle(spec))
                    .with_systemd(false)
                    .build()
            })?;
        let pid = container.pid().ok_or("the container has no pid")?.as_raw();
        groups.enter(pid)?;
        groups.reap_helper();
        // Nothing of it is needed any more, and nothing of it may be undone.
        container.set_clean_up_intel_rdt_directory(false);
        Ok(())
    }

    fn start(&self, spec: &AppSpec) -> Result<bool> {
        start::give(spec)
    }

    fn sleeps(&self) -> bool {
        true
    }
}
