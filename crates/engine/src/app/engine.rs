//! An engine's part in cells of applications, in two processes: the supervisor's, which makes the cell and lets its program begin, and
//! the one that [`super::Launcher`] calls, which makes the container or becomes it.

use std::fmt::Debug;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::process::{Command, Stdio};

use model::Requirement;

use super::config;
use super::ended::Ended;
use super::log::Log;
use super::making::Handed;
use super::program::Program;
use super::sources::Sources;
use super::spec::{AppSpec, Ids};
use super::start::Report;
use crate::agent::Delivery;
use crate::error::Result;
use crate::{made, oci, process};

/// An engine that makes such cells.
pub(crate) trait Apps: Sync + Debug {
    /// Makes the cell; its program waits for [`Apps::start`].
    fn make(&self, making: Making<'_>) -> Result<Made>;

    /// The rest of the making, once its process exists.
    fn complete(&self, spec: &AppSpec, process: BorrowedFd<'_>) -> Result<()> {
        let _ = (spec, process);
        Ok(())
    }

    /// The part of the process that [`Making::call`] starts, which has nothing left of the supervisor's class, cpus and groups.
    fn child(&self, spec: &AppSpec, handed: Handed) -> Result<()>;

    /// Starts the program; `false`: it had already been started.
    fn start(&self, spec: &AppSpec) -> Result<bool>;

    /// How the agent of a cell gets its calls.
    fn delivery(&self) -> Delivery {
        Delivery::Handed
    }

    /// Whether only the engine may know how a program ended, since it is the program's parent.
    fn knows_ends(&self) -> bool {
        false
    }

    /// How the program ended, where [`Apps::knows_ends`].
    fn end(&self, spec: &AppSpec) -> Option<Ended> {
        let _ = spec;
        None
    }

    /// Whether it writes to the streams of its cells itself, so that they must go to a log.
    fn writes_output(&self) -> bool {
        false
    }

    /// Whether a program that waits for its start sleeps, and so stays on the cpu where it ran last, in any group.
    fn sleeps(&self) -> bool {
        false
    }

    /// The storage of images that cells are made from by name.
    fn images(&self) -> Option<&dyn Images> {
        None
    }
}

/// A storage of images.
pub(crate) trait Images {
    /// Whether it has an image of this name; `None`: it does not answer in time.
    fn knows(&self, name: &str) -> Option<bool>;

    /// User and group of an image's program; else why they are not known, a clause.
    fn user(&self, name: &str) -> Result<Ids>;

    /// The requirement that it has an image of this name.
    fn requirement(&self, name: &str) -> Requirement;
}

/// The sources and tools for making a cell.
pub(crate) struct Making<'a> {
    pub(crate) spec: &'a AppSpec,
    /// `None` where only the engine knows the image.
    pub(crate) program: Option<&'a Program>,
    /// Files and directories of the host.
    pub(crate) sources: &'a Sources,
    /// Starts the process that runs [`Apps::child`].
    pub(crate) call: Command,
    /// The cell's standard input.
    pub(crate) stdin: Stdio,
    /// Its log, if it has one.
    pub(crate) log: Option<&'a mut Log>,
    /// Reports of the cell's process until its program is executed.
    pub(crate) report: Report,
    /// The cell's end of the report, inherited by the call.
    pub(crate) end: OwnedFd,
}

/// A cell that was made.
pub(crate) struct Made {
    /// Its first process, as the host sees it.
    pub(crate) pid: i32,
    /// Where it reports that its program is executed.
    pub(crate) report: Option<Report>,
}

impl Making<'_> {
    /// Makes it by a call that makes a container from a bundle, writes its pid, and ends; `reports`: the container has the cell's end of
    /// the report.
    pub(crate) fn with_bundle(mut self, reports: bool) -> Result<Made> {
        let program = (self.program).ok_or("nothing is known about the image")?;
        config::write(self.spec, program)?;
        process::run_on(&mut self.call, &made::log(self.spec), self.stdin)?;
        drop(self.end);
        Ok(Made {
            pid: oci::read_pid(&oci::pid_file(self.spec))?,
            report: reports.then_some(self.report),
        })
    }
}
