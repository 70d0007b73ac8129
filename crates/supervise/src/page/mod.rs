//! The supervisor's end of the page in which an application reports its jobs ([`timecell_client::layout`]): creating it,
//! reading it, and where it is.
//!
//! The cell is hostile: it writes anything at any time, and may cut the file short. So the page is **read with `pread`,
//! never mapped**: reading beyond the end of a file that has shrunk is a short read, while touching it in a mapping is
//! SIGBUS in the supervisor. A memory file sealed against shrinking would allow a mapping, but cannot be put anywhere in
//! a cell: `mount(MS_BIND)` of `/proc/self/fd/N` is refused (EINVAL) because a memfd lies on a mount of the kernel's own,
//! files of a tmpfs cannot be sealed (EPERM), and a descriptor that a cell inherits is lost at the first program that
//! closes unknown ones. A named file also outlives the supervisor, so that the next one finds it again. Its place bounds
//! its growth: a tmpfs of exactly the page's size and no second inode ([`Place`]).
//!
//! Nothing in the page decides where anything is read or how much: the number of slots is the supervisor's own, and a
//! scan returns at most a ring of jobs for each task, each of which has plausible times.

mod counters;
mod error;
mod file;
mod interpret;
mod news;
mod place;

pub use error::PageError;
pub use file::{Declared, Page};
pub use news::{Job, News, Nonsense, Running, Totals};
pub use place::{FILE, Place};
