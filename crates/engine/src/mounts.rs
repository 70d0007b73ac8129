//! Mounting, and removing the mounts that an engine left below a directory.

use std::ffi::{CStr, CString};
use std::fs;
use std::io;
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

/// Unmounts everything below `dir`, the newest first.
pub(crate) fn remove_below(dir: &Path) -> Result<(), String> {
    let text = fs::read_to_string("/proc/self/mountinfo").map_err(|error| error.to_string())?;
    let prefix = format!("{}/", dir.display());
    for point in text.lines().rev().filter_map(|line| line.split(' ').nth(4)) {
        let point = point.replace("\\040", " ");
        if !point.starts_with(&prefix) {
            continue;
        }
        let path = CString::new(point.as_str()).map_err(|error| error.to_string())?;
        // SAFETY: a path that ends in NUL.
        if unsafe { libc::umount2(path.as_ptr(), libc::MNT_DETACH | libc::UMOUNT_NOFOLLOW) } != 0 {
            let error = std::io::Error::last_os_error();
            if error.raw_os_error() != Some(libc::EINVAL) {
                return Err(format!("{point} cannot be unmounted: {error}"));
            }
        }
    }
    Ok(())
}
