//! podman, run by root: an image from its own storage by name, or a root filesystem or program with a storage of the
//! cell's own. `podman init` makes the container and leaves its program waiting.

use std::fs;
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::mount::MountFlags;
use serde_json::json;

use super::cli::Cli;
use super::image::Storage;
use crate::agent::Delivery;
use crate::app::ended::Ended;
use crate::app::engine::{Apps, Images, Made, Making};
use crate::app::making::Handed;
use crate::app::program::{Program, binary_target};
use crate::app::root::MOUNT_POINTS;
use crate::app::sources::Sources;
use crate::app::spec::{AppSpec, Ids, Image, Network};
use crate::app::{config, executor, groups};
use crate::error::{Doing, Result, refused};
use crate::identity::Identity;
use crate::mounts::mount_with;
use crate::note::MARK;
use crate::process::Process;
use crate::{limits, made, marks, oci, process, programs};

/// Such cells.
#[derive(Debug)]
pub(super) struct Cells;

impl Apps for Cells {
    fn delivery(&self) -> Delivery {
        Delivery::Never
    }

    fn make(&self, mut making: Making<'_>) -> Result<Made> {
        let spec = making.spec;
        let log = making.log.ok_or(
            "podman writes to the streams of its cells itself; give the cell a log, or choose another engine",
        )?;
        create(spec, making.program, making.sources)?;
        let made = process::run(&mut making.call, &made::log(spec));
        // podman has written into the cell's streams: the container's name, or its error.
        let said = log.take()?;
        made.map_err(|why| if said.is_empty() { why } else { said.into() })?;
        Ok(Made {
            pid: oci::read_pid(&oci::pid_file(spec))?,
            report: None,
        })
    }

    fn child(&self, spec: &AppSpec, handed: Handed) -> Result<()> {
        become_monitor(spec, handed)
    }

    fn start(&self, spec: &AppSpec) -> Result<bool> {
        process::run_quiet(podman(spec)?.args(["start", &spec.id]), &made::log(spec))?;
        Ok(true)
    }

    fn knows_ends(&self) -> bool {
        true
    }

    /// From podman's monitor, which is the program's parent.
    fn end(&self, spec: &AppSpec) -> Option<Ended> {
        let mut inspect = podman(spec).ok()?;
        inspect.args(["inspect", "--format", "{{.State.ExitCode}}", &spec.id]);
        let answer = process::output(&mut inspect).ok()?;
        let code: i32 = answer.out.trim().parse().ok()?;
        // As shells have it.
        Some(match code {
            129..=192 => Ended::Killed(code - 128),
            code => Ended::Exited(code),
        })
    }

    fn writes_output(&self) -> bool {
        true
    }

    fn images(&self) -> Option<&dyn Images> {
        Some(&Storage)
    }
}

/// Says in a cell's state that its container is in podman's usual storage.
fn shared_marker(cell: &dyn Identity) -> PathBuf {
    made::state(cell).join("podman-storage")
}

fn conmon_file(cell: &dyn Identity) -> PathBuf {
    made::state(cell).join("conmon")
}

/// podman with the storage in which this cell's container is.
fn podman(cell: &dyn Identity) -> Result<Command> {
    if !shared_marker(cell).exists() {
        return Cli::rootful(cell)?.command();
    }
    let program = programs::find("podman").ok_or("`podman` is not installed")?;
    let runtime = Cli::rootful(cell)?.runtime;
    let mut command = Command::new(program);
    command
        .env(MARK, cell.id())
        .current_dir("/")
        .args(["--log-level", "error", "--events-backend", "none"])
        .args(["--cgroup-manager", "cgroupfs", "--runtime"])
        .arg(runtime);
    Ok(command)
}

/// Says in podman's usual storage for which cell a container was made: another of the same name may not be ours.
const LABEL: &str = "timecell.work-dir";

/// The marker's text when the container has a label; containers of earlier versions have none.
const LABELLED: &str = "labelled";

fn label(cell: &dyn Identity) -> String {
    format!("{LABEL}={}", cell.work_dir().display())
}

/// Creates the container, without a process yet.
fn create(spec: &AppSpec, program: Option<&Program>, sources: &Sources) -> Result<()> {
    match &spec.image {
        Image::Reference(_) => {
            fs::write(shared_marker(spec), LABELLED)?;
        }
        _ => Cli::rootful(spec)?.prepare()?,
    }
    show(spec, sources)?;
    let mut create = podman(spec)?;
    create.args(["create", "--name", &spec.id]);
    create.args(["--label", &label(spec)]);
    confine(&mut create, spec)?;
    what(&mut create, spec, program)?;
    process::run_quiet(&mut create, &made::log(spec))
}

/// Where the root filesystem is for podman, whose processes look at it by its path again and again: an empty directory, or a mount of the checked
/// one.
fn root(spec: &AppSpec) -> PathBuf {
    made::state(spec).join("rootfs")
}

/// The same for the source of a mount; see [`Sources::mounts`].
fn source(spec: &AppSpec, index: usize) -> PathBuf {
    made::state(spec).join("sources").join(index.to_string())
}

/// Mounts the cell's sources in the cell's own state, until [`super::wipe`]. A runtime makes those that a cell may write to writable again in the
/// cell.
fn show(spec: &AppSpec, sources: &Sources) -> Result<()> {
    let state = made::state(spec);
    if (state.as_os_str().as_encoded_bytes().iter()).any(|byte| b",:\\".contains(byte)) {
        return Err(refused!(
            "podman accepts no path with a comma, a colon or a backslash, as in {}; use another directory for the mission, or another engine",
            state.display()
        ));
    }
    fs::create_dir_all(root(spec))?;
    let trees = sources.trees()?;
    for (index, tree) in trees.mounts.iter().enumerate() {
        tree.put_read_only(&source(spec, index))?;
    }
    let Some(tree) = trees.root else {
        return Ok(());
    };
    if tree.found.is_own() {
        return tree.put_read_only(&root(spec));
    }
    // The directories that a runtime mounts on are in a layer of our own: no link that is put there from now on is followed.
    let [lower, points] = ["lower", "points"].map(|name| made::state(spec).join(name));
    tree.put_read_only(&lower)?;
    for point in MOUNT_POINTS {
        fs::create_dir_all(points.join(point.trim_start_matches('/')))?;
    }
    let layers = format!("lowerdir={}:{}", points.display(), lower.display());
    let (place, flags) = (root(spec), MountFlags::NODEV | MountFlags::NOSUID);
    mount_with(
        Some(Path::new("overlay")),
        &place,
        Some(c"overlay"),
        flags,
        Some(&layers),
    )
}

/// Becomes the call that starts the container's monitor, whose streams are the container's. Its program waits, and its
/// pid is in the cell's state.
fn become_monitor(spec: &AppSpec, handed: Handed) -> Result<()> {
    // SAFETY: handed down by the supervisor for this, and nobody else's here.
    let own = |end| unsafe { OwnedFd::from_raw_fd(end) };
    let mut init = podman(spec)?;
    init.args(["init", &spec.id])
        .stdin(Stdio::null())
        .stdout(own(handed.stdout))
        .stderr(own(handed.stderr));
    // SAFETY: an open descriptor; closed when podman is executed.
    unsafe { libc::fcntl(handed.report, libc::F_SETFD, libc::FD_CLOEXEC) };
    executor::forget_signals()?;
    Err(init.exec()).doing(|| "podman cannot be executed")
}

fn confine(command: &mut Command, spec: &AppSpec) -> Result<()> {
    command
        .args(["--log-driver", "passthrough"])
        .args(["--no-hosts", "--http-proxy=false"])
        .args(["--systemd=false", "--sdnotify", "ignore"])
        // Private only where cgroups are of version 2, unless told.
        .arg("--cgroupns=private")
        .args(["--cap-drop", "all", "--security-opt", "no-new-privileges"])
        .args(["--cgroup-parent", &spec.outer_group()])
        .arg(format!("--pids-limit={}", spec.limits.pids))
        .arg("--pidfile")
        .arg(oci::pid_file(spec))
        .arg("--conmon-pidfile")
        .arg(conmon_file(spec));
    command.args([
        "--network",
        match spec.network {
            Network::None => "none",
            Network::Host => "host",
        },
    ]);
    if !spec.writable_root {
        command.args(["--read-only", "--read-only-tmpfs=false"]);
    }
    let profile = made::state(spec).join("seccomp.json");
    let profile = match config::seccomp_profile(spec, Delivery::Never) {
        Some(rules) => {
            fs::write(&profile, rules.to_string())?;
            profile.display().to_string()
        }
        None => "unconfined".to_owned(),
    };
    command.args(["--security-opt", &format!("seccomp={profile}")]);
    for name in &spec.grants.capabilities {
        command.args(["--cap-add", name]);
    }
    for limit in limits::of_app(&spec.grants) {
        let name = limit.name.trim_start_matches("RLIMIT_").to_lowercase();
        // podman's -1 means no limit.
        let value = i64::try_from(limit.value).unwrap_or(-1);
        command.args(["--ulimit", &format!("{name}={value}:{value}")]);
    }
    // Given so that podman does not choose a number above this process's own limit.
    if spec.grants.processes.is_none()
        && let Some(most) = limits::processes()
    {
        command.args(["--ulimit", &format!("nproc={most}:{most}")]);
    }
    if let Some(bytes) = spec.limits.memory_bytes {
        command.arg(format!("--memory={bytes}"));
        if groups::counts_swap() {
            command.arg(format!("--memory-swap={bytes}"));
        }
    }
    for device in &spec.devices {
        let path = device.path.display();
        let access = device.access.name();
        command.args(["--device", &format!("{path}:{path}:{access}")]);
    }
    for (index, bind) in spec.binds.iter().enumerate() {
        let writable = if bind.writable { "rw" } else { "ro" };
        volume(command, &source(spec, index), &bind.target, writable)?;
    }
    for tmpfs in &spec.tmpfs {
        command.arg("--tmpfs").arg(format!(
            "{}:rw,nosuid,nodev,mode=1777,size={}",
            tmpfs.target.display(),
            tmpfs.size_bytes
        ));
    }
    Ok(())
}

fn volume(command: &mut Command, source: &Path, target: &Path, how: &str) -> Result<()> {
    for path in [source, target] {
        if path.as_os_str().as_encoded_bytes().contains(&b':') {
            return Err(refused!(
                "podman accepts no path with a colon, as in {}",
                path.display()
            ));
        }
    }
    command
        .arg("--volume")
        .arg(format!("{}:{}:{how}", source.display(), target.display()));
    Ok(())
}

/// Image, program and their settings.
fn what(command: &mut Command, spec: &AppSpec, program: Option<&Program>) -> Result<()> {
    let ids = |command: &mut Command, ids: Ids| {
        command.args(["--user", &format!("{}:{}", ids.uid, ids.gid)]);
    };
    command.args(["--env", &format!("{MARK}={}", spec.id)]);
    let Some(program) = program else {
        let Image::Reference(name) = &spec.image else {
            return Err("nothing is known about the image".into());
        };
        for (name, value) in &spec.env {
            if name != MARK {
                command.args(["--env", &format!("{name}={value}")]);
            }
        }
        if let Some(given) = spec.ids {
            ids(command, given);
        }
        if let Some(cwd) = &spec.cwd {
            command.arg("--workdir").arg(cwd);
        }
        let hostname: String = spec.id.chars().take(64).collect();
        command
            .arg("--hostname")
            .arg(spec.hostname.as_ref().unwrap_or(&hostname));
        if !spec.command.is_empty() {
            command
                .arg("--entrypoint")
                .arg(json!(spec.command).to_string());
        }
        command.args(["--pull", "never"]).arg(name).args(&spec.args);
        return Ok(());
    };
    for variable in &program.env {
        command.args(["--env", variable]);
    }
    ids(command, program.ids);
    command
        .arg("--workdir")
        .arg(&program.cwd)
        .args(["--hostname", &program.hostname]);
    if let Image::Binary(binary) = &spec.image {
        let index = spec.binds.len();
        volume(command, &source(spec, index), &binary_target(binary)?, "ro")?;
    }
    // podman makes mount points and more in a root: in a layer of its own.
    command
        .arg("--rootfs")
        .arg(format!("{}:O", root(spec).display()))
        .args(&program.args);
    Ok(())
}

/// Removes a container from podman's usual storage, if this cell has one there, with its monitor.
pub(super) fn wipe_shared(cell: &dyn Identity) -> Result<()> {
    if !shared_marker(cell).exists() {
        return Ok(());
    }
    if is_own(cell)? {
        let mut remove = podman(cell)?;
        remove.args(["rm", "--force", "--time", "0", "--ignore", cell.id()]);
        process::run_quiet(&mut remove, &made::log(cell))?;
    }
    wipe_monitor(cell)
}

/// How long podman may take to list its containers.
const LISTING: Duration = Duration::from_secs(20);

/// Whether the container of the cell's name, if there is one, was made for this cell.
fn is_own(cell: &dyn Identity) -> Result<bool> {
    let marker = host::file::text(shared_marker(cell))?;
    if marker != LABELLED {
        return Ok(true);
    }
    let mut list = podman(cell)?;
    list.args(["ps", "--all", "--no-trunc", "--format", "{{.Names}}"])
        .args(["--filter", &format!("label={}", label(cell))]);
    let listed = process::output_within(&mut list, LISTING)
        .doing(|| "podman does not list its containers")?;
    if !listed.status.success() {
        return Err(listed.failure("podman")).doing(|| "podman cannot list its containers");
    }
    Ok(listed.out.lines().any(|name| name.trim() == cell.id()))
}

/// Ends the container's monitor and reaps it.
pub(super) fn wipe_monitor(cell: &dyn Identity) -> Result<()> {
    if let Ok(pid) = oci::read_pid(&conmon_file(cell))
        && host::process::name(pid).as_deref() == Some("conmon")
        && (marks::is_of(pid, cell.id()) || marks::has_argument(pid, &made::state(cell), None))
        && let Some(process) = Process::of(pid)
    {
        process.kill()?;
    }
    Ok(())
}
