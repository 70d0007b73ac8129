//! Putting a rootless cell's needs of the host within its user's reach.
//!
//! Private directories belong to the user. The shared directory and the files in it keep their owner and are opened to the
//! user's group, so that cells of other engines can share it too; a process that makes files in it after the cell must open
//! those.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use host::file::at;
use host::handover::{self, Owner};

use crate::error::{Doing, Result, refused};
use crate::identity::Identity;
use crate::{CellSpec, User, made, programs};

/// The cell's user where that is not ourselves.
pub(crate) fn other_user(cell: &dyn Identity) -> Option<&User> {
    cell.user().filter(|_| programs::is_root())
}

/// Makes `command` one of the cell's user.
pub(crate) fn become_user(command: &mut Command, cell: &dyn Identity) {
    if let Some(user) = other_user(cell) {
        // Supplementary groups of ours are dropped with the change.
        command.uid(user.uid).gid(user.gid);
    }
}

/// Puts the cell's needs within the user's reach; the directories `own` become the user's.
pub(crate) fn give(spec: &CellSpec, own: &[&Path], user: &User) -> Result<()> {
    let log = made::log(spec);
    let owner = Owner {
        uid: user.uid,
        gid: user.gid,
    };
    let open = || -> io::Result<()> {
        // In a directory of ours: no link can be in its place.
        fs::OpenOptions::new()
            .create(true)
            .append(true)
            .custom_flags(libc::O_NOFOLLOW)
            .open(&log)?;
        handover::give_one(&log, owner)?;
        for dir in own {
            handover::give_tree(dir, owner)?;
        }
        handover::open_to_group(&spec.work_dir, owner, 0o050)?;
        handover::open_to_group(&spec.shared, owner, 0o070)?;
        handover::open_files_to_group(&spec.shared, owner, 0o060)
    };
    open().doing(|| {
        format!(
            "{} cannot be made accessible to user {}",
            spec.work_dir.display(),
            user.name
        )
    })?;
    for path in [&spec.rootfs, &spec.shared, &spec.work_dir] {
        check_reach(path, user)?;
    }
    Ok(())
}

/// Checks that the user may pass through every directory on the way.
fn check_reach(path: &Path, user: &User) -> Result<()> {
    for dir in path.ancestors() {
        let found = dir.metadata().map_err(at(dir))?;
        let bit = match () {
            () if found.uid() == user.uid => 0o100,
            () if found.gid() == user.gid => 0o010,
            () => 0o001,
        };
        if found.mode() & bit == 0 {
            return Err(refused!(
                "user `{}` cannot reach {} because {} is closed; `chmod o+x {}` opens it",
                user.name,
                path.display(),
                dir.display(),
                dir.display()
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_closed_directory_on_the_way_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let closed = dir.path().join("closed");
        fs::create_dir_all(closed.join("cell")).unwrap();
        fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
        let stranger = User {
            name: "ann".into(),
            uid: u32::MAX - 1,
            gid: u32::MAX - 1,
            home: "/".into(),
        };
        fs::set_permissions(&closed, Permissions::from_mode(0o755)).unwrap();
        check_reach(&closed.join("cell"), &stranger).unwrap();
        fs::set_permissions(&closed, Permissions::from_mode(0o700)).unwrap();
        let why = check_reach(&closed.join("cell"), &stranger)
            .unwrap_err()
            .to_string();
        assert!(
            why.contains(&format!("chmod o+x {}", closed.display())),
            "{why}"
        );
    }
}
