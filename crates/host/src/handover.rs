//! Giving files that root has made to another user, without ever giving anything else.
//!
//! That user may work against it: exchange links and directories between check and use, and hard-link foreign files into
//! place. So nothing is named twice: every entry is opened once, below the open directory that holds it and never through a
//! link, and the opened one is checked and given. The contents of a directory go first and the directory itself last, so
//! that nobody else can put anything there during the walk.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Gid, Mode, OFlags, Uid, chownat, openat};
use rustix::process::{getegid, geteuid};

/// A user and a group, as the host knows them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
}

/// Gives a directory of ours and all of ours in it to `owner`.
///
/// A thing is ours if it belongs to this process's user and has one name only. A directory that is not ours, or that others may write to, is left
/// as it is with its contents, since others may have put anything there.
///
/// # Errors
/// When something cannot be opened or given; fine if there is nothing at `root`.
pub fn give_tree(root: &Path, owner: Owner) -> io::Result<()> {
    match open_path(CWD, root) {
        Ok(root) => give_all(&root, owner),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// As [`give_tree`] for one file, or one directory without its contents.
///
/// # Errors
/// As [`give_tree`].
pub fn give_one(path: &Path, owner: Owner) -> io::Result<()> {
    let opened = open_path(CWD, path)?;
    if ours_alone(&opened.metadata()?) {
        give(&opened, Some(owner.uid), owner.gid)?;
    }
    Ok(())
}

/// Gives a file or directory of ours to the group of `owner` and adds these permission bits; foreign ones, those
/// neither file nor directory and files with several names are left as they are.
///
/// # Errors
/// When it cannot be opened or given.
pub fn open_to_group(path: &Path, owner: Owner, bits: u32) -> io::Result<()> {
    share(&open_path(CWD, path)?, owner, bits)
}

/// As [`open_to_group`] for every regular file in a directory.
///
/// # Errors
/// When the directory cannot be listed or a file not be given.
pub fn open_files_to_group(dir: &Path, owner: Owner, bits: u32) -> io::Result<()> {
    let dir = open_path(CWD, dir)?;
    for entry in fs::read_dir(through(&dir))?.flatten() {
        match open_path(&dir, entry.file_name()) {
            Ok(opened) if opened.metadata()?.is_file() => share(&opened, owner, bits)?,
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn give_all(opened: &File, owner: Owner) -> io::Result<()> {
    let found = opened.metadata()?;
    if !ours_alone(&found) {
        return Ok(());
    }
    if found.is_dir() {
        for entry in fs::read_dir(through(opened))?.flatten() {
            match open_path(opened, entry.file_name()) {
                Ok(inner) => give_all(&inner, owner)?,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
    }
    give(opened, Some(owner.uid), owner.gid)
}

fn share(opened: &File, owner: Owner, bits: u32) -> io::Result<()> {
    let found = opened.metadata()?;
    let kind = found.file_type();
    if found.uid() != own_uid() || !(kind.is_dir() || kind.is_file() && found.nlink() == 1) {
        return Ok(());
    }
    give(opened, None, owner.gid)?;
    fs::set_permissions(
        through(opened),
        Permissions::from_mode(found.mode() & 0o7777 | bits),
    )
}

/// Ours, with no other name, and nobody else may put anything into it.
fn ours_alone(found: &fs::Metadata) -> bool {
    let closed = if found.is_dir() {
        let own_group = found.gid() == getegid().as_raw();
        found.mode() & 0o002 == 0 && (own_group || found.mode() & 0o020 == 0)
    } else {
        found.nlink() == 1
    };
    found.uid() == own_uid() && closed
}

pub(crate) fn own_uid() -> u32 {
    geteuid().as_raw()
}

/// The way to an open file, even if it was renamed.
fn through(opened: &File) -> std::path::PathBuf {
    format!("/proc/self/fd/{}", opened.as_raw_fd()).into()
}

/// Opens an entry itself, also one that is a link.
fn open_path(dir: impl AsFd, name: impl AsRef<Path>) -> io::Result<File> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(dir, name.as_ref(), flags, Mode::empty())?.into())
}

fn give(opened: &File, uid: Option<u32>, gid: u32) -> io::Result<()> {
    let (uid, gid) = (uid.map(Uid::from_raw), Some(Gid::from_raw(gid)));
    let flags = AtFlags::EMPTY_PATH | AtFlags::SYMLINK_NOFOLLOW;
    Ok(chownat(opened, "", uid, gid, flags)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command, Stdio};

    const NOBODY: Owner = Owner {
        uid: 65534,
        gid: 65534,
    };

    fn uid_of(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().uid()
    }

    /// A place that everybody may pass through, with a secret of root's.
    fn place() -> Option<(tempfile::TempDir, std::path::PathBuf)> {
        if own_uid() != 0 {
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
        let secret = dir.path().join("secret");
        fs::write(&secret, "x").unwrap();
        fs::set_permissions(&secret, Permissions::from_mode(0o600)).unwrap();
        Some((dir, secret))
    }

    /// Does this as nobody, over and over, until it is killed.
    fn again_and_again(script: &str) -> Child {
        Command::new("sh")
            .args(["-c", &format!("while :; do {script}; done")])
            .uid(NOBODY.uid)
            .gid(NOBODY.gid)
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }

    #[test]
    fn all_of_ours_is_given_and_links_lead_nowhere() {
        let Some((dir, secret)) = place() else { return };
        let run = dir.path().join("run");
        fs::create_dir_all(run.join("trials/1")).unwrap();
        fs::write(run.join("trials/1/a"), "").unwrap();
        symlink(&secret, run.join("link")).unwrap();
        fs::hard_link(&secret, run.join("second-name")).unwrap();
        let open = run.join("open");
        fs::create_dir(&open).unwrap();
        fs::write(open.join("planted"), "").unwrap();
        fs::set_permissions(&open, Permissions::from_mode(0o777)).unwrap();
        give_tree(&run, NOBODY).unwrap();
        for given in ["", "trials", "trials/1", "trials/1/a", "link"] {
            assert_eq!(uid_of(&run.join(given)), NOBODY.uid, "{given}");
        }
        for kept in ["second-name", "open", "open/planted"] {
            assert_eq!(uid_of(&run.join(kept)), 0, "{kept}");
        }
        assert_eq!(uid_of(&secret), 0);
        give_tree(&dir.path().join("nothing"), NOBODY).unwrap();
    }

    #[test]
    fn a_user_who_plants_links_meanwhile_gets_nothing_of_roots() {
        let Some((dir, secret)) = place() else { return };
        for round in 0..20 {
            let run = dir.path().join(format!("run{round}"));
            fs::create_dir_all(run.join("trials")).unwrap();
            for file in 0..1000 {
                fs::write(run.join(format!("trials/{file}")), "").unwrap();
            }
            let (to, at) = (secret.display(), run.display());
            let mut racer = again_and_again(&format!(
                "ln -s {to} {at}/x; ln -s {to} {at}/trials/x; ln {to} {at}/trials/y"
            ));
            give_tree(&run, NOBODY).unwrap();
            racer.kill().unwrap();
            racer.wait().unwrap();
            assert_eq!(uid_of(&secret), 0, "round {round}");
            assert_eq!(uid_of(&run), NOBODY.uid);
        }
    }

    #[test]
    fn files_of_a_directory_that_the_user_may_write_to_are_opened_one_by_one() {
        let Some((dir, secret)) = place() else { return };
        let shared = dir.path().join("shared");
        fs::create_dir(&shared).unwrap();
        fs::write(shared.join("page"), "").unwrap();
        open_to_group(&shared, NOBODY, 0o070).unwrap();
        symlink(&secret, shared.join("link")).unwrap();
        fs::hard_link(&secret, shared.join("second-name")).unwrap();
        let at = shared.display();
        let mut racer = again_and_again(&format!(
            "mv -T {at}/page {at}/aside; ln -s {} {at}/page; rm {at}/page; mv -T {at}/aside {at}/page",
            secret.display()
        ));
        for _ in 0..2000 {
            open_files_to_group(&shared, NOBODY, 0o060).unwrap();
        }
        racer.kill().unwrap();
        racer.wait().unwrap();
        let found = fs::metadata(&secret).unwrap();
        assert_eq!((found.gid(), found.mode() & 0o777), (0, 0o600));
        let page = [shared.join("page"), shared.join("aside")];
        let page = page.iter().find_map(|path| {
            fs::symlink_metadata(path)
                .ok()
                .filter(fs::Metadata::is_file)
        });
        assert_eq!(page.unwrap().mode() & 0o060, 0o060);
    }
}
