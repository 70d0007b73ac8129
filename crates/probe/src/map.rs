//! Files mapped and shared between the coordinator and the cells.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

pub(crate) use host::map::Map;
use host::map::allocate;
use record::samples::layout::{Header, counted_file_bytes, file_bytes};

use crate::control::{self, Head, Slot};

/// The control page, mapped.
pub(crate) struct ControlMap {
    map: Map,
    cells: usize,
}

impl ControlMap {
    pub(crate) fn create(path: &Path, cells: usize) -> io::Result<ControlMap> {
        let file = preallocated(path, control::file_bytes(cells) as u64)?;
        let control = ControlMap {
            map: Map::of(&file)?,
            cells,
        };
        let head = control.head();
        head.magic
            .store(control::MAGIC, std::sync::atomic::Ordering::Relaxed);
        head.version
            .store(control::VERSION, std::sync::atomic::Ordering::Relaxed);
        head.cells
            .store(cells as u32, std::sync::atomic::Ordering::Release);
        Ok(control)
    }

    pub(crate) fn open(path: &Path) -> io::Result<ControlMap> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let map = Map::of(&file)?;
        let bad = || {
            io::Error::new(
                io::ErrorKind::InvalidData,
                "not a control page of this timecell",
            )
        };
        if map.len() < size_of::<Head>() {
            return Err(bad());
        }
        let mut control = ControlMap { map, cells: 0 };
        let head = control.head();
        let cells = head.cells.load(std::sync::atomic::Ordering::Acquire) as usize;
        let fits = control::file_bytes(cells) <= control.map.len();
        if head.magic.load(std::sync::atomic::Ordering::Relaxed) != control::MAGIC
            || head.version.load(std::sync::atomic::Ordering::Relaxed) != control::VERSION
            || !fits
        {
            return Err(bad());
        }
        control.cells = cells;
        Ok(control)
    }

    pub(crate) fn head(&self) -> &Head {
        // SAFETY: the mapping is page-aligned and at least a head long; all fields are atomics.
        unsafe { &*self.map.as_ptr().cast::<Head>() }
    }

    pub(crate) fn slot(&self, index: usize) -> Option<&Slot> {
        // SAFETY: `cells` slots follow the head inside the mapping; all fields are atomics.
        (index < self.cells).then(|| unsafe {
            &*self
                .map
                .as_ptr()
                .add(size_of::<Head>())
                .cast::<Slot>()
                .add(index)
        })
    }

    pub(crate) fn slots(&self) -> impl Iterator<Item = &Slot> {
        (0..self.cells).filter_map(|index| self.slot(index))
    }
}

/// Makes the samples file of one cell on tmpfs at `path`, with room for every planned job.
///
/// # Errors
/// When shared memory is full or the place is not writable.
pub fn prepare_samples(path: &Path, planned: u64) -> io::Result<()> {
    prepare(path, planned, planned)
}

/// The same with room for each job's counts, see [`ProbeArgs::counters`](crate::ProbeArgs::counters).
///
/// # Errors
/// As [`prepare_samples`].
pub fn prepare_counted_samples(path: &Path, planned: u64) -> io::Result<()> {
    let file = preallocated(path, counted_file_bytes(planned))?;
    let header = Header {
        planned,
        counts_at: file_bytes(planned),
        ..Header::new()
    };
    file.write_all_at(&header.to_bytes(), 0)
}

/// A file with a header for `planned` activations and room for so many records.
pub(crate) fn prepare(path: &Path, records: u64, planned: u64) -> io::Result<()> {
    let file = preallocated(path, file_bytes(records))?;
    let header = Header {
        planned,
        ..Header::new()
    };
    file.write_all_at(&header.to_bytes(), 0)
}

pub(crate) fn preallocated(path: &Path, length: u64) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    match allocate(&file, length) {
        Ok(()) => Ok(file),
        Err(error) => {
            let _ = std::fs::remove_file(path);
            Err(error)
        }
    }
}
