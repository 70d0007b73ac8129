//! EDF on a dedicated cpu in plain 64-bit numbers, for the sets that fit: the usual case, many times faster.

use crate::fp::high;
use crate::{MAX_NS, Ns, Task};

/// Points looked at before the search is left to the general analysis.
const POINTS: u32 = 4_096;

/// No argument of a floor exceeds this, so that a sum over [`MOST`] tasks cannot wrap.
const LONGEST: u64 = 1 << 44;

/// See [`LONGEST`].
const MOST: usize = 1 << 16;

/// The demand of one task.
#[derive(Clone, Copy)]
struct Term {
    /// 2^64 / T, rounded up.
    reciprocal: u64,
    wcet: u64,
    /// T - D + J.
    early: u64,
}

const NONE: Term = Term {
    reciprocal: 0,
    wcet: 0,
    early: 0,
};

/// Whether every deadline holds under EDF on a dedicated cpu, as fast as it can be had: some 70 ns for ten tasks, no
/// allocation up to 64 tasks. Exact where it answers; `None` leaves the set to [`super::verdict`].
///
/// QPA (Zhang & Burns 2009) from the horizon La, each floor a multiplication by a reciprocal, exact in the range that is
/// covered: `D <= T`, `T >= 2`, the same blocking for all, a utilisation not too near 1 or above it, and the horizon plus
/// the longest jitter, times the longest period, below 2^64 ns^2.
///
/// ```
/// use timecell_analysis::{Task, edf::decide};
///
/// assert_eq!(decide(&[Task::new(2, 5).due(4), Task::new(3, 9).due(7)]), Some(true));
/// assert_eq!(decide(&[Task::new(2, 5).due(4), Task::new(3, 9).due(4)]), Some(false));
/// assert_eq!(decide(&[Task::new(1, 2), Task::new(1, 2)]), None); // a utilisation of exactly 1
/// ```
pub fn decide(tasks: &[Task]) -> Option<bool> {
    look(tasks).map(|violation| violation.is_none())
}

/// [`decide`] with an instant by which more is due than can be done, where it refuses.
pub(super) fn look(tasks: &[Task]) -> Option<Option<Ns>> {
    let count = tasks.len();
    if count <= 16 {
        search(tasks, &mut [NONE; 16])
    } else if count <= 64 {
        search(tasks, &mut [NONE; 64])
    } else if count <= MOST {
        search(tasks, &mut vec![NONE; count])
    } else {
        None
    }
}

#[inline]
fn search(tasks: &[Task], terms: &mut [Term]) -> Option<Option<Ns>> {
    let Some(one) = tasks.first() else {
        return Some(None);
    };
    let blocking = one.blocking;
    let mut first = u64::MAX;
    let mut longest_period = 0;
    let mut longest_early = 0;
    // In units of 2^-64, rounded up.
    let mut load = 0u64;
    let mut excess = blocking;
    let mut hopeless = None;
    for (index, task) in tasks.iter().enumerate() {
        let late = task.jitter >= task.deadline;
        if late || task.deadline > task.period || task.period < 2 || task.blocking != blocking {
            return None;
        }
        let due = task.deadline - task.jitter;
        let early = task.period - due;
        if task.wcet == 0 {
            return None;
        }
        if task.wcet > due {
            hopeless = Some(due);
        }
        let reciprocal = u64::MAX / task.period + 1;
        // wcet / period, rounded up: exceeds the product's range only if it is 1.
        let share = task.wcet.checked_mul(reciprocal)?;
        load = load.checked_add(share)?;
        // Both terms together are at least `early` times the share, and small if the times are.
        excess = excess.checked_add(high(early, share) + 1)?;
        first = first.min(due);
        longest_period = longest_period.max(task.period);
        longest_early = longest_early.max(early);
        terms[index] = Term {
            reciprocal,
            wcet: task.wcet,
            early,
        };
    }
    if hopeless.is_some() {
        return Some(hopeless);
    }
    // 1 - U in units of 2^-32, rounded down; all ones of `load` is as near to 1 as it can be said.
    let idle = (u64::MAX - load) >> 32;
    if idle == 0 || excess >> 32 > 0 {
        return None;
    }
    let horizon = (excess << 32) / idle + 1;
    horizon
        .checked_add(longest_early)
        .filter(|&longest| longest <= LONGEST && longest_period <= MAX_NS)?
        .checked_mul(longest_period)?;
    let terms = &terms[..tasks.len()];
    let mut instant = horizon - 1;
    for _ in 0..POINTS {
        if instant < first {
            return Some(None);
        }
        let mut due = blocking;
        for term in terms {
            due += high(instant + term.early, term.reciprocal) * term.wcet;
        }
        if due > instant {
            return Some(Some(instant));
        }
        if due <= first {
            return Some(None);
        }
        // Between two deadlines nothing changes: the instant before is as good as the last deadline before.
        instant = if due < instant { due } else { instant - 1 };
    }
    None
}
