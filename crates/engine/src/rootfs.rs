//! The root filesystem of every cell: our own static binary and empty mount points.

use std::fs::{self, File, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use host::file::there;
use host::foreign_file;
use rustix::fs::StatVfsMountFlags;

use crate::error::Error;

/// Why there is no root filesystem.
#[derive(Debug, thiserror::Error)]
pub enum RootfsError {
    /// The binary needs libraries that no cell has.
    #[error(
        "{program} is not static, so it cannot run alone in a cell; build it with `RUSTFLAGS=\"-C target-feature=+crt-static\"` or for a musl target"
    )]
    NotStatic {
        /// The binary.
        program: PathBuf,
        /// The loader of its libraries, such as `/lib64/ld-linux-x86-64.so.2`; `None`: not found in the beginning of the file.
        interpreter: Option<String>,
    },
    /// Not a binary for this kind of machine.
    #[error("{0} is not a 64-bit ELF program")]
    NotElf(PathBuf),
    /// A program cannot be taken into a cell with its libraries.
    #[error("the libraries of {program} cannot be found: {source}")]
    Libraries {
        /// The program.
        program: PathBuf,
        /// Why not.
        source: Box<Error>,
    },
    /// Programs cannot be executed there.
    #[error(
        "{0} is mounted `noexec`, so no cell could run there; choose a directory on another file system"
    )]
    NoExec(PathBuf),
    /// No candidate will do.
    #[error("no writable directory that allows execution was found; tried {0}")]
    NoPlace(String),
    /// Input and output.
    #[error("{path}: {source}")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// Directories that engines mount on.
const DIRS: [&str; 7] = ["cell", "dev", "etc", "proc", "run", "sys", "tmp"];
/// Files that podman and docker mount on; empty here.
const FILES: [&str; 4] = [
    "etc/hostname",
    "etc/hosts",
    "etc/resolv.conf",
    "run/.containerenv",
];

/// A directory for root filesystems: in memory where possible, never where programs may not be executed.
///
/// # Errors
/// When none is writable.
pub fn place() -> Result<PathBuf, RootfsError> {
    let uid = rustix::process::geteuid().as_raw();
    let name = format!("timecell-rootfs-{uid}");
    let bases = ["/run", "/dev/shm", "/var/tmp", "/tmp"];
    for base in bases.map(Path::new) {
        let dir = base.join(&name);
        if !noexec(base).unwrap_or(true) && own_dir(&dir, uid).is_ok() {
            return Ok(dir);
        }
    }
    Err(RootfsError::NoPlace(bases.join(", ")))
}

/// Makes `dir` if needed; refuses one that somebody else put there.
fn own_dir(dir: &Path, uid: u32) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    there(fs::create_dir(dir))?;
    let found = fs::symlink_metadata(dir)?;
    if !found.is_dir() || found.uid() != uid {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    fs::set_permissions(dir, Permissions::from_mode(0o755))
}

/// Prepares a root filesystem in `dir` with the running program in it; returns `dir`.
///
/// May be called again, and by several processes at once: present files are kept.
///
/// # Errors
/// When the running program is not static or the directory will not do.
pub fn prepare(dir: &Path) -> Result<PathBuf, RootfsError> {
    let program = Path::new("/proc/self/exe");
    let named = fs::read_link(program).unwrap_or_else(|_| program.to_owned());
    prepare_named(dir, program, &named)
}

/// As [`prepare`], with another program.
///
/// # Errors
/// When the program is not static or the directory will not do.
pub fn prepare_with(dir: &Path, program: &Path) -> Result<PathBuf, RootfsError> {
    prepare_named(dir, program, program)
}

fn prepare_named(dir: &Path, program: &Path, named: &Path) -> Result<PathBuf, RootfsError> {
    check_static(program, named)?;
    let make = || -> io::Result<()> {
        make_dir(dir)?;
        for name in DIRS {
            make_dir(&dir.join(name))?;
        }
        for name in FILES {
            make_file(&dir.join(name))?;
        }
        // podman makes this link in every root filesystem where it is missing.
        let link = dir.join("etc/mtab");
        there(std::os::unix::fs::symlink("/proc/mounts", &link))
    };
    make().map_err(io_at(dir))?;
    if noexec(dir).map_err(io_at(dir))? {
        return Err(RootfsError::NoExec(dir.to_owned()));
    }
    let copy = dir.join("timecell");
    if !same(program, &copy) {
        let part = dir.join(format!(".timecell.{}", std::process::id()));
        let write = || -> io::Result<()> {
            fs::copy(program, &part)?;
            fs::set_permissions(&part, Permissions::from_mode(0o755))?;
            fs::rename(&part, &copy)
        };
        write().map_err(|cause| {
            let _ = fs::remove_file(&part);
            io_at(&copy)(cause)
        })?;
    }
    fs::canonicalize(dir).map_err(io_at(dir))
}

pub(crate) fn io_at(path: &Path) -> impl FnOnce(io::Error) -> RootfsError {
    let path = path.to_owned();
    move |source| RootfsError::Io { path, source }
}

pub(crate) fn make_dir(dir: &Path) -> io::Result<()> {
    fs::create_dir_all(dir)?;
    fs::set_permissions(dir, Permissions::from_mode(0o755))
}

fn make_file(file: &Path) -> io::Result<()> {
    if !file.exists() {
        File::create(file)?;
    }
    fs::set_permissions(file, Permissions::from_mode(0o644))
}

/// Whether both files hold the same bytes.
fn same(one: &Path, other: &Path) -> bool {
    let read = || -> io::Result<bool> {
        let (mut one, mut other) = (File::open(one)?, File::open(other)?);
        if one.metadata()?.len() != other.metadata()?.len() {
            return Ok(false);
        }
        let (mut a, mut b) = (vec![0; 1 << 16], vec![0; 1 << 16]);
        loop {
            let length = one.read(&mut a)?;
            if length == 0 {
                return Ok(true);
            }
            other.read_exact(&mut b[..length])?;
            if a[..length] != b[..length] {
                return Ok(false);
            }
        }
    };
    read().unwrap_or(false)
}

fn noexec(dir: &Path) -> io::Result<bool> {
    let flags = rustix::fs::statvfs(dir)?.f_flag;
    Ok(flags.contains(StatVfsMountFlags::NOEXEC))
}

/// Looks for the program header that asks for a dynamic loader.
pub(crate) fn check_static(program: &Path, named: &Path) -> Result<(), RootfsError> {
    let file = foreign_file::program(Path::new("/"), program).map_err(io_at(named))?;
    let mut head = Vec::new();
    // Linkers put the headers first, so that a page tells almost always; admission reads it for every cell.
    for most in [1 << 12, 1 << 16] {
        head.reserve_exact(most + 1 - head.len());
        (&file)
            .take((most - head.len()) as u64)
            .read_to_end(&mut head)
            .map_err(io_at(named))?;
        let whole = head.len() < most;
        match loader(&head) {
            Loader::None => return Ok(()),
            Loader::Named(interpreter) if interpreter.is_some() || whole || most == 1 << 16 => {
                return Err(RootfsError::NotStatic {
                    program: named.to_owned(),
                    interpreter,
                });
            }
            Loader::Named(_) | Loader::Untold => {}
        }
    }
    Err(RootfsError::NotElf(named.to_owned()))
}

/// The loader that a program asks for, as told by its opening.
enum Loader {
    None,
    /// Its name, where that lies within the opening.
    Named(Option<String>),
    /// It is no ELF file of this machine's kind, or its headers are elsewhere.
    Untold,
}

fn loader(head: &[u8]) -> Loader {
    find_loader(head).unwrap_or(Loader::Untold)
}

/// `None`: the loader's name lies beyond the opening.
fn find_loader(head: &[u8]) -> Option<Loader> {
    const PT_INTERP: usize = 3;
    let bytes = |at: usize, length: usize| head.get(at..at.checked_add(length)?);
    // 64 bits, little endian, as timecell is built.
    if bytes(0, 6)? != b"\x7fELF\x02\x01" {
        return None;
    }
    let number = |at: usize, length: usize| -> Option<usize> {
        let value = bytes(at, length)?
            .iter()
            .rev()
            .fold(0, |sum, byte| sum << 8 | usize::from(*byte));
        Some(value)
    };
    let (table, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
    for index in 0..count {
        let header = index.checked_mul(size)?.checked_add(table)?;
        if number(header, 4)? != PT_INTERP {
            continue;
        }
        let word = |at: usize| number(header.checked_add(at)?, 8);
        let name = word(8)
            .zip(word(32))
            .and_then(|(at, length)| bytes(at, length));
        let name = name.map(|name| name.strip_suffix(b"\0").unwrap_or(name));
        let name = name.filter(|name| !name.is_empty());
        let shown = |name| String::from_utf8_lossy(name).escape_debug().to_string();
        return Some(Loader::Named(name.map(shown)));
    }
    Some(Loader::None)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An ELF head with one program header of this kind.
    fn elf(kind: u8) -> Vec<u8> {
        let mut bytes = vec![0; 120];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[32] = 64;
        bytes[54] = 56;
        bytes[56] = 1;
        bytes[64] = kind;
        bytes
    }

    #[test]
    fn a_static_program_is_copied_once() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("program");
        fs::write(&program, elf(1)).unwrap();
        let rootfs = prepare_with(&dir.path().join("root"), &program).unwrap();
        let inode = |path: &Path| std::os::unix::fs::MetadataExt::ino(&path.metadata().unwrap());
        let first = inode(&rootfs.join("timecell"));
        prepare_with(&rootfs, &program).unwrap();
        assert_eq!(inode(&rootfs.join("timecell")), first);
        fs::write(&program, [elf(1), vec![1]].concat()).unwrap();
        prepare_with(&rootfs, &program).unwrap();
        assert_ne!(inode(&rootfs.join("timecell")), first);
        assert_eq!(fs::read(rootfs.join("timecell")).unwrap().len(), 121);
    }

    #[test]
    fn a_dynamic_program_is_refused_with_the_fix() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("program");
        fs::write(&program, elf(3)).unwrap();
        let error = prepare_with(&dir.path().join("root"), &program).unwrap_err();
        assert!(error.to_string().contains("crt-static"), "{error}");
        assert!(!dir.path().join("root").exists());
    }

    #[test]
    fn headers_behind_the_first_page_are_read_too() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("program");
        for (kind, is_static) in [(1, true), (3, false)] {
            let mut bytes = elf(kind);
            let headers = bytes.split_off(64);
            bytes.resize(8_000, 0);
            bytes[32..40].copy_from_slice(&8_000_u64.to_le_bytes());
            bytes.extend(headers);
            fs::write(&program, &bytes).unwrap();
            let found = check_static(&program, &program);
            assert_eq!(found.is_ok(), is_static, "{found:?}");
            assert!(!matches!(found, Err(RootfsError::NotElf(_))), "{found:?}");
        }
    }

    #[test]
    fn no_bytes_panic() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("program");
        for bytes in [&b""[..], b"\x7fELF\x02\x01", b"#!/bin/sh\n"] {
            fs::write(&program, bytes).unwrap();
            assert!(matches!(
                prepare_with(dir.path(), &program),
                Err(RootfsError::NotElf(_))
            ));
        }
        let mut wild = elf(1);
        wild[32..40].fill(0xff);
        fs::write(&program, wild).unwrap();
        assert!(matches!(
            prepare_with(dir.path(), &program),
            Err(RootfsError::NotElf(_))
        ));
    }

    #[test]
    fn there_is_a_place() {
        assert!(place().unwrap().is_dir());
    }
}
