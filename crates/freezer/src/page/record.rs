//! The page's record of one group, apart from its lowered threads: which group it is, and the state of its rule.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::lowered::LowerTable;
use super::twin;
use crate::group::Stop;
use crate::rule::{Ended, Reservation, State};
use crate::stats::Reacted;

/// The longest path of a group, bytes.
pub const LONGEST_PATH: usize = 256;
const PATH_WORDS: usize = LONGEST_PATH / 8;
const WHICH: usize = 4 + PATH_WORDS;
/// In the word of the cpu: it is frozen.
const FREEZE: u64 = 1 << 32;
const PROGRESS: usize = 18;

/// A group that is held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Which {
    /// Its number, never used twice on one page.
    pub id: u64,
    /// The cpu on which it is held.
    pub cpu: u32,
    /// How it is stopped.
    pub stop: Stop,
    /// Its directory.
    pub path: PathBuf,
    /// The inode of that, which is the kernel's number of the group: a recreated group has another.
    pub inode: u64,
}

/// The counts of a group since it is held, over all keepers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Periods that have ended.
    pub periods: u64,
    /// Those whose budget was used up.
    pub exhausted: u64,
    /// Cpu time charged to them, ns.
    pub used_ns: i64,
    /// The largest use beyond a budget, ns.
    pub overrun_ns: i64,
    /// Times that it was stopped.
    pub freezes: u64,
    /// Calls on the group's files that failed, each of which was tried again.
    pub errors: u64,
    /// Cpu time used while nobody held the group that it does not owe ([`crate::rule::Server::waive`]), ns.
    pub waived_ns: i64,
}

/// How far a group's rule has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// The group's number.
    pub id: u64,
    /// Budget and period.
    pub reservation: Reservation,
    /// The rule.
    pub state: State,
    /// The group's cpu time when its threads were lowered, ns; later use is best effort.
    pub lowered_at_ns: Option<i64>,
    /// Best effort so far, ns.
    pub best_effort_ns: i64,
    /// Counts.
    pub totals: Totals,
}

/// The page's entry for a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The group.
    pub which: Which,
    /// How far its rule has come.
    pub progress: Progress,
    /// Why the keeper could not take it up from the one before, an errno (EIO where no call failed; EINVAL also where its cpu is offline), so that nobody
    /// holds it until that works: it is tried again every 100 ms. `None`: it is held, as long as a keeper lives.
    pub not_held: Option<i32>,
}

/// One group's part of the page. Its keeper's thread writes it, and nobody else; as long as no thread has it, the commander.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct GroupRecord {
    which: [AtomicU64; twin::words(WHICH)],
    progress: [AtomicU64; twin::words(PROGRESS)],
    /// Why the keeper could not take it up, an errno; 0: it could. The commander records it as long as no thread has
    /// the group; the thread that takes the group up clears it.
    not_held: AtomicU64,
    pub(crate) lowered: LowerTable,
    pub(crate) reacted: Reacted,
}

/// Stands for no time.
const NONE: i64 = i64::MIN;

impl Totals {
    pub(crate) fn count(&mut self, ended: &Ended) {
        self.periods += ended.periods;
        self.used_ns += ended.used_ns;
        if ended.exhausted {
            self.exhausted += 1;
            self.overrun_ns = self.overrun_ns.max(ended.overrun_ns);
        }
    }
}

impl Progress {
    fn to_words(self) -> [u64; PROGRESS] {
        let Progress { state, totals, .. } = self;
        [
            self.id,
            self.reservation.budget_ns().cast_unsigned(),
            self.reservation.period_ns().cast_unsigned(),
            state.left_ns.cast_unsigned(),
            state.began_with_ns.cast_unsigned(),
            state.end_ns.unwrap_or(NONE).cast_unsigned(),
            state.spent_ns.cast_unsigned(),
            state.looked_ns.cast_unsigned(),
            state.used_ns.cast_unsigned(),
            self.lowered_at_ns.unwrap_or(NONE).cast_unsigned(),
            self.best_effort_ns.cast_unsigned(),
            totals.periods,
            totals.exhausted,
            totals.used_ns.cast_unsigned(),
            totals.overrun_ns.cast_unsigned(),
            totals.freezes,
            totals.errors,
            totals.waived_ns.cast_unsigned(),
        ]
    }

    fn from_words(words: &[u64; PROGRESS]) -> Option<Progress> {
        let ns = |at: usize| words[at].cast_signed();
        let some = |at: usize| Some(ns(at)).filter(|ns| *ns != NONE);
        Some(Progress {
            id: words[0],
            reservation: Reservation::new(ns(1), ns(2)).ok()?,
            state: State {
                left_ns: ns(3),
                began_with_ns: ns(4),
                end_ns: some(5),
                spent_ns: ns(6),
                looked_ns: ns(7),
                used_ns: ns(8),
            },
            lowered_at_ns: some(9),
            best_effort_ns: ns(10),
            totals: Totals {
                periods: words[11],
                exhausted: words[12],
                used_ns: ns(13),
                overrun_ns: ns(14),
                freezes: words[15],
                errors: words[16],
                waived_ns: ns(17),
            },
        })
    }
}

impl GroupRecord {
    /// Which group is held here; `None`: none.
    pub(crate) fn which(&self) -> Option<Which> {
        let words = twin::read::<WHICH>(&self.which[..]);
        if words[0] == 0 {
            return None;
        }
        let bytes: Vec<u8> = words[4..]
            .iter()
            .flat_map(|word| word.to_ne_bytes())
            .collect();
        let length = usize::try_from(words[2]).unwrap_or(0).min(LONGEST_PATH);
        Some(Which {
            id: words[0],
            cpu: u32::try_from(words[1] & !FREEZE).ok()?,
            stop: match words[1] & FREEZE {
                0 => Stop::Lower,
                _ => Stop::Freeze,
            },
            path: PathBuf::from(OsStr::from_bytes(&bytes[..length])),
            inode: words[3],
        })
    }

    /// The group's cpu; `None` if none is held here.
    pub(crate) fn cpu(&self) -> Option<u32> {
        let words = twin::read::<WHICH>(&self.which[..]);
        let cpu = (words[0] != 0).then_some(words[1])?;
        u32::try_from(cpu & !FREEZE).ok()
    }

    /// The group's inode; 0 if none is held here.
    pub(crate) fn inode(&self) -> u64 {
        twin::read::<WHICH>(&self.which[..])[3]
    }

    /// As [`GroupRecord::which`], without the path.
    pub(crate) fn id(&self) -> u64 {
        twin::read::<WHICH>(&self.which[..])[0]
    }

    /// How far it has come; `None` if no group is held here.
    pub(crate) fn progress(&self) -> Option<Progress> {
        let id = self.id();
        let words = twin::read::<PROGRESS>(&self.progress[..]);
        Progress::from_words(&words).filter(|progress| id != 0 && progress.id == id)
    }

    /// The group's entry; `None` if no group is held here.
    pub(crate) fn entry(&self) -> Option<Entry> {
        Some(Entry {
            which: self.which()?,
            progress: self.progress()?,
            not_held: self.not_held(),
        })
    }

    /// Why nobody holds it, an errno; `None`: somebody does, or nothing is held here.
    pub(crate) fn not_held(&self) -> Option<i32> {
        let errno = i32::try_from(self.not_held.load(Ordering::Acquire)).ok();
        errno.filter(|errno| *errno != 0)
    }

    /// Why nobody holds it, an errno, or that somebody does.
    pub(crate) fn set_not_held(&self, errno: Option<i32>) {
        let errno = errno.unwrap_or(0).unsigned_abs();
        self.not_held.store(errno.into(), Ordering::Release);
    }

    /// Records that the group is held here from now on, for the next keeper. Its progress was recorded before. A path
    /// that is too long is cut: callers check it.
    pub(crate) fn appoint(&self, id: u64, (cpu, stop): (u32, Stop), path: &Path, inode: u64) {
        let mut words = [0; WHICH];
        let path = path.as_os_str().as_bytes();
        let path = &path[..path.len().min(LONGEST_PATH)];
        (words[0], words[1], words[2]) = (id, cpu.into(), path.len() as u64);
        words[1] |= if stop == Stop::Freeze { FREEZE } else { 0 };
        words[3] = inode;
        for (word, bytes) in words[4..].iter_mut().zip(path.chunks(8)) {
            let mut whole = [0; 8];
            whole[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_ne_bytes(whole);
        }
        twin::publish(&self.which[..], &words);
    }

    /// No group is held here any more.
    pub(crate) fn dismiss(&self) {
        twin::publish(&self.which[..], &[0; WHICH]);
    }

    pub(crate) fn note(&self, progress: Progress) {
        twin::publish(&self.progress[..], &progress.to_words());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Box<GroupRecord> {
        Box::new(GroupRecord {
            which: std::array::from_fn(|_| AtomicU64::new(0)),
            progress: std::array::from_fn(|_| AtomicU64::new(0)),
            not_held: AtomicU64::new(0),
            lowered: LowerTable::new(),
            reacted: Reacted::default(),
        })
    }

    fn progress(id: u64) -> Progress {
        Progress {
            id,
            reservation: Reservation::new(3_000_000, 10_000_000).unwrap(),
            state: State {
                left_ns: -5,
                began_with_ns: 2,
                end_ns: None,
                spent_ns: 7,
                looked_ns: i64::MAX,
                used_ns: 9,
            },
            lowered_at_ns: Some(-1),
            best_effort_ns: 11,
            totals: Totals {
                periods: 1,
                exhausted: u64::MAX,
                used_ns: 3,
                overrun_ns: 4,
                freezes: 5,
                errors: 6,
                waived_ns: 7,
            },
        }
    }

    #[test]
    fn what_is_noted_is_found_and_only_of_the_group_that_is_held() {
        let record = record();
        assert_eq!((record.which(), record.progress()), (None, None));
        record.note(progress(3));
        assert_eq!(record.progress(), None, "not appointed yet");
        let path = PathBuf::from(format!("/{}", "g".repeat(LONGEST_PATH - 1)));
        record.appoint(3, (65_535, Stop::Freeze), &path, u64::MAX);
        let which = Which {
            id: 3,
            cpu: 65_535,
            stop: Stop::Freeze,
            path,
            inode: u64::MAX,
        };
        assert_eq!(record.which(), Some(which));
        assert_eq!(record.cpu(), Some(65_535));
        assert_eq!(record.progress(), Some(progress(3)));
        let mut other = progress(3);
        (other.state.end_ns, other.lowered_at_ns) = (Some(-7), None);
        record.note(other);
        assert_eq!(record.progress(), Some(other));
        record.note(progress(4));
        assert_eq!(record.progress(), None, "of the next group here");
        record.dismiss();
        assert_eq!(record.which(), None);
    }
}
