//! Texts and paths of the cell that a specification gives: whether they are allowed.

use std::path::{Component, Path};

use crate::error::{Result, refused};

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
}
