//! Lowering the threads of a group whose budget is used up: in class IDLE a thread takes the cpu from nobody. This is the
//! enforcement; it needs no lock that others hold for long, unlike the freezer ([`crate::beside`]).
//!
//! **Which.** All threads of the group with a fixed priority, stopped or not: telling them apart takes ten times as long
//! as lowering them, and a stopped thread does not notice. The threads are gone through until nothing new is found: one
//! that is forked or moved meanwhile is found at the next pass. On the group's cpu none of its threads runs at that time,
//! so only others can fork into the group or move its threads, and two passes usually suffice.
//!
//! The first 512 are remembered ([`crate::page`]); those beyond are lowered all the same and restored as if they had just
//! been created.
//!
//! **Restoring.** Every thread in the group that is of class IDLE gets its class back. Looking only at those that are in
//! the group at that moment also means that no unrelated thread which got the id of one that ended is given a class. As
//! long as groups below it were made or removed and not all threads could be seen, the table stays, and it is done again.
//!
//! **Children of lowered threads** are created lowered, and are in no table. They get the lowest class and priority among
//! the lowered threads, so none gets more than any of its possible parents had; class OTHER if the children of one of
//! these were to start so. A thread that the group itself had put into class IDLE stays there. Its children that are
//! created while others are lowered cannot be told from children of lowered threads, and get the same class.
//!
//! **Class DEADLINE** is left alone: it has its own budget, which the kernel enforces inside system calls too, and
//! a process that takes it away may be unable to give it back. Such threads run above the enforcing thread, delay it by
//! their runtime, and their use is charged to the group.

use std::fs::File;
use std::sync::Arc;

use crate::lists::{Lists, Seen};
use crate::page::{LowerTable, Page};
use crate::sys::{Policy, SCHED_DEADLINE};

/// The most passes over the threads of a group at once; threads that others still put into it are found at the next look.
const MOST_PASSES: usize = 8;

/// The outcome of lowering a group.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lowering {
    /// Threads lowered now.
    pub lowered: u64,
    /// Threads of class DEADLINE, left alone.
    pub deadline: u64,
    /// Threads that the kernel did not let be lowered, but for those that ended.
    pub refused: u64,
    /// Whether groups were made or removed in it, so that there may be threads that were not seen.
    pub left_out: bool,
}

impl Lowering {
    /// Whether no thread of the group is left that runs before others.
    pub(crate) fn is_all(&self) -> bool {
        self.deadline == 0 && self.refused == 0 && !self.left_out
    }
}

/// Where the lowered threads are recorded.
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

/// The lowered threads of a group, and their former classes.
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
    /// With the present entries of the table. Does not change it: the one that it belongs to may live.
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

    /// Whether threads may be lowered.
    pub(crate) fn is_down(&self) -> bool {
        self.0.is_down()
    }

    /// Lowers the threads of the group open as `dir` and of those below it, which these files list.
    pub(crate) fn lower(&mut self, dir: &File, lists: &Lists) -> Lowering {
        let table = &*self.0;
        table.begin();
        let mut lowered = 0;
        for _ in 0..MOST_PASSES {
            let mut done = pass(table, dir, lists);
            table.set_complete();
            lowered += done.lowered;
            if done.lowered == 0 {
                done.lowered = lowered;
                return done;
            }
        }
        // Somebody forks into it faster than that.
        Lowering {
            lowered,
            left_out: true,
            ..Lowering::default()
        }
    }

    /// Gives classes back, and forgets all unless there may be threads that were not seen: then it has to be done again.
    pub(crate) fn give_back(&mut self, dir: &File, lists: &Lists) -> Seen {
        let table = &*self.0;
        if let Some(least) = table.least() {
            let seen = lists.each_thread(dir, &mut |tid| {
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
            if seen == Seen::NotAll {
                return seen;
            }
        }
        table.clear();
        Seen::All
    }
}

/// Goes through the threads once.
fn pass(table: &LowerTable, dir: &File, lists: &Lists) -> Lowering {
    let mut done = Lowering::default();
    let seen = lists.each_thread(dir, &mut |tid| {
        let Some(had) = Policy::of(tid) else { return };
        let is_idle = had.number == libc::SCHED_IDLE;
        if had.number == SCHED_DEADLINE {
            done.deadline += 1;
        } else if is_idle {
            if !table.is_complete() {
                table.remember(tid, had);
            }
        } else if had.is_fixed_priority() {
            // Recorded before it is done: a successor that finds the table after a kill restores too much rather than
            // too little, which does no harm.
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
    done.left_out = seen == Seen::NotAll;
    done
}

/// The initial class of a child of a thread with this class.
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
}
