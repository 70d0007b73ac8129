//! Paths that a cell is given: whether they are allowed, and where they lead.

use std::path::{Component, Path, PathBuf};

use host::root::Root;

use crate::error::{Doing, Result, refused};

/// File systems that reach beyond any isolation: a cell that may write or even read there is not isolated.
const BEYOND: [&str; 8] = [
    "cgroup",
    "cgroup2",
    "proc",
    "debugfs",
    "tracefs",
    "securityfs",
    "bpf",
    "configfs",
];

/// Checks that a path of the cell is absolute and has no `..`.
pub(super) fn check_target(what: &str, path: &Path) -> Result<()> {
    let plain = path
        .components()
        .all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    if !path.is_absolute() || !plain {
        return Err(refused!(
            "{what} `{}` is not an absolute path without `..`",
            path.display()
        ));
    }
    check_text(what, path.as_os_str().as_encoded_bytes())?;
    if path == Path::new("/") || path.starts_with("/proc") {
        return Err(refused!(
            "{what} `{}` would hide what every cell needs",
            path.display()
        ));
    }
    Ok(())
}

/// Checks that a text can be handed to the kernel and written to a bundle unchanged.
pub(super) fn check_text(what: &str, text: &[u8]) -> Result<()> {
    if text.contains(&0) {
        return Err(refused!("{what} holds a NUL byte"));
    }
    match std::str::from_utf8(text) {
        Ok(_) => Ok(()),
        Err(_) => Err(refused!("{what} is not UTF-8")),
    }
}

/// Where a path of the host really is.
pub(super) fn find(what: &str, path: &Path) -> Result<PathBuf> {
    if !path.is_absolute() {
        return Err(refused!("{what} `{}` is not absolute", path.display()));
    }
    let found =
        (path.canonicalize()).doing(|| format!("{what} {} cannot be used", path.display()))?;
    check_text(what, found.as_os_str().as_encoded_bytes())?;
    if found == Path::new("/") {
        return Err(refused!("{what} is the host's own root"));
    }
    Ok(found)
}

/// Checks that what is at `path`, which [`find`] found, may be shown to a cell.
pub(super) fn check_source(root: &Root, path: &Path) -> Result<()> {
    let mounts = root.read("/proc/self/mountinfo")?;
    // The last of those mounted at the same place is on top.
    let mut deepest: Option<(usize, &str)> = None;
    for mount in host::mounts::of(&mounts) {
        let depth = mount.point.as_os_str().len();
        if path.starts_with(&mount.point) && deepest.is_none_or(|(other, _)| depth >= other) {
            deepest = Some((depth, mount.kind));
        }
    }
    match deepest {
        Some((_, kind)) if BEYOND.contains(&kind) => Err(refused!(
            "{} is on a file system of type {kind}, which no cell may see",
            path.display()
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_say_where_they_lead() {
        for good in ["/data", "/dev/shm/x", "/a/b/c"] {
            check_target("target", Path::new(good)).unwrap();
        }
        for bad in ["data", "/a/../b", "/", "/proc/sys", "/proc", ""] {
            assert!(check_target("target", Path::new(bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn cgroup_files_and_the_kernels_own_are_shown_to_nobody() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("proc/self")).unwrap();
        std::fs::write(
            dir.path().join("proc/self/mountinfo"),
            "1 0 0:1 / / rw - ext4 d rw\n2 1 0:2 / /sys rw - sysfs s rw\n\
             3 2 0:3 / /sys/fs/cgroup/cpu rw - cgroup c rw\n4 1 0:4 / /proc rw - proc p rw\n\
             5 1 0:5 / /over rw - proc p rw\n6 1 0:6 / /over rw - tmpfs t rw\n",
        )
        .unwrap();
        let root = Root::at(dir.path());
        let check = |path: &str| check_source(&root, Path::new(path));
        check("/srv/data").unwrap();
        check("/sys/class/gpio").unwrap();
        check("/over/x").unwrap();
        assert!(
            check("/sys/fs/cgroup/cpu/a")
                .unwrap_err()
                .to_string()
                .contains("cgroup")
        );
        assert!(check("/proc/sys/kernel").is_err());
    }
}
