//! The OCI bundle of a cell, where a runtime keeps its state, and the machine's requirements for one.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use host::file::at;
use model::{EngineKind, Requirement, Size};
use rustix::process::{getegid, geteuid};
use serde_json::{Value, json};

use crate::error::{Doing, Result, refused};
use crate::identity::Identity;
use crate::made;
use crate::note::MARK;
use crate::{CellSpec, limits, programs};

/// Whether the runtime has root's powers over the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Power {
    /// Cgroups, device nodes, capabilities.
    Root,
    /// None of these: the runtime runs in a user namespace of its own.
    User,
}

/// The power that the runtime of this cell has.
pub(crate) fn power(cell: &dyn Identity) -> Power {
    if programs::is_root() && cell.user().is_none() {
        Power::Root
    } else {
        Power::User
    }
}

/// The kernel's usual period of a limit of cpu time, us.
pub(crate) const CPU_PERIOD_US: u64 = 100_000;

/// Parts of `/proc` that reach beyond the cell.
const MASKED: [&str; 7] = [
    "/proc/acpi",
    "/proc/asound",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/scsi",
    "/proc/timer_list",
];
const READ_ONLY: [&str; 5] = [
    "/proc/bus",
    "/proc/fs",
    "/proc/irq",
    "/proc/sys",
    "/proc/sysrq-trigger",
];

/// Where the bundle of a cell is.
pub(crate) fn bundle(cell: &dyn Identity) -> PathBuf {
    made::state(cell).join("bundle")
}

/// Where the runtime keeps its state of a cell.
pub(crate) fn runtime_state(cell: &dyn Identity) -> PathBuf {
    made::state(cell).join("runtime")
}

/// Where the runtime writes the payload's pid.
pub(crate) fn pid_file(cell: &dyn Identity) -> PathBuf {
    made::state(cell).join("pid")
}

/// Makes the directories and writes `config.json`.
pub(crate) fn write_bundle(spec: &CellSpec, power: Power) -> Result<()> {
    let config = config(spec, power)?;
    let write = || -> io::Result<()> {
        fs::create_dir_all(bundle(spec))?;
        fs::create_dir_all(runtime_state(spec))?;
        fs::write(
            bundle(spec).join("config.json"),
            serde_json::to_vec(&config)?,
        )
    };
    Ok(write().map_err(at(&bundle(spec)))?)
}

fn config(spec: &CellSpec, power: Power) -> Result<Value> {
    let mut args = vec!["/timecell".to_owned()];
    args.extend(spec.words.iter().cloned());
    let capabilities: &[&str] = match (power, spec.rights.rtprio) {
        (Power::Root, 1..) => &["CAP_SYS_NICE", "CAP_IPC_LOCK"],
        (Power::Root, 0) => &["CAP_IPC_LOCK"],
        (Power::User, _) => &[],
    };
    let rlimits: Vec<Value> = limits::of(&spec.rights)
        .iter()
        .map(|limit| json!({ "type": limit.name, "soft": limit.value, "hard": limit.value }))
        .collect();
    let mut mounts = vec![
        json!({ "destination": "/proc", "type": "proc", "source": "proc",
            "options": ["nosuid", "noexec", "nodev"] }),
        json!({ "destination": "/dev", "type": "tmpfs", "source": "tmpfs",
            "options": ["nosuid", "noexec", "mode=755", "size=64k"] }),
        json!({ "destination": "/cell", "type": "bind", "source": spec.shared,
            "options": ["bind", "rw", "nosuid", "nodev", "noexec"] }),
    ];
    let mut namespaces: Vec<Value> = ["pid", "mount", "ipc", "uts", "network", "cgroup"]
        .map(|kind| json!({ "type": kind }))
        .to_vec();
    let mut linux = json!({
        "maskedPaths": MASKED,
        "readonlyPaths": READ_ONLY,
    });
    match power {
        Power::Root => {
            let devices = spec
                .rights
                .devices
                .iter()
                .map(|path| device(path))
                .collect::<Result<Vec<_>, _>>()?;
            // A cell cannot make nodes, so none but these are in its reach; runc wants each of them allowed.
            // Those of the embedded runtime are timecell's own.
            let mut resources = resources(&spec.rights.limits);
            if !devices.is_empty() && spec.engine != EngineKind::Embedded {
                let rules: Vec<Value> = devices
                    .iter()
                    .map(|device| {
                        json!({ "allow": true, "type": device["type"], "major": device["major"],
                            "minor": device["minor"], "access": "rw" })
                    })
                    .collect();
                resources["devices"] = rules.into();
            }
            if spec.engine != EngineKind::Embedded && resources != json!({}) {
                linux["resources"] = resources;
            }
            linux["devices"] = devices.into();
            linux["cgroupsPath"] = format!("/{}", spec.id).into();
        }
        Power::User => {
            // Nodes cannot be made in a user namespace; the host's are mounted instead.
            mounts.extend(spec.rights.devices.iter().map(|path| {
                json!({ "destination": path, "type": "bind", "source": path, "options": ["bind", "rw"] })
            }));
            // The embedded runtime is in one of its own already.
            if spec.engine != EngineKind::Embedded {
                namespaces.push(json!({ "type": "user" }));
                let (uid, gid) = ids(spec);
                linux["uidMappings"] = json!([{ "containerID": 0, "hostID": uid, "size": 1 }]);
                linux["gidMappings"] = json!([{ "containerID": 0, "hostID": gid, "size": 1 }]);
            }
        }
    }
    linux["namespaces"] = namespaces.into();
    Ok(json!({
        "ociVersion": "1.0.2",
        "hostname": "cell",
        "root": { "path": spec.rootfs, "readonly": true },
        "mounts": mounts,
        "process": {
            "terminal": false,
            "user": { "uid": 0, "gid": 0 },
            "cwd": "/",
            "args": args,
            // HOME saves the embedded runtime a search in /etc/passwd.
            "env": [format!("{MARK}={}", spec.id), "PATH=/", "HOME=/"],
            "noNewPrivileges": true,
            "capabilities": {
                "bounding": capabilities,
                "effective": capabilities,
                "permitted": capabilities,
            },
            "rlimits": rlimits,
        },
        "linux": linux,
    }))
}

/// The limits of a cell, as a runtime reads them.
fn resources(limits: &Size) -> Value {
    let mut resources = json!({});
    if let Some(vcpus) = limits.vcpus {
        let quota = u64::from(vcpus) * CPU_PERIOD_US;
        resources["cpu"] = json!({ "quota": quota, "period": CPU_PERIOD_US });
    }
    if let Some(bytes) = limits.memory_bytes {
        resources["memory"] = json!({ "limit": bytes });
    }
    resources
}

/// Host ids of the user who runs a rootless cell.
fn ids(spec: &CellSpec) -> (u32, u32) {
    match &spec.user {
        Some(user) => (user.uid, user.gid),
        None => (geteuid().as_raw(), getegid().as_raw()),
    }
}

/// One device of the host as OCI wants it.
fn device(path: &Path) -> Result<Value> {
    let found = path
        .metadata()
        .doing(|| format!("device {}", path.display()))?;
    let kind = match found.file_type() {
        kind if kind.is_char_device() => "c",
        kind if kind.is_block_device() => "b",
        _ => return Err(refused!("{} is not a device", path.display())),
    };
    Ok(
        json!({ "path": path, "type": kind, "major": libc::major(found.rdev()),
        "minor": libc::minor(found.rdev()), "fileMode": 0o666, "uid": 0, "gid": 0 }),
    )
}

/// A pid from a file that an engine wrote.
pub(crate) fn read_pid(file: &Path) -> Result<i32> {
    host::file::text(file)
        .map_err(at(file))?
        .trim()
        .parse()
        .ok()
        .filter(|pid| *pid > 1)
        .ok_or_else(|| refused!("{} holds no pid", file.display()))
}

/// That the layout of the cgroup mounts is one that this runtime accepts.
pub(crate) fn layout(runtime: &str) -> Requirement {
    const WHAT: &str = "cgroup layout";
    match host::cgroup::detect() {
        Err(error) => Requirement::unmet(WHAT, error.to_string(), "mount /proc"),
        Ok(cgroups) => match cgroups
            .refusals()
            .into_iter()
            .find(|no| no.runtime == runtime)
        {
            Some(no) => Requirement::unmet(WHAT, no.reason, no.fix),
            None => Requirement::met(WHAT, cgroups.layout().to_string()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_cpu_time_and_memory() {
        let limits = |vcpus, memory_bytes| {
            resources(&Size {
                vcpus,
                memory_bytes,
            })
        };
        assert_eq!(limits(None, None), json!({}));
        let both =
            json!({ "cpu": { "quota": 200_000, "period": 100_000 }, "memory": { "limit": 5 } });
        assert_eq!(limits(Some(2), Some(5)), both);
    }
}
