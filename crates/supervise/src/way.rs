//! How a path is resolved: the directories in which names are looked up, links included, as the kernel does it.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use model::mission::Way;

/// The most links that the kernel follows in one path.
const MOST_LINKS: u32 = 40;

/// The way of a path.
///
/// # Errors
/// When it does not lead to anything.
pub(crate) fn of(path: &Path) -> io::Result<Way> {
    let path = std::path::absolute(path)?;
    let mut through: Vec<PathBuf> = Vec::new();
    let mut at = PathBuf::from("/");
    // The parts still to be followed, the next one last.
    let mut parts = parts(&path);
    let mut links = 0;
    while let Some(part) = parts.pop() {
        match part.as_bytes() {
            b"/" => at = PathBuf::from("/"),
            b"." => {}
            b".." => {
                at.pop();
            }
            _ => {
                let next = at.join(&part);
                let about = fs::symlink_metadata(&next)?;
                if !through.contains(&at) {
                    through.push(at.clone());
                }
                if !about.is_symlink() {
                    at = next;
                    continue;
                }
                links += 1;
                if links > MOST_LINKS {
                    return Err(io::Error::from_raw_os_error(libc::ELOOP));
                }
                parts.extend(self::parts(&fs::read_link(&next)?));
            }
        }
    }
    Ok(Way { through, end: at })
}

/// The parts of a path, the first one last.
fn parts(path: &Path) -> Vec<OsString> {
    (path.components().rev())
        .map(|part| part.as_os_str().to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_are_followed_and_where_they_stand_is_told() {
        let dir = tempfile::tempdir().unwrap();
        // The directory for temporary files may itself be reached through a link.
        let dir = fs::canonicalize(dir.path()).unwrap();
        for made in ["a/b", "real/sub"] {
            fs::create_dir_all(dir.join(made)).unwrap();
        }
        symlink("../../real", dir.join("a/b/relative")).unwrap();
        symlink(dir.join("a/b/relative"), dir.join("absolute")).unwrap();
        symlink("circle", dir.join("circle")).unwrap();
        let ends = |path: &str| of(&dir.join(path)).unwrap().end;
        for path in ["real", "a/b/relative", "absolute", "a/../absolute/."] {
            assert_eq!(ends(path), dir.join("real"), "{path}");
        }
        assert_eq!(ends("absolute/sub/.."), dir.join("real"));
        let through = of(&dir.join("absolute/sub")).unwrap().through;
        for (stands, name) in [
            ("a/b", true),
            ("a", true),
            ("real", true),
            ("real/sub", false),
        ] {
            assert_eq!(through.contains(&dir.join(stands)), name, "{stands}");
        }
        assert_eq!(through.iter().filter(|known| **known == dir).count(), 1);
        assert!(of(&dir.join("circle")).is_err());
        assert!(of(&dir.join("absent")).is_err());
        assert!(of(Path::new("/")).unwrap().through.is_empty());
    }

    #[test]
    fn links_inside_sysfs_end_where_the_kernel_has_them() {
        let net = Path::new("/sys/class/net/lo");
        if let Ok(real) = fs::canonicalize(net) {
            assert_eq!(of(net).unwrap().end, real);
        }
    }
}
