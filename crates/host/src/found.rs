//! Files and directories of the host that are looked up once: all later checks, reads and mounts are of the found one, by its descriptor, even if
//! names are exchanged meanwhile.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2, readlinkat};
use rustix::io::Errno;

use crate::ground;
use crate::handover::own_uid;
use crate::writer::{MOST_LINKS, parts};

/// A file or directory, opened without its contents (`O_PATH`).
#[derive(Debug)]
pub struct Found {
    file: File,
    path: PathBuf,
    is_own: bool,
}

impl Found {
    /// Follows a path. Links are followed where nobody else can put one; `..` leads back on the way that was taken.
    ///
    /// # Errors
    /// When a part of the way is a link that another user made, or can put there (`InvalidInput`); or on an error of the system.
    pub fn at(path: &Path) -> io::Result<Found> {
        let user = own_uid();
        let mut way = vec![Found::root()?];
        let mut left = parts(&std::path::absolute(path)?);
        let mut links = 0;
        while let (Some(part), Some(dir)) = (left.pop(), way.last()) {
            if part.as_os_str() == ".." {
                way.truncate((way.len() - 1).max(1));
                continue;
            }
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let file = File::from(openat(&dir.file, &part, flags, Mode::empty())?);
            let about = file.metadata()?;
            let found = Found {
                path: dir.path.join(&part),
                is_own: dir.is_own && ground::stays(user, &dir.metadata()?, &about),
                file,
            };
            if !about.is_symlink() {
                way.push(found);
                continue;
            }
            if !found.is_own {
                let why = format!(
                    "{} is a link that another user could have put there; name the place to which it is meant to lead",
                    found.path.display()
                );
                return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
            }
            links += 1;
            if links > MOST_LINKS {
                return Err(Errno::LOOP.into());
            }
            let to = readlinkat(&found.file, "", Vec::new())?.into_bytes();
            let to = PathBuf::from(std::ffi::OsString::from_vec(to));
            if to.is_absolute() {
                way.truncate(1);
            }
            left.extend(parts(&to));
        }
        let mut found = way.pop().ok_or(Errno::NOENT)?;
        // Names in a sticky directory are anybody's.
        let about = found.metadata()?;
        found.is_own &= !about.is_dir() || ground::written_by(user, &about).is_none();
        Ok(found)
    }

    fn root() -> io::Result<Found> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        Ok(Found {
            file: openat(CWD, "/", flags, Mode::empty())?.into(),
            path: PathBuf::from("/"),
            is_own: true,
        })
    }

    /// One that another process has looked up and handed down.
    ///
    /// # Errors
    /// When it is not open, or there is no `/proc`.
    pub fn handed(file: OwnedFd, is_own: bool) -> io::Result<Found> {
        let file = File::from(file);
        Ok(Found {
            path: std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))?,
            file,
            is_own,
        })
    }

    /// Follows a relative path beneath this directory, without links.
    ///
    /// # Errors
    /// When it leads out, or a part of it is a link or not there.
    pub fn beneath(&self, path: &Path) -> io::Result<Found> {
        Ok(Found {
            file: self.open_beneath(path, OFlags::PATH)?,
            path: self.path.join(path),
            is_own: false,
        })
    }

    /// Opens a file beneath this directory, without links.
    ///
    /// # Errors
    /// As [`Found::beneath`].
    pub fn open_beneath(&self, path: &Path, flags: OFlags) -> io::Result<File> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let flags = flags | OFlags::CLOEXEC;
        Ok(openat2(&self.file, path, flags, Mode::empty(), resolve)?.into())
    }

    /// Its path on the host, without links, when it was found: for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A path that leads to it in this process, even after its name has changed.
    pub fn way(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.file.as_raw_fd()).into()
    }

    /// Its metadata, by the descriptor.
    ///
    /// # Errors
    /// Those of the system.
    pub fn metadata(&self) -> io::Result<std::fs::Metadata> {
        self.file.metadata()
    }

    /// Whether nobody else can put something else in its place, nor change it where it is a directory; see [`ground`].
    pub fn is_own(&self) -> bool {
        self.is_own
    }
}

impl AsFd for Found {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Read;
    use std::os::unix::fs::{PermissionsExt, lchown, symlink};

    #[test]
    fn the_file_that_was_found_is_the_one_that_is_used() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        fs::create_dir(dir.join("there")).unwrap();
        fs::write(dir.join("there/file"), "meant").unwrap();
        symlink("../there", dir.join("there/link")).unwrap();
        let found = Found::at(&dir.join("there/../there/link/./link/file")).unwrap();
        assert_eq!(found.path(), dir.join("there/file"));
        let there = Found::at(&dir.join("there")).unwrap();
        fs::rename(dir.join("there"), dir.join("aside")).unwrap();
        fs::create_dir(dir.join("there")).unwrap();
        fs::write(dir.join("there/file"), "another").unwrap();
        assert_eq!(fs::read(found.way()).unwrap(), b"meant");
        let beneath = |path: &str| there.open_beneath(Path::new(path), OFlags::RDONLY);
        let mut text = String::new();
        beneath("file").unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "meant");
        for path in ["link/file", "../there/file", "/etc/passwd"] {
            beneath(path).unwrap_err();
        }
        symlink("loop", dir.join("loop")).unwrap();
        let error = Found::at(&dir.join("loop")).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ELOOP));
        assert!(Found::at(&dir.join("nothing")).is_err());
    }

    #[test]
    fn links_of_others_are_not_followed() {
        if own_uid() != 0 {
            return;
        }
        const NOBODY: u32 = 65_534;
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        fs::create_dir_all(dir.join("theirs/deep")).unwrap();
        fs::write(dir.join("theirs/file"), "").unwrap();
        symlink("theirs", dir.join("ours")).unwrap();
        symlink("theirs", dir.join("given")).unwrap();
        symlink("deep", dir.join("theirs/link")).unwrap();
        let is_own = |path: &str| Found::at(&dir.join(path)).map(|found| found.is_own());
        assert!(is_own("ours/link").unwrap());
        lchown(dir.join("theirs"), Some(NOBODY), None).unwrap();
        lchown(dir.join("given"), Some(NOBODY), None).unwrap();
        // Only the name is another's to decide.
        assert!(!is_own("ours/deep").unwrap() && !is_own("theirs/file").unwrap());
        for path in ["given", "given/deep", "theirs/link", "ours/link"] {
            let why = is_own(path).unwrap_err().to_string();
            assert!(why.contains("is a link that another user could"), "{why}");
        }
        // Where everybody may make names, but not exchange those of others.
        lchown(dir.join("theirs"), Some(0), None).unwrap();
        fs::set_permissions(dir.join("theirs"), fs::Permissions::from_mode(0o1777)).unwrap();
        assert!(is_own("theirs/deep").unwrap() && is_own("theirs/link").unwrap());
        assert!(is_own("theirs/file").unwrap() && !is_own("theirs").unwrap());
        lchown(dir.join("theirs/file"), Some(NOBODY), None).unwrap();
        assert!(!is_own("theirs/file").unwrap());
    }
}
