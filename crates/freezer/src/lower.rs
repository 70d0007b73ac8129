//! Lowering the threads of a frozen group that still run: a thread stops when it returns to user mode, and inside a long
//! system call it would keep its real-time class until then. In class IDLE it takes the cpu from nobody.
//!
//! **Which.** All threads of the group with a fixed priority, stopped or not: telling them apart takes ten times as long
//! as lowering them, and a stopped thread does not notice.
//!
//! The first 512 are remembered ([`crate::page`]); those beyond are lowered all the same and restored as if they had just
//! been created.
//!
//! **Restoring.** Before the thaw, every thread in the group that is of class IDLE gets its class back. Looking only at
//! those that are in the group at that moment also means that no unrelated thread which got the id of one that ended is
//! given a class.
//!
//! **Children of lowered threads** are created lowered, and are in no table. They get the lowest class and priority among
//! the lowered threads, so none gets more than any of its possible parents had; class OTHER if the children of one of
//! these were to start so. A thread that the group itself had put into class IDLE stays there.
//!
//! **Class DEADLINE** is left alone: it has its own budget, which the kernel enforces inside system calls too, and
//! whoever takes it away may be unable to give it back. Such threads run above the enforcing thread, delay it by their
//! runtime, and what they use is charged to the group.

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use rustix::fs::{FileType, Mode, OFlags, RawDir, openat};

use crate::page::{LowerTable, Page};
use crate::sys::{Policy, SCHED_DEADLINE};

/// Groups below groups that are looked into.
const MOST_DEEP: usize = 8;

/// What was done to a group that went on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lowering {
    /// Threads lowered now.
    pub lowered: u64,
    /// Threads of class DEADLINE, left alone.
    pub deadline: u64,
    /// Threads that the kernel did not let be lowered, but for those that ended.
    pub refused: u64,
}

/// Where it is noted who was lowered.
#[derive(Debug)]
pub(crate) enum Table {
    /// In memory of this process, and lost with it.
    Own(Box<LowerTable>),
    /// At a place of the page.
    Page(Arc<Page>, usize),
}

impl std::ops::Deref for Table {
    type Target = LowerTable;

    fn deref(&self) -> &LowerTable {
        match self {
            Table::Own(table) => table,
            Table::Page(page, place) => &page.group(*place).lowered,
        }
    }
}

/// The threads of a group that were lowered, and what they had.
#[derive(Debug)]
pub(crate) struct Lowered(Table);

const IDLE: Policy = Policy {
    number: libc::SCHED_IDLE,
    priority: 0,
    reset_on_fork: false,
};
const OTHER: Policy = Policy {
    number: libc::SCHED_OTHER,
    ..IDLE
};

impl Lowered {
    /// With what the table says already. Does not change it: the one that it belongs to may live.
    pub(crate) fn new(table: Table) -> Lowered {
        Lowered(table)
    }

    /// The table is the caller's from now on.
    pub(crate) fn take_over(&mut self) {
        if self.0.least().is_none() {
            // Somebody may have been killed while emptying it.
            self.0.clear();
        }
    }

    /// Nobody gets anything back.
    pub(crate) fn forget(&mut self) {
        self.0.clear();
    }

    pub(crate) fn is_any(&self) -> bool {
        self.0.least().is_some()
    }

    /// Lowers the threads of the group `dir` and of those below it.
    pub(crate) fn lower(&mut self, dir: &File) -> Lowering {
        let mut done = Lowering::default();
        let table = &*self.0;
        each_thread(dir.as_fd(), 0, &mut |tid| {
            let Some(had) = Policy::of(tid) else { return };
            let is_idle = had.number == libc::SCHED_IDLE;
            if had.number == SCHED_DEADLINE {
                done.deadline += 1;
            } else if is_idle {
                if !table.is_complete() {
                    table.remember(tid, had);
                }
            } else if had.is_fixed_priority() {
                // Recorded before it is done: whoever finds the table after this thread was killed restores too much
                // rather than too little, which does no harm.
                table.remember(tid, had);
                let least = table.least();
                table.set_least(least.map_or(for_children(had), |least| lower_of(least, had)));
                let lowered = Policy {
                    reset_on_fork: had.reset_on_fork,
                    ..IDLE
                };
                match lowered.give(tid) {
                    Ok(()) => done.lowered += 1,
                    Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                    Err(_) => done.refused += 1,
                }
            }
        });
        table.set_complete();
        done
    }

    /// Gives classes back; forgets all.
    pub(crate) fn give_back(&mut self, dir: &File) {
        let table = &*self.0;
        if let Some(least) = table.least() {
            each_thread(dir.as_fd(), 0, &mut |tid| {
                // A thread of another class was given it by somebody else meanwhile.
                if Policy::of(tid).is_none_or(|policy| policy.number != libc::SCHED_IDLE) {
                    return;
                }
                let had = table.had(tid).unwrap_or(least);
                if had.number != libc::SCHED_IDLE {
                    // Refused only for a thread that has ended, or by a limit that was lowered meanwhile.
                    let _ = had.give(tid);
                }
            });
        }
        table.clear();
    }
}

/// What a child of a thread with this class starts with.
fn for_children(parent: Policy) -> Policy {
    match parent.reset_on_fork {
        true => OTHER,
        false => parent,
    }
}

fn lower_of(least: Policy, other: Policy) -> Policy {
    let other = for_children(other);
    match (other.priority, other.number) < (least.priority, least.number) {
        true => other,
        false => least,
    }
}

/// Calls `each` with every thread in the group open as `dir` and in those below it, without allocating. What cannot be read is
/// passed over: the group was removed, or holds no threads by its type.
fn each_thread(dir: BorrowedFd<'_>, deep: usize, each: &mut impl FnMut(i32)) {
    if let Ok(file) = open_at(dir, c"cgroup.threads", OFlags::empty()) {
        let _ = each_number(&file, each);
    }
    if deep == MOST_DEEP {
        return;
    }
    // A description of its own, with its own place in the directory.
    let Ok(list) = open_at(dir, c".", OFlags::DIRECTORY) else {
        return;
    };
    let mut room = [MaybeUninit::uninit(); 2048];
    let mut entries = RawDir::new(&list, &mut room);
    while let Some(Ok(entry)) = entries.next() {
        let name = entry.file_name();
        let is_below = entry.file_type() == FileType::Directory && name != c"." && name != c"..";
        if is_below && let Ok(below) = open_at(dir, name, OFlags::DIRECTORY) {
            each_thread(below.as_fd(), deep + 1, each);
        }
    }
}

fn open_at(dir: BorrowedFd<'_>, name: &CStr, flags: OFlags) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | flags;
    Ok(openat(dir, name, flags, Mode::empty())?.into())
}

/// Calls `each` with every number in a file of one number a line.
fn each_number(mut file: &File, each: &mut impl FnMut(i32)) -> io::Result<()> {
    let mut text = [0u8; 4096];
    let mut number: Option<i32> = None;
    loop {
        let length = file.read(&mut text)?;
        if length == 0 {
            return Ok(());
        }
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
pub(crate) mod testing {
    use super::*;
    use std::process::{Child, Command};

    /// A process of class IDLE, which ends with its test.
    pub(crate) struct Idle(Child);

    const HAD: Policy = Policy {
        number: libc::SCHED_BATCH,
        ..IDLE
    };

    impl Idle {
        pub(crate) fn start() -> Idle {
            let idle = Idle(Command::new("sleep").arg("100").spawn().unwrap());
            IDLE.give(idle.tid()).unwrap();
            idle
        }

        pub(crate) fn tid(&self) -> i32 {
            self.0.id().cast_signed()
        }

        pub(crate) fn class(&self) -> i32 {
            Policy::of(self.tid()).unwrap().number
        }

        /// Notes it as one that was lowered.
        pub(crate) fn pass_for_lowered(&self, table: &LowerTable) {
            table.remember(self.tid(), HAD);
            table.set_least(HAD);
        }

        /// Its class once restored, which the kernel refuses to unprivileged processes.
        pub(crate) fn given_back() -> i32 {
            let idle = Idle::start();
            let _ = HAD.give(idle.tid());
            idle.class()
        }
    }

    impl Drop for Idle {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn fifo(priority: i32, reset_on_fork: bool) -> Policy {
        Policy {
            number: libc::SCHED_FIFO,
            priority,
            reset_on_fork,
        }
    }

    #[test]
    fn children_get_the_least_that_a_parent_can_hand_down() {
        assert_eq!(for_children(fifo(80, false)), fifo(80, false));
        assert_eq!(lower_of(fifo(80, false), fifo(10, false)), fifo(10, false));
        assert_eq!(lower_of(fifo(10, false), fifo(80, false)), fifo(10, false));
        assert_eq!(lower_of(fifo(10, false), fifo(80, true)), OTHER);
        assert_eq!(lower_of(OTHER, fifo(1, false)), OTHER);
    }

    #[test]
    fn threads_are_found_in_groups_below_but_not_behind_links() {
        let top = tempfile::tempdir().unwrap();
        let put = |dir: &str, text: &str| {
            let dir = top.path().join(dir);
            std::fs::create_dir_all(&dir).unwrap();
            std::fs::write(dir.join("cgroup.threads"), text).unwrap();
        };
        let many: String = (1000..3000).map(|tid| format!("{tid}\n")).collect();
        put("", "7\n12\n");
        put("a/b", &many);
        put("c", "");
        (0..100).for_each(|empty| put(&format!("with-a-long-name-{empty}"), ""));
        symlink(top.path(), top.path().join("again")).unwrap();
        let mut found = Vec::new();
        let dir = File::open(top.path()).unwrap();
        // Twice: the place in the directory is not kept.
        for _ in 0..2 {
            found.clear();
            each_thread(dir.as_fd(), 0, &mut |tid| found.push(tid));
        }
        found.sort_unstable();
        let expected: Vec<i32> = [7, 12].into_iter().chain(1000..3000).collect();
        assert_eq!(found, expected);
    }
}
