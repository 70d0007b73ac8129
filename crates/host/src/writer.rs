//! Under which user root writes: files below a user's directory are written as that user.
//!
//! A user may replace any of their directories with a link while root walks through it. Writing as that user, root reaches nothing
//! that the user could not have reached.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

use rustix::process::Gid;

use crate::handover::{Owner, own_uid};

/// Links on one way, as many as the kernel follows.
pub(crate) const MOST_LINKS: usize = 40;

/// The writer below this path: `None` for root itself, and for any caller other than root.
///
/// The path need not be there yet. The first directory or link on the way, from the root of the filesystem, that is not root's
/// decides: its owner can put something else in place of everything below.
pub fn of(path: &Path) -> Option<Owner> {
    if own_uid() != 0 {
        return None;
    }
    let mut owner = None;
    walk(path, |here, found| {
        if here == "/" || found.uid() == 0 || !(found.is_dir() || found.is_symlink()) {
            return Step::On;
        }
        owner = Some(Owner {
            uid: found.uid(),
            gid: found.gid(),
        });
        Step::Stop
    });
    owner
}

/// Whether a walk goes on.
pub(crate) enum Step {
    On,
    Stop,
}

/// Follows a path as the kernel would, from the root of the filesystem, and shows everything on the way: each directory, each
/// link and then where it leads. Whether there was everything, up to the end.
pub(crate) fn walk(path: &Path, mut see: impl FnMut(&Path, &Metadata) -> Step) -> bool {
    let Ok(path) = std::path::absolute(path) else {
        return false;
    };
    let mut left: Vec<PathBuf> = parts(&path);
    let mut way = PathBuf::from("/");
    let mut links = 0;
    match fs::symlink_metadata(&way) {
        Ok(found) if matches!(see(&way, &found), Step::On) => {}
        _ => return false,
    }
    while let Some(part) = left.pop() {
        let here = match part.as_os_str() == ".." {
            true => way.parent().unwrap_or(&way).to_owned(),
            false => way.join(part),
        };
        let Ok(found) = fs::symlink_metadata(&here) else {
            return false;
        };
        if matches!(see(&here, &found), Step::Stop) {
            return false;
        }
        if !found.is_symlink() {
            way = here;
            continue;
        }
        links += 1;
        let to = fs::read_link(&here).ok().filter(|_| links <= MOST_LINKS);
        let Some(to) = to else {
            return false;
        };
        if to.is_absolute() {
            way = PathBuf::from("/");
        }
        left.extend(parts(&to));
    }
    true
}

/// The names in a path, the last first.
pub(crate) fn parts(path: &Path) -> Vec<PathBuf> {
    let named = |part: &Component<'_>| matches!(part, Component::Normal(_) | Component::ParentDir);
    let parts = path.components().filter(named);
    parts
        .rev()
        .map(|part| PathBuf::from(part.as_os_str()))
        .collect()
}

/// Runs `deed` with the file access of the user who writes below this path; see [`of`]. Open files stay open.
pub fn below<T>(path: &Path, deed: impl FnOnce() -> T) -> T {
    acting_as(of(path), deed)
}

/// Does `deed` with this owner's file access, or with one's own: for several deeds about a path that was looked at once.
pub fn acting_as<T>(owner: Option<Owner>, deed: impl FnOnce() -> T) -> T {
    let _hand = owner.map(Hand::take);
    deed()
}

/// As [`File::create`].
///
/// # Errors
/// When the writer may not.
pub fn create(path: &Path) -> io::Result<File> {
    below(path, || {
        open_at_once(
            File::options().write(true).create(true).truncate(true),
            path,
        )
    })
}

/// Opens a file without waiting for the other end of a pipe: a name in somebody else's directory may be one.
///
/// # Errors
/// ENXIO for a pipe that nobody reads; else those of opening.
pub fn open_at_once(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let file = options.custom_flags(libc::O_NONBLOCK).open(path)?;
    let flags = rustix::fs::fcntl_getfl(&file)?;
    rustix::fs::fcntl_setfl(&file, flags - rustix::fs::OFlags::NONBLOCK)?;
    Ok(file)
}

/// Opens a file for appending; makes it if it is not there.
///
/// # Errors
/// When the writer may not.
pub fn append(path: &Path) -> io::Result<File> {
    below(path, || {
        open_at_once(File::options().create(true).append(true), path)
    })
}

/// As [`fs::create_dir`].
///
/// # Errors
/// When the writer may not, or it exists.
pub fn create_dir(path: &Path) -> io::Result<()> {
    below(path, || fs::create_dir(path))
}

/// As [`fs::create_dir_all`].
///
/// # Errors
/// When the writer may not.
pub fn create_dir_all(path: &Path) -> io::Result<()> {
    below(path, || fs::create_dir_all(path))
}

/// As [`fs::rename`]; both names are below the same directory.
///
/// # Errors
/// When the writer may not.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    below(to, || fs::rename(from, to))
}

/// As [`fs::remove_file`].
///
/// # Errors
/// When the writer may not, or it is not there.
pub fn remove_file(path: &Path) -> io::Result<()> {
    below(path, || fs::remove_file(path))
}

/// As [`fs::remove_dir_all`].
///
/// # Errors
/// When the writer may not, or it is not there.
pub fn remove_dir_all(path: &Path) -> io::Result<()> {
    below(path, || fs::remove_dir_all(path))
}

/// This thread's file access, given back on drop.
struct Hand {
    uid: u32,
    gid: u32,
    groups: Vec<Gid>,
}

impl Hand {
    fn take(owner: Owner) -> Hand {
        let groups = groups();
        // Root's own groups open files too.
        set_groups(&[]);
        // The group first: afterwards this thread may not be allowed to.
        // SAFETY: plain numbers; both calls concern this thread only and return the ids before.
        let (gid, uid) = unsafe { (libc::setfsgid(owner.gid), libc::setfsuid(owner.uid)) };
        Hand {
            uid: uid.cast_unsigned(),
            gid: gid.cast_unsigned(),
            groups,
        }
    }
}

impl Drop for Hand {
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe {
            libc::setfsuid(self.uid);
            libc::setfsgid(self.gid);
        }
        set_groups(&self.groups);
    }
}

/// This thread's supplementary groups.
fn groups() -> Vec<Gid> {
    rustix::process::getgroups().unwrap_or_default()
}

/// Sets them for this thread only. A user namespace may forbid it: its root has no groups that reach files of the host's.
fn set_groups(groups: &[Gid]) {
    let _ = rustix::thread::set_thread_groups(groups);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_that_nobody_reads_is_refused_and_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        let mode = rustix::fs::Mode::from(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        for open in [create, append] {
            let refused = open(&pipe).unwrap_err();
            assert_eq!(refused.raw_os_error(), Some(libc::ENXIO));
        }
        let plain = create(&dir.path().join("plain")).unwrap();
        let flags = rustix::fs::fcntl_getfl(&plain).unwrap();
        assert!(!flags.contains(rustix::fs::OFlags::NONBLOCK));
    }
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    #[test]
    fn what_goes_below_a_users_directory_is_the_users_and_reaches_nothing_else() {
        if own_uid() != 0 {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
        assert_eq!(of(&dir.path().join("new")), None);
        let (home, roots) = (dir.path().join("home"), dir.path().join("roots"));
        fs::create_dir(&home).unwrap();
        fs::create_dir(&roots).unwrap();
        chown(&home, Some(65534), Some(65534)).unwrap();
        let new = home.join("runs/1");
        assert_eq!(
            of(&new),
            Some(Owner {
                uid: 65534,
                gid: 65534
            })
        );
        below(&new, || fs::create_dir_all(&new)).unwrap();
        assert_eq!(fs::metadata(&new).unwrap().uid(), 65534);
        // As the user would exchange it between look and deed.
        let refused = below(&new, || {
            fs::remove_dir(&new).unwrap();
            symlink(&roots, &new).unwrap();
            fs::write(new.join("x"), "")
        });
        assert_eq!(
            refused.unwrap_err().kind(),
            std::io::ErrorKind::PermissionDenied
        );
        // And before the look: the link is the user's, wherever it leads.
        let refused = below(&new.join("x"), || fs::write(new.join("x"), ""));
        assert_eq!(
            refused.unwrap_err().kind(),
            std::io::ErrorKind::PermissionDenied
        );
        fs::write(roots.join("x"), "").unwrap();
        // Root's own links are root's way.
        symlink("roots", dir.path().join("way")).unwrap();
        assert_eq!(of(&dir.path().join("way/../way/y")), None);
        symlink("home", dir.path().join("theirs")).unwrap();
        assert_eq!(of(&dir.path().join("theirs/y")).unwrap().uid, 65534);
    }

    #[test]
    fn groups_of_roots_open_nothing_for_the_user() {
        if own_uid() != 0 {
            return;
        }
        let before = groups();
        set_groups(&[Gid::from_raw(1234)]);
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
        let (home, shared) = (dir.path().join("home"), dir.path().join("shared"));
        fs::create_dir(&home).unwrap();
        chown(&home, Some(65534), Some(65534)).unwrap();
        fs::write(&shared, "").unwrap();
        chown(&shared, Some(0), Some(1234)).unwrap();
        fs::set_permissions(&shared, Permissions::from_mode(0o660)).unwrap();
        symlink(&shared, home.join("x")).unwrap();
        let refused = create(&home.join("x"));
        assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        assert_eq!(groups(), [Gid::from_raw(1234)], "given back");
        set_groups(&before);
    }
}
