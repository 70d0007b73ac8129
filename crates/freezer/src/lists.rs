//! The files in which the kernel lists the threads of a group and of those below it, opened beforehand: opening one by
//! its name takes locks of the file system that others hold while they make and remove groups of their own.
//!
//! **Whether these are all** is seen without a lock. `nr_descendants` in `cgroup.stat` of the group counts those below it,
//! each before anything can be in it; the file of a removed group cannot be read any more, and a group cannot be renamed.
//! So if the count is that of the files and all of them can be read, there is no other group.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;

use rustix::fs::{FileType, Mode, OFlags, RawDir, openat};

/// Groups below groups that are looked into.
const MOST_DEEP: usize = 8;
/// Files that are kept open for one group. One with more groups in it is gone through by name each time.
const MOST_FILES: usize = 256;
/// Attempts to open all while others make and remove some.
const ATTEMPTS: usize = 3;

/// Whether all threads were seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seen {
    /// All that there were.
    All,
    /// Groups were made or removed since the files were opened.
    NotAll,
}

/// The open files of one group.
#[derive(Debug)]
pub(crate) struct Lists {
    stat: Option<File>,
    files: Vec<File>,
    /// Groups below it when they were opened.
    below: Option<usize>,
    /// There are too many, or they lie too deep.
    is_cut: bool,
}

impl Lists {
    /// Opens those of the group open as `dir`. Takes locks that others may hold, and allocates.
    pub(crate) fn open(dir: &File) -> Lists {
        let mut lists = Lists {
            stat: open_at(dir.as_fd(), c"cgroup.stat", OFlags::empty()).ok(),
            files: Vec::new(),
            below: None,
            is_cut: false,
        };
        for _ in 0..ATTEMPTS {
            lists.files.clear();
            let is_whole = each_list(dir.as_fd(), 0, &mut |file| {
                let has_room = lists.files.len() < MOST_FILES;
                if has_room {
                    lists.files.push(file);
                }
                has_room
            });
            lists.is_cut = !is_whole;
            lists.below = lists.count();
            if lists.is_cut
                || lists
                    .below
                    .is_none_or(|below| below + 1 == lists.files.len())
            {
                break;
            }
        }
        lists
    }

    /// Groups below it now; `None`: the kernel does not tell.
    fn count(&self) -> Option<usize> {
        let mut text = [0u8; 512];
        let length = self.stat.as_ref()?.read_at(&mut text, 0).ok()?;
        let mut lines = text[..length].split(|byte| *byte == b'\n');
        let digits = lines.find_map(|line| line.strip_prefix(b"nr_descendants "))?;
        std::str::from_utf8(digits).ok()?.parse().ok()
    }

    /// Calls `each` with every thread of the group open as `dir`, whose lists these are. Neither waits for others nor
    /// allocates, unless there are too many groups.
    pub(crate) fn each_thread(&self, dir: &File, each: &mut impl FnMut(i32)) -> Seen {
        if self.is_cut {
            each_list(dir.as_fd(), 0, &mut |file| {
                let _ = each_number(&file, each);
                true
            });
            return Seen::All;
        }
        let mut seen = Seen::All;
        for file in &self.files {
            if let Err(error) = each_number(file, each)
                && error.raw_os_error() == Some(libc::ENODEV)
            {
                seen = Seen::NotAll;
            }
        }
        // Afterwards: groups made meanwhile count.
        match self.count() {
            Some(below) if below + 1 != self.files.len() => Seen::NotAll,
            _ => seen,
        }
    }
}

/// Calls `each` with the open list of the group open as `dir` and of those below it, without allocating, until it returns
/// `false`; whether it went through all. A list that cannot be opened is passed over: the group was removed.
fn each_list(dir: BorrowedFd<'_>, deep: usize, each: &mut impl FnMut(File) -> bool) -> bool {
    if let Ok(file) = open_at(dir, c"cgroup.threads", OFlags::empty())
        && !each(file)
    {
        return false;
    }
    // A description of its own, with its own place in the directory.
    let Ok(list) = open_at(dir, c".", OFlags::DIRECTORY) else {
        return true;
    };
    let mut room = [MaybeUninit::uninit(); 2048];
    let mut entries = RawDir::new(&list, &mut room);
    while let Some(Ok(entry)) = entries.next() {
        let name = entry.file_name();
        let is_below = entry.file_type() == FileType::Directory && name != c"." && name != c"..";
        if is_below
            && let Ok(below) = open_at(dir, name, OFlags::DIRECTORY)
            && (deep == MOST_DEEP || !each_list(below.as_fd(), deep + 1, each))
        {
            return false;
        }
    }
    true
}

fn open_at(dir: BorrowedFd<'_>, name: &CStr, flags: OFlags) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | flags;
    Ok(openat(dir, name, flags, Mode::empty())?.into())
}

/// Calls `each` with every number in a file of one number a line.
fn each_number(file: &File, each: &mut impl FnMut(i32)) -> io::Result<()> {
    let mut text = [0u8; 4096];
    let mut number: Option<i32> = None;
    let mut at = 0;
    loop {
        let length = file.read_at(&mut text, at)?;
        if length == 0 {
            return Ok(());
        }
        at += length as u64;
        for byte in &text[..length] {
            number = match byte {
                b'0'..=b'9' => {
                    let before = number.unwrap_or(0).saturating_mul(10);
                    Some(before.saturating_add(i32::from(byte - b'0')))
                }
                _ => {
                    if let Some(number) = number {
                        each(number);
                    }
                    None
                }
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    fn put(top: &Path, dir: &str, text: &str) {
        let dir = top.join(dir);
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("cgroup.threads"), text).unwrap();
    }

    fn threads(lists: &Lists, dir: &File) -> (Vec<i32>, Seen) {
        let mut found = Vec::new();
        let seen = lists.each_thread(dir, &mut |tid| found.push(tid));
        found.sort_unstable();
        (found, seen)
    }

    #[test]
    fn threads_are_found_in_groups_below_but_not_behind_links() {
        let top = tempfile::tempdir().unwrap();
        let many: String = (1000..3000).map(|tid| format!("{tid}\n")).collect();
        put(top.path(), "", "7\n12\n");
        put(top.path(), "a", "");
        put(top.path(), "a/b", &many);
        (0..100).for_each(|empty| put(top.path(), &format!("with-a-long-name-{empty}"), ""));
        symlink(top.path(), top.path().join("again")).unwrap();
        let dir = File::open(top.path()).unwrap();
        let lists = Lists::open(&dir);
        assert!(!lists.is_cut && lists.files.len() == 103);
        let expected: Vec<i32> = [7, 12].into_iter().chain(1000..3000).collect();
        // Twice: the place in a file is not kept.
        for _ in 0..2 {
            assert_eq!(threads(&lists, &dir), (expected.clone(), Seen::All));
        }
        // More than are kept open are found all the same, and so are those at any depth.
        (0..200).for_each(|more| put(top.path(), &format!("more-{more}"), ""));
        put(top.path(), "more-199/below", "13\n");
        let lists = Lists::open(&dir);
        assert!(lists.is_cut);
        let (found, seen) = threads(&lists, &dir);
        assert_eq!((found.len(), seen), (2003, Seen::All));
    }

    #[test]
    fn a_group_made_or_removed_since_is_missed() {
        let top = tempfile::tempdir().unwrap();
        let count = |below: usize| {
            let text = format!("nr_descendants {below}\nnr_dying_descendants 9\n");
            std::fs::write(top.path().join("cgroup.stat"), text).unwrap();
        };
        put(top.path(), "", "1\n");
        put(top.path(), "a", "2\n");
        count(1);
        let dir = File::open(top.path()).unwrap();
        let lists = Lists::open(&dir);
        assert_eq!(threads(&lists, &dir), (vec![1, 2], Seen::All));
        for below in [0, 2] {
            count(below);
            assert_eq!(threads(&lists, &dir), (vec![1, 2], Seen::NotAll));
        }
        // Opened while somebody makes one: the next look does not take them for all.
        let lists = Lists::open(&dir);
        assert_eq!(threads(&lists, &dir).1, Seen::NotAll);
        count(1);
        assert_eq!(threads(&lists, &dir).1, Seen::All);
    }
}
