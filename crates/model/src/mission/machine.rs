//! The facts about a machine that checking a mission needs.

use std::path::{Path, PathBuf};

use super::{Cell, KernelBounds, Mission, Partition};
use crate::{EngineKind, Requirement};

/// The facts about a machine that checking a mission needs. It is asked, and nothing is changed.
pub trait Machine {
    /// Cpus that cells may use, ascending.
    fn cpus(&self) -> Vec<u32>;

    /// The kind of an absolute or relative path of the host.
    fn path(&self, path: &Path) -> PathKind;

    /// How a path of the host is resolved; `None` if it does not lead to anything.
    fn way(&self, path: &Path) -> Option<Way> {
        let _ = path;
        None
    }

    /// The first thing that an engine needs to make cells and that is missing here; `None`: nothing is known to be missing.
    /// Called once for each engine that a mission names.
    fn lacks(&self, engine: EngineKind) -> Option<Requirement> {
        let _ = engine;
        None
    }

    /// Whether an engine has an image of this name; `None` if it cannot be asked, which is an unmet requirement, not a
    /// fault of the file.
    fn knows_image(&self, engine: EngineKind, reference: &str) -> Option<bool>;

    /// The number of virtual cpus of a cell that is a virtual machine, once all that it boots is here; the error is the unmet need.
    ///
    /// # Errors
    /// What this machine lacks for it.
    fn vcpus(&self, cell: &Cell) -> Result<u32, Requirement> {
        Ok(cell.machine.vcpus.unwrap_or(u32::MAX))
    }

    /// The least memory that a cell can be held to which is a virtual machine, its program at this path of the host, bytes; `None`: nothing
    /// is known about it.
    fn least_memory(&self, cell: &Cell, program: &Path) -> Option<u64> {
        let _ = (cell, program);
        None
    }

    /// Why the machine cannot have a partition of this cell with the system configuration of this file, its files, each with the address to which
    /// it is loaded, beside the partitions of these cells of its mission; each a sentence. Empty: nothing is known against it.
    fn refuses_partition(
        &self,
        (mission, cell): (&Mission, &Cell),
        partition: &Partition,
        system: &Path,
        files: &[(PathBuf, u64)],
        beside: &[(&str, &Partition)],
    ) -> Vec<String> {
        let _ = (mission, cell, partition, system, files, beside);
        Vec::new()
    }

    /// Why nothing may be mounted in a cell's image at this path of the host; `None`: nothing is known against it.
    fn refuses_image(&self, cell: &Cell, image: &Path) -> Option<String> {
        let _ = (cell, image);
        None
    }

    /// Why the program of a cell with its image at this path of the host may not be executed in a cell; `None`: nothing is
    /// known against it.
    fn refuses_program(&self, cell: &Cell, image: &Path) -> Option<String> {
        let _ = (cell, image);
        None
    }

    /// The bounds that its kernel sets.
    fn bounds(&self) -> KernelBounds;
}

/// How a path is resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Way {
    /// Directories in which a name is looked up, without links, including those through which links on the way lead.
    pub through: Vec<PathBuf>,
    /// Where it ends, without links.
    pub end: PathBuf,
}

choice! {
    /// The kind of a path, links followed.
    pub enum PathKind {
        /// Nothing.
        Absent = "nothing",
        /// A file that nobody may execute.
        File = "a file that is not executable",
        /// A file that may be executed.
        Program = "a program",
        /// A directory.
        Directory = "a directory",
        /// A character or block device.
        Device = "a device",
        /// Something else: a socket, a pipe.
        Other = "neither a file nor a directory",
    }
}

/// A path resolved relative to the directory of the file of this name.
pub(super) fn resolve(file: &str, path: &Path) -> PathBuf {
    match Path::new(file).parent() {
        Some(directory) => directory.join(path),
        None => path.to_owned(),
    }
}
