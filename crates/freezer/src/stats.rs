//! The counts of an enforcing thread: plain atomics that it alone writes and anybody may read.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

use crate::rule::{Ended, Reservation};

/// The most groups of one keeper.
pub const MOST_GROUPS: usize = 64;

/// Bins of one octave.
const IN_OCTAVE: usize = 8;
/// Everything below 256 ns is in the first bin.
const FIRST_OCTAVE: u32 = 8;
/// Up to 2^34 ns, 17 s; the last bin holds longer times.
const OCTAVES: usize = 26;
const BINS: usize = 1 + IN_OCTAVE * OCTAVES;

/// A histogram of times with eight bins to an octave: 12.5 % wide at most.
#[derive(Debug)]
#[repr(C)]
pub struct Histogram {
    bins: [AtomicU64; BINS],
    most_ns: AtomicI64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram {
            bins: [const { AtomicU64::new(0) }; BINS],
            most_ns: AtomicI64::new(0),
        }
    }
}

/// The bin of a time.
fn bin(ns: i64) -> usize {
    let ns = ns.max(0).unsigned_abs();
    let Some(octave) = ns
        .checked_ilog2()
        .and_then(|log| log.checked_sub(FIRST_OCTAVE))
    else {
        return 0;
    };
    let part = (ns >> (octave + FIRST_OCTAVE - IN_OCTAVE.ilog2())) as usize % IN_OCTAVE;
    (1 + octave as usize * IN_OCTAVE + part).min(BINS - 1)
}

/// The least time that lies above a bin, ns.
fn end_of(bin: usize) -> i64 {
    let (octave, part) = (bin / IN_OCTAVE, bin % IN_OCTAVE);
    let step = (1i64 << FIRST_OCTAVE) / IN_OCTAVE as i64;
    ((IN_OCTAVE as i64 + part as i64) * step) << octave
}

impl Histogram {
    pub(crate) fn record(&self, ns: i64) {
        add(&self.bins[bin(ns)], 1);
        self.most_ns
            .store(self.most_ns.load(Relaxed).max(ns), Relaxed);
    }

    pub(crate) fn clear(&self) {
        self.bins.iter().for_each(|bin| bin.store(0, Relaxed));
        self.most_ns.store(0, Relaxed);
    }

    /// The bins with something in them, each with the least time that lies above it, ns, and how many times are in it; ascending. Times over 17
    /// s are in the last.
    pub fn bins(&self) -> Vec<(i64, u64)> {
        let counts = self.bins.iter().map(|bin| bin.load(Relaxed)).enumerate();
        let some = counts.filter(|(_, count)| *count > 0);
        some.map(|(bin, count)| (end_of(bin), count)).collect()
    }

    /// How many times were recorded.
    pub fn count(&self) -> u64 {
        self.bins.iter().map(|bin| bin.load(Relaxed)).sum()
    }

    /// The longest, ns; 0 without any.
    pub fn most_ns(&self) -> i64 {
        self.most_ns.load(Relaxed)
    }

    /// The time that `permille` of 1,000 recorded ones do not exceed, ns, rounded up by 12.5 % at most; 0 without any.
    pub fn quantile_ns(&self, permille: u64) -> i64 {
        let wanted = (self.count() * permille).div_ceil(1000);
        let mut seen = 0;
        let at = self.bins.iter().position(|bin| {
            seen += bin.load(Relaxed);
            seen >= wanted
        });
        match at {
            Some(bin) if wanted > 0 => end_of(bin).min(self.most_ns()),
            _ => 0,
        }
    }
}

/// How exactly one group has been held so far: over all keepers, one after the other. Killing one loses at most the
/// count being written.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Reacted {
    /// From when a look was meant until it was done, which includes that it was stopped or given its classes back, ns.
    pub late: Histogram,
    /// Use beyond the budget, of those periods in which it was used up, ns.
    pub overruns: Histogram,
}

impl Reacted {
    pub(crate) fn clear(&self) {
        self.late.clear();
        self.overruns.clear();
    }
}

/// A group that is held, as its keeper numbers it; never used twice by one keeper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Id(u64);

impl Id {
    pub(crate) fn numbered(number: u64) -> Id {
        Id(number)
    }

    /// The number in [`GroupStats::id`].
    pub fn number(self) -> u64 {
        self.0
    }
}

/// A keeper's counts of one group.
#[derive(Debug, Default)]
#[repr(C)]
pub struct GroupStats {
    /// Its [`Id`]; 0: nothing is held here.
    pub id: AtomicU64,
    /// Budget, ns.
    pub budget_ns: AtomicI64,
    /// Period, ns.
    pub period_ns: AtomicI64,
    /// Periods that have ended.
    pub periods: AtomicU64,
    /// Those whose budget was used up.
    pub exhausted: AtomicU64,
    /// Cpu time charged to them, ns.
    pub used_ns: AtomicI64,
    /// Cpu time used in class IDLE once the budget was used up, which takes nothing from anybody and is not charged, ns.
    pub best_effort_ns: AtomicI64,
    /// Looks.
    pub looks: AtomicU64,
    /// Times that it was stopped.
    pub freezes: AtomicU64,
    /// Times that its threads were gone through to lower them.
    pub lowerings: AtomicU64,
    /// Threads lowered in all.
    pub lowered: AtomicU64,
    /// Threads of class DEADLINE that went on, in all: those are left to their own budget.
    pub deadline: AtomicU64,
    /// Use that the kernel had not reported when the safety look found it: 0 where notices can be relied on.
    pub missed_notices: AtomicU64,
    /// Calls on its files that failed. The group is no longer held after one that says it is gone.
    pub errors: AtomicU64,
    /// 1 once the group is gone.
    pub gone: AtomicU64,
    /// Use beyond the budget, of those periods in which it was used up.
    pub overruns: Histogram,
}

impl GroupStats {
    pub(crate) fn begin(&self, id: u64, reservation: Reservation) {
        for counter in [
            &self.periods,
            &self.exhausted,
            &self.looks,
            &self.freezes,
            &self.lowerings,
            &self.lowered,
            &self.deadline,
            &self.missed_notices,
            &self.errors,
            &self.gone,
        ] {
            counter.store(0, Relaxed);
        }
        self.used_ns.store(0, Relaxed);
        self.best_effort_ns.store(0, Relaxed);
        self.overruns.clear();
        self.budget_ns.store(reservation.budget_ns(), Relaxed);
        self.period_ns.store(reservation.period_ns(), Relaxed);
        self.id.store(id, Relaxed);
    }

    pub(crate) fn ended(&self, ended: Ended) {
        add(&self.periods, ended.periods);
        self.used_ns
            .store(self.used_ns.load(Relaxed) + ended.used_ns, Relaxed);
        if ended.exhausted {
            add(&self.exhausted, 1);
            self.overruns.record(ended.overrun_ns);
        }
    }
}

/// A keeper's counts.
#[derive(Debug)]
#[repr(C)]
pub struct Stats {
    /// Wake-ups.
    pub wakeups: AtomicU64,
    /// Cpu time of the enforcing thread and of the one beside it, ns.
    pub own_cpu_ns: AtomicI64,
    /// When the loop went round last, ns of CLOCK_MONOTONIC: a heartbeat, at least one a second.
    pub alive_ns: AtomicI64,
    /// How late it woke from the clock.
    pub late: Histogram,
    /// How long it was busy after a wake-up, without the kernel's time to wake it and let it sleep.
    pub busy: Histogram,
    /// The groups.
    pub groups: [GroupStats; MOST_GROUPS],
}

impl Stats {
    pub(crate) fn new() -> Stats {
        Stats {
            wakeups: AtomicU64::new(0),
            own_cpu_ns: AtomicI64::new(0),
            alive_ns: AtomicI64::new(0),
            late: Histogram::default(),
            busy: Histogram::default(),
            groups: std::array::from_fn(|_| GroupStats::default()),
        }
    }

    /// The counts of a group; `None` if it is not held.
    pub fn group(&self, id: Id) -> Option<&GroupStats> {
        (self.groups.iter()).find(|group| group.id.load(Relaxed) == id.number())
    }
}

/// Adds to a counter that only the calling thread writes.
pub(crate) fn add(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Relaxed) + more, Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_bin_ends_just_above_what_is_in_it(ns in 0i64..1 << 33) {
            let end = end_of(bin(ns));
            prop_assert!(ns < end);
            prop_assert!(ns < 256 || end - ns <= ns / 8 + 1);
            prop_assert!(bin(ns) == 0 || end_of(bin(ns) - 1) <= ns);
        }

        #[test]
        fn quantiles_are_above_by_a_bin_at_most(mut times in prop::collection::vec(0i64..1 << 33, 1..50), permille in 1u64..=1000) {
            let histogram = Histogram::default();
            times.iter().for_each(|ns| histogram.record(*ns));
            times.sort_unstable();
            let exact = times[(times.len() * permille as usize).div_ceil(1000) - 1];
            let told = histogram.quantile_ns(permille);
            prop_assert!(told >= exact && told <= (exact + exact / 8 + 1).max(256));
            prop_assert_eq!(histogram.most_ns(), times[times.len() - 1]);
            let bins = histogram.bins();
            prop_assert_eq!(bins.iter().map(|(_, count)| count).sum::<u64>(), times.len() as u64);
            prop_assert!(bins.is_sorted_by(|one, next| one.0 < next.0));
            let below = |end: i64| times.iter().filter(|ns| **ns < end).count() as u64;
            let mut seen = 0;
            for (end, count) in bins {
                seen += count;
                prop_assert_eq!(below(end), seen);
            }
        }
    }

    #[test]
    fn the_longest_times_are_in_the_last_bin() {
        assert_eq!(bin(i64::MAX), BINS - 1);
        assert_eq!(bin(-1), 0);
        assert_eq!(Histogram::default().quantile_ns(500), 0);
    }
}
