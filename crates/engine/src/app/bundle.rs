//! OCI bundles: the parts that a cell takes from one, and those left out.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use host::foreign_file;
use host::found::Found;
use rustix::fs::OFlags;
use rustix::io::Errno;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::spec::{AppSpec, Ids, Image};

/// The parts of an OCI bundle that are taken, and those that are not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bundle {
    /// The root filesystem, absolute.
    pub root: PathBuf,
    /// Program and arguments.
    pub args: Vec<String>,
    /// Environment as `NAME=VALUE`.
    pub env: Vec<String>,
    /// The program's working directory, absolute.
    pub cwd: PathBuf,
    /// User and group; root by the specification's default.
    pub ids: Ids,
    /// Host name.
    pub hostname: Option<String>,
    /// Further requests of the bundle, in its own words (rights, mounts, hooks), which a cell does not get.
    pub ignored: Vec<String>,
}

/// Why a bundle cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {what}")]
pub struct BundleError {
    /// The file, with the line where one is known.
    pub file: String,
    /// The fault, and a valid form.
    pub what: String,
}

/// Bytes of a `config.json`; real ones have some tens of thousands.
const MOST_BYTES: u64 = 4 << 20;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Config {
    oci_version: String,
    root: Option<Root>,
    process: Option<Process>,
    hostname: Option<String>,
    #[serde(default)]
    mounts: Vec<Mount>,
    hooks: Option<Map<String, Value>>,
    linux: Option<Map<String, Value>>,
    #[serde(default)]
    annotations: Map<String, Value>,
}

#[derive(Deserialize)]
struct Root {
    path: PathBuf,
    readonly: Option<bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Process {
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: Vec<String>,
    cwd: PathBuf,
    #[serde(default)]
    user: User,
    #[serde(flatten)]
    more: Map<String, Value>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct User {
    #[serde(default)]
    uid: u32,
    #[serde(default)]
    gid: u32,
    #[serde(default)]
    additional_gids: Vec<u32>,
    umask: Option<u32>,
}

#[derive(Deserialize)]
struct Mount {
    destination: PathBuf,
    #[serde(rename = "type")]
    kind: Option<String>,
    source: Option<String>,
}

/// Mounts that every cell has, or must not have; a bundle that asks for them gets no warning.
const STANDARD: [&str; 7] = [
    "/proc",
    "/dev",
    "/dev/pts",
    "/dev/shm",
    "/dev/mqueue",
    "/sys",
    "/sys/fs/cgroup",
];

/// Parts of `process` that every cell has, or that are of use to nobody here.
const OWN_PROCESS: [&str; 3] = ["noNewPrivileges", "consoleSize", "commandLine"];

/// Parts of `linux` that timecell sets for every cell itself.
const OWN_FORM: [&str; 5] = [
    "namespaces",
    "maskedPaths",
    "readonlyPaths",
    "cgroupsPath",
    "rootfsPropagation",
];

impl Bundle {
    /// Reads the bundle in this directory.
    ///
    /// # Errors
    /// When there is no `config.json`, or it is not an OCI 1.x one with a program and a root. The root must lie beneath this directory, and no part
    /// of its path be a link, unless directory and file belong to root or the caller and nobody else can exchange them.
    pub fn read(dir: &Path) -> Result<Bundle, BundleError> {
        let found = Found::at(dir).map_err(|error| BundleError {
            file: dir.display().to_string(),
            what: error.to_string(),
        })?;
        let (bundle, root) = Bundle::of(&found)?;
        Ok(Bundle {
            root: root.path().to_owned(),
            ..bundle
        })
    }

    /// Reads the bundle in a directory that was looked up, and looks up its root; see [`Bundle::read`].
    pub(crate) fn of(dir: &Found) -> Result<(Bundle, Found), BundleError> {
        let path = dir.path().join("config.json");
        let failed = |what: String| BundleError {
            file: path.display().to_string(),
            what,
        };
        let told = |error: io::Error| failed(error.to_string());
        // The bundle's maker may be another than its reader: a FIFO would wait for its writer.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK;
        let opened = dir.open_beneath(Path::new("config.json"), flags);
        let file = opened.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => failed(format!("{error}; an OCI bundle needs this file")),
            _ => told(error),
        })?;
        let about = file.metadata().map_err(told)?;
        if !about.is_file() {
            return Err(failed("it is not a regular file".to_owned()));
        }
        let owners = [about.uid(), dir.metadata().map_err(told)?.uid()];
        let bytes = foreign_file::read_from(file, MOST_BYTES).map_err(told)?;
        let bundle = Bundle::parse(&path, &bytes)?;
        let named = dir.path().join(&bundle.root);
        let own = rustix::process::geteuid().as_raw();
        let is_own = dir.is_own() && owners.iter().all(|owner| [0, own].contains(owner));
        let root = match (is_own, named.strip_prefix(dir.path())) {
            (true, _) => Found::at(&named),
            (false, Ok(inside)) => dir.beneath(inside),
            (false, Err(_)) => Err(Errno::XDEV.into()),
        };
        let root = root.map_err(|error| match error.raw_os_error() {
            Some(libc::EXDEV | libc::ELOOP) => failed(format!(
                "`root.path`: {} leads out of the bundle or through a link, and the bundle belongs to another user; give the directory as `rootfs`",
                named.display()
            )),
            _ => failed(format!("`root.path`: {}: {error}", named.display())),
        })?;
        if !root.metadata().map_err(told)?.is_dir() {
            return Err(failed(format!(
                "`root.path`: {} is not a directory",
                named.display()
            )));
        }
        Ok((bundle, root))
    }

    /// Reads the text of a `config.json`; `root` stays as it is written. `path` is for messages.
    ///
    /// # Errors
    /// As [`Bundle::read`].
    pub fn parse(path: &Path, text: &[u8]) -> Result<Bundle, BundleError> {
        let failed = |what: String| BundleError {
            file: path.display().to_string(),
            what,
        };
        let config: Config = serde_json::from_slice(text).map_err(|error| BundleError {
            file: format!("{}:{}", path.display(), error.line()),
            what: error.to_string(),
        })?;
        if !config.oci_version.starts_with("1.") {
            return Err(failed(format!(
                "`ociVersion` is `{}`; only 1.x is understood",
                config.oci_version
            )));
        }
        let Some(root) = config.root else {
            return Err(failed(
                "`root` is missing; it names the root filesystem".to_owned(),
            ));
        };
        let Some(process) = config.process else {
            return Err(failed(
                "`process` is missing; it says what to run".to_owned(),
            ));
        };
        if !process.cwd.is_absolute() {
            return Err(failed(format!(
                "`process.cwd` is `{}`; an absolute path is needed",
                process.cwd.display()
            )));
        }
        let mut ignored = of_process(&process);
        if root.readonly == Some(false) {
            ignored.push(WRITABLE.to_owned());
        }
        ignored.extend(config.mounts.iter().filter_map(of_mount));
        if config.hooks.is_some_and(|hooks| !hooks.is_empty()) {
            ignored.push("hooks".to_owned());
        }
        ignored.extend(config.linux.iter().flat_map(of_linux));
        let to_runtimes = |key: &&String| key.starts_with("run.oci.");
        let annotations = config.annotations.keys().filter(to_runtimes);
        ignored.extend(annotations.map(|key| format!("annotations: {key}")));
        // Whoever wrote the bundle may be another than its reader.
        let plain = |text: String| text.replace(char::is_control, "?");
        let ignored = ignored.into_iter().map(plain).collect();
        Ok(Bundle {
            root: root.path,
            args: process.args,
            env: process.env,
            cwd: process.cwd,
            ids: Ids {
                uid: process.user.uid,
                gid: process.user.gid,
            },
            hostname: config.hostname.filter(|name| !name.is_empty()),
            ignored,
        })
    }
}

/// The request for a root to which the cell may write.
const WRITABLE: &str = "root.readonly = false";

/// Requests in the bundle of this cell that it does not get, in the bundle's words; none where its image is no bundle, or one that cannot be
/// used.
pub fn ignored(spec: &AppSpec) -> Vec<String> {
    let Image::Bundle(dir) = &spec.image else {
        return Vec::new();
    };
    let mut ignored = Bundle::read(dir).map_or_else(|_| Vec::new(), |bundle| bundle.ignored);
    ignored.retain(|what| !(spec.writable_root && what == WRITABLE));
    ignored
}

/// Whether this value asks for anything.
fn asks(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(is) => *is,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(all) => !all.is_empty(),
        Value::Object(all) => !all.is_empty(),
    }
}

fn of_process(process: &Process) -> Vec<String> {
    let more = (process.more.iter())
        .filter(|(key, value)| asks(value) && !OWN_PROCESS.contains(&key.as_str()));
    let mut ignored: Vec<String> = more
        .map(|(key, value)| {
            let limits = value.as_array().into_iter().flatten();
            let types: Vec<&str> = limits.filter_map(|limit| limit["type"].as_str()).collect();
            match types.as_slice() {
                [] => format!("process.{key}"),
                types => format!("process.{key} ({})", types.join(", ")),
            }
        })
        .collect();
    if !process.user.additional_gids.is_empty() {
        ignored.push("process.user.additionalGids".to_owned());
    }
    if process.user.umask.is_some() {
        ignored.push("process.user.umask".to_owned());
    }
    ignored
}

fn of_mount(mount: &Mount) -> Option<String> {
    if STANDARD
        .iter()
        .any(|path| mount.destination == Path::new(path))
    {
        return None;
    }
    let kind = mount.kind.as_deref().or(mount.source.as_deref());
    let kind = kind.unwrap_or("bind");
    Some(format!("mounts: {} ({kind})", mount.destination.display()))
}

fn of_linux(linux: &Map<String, Value>) -> Vec<String> {
    let mut ignored = Vec::new();
    for (key, value) in linux.iter().filter(|(_, value)| asks(value)) {
        match value {
            _ if OWN_FORM.contains(&key.as_str()) => {}
            Value::Object(resources) if key == "resources" => {
                ignored.extend(resources.iter().flat_map(of_resource));
            }
            _ => ignored.push(format!("linux.{key}")),
        }
    }
    ignored
}

fn of_resource((name, value): (&String, &Value)) -> Vec<String> {
    let name = format!("linux.resources.{name}");
    match value {
        Value::Object(keys) => (keys.iter())
            .filter(|(_, value)| asks(value))
            .map(|(key, _)| format!("{name}.{key}"))
            .collect(),
        // That no device is allowed but named ones holds in every cell.
        Value::Array(rules) if rules.iter().all(|rule| rule["allow"] == Value::Bool(false)) => {
            Vec::new()
        }
        _ => vec![name],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Bundle, String> {
        Bundle::parse(Path::new("b/config.json"), text.as_bytes())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn what_a_bundle_says_is_taken_and_what_it_grants_is_named() {
        let bundle = parse(
            r#"{"ociVersion": "1.0.2", "hostname": "camera",
                "root": {"path": "rootfs", "readonly": false},
                "process": {"args": ["/bin/a", "b"], "env": ["PATH=/bin"], "cwd": "/w",
                    "user": {"uid": 5, "gid": 6}, "capabilities": {"effective": ["CAP_SYS_ADMIN"]}, "terminal": false,
                    "noNewPrivileges": true, "rlimits": [{"type": "RLIMIT_RTPRIO", "soft": 50, "hard": 50}],
                    "scheduler": {"policy": "SCHED_FIFO", "priority": 50}, "ioPriority": {"class": "IOPRIO_CLASS_RT"},
                    "execCPUAffinity": {"initial": "1"}},
                "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"},
                    {"destination": "/da\u001bta", "type": "bind", "source": "/"}],
                "annotations": {"run.oci.scheduler": "fifo", "org.opencontainers.image.os": "linux"},
                "linux": {"namespaces": [{"type": "pid"}], "seccomp": {"defaultAction": "SCMP_ACT_ALLOW"}, "mountLabel": "",
                    "resources": {"devices": [{"allow": false}], "memory": {"limit": 0},
                        "cpu": {"realtimeRuntime": 950000, "cpus": "1", "quota": 0}}}}"#,
        )
        .unwrap();
        assert_eq!(bundle.args, ["/bin/a", "b"]);
        assert_eq!(bundle.ids, Ids { uid: 5, gid: 6 });
        assert_eq!(bundle.hostname.as_deref(), Some("camera"));
        assert_eq!(
            bundle.ignored,
            [
                "process.capabilities",
                "process.execCPUAffinity",
                "process.ioPriority",
                "process.rlimits (RLIMIT_RTPRIO)",
                "process.scheduler",
                "root.readonly = false",
                "mounts: /da?ta (bind)",
                "linux.resources.cpu.cpus",
                "linux.resources.cpu.realtimeRuntime",
                "linux.seccomp",
                "annotations: run.oci.scheduler",
            ]
        );
    }

    #[test]
    fn bad_bundles_get_one_sentence() {
        for (text, says) in [
            ("{", "b/config.json:1: EOF"),
            (r#"{"ociVersion": "2.0"}"#, "only 1.x is understood"),
            (r#"{"ociVersion": "1.0"}"#, "`root` is missing"),
            (
                r#"{"ociVersion": "1.0", "root": {"path": "r"}}"#,
                "`process` is missing",
            ),
            (
                "{\"ociVersion\": \"1.0\", \"root\": {\"path\": \"r\"},\n\"process\": {\"cwd\": 3}}",
                "b/config.json:2: invalid type",
            ),
            (
                r#"{"ociVersion": "1.0", "root": {"path": "r"}, "process": {"cwd": "w"}}"#,
                "`process.cwd` is `w`",
            ),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn a_bundle_holds_its_own_root_and_a_plain_file() {
        let dir = tempfile::tempdir().unwrap();
        let bundle = dir.path().join("bundle");
        let config = bundle.join("config.json");
        std::fs::create_dir_all(bundle.join("rootfs")).unwrap();
        std::os::unix::fs::symlink("../..", bundle.join("link")).unwrap();
        let read = |root: &str| {
            let text = format!(
                r#"{{"ociVersion": "1.0", "root": {{"path": "{root}"}}, "process": {{"cwd": "/"}}}}"#
            );
            std::fs::write(&config, text).unwrap();
            Bundle::read(&bundle).map_err(|error| error.to_string())
        };
        let inside = bundle.canonicalize().unwrap().join("rootfs");
        assert_eq!(read("rootfs").unwrap().root, inside);
        assert_eq!(read(&inside.display().to_string()).unwrap().root, inside);
        let etc = Path::new("/etc").canonicalize().unwrap();
        assert_eq!(read("/etc").unwrap().root, etc, "one's own is believed");
        // Only root can give it to another user.
        if std::os::unix::fs::chown(&bundle, Some(65_534), None).is_ok() {
            assert_eq!(read("rootfs").unwrap().root, inside);
            for outside in ["..", "/etc", "link", "rootfs/../.."] {
                let error = read(outside).unwrap_err();
                assert!(error.contains("leads out of the bundle"), "{error}");
            }
        }
        std::fs::rename(&config, bundle.join("other")).unwrap();
        std::os::unix::fs::symlink("other", &config).unwrap();
        assert!(Bundle::read(&bundle).is_err());
        std::fs::remove_file(&config).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&config).status();
        assert!(made.unwrap().success());
        // Without a writer, opening it would wait for ever.
        let error = Bundle::read(&bundle).unwrap_err();
        assert_eq!(error.what, "it is not a regular file");
    }
}
