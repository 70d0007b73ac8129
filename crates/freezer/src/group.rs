//! A group of cgroup v2 as the enforcing thread uses it: files opened once, one write to freeze, one to thaw.
//!
//! A group is held on one cpu: its threads may run on no other (a cpuset or affinity sees to that), because freezing
//! stops them everywhere. A cell on several cpus has a group for each, threaded ones for the threads of one process.
//!
//! It is best a separate group around the cell's: whoever may write `cgroup.freeze` of the group can thaw it. That is the
//! cell itself where it sees its group as its own and the hierarchy is mounted without `nsdelegate`, or an engine that
//! pauses and resumes containers. What is below a frozen group stays frozen, whatever is written there.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::counter::{Counter, Senses, UseNotice};
use crate::lower::{Lowered, Lowering, Table};
use crate::page::LowerTable;

/// Why a group cannot be held.
#[derive(Debug, thiserror::Error)]
#[error("{}: {reason}", path.display())]
pub struct GroupError {
    /// The file or directory.
    pub path: PathBuf,
    /// What the system said.
    pub reason: io::Error,
}

/// A group, open.
#[derive(Debug)]
pub struct Group {
    path: PathBuf,
    inode: u64,
    dir: File,
    freeze: File,
    events: File,
    counter: Counter,
    pub(crate) notice: Option<UseNotice>,
    lowered: Lowered,
}

impl Group {
    /// Opens the group whose directory is `path`, to be held on `cpu`. Allocates; nothing of the group changes.
    ///
    /// # Errors
    /// If it is no group of cgroup v2 below the root, or perf refuses what `senses` promises.
    pub fn open(path: &Path, cpu: u32, senses: &Senses) -> Result<Group, GroupError> {
        Group::open_with(path, cpu, senses, Table::Own(Box::new(LowerTable::new())))
    }

    /// As [`Group::open`], with the threads that the table says are lowered already.
    ///
    /// # Errors
    /// As [`Group::open`].
    pub(crate) fn open_with(
        path: &Path,
        cpu: u32,
        senses: &Senses,
        table: Table,
    ) -> Result<Group, GroupError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |reason| GroupError { path, reason }
        };
        let file = |name: &str, write: bool| {
            let path = path.join(name);
            (OpenOptions::new().read(true).write(write).open(&path)).map_err(failed(&path))
        };
        let dir = File::open(path).map_err(failed(path))?;
        let inode = dir.metadata().map_err(failed(path))?.ino();
        let freeze = file("cgroup.freeze", true)?;
        let events = file("cgroup.events", false)?;
        let counter = Counter::new(file("cpu.stat", false)?);
        let notice = (senses.notice)
            .map(|event| UseNotice::open(&dir, cpu, event).map_err(failed(path)))
            .transpose()?;
        Ok(Group {
            path: path.to_owned(),
            inode,
            dir,
            freeze,
            events,
            counter,
            notice,
            lowered: Lowered::new(table),
        })
    }

    /// Thaws a group that nobody holds, whose number is `inode` and whose lowered threads are in the table: they get
    /// their classes back. A recreated group has none. Only the file that thaws the group has to work; if the group is
    /// gone, there is nothing to do.
    ///
    /// # Errors
    /// What the system said of the file.
    pub(crate) fn thaw_unheld(path: &Path, inode: u64, table: Table) -> Result<(), GroupError> {
        let freeze = path.join("cgroup.freeze");
        let mut lowered = Lowered::new(table);
        let done = File::open(path).and_then(|dir| {
            match dir.metadata()?.ino() == inode {
                true => lowered.give_back(&dir),
                false => lowered.forget(),
            }
            let freeze = OpenOptions::new().write(true).open(&freeze)?;
            freeze.write_at(b"0", 0)
        });
        let is_gone = |reason: &io::Error| {
            let errno = reason.raw_os_error();
            matches!(errno, Some(libc::ENOENT | libc::ENODEV | libc::ENOTDIR))
        };
        match done {
            Err(reason) if !is_gone(&reason) => Err(GroupError {
                path: freeze,
                reason,
            }),
            _ => Ok(()),
        }
    }

    /// Its directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The kernel's number of it, which no group recreated under the same path has.
    pub(crate) fn inode(&self) -> u64 {
        self.inode
    }

    /// Cpu time that it has used, ns since some instant in the past.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn used_ns(&self) -> io::Result<i64> {
        self.counter.read_ns()
    }

    /// Freezes it: its threads stop as they return to user mode, new ones before they begin.
    ///
    /// # Errors
    /// ENODEV once the group is removed.
    pub fn freeze(&self) -> io::Result<()> {
        self.freeze.write_at(b"1", 0).map(drop)
    }

    /// Gives lowered threads their classes back and thaws the group.
    ///
    /// # Errors
    /// ENODEV once the group is removed.
    pub fn thaw(&mut self) -> io::Result<()> {
        self.lowered.give_back(&self.dir);
        self.freeze.write_at(b"0", 0).map(drop)
    }

    /// Whether all its threads have stopped.
    ///
    /// # Errors
    /// ENODEV once the group is removed.
    pub fn is_frozen(&self) -> io::Result<bool> {
        let mut text = [0u8; 256];
        let length = self.events.read_at(&mut text, 0)?;
        let mut lines = text[..length].split(|byte| *byte == b'\n');
        Ok(lines.any(|line| line == b"frozen 1"))
    }

    /// Puts the real-time threads of a group that has not stopped into class IDLE until it is thawed. See
    /// [`crate::lower`].
    pub fn lower(&mut self) -> Lowering {
        self.lowered.lower(&self.dir)
    }

    /// From now on nobody else notes who is lowered.
    pub(crate) fn take_over(&mut self) {
        self.lowered.take_over();
    }

    /// Nobody in it is lowered: what is noted is of a group that was there before.
    pub(crate) fn forget_lowered(&mut self) {
        self.lowered.forget();
    }

    /// Whether threads are lowered.
    pub fn is_lowered(&self) -> bool {
        self.lowered.is_any()
    }
}
