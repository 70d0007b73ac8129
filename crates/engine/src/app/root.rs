//! The root of an application's cell, made in a mount namespace of the process that makes the cell: nothing of it is
//! seen outside, and it is gone with the last process in it.
//!
//! A directory is used as it is where it has every mount point. Where one is missing, or the cell may write, an
//! overlay in memory takes the new and the written files, so that the user's directory is never changed.

use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use host::file::at;
use host::found::Found;
use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;
use rustix::mount::{MountFlags, mount_remount};

use super::sources::Trees;
use super::spec::AppSpec;
use crate::error::{Doing, Result, refused};
use crate::made;
use crate::mounts::mount_with;

/// Mount points of every cell's runtime.
pub(crate) const MOUNT_POINTS: [&str; 3] = ["/proc", "/dev", "/sys"];

/// Where the root of a cell is, for its runtime.
pub(crate) fn place(spec: &AppSpec) -> PathBuf {
    private(spec).join("root")
}

/// Where the source of a mount is ([`Sources::mounts`](super::sources::Sources::mounts)), for the cell's runtime: not where it is on the host, whose directories others may change while
/// the runtime looks.
pub(crate) fn source(spec: &AppSpec, index: usize) -> PathBuf {
    private(spec).join("sources").join(index.to_string())
}

fn private(spec: &AppSpec) -> PathBuf {
    made::state(spec).join("private")
}

/// Makes it; the caller is in a private mount namespace of its own.
///
/// # Errors
/// In the kernel's words.
pub(crate) fn build(spec: &AppSpec, trees: &Trees<'_>) -> Result<()> {
    let private = private(spec);
    make_dir(&private)?;
    mount_with(
        Some(Path::new("tmpfs")),
        &private,
        Some(c"tmpfs"),
        MountFlags::NOSUID | MountFlags::NODEV,
        Some("mode=755"),
    )?;
    for (index, tree) in trees.mounts.iter().enumerate() {
        tree.put(&source(spec, index))?;
    }
    let place = place(spec);
    make_dir(&place)?;
    let Some(tree) = &trees.root else {
        // The runtime makes the mount points, the program's own among them.
        return Ok(());
    };
    let root = tree.found;
    // Device nodes and other users' rights that lie about in an image are of no effect.
    let flags = MountFlags::NODEV | MountFlags::NOSUID;
    check(root, spec)?;
    // Of an image that others can change, the directories that its runtime mounts on are in a layer of our own: no link that is
    // put there from now on is followed.
    if !spec.writable_root && root.is_own() && has_mount_points(root, spec) {
        tree.put(&place)?;
        let again = MountFlags::BIND | MountFlags::RDONLY | flags;
        let again = mount_remount(&place, again, "");
        return again.doing(|| format!("cannot mount {}", place.display()));
    }
    // Under a path of our own: the options of an overlay are separated by characters that paths may hold.
    let lower = private.join("lower");
    let (upper, work) = (private.join("upper"), private.join("work"));
    for dir in [&upper, &work] {
        make_dir(dir)?;
    }
    tree.put(&lower)?;
    let like = root.metadata()?;
    fs::set_permissions(&upper, like.permissions()).map_err(at(&upper))?;
    if !root.is_own() {
        for point in MOUNT_POINTS {
            make_dir(&upper.join(point.trim_start_matches('/')))?;
        }
    }
    std::env::set_current_dir(&private)?;
    let made = mount_with(
        Some(Path::new("overlay")),
        &place,
        Some(c"overlay"),
        flags,
        Some("lowerdir=lower,upperdir=upper,workdir=work"),
    );
    std::env::set_current_dir("/")?;
    made.map_err(|error| {
        let missing = missing(root, spec).map_or_else(String::new, |path| {
            format!("; {} has no {}", root.path().display(), path.display())
        });
        error.noted(format!(
            " (the kernel needs overlayfs for a root that is written to{missing})"
        ))
    })
}

fn make_dir(dir: &Path) -> Result<()> {
    Ok(fs::create_dir_all(dir).map_err(at(dir))?)
}

fn has_mount_points(root: &Found, spec: &AppSpec) -> bool {
    missing(root, spec).is_none()
}

/// Checks that the image has no links where a cell gets its own directories or files of the host: a runtime that mounts there may follow them, and
/// create or replace files in the host directory that they name.
///
/// # Errors
/// One sentence, which names the link.
pub(crate) fn check(root: &Found, spec: &AppSpec) -> Result<()> {
    for path in MOUNT_POINTS.iter().chain([&"/cell"]).map(Path::new) {
        if let Some(link) = link_on(root, path) {
            return Err(refused!(
                "{} of the image {} is a link where a cell gets a directory of its own; make it a directory",
                link.display(),
                root.path().display()
            ));
        }
    }
    let tmpfs = spec.tmpfs.iter().map(|tmpfs| tmpfs.target.as_path());
    for target in spec
        .binds
        .iter()
        .map(|bind| bind.target.as_path())
        .chain(tmpfs)
    {
        if let Some(link) = link_on(root, target) {
            return Err(refused!(
                "{} of the image {} is a link, and the mount's target {} leads through it; name the place it leads to, or make it a directory",
                link.display(),
                root.path().display(),
                target.display()
            ));
        }
    }
    Ok(())
}

/// The first link on the way of a path of the cell, itself included.
fn link_on(root: &Found, path: &Path) -> Option<PathBuf> {
    let mut at = PathBuf::new();
    for part in path.components() {
        let Component::Normal(part) = part else {
            continue;
        };
        at.push(part);
        match root.beneath(&at) {
            Ok(_) => {}
            Err(error) if error.raw_os_error() == Some(libc::ELOOP) => {
                return Some(Path::new("/").join(at));
            }
            // Anything below is not there either.
            Err(_) => return None,
        }
    }
    None
}

/// The first mount point that the root does not have. Those inside other mounts are made there.
fn missing(root: &Found, spec: &AppSpec) -> Option<PathBuf> {
    let standard = MOUNT_POINTS.iter().map(|path| Path::new(*path));
    let tmpfs = || spec.tmpfs.iter().map(|tmpfs| tmpfs.target.as_path());
    let binds = || spec.binds.iter().map(|bind| bind.target.as_path());
    let inside_another = |path: &Path| {
        let outer = MOUNT_POINTS.iter().map(|path| Path::new(*path));
        let mut outer = outer.chain(tmpfs()).chain(binds());
        outer.any(|other| path != other && path.starts_with(other))
    };
    standard
        .chain(tmpfs())
        .chain(binds())
        .filter(|path| !inside_another(path))
        .find(|path| {
            // As the cell itself would find it: links lead nowhere but into its root.
            open_path(root, path, ResolveFlags::IN_ROOT).is_err()
        })
        .map(Path::to_owned)
}

/// Where a path of a directory is, without opening the file; `resolve` as in openat2(2).
pub(crate) fn open_path(
    dir: impl AsFd,
    path: &Path,
    resolve: ResolveFlags,
) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    openat2(dir, path, flags, Mode::empty(), resolve)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::{Bind, Image, Tmpfs};

    #[test]
    fn links_where_a_runtime_mounts_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        let found = Found::at(root).unwrap();
        let mut spec = AppSpec::new(
            "a",
            model::EngineKind::Runc,
            Image::Rootfs(root.to_owned()),
            Path::new("/w"),
        );
        for name in ["dev", "proc", "sys", "cell"] {
            let at = root.join(name);
            check(&found, &spec).unwrap();
            for to in ["/etc", "../../etc", "nowhere"] {
                std::os::unix::fs::symlink(to, &at).unwrap();
                let why = check(&found, &spec).unwrap_err().to_string();
                assert!(why.starts_with(&format!("/{name} of the image")), "{why}");
                fs::remove_file(&at).unwrap();
            }
        }
        fs::create_dir_all(root.join("var/own")).unwrap();
        std::os::unix::fs::symlink("/run", root.join("var/run")).unwrap();
        let bind = |target: &str| Bind::new("/etc", target, false);
        spec.binds = vec![bind("/var/own/x/y"), bind("/dev/shm/x")];
        check(&found, &spec).unwrap();
        for target in ["/var/run", "/var/run/x"] {
            spec.binds = vec![bind(target)];
            let why = check(&found, &spec).unwrap_err().to_string();
            let begins = format!("/var/run of the image {} is a link", found.path().display());
            assert!(why.starts_with(&begins) && why.contains(target), "{why}");
        }
    }

    #[test]
    fn mount_points_are_looked_for_as_the_cell_would() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        let found = Found::at(root).unwrap();
        for name in ["proc", "dev", "sys", "run"] {
            fs::create_dir(root.join(name)).unwrap();
        }
        fs::create_dir(root.join("var")).unwrap();
        // Outside, this link leads to the host's directory, which is there.
        std::os::unix::fs::symlink("/run", root.join("var/run")).unwrap();
        let mut spec = AppSpec::new(
            "a",
            model::EngineKind::Embedded,
            Image::Rootfs(root.to_owned()),
            Path::new("/w"),
        );
        assert_eq!(missing(&found, &spec), None);
        let bind = |target: &str| Bind::new("/etc", target, false);
        spec.binds = vec![bind("/var/run")];
        assert_eq!(missing(&found, &spec), None);
        spec.binds = vec![bind("/var/run/lock")];
        assert_eq!(missing(&found, &spec), Some("/var/run/lock".into()));
        spec.binds = vec![bind("/dev/shm/x"), bind("/data/x")];
        spec.tmpfs = vec![Tmpfs {
            target: "/data".into(),
            size_bytes: 1,
        }];
        assert_eq!(missing(&found, &spec), Some("/data".into()));
    }
}
