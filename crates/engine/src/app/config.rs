//! The `config.json` of an application's cell: the cell's grants, with all of our restrictions, regardless of its image.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use host::file::at;
use model::EngineKind;
use serde_json::{Value, json};

use super::capabilities::TO_HIDE_GROUPS;
use super::program::{Program, binary_target};
use super::spec::{Access, AppSpec, Device, Image, Network};
use super::{devices, groups, root};
use crate::agent::Delivery;
use crate::error::Result;
use crate::{agent, limits, made, oci, seccomp};

/// Parts of `/proc` and `/sys` that reach beyond the cell.
const MASKED: [&str; 10] = [
    "/proc/acpi",
    "/proc/asound",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/scsi",
    "/proc/timer_list",
    "/proc/sched_debug",
    "/sys/firmware",
    "/sys/devices/virtual/powercap",
];
/// Files of each cpu in `/sys/devices/system/cpu` of which a read interrupts that cpu.
const MASKED_OF_CPU: [&str; 2] = ["acpi_cppc", "power/energy_perf_bias"];
const READ_ONLY: [&str; 6] = [
    "/proc/bus",
    "/proc/fs",
    "/proc/irq",
    // Watching pressure makes the kernel work.
    "/proc/pressure",
    "/proc/sys",
    "/proc/sysrq-trigger",
];

fn masked() -> Vec<String> {
    let cpus = host::cpus::possible().unwrap_or_default();
    let of_cpus = cpus.iter().flat_map(|cpu| {
        MASKED_OF_CPU.map(|name| format!("/sys/devices/system/cpu/cpu{cpu}/{name}"))
    });
    let of_cpus = of_cpus.filter(|path| Path::new(path).exists());
    MASKED
        .map(str::to_owned)
        .into_iter()
        .chain(of_cpus)
        .collect()
}

/// POSIX shared memory of a cell, in bytes.
const SHARED_MEMORY: u64 = 64 << 20;

/// Pseudo terminals of a cell, of the machine's `kernel.pty.max` (4,096).
const PSEUDO_TERMINALS: u32 = 64;

/// Writes the bundle of a cell whose root is made at [`root::place`].
pub(crate) fn write(spec: &AppSpec, program: &Program) -> Result<()> {
    let config = config(spec, program)?;
    let bundle = oci::bundle(spec);
    let write = || -> io::Result<()> {
        fs::create_dir_all(&bundle)?;
        fs::create_dir_all(oci::runtime_state(spec))?;
        fs::write(bundle.join("config.json"), serde_json::to_vec(&config)?)
    };
    Ok(write().map_err(at(&bundle))?)
}

/// The filter of a cell as `linux.seccomp`; `None`: it has none.
pub(crate) fn seccomp_profile(spec: &AppSpec, delivery: Delivery) -> Option<Value> {
    let policy = seccomp::policy(&spec.grants, spec.network);
    let socket = agent::socket_of(&made::state(spec));
    seccomp::profile(&policy, agent::answers(spec, delivery), &socket)
}

fn config(spec: &AppSpec, program: &Program) -> Result<Value> {
    let mut namespaces: Vec<Value> = ["pid", "mount", "ipc", "uts"]
        .map(|kind| json!({ "type": kind }))
        .to_vec();
    let is_embedded = spec.engine == EngineKind::Embedded;
    if !is_embedded {
        namespaces.push(json!({ "type": "cgroup" }));
    }
    if spec.network == Network::None {
        namespaces.push(json!({ "type": "network" }));
    }
    let devices = (spec.devices.iter().map(node)).collect::<Result<Vec<_>, _>>()?;
    let mut linux = json!({
        "maskedPaths": masked(),
        "readonlyPaths": READ_ONLY,
        "namespaces": namespaces,
        "cgroupsPath": spec.own_group(),
        "devices": devices,
    });
    // The embedded engine makes the groups, hides their names and installs the filter itself.
    if !is_embedded {
        linux["resources"] = resources(spec)?;
        if let Some(profile) = seccomp_profile(spec, Delivery::BySocket) {
            linux["seccomp"] = profile;
        }
    }
    let granted = &spec.grants.capabilities;
    let mut held: Vec<&str> = granted.iter().map(String::as_str).collect();
    if is_embedded {
        held.extend(TO_HIDE_GROUPS);
    }
    let mut capabilities = json!({ "bounding": held, "effective": held, "permitted": held });
    if program.ids.uid != 0 {
        // Users other than root keep only ambient capabilities over exec.
        capabilities["inheritable"] = json!(granted);
        capabilities["ambient"] = json!(granted);
    }
    let rlimits: Vec<Value> = (limits::of_app(&spec.grants).iter())
        .map(|limit| json!({ "type": limit.name, "soft": limit.value, "hard": limit.value }))
        .collect();
    Ok(json!({
        "ociVersion": "1.0.2",
        "hostname": program.hostname,
        "root": { "path": root::place(spec), "readonly": !spec.writable_root },
        "mounts": mounts(spec)?,
        "process": {
            "terminal": false,
            "user": { "uid": program.ids.uid, "gid": program.ids.gid, "umask": 0o022 },
            "cwd": program.cwd,
            "args": program.args,
            "env": program.env,
            "noNewPrivileges": true,
            "capabilities": capabilities,
            "rlimits": rlimits,
        },
        "linux": linux,
    }))
}

/// The mounts of every cell, then those of this one, outer directories first.
fn mounts(spec: &AppSpec) -> Result<Vec<Value>> {
    let mount = |at: &str, kind: &str, options: &[&str]| json!({ "destination": at, "type": kind, "source": kind, "options": options });
    let size = format!("size={SHARED_MEMORY}");
    let terminals = format!("max={PSEUDO_TERMINALS}");
    let mut all = vec![
        mount("/proc", "proc", &["nosuid", "noexec", "nodev"]),
        mount(
            "/dev",
            "tmpfs",
            &["nosuid", "noexec", "mode=755", "size=64k"],
        ),
        mount(
            "/dev/pts",
            "devpts",
            &[
                "nosuid",
                "noexec",
                "newinstance",
                "ptmxmode=0666",
                "mode=0620",
                &terminals,
            ],
        ),
        mount(
            "/dev/shm",
            "tmpfs",
            &["nosuid", "noexec", "nodev", "mode=1777", &size],
        ),
        mount("/dev/mqueue", "mqueue", &["nosuid", "noexec", "nodev"]),
        mount("/sys", "sysfs", &["nosuid", "noexec", "nodev", "ro"]),
    ];
    let mut own: Vec<(PathBuf, Value)> = Vec::new();
    for tmpfs in &spec.tmpfs {
        let size = format!("size={}", tmpfs.size_bytes);
        let target = tmpfs.target.display().to_string();
        let options = ["nosuid", "nodev", "mode=1777", size.as_str()];
        own.push((tmpfs.target.clone(), mount(&target, "tmpfs", &options)));
    }
    for (index, bind) in spec.binds.iter().enumerate() {
        let writable = if bind.writable { "rw" } else { "ro" };
        let source = root::source(spec, index);
        own.push((bind.target.clone(), bound(&source, &bind.target, writable)));
    }
    if let Image::Binary(binary) = &spec.image {
        let target = binary_target(binary)?;
        let source = root::source(spec, spec.binds.len());
        own.push((target.clone(), bound(&source, &target, "ro")));
    }
    own.sort_by(|(one, _), (other, _)| one.cmp(other));
    all.extend(own.into_iter().map(|(_, mount)| mount));
    Ok(all)
}

fn bound(source: &Path, target: &Path, writable: &str) -> Value {
    json!({ "destination": target, "type": "bind", "source": source,
        "options": ["bind", writable, "nosuid", "nodev"] })
}

/// One device of the host as a node in the cell.
fn node(device: &Device) -> Result<Value> {
    let (kind, major, minor) = devices::number(device)?;
    Ok(
        json!({ "path": device.path, "type": kind, "major": major, "minor": minor,
        "fileMode": file_mode(device.access), "uid": 0, "gid": 0 }),
    )
}

/// The permissions of a device's node in the cell.
fn file_mode(access: Access) -> u32 {
    match access {
        Access::Read => 0o444,
        Access::Write => 0o222,
        Access::ReadWrite => 0o666,
    }
}

fn resources(spec: &AppSpec) -> Result<Value> {
    let mut rules = vec![json!({ "allow": false, "access": "rwm" })];
    for device in &spec.devices {
        let (kind, major, minor) = devices::number(device)?;
        rules.push(
            json!({ "allow": true, "type": kind, "major": major, "minor": minor,
            "access": device.access.name() }),
        );
    }
    let mut resources = json!({
        "devices": rules,
        "pids": { "limit": spec.limits.pids },
    });
    if let Some(bytes) = spec.limits.memory_bytes {
        resources["memory"] = json!({ "limit": bytes });
        if groups::counts_swap() {
            resources["memory"]["swap"] = bytes.into();
        }
    }
    Ok(resources)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::{Bind, Tmpfs};

    fn spec(engine: EngineKind) -> AppSpec {
        AppSpec::new("a", engine, Image::Rootfs("/r".into()), Path::new("/w"))
    }

    fn made(spec: &AppSpec) -> Value {
        let program = Program {
            root_is_own: true,
            args: vec!["/x".into()],
            env: Vec::new(),
            cwd: "/".into(),
            ids: crate::app::Ids::NOBODY,
            hostname: "a".into(),
        };
        config(spec, &program).unwrap()
    }

    #[test]
    fn nothing_is_given_unasked() {
        let config = made(&spec(EngineKind::Crun));
        assert_eq!(config["root"]["readonly"], true);
        assert_eq!(config["process"]["noNewPrivileges"], true);
        assert_eq!(config["process"]["capabilities"]["bounding"], json!([]));
        let mounts = config["mounts"].as_array().unwrap();
        assert!(mounts.iter().all(|mount| mount["type"] != "cgroup"));
        let kinds = config["linux"]["namespaces"].to_string();
        for kind in ["pid", "mount", "ipc", "uts", "cgroup", "network"] {
            assert!(kinds.contains(kind), "{kind}");
        }
        assert!(config["linux"]["seccomp"].is_object());
    }

    #[test]
    fn outer_directories_are_mounted_first() {
        let mut spec = spec(EngineKind::Embedded);
        spec.binds.push(Bind::new("/etc", "/data/etc", false));
        spec.tmpfs.push(Tmpfs {
            target: "/data".into(),
            size_bytes: 4096,
        });
        let config = made(&spec);
        let targets: Vec<&str> = (config["mounts"].as_array().unwrap().iter())
            .map(|mount| mount["destination"].as_str().unwrap())
            .collect();
        assert_eq!(targets[targets.len() - 2..], ["/data", "/data/etc"]);
    }
}
