//! Removing mounts that an engine left below a directory.

use std::ffi::CString;
use std::fs;
use std::path::Path;

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
