//! The heartbeat of a Linux that is a partition beside another one.

use core::ffi::CStr;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use crate::OpenError;

/// Bytes of a page that can be mapped on every machine that has partitions.
const PAGE: u64 = 4096;

/// The sign of life of a Linux that is a partition, such as a cell of Jailhouse: a number in a page that it shares with the Linux whose mission has it.
#[derive(Debug)]
pub struct Heartbeat(&'static AtomicU64);

impl Heartbeat {
    /// Maps the number at a physical address, a multiple of 8: `heartbeat` of the partition in its mission. It stays mapped until the process ends.
    ///
    /// # Errors
    /// When /dev/mem cannot be opened or mapped: it is root's, and a kernel with STRICT_DEVMEM maps only what is not its own memory.
    pub fn at(address: u64) -> Result<Heartbeat, OpenError> {
        Heartbeat::of(c"/dev/mem", address)
    }

    fn of(memory: &CStr, address: u64) -> Result<Heartbeat, OpenError> {
        let (page, inside) = (address / PAGE * PAGE, (address % PAGE) as usize);
        let refused = |errno| OpenError::Memory { address, errno };
        let Some(offset) = page.try_into().ok().filter(|_| address.is_multiple_of(8)) else {
            return Err(refused(libc::EINVAL));
        };
        // SAFETY: the path ends with a NUL; a fresh shared mapping, whose result is checked; the mapping does not need the descriptor.
        unsafe {
            let fd = libc::open(
                memory.as_ptr(),
                libc::O_RDWR | libc::O_SYNC | libc::O_CLOEXEC,
            );
            if fd < 0 {
                return Err(refused(*libc::__errno_location()));
            }
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let nowhere = core::ptr::null_mut();
            let at = libc::mmap(nowhere, PAGE as usize, access, libc::MAP_SHARED, fd, offset);
            let errno = *libc::__errno_location();
            libc::close(fd);
            if at == libc::MAP_FAILED {
                return Err(refused(errno));
            }
            // SAFETY: it is inside the page, a multiple of 8, and never unmapped.
            Ok(Heartbeat(&*at.byte_add(inside).cast::<AtomicU64>()))
        }
    }

    /// Sends a heartbeat: one load and one store. To be called several times within the time that the mission's health rule gives.
    #[inline]
    pub fn beat(&mut self) {
        // The page is no memory of this kernel's, where read-modify-write instructions may not exist.
        self.0.store(self.0.load(Relaxed).wrapping_add(1), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn a_beat_changes_the_number_at_its_address() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), [0xff; 2 * PAGE as usize]).unwrap();
        let path = CString::new(file.path().as_os_str().as_bytes()).unwrap();
        let mut heartbeat = Heartbeat::of(&path, PAGE + 16).unwrap();
        heartbeat.beat();
        heartbeat.beat();
        let bytes = std::fs::read(file.path()).unwrap();
        let at = PAGE as usize + 16;
        assert_eq!(bytes[at..at + 8], 1_u64.to_le_bytes());
        assert!(
            bytes[..at]
                .iter()
                .chain(&bytes[at + 8..])
                .all(|byte| *byte == 0xff)
        );
        let unaligned = Heartbeat::of(&path, 12).unwrap_err();
        let said = "0xc cannot be mapped from /dev/mem: Invalid argument";
        assert_eq!(unaligned.to_string(), said);
    }
}
