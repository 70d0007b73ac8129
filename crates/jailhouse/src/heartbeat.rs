//! The sign of life of a cell: a number of 64 bits in memory that the cell shares with Linux. The cell changes it at least once per period;
//! the meaning of the number is the cell's affair.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// Bytes of a page. Larger ones are not used on machines with Jailhouse's arm64.
const PAGE: u64 = 4096;

/// The number, mapped into this process.
#[derive(Debug)]
pub struct Heartbeat {
    page: *mut std::ffi::c_void,
    offset: usize,
}

// SAFETY: the mapping is only read, and by its owner.
unsafe impl Send for Heartbeat {}

impl Heartbeat {
    /// The number at a physical address of the machine, a multiple of 8. The caller has checked that it lies in memory that the root cell shares: a
    /// read of any other memory of a cell stops the cpu that reads, for good.
    ///
    /// # Errors
    /// Of the system: /dev/mem is root's, and the kernel may refuse the address.
    pub fn at(address: u64) -> io::Result<Heartbeat> {
        Heartbeat::of(Path::new("/dev/mem"), address)
    }

    fn of(memory: &Path, address: u64) -> io::Result<Heartbeat> {
        if !address.is_multiple_of(8) {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        let file = File::open(memory)?;
        let (at, length) = (address / PAGE * PAGE, PAGE as usize);
        // SAFETY: a fresh mapping where nothing was.
        let page = unsafe {
            mmap(
                std::ptr::null_mut(),
                length,
                ProtFlags::READ,
                MapFlags::SHARED,
                &file,
                at,
            )?
        };
        Ok(Heartbeat {
            page,
            offset: (address % PAGE) as usize,
        })
    }

    /// The number as it is now.
    pub fn read(&self) -> u64 {
        // SAFETY: the offset is inside the mapped page, and a multiple of 8.
        unsafe {
            self.page
                .byte_add(self.offset)
                .cast::<u64>()
                .read_volatile()
        }
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this address and length.
        let _ = unsafe { munmap(self.page, PAGE as usize) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_at_an_address_is_read_as_it_changes() {
        let dir = tempfile::tempdir().unwrap();
        let memory = dir.path().join("mem");
        let mut bytes = vec![0; 3 * PAGE as usize];
        bytes[2 * 4096 + 16] = 7;
        std::fs::write(&memory, &bytes).unwrap();
        let heartbeat = Heartbeat::of(&memory, 2 * PAGE + 16).unwrap();
        assert_eq!(heartbeat.read(), 7);
        use std::os::unix::fs::FileExt;
        let file = File::options().write(true).open(&memory).unwrap();
        file.write_all_at(&[8], 2 * PAGE + 16).unwrap();
        assert_eq!(heartbeat.read(), 8);
        let unaligned = Heartbeat::of(&memory, 12).unwrap_err();
        assert_eq!(unaligned.raw_os_error(), Some(libc::EINVAL));
    }
}
