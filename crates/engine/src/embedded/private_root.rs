//! The private root in which the runtime library works.
//!
//! The library insists on cgroups wherever it sees some mounted; an unprivileged user may make none, on version
//! 1 not at all, and root's are made faster elsewhere. So the child enters a mount namespace (without root's
//! powers in a user namespace, where it is root over nothing but itself) and moves into a file system that holds
//! only what making this one container takes: `/proc`, `/dev` and the cell's own directories. There is nothing
//! of cgroups in it, so none are touched.

use std::fs;
use std::io;
use std::path::Path;

use crate::mounts::mount;

/// Enters it; `state` and the files and directories `seen` keep their paths. A directory stands before what is in it.
pub(crate) fn enter(state: &Path, seen: &[&Path]) -> Result<(), String> {
    // SAFETY: no arguments, cannot fail.
    let (uid, gid) = unsafe { (libc::geteuid(), libc::getegid()) };
    let root = state.join("root");
    fs::create_dir_all(&root).map_err(|error| format!("{}: {error}", root.display()))?;

    if uid == 0 {
        // SAFETY: this process has one thread.
        checked("make a mount namespace", unsafe {
            libc::unshare(libc::CLONE_NEWNS)
        })?;
    } else {
        // SAFETY: this process has one thread.
        checked("make a user namespace", unsafe {
            libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS)
        })?;
        for (file, text) in [
            ("setgroups", "deny".to_owned()),
            ("uid_map", format!("0 {uid} 1")),
            ("gid_map", format!("0 {gid} 1")),
        ] {
            fs::write(format!("/proc/self/{file}"), text)
                .map_err(|error| format!("/proc/self/{file}: {error}"))?;
        }
    }

    mount(None, Path::new("/"), None, libc::MS_REC | libc::MS_PRIVATE)?;
    mount(
        Some(Path::new("tmpfs")),
        &root,
        Some(c"tmpfs"),
        libc::MS_NOSUID,
    )?;
    for tree in [Path::new("/proc"), Path::new("/dev")] {
        bind(&root, tree, true)?;
    }
    // A directory for the library to look at: no cgroup file system is mounted there.
    let groups = root.join("sys/fs/cgroup");
    fs::create_dir_all(&groups).map_err(|error| format!("{}: {error}", groups.display()))?;
    bind(&root, state, false)?;
    for path in seen {
        bind(&root, path, true)?;
    }

    std::env::set_current_dir(&root).map_err(|error| format!("{}: {error}", root.display()))?;
    // SAFETY: two strings that end in NUL. The old root ends up on top of the new one and is detached from it.
    checked("move into the private root", unsafe {
        libc::syscall(libc::SYS_pivot_root, c".".as_ptr(), c".".as_ptr()) as i32
    })?;
    // SAFETY: a string that ends in NUL.
    checked("leave the old root", unsafe {
        libc::umount2(c".".as_ptr(), libc::MNT_DETACH)
    })?;
    std::env::set_current_dir("/").map_err(|error| error.to_string())
}

/// Shows `path` at the same place below `root`, unless it is there already.
fn bind(root: &Path, path: &Path, whole_tree: bool) -> Result<(), String> {
    let place = root.join(path.strip_prefix("/").unwrap_or(path));
    if place.exists() {
        return Ok(());
    }
    let made = if path.is_dir() {
        fs::create_dir_all(&place)
    } else {
        (place.parent().map_or(Ok(()), fs::create_dir_all))
            .and_then(|()| fs::File::create(&place).map(|_| ()))
    };
    made.map_err(|error| format!("{}: {error}", place.display()))?;
    let recursive = if whole_tree { libc::MS_REC } else { 0 };
    mount(Some(path), &place, None, libc::MS_BIND | recursive)
}

fn checked(doing: &str, answer: i32) -> Result<(), String> {
    if answer == 0 {
        Ok(())
    } else {
        Err(format!("cannot {doing}: {}", io::Error::last_os_error()))
    }
}
