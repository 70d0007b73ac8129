//! Where the socket is. The path of a socket has at most 107 bytes (unix(7)); a longer one goes through an open
//! directory.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fs::Mode;
use rustix::process::umask;

/// Name of the socket in the mission's directory.
const NAME: &str = "control";
/// Longest path that the kernel takes as it is.
const LONGEST: usize = 107;

/// Where the socket of this directory is.
pub(super) fn path(dir: &Path) -> PathBuf {
    dir.join(NAME)
}

/// A path to it that is short enough, and the directory that has to stay open meanwhile.
fn short(dir: &Path) -> io::Result<(PathBuf, Option<File>)> {
    let whole = path(dir);
    if whole.as_os_str().len() <= LONGEST {
        return Ok((whole, None));
    }
    let open = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_PATH | libc::O_DIRECTORY)
        .open(dir)?;
    let through = PathBuf::from(format!("/proc/self/fd/{}", open.as_raw_fd()));
    Ok((through.join(NAME), Some(open)))
}

/// Makes the socket of this directory, in place of one that a killed supervisor has left. The caller holds the directory's
/// lock, so that it is nobody else's.
pub(super) fn listen(dir: &Path) -> io::Result<UnixListener> {
    let whole = path(dir);
    match fs::symlink_metadata(&whole) {
        Ok(found) if !found.file_type().is_socket() => {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                format!(
                    "{} exists and is not a socket; move it away",
                    whole.display()
                ),
            ));
        }
        Ok(_) => fs::remove_file(&whole)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let (short, _open) = short(dir)?;
    // Nobody but us may connect, from the first instant.
    let before = umask(Mode::XUSR | Mode::RWXG | Mode::RWXO);
    let listener = UnixListener::bind(short);
    umask(before);
    let listener = listener?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Removes the socket that a killed supervisor of this directory has left. The caller holds the directory's lock.
pub(crate) fn remove(dir: &Path) {
    let whole = path(dir);
    if fs::symlink_metadata(&whole).is_ok_and(|found| found.file_type().is_socket()) {
        // Nobody listens: the next supervisor replaces it.
        let _ = fs::remove_file(whole);
    }
}

/// Speaks to the supervisor of this directory.
pub(super) fn connect(dir: &Path) -> io::Result<UnixStream> {
    let (short, _open) = short(dir)?;
    UnixStream::connect(short)
}
