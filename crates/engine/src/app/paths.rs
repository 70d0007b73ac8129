//! Paths that a cell is given: whether they can be, and where they are.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use host::root::Root;

/// File systems that reach beyond any cage: a cell that may write there, or only read, is none.
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

/// That a path of the cell is absolute and says where it leads.
pub(super) fn check_target(what: &str, path: &Path) -> Result<(), String> {
    let plain = path
        .components()
        .all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    if !path.is_absolute() || !plain {
        return Err(format!(
            "{what} `{}` is not an absolute path without `..`",
            path.display()
        ));
    }
    check_text(what, path.as_os_str().as_encoded_bytes())?;
    if path == Path::new("/") || path.starts_with("/proc") {
        return Err(format!(
            "{what} `{}` would hide what every cell has",
            path.display()
        ));
    }
    Ok(())
}

/// That a text can be handed to the kernel and stands in a bundle as it is.
pub(super) fn check_text(what: &str, text: &[u8]) -> Result<(), String> {
    if text.contains(&0) {
        return Err(format!("{what} holds a NUL byte"));
    }
    match std::str::from_utf8(text) {
        Ok(_) => Ok(()),
        Err(_) => Err(format!("{what} is not UTF-8")),
    }
}

/// Links that are followed at most, as by the kernel.
const LINKS: usize = 40;

/// Where a path of the host really is. No step of the way may lead through a directory in one of those that cells write to:
/// who writes there says where the rest of the way leads, now or a moment later.
pub(super) fn find(what: &str, path: &Path, written: &[PathBuf]) -> Result<PathBuf, String> {
    if !path.is_absolute() {
        return Err(format!("{what} `{}` is not absolute", path.display()));
    }
    let failed = |error| format!("{what} {} cannot be used: {error}", path.display());
    let found = path.canonicalize().map_err(failed)?;
    // Those that are not there yet nobody writes to.
    let written: Vec<PathBuf> = (written.iter())
        .filter_map(|dir| dir.canonicalize().ok())
        .collect();
    let through = |dir: &Path| written.iter().find(|written| dir.starts_with(written));
    if let Some(dir) = looked_in(path)
        .map_err(failed)?
        .iter()
        .find_map(|dir| through(dir))
    {
        return Err(format!(
            "{what} {} leads through {}, where a cell may write and could put a link in its place; mount that directory itself, or \
             give the cell another",
            path.display(),
            dir.display()
        ));
    }
    check_text(what, found.as_os_str().as_encoded_bytes())?;
    if found == Path::new("/") {
        return Err(format!("{what} is the host's own root"));
    }
    Ok(found)
}

/// The directories in which a part of the path is looked up, links followed.
fn looked_in(path: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut at = PathBuf::from("/");
    let mut dirs = Vec::new();
    let mut links = 0;
    let parts = |path: &Path| -> Vec<OsString> {
        let parts = path.components().rev();
        parts.map(|part| part.as_os_str().to_owned()).collect()
    };
    let mut left = parts(path);
    while let Some(part) = left.pop() {
        match part.as_encoded_bytes() {
            b"/" => at = PathBuf::from("/"),
            b"." => {}
            b".." => {
                at.pop();
            }
            _ => {
                dirs.push(at.clone());
                let next = at.join(&part);
                if !next.symlink_metadata()?.is_symlink() {
                    at = next;
                    continue;
                }
                links += 1;
                if links > LINKS {
                    return Err(std::io::Error::from_raw_os_error(libc::ELOOP));
                }
                left.extend(parts(&std::fs::read_link(next)?));
            }
        }
    }
    Ok(dirs)
}

/// That what is at `path`, which [`find`] found, may be shown to a cell.
pub(super) fn check_source(root: &Root, path: &Path) -> Result<(), String> {
    let mounts = root
        .read("/proc/self/mountinfo")
        .map_err(|error| error.to_string())?;
    // The last of those mounted at the same place is on top.
    let mut deepest: Option<(usize, &str)> = None;
    for line in mounts.lines() {
        let point = (line.split(' ').nth(4)).map(|point| point.replace("\\040", " "));
        let kind = line
            .split(" - ")
            .nth(1)
            .and_then(|rest| rest.split(' ').next());
        let (Some(point), Some(kind)) = (point, kind) else {
            continue;
        };
        let depth = point.len();
        if path.starts_with(&point) && deepest.is_none_or(|(other, _)| depth >= other) {
            deepest = Some((depth, kind));
        }
    }
    match deepest {
        Some((_, kind)) if BEYOND.contains(&kind) => Err(format!(
            "{} is on a file system of type {kind}, which no cell is shown",
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
            assert_eq!(check_target("target", Path::new(good)), Ok(()), "{good}");
        }
        for bad in ["data", "/a/../b", "/", "/proc/sys", "/proc", ""] {
            assert!(check_target("target", Path::new(bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn no_way_leads_through_what_a_cell_may_write() {
        use std::os::unix::fs::symlink;
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        let at = |name: &str| dir.join(name);
        for name in ["open/sub", "closed/sub", "elsewhere"] {
            std::fs::create_dir_all(at(name)).unwrap();
        }
        symlink(at("elsewhere"), at("open/out")).unwrap();
        symlink("../open/sub", at("closed/in")).unwrap();
        symlink(at("open"), at("other-name")).unwrap();
        symlink("loop", at("loop")).unwrap();
        // Written to under a name that is a link itself.
        let written = [at("other-name"), at("not-there")];
        let find = |name: &str| find("the mount's source", &at(name), &written);
        assert_eq!(find("open"), Ok(at("open")));
        assert_eq!(find("other-name"), Ok(at("open")));
        assert_eq!(find("closed/sub"), Ok(at("closed/sub")));
        // What is below it, a link in it to anywhere, a link to what is below it, and a way back out of it.
        for bad in [
            "open/sub",
            "open/out",
            "closed/in",
            "other-name/sub",
            "open/sub/../../closed",
        ] {
            let why = find(bad).unwrap_err();
            assert!(why.contains("where a cell may write"), "{bad}: {why}");
        }
        assert!(find("loop").unwrap_err().contains("cannot be used"));
        assert!(find("none").unwrap_err().contains("cannot be used"));
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
        assert_eq!(check("/srv/data"), Ok(()));
        assert_eq!(check("/sys/class/gpio"), Ok(()));
        assert_eq!(check("/over/x"), Ok(()));
        assert!(
            check("/sys/fs/cgroup/cpu/a")
                .unwrap_err()
                .contains("cgroup")
        );
        assert!(check("/proc/sys/kernel").is_err());
    }
}
