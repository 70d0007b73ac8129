//! Mapping the page.

use core::ffi::CStr;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

use crate::OpenError;
use crate::layout::{self, Counters, Head, Identity, MAGIC, MAX_SLOTS, Responses, Ring, VERSION};

/// A mapped page. It stays mapped until the process ends: tasks refer to it from every thread, and it is small.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Map {
    head: &'static Head,
    slots: usize,
    /// Whether it is long enough for the response times of all slots.
    has_responses: bool,
}

impl Map {
    pub(crate) fn open(path: &CStr) -> Result<Map, OpenError> {
        // SAFETY: the path ends with a NUL.
        let fd = unsafe { libc::open(path.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) };
        if fd < 0 {
            return Err(failed("opened"));
        }
        let map = Map::of(fd);
        // SAFETY: the descriptor is ours; the mapping does not need it.
        unsafe { libc::close(fd) };
        map
    }

    fn of(fd: i32) -> Result<Map, OpenError> {
        // SAFETY: an all-zero `stat` is valid, and valid for the write.
        let length = unsafe {
            let mut stat: libc::stat = core::mem::zeroed();
            if libc::fstat(fd, &raw mut stat) != 0 {
                return Err(failed("examined"));
            }
            u64::try_from(stat.st_size).unwrap_or(0)
        };
        let too_short = OpenError::TooShort { bytes: length };
        let bytes = usize::try_from(length).map_err(|_| OpenError::NotAPage)?;
        if bytes < layout::least_bytes(1) {
            return Err(too_short);
        }
        if bytes > layout::page_bytes(MAX_SLOTS) {
            return Err(OpenError::NotAPage);
        }
        // SAFETY: a fresh shared mapping; the result is checked. MAP_POPULATE, so that no report faults.
        let at = unsafe {
            libc::mmap(
                core::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_POPULATE,
                fd,
                0,
            )
        };
        if at == libc::MAP_FAILED {
            return Err(failed("mapped"));
        }
        // SAFETY: the mapping is page-aligned, longer than a head, and never undone once this reference leaves.
        let head: &'static Head = unsafe { &*at.cast::<Head>() };
        let slots = head.slots.load(Relaxed) as usize;
        let fault = if head.magic.load(Relaxed) != MAGIC {
            Some(OpenError::NotAPage)
        } else if head.version.load(Relaxed) != VERSION {
            let found = head.version.load(Relaxed);
            Some(OpenError::OtherVersion { found })
        } else if !(1..=MAX_SLOTS).contains(&slots) {
            Some(OpenError::NotAPage)
        } else if bytes < layout::least_bytes(slots) {
            Some(too_short)
        } else {
            None
        };
        let Some(fault) = fault else {
            let has_responses = bytes >= layout::page_bytes(slots);
            return Ok(Map {
                head,
                slots,
                has_responses,
            });
        };
        // SAFETY: the mapping was made above and nothing refers to it any more.
        unsafe { libc::munmap(at, bytes) };
        Err(fault)
    }

    pub(crate) fn gate(self) -> &'static AtomicU32 {
        &self.head.gate
    }

    pub(crate) fn slots(self) -> usize {
        self.slots
    }

    fn at<T>(self, offset: usize) -> &'static T {
        let page: *const Head = self.head;
        // SAFETY: the callers' offsets lie within the mapping, whose length was checked against the number of slots; each
        // type is aligned there and made of atomics only.
        unsafe { &*page.cast::<u8>().add(offset).cast::<T>() }
    }

    /// `slot` must be less than the number of slots, here and below.
    pub(crate) fn counters(self, slot: usize) -> &'static Counters {
        debug_assert!(slot < self.slots);
        self.at(layout::counters_at(slot))
    }

    pub(crate) fn identity(self, slot: usize) -> &'static Identity {
        debug_assert!(slot < self.slots);
        self.at(layout::identity_at(self.slots, slot))
    }

    pub(crate) fn ring(self, slot: usize) -> &'static Ring {
        debug_assert!(slot < self.slots);
        self.at(layout::ring_at(self.slots, slot))
    }

    pub(crate) fn responses(self, slot: usize) -> Option<&'static Responses> {
        debug_assert!(slot < self.slots);
        (self.has_responses).then(|| self.at(layout::responses_at(self.slots, slot)))
    }
}

fn failed(tried: &'static str) -> OpenError {
    // SAFETY: the address is valid for the calling thread.
    let errno = unsafe { *libc::__errno_location() };
    OpenError::System { tried, errno }
}
