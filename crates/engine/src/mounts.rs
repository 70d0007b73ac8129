//! Mounting, and removing the mounts that an engine left below a directory.

use std::ffi::{CStr, CString};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// mount(2) without options.
pub(crate) fn mount(
    source: Option<&Path>,
    target: &Path,
    kind: Option<&CStr>,
    flags: libc::c_ulong,
) -> Result<(), String> {
    mount_with(source, target, kind, flags, None)
}

/// mount(2).
pub(crate) fn mount_with(
    source: Option<&Path>,
    target: &Path,
    kind: Option<&CStr>,
    flags: libc::c_ulong,
    options: Option<&str>,
) -> Result<(), String> {
    let text =
        |path: &Path| CString::new(path.as_os_str().as_bytes()).map_err(|error| error.to_string());
    let source = source.map(text).transpose()?;
    let place = text(target)?;
    let options = options
        .map(|options| text(Path::new(options)))
        .transpose()?;
    let pointer =
        |text: &Option<CString>| text.as_ref().map_or(std::ptr::null(), |text| text.as_ptr());
    // SAFETY: pointers to strings that end in NUL, or null where the call allows it.
    let answer = unsafe {
        libc::mount(
            pointer(&source),
            place.as_ptr(),
            kind.map_or(std::ptr::null(), CStr::as_ptr),
            flags,
            pointer(&options).cast(),
        )
    };
    if answer == 0 {
        Ok(())
    } else {
        Err(format!(
            "cannot mount {}: {}",
            target.display(),
            io::Error::last_os_error()
        ))
    }
}

/// Mounts a source of the host that was resolved before, as it is now: by its descriptor, so that nobody can put a link in its way
/// between the look at it and the mount.
///
/// # Errors
/// When a part of its path has become a link since.
pub(crate) fn bind_source(source: &Path, place: &Path, flags: libc::c_ulong) -> Result<(), String> {
    let failed = |error: io::Error| match error.raw_os_error() {
        Some(libc::ELOOP) => format!(
            "the mount's source {} leads elsewhere since it was looked at: a part of it has become a link",
            source.display()
        ),
        _ => format!("the mount's source {}: {error}", source.display()),
    };
    let opened = open_without_links(source, libc::O_PATH).map_err(failed)?;
    let about = opened.metadata().map_err(failed)?;
    make_place(place, about.is_dir())?;
    let way = format!("/proc/self/fd/{}", opened.as_raw_fd());
    mount(Some(Path::new(&way)), place, None, libc::MS_BIND | flags)
}

/// Makes what a directory, or anything else, is mounted on.
pub(crate) fn make_place(place: &Path, is_dir: bool) -> Result<(), String> {
    let made = if is_dir {
        fs::create_dir_all(place)
    } else {
        (place.parent().map_or(Ok(()), fs::create_dir_all))
            .and_then(|()| File::create(place).map(|_| ()))
    };
    made.map_err(|error| format!("{}: {error}", place.display()))
}

/// Unmounts everything below `dir`, the newest first.
///
/// What lies below may belong to a user, who can mount there (FUSE) and then put a link to elsewhere in the way: no link is
/// followed, neither at the end nor before.
pub(crate) fn remove_below(dir: &Path) -> Result<(), String> {
    let text = fs::read_to_string("/proc/self/mountinfo").map_err(|error| error.to_string())?;
    let prefix = format!("{}/", dir.display());
    for point in text.lines().rev().filter_map(|line| line.split(' ').nth(4)) {
        let point = point.replace("\\040", " ");
        if point.starts_with(&prefix) {
            unmount(Path::new(&point))
                .map_err(|error| format!("{point} cannot be unmounted: {error}"))?;
        }
    }
    Ok(())
}

/// Unmounts what is mounted at a path without links; fine if nothing is.
fn unmount(point: &Path) -> io::Result<()> {
    let opened = match open_without_links(point, libc::O_PATH) {
        Ok(opened) => opened,
        // Gone with one that was above it.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let way = CString::new(format!("/proc/self/fd/{}", opened.as_raw_fd()))?;
    // SAFETY: a path that ends in NUL.
    match unsafe { libc::umount2(way.as_ptr(), libc::MNT_DETACH) } {
        0 => Ok(()),
        _ => match io::Error::last_os_error() {
            error if error.raw_os_error() == Some(libc::EINVAL) => Ok(()),
            error => Err(error),
        },
    }
}

/// Opens a path none of whose parts is a link; never waits for the other end of a pipe.
///
/// # Errors
/// ELOOP where a part is a link.
pub(crate) fn open_without_links(path: &Path, flags: i32) -> io::Result<File> {
    let text = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: zeroes are a valid open_how.
    let mut how: libc::open_how = unsafe { std::mem::zeroed() };
    let extra = if flags & libc::O_PATH == 0 {
        libc::O_NONBLOCK
    } else {
        0
    };
    how.flags = (flags | extra | libc::O_CLOEXEC) as u64;
    how.resolve = libc::RESOLVE_NO_SYMLINKS;
    // SAFETY: a path that ends in NUL and a structure of the given size; a descriptor that is not negative is ours.
    unsafe {
        match libc::syscall(
            libc::SYS_openat2,
            libc::AT_FDCWD,
            text.as_ptr(),
            &raw const how,
            size_of::<libc::open_how>(),
        ) {
            fd if fd >= 0 => Ok(File::from_raw_fd(fd as i32)),
            _ => Err(io::Error::last_os_error()),
        }
    }
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
        open_without_links(&dir.join("there/file"), libc::O_RDONLY).unwrap();
        for path in ["link", "link/file"] {
            let refused = open_without_links(&dir.join(path), libc::O_PATH).unwrap_err();
            assert_eq!(refused.raw_os_error(), Some(libc::ELOOP), "{path}");
        }
    }

    #[test]
    fn a_source_that_has_become_a_link_is_not_mounted() {
        let dir = tempfile::tempdir().unwrap();
        let dir = fs::canonicalize(dir.path()).unwrap();
        fs::create_dir(dir.join("secret")).unwrap();
        symlink(dir.join("secret"), dir.join("shared")).unwrap();
        let why = bind_source(&dir.join("shared"), &dir.join("place"), 0).unwrap_err();
        assert!(why.contains("has become a link"), "{why}");
        assert!(!dir.join("place").exists());
    }

    #[test]
    fn a_mount_is_not_undone_through_a_link() {
        // SAFETY: no arguments, cannot fail.
        if unsafe { libc::geteuid() } != 0 {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let dir = fs::canonicalize(dir.path()).unwrap();
        let (theirs, own) = (dir.join("theirs"), dir.join("own"));
        for made in [&theirs, &own] {
            fs::create_dir(made).unwrap();
        }
        // Not every machine that tests lets one mount.
        if mount(None, &theirs, Some(c"tmpfs"), 0).is_err() {
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
