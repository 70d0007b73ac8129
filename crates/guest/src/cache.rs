//! What was downloaded and unpacked for guests: files and directories by the SHA-256 of what they came from, complete or not there.

use std::env;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::GuestError;

/// How long another timecell may take to download what both need.
const PATIENCE: Duration = Duration::from_secs(1800);

/// Free space that a kernel may take, and what each package that is asked for may take with all that it needs: downloaded, unpacked, and
/// in a guest's system; MiB.
const KERNEL_MIB: u64 = 256;
const PACKAGE_MIB: u64 = 48;

/// The directory of guests' kernels and packages.
#[derive(Debug, Clone)]
pub struct Cache {
    dir: PathBuf,
}

/// The cache while nobody else adds to it.
#[derive(Debug)]
pub struct Filling<'c> {
    cache: &'c Cache,
    _lock: File,
}

impl Cache {
    /// The user's: `TIMECELL_GUEST_CACHE`, else `timecell/guests` below `XDG_CACHE_HOME` or `~/.cache`.
    ///
    /// # Errors
    /// If none of the variables is set.
    pub fn of_user() -> Result<Cache, GuestError> {
        let set = |name: &str| {
            env::var_os(name)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
        };
        let below = || set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")));
        let dir = set("TIMECELL_GUEST_CACHE").or_else(|| Some(below()?.join("timecell/guests")));
        let Some(dir) = dir else {
            return Err(GuestError::unmet(
                "there is no place to keep kernels",
                "set TIMECELL_GUEST_CACHE to a directory",
            ));
        };
        Ok(Cache { dir })
    }

    /// A cache in this directory, which is made with the first thing in it.
    pub fn at(dir: &Path) -> Cache {
        Cache {
            dir: dir.to_owned(),
        }
    }

    /// Where it is.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The path of something in the cache.
    pub fn path(&self, kind: &str, name: &str) -> PathBuf {
        self.dir.join(kind).join(name)
    }

    /// The path of something in the cache, if it is there.
    pub fn found(&self, kind: &str, name: &str) -> Option<PathBuf> {
        Some(self.path(kind, name)).filter(|path| path.exists())
    }

    /// A file without a name on the disk of the cache, which is gone with its last user.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn nameless(&self) -> Result<File, GuestError> {
        self.make(&self.dir)?;
        tempfile::tempfile_in(&self.dir).map_err(GuestError::file(&self.dir, "make a file"))
    }

    /// Waits until nobody else adds to the cache, and removes what those who were killed have left.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn fill(&self) -> Result<Filling<'_>, GuestError> {
        self.make(&self.dir)?;
        let lock = host::lock::take(&self.dir, "lock", PATIENCE);
        let lock = lock.map_err(GuestError::file(&self.dir, "lock the cache"))?;
        let unfinished = self.dir.join("tmp");
        if unfinished.exists() {
            fs::remove_dir_all(&unfinished)
                .map_err(GuestError::file(&unfinished, "remove what is unfinished"))?;
        }
        Ok(Filling {
            cache: self,
            _lock: lock,
        })
    }

    /// Fails unless the disk of the cache has room for a kernel and so many packages: apt waits for ever on one that is full.
    ///
    /// # Errors
    /// If it has not, or does not say.
    pub fn room(&self, packages: usize) -> Result<(), GuestError> {
        let takes = KERNEL_MIB + PACKAGE_MIB * packages as u64;
        let about = rustix::fs::statvfs(&self.dir)
            .map_err(|error| GuestError::file(&self.dir, "ask for its free space")(error.into()))?;
        let free = about.f_bavail.saturating_mul(about.f_frsize) >> 20;
        if free >= takes {
            return Ok(());
        }
        Err(GuestError::unmet(
            format!(
                "{}: the disk has {free} MiB free, and a kernel with its packages takes up to {takes}",
                self.dir.display()
            ),
            "make room, or set TIMECELL_GUEST_CACHE to a directory elsewhere",
        ))
    }

    fn make(&self, dir: &Path) -> Result<(), GuestError> {
        host::writer::create_dir_all(dir).map_err(GuestError::file(dir, "make the directory"))
    }
}

impl Filling<'_> {
    /// A directory for what is unfinished; it is removed when dropped.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn unfinished(&self) -> Result<TempDir, GuestError> {
        let dir = self.cache.dir.join("tmp");
        self.cache.make(&dir)?;
        tempfile::tempdir_in(&dir).map_err(GuestError::file(&dir, "make a directory"))
    }

    /// Moves what is complete to its place; what is there already stays.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn keep(&self, complete: &Path, kind: &str, name: &str) -> Result<PathBuf, GuestError> {
        let path = self.cache.path(kind, name);
        self.cache.make(&self.cache.dir.join(kind))?;
        match fs::rename(complete, &path) {
            Err(_) if path.is_dir() => {}
            moved => moved.map_err(GuestError::file(&path, "keep it"))?,
        }
        Ok(path)
    }
}

/// The SHA-256 of what is read, in hexadecimal digits.
///
/// # Errors
/// Those of reading.
pub fn digest(mut from: impl Read) -> io::Result<String> {
    let mut sum = Sha256::new();
    io::copy(&mut from, &mut sum)?;
    Ok(hexadecimal(sum))
}

/// The digits of a finished sum.
pub fn hexadecimal(sum: Sha256) -> String {
    sum.finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unfinished_is_not_there_and_does_not_stay() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(&dir.path().join("made"));
        let filling = cache.fill().unwrap();
        let unfinished = filling.unfinished().unwrap();
        fs::write(unfinished.path().join("a"), "half").unwrap();
        assert_eq!(cache.found("files", "a"), None);
        let kept = filling
            .keep(&unfinished.path().join("a"), "files", "a")
            .unwrap();
        assert_eq!(cache.found("files", "a"), Some(kept));
        // As after `kill -9`.
        let left = unfinished.keep();
        drop(filling);
        let _filling = cache.fill().unwrap();
        assert!(!left.exists());
    }

    #[test]
    fn digests_are_those_of_sha256sum() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(digest(&b""[..]).unwrap(), empty);
    }
}
