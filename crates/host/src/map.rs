//! Memory shared with all processes that map the same file.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// A shared mapping of a file, unmapped on drop.
#[derive(Debug)]
pub struct Map {
    at: *mut u8,
    length: usize,
}

// SAFETY: the mapping is plain shared memory, used through atomics or by one owner only.
unsafe impl Send for Map {}
// SAFETY: as above.
unsafe impl Sync for Map {}

impl Map {
    /// The whole of a file, as long as it is now.
    ///
    /// # Errors
    /// The kernel's error; of an empty file, EINVAL.
    pub fn of(file: &File) -> io::Result<Map> {
        let length = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
        Map::with(file, length, MapFlags::empty())
    }

    /// The whole of a file with every page in memory, so that touching it never waits.
    ///
    /// # Errors
    /// As [`Map::of`].
    pub fn populated(file: &File) -> io::Result<Map> {
        let length = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
        Map::with(file, length, MapFlags::POPULATE)
    }

    /// The first `length` bytes of a file that does not report its length.
    ///
    /// # Errors
    /// As [`Map::of`].
    pub fn bytes_of(file: &File, length: usize) -> io::Result<Map> {
        Map::with(file, length, MapFlags::empty())
    }

    fn with(file: &File, length: usize, flags: MapFlags) -> io::Result<Map> {
        let rights = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a fresh mapping where nothing was.
        let at = unsafe {
            mmap(
                std::ptr::null_mut(),
                length,
                rights,
                MapFlags::SHARED | flags,
                file,
                0,
            )?
        };
        Ok(Map {
            at: at.cast(),
            length,
        })
    }

    /// Where it begins, aligned to a page.
    #[inline]
    pub fn as_ptr(&self) -> *mut u8 {
        self.at
    }

    /// Rewrites a byte of each page, so that touching it later never faults. Nobody else may write to it meanwhile.
    pub fn touch(&self) {
        for offset in (0..self.length).step_by(4096) {
            // SAFETY: the offset is inside the mapping.
            unsafe {
                let at = self.at.add(offset);
                at.write_volatile(at.read_volatile());
            }
        }
    }

    /// Bytes that are mapped, more than 0.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "none is empty")]
    pub fn len(&self) -> usize {
        self.length
    }
}

/// Allocates this many bytes of a file now: without room in its file system, touching the mapped file would be a SIGBUS.
///
/// # Errors
/// ENOSPC, or another error of the kernel.
pub fn allocate(file: &File, bytes: u64) -> io::Result<()> {
    let bytes = libc::off_t::try_from(bytes).map_err(io::Error::other)?;
    // SAFETY: an open descriptor, no memory.
    match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, bytes) } {
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this address and length.
        let _ = unsafe { munmap(self.at.cast(), self.length) };
    }
}
