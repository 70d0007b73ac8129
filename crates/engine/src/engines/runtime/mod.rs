//! The common part of all OCI runtimes that are separate programs: the command line that drives their cells.

mod app;

use std::process::Command;

use model::{EngineKind, Requirement};

use super::info::Steps;
use crate::error::Result;
use crate::identity::Identity;
use crate::made::{self, Payload, Wipe};
use crate::note::MARK;
use crate::oci::{self, Power};
use crate::{Cell, CellSpec, Engine, EngineError, Footprint, cgroups, process, programs, reach};

/// A runtime's program, and its own needs.
#[derive(Debug)]
pub(super) struct Runtime {
    /// Its name, and that of the Debian package that has it.
    pub(super) name: &'static str,
    /// Options without root's powers, when no group may be made on version 1, nor without a delegated one on version 2.
    pub(super) without_root: &'static [&'static str],
    /// Prefix of the path of a file to log to.
    pub(super) log_prefix: &'static str,
}

/// A runtime as an engine.
pub(super) struct Program {
    pub(super) kind: EngineKind,
    pub(super) runtime: &'static Runtime,
    /// Its requirements besides its program and root.
    pub(super) needs: fn() -> Vec<Requirement>,
    pub(super) footprint: Footprint,
    pub(super) wipe: Wipe,
}

impl Engine for Program {
    fn kind(&self) -> EngineKind {
        self.kind
    }

    fn requirements(&self) -> Vec<Requirement> {
        let name = self.runtime.name;
        let mut needs = vec![programs::requirement(name, name), programs::root(name)];
        needs.extend((self.needs)());
        needs
    }

    fn version(&self) -> Option<String> {
        let name = self.runtime.name;
        let line = programs::first_line(name, &["--version"])?;
        Some(line.replace(&format!("{name} version"), name))
    }

    fn cell_sets_class(&self) -> bool {
        true
    }

    fn footprint(&self) -> Footprint {
        self.footprint
    }

    fn create(&self, spec: &CellSpec) -> Result<Box<dyn Cell>, EngineError> {
        made::create(spec, || self.runtime.make(spec), self.wipe)
    }
}

impl Runtime {
    /// Creates and starts a cell.
    pub(super) fn make(&self, spec: &CellSpec) -> Result<Payload> {
        oci::write_bundle(spec, Power::Root)?;
        let mut command = self.command(spec)?;
        command.args(["run", "--detach"]);
        process::run(with_bundle(&mut command, spec), &made::log(spec))?;
        Ok(Payload {
            pid: oci::read_pid(&oci::pid_file(spec))?,
            child: None,
            helper: None,
        })
    }

    /// The command from a cell's creation to its end.
    pub(super) fn run(&self, spec: &CellSpec) -> Result<Command> {
        let mut run = self.command(spec)?;
        with_bundle(run.arg("run"), spec);
        Ok(run)
    }

    /// The same in three steps.
    pub(super) fn steps(&self, spec: &CellSpec) -> Result<Steps> {
        let mut steps = Steps {
            create: self.command(spec)?,
            start: self.command(spec)?,
            delete: self.command(spec)?,
        };
        with_bundle(steps.create.arg("create"), spec);
        steps.start.args(["start", &spec.id]);
        steps.delete.args(["delete", &spec.id]);
        Ok(steps)
    }

    /// Removes its own state of a cell.
    pub(super) fn wipe(&self, cell: &dyn Identity) -> Result<()> {
        if oci::runtime_state(cell).join(cell.id()).exists()
            && let Ok(mut command) = self.command(cell)
        {
            // Its words are in the log; whether anything is left is seen below.
            let _ = process::run(
                command.args(["delete", "--force", cell.id()]),
                &made::log(cell),
            );
        }
        cgroups::remove(cell.id())
    }

    /// The program with its state of this cell, as the cell's user.
    fn command(&self, cell: &dyn Identity) -> Result<Command> {
        let name = self.name;
        let program = programs::find(name).ok_or_else(|| format!("`{name}` is not installed"))?;
        let mut command = Command::new(program);
        command
            .env(MARK, cell.id())
            .arg("--root")
            .arg(oci::runtime_state(cell));
        if oci::power(cell) == Power::User {
            reach::become_user(&mut command, cell);
            command
                .args(self.without_root)
                .env_remove("XDG_RUNTIME_DIR");
        }
        Ok(command)
    }
}

/// A command that makes a cell, from the cell's bundle.
fn with_bundle<'a>(command: &'a mut Command, cell: &dyn Identity) -> &'a mut Command {
    command
        .arg("--bundle")
        .arg(oci::bundle(cell))
        .arg("--pid-file")
        .arg(oci::pid_file(cell))
        .arg(cell.id())
}
