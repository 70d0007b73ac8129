//! Telling a waiting cell to start, and learning whether it did.
//!
//! The process that is to become a cell's program listens on a socket in the cell's state, as the runtime library
//! does, and executes the program after the first connection has been closed. It holds the far end of a pipe, which the
//! kernel closes at the moment of execution; before that, the process can report a failure.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use host::file::at;

use super::spec::AppSpec;
use crate::error::{Error, Result, refused};
use crate::oci;

/// The name of the socket, the runtime library's.
const SOCKET: &str = "notify.sock";
/// A bare cell's word that it is ready to start.
const READY: &[u8] = b"ready\n";

fn socket_dir(spec: &AppSpec) -> PathBuf {
    oci::runtime_state(spec).join(&spec.id)
}

/// Listens for the word to start.
pub(crate) fn listen(spec: &AppSpec) -> Result<UnixListener> {
    let dir = socket_dir(spec);
    fs::create_dir_all(&dir).map_err(at(&dir))?;
    let opened = File::open(&dir).map_err(at(&dir))?;
    Ok(UnixListener::bind(short(&opened)).map_err(at(&dir))?)
}

/// Waits for the word.
pub(crate) fn wait(listener: &UnixListener) -> io::Result<()> {
    const MOST_BYTES: u64 = 1024;
    let (stream, _) = listener.accept()?;
    stream.take(MOST_BYTES).read_to_end(&mut Vec::new())?;
    Ok(())
}

/// Gives the word; `false`: it had already been given.
pub(crate) fn give(spec: &AppSpec) -> Result<bool> {
    let give = || {
        let opened = File::open(socket_dir(spec))?;
        UnixStream::connect(short(&opened))?.write_all(b"start container")
    };
    match give() {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(false),
        given => Ok(given.map(|()| true)?),
    }
}

/// The socket by a path that is short enough for a socket's address, however deep the directory is.
fn short(dir: &File) -> PathBuf {
    Path::new("/proc/self/fd")
        .join(dir.as_raw_fd().to_string())
        .join(SOCKET)
}

/// Both ends of a pipe; the second is for the cell.
pub(crate) fn report() -> io::Result<(Report, OwnedFd)> {
    let (reader, writer) = io::pipe()?;
    Ok((Report(OwnedFd::from(reader).into()), writer.into()))
}

/// The near end of a cell's report.
#[derive(Debug)]
pub(crate) struct Report(File);

impl Report {
    /// Waits until the program is executed, which is at once unless the cell gets no cpu time.
    ///
    /// # Errors
    /// Why it could not be, or that it took longer than `within`.
    pub(crate) fn executed(mut self, within: Duration) -> Result<()> {
        let said = self.read_until(within, |_| false)?;
        if said.is_empty() {
            Ok(())
        } else {
            Err(Error::Refused(String::from_utf8_lossy(&said).into_owned()))
        }
    }

    /// Waits until a bare cell is ready; `None` if it has ended before.
    pub(crate) fn ready(&mut self, within: Duration) -> Result<Option<()>> {
        let said = self.read_until(within, |said| said == READY)?;
        Ok((said == READY).then_some(()))
    }

    fn read_until(&mut self, within: Duration, enough: impl Fn(&[u8]) -> bool) -> Result<Vec<u8>> {
        const MOST_BYTES: usize = 64 << 10;
        let began = Instant::now();
        let mut said = Vec::new();
        loop {
            let left = within.saturating_sub(began.elapsed());
            if host::pidfd::ready_within(&self.0, left) {
                let mut buffer = [0; 1024];
                match self.0.read(&mut buffer)? {
                    0 => return Ok(said),
                    length => said.extend_from_slice(&buffer[..length]),
                }
                if enough(&said) || said.len() >= MOST_BYTES {
                    return Ok(said);
                }
            } else if left.is_zero() {
                return Err(refused!(
                    "it has not started within {} s; a real-time class in a group without a budget gets no cpu time",
                    within.as_secs()
                ));
            }
        }
    }
}

/// Says through the pipe `fd` that a bare cell is ready.
pub(crate) fn say_ready(pipe: &mut File) -> io::Result<()> {
    pipe.write_all(READY)
}
