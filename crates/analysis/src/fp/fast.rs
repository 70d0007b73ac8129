//! Response times under fixed priorities in plain 64-bit numbers, for the sets that fit.

use crate::{MAX_NS, Ns, Task};

/// How far [`response_times_into`] came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fast {
    /// Every deadline holds; all response times are written.
    AllMeet,
    /// The task of this index misses its deadline; the response times before it are written.
    Misses(usize),
    /// The task of this index is not for this function (see there); the response times before it are written.
    NotCovered(usize),
}

/// Evaluations allowed for one task: a busy period of more steps is left to the general analysis and its budget.
const EVALUATIONS: u32 = 4_096;

/// Terms that all evaluations may sum up, half a second's worth, for sets of thousands of tasks.
const TERMS: u64 = 1 << 29;

/// No term of a sum exceeds this, so that a sum over [`MOST`] tasks cannot wrap.
const LONGEST: Ns = 1 << 44;

/// See [`LONGEST`].
const MOST: usize = 1 << 18;

/// The interference of one higher-priority task.
#[derive(Clone, Copy)]
struct Term {
    /// 2^64 / T, rounded up.
    reciprocal: u64,
    wcet: u64,
    /// J - 1, modulo 2^64.
    offset: u64,
}

const NONE: Term = Term {
    reciprocal: 0,
    wcet: 0,
    offset: 0,
};

/// Worst-case response times of tasks with constrained deadlines, as fast as they can be had: some 200 ns for ten tasks,
/// no allocation up to 64 tasks.
///
/// Joseph & Pandya (1986) and Audsley et al. (1993): `w = B + C + sum over higher of ceil((w + J) / T) C`, `R = w + J`,
/// exact. Started from the busy period of the task above (Sjodin & Hansson 1998), and with each ceiling a multiplication
/// by a reciprocal, which is exact in the range that is covered.
///
/// `tasks` in priority order; `out`, at least as long, gets the response times in ns. Covered are tasks with
/// `D <= T`, `T >= 2` and all times positive, as long as the longest deadline plus the longest jitter, times the longest
/// period, stays below 2^64 ns^2 (4.29 s by 4.29 s) and the former below 2^44 ns; [`super::response_times`] covers all others.
///
/// ```
/// use timecell_analysis::{Task, fp::{Fast, response_times_into}};
///
/// let tasks = [Task::new(1, 4), Task::new(1, 5), Task::new(3, 9), Task::new(3, 18)];
/// let mut responses = [0; 4];
/// assert_eq!(response_times_into(&tasks, &mut responses), Fast::AllMeet);
/// assert_eq!(responses, [1, 2, 7, 18]);
/// ```
pub fn response_times_into(tasks: &[Task], out: &mut [Ns]) -> Fast {
    let count = tasks.len().min(out.len()).min(MOST);
    let outcome = if count <= 16 {
        levels(&tasks[..count], out, &mut [NONE; 16])
    } else if count <= 64 {
        levels(&tasks[..count], out, &mut [NONE; 64])
    } else {
        levels(&tasks[..count], out, &mut vec![NONE; count])
    };
    match outcome {
        Fast::AllMeet if count < tasks.len() => Fast::NotCovered(count),
        outcome => outcome,
    }
}

#[inline]
fn levels(tasks: &[Task], out: &mut [Ns], terms: &mut [Term]) -> Fast {
    let mut once = 0u64;
    let mut above = 0u64;
    let mut blocking_above = 0u64;
    let mut longest_period = 1u64;
    let mut longest_jitter = 0u64;
    let mut summed = 0u64;
    for (index, (task, out)) in tasks.iter().zip(out).enumerate() {
        let periodic = 2 <= task.period && task.deadline <= task.period && task.period <= MAX_NS;
        if task.wcet == 0 || task.deadline == 0 || !periodic {
            return Fast::NotCovered(index);
        }
        if task.jitter >= task.deadline || task.wcet > task.deadline - task.jitter {
            return Fast::Misses(index);
        }
        let limit = task.deadline - task.jitter;
        // No argument of a ceiling exceeds limit + jitter; a reciprocal errs by less than 2^-64 T.
        let exact = limit
            .checked_add(longest_jitter)
            .filter(|&longest| longest <= LONGEST)
            .and_then(|longest| longest.checked_mul(longest_period));
        let base = once
            .checked_add(task.wcet)
            .and_then(|once| once.checked_add(task.blocking));
        let (Some(_), Some(base)) = (exact, base) else {
            return Fast::NotCovered(index);
        };
        // The window of the task above, without its own blocking, is served before this task's own work.
        let mut window = base;
        if task.blocking >= blocking_above {
            // Neither sum leaves the range: above <= 2^63 when the check passed at its level, or nothing is above.
            let warm = above
                .saturating_add(task.wcet)
                .saturating_add(task.blocking - blocking_above);
            window = window.max(warm);
        }
        let higher = &terms[..index];
        let mut left = EVALUATIONS;
        loop {
            if window > limit {
                return Fast::Misses(index);
            }
            let mut next = base;
            for term in higher {
                // The first job of each task is in `base`: ceil(x / T) = floor((x - 1) / T) + 1.
                let jobs = high(window.wrapping_add(term.offset), term.reciprocal);
                next = next.wrapping_add(jobs.wrapping_mul(term.wcet));
            }
            if next <= window {
                break;
            }
            window = next;
            left -= 1;
            if left == 0 {
                return Fast::NotCovered(index);
            }
        }
        summed += u64::from(EVALUATIONS - left + 1) * index as u64;
        if summed > TERMS {
            return Fast::NotCovered(index);
        }
        *out = window + task.jitter;
        terms[index] = Term {
            reciprocal: u64::MAX / task.period + 1,
            wcet: task.wcet,
            offset: task.jitter.wrapping_sub(1),
        };
        once += task.wcet;
        above = window;
        blocking_above = task.blocking;
        longest_period = longest_period.max(task.period);
        longest_jitter = longest_jitter.max(task.jitter);
    }
    Fast::AllMeet
}

/// The upper half of the product.
#[inline(always)]
pub(crate) const fn high(a: u64, b: u64) -> u64 {
    ((a as u128 * b as u128) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::budget::Budget;
    use crate::fp::Response;
    use crate::fp::response::{once, preemptive};

    proptest! {
        #[test]
        fn a_reciprocal_divides_exactly_in_the_range_covered(
            (period, x) in (2u64..1 << 44).prop_flat_map(|period| (Just(period), 0..u64::MAX / period)),
        ) {
            // The worst cases are just below and at multiples.
            for x in [x, x - x % period, (x - x % period).saturating_sub(1)] {
                prop_assert_eq!(high(x, u64::MAX / period + 1), x / period);
            }
        }

        #[test]
        fn long_times_are_exact_or_not_covered(
            tasks in prop::collection::vec(
                (1u64..1 << 29, 0u32..4, 0u64..100, 0u64..100, 0u64..1 << 20).prop_map(
                    |(wcet, bits, early, jitter, blocking)| {
                        let period = (wcet << 3) + ((wcet * 13) >> bits);
                        Task::new(wcet, period)
                            .due(period - period * early / 400)
                            .jittered(wcet * jitter / 100)
                            .blocked(blocking)
                    },
                ),
                1..9,
            ),
        ) {
            // The general analysis, unless it takes long.
            let general = |index: usize| {
                let (task, higher) = (&tasks[index], &tasks[..index]);
                let level = preemptive(task, higher);
                let start = once(task.blocking, higher, task.wcet);
                level.analyse(level.load(), start, true, &mut Budget::new(20_000)).response
            };
            let mut out = vec![0; tasks.len()];
            let proved = match response_times_into(&tasks, &mut out) {
                Fast::AllMeet => tasks.len(),
                Fast::Misses(index) => {
                    prop_assert!(!general(index).meets());
                    index
                }
                Fast::NotCovered(index) => index,
            };
            for (index, &bound) in out[..proved].iter().enumerate() {
                match general(index) {
                    Response::Undecided(_) => {}
                    response => prop_assert_eq!(response, Response::Meets(bound)),
                }
            }
        }
    }

    #[test]
    fn what_is_not_covered_is_said() {
        let mut out = [0; 3];
        let fine = Task::new(1, 4);
        for bad in [
            Task::new(0, 4),
            Task::new(1, 0),
            Task::new(1, 1),
            Task::new(1, 4).due(0),
            Task::new(1, 4).due(5),
            Task::new(1, 5).blocked(u64::MAX),
        ] {
            assert_eq!(
                response_times_into(&[fine, bad], &mut out),
                Fast::NotCovered(1),
                "{bad:?}"
            );
        }
        let slow = Task::new(1, 1 << 40);
        assert_eq!(
            response_times_into(&[slow, slow], &mut out),
            Fast::NotCovered(1)
        );
        assert_eq!(
            response_times_into(&[fine; 4], &mut out),
            Fast::NotCovered(3)
        );
        let late = Task::new(1, 4).jittered(4);
        assert_eq!(response_times_into(&[late], &mut out), Fast::Misses(0));
    }

    #[test]
    fn a_very_long_busy_period_is_handed_on() {
        let tasks = [
            Task::new(1, 2),
            Task::new(2_000_000_000, 4_290_000_000).due(4_200_000_000),
        ];
        assert_eq!(response_times_into(&tasks, &mut [0; 2]), Fast::AllMeet);
        let tight = [
            Task::new(999_999, 1_000_000),
            Task::new(4_000, 4_290_000_000).due(4_290_000_000),
        ];
        // 4,000 ns of work at 1 ns per ms: 4,000 steps at most.
        let mut out = [0; 2];
        assert_eq!(response_times_into(&tight, &mut out), Fast::AllMeet);
        assert_eq!(out[1], 4_000_000_000);
    }
}
