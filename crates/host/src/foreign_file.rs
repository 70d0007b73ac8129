//! Files in directories where anybody may create some: reads are bounded, and opening never waits.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;

/// Opens a regular file for reading. A FIFO would wait for its writer, and a link might lead to an endless device.
///
/// # Errors
/// When it is something else, or on an error of the system.
pub fn open(path: &Path) -> io::Result<File> {
    itself(OpenOptions::new().read(true), path)
}

/// The same for reading and writing, of a file with one name only, so that neither a symbolic nor a hard link of somebody else's is followed.
///
/// # Errors
/// As [`open()`], or when it has several names.
pub fn open_to_write(path: &Path) -> io::Result<File> {
    single(itself(OpenOptions::new().read(true).write(true), path)?)
}

/// The same for appending; makes it if it is not there.
///
/// # Errors
/// As [`open_to_write()`].
pub fn append(path: &Path) -> io::Result<File> {
    single(itself(OpenOptions::new().create(true).append(true), path)?)
}

/// Opens a regular file, and no link to one.
pub(crate) fn itself(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let file = options
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(not_regular());
    }
    Ok(file)
}

/// Opens a program for reading, by its path in the root filesystem at `root`: links are followed beneath it. The file that is looked at is
/// the one that is opened, even if its name is exchanged meanwhile, and opening it waits for nobody.
///
/// # Errors
/// When it is no regular file, when somebody holds a lease of it (`WouldBlock`), or on an error of the system; without `/proc`, `Unsupported`.
pub fn program(root: &Path, inside: &Path) -> io::Result<File> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let found = if root == Path::new("/") {
        // Links of `/proc`, which lead to no path, are followed only here.
        openat(CWD, inside, flags, Mode::empty())?
    } else {
        let root = openat(CWD, root, flags | OFlags::DIRECTORY, Mode::empty())?;
        // Where a path has `..`, the kernel gives up if anybody renames or mounts meanwhile.
        let open = || openat2(&root, inside, flags, Mode::empty(), ResolveFlags::IN_ROOT);
        let mut tries = std::iter::repeat_with(open).take(32);
        let settled = tries.find(|tried| !matches!(tried, Err(Errno::AGAIN)));
        settled.unwrap_or(Err(Errno::BUSY))?
    };
    if !File::from(found.try_clone()?).metadata()?.is_file() {
        return Err(not_regular());
    }
    OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(format!("/proc/self/fd/{}", found.as_raw_fd()))
        .map_err(|error| match error.kind() {
            // The file is there: it is not to be taken for missing.
            io::ErrorKind::NotFound => {
                io::Error::new(io::ErrorKind::Unsupported, "there is no /proc")
            }
            _ => error,
        })
}

fn not_regular() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")
}

fn single(file: File) -> io::Result<File> {
    if file.metadata()?.nlink() > 1 {
        let why = "it has another hard link";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    Ok(file)
}

/// The contents of a regular file of at most `most_bytes`.
///
/// # Errors
/// As [`open()`], or when there is more.
pub fn read(path: &Path, most_bytes: u64) -> io::Result<Vec<u8>> {
    read_from(open(path)?, most_bytes)
}

/// The same for an open file.
///
/// # Errors
/// When there is more, or on an error of the system.
pub fn read_from(file: File, most_bytes: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(most_bytes + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most_bytes {
        let why = format!("it is longer than {most_bytes} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn only_a_short_regular_file_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::write(path("file"), "1234").unwrap();
        assert_eq!(read(&path("file"), 4).unwrap(), b"1234");
        assert!(read(&path("file"), 3).is_err());
        std::os::unix::fs::symlink("/dev/zero", path("link")).unwrap();
        assert!(read(&path("link"), 4).is_err());
        let fifo = std::ffi::CString::new(path("fifo").as_os_str().as_bytes()).unwrap();
        // SAFETY: a path that ends in NUL.
        assert_eq!(unsafe { libc::mkfifo(fifo.as_ptr(), 0o600) }, 0);
        std::fs::write(path("aim"), "kept").unwrap();
        std::fs::hard_link(path("aim"), path("second-name")).unwrap();
        std::os::unix::fs::symlink(path("aim"), path("to-aim")).unwrap();
        for planted in ["second-name", "to-aim", "fifo"] {
            assert!(open_to_write(&path(planted)).is_err(), "{planted}");
            assert!(append(&path(planted)).is_err(), "{planted}");
        }
        open_to_write(&path("file")).unwrap();
        append(&path("new")).unwrap();
        // It answers: without a writer, opening would wait for ever.
        assert!(read(&path("fifo"), 4).is_err());
        assert!(read(dir.path(), 4).is_err());
    }

    #[test]
    fn a_program_is_looked_at_beneath_its_root_and_opened_without_waiting() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        std::fs::create_dir_all(root.join("bin")).unwrap();
        std::fs::write(root.join("bin/tool"), "inside").unwrap();
        std::fs::write(dir.path().join("outside"), "outside").unwrap();
        std::os::unix::fs::symlink("/bin/tool", root.join("link")).unwrap();
        std::os::unix::fs::symlink("../../outside", root.join("out")).unwrap();
        std::os::unix::fs::symlink("/dev/null", root.join("device")).unwrap();
        let fifo = std::ffi::CString::new(root.join("fifo").as_os_str().as_bytes()).unwrap();
        // SAFETY: a path that ends in NUL.
        assert_eq!(unsafe { libc::mkfifo(fifo.as_ptr(), 0o600) }, 0);
        let opened = |inside: &str| program(&root, Path::new(inside));
        assert_eq!(read_from(opened("/link").unwrap(), 9).unwrap(), b"inside");
        let why = |inside: &str| opened(inside).unwrap_err().kind();
        // Beneath the root there is neither the file outside nor the machine's device.
        assert_eq!(why("/out"), io::ErrorKind::NotFound);
        assert_eq!(why("/device"), io::ErrorKind::NotFound);
        assert_eq!(why("/fifo"), io::ErrorKind::InvalidInput);
        let machine = program(Path::new("/"), Path::new("/dev/zero"));
        assert_eq!(machine.unwrap_err().kind(), io::ErrorKind::InvalidInput);
        // An owner who is asked for a lease may take `fs.lease-break-time`, 45 s, to answer.
        let lease = OpenOptions::new()
            .write(true)
            .open(root.join("bin/tool"))
            .unwrap();
        // SAFETY: an open file.
        let taken = unsafe { libc::fcntl(lease.as_raw_fd(), libc::F_SETLEASE, libc::F_WRLCK) };
        assert_eq!(taken, 0);
        // SAFETY: the kernel would send SIGIO, which ends a process that has nothing to say of it.
        unsafe { libc::signal(libc::SIGIO, libc::SIG_IGN) };
        assert_eq!(why("/bin/tool"), io::ErrorKind::WouldBlock);
    }
}
