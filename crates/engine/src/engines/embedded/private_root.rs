//! The private root in which the runtime library works.
//!
//! The library insists on cgroups wherever it sees some mounted; an unprivileged user may make none, on version
//! 1 not at all, and root's are made faster elsewhere. So the child enters a mount namespace (without root's
//! powers in a user namespace, where it is root over nothing but itself) and moves into a file system that holds
//! only what making this one container takes: `/proc`, `/dev` and the cell's own directories. There is nothing
//! of cgroups in it, so none are touched.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::mounts::{bind_source, make_place, mount};

/// A file or directory of the host that keeps its path in the private root.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Seen {
    pub(crate) path: PathBuf,
    /// Whether a link on the way is followed.
    pub(crate) follows: bool,
}

impl Seen {
    pub(crate) fn following(path: impl Into<PathBuf>) -> Seen {
        Seen {
            path: path.into(),
            follows: true,
        }
    }
}

/// Enters it; `state` and what is `seen` keep their paths. A directory stands before what is in it.
pub(crate) fn enter(state: &Path, seen: &[Seen]) -> Result<(), String> {
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
    let mut shown = Vec::new();
    for tree in ["/proc", "/dev"] {
        bind(&root, &Seen::following(tree), true)?;
        shown.push(PathBuf::from(tree));
    }
    // A directory for the library to look at: no cgroup file system is mounted there.
    let groups = root.join("sys/fs/cgroup");
    fs::create_dir_all(&groups).map_err(|error| format!("{}: {error}", groups.display()))?;
    bind(&root, &Seen::following(state), false)?;
    shown.push(state.to_owned());
    for one in seen {
        // What is in a directory that is shown is there with it. Nothing is made in it, nor followed: it may be a cell's.
        if !shown.iter().any(|outer| one.path.starts_with(outer)) {
            bind(&root, one, true)?;
            shown.push(one.path.clone());
        }
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

/// Shows it at the same place below `root`, unless something is there already.
fn bind(root: &Path, seen: &Seen, whole_tree: bool) -> Result<(), String> {
    let path = &seen.path;
    let place = root.join(path.strip_prefix("/").unwrap_or(path));
    if place.exists() {
        return Ok(());
    }
    let recursive = if whole_tree { libc::MS_REC } else { 0 };
    if !seen.follows {
        return bind_source(path, &place, recursive);
    }
    make_place(&place, path.is_dir())?;
    mount(Some(path), &place, None, libc::MS_BIND | recursive)
}

fn checked(doing: &str, answer: i32) -> Result<(), String> {
    if answer == 0 {
        Ok(())
    } else {
        Err(format!("cannot {doing}: {}", io::Error::last_os_error()))
    }
}
