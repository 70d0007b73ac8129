//! Why the page or one of its tasks cannot be opened.

use core::ffi::CStr;
use core::fmt;

use crate::layout::VERSION;

/// Why the page could not be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenError {
    /// The file cannot be opened or mapped.
    System {
        /// The failed step, a participle.
        tried: &'static str,
        /// The operating system's error number.
        errno: i32,
    },
    /// A physical address of the machine cannot be mapped.
    Memory {
        /// The address.
        address: u64,
        /// The operating system's error number.
        errno: i32,
    },
    /// The file is shorter than its header says.
    TooShort {
        /// Its length.
        bytes: u64,
    },
    /// The file does not begin like a page.
    NotAPage,
    /// The page has a layout that this library does not know.
    OtherVersion {
        /// Version of the page.
        found: u32,
    },
}

/// Why a task could not be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskError {
    /// The mission declares tasks for this cell, but none of this name.
    Unknown,
    /// This process has already opened the task, which can have only one writer.
    AlreadyOpen,
    /// The mission declares no tasks, and the page has no free slot.
    NoSlotLeft,
    /// Empty, longer than 256 bytes, or with control characters.
    BadName,
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::System { tried, errno } => {
                write!(f, "the timecell page cannot be {tried}: ")?;
                reason(f, *errno)
            }
            OpenError::Memory { address, errno } => {
                write!(f, "{address:#x} cannot be mapped from /dev/mem: ")?;
                reason(f, *errno)
            }
            OpenError::TooShort { bytes } => write!(
                f,
                "the timecell page is cut short: it has {bytes} bytes, fewer than its header says"
            ),
            OpenError::NotAPage => {
                f.write_str("the file named by TIMECELL_PAGE is not a timecell page")
            }
            OpenError::OtherVersion { found } => write!(
                f,
                "the timecell page has layout {found}, but this library knows layout {VERSION}; \
                 build the application with the timecell-client of the timecell that runs it"
            ),
        }
    }
}

impl fmt::Display for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TaskError::Unknown => "the mission declares no task of this name for this cell",
            TaskError::AlreadyOpen => {
                "this process has already opened the task, which can have only one writer"
            }
            TaskError::NoSlotLeft => {
                "the page has no free slot; declare the cell's tasks in the mission"
            }
            TaskError::BadName => "a task's name has 1 to 256 bytes and no control characters",
        })
    }
}

impl core::error::Error for OpenError {}
impl core::error::Error for TaskError {}

/// The operating system's text for an error number.
fn reason(f: &mut fmt::Formatter<'_>, errno: i32) -> fmt::Result {
    let mut text = [0u8; 128];
    // SAFETY: the buffer is valid for its length, of which the last byte stays 0.
    unsafe { libc::strerror_r(errno, text.as_mut_ptr().cast(), text.len() - 1) };
    match CStr::from_bytes_until_nul(&text).map(CStr::to_str) {
        Ok(Ok(text)) if !text.is_empty() => f.write_str(text),
        _ => write!(f, "error {errno}"),
    }
}
