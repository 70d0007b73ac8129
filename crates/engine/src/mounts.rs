//! Mounting, and removing the mounts that an engine left below a directory.

use std::ffi::{CStr, CString};
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

use host::file::at;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags, mount_change};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use crate::error::{Doing, Result};

/// New namespaces for the calling thread.
pub(crate) fn unshare(flags: UnshareFlags) -> Result<(), Errno> {
    // SAFETY: nobody here asks for a table of descriptors of its own.
    unsafe { unshare_unsafe(flags) }
}

/// Nothing that is mounted in this mount namespace from now on is seen in another.
pub(crate) fn keep_mounts_private() -> Result<(), Errno> {
    mount_change(
        "/",
        MountPropagationFlags::REC | MountPropagationFlags::PRIVATE,
    )
}

/// mount(2) without options.
pub(crate) fn mount(
    source: Option<&Path>,
    target: &Path,
    kind: Option<&CStr>,
    flags: MountFlags,
) -> Result<()> {
    mount_with(source, target, kind, flags, None)
}

/// mount(2).
pub(crate) fn mount_with(
    source: Option<&Path>,
    target: &Path,
    kind: Option<&CStr>,
    flags: MountFlags,
    options: Option<&str>,
) -> Result<()> {
    let doing = || format!("cannot mount {}", target.display());
    let options = options.map(CString::new).transpose().doing(doing)?;
    rustix::mount::mount(
        source.unwrap_or(Path::new("")),
        target,
        kind.unwrap_or(c""),
        flags,
        options.as_deref(),
    )
    .doing(doing)
}

/// Makes the mount point of a directory, or of anything else.
pub(crate) fn make_place(place: &Path, is_dir: bool) -> Result<()> {
    let made = if is_dir {
        fs::create_dir_all(place)
    } else {
        (place.parent().map_or(Ok(()), fs::create_dir_all))
            .and_then(|()| File::create(place).map(|_| ()))
    };
    Ok(made.map_err(at(place))?)
}

/// Unmounts everything below `dir`, the newest first.
///
/// Mount points below may belong to a user, who can mount there (FUSE) and then put a link to elsewhere in the way: no link
/// is followed, neither at the end nor before.
pub(crate) fn remove_below(dir: &Path) -> Result<()> {
    let text = host::file::text("/proc/self/mountinfo")?;
    // Mount points are listed without links.
    let dir = match dir.canonicalize() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found.doing(|| format!("{}", dir.display()))?,
    };
    for mount in host::mounts::of(&text).rev() {
        let point = mount.point;
        if point != dir && point.starts_with(&dir) {
            unmount(&point).doing(|| format!("{} cannot be unmounted", point.display()))?;
        }
    }
    Ok(())
}

/// Unmounts the mount at a path without links; fine if there is none.
fn unmount(point: &Path) -> io::Result<()> {
    let opened = match open_without_links(point, OFlags::PATH) {
        Ok(opened) => opened,
        // Gone with one that was above it.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let way = format!("/proc/self/fd/{}", opened.as_raw_fd());
    match rustix::mount::unmount(way, UnmountFlags::DETACH) {
        Err(error) if error != Errno::INVAL => Err(error.into()),
        _ => Ok(()),
    }
}

/// Opens a path none of whose parts is a link; never waits for the other end of a pipe.
///
/// # Errors
/// ELOOP where a part is a link.
pub(crate) fn open_without_links(path: &Path, flags: OFlags) -> io::Result<File> {
    let waits_for_none = match flags.contains(OFlags::PATH) {
        true => OFlags::empty(),
        false => OFlags::NONBLOCK,
    };
    let flags = flags | waits_for_none | OFlags::CLOEXEC;
    let opened = openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?;
    Ok(opened.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_link_on_the_way_or_at_the_end_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        // The directory for temporary files may itself be reached through a link.
        let dir = fs::canonicalize(dir.path()).unwrap();
        fs::create_dir(dir.join("there")).unwrap();
        fs::write(dir.join("there/file"), "").unwrap();
        symlink(dir.join("there"), dir.join("link")).unwrap();
        open_without_links(&dir.join("there/file"), OFlags::RDONLY).unwrap();
        for path in ["link", "link/file"] {
            let refused = open_without_links(&dir.join(path), OFlags::PATH).unwrap_err();
            assert_eq!(refused.raw_os_error(), Some(libc::ELOOP), "{path}");
        }
    }

    #[test]
    fn a_mount_is_not_undone_through_a_link() {
        if !crate::programs::is_root() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let dir = fs::canonicalize(dir.path()).unwrap();
        let (theirs, own) = (dir.join("theirs"), dir.join("own"));
        for made in [&theirs, &own] {
            fs::create_dir(made).unwrap();
        }
        // Not every machine that tests lets one mount.
        if mount(None, &theirs, Some(c"tmpfs"), MountFlags::empty()).is_err() {
            return;
        }
        fs::write(theirs.join("mark"), "").unwrap();
        symlink(&dir, own.join("way")).unwrap();
        let refused = unmount(&own.join("way/theirs")).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::ELOOP));
        assert!(theirs.join("mark").exists());
        remove_below(&dir).unwrap();
        assert!(!theirs.join("mark").exists());
        unmount(&theirs).unwrap();
    }
}
