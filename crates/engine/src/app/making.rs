//! The call that makes a cell: the running program once more, and where the streams of the cell go.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, OnceLock};

use super::log::Log;
use super::own_image::OwnImage;
use super::program::Program;
use super::sources::Sources;
use super::spec::{AppSpec, Ids};
use crate::agent;
use crate::error::Result;
use crate::note::MARK;

/// The hidden word for this kind of cell.
pub(crate) const APP: &str = "app";

/// Arguments of the process that makes a cell; streams and report by their numbers.
#[derive(Debug)]
pub(crate) struct Handed {
    pub(crate) stdout: RawFd,
    pub(crate) stderr: RawFd,
    pub(crate) report: RawFd,
    /// The cell's end of the socket to its agent, where it sends that its calls.
    pub(crate) agent: Option<RawFd>,
    /// As it was read when the specification was checked; `None` where only the engine knows the image.
    pub(crate) program: Option<Program>,
    pub(crate) sources: Sources,
}

impl Handed {
    /// The program, where the engine needs to know it.
    ///
    /// # Errors
    /// When only the engine knows the image.
    pub(crate) fn program(&self) -> Result<&Program> {
        Ok((self.program.as_ref()).ok_or("nothing is known about the image")?)
    }
}

/// The program that makes cells: timecell itself, executed again from a copy that leads to no file.
#[derive(Debug, Clone)]
pub struct Launcher {
    image: Arc<OwnImage>,
}

impl Launcher {
    /// The running program, even if its file has changed or gone.
    ///
    /// # Errors
    /// When no copy of it can be made that cells may see.
    pub fn own() -> io::Result<Launcher> {
        static OWN: OnceLock<Launcher> = OnceLock::new();
        if let Some(own) = OWN.get() {
            return Ok(own.clone());
        }
        let own = Launcher::at(Path::new("/proc/self/exe"))?;
        Ok(OWN.get_or_init(|| own).clone())
    }

    /// Another timecell, by its absolute path.
    ///
    /// # Errors
    /// When no copy of it can be made that cells may see.
    pub fn at(program: &Path) -> io::Result<Launcher> {
        let image = Arc::new(OwnImage::of(program)?);
        Ok(Launcher { image })
    }

    /// The call that makes this cell; `ends` are standard output, standard error, report, and the socket to its agent where there is one.
    pub(crate) fn command(
        &self,
        spec: &AppSpec,
        sources: &Sources,
        ends: &[BorrowedFd<'_>],
    ) -> Command {
        let of_sources: Vec<BorrowedFd<'_>> = sources.descriptors().collect();
        let mut command = self.child(APP, &[&of_sources, ends].concat());
        command.env(MARK, &spec.id);
        command.arg(std::process::id().to_string());
        command.arg(&spec.work_dir);
        command.arg(numbers(&of_sources).collect::<Vec<_>>().join(","));
        command.args(numbers(ends));
        command
    }

    /// The call that starts the agent of this cell, to which its calls come through `socket`.
    pub(crate) fn agent(&self, spec: &AppSpec, socket: &OwnedFd) -> Command {
        let socket = [socket.as_fd()];
        let mut command = self.child(agent::WORD, &socket);
        command.arg(&spec.work_dir).args(numbers(&socket));
        command
    }

    fn child(&self, word: &str, ends: &[BorrowedFd<'_>]) -> Command {
        let mut command = Command::new(self.image.path());
        command.arg0("timecell").arg("oci-child").arg(word);
        command.env_clear().current_dir("/");
        hand_down(&mut command, ends);
        command
    }
}

fn numbers(ends: &[BorrowedFd<'_>]) -> impl Iterator<Item = String> {
    ends.iter().map(|end| end.as_raw_fd().to_string())
}

/// Lets a command inherit these descriptors under their own numbers; the caller keeps them open until it has started.
fn hand_down(command: &mut Command, ends: &[BorrowedFd<'_>]) {
    let ends: Vec<RawFd> = ends.iter().map(|end| end.as_raw_fd()).collect();
    // SAFETY: between fork and exec only system calls are made.
    unsafe {
        command.pre_exec(move || {
            for end in &ends {
                if libc::fcntl(*end, libc::F_SETFD, 0) != 0 {
                    return Err(io::Error::last_os_error());
                }
            }
            Ok(())
        });
    }
}

/// Where a cell's output goes, and its input comes from.
#[derive(Debug)]
pub enum Streams {
    /// Into a log of bounded size, [`AppSpec::log_bytes`]; there is no input.
    Log,
    /// To these; the caller reads them, and a cell that outlives it must be able to reach it again.
    Given {
        /// Standard input; `None`: there is none. Never a directory, from which the cell could reach any other file of the machine.
        stdin: Option<OwnedFd>,
        /// Standard output.
        stdout: OwnedFd,
        /// Standard error.
        stderr: OwnedFd,
    },
}

/// A cell's ends of its streams, and the log where there is one.
pub(crate) struct Ends {
    pub(crate) stdin: Stdio,
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
    pub(crate) log: Option<Log>,
}

impl Streams {
    pub(crate) fn open(self, spec: &AppSpec, program: Option<&Program>) -> io::Result<Ends> {
        match self {
            Streams::Log => {
                let ids = program.map_or(Ids { uid: 0, gid: 0 }, |program| program.ids);
                let (log, stdout) = Log::make(&spec.work_dir, spec.log_bytes, ids)?;
                Ok(Ends {
                    stdin: Stdio::null(),
                    stderr: stdout.try_clone()?,
                    stdout,
                    log: Some(log),
                })
            }
            Streams::Given {
                stdin,
                stdout,
                stderr,
            } => Ok(Ends {
                stdin: input(stdin)?,
                stdout,
                stderr,
                log: None,
            }),
        }
    }
}

/// A cell's standard input.
///
/// # Errors
/// When it is a directory, or its type cannot be read.
fn input(given: Option<OwnedFd>) -> io::Result<Stdio> {
    let Some(given) = given.map(File::from) else {
        return Ok(Stdio::null());
    };
    match given.metadata()?.is_dir() {
        true => Err(io::Error::other(
            "standard input is a directory, which would expose all files of the machine to the cell",
        )),
        false => Ok(given.into()),
    }
}
