//! The private root in which the runtime library works.
//!
//! The library insists on cgroups wherever it sees some mounted; an unprivileged user may make none, on version
//! 1 not at all, and root's are made faster elsewhere. So the child enters a mount namespace (without root's
//! powers in a user namespace, where it is root over nothing but itself) and moves into a file system that holds
//! only the needs of this one container's making: `/proc`, `/dev` and the cell's own directories. There is nothing of
//! cgroups in it, so none are touched.

use std::fs;
use std::path::{Path, PathBuf};

use host::file::at;
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, unmount};
use rustix::process::{getegid, geteuid, pivot_root};
use rustix::thread::UnshareFlags;

use crate::error::{Doing, Result};
use crate::mounts::{keep_mounts_private, make_place, mount, unshare};

/// Enters it; `state` and `seen` keep their paths. A directory comes before its contents.
pub(crate) fn enter(state: &Path, seen: &[&Path]) -> Result<()> {
    let (uid, gid) = (geteuid(), getegid());
    let root = state.join("root");
    fs::create_dir_all(&root).map_err(at(&root))?;

    if uid.is_root() {
        checked("make a mount namespace", unshare(UnshareFlags::NEWNS))?;
    } else {
        let flags = UnshareFlags::NEWUSER | UnshareFlags::NEWNS;
        checked("make a user namespace", unshare(flags))?;
        for (file, text) in [
            ("setgroups", "deny".to_owned()),
            ("uid_map", format!("0 {uid} 1")),
            ("gid_map", format!("0 {gid} 1")),
        ] {
            fs::write(format!("/proc/self/{file}"), text).doing(|| format!("/proc/self/{file}"))?;
        }
    }

    checked("mount /", keep_mounts_private())?;
    mount(
        Some(Path::new("tmpfs")),
        &root,
        Some(c"tmpfs"),
        MountFlags::NOSUID,
    )?;
    let mut shown = Vec::new();
    for tree in ["/proc", "/dev"] {
        bind(&root, Path::new(tree), true)?;
        shown.push(PathBuf::from(tree));
    }
    // A directory for the library to look at: no cgroup file system is mounted there.
    let groups = root.join("sys/fs/cgroup");
    fs::create_dir_all(&groups).map_err(at(&groups))?;
    bind(&root, state, false)?;
    shown.push(state.to_owned());
    for one in seen {
        // Contents of a shown directory are there with it. Nothing is made in it, nor followed: it may be a cell's.
        if !shown.iter().any(|outer| one.starts_with(outer)) {
            bind(&root, one, true)?;
            shown.push((*one).to_owned());
        }
    }

    std::env::set_current_dir(&root).map_err(at(&root))?;
    // The old root ends up on top of the new one and is detached from it.
    checked("move into the private root", pivot_root(".", "."))?;
    checked("leave the old root", unmount(".", UnmountFlags::DETACH))?;
    Ok(std::env::set_current_dir("/")?)
}

/// Shows it at the same place below `root`, unless something is there already.
fn bind(root: &Path, path: &Path, whole_tree: bool) -> Result<()> {
    let place = root.join(path.strip_prefix("/").unwrap_or(path));
    if place.exists() {
        return Ok(());
    }
    let recursive = match whole_tree {
        true => MountFlags::REC,
        false => MountFlags::empty(),
    };
    make_place(&place, path.is_dir())?;
    mount(Some(path), &place, None, MountFlags::BIND | recursive)
}

fn checked(doing: &str, answer: Result<(), Errno>) -> Result<()> {
    answer.doing(|| format!("cannot {doing}"))
}
