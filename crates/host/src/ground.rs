//! Whether a directory is one's own ground: nobody else can replace it or put anything into it.
//!
//! The contents of such a directory are acted upon: they decide which processes are ended, and which files and directories are
//! written, mounted and removed. Root's ground is root's alone. Another user's may also be root's, who can do everything anyway.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::file::gone;
use crate::foreign_file;
use crate::handover::own_uid;
use crate::writer::{self, Step};

/// Writing to a directory, of the group and of others.
const GROUP_WRITES: u32 = 0o020;
const OTHERS_WRITE: u32 = 0o002;
/// In a directory with this bit, only its owner and that of a file rename or remove the file.
const STICKY: u32 = 0o1000;

/// A directory that somebody else can change, or something on the way to it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.sentence())]
pub struct Foreign {
    /// The directory.
    pub dir: PathBuf,
    /// The part that somebody else can change: the directory, one above it, or a link on the way.
    pub at: PathBuf,
    /// Why it is foreign.
    how: How,
    /// The user for whom it was checked.
    user: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    BelongsTo(u32),
    GroupWrites(u32),
    OthersWrite,
    NoDirectory,
}

impl Foreign {
    fn sentence(&self) -> String {
        let at = self.at.display();
        let how = match self.how {
            How::BelongsTo(user) => format!("{at} belongs to user {user}"),
            How::GroupWrites(group) => format!("group {group} may write to {at}"),
            How::OthersWrite => format!("everybody may write to {at}"),
            How::NoDirectory => format!("{at} is not a directory"),
        };
        let dir = self.dir.display();
        match (self.how, self.user) {
            (How::NoDirectory, _) => {
                format!(
                    "{how}, but a mission keeps its cells there; move it away, or name another --dir"
                )
            }
            (_, 0) => format!(
                "{how}, so users other than root could change {dir}, which root acts on; root must own the mission's directory and every directory above it: use --dir below /var/lib or /run"
            ),
            (_, _) => format!(
                "{how}, so another user could change {dir}, which timecell acts on; you or root must own the mission's directory and every directory above it: use --dir below your home"
            ),
        }
    }
}

/// Checks that this directory is one's own ground, as far as it exists: a path that ends early is checked up to its end.
///
/// Others who own or may write something *inside* a directory of ours that they may not write to cannot change the directory.
///
/// # Errors
/// The first part of the path that is not.
pub fn check(dir: &Path) -> Result<(), Foreign> {
    check_for(own_uid(), dir)
}

fn check_for(user: u32, dir: &Path) -> Result<(), Foreign> {
    let foreign = |at: &Path, how| Foreign {
        dir: dir.to_owned(),
        at: at.to_owned(),
        how,
        user,
    };
    let mut fault = None;
    let mut last: Option<(PathBuf, Metadata)> = None;
    let whole = writer::walk(dir, |here, found| {
        if let Some(how) = changed_by(user, found) {
            fault = Some(foreign(here, how));
            return Step::Stop;
        }
        if !found.is_symlink() {
            last = Some((here.to_owned(), found.clone()));
        }
        Step::On
    });
    if let Some(fault) = fault {
        return Err(fault);
    }
    match last {
        // Names in it are not protected by its being sticky: the first to come makes them.
        Some((at, found)) if whole && found.mode() & (OTHERS_WRITE | GROUP_WRITES) != 0 => {
            match written_by(user, &found) {
                Some(how) => Err(foreign(&at, how)),
                None => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

/// How another user can replace something named in it, or the link itself.
fn changed_by(user: u32, found: &Metadata) -> Option<How> {
    if found.uid() != user && found.uid() != 0 {
        return Some(How::BelongsTo(found.uid()));
    }
    if found.is_symlink() || found.mode() & STICKY != 0 {
        return None;
    }
    written_by(user, found)
}

/// Whether nobody else can replace the thing found in a directory, nor change it where it is one itself.
pub(crate) fn stays(user: u32, dir: &Metadata, found: &Metadata) -> bool {
    if found.is_dir() || found.is_symlink() {
        return changed_by(user, found).is_none();
    }
    // In a sticky directory the owner of a file may replace it.
    written_by(user, dir).is_none() || [0, user].contains(&found.uid())
}

pub(crate) fn written_by(user: u32, found: &Metadata) -> Option<How> {
    let mode = found.mode();
    // Many systems give every user a group of the same number, and let it write to their files.
    let own_group = user != 0 && found.gid() == user;
    match () {
        () if mode & OTHERS_WRITE != 0 => Some(How::OthersWrite),
        () if mode & GROUP_WRITES != 0 && !own_group => Some(How::GroupWrites(found.gid())),
        () => None,
    }
}

/// Checks that `dir` is one's own ground, and that the directories of these names in it are ours as well, with all that is directly in
/// them: `cells` and `cells/a` for `cells`.
///
/// # Errors
/// The first that is not.
pub fn check_with(dir: &Path, names: &[&str]) -> Result<(), Foreign> {
    check(dir)?;
    for name in names {
        let below = dir.join(name);
        if !exists(&below) {
            continue;
        }
        check_inside(dir, &below)?;
        for entry in fs::read_dir(&below).into_iter().flatten().flatten() {
            check_inside(dir, &entry.path())?;
        }
    }
    Ok(())
}

fn exists(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

fn check_inside(dir: &Path, at: &Path) -> Result<(), Foreign> {
    let user = own_uid();
    let foreign = |how| Foreign {
        dir: dir.to_owned(),
        at: at.to_owned(),
        how,
        user,
    };
    let Ok(found) = fs::symlink_metadata(at) else {
        return Ok(());
    };
    if !found.is_dir() {
        return Err(foreign(How::NoDirectory));
    }
    if found.uid() != user {
        return Err(foreign(How::BelongsTo(found.uid())));
    }
    written_by(user, &found).map_or(Ok(()), |how| Err(foreign(how)))
}

/// Opens a regular file of one's own or root's, to which nobody else may write, for reading; never follows a link and never waits.
///
/// # Errors
/// When it is another user's, may be written by one, or is something else, or on an error of the system.
pub fn open(path: &Path) -> io::Result<File> {
    own(foreign_file::open(path)?)
}

/// The contents of a regular file of one's own or root's, at most `most_bytes`.
///
/// # Errors
/// As [`open()`], or when there is more.
pub fn read(path: &Path, most_bytes: u64) -> io::Result<Vec<u8>> {
    foreign_file::read_from(open(path)?, most_bytes)
}

/// The same for appending, also where it has other names: a journal has two while it is rotated.
///
/// # Errors
/// As [`open()`].
pub fn append(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    own(foreign_file::itself(options.append(true), path)?)
}

/// Replaces a file: anything that had its name before, such as a link, loses it and is otherwise untouched.
///
/// # Errors
/// The system's error.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    use io::Write as _;
    gone(fs::remove_file(path))?;
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    options.open(path)?.write_all(bytes)
}

/// As [`replace`], but creates an empty file and returns it open.
///
/// # Errors
/// The system's error.
pub fn create(path: &Path) -> io::Result<File> {
    gone(fs::remove_file(path))?;
    let mut options = OpenOptions::new();
    options
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

fn own(file: File) -> io::Result<File> {
    match not_believed(own_uid(), &file.metadata()?) {
        Some(why) => Err(io::Error::new(io::ErrorKind::InvalidInput, why)),
        None => Ok(file),
    }
}

fn not_believed(user: u32, found: &Metadata) -> Option<String> {
    let owner = found.uid();
    // Root can change the files of every user as well.
    if ![0, user].contains(&owner) {
        return Some(format!(
            "it belongs to user {owner}, and only files of user {user} are trusted"
        ));
    }
    written_by(user, found).map(|_| {
        format!(
            "others may write to it (mode {:04o}), and only files of user {user} alone are trusted; look at it, then `chmod go-w` it",
            found.mode() & 0o7777
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};

    const NOBODY: u32 = 65534;

    fn mode(path: &Path, bits: u32) {
        fs::set_permissions(path, Permissions::from_mode(bits)).unwrap();
    }

    #[test]
    fn whoever_else_can_change_the_way_is_found() {
        if own_uid() != 0 {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        mode(dir.path(), 0o755);
        let at = |path: &str| dir.path().join(path);
        fs::create_dir_all(at("home/st/deep")).unwrap();
        fs::create_dir_all(at("roots/st")).unwrap();
        chown(at("home"), Some(NOBODY), Some(NOBODY)).unwrap();
        let fault = |user: u32, path: &str| check_for(user, &at(path)).err().map(|f| f.at);
        assert_eq!(fault(0, "roots/st"), None);
        assert_eq!(fault(0, "roots/not/yet"), None);
        // Of one that root owns below it, the name is the user's.
        for below in [
            "home",
            "home/st",
            "home/st/deep",
            "home/not/yet",
            "roots/../home/st",
        ] {
            assert_eq!(fault(0, below), Some(at("home")), "{below}");
            assert_eq!(fault(NOBODY, below), None, "{below}");
        }
        assert_eq!(fault(1000, "home/st"), Some(at("home")));
        // Links: root's lead wherever they lead, a user's anywhere.
        symlink(at("home"), at("roots/link")).unwrap();
        assert_eq!(fault(0, "roots/link/st"), Some(at("home")));
        symlink("st", at("roots/own")).unwrap();
        assert_eq!(fault(0, "roots/own"), None);
        lchown(at("roots/own"), Some(NOBODY), None).unwrap();
        assert_eq!(fault(0, "roots/own"), Some(at("roots/own")));
        // Rights of others.
        mode(&at("roots"), 0o777);
        assert_eq!(fault(0, "roots/st"), Some(at("roots")));
        mode(&at("roots"), 0o1777);
        assert_eq!(fault(0, "roots/st"), None);
        assert_eq!(
            fault(0, "roots"),
            Some(at("roots")),
            "names in it are anybody's"
        );
        assert_eq!(fault(0, "roots/st/.."), Some(at("roots")));
        mode(&at("roots"), 0o775);
        assert_eq!(fault(0, "roots/st"), Some(at("roots")));
        assert_eq!(fault(NOBODY, "roots/st"), Some(at("roots")));
        mode(&at("home"), 0o775);
        assert_eq!(fault(NOBODY, "home/st"), None, "a group of the user's own");
        let said = check_for(0, &at("home/st")).unwrap_err().to_string();
        let begins = format!(
            "{} belongs to user 65534, so users other than root",
            at("home").display()
        );
        assert!(
            said.starts_with(&begins) && said.contains("/var/lib"),
            "{said}"
        );
    }

    #[test]
    fn what_is_inside_is_a_directory_of_ones_own() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("cells/a")).unwrap();
        let check = || check_with(dir.path(), &["cells", "pages"]).map_err(|fault| fault.at);
        assert_eq!(check(), Ok(()));
        let link = dir.path().join("cells/b");
        symlink("a", &link).unwrap();
        assert_eq!(check(), Err(link.clone()));
        fs::remove_file(&link).unwrap();
        symlink("/etc", dir.path().join("pages")).unwrap();
        assert_eq!(check(), Err(dir.path().join("pages")));
        if own_uid() == 0 {
            fs::remove_file(dir.path().join("pages")).unwrap();
            let cell = dir.path().join("cells/a");
            chown(&cell, Some(NOBODY), None).unwrap();
            assert_eq!(check(), Err(cell));
        }
    }

    #[test]
    fn no_file_that_others_may_write_is_believed() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("ledger");
        fs::write(&file, "x").unwrap();
        for (bits, is_believed) in [(0o600, true), (0o644, true), (0o666, false), (0o646, false)] {
            mode(&file, bits);
            assert_eq!(read(&file, 9).is_ok(), is_believed, "{bits:o}");
            assert_eq!(append(&file).is_ok(), is_believed, "{bits:o}");
        }
        let said = read(&file, 9).unwrap_err().to_string();
        assert!(said.contains("(mode 0646)"), "{said}");
    }

    #[test]
    fn only_files_of_ones_own_are_believed_and_no_link_is_written_through() {
        let dir = tempfile::tempdir().unwrap();
        let (aim, link) = (dir.path().join("aim"), dir.path().join("link"));
        fs::write(&aim, "kept").unwrap();
        assert_eq!(read(&aim, 4).unwrap(), b"kept");
        assert!(read(&aim, 3).is_err());
        for deed in [
            |link: &Path| replace(link, b"new"),
            |link: &Path| create(link)?.set_len(3),
        ] {
            symlink(&aim, &link).unwrap();
            assert!(read(&link, 4).is_err() && append(&link).is_err());
            deed(&link).unwrap();
            assert_eq!(fs::read(&aim).unwrap(), b"kept");
            assert_eq!(fs::symlink_metadata(&link).unwrap().len(), 3);
            fs::remove_file(&link).unwrap();
        }
        if own_uid() == 0 {
            // The ledger of the machine is root's, and every user reads it.
            let found = fs::metadata(&aim).unwrap();
            assert_eq!(not_believed(1000, &found), None);
            chown(&aim, Some(NOBODY), None).unwrap();
            assert!(not_believed(1000, &fs::metadata(&aim).unwrap()).is_some());
            let said = read(&aim, 4).unwrap_err().to_string();
            assert!(said.contains("belongs to user 65534"), "{said}");
        }
    }
}
