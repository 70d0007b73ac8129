//! The lock of a mission's name: one supervisor of that name on the machine, regardless of its directory.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::LedgerError;
use crate::lock_file;

/// Longest text that is read from a lock's file, bytes.
const MOST_BYTES: u64 = 8192;

/// How long to ask for a lock that is taken: a process that removes the remains of a name has it for a moment.
const PATIENCE: Duration = Duration::from_millis(200);
/// How often, meanwhile.
const AGAIN: Duration = Duration::from_millis(5);

/// Keeps a second supervisor from a mission's name. Held as long as it lives; gone with the process, however it ends. Its
/// text stays until the reboot, so that cells that outlive their supervisor are found from another directory.
#[derive(Debug)]
pub struct NameLock {
    file: Option<File>,
    path: Option<PathBuf>,
}

impl NameLock {
    /// Takes the name for a mission whose directory is `dir`.
    ///
    /// Without root there is nothing to lock: cells of a mission are made by root only.
    ///
    /// # Errors
    /// When another supervisor has it, or cells of that name that were started from another directory still run.
    pub(super) fn take(base: &Path, mission: &str, dir: &Path) -> Result<NameLock, LedgerError> {
        if !super::is_root() {
            return Ok(NameLock {
                file: None,
                path: None,
            });
        }
        NameLock::take_in(base, mission, dir, &|before| {
            super::alive::mission(mission, before)
        })
    }

    fn take_in(
        base: &Path,
        mission: &str,
        dir: &Path,
        lives: &dyn Fn(&Path) -> bool,
    ) -> Result<NameLock, LedgerError> {
        let names = base.join("missions");
        let failed = |path: &Path, tried| {
            let path = path.to_owned();
            move |source| LedgerError::System {
                path,
                tried,
                source,
            }
        };
        // The place itself is everybody's to read; a lock is not: a process that can open a file can lock it, and keep a
        // mission from starting and from ending. Those of earlier versions could be opened, so both modes are set again.
        (DirBuilder::new().mode(0o755).recursive(true).create(base))
            .map_err(failed(base, "made"))?;
        (DirBuilder::new().mode(0o700).recursive(true).create(&names))
            .and_then(|()| fs::set_permissions(&names, Permissions::from_mode(0o700)))
            .map_err(failed(&names, "made"))?;
        let path = names.join(mission);
        let until = Instant::now() + PATIENCE;
        let (file, locked) = loop {
            let file = lock_file::open(&path).map_err(failed(&path, "opened"))?;
            (file.set_permissions(Permissions::from_mode(0o600)))
                .map_err(failed(&path, "closed"))?;
            match file.try_lock() {
                // Returning a name removes its file, and a file that others do not find locks nobody out.
                Ok(()) if is_at(&file, &path) => break (file, true),
                Ok(()) => {}
                Err(TryLockError::WouldBlock) if Instant::now() < until => {
                    std::thread::sleep(AGAIN);
                }
                Err(TryLockError::WouldBlock) => break (file, false),
                Err(TryLockError::Error(source)) => return Err(failed(&path, "locked")(source)),
            }
        };
        let text = lock_file::said(&file, MOST_BYTES);
        let (pid, before) = text.split_once('\n').unwrap_or_default();
        let before = PathBuf::from(before);
        if !locked {
            return Err(LedgerError::NameInUse {
                mission: mission.to_owned(),
                pid: pid.parse().ok(),
                dir: before,
            });
        }
        let elsewhere = before.is_absolute() && before != dir;
        if elsewhere && lives(&before) {
            return Err(LedgerError::NameLeft {
                mission: mission.to_owned(),
                dir: before,
            });
        }
        let own = format!("{}\n{}", std::process::id(), dir.display());
        lock_file::say(&file, &own).map_err(failed(&path, "written"))?;
        Ok(NameLock {
            file: Some(file),
            path: Some(path),
        })
    }
}

/// Whether this path leads to this file.
fn is_at(file: &File, path: &Path) -> bool {
    let found = fs::symlink_metadata(path).and_then(|found| Ok((found, file.metadata()?)));
    found.is_ok_and(|(found, own)| (found.dev(), found.ino()) == (own.dev(), own.ino()))
}

/// Removes the locks that nobody has, of whose missions nothing runs any more.
///
/// # Errors
/// When their directory cannot be read.
pub(super) fn forget_over(base: &Path) -> Result<(), LedgerError> {
    if !super::is_root() {
        return Ok(());
    }
    forget_over_in(base, &|name, dir| super::alive::mission(name, dir))
}

fn forget_over_in(base: &Path, lives: &dyn Fn(&str, &Path) -> bool) -> Result<(), LedgerError> {
    let names = base.join("missions");
    let entries = match fs::read_dir(&names) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(source) => {
            return Err(LedgerError::System {
                path: names,
                tried: "read",
                source,
            });
        }
    };
    for entry in entries.flatten() {
        let path = entry.path();
        let opened = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NOFOLLOW)
            .open(&path);
        // A file that cannot be opened is none of ours.
        let Ok(file) = opened else {
            continue;
        };
        // Finding out whether something lives takes a while, during which others can still take the name.
        let text = lock_file::said(&file, MOST_BYTES);
        let dir = text.split_once('\n').map(|(_, dir)| Path::new(dir));
        let name = entry.file_name();
        if lives(&name.to_string_lossy(), dir.unwrap_or(Path::new(""))) {
            continue;
        }
        // The current owner keeps it. Meanwhile it may have been returned, so that this is not the file of the name's
        // current owner, or taken and left by somebody else.
        if file.try_lock().is_ok() {
            if is_at(&file, &path) && lock_file::said(&file, MOST_BYTES) == text {
                let _ = fs::remove_file(&path);
            }
            let _ = file.unlock();
        }
    }
    Ok(())
}

impl NameLock {
    /// Returns the name together with its record: for a name that nobody will use again.
    pub fn forget(self) {
        if let (Some(path), Some(file)) = (&self.path, &self.file)
            && is_at(file, path)
        {
            let _ = fs::remove_file(path);
        }
    }
}

impl Drop for NameLock {
    fn drop(&mut self) {
        // Closing is not enough: a child that another thread has just forked shares the lock until it executes its program.
        if let Some(file) = &self.file {
            let _ = file.unlock();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_supervisors() {
        let base = tempfile::tempdir().unwrap();
        let take = |name: &str, dir: &str, lives: bool| {
            NameLock::take_in(base.path(), name, Path::new(dir), &|_| lives)
        };
        let first = take("a", "/one", false).unwrap();
        let _other_name = take("b", "/one", false).unwrap();
        let refused = take("a", "/two", false).unwrap_err().to_string();
        let pid = std::process::id();
        assert!(refused.contains(&format!("process {pid}")), "{refused}");
        assert!(refused.contains("/one"), "{refused}");
        drop(first);
        let left = take("a", "/two", true).unwrap_err().to_string();
        assert!(left.contains("--dir /one"), "{left}");
        // One that is forgotten leaves nothing.
        take("c", "/one", false).unwrap().forget();
        assert!(!base.path().join("missions/c").exists());
        // The remains of a name are removed once nobody owns it and nothing of it runs.
        let has = |name: &str| base.path().join("missions").join(name).exists();
        let forget = |lives| forget_over_in(base.path(), &|_, _| lives).unwrap();
        forget(true);
        assert!(has("a") && has("b"));
        forget(false);
        assert!(!has("a") && has("b"));
        drop(take("a", "/one", false).unwrap());
        // Its own directory takes it over; and once nothing runs, so does any other.
        drop(take("a", "/one", true).unwrap());
        drop(take("a", "/two", false).unwrap());
    }

    #[test]
    fn who_takes_a_name_while_it_is_looked_at_gets_and_keeps_it() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("missions/a");
        let take =
            |dir: &str| NameLock::take_in(base.path(), "a", Path::new(dir), &|_| false).unwrap();
        // It is owned, taken and left, or returned and recreated, while nothing of it is found to run.
        type Meanwhile<'a> = &'a dyn Fn() -> Option<NameLock>;
        let (has, leaves): (Meanwhile<'_>, Meanwhile<'_>) = (&|| Some(take("/two")), &|| {
            drop(take("/two"));
            None
        });
        let makes_anew: Meanwhile<'_> = &|| {
            take("/one").forget();
            Some(take("/two"))
        };
        for meanwhile in [has, leaves, makes_anew] {
            drop(take("/one"));
            let kept = std::cell::RefCell::new(None);
            let lives = |_: &str, _: &Path| {
                *kept.borrow_mut() = meanwhile();
                false
            };
            forget_over_in(base.path(), &lives).unwrap();
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(text.ends_with("/two"), "{text}");
            if let Some(kept) = kept.borrow().as_ref() {
                assert!(is_at(kept.file.as_ref().unwrap(), &path));
            }
        }
        // And one that has lost its file does not take that of another with it.
        let lost = take("/one");
        std::fs::remove_file(&path).unwrap();
        let _other = take("/two");
        lost.forget();
        assert!(path.exists());
    }

    #[test]
    fn a_name_that_somebody_has_for_a_moment_is_waited_for() {
        let base = tempfile::tempdir().unwrap();
        let take = || NameLock::take_in(base.path(), "a", Path::new("/one"), &|_| false);
        drop(take().unwrap());
        let file = File::open(base.path().join("missions/a")).unwrap();
        file.try_lock().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(PATIENCE / 20);
                file.unlock().unwrap();
            });
            take().unwrap();
        });
    }

    #[test]
    fn nobody_else_can_open_a_lock_to_keep_it() {
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let base = tempfile::tempdir().unwrap();
        let names = base.path().join("place/missions");
        let take = |name| {
            let (base, dir) = (base.path().join("place"), Path::new("/one"));
            drop(NameLock::take_in(&base, name, dir, &|_| false).unwrap());
        };
        take("a");
        assert_eq!(mode(&base.path().join("place")), 0o755);
        assert_eq!((mode(&names), mode(&names.join("a"))), (0o700, 0o600));
        // One that an earlier version has made.
        for (path, open) in [(names.join("a"), 0o644), (names.clone(), 0o755)] {
            fs::set_permissions(path, Permissions::from_mode(open)).unwrap();
        }
        take("a");
        assert_eq!((mode(&names), mode(&names.join("a"))), (0o700, 0o600));
    }

    #[test]
    fn what_a_lock_says_may_be_anything() {
        let base = tempfile::tempdir().unwrap();
        std::fs::create_dir(base.path().join("missions")).unwrap();
        for text in [&b"\xff\xfe"[..], b"", b"12", b"x\ny\nz", b"1\nrelative"] {
            std::fs::write(base.path().join("missions/a"), text).unwrap();
            NameLock::take_in(base.path(), "a", Path::new("/one"), &|_| true).unwrap();
        }
    }
}
