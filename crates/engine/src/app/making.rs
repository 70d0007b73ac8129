use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::child::APP;
use super::log::Log;
use super::program::Program;
use super::spec::{AppSpec, Ids};
use crate::note::MARK;

/// The program that makes cells: timecell itself, executed once more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launcher {
    program: PathBuf,
}

impl Launcher {
    /// The running program, whatever has become of its file.
    pub fn own() -> Launcher {
        Launcher {
            program: "/proc/self/exe".into(),
        }
    }

    /// Another timecell, by its absolute path.
    pub fn at(program: &Path) -> Launcher {
        Launcher {
            program: program.to_owned(),
        }
    }

    /// The call that makes this cell; `ends` are standard output, standard error and report.
    pub(super) fn command(&self, spec: &AppSpec, ends: [&OwnedFd; 3]) -> Command {
        let ends = ends.map(AsRawFd::as_raw_fd);
        let mut command = Command::new(&self.program);
        command
            .arg("oci-child")
            .arg(APP)
            .arg(std::process::id().to_string())
            .arg(&spec.work_dir)
            .args(ends.map(|end| end.to_string()))
            .env_clear()
            .env(MARK, &spec.id)
            .current_dir("/");
        hand_down(&mut command, ends);
        command
    }
}

/// Lets a command inherit these descriptors under their own numbers; the caller keeps them open until it has started.
fn hand_down(command: &mut Command, ends: [RawFd; 3]) {
    // SAFETY: between fork and exec only system calls are made.
    unsafe {
        command.pre_exec(move || {
            for end in ends {
                if libc::fcntl(end, libc::F_SETFD, 0) != 0 {
                    return Err(io::Error::last_os_error());
                }
            }
            Ok(())
        });
    }
}

/// Where a cell's output goes.
#[derive(Debug)]
pub enum Streams {
    /// Into a log of bounded size, [`AppSpec::log_bytes`].
    Log,
    /// Into these; the caller reads them, and has to be found again by a cell that outlives it.
    Given {
        /// Standard output.
        stdout: OwnedFd,
        /// Standard error.
        stderr: OwnedFd,
    },
}

/// A cell's ends of its streams, and the log where there is one.
pub(super) struct Ends {
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
    pub(super) log: Option<Log>,
}

impl Streams {
    pub(super) fn open(self, spec: &AppSpec, program: Option<&Program>) -> io::Result<Ends> {
        match self {
            Streams::Log => {
                let ids = program.map_or(Ids { uid: 0, gid: 0 }, |program| program.ids);
                let (log, stdout) = Log::make(&spec.work_dir, spec.log_bytes, ids)?;
                Ok(Ends {
                    stderr: stdout.try_clone()?,
                    stdout,
                    log: Some(log),
                })
            }
            Streams::Given { stdout, stderr } => Ok(Ends {
                stdout,
                stderr,
                log: None,
            }),
        }
    }
}
