//! A container manager that runs a container by one call, as people use it; and the namespaces that such calls share.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

use model::Requirement;
use rustix::thread::UnshareFlags;

use crate::CellSpec;
use crate::error::{Doing, Result};
use crate::mounts::{keep_mounts_private, unshare};

model::choice! {
    /// The network of a container.
    pub enum Network {
        /// A network of its own, connected in the manager's default way: by a bridge, or without root by a user-mode stack.
        Connected = "bridge",
        /// A network of its own with nothing in it.
        None = "none",
        /// The host's.
        Host = "host",
    }
}

/// The source of a container's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// An image in the manager's storage.
    Image,
    /// A directory, used as it is.
    Rootfs,
}

/// One of the ways in which a manager starts a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Form {
    /// Its name in tables.
    pub name: &'static str,
    /// Where the files come from.
    pub source: Source,
    /// Its network.
    pub network: Network,
}

impl Form {
    pub(super) const fn new(name: &'static str, source: Source, network: Network) -> Form {
        Form {
            name,
            source,
            network,
        }
    }
}

/// The calls of a container manager.
pub(crate) trait Calls: Sync {
    /// The ways that are measured; the first is the usual one.
    fn forms(&self) -> &'static [Form];

    /// Requirements of such a network besides those of the engine.
    fn network_needs(&self, network: Network) -> Vec<Requirement> {
        let _ = network;
        Vec::new()
    }

    /// Makes image, storage and all else that must exist before the calls; it lasts as long as the answer.
    fn prepare(&self, spec: &CellSpec) -> Result<Option<Namespaces>>;

    /// One call that creates a container, runs the payload, waits for its end and removes the container.
    fn call(
        &self,
        spec: &CellSpec,
        own: Option<&Namespaces>,
        source: Source,
        network: Network,
    ) -> Result<Command>;
}

/// A network and a mount namespace of the coordinator's own; they live as long as this or a process in them.
pub(crate) struct Namespaces([File; 2]);

impl Namespaces {
    /// New ones, with nothing in the network and the mounts as they are here.
    pub(super) fn make() -> Result<Namespaces> {
        // Made by a thread that ends with it: this process stays where it is.
        let made = std::thread::spawn(|| -> std::io::Result<[File; 2]> {
            unshare(UnshareFlags::NEWNET | UnshareFlags::NEWNS)?;
            keep_mounts_private()?;
            let of = |name: &str| File::open(format!("/proc/thread-self/ns/{name}"));
            Ok([of("net")?, of("mnt")?])
        });
        let made = made.join().map_err(|_| "a thread ended")?;
        made.map(Namespaces)
            .doing(|| "cannot make namespaces for podman")
    }

    /// Makes `command` run in these namespaces.
    pub(super) fn enter(&self, command: &mut Command) {
        let [network, mounts] = self.0.each_ref().map(AsRawFd::as_raw_fd);
        // SAFETY: between fork and exec only system calls are made, on descriptors that the parent holds open.
        unsafe {
            command.pre_exec(move || {
                for (fd, kind) in [(network, libc::CLONE_NEWNET), (mounts, libc::CLONE_NEWNS)] {
                    if libc::setns(fd, kind) != 0 {
                        return Err(std::io::Error::last_os_error());
                    }
                }
                // Entering a mount namespace leaves the working directory behind.
                match libc::chdir(c"/".as_ptr()) {
                    0 => Ok(()),
                    _ => Err(std::io::Error::last_os_error()),
                }
            });
        }
    }
}
