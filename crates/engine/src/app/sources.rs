//! Files and directories of the host that a cell is made from: each is looked up once, by [`check`](super::check), and is mounted by its descriptor
//! in the processes that make the cell. The owner of a directory on the way may exchange names meanwhile.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use host::found::Found;
use model::EngineKind;
use rustix::fs::{CWD, StatVfsMountFlags, fstatfs, fstatvfs};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::mount::{
    MountFlags, MoveMountFlags, OpenTreeFlags, mount_remount, move_mount, open_tree,
};

use super::paths;
use super::program::Program;
use super::spec::{AppSpec, Image};
use crate::error::{Doing, Result, refused};
use crate::mounts::make_place;

/// The sources of a cell.
#[derive(Debug)]
pub(crate) struct Sources {
    /// The root filesystem; `None`: an empty one, or one that only the engine knows.
    pub(crate) root: Option<Found>,
    /// The sources of [`AppSpec::binds`] in their order, then a static program that is alone in its cell.
    pub(crate) mounts: Vec<Found>,
}

/// How many [`Sources::mounts`] there are.
fn mounts_of(spec: &AppSpec) -> usize {
    let is_alone = matches!(spec.image, Image::Binary(_)) && spec.engine != EngineKind::Bare;
    spec.binds.len() + usize::from(is_alone)
}

impl Sources {
    /// All descriptors, mounts first.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.mounts.iter().chain(&self.root).map(AsFd::as_fd)
    }

    /// Those that another process has looked up, in the order of [`Sources::descriptors`].
    ///
    /// # Errors
    /// When their number is not that of the specification.
    pub(crate) fn handed(
        spec: &AppSpec,
        program: Option<&Program>,
        descriptors: Vec<OwnedFd>,
    ) -> Result<Sources> {
        let is_own = program.is_some_and(|program| program.root_is_own);
        // No cell inherits them, nor any program executed on the way to one.
        for descriptor in &descriptors {
            fcntl_setfd(descriptor, FdFlags::CLOEXEC)?;
        }
        let mut all = (descriptors.into_iter()).map(|descriptor| Found::handed(descriptor, is_own));
        let mounts: Vec<Found> = all
            .by_ref()
            .take(mounts_of(spec))
            .collect::<Result<_, _>>()?;
        let root = all.next().transpose()?;
        if mounts.len() < mounts_of(spec) || all.next().is_some() {
            return Err("oci-child: descriptors are missing".into());
        }
        Ok(Sources { root, mounts })
    }

    /// Mounts of them that are nowhere yet; to be made in the mount namespace where they were looked up.
    ///
    /// # Errors
    /// In the kernel's words.
    pub(crate) fn trees(&self) -> Result<Trees<'_>> {
        Ok(Trees {
            root: self.root.as_ref().map(Tree::of).transpose()?,
            mounts: self.mounts.iter().map(Tree::of).collect::<Result<_>>()?,
        })
    }
}

/// [`Sources`], each a mount that is nowhere yet.
#[derive(Debug)]
pub(crate) struct Trees<'s> {
    pub(crate) root: Option<Tree<'s>>,
    pub(crate) mounts: Vec<Tree<'s>>,
}

/// A file or directory and a mount of it; mounts below it are not seen.
#[derive(Debug)]
pub(crate) struct Tree<'s> {
    pub(crate) found: &'s Found,
    mount: OwnedFd,
}

impl Tree<'_> {
    fn of(found: &Found) -> Result<Tree<'_>> {
        let flags = OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_EMPTY_PATH;
        let mount = open_tree(found, "", flags)
            .doing(|| format!("cannot mount {}", found.path().display()))?;
        Ok(Tree { found, mount })
    }

    /// Puts the mount at a place, which is made.
    ///
    /// # Errors
    /// In the kernel's words.
    pub(crate) fn put(&self, place: &Path) -> Result<()> {
        make_place(place, self.found.metadata()?.is_dir())?;
        let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
        move_mount(&self.mount, "", CWD, place, flags)
            .doing(|| format!("cannot mount {}", place.display()))
    }

    /// The same, and nothing is written or removed through it: in a directory that somebody may remove with all it holds.
    ///
    /// # Errors
    /// As [`Tree::put`].
    pub(crate) fn put_read_only(&self, place: &Path) -> Result<()> {
        self.put(place)?;
        let mut flags =
            MountFlags::BIND | MountFlags::RDONLY | MountFlags::NODEV | MountFlags::NOSUID;
        if fstatvfs(self.found)?
            .f_flag
            .contains(StatVfsMountFlags::NOEXEC)
        {
            flags |= MountFlags::NOEXEC;
        }
        mount_remount(place, flags, "").doing(|| format!("cannot mount {}", place.display()))
    }
}

/// File systems that reach beyond any isolation: a cell that may write or even read there is not isolated. Types of statfs(2) and their names.
const BEYOND: [(u64, &str); 8] = [
    (0x0027_e0eb, "cgroup"),
    (0x6367_7270, "cgroup2"),
    (0x9fa0, "proc"),
    (0x6462_6720, "debugfs"),
    (0x7472_6163, "tracefs"),
    (0x7363_6673, "securityfs"),
    (0xcafe_4a11, "bpf"),
    (0x6265_6570, "configfs"),
];

/// Looks up a file or directory that may be shown to a cell.
///
/// # Errors
/// One sentence, which begins with `what`.
pub(super) fn find(what: &str, path: &Path) -> Result<Found> {
    if !path.is_absolute() {
        return Err(refused!("{what} `{}` is not absolute", path.display()));
    }
    let found = Found::at(path).doing(|| format!("{what} {} cannot be used", path.display()))?;
    may_be_shown(what, &found)?;
    Ok(found)
}

/// Checks that this may be shown to a cell.
///
/// # Errors
/// One sentence, which begins with `what`.
pub(super) fn may_be_shown(what: &str, found: &Found) -> Result<()> {
    paths::check_text(what, found.path().as_os_str().as_encoded_bytes())?;
    let (about, host) = (found.metadata()?, std::fs::metadata("/")?);
    if (about.dev(), about.ino()) == (host.dev(), host.ino()) {
        return Err(refused!("{what} is the host's own root"));
    }
    let kind = fstatfs(found)?.f_type.cast_unsigned();
    match BEYOND.iter().find(|(number, _)| *number == kind) {
        Some((_, name)) => Err(refused!(
            "{} is on a file system of type {name}, which no cell may see",
            found.path().display()
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cgroup_files_and_the_kernels_own_are_shown_to_nobody() {
        let why = |path: &str| find("the source", Path::new(path)).unwrap_err().to_string();
        assert!(why("/proc/sys/kernel").contains("of type proc"));
        assert!(why("/proc/self/root").contains("host's own root") || !crate::programs::is_root());
        assert!(why("/").contains("host's own root"));
        assert!(why("data").contains("not absolute"));
        find("the source", Path::new("/sys/class")).unwrap();
        find("the source", Path::new("/usr/bin")).unwrap();
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        let groups = host::mounts::of(&mounts).find(|mount| mount.kind.starts_with("cgroup"));
        if let Some(groups) = groups {
            let why = find("the source", &groups.point).unwrap_err().to_string();
            assert!(why.contains("of type cgroup"), "{why}");
        }
    }
}
