//! A copy of our program that cells may see: in memory and sealed, so that nothing that a cell can open leads to the file on
//! disk. A running program is reachable through `/proc/PID/exe`, and the program that makes a cell is for a moment the cell's
//! first process: its file on disk must not be reachable there, or the cell could overwrite it once nobody runs it any more.

use std::fs::{File, Permissions};
use std::io::{self, Seek};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::io::Errno;
use rustix::mount::{OpenTreeFlags, open_tree};

/// An executable file without a name: sealed memory, or a private read-only mount of the file.
#[derive(Debug)]
pub(super) struct OwnImage(OwnedFd);

impl OwnImage {
    /// Copies a program into memory. Where the kernel executes nothing from memory (`vm.memfd_noexec` is 2), the file
    /// is taken by a mount that nobody else has, through which it cannot be written.
    ///
    /// # Errors
    /// When the program cannot be read, or neither way works.
    pub(super) fn of(program: &Path) -> io::Result<OwnImage> {
        sealed(program).or_else(|no_memory| {
            mounted(program).map_err(|no_mount| {
                io::Error::other(format!(
                    "{} cannot be copied to memory ({no_memory}) or mounted read-only ({no_mount})",
                    program.display()
                ))
            })
        })
    }

    /// The path by which this process and its children execute it.
    pub(super) fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.0.as_raw_fd()).into()
    }
}

fn sealed(program: &Path) -> io::Result<OwnImage> {
    let mut from = File::open(program)?;
    let mut copy = memory()?;
    io::copy(&mut from, &mut copy)?;
    copy.rewind()?;
    // Memory is made for everybody to write. The seals forbid that, but a process that holds it open for writing keeps
    // it from being executed (ETXTBSY), and no cell may do that to the cells that are made after it.
    copy.set_permissions(Permissions::from_mode(0o555))?;
    let seals = SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
    fcntl_add_seals(&copy, seals)?;
    Ok(OwnImage(copy.into()))
}

fn memory() -> io::Result<File> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let made = match memfd_create(c"timecell", flags | MemfdFlags::EXEC) {
        // Kernels before 6.3 do not know the flag, and let everything be executed.
        Err(Errno::INVAL) => memfd_create(c"timecell", flags),
        made => made,
    };
    Ok(made?.into())
}

/// A read-only mount of one file which is in no mount namespace.
fn mounted(program: &Path) -> io::Result<OwnImage> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let mount = open_tree(CWD, program, flags)?;
    let mut attributes = libc::mount_attr {
        attr_set: libc::MOUNT_ATTR_RDONLY,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    // SAFETY: an empty path, and a structure of the given size.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH,
            &raw mut attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    match answer {
        0 => Ok(OwnImage(mount)),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions};
    use std::os::unix::fs::MetadataExt;
    use std::process::Command;

    use super::*;

    /// A program of this test's own, which says its name.
    fn program(dir: &Path) -> PathBuf {
        let path = dir.join("program");
        // Written by another process: a descriptor of ours could be held by a child that another test has just forked, and
        // a file that is open for writing is not executed.
        let copied = Command::new("cp").arg("/bin/echo").arg(&path).status();
        assert!(copied.unwrap().success());
        path
    }

    fn is(error: &io::Error, number: i32) -> bool {
        error.raw_os_error() == Some(number)
    }

    fn says(image: &OwnImage) -> Vec<u8> {
        Command::new(image.path())
            .arg("hello")
            .output()
            .unwrap()
            .stdout
    }

    #[test]
    fn a_copy_in_memory_is_executed_and_never_written() {
        let dir = tempfile::tempdir().unwrap();
        let program = program(dir.path());
        let image = sealed(&program).unwrap();
        assert_eq!(says(&image), b"hello\n");
        let before = fs::read(&program).unwrap();
        // A process that gets hold of it may ask for a descriptor to write to, and for another size. Other processes ask:
        // a child that another test forks meanwhile would keep a descriptor of ours, and so keep the copy from being
        // executed.
        let held = format!("/proc/{}/fd/{}", std::process::id(), image.0.as_raw_fd());
        for attempt in ["printf x 1<>$0", "truncate -s 0 $0", "truncate -s +4096 $0"] {
            let tried = Command::new("sh").args(["-c", attempt, &held]).output();
            assert!(!tried.unwrap().status.success(), "{attempt}");
        }
        assert_eq!(fs::metadata(image.path()).unwrap().mode() & 0o222, 0);
        assert_eq!(fs::read(&program).unwrap(), before);
        // The file may be replaced or removed meanwhile.
        fs::remove_file(&program).unwrap();
        assert_eq!(says(&image), b"hello\n");
    }

    #[test]
    fn a_private_mount_is_executed_and_never_written() {
        let dir = tempfile::tempdir().unwrap();
        let program = program(dir.path());
        let image = match mounted(&program) {
            Ok(image) => image,
            Err(error) if is(&error, libc::EPERM) || is(&error, libc::ENOSYS) => return,
            Err(error) => panic!("{error}"),
        };
        assert_eq!(says(&image), b"hello\n");
        let open = OpenOptions::new().write(true).open(image.path());
        assert!(is(&open.unwrap_err(), libc::EROFS));
        let rights = fs::set_permissions(image.path(), fs::Permissions::from_mode(0o777));
        assert!(is(&rights.unwrap_err(), libc::EROFS));
    }
}
