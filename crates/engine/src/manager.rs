//! Container managers driven by one call, as people use them: `podman run --rm` and `docker run --rm`, from an image
//! or a plain root directory, with and without a network of their own.
//!
//! Made once and called often: image and storage are there before, and each call leaves nothing of its container.
//! Podman's bridge, its rules and mounts are made in namespaces of the coordinator's own, so that the machine's
//! network stays as it is and all of it goes when the last process in them does.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use model::EngineKind;

use crate::podman_cli::Podman;
use crate::{CellSpec, EngineError, docker, made, note, podman, podman_rootless, process, reach};

/// What of the network a container has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// A network of its own, connected as the manager does unless told otherwise: a bridge, without root a
    /// user-mode stack.
    Connected,
    /// A network of its own with nothing in it.
    None,
    /// The host's.
    Host,
}

/// What a container's files come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// An image in the manager's storage.
    Image,
    /// A directory, used as it is.
    Rootfs,
}

/// A manager, set up; dropping it removes everything that was made for it.
pub struct Manager {
    spec: CellSpec,
    /// Network and mount namespace for rootful podman.
    own: Option<[File; 2]>,
    /// Whether the directory in which podman mounts network namespaces was there before.
    had_mount_points: bool,
}

/// Where podman mounts the network namespaces of its containers.
const MOUNT_POINTS: &str = "/run/netns";

/// Name of the image. Nothing else is in podman's storage here; docker's is named after the cell.
const IMAGE: &str = "timecell-payload:latest";

impl Manager {
    /// Sets `spec.engine` (podman, rootless podman or docker) up with an image of `spec.rootfs`, where it can have one.
    ///
    /// # Errors
    /// In the manager's own words; what was made until then is removed.
    pub fn set_up(spec: &CellSpec) -> Result<Manager, EngineError> {
        let failed = |cause: String| made::error(spec, "set up the container manager", cause);
        note::write(spec).map_err(failed)?;
        let mut manager = Manager {
            spec: spec.clone(),
            own: None,
            had_mount_points: Path::new(MOUNT_POINTS).exists(),
        };
        manager.prepare().map_err(failed)?;
        Ok(manager)
    }

    fn prepare(&mut self) -> Result<(), String> {
        let spec = &self.spec;
        match spec.engine {
            EngineKind::Podman => {
                let namespaces = namespaces()?;
                let cli = podman::cli(spec)?;
                cli.prepare_with("overlay")?;
                let archive = made::pack(spec)?;
                let mut import = cli.command()?;
                enter(&mut import, &namespaces);
                import.arg("import").arg(archive).arg(IMAGE);
                process::run_quiet(&mut import, &made::log(spec))?;
                self.own = Some(namespaces);
                Ok(())
            }
            EngineKind::PodmanRootless => {
                let cli = podman_rootless::cli(spec)?;
                cli.prepare()?;
                match reach::other_user(spec) {
                    Some(user) => reach::give(spec, &[&cli.home()], user),
                    None => Ok(()),
                }
            }
            EngineKind::Docker => docker::import(spec),
            other => Err(format!("{other} is no container manager")),
        }
    }

    /// One call that creates a container, runs the payload, waits for its end and removes the container.
    ///
    /// # Errors
    /// When the manager has no such form, or is not installed.
    pub fn run(&self, source: Source, network: Network) -> Result<Command, EngineError> {
        let spec = &self.spec;
        let made = match spec.engine {
            EngineKind::Docker => docker::run_attached(spec, network_name(network)),
            EngineKind::Podman => {
                podman::cli(spec).and_then(|cli| self.podman(&cli, source, network))
            }
            _ => podman_rootless::cli(spec).and_then(|cli| self.podman(&cli, source, network)),
        };
        made.map_err(|cause| made::error(spec, "prepare the call", cause))
    }

    fn podman(
        &self,
        cli: &Podman<'_>,
        source: Source,
        network: Network,
    ) -> Result<Command, String> {
        let spec = &self.spec;
        let mut command = cli.command()?;
        reach::become_user(&mut command, spec);
        if let Some(own) = &self.own {
            enter(&mut command, own);
        }
        let network = match network {
            Network::Connected if spec.engine == EngineKind::PodmanRootless => "slirp4netns",
            other => network_name(other),
        };
        command
            .args(["run", "--rm", "--name", &spec.id])
            .args(["--network", network]);
        cli.confine(spec, &mut command);
        command
            .arg("--volume")
            .arg(format!("{}:/cell:rw", spec.shared.display()));
        match source {
            Source::Image => command.arg(IMAGE),
            Source::Rootfs => command.arg("--rootfs").arg(&spec.rootfs),
        };
        command.arg("/timecell").args(&spec.words);
        Ok(command)
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        // What cannot be removed now, `timecell clean` finds by the note.
        let _ = crate::sweep(&self.spec.work_dir);
        if !self.had_mount_points {
            // Fails where somebody uses it by now.
            let _ = std::fs::remove_dir(MOUNT_POINTS);
        }
    }
}

const fn network_name(network: Network) -> &'static str {
    match network {
        Network::Connected => "bridge",
        Network::None => "none",
        Network::Host => "host",
    }
}

/// A network and a mount namespace; they live as long as the files or a process in them.
fn namespaces() -> Result<[File; 2], String> {
    // Made by a thread that ends with it: this process stays where it is.
    let made = std::thread::spawn(|| -> std::io::Result<[File; 2]> {
        // SAFETY: changes this thread only, which ends below.
        if unsafe { libc::unshare(libc::CLONE_NEWNET | libc::CLONE_NEWNS) } != 0 {
            return Err(std::io::Error::last_os_error());
        }
        let flags = libc::MS_REC | libc::MS_PRIVATE;
        let none = std::ptr::null();
        // SAFETY: a path that ends in NUL, null where the call allows it.
        if unsafe { libc::mount(none, c"/".as_ptr(), none, flags, none.cast()) } != 0 {
            return Err(std::io::Error::last_os_error());
        }
        let of = |name: &str| File::open(format!("/proc/thread-self/ns/{name}"));
        Ok([of("net")?, of("mnt")?])
    });
    let made = made.join().map_err(|_| "a thread ended".to_owned())?;
    made.map_err(|error| format!("cannot make namespaces for podman: {error}"))
}

/// Makes `command` one that runs in these namespaces.
fn enter(command: &mut Command, namespaces: &[File; 2]) {
    let [network, mounts] = namespaces.each_ref().map(AsRawFd::as_raw_fd);
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
