//! The limits that the cgroups of an application's cell set, in version 1 and 2, for cells whose groups no runtime makes.

use std::fs;
use std::path::{Path, PathBuf};

use host::cgroup::{Cgroups, Layout};
use host::root::Root;
use model::EngineKind;

use super::devices;
use super::spec::{Access, AppSpec, INNER, Limits};
use crate::error::{Doing, Result, refused};
use crate::own_groups::Groups;

/// Makes those groups of a cell that do not exist.
///
/// # Errors
/// Names the group that could not be made.
pub(crate) fn make(spec: &AppSpec) -> Result<Groups> {
    let inner = spec.is_enclosed.then_some(INNER);
    Groups::make_inside(&spec.id, spec.within.as_deref(), inner)
}

/// Sets the limits of a cell's outer groups, which exist and are empty: they also apply to the groups below.
///
/// # Errors
/// Names the file that could not be written, or the controller that is missing.
pub(crate) fn limit(spec: &AppSpec) -> Result<()> {
    let cgroups = host::cgroup::detect()?;
    let Limits { memory_bytes, pids } = spec.limits;
    if let Some(bytes) = memory_bytes {
        limit_memory(&cgroups, spec, bytes)?;
    }
    let group = group(&cgroups, spec, "pids").ok_or_else(|| absent("pids", &cgroups))?;
    write(&group.path().join("pids.max"), &pids.to_string())?;
    match spec.engine {
        // Its devices are the host's.
        EngineKind::Bare => Ok(()),
        _ => limit_devices(&cgroups, spec),
    }
}

/// Whether the swap that a group uses is counted, so that a limit of memory can include it.
pub(crate) fn counts_swap() -> bool {
    let Ok(cgroups) = host::cgroup::detect() else {
        return false;
    };
    match cgroups.v1_mount("memory") {
        Some(mount) => mount.point.join("memory.memsw.limit_in_bytes").exists(),
        None => true,
    }
}

/// The group of a cell in the hierarchy of a controller.
enum Group {
    V1(PathBuf),
    V2(PathBuf),
}

impl Group {
    fn path(&self) -> &Path {
        match self {
            Group::V1(path) | Group::V2(path) => path,
        }
    }
}

fn group(cgroups: &Cgroups, spec: &AppSpec, controller: &str) -> Option<Group> {
    if let Some(mount) = cgroups.v1_mount(controller) {
        return Some(Group::V1(mount.point.join(&spec.id)));
    }
    let v2 = cgroups.v2.as_ref()?;
    if !v2.controllers.iter().any(|name| name == controller) {
        return None;
    }
    // A group has a controller's files only where its parent hands it down, as every container runtime asks for.
    let within = spec.within.iter().map(|within| v2.point.join(within));
    for parent in std::iter::once(v2.point.clone()).chain(within) {
        host::cgroup::hand_down_in(&Root::live(), &parent, controller).ok()?;
    }
    Some(Group::V2(spec.outer_group_at(&v2.point)))
}

fn absent(controller: &str, cgroups: &Cgroups) -> String {
    let fix = match cgroups.layout() {
        Layout::V2 => {
            format!("enable it with `echo +{controller} > /sys/fs/cgroup/cgroup.subtree_control`")
        }
        _ => format!(
            "mount it with `mkdir -p /sys/fs/cgroup/{controller} && mount -t cgroup -o {controller} none /sys/fs/cgroup/{controller}`"
        ),
    };
    format!(
        "the cell cannot be limited: the {controller} controller is missing ({}); {fix}",
        cgroups.layout()
    )
}

fn limit_memory(cgroups: &Cgroups, spec: &AppSpec, bytes: u64) -> Result<()> {
    let bytes = bytes.to_string();
    match group(cgroups, spec, "memory").ok_or_else(|| absent("memory", cgroups))? {
        Group::V1(dir) => {
            write(&dir.join("memory.limit_in_bytes"), &bytes)?;
            let with_swap = dir.join("memory.memsw.limit_in_bytes");
            if with_swap.exists() {
                write(&with_swap, &bytes)?;
            }
            Ok(())
        }
        Group::V2(dir) => {
            write(&dir.join("memory.max"), &bytes)?;
            let swap = dir.join("memory.swap.max");
            if swap.exists() {
                write(&swap, "0")?;
            }
            // A cell that has lost one of its processes is no longer whole.
            write(&dir.join("memory.oom.group"), "1")
        }
    }
}

/// Allows no device but the common and granted ones. A cell cannot make nodes in any case, so it has only these.
fn limit_devices(cgroups: &Cgroups, spec: &AppSpec) -> Result<()> {
    let rules = devices::rules(spec)?;
    if let Some(mount) = cgroups.v1_mount("devices") {
        return devices::hold_v1(&mount.point.join(&spec.id), &rules);
    }
    let Some(v2) = &cgroups.v2 else {
        return Ok(());
    };
    let partly = (spec.devices.iter()).find(|device| device.access != Access::ReadWrite);
    let group = spec.outer_group_at(&v2.point);
    match (devices::hold_v2(&group, &rules), partly) {
        // Without the program, the modes of the nodes hold everybody but their owner.
        (Err(error), Some(device)) => Err(refused!(
            "the cell cannot be held to `{}` of {}: {error}; grant \"rw\", or use a kernel with CONFIG_CGROUP_BPF",
            device.access.name(),
            device.path.display()
        )),
        _ => Ok(()),
    }
}

fn write(file: &Path, text: &str) -> Result<()> {
    fs::write(file, text).doing(|| format!("{}: cannot write {text}", file.display()))
}
