//! Files mapped and shared between the coordinator and the cells.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use record::samples::layout::{Header, counted_file_bytes, file_bytes};

use crate::control::{self, Head, Slot};

/// A shared mapping of a whole file, unmapped on drop.
pub(crate) struct Map {
    at: *mut u8,
    length: usize,
}

// SAFETY: the mapping is plain shared memory, used through atomics or by one owner only.
unsafe impl Send for Map {}
// SAFETY: as above.
unsafe impl Sync for Map {}

impl Map {
    pub(crate) fn of(file: &File) -> io::Result<Map> {
        let length = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
        // SAFETY: a fresh shared mapping of an open file; the result is checked.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Map {
            at: at.cast(),
            length,
        })
    }

    pub(crate) fn as_ptr(&self) -> *mut u8 {
        self.at
    }

    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// Writes to each page, so that the measuring loop never faults. Keeps the content.
    pub(crate) fn touch(&self) {
        for offset in (0..self.length).step_by(4096) {
            // SAFETY: the offset is inside the mapping, which only this process writes before it is armed.
            unsafe {
                let at = self.at.add(offset);
                at.write_volatile(at.read_volatile());
            }
        }
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this address and length.
        unsafe { libc::munmap(self.at.cast(), self.length) };
    }
}

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

/// The same with room for what each job counts, see [`ProbeArgs::counters`](crate::ProbeArgs::counters).
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
    let length = libc::off_t::try_from(length).map_err(io::Error::other)?;
    // SAFETY: a valid descriptor; the answer is checked.
    match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, length) } {
        0 => Ok(file),
        errno => {
            let _ = std::fs::remove_file(path);
            Err(io::Error::from_raw_os_error(errno))
        }
    }
}
