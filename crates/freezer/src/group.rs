//! A group of cgroup v2 as the enforcing thread uses it, by files opened once.
//!
//! A group is held on one cpu: its threads may run on no other (a cpuset or affinity sees to that), because it is stopped
//! everywhere. A cell on several cpus has a group for each, threaded ones for the threads of one process.
//!
//! It is best a separate group around the cell's: a process that may write its `cgroup.freeze` can thaw it. That is the
//! cell itself where it sees its group as its own and the hierarchy is mounted without `nsdelegate`, or an engine that
//! pauses and resumes containers. Groups below a frozen group stay frozen, regardless of writes there.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::beside::Beside;
use crate::counter::{Counter, Senses, UseNotice};
use crate::lists::{Lists, Seen};
use crate::lower::{Lowered, Lowering, Table};
use crate::page::LowerTable;

/// How a group whose budget is used up is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stop {
    /// Its threads are put into class IDLE, and it is frozen as well where that cannot become a gap. The enforcing thread
    /// waits for nobody. For groups whose threads cannot set their own class.
    Lower,
    /// It is frozen, and threads that go on are put into class IDLE. Another process that freezes groups makes the
    /// enforcing thread wait.
    Freeze,
}

/// Why a group cannot be held.
#[derive(Debug, thiserror::Error)]
#[error("{}: {reason}", path.display())]
pub struct GroupError {
    /// The file or directory.
    pub path: PathBuf,
    /// The system's error.
    pub reason: io::Error,
}

/// A group, open.
#[derive(Debug)]
pub struct Group {
    path: PathBuf,
    inode: u64,
    beside: Arc<Beside>,
    lists: Box<Lists>,
    events: File,
    counter: Counter,
    pub(crate) notice: Option<UseNotice>,
    lowered: Lowered,
}

impl Group {
    /// Opens the group whose directory is `path`, to be held on `cpu`. Allocates; nothing of the group changes.
    ///
    /// # Errors
    /// If it is no group of cgroup v2 below the root, or perf refuses the event of `senses`.
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
        let lists = Box::new(Lists::open(&dir));
        Ok(Group {
            path: path.to_owned(),
            inode,
            beside: Arc::new(Beside::new(dir, freeze)),
            lists,
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
    /// The system's error for the file.
    pub(crate) fn thaw_unheld(path: &Path, inode: u64, table: Table) -> Result<(), GroupError> {
        let freeze = path.join("cgroup.freeze");
        let mut lowered = Lowered::new(table);
        let done = File::open(path).and_then(|dir| {
            match dir.metadata()?.ino() == inode {
                true => drop(lowered.give_back(&dir, &Lists::open(&dir))),
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
    /// The kernel's error.
    pub fn used_ns(&self) -> io::Result<i64> {
        self.counter.read_ns()
    }

    /// Freezes it: its threads stop as they return to user mode, new ones before they begin. May wait for strangers.
    ///
    /// # Errors
    /// ENODEV once the group is removed.
    pub fn freeze(&self) -> io::Result<()> {
        self.beside.write(true)
    }

    /// Gives lowered threads their classes back and thaws the group. May wait for strangers.
    ///
    /// # Errors
    /// ENODEV once the group is removed.
    pub fn thaw(&mut self) -> io::Result<()> {
        self.give_back();
        self.beside.write(false)
    }

    /// Gives lowered threads their classes back. If not all could be seen, it has to be done again once
    /// [`Group::take_lists`] says so.
    pub(crate) fn give_back(&mut self) {
        if self.lowered.give_back(self.beside.dir(), &self.lists) == Seen::NotAll {
            self.beside.ask_for_lists();
        }
    }

    /// Gives everything back, with a budget that it has. Waits for others if need be.
    ///
    /// # Errors
    /// ENODEV once the group is removed.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        if self.lowered.is_down() {
            let dir = self.beside.dir();
            self.lowered.give_back(dir, &Lists::open(dir));
        }
        self.beside.thaw()
    }

    /// Its part for the thread beside the enforcing one.
    pub(crate) fn beside(&self) -> &Arc<Beside> {
        &self.beside
    }

    /// Takes lists that were opened anew, if there are any.
    pub(crate) fn take_lists(&mut self) -> bool {
        self.beside.take_lists(&mut self.lists)
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

    /// Puts its real-time threads into class IDLE until they get their classes back. See [`crate::lower`].
    pub fn lower(&mut self) -> Lowering {
        let done = self.lowered.lower(self.beside.dir(), &self.lists);
        if done.left_out {
            self.beside.ask_for_lists();
        }
        done
    }

    /// From now on nobody else records lowered threads.
    pub(crate) fn take_over(&mut self) {
        self.lowered.take_over();
    }

    /// No thread in it is lowered: the record is of a group that was there before.
    pub(crate) fn forget_lowered(&mut self) {
        self.lowered.forget();
    }

    /// Whether threads are lowered.
    pub fn is_lowered(&self) -> bool {
        self.lowered.is_any()
    }
}
