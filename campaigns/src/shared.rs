//! Memory that a campaign shares with the processes that it forks.

use std::io;

use super::Failure;

/// A new page of zeros, which children inherit and nothing gives back.
///
/// # Safety
/// Zero is a valid value of every field of `T`.
///
/// # Errors
/// If there is no memory.
pub unsafe fn page<T: Sync>() -> Result<&'static T, Failure> {
    let (access, how) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_POPULATE,
    );
    // SAFETY: a new mapping of its own, long enough and page-aligned; its value is the caller's.
    unsafe {
        let page = libc::mmap(std::ptr::null_mut(), size_of::<T>(), access, how, -1, 0);
        if page == libc::MAP_FAILED {
            return Err(io::Error::last_os_error().into());
        }
        Ok(&*page.cast::<T>())
    }
}
