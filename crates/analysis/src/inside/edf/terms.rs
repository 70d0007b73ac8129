//! The demand of a set, made ready for being evaluated at many instants.

use std::cmp::Ordering;
use std::ops::Range;

use super::excess::{Excess, compare_with_rate, last_deadline};
use crate::budget::Budget;
use crate::fp::high;
use crate::{Ns, Supply, Task, Undecided};

/// The demand of one task.
#[derive(Debug, Clone, Copy)]
struct Term {
    /// D - J: when its first job can be due.
    first: Ns,
    period: Ns,
    /// 2^64 / T, rounded down, or less by one.
    reciprocal: u64,
    wcet: Ns,
    blocking: Ns,
    /// More than this after its last deadline no instant can be in excess, see [`Terms::narrow`].
    window: Ns,
}

/// A set in range, with the sums that any search for an excess needs.
#[derive(Debug)]
pub(crate) struct Terms<'a> {
    tasks: &'a [Task],
    /// The longest wcet first.
    terms: Vec<Term>,
    /// ΣC/T in units of 2^-64, each rounded up.
    load: u128,
    /// max B + Σ max(0, T - D + J) C/T in ns, rounded up.
    ahead: u128,
}

/// The answer of an instant.
enum Look {
    /// Nothing before it by at most this many ns is in excess, as this number of tasks shows.
    Skip(Ns, usize),
    /// So much must be supplied by it.
    Required(Ns),
}

impl Terms<'_> {
    pub(crate) fn new(tasks: &[Task]) -> Terms<'_> {
        let mut load = 0u128;
        let mut ahead = 0u128;
        let mut longest = 0;
        let mut terms: Vec<Term> = Vec::with_capacity(tasks.len());
        for task in tasks {
            let share = (u128::from(task.wcet) << 64).div_ceil(u128::from(task.period));
            let early = (u128::from(task.period) + u128::from(task.jitter))
                .saturating_sub(u128::from(task.deadline));
            load = load.saturating_add(share);
            ahead = ahead.saturating_add(early.saturating_mul(share).div_ceil(1 << 64));
            longest = longest.max(task.blocking);
            terms.push(Term {
                first: task.deadline.saturating_sub(task.jitter),
                period: task.period,
                reciprocal: u64::MAX / task.period,
                wcet: task.wcet,
                blocking: task.blocking,
                window: Ns::MAX,
            });
        }
        terms.sort_unstable_by_key(|term| std::cmp::Reverse(term.wcet));
        Terms {
            tasks,
            terms,
            load,
            ahead: ahead.saturating_add(u128::from(longest)),
        }
    }
}

impl<'a> Terms<'a> {
    pub(crate) fn tasks(&self) -> &'a [Task] {
        self.tasks
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Whether some job may be due before it is released.
    pub(crate) fn is_hopeless(&self) -> bool {
        self.terms.iter().any(|term| term.first == 0)
    }

    /// Utilisation against the long-run rate of the supply, exactly.
    pub(crate) fn compare_with_rate(&self, supply: &impl Supply) -> Ordering {
        let rate = rate(supply);
        // Both are off by less than one unit for each division.
        let error = self.terms.len() as u128 + 1;
        if self.load < rate {
            Ordering::Less
        } else if self.load > rate + error {
            Ordering::Greater
        } else {
            compare_with_rate(self.tasks, supply)
        }
    }

    /// An instant from which on no deadline can be in excess, by how far load is below rate: with sbf(t) >= α (t - Δ)
    /// an excess at t implies (α - U) t < max B + Σ max(0, T - D + J) U + α Δ. That is the bound of Shin and Lee (2003)
    /// with jitter and blocking. `None` if the delay Δ is not known, or if the instant is out of range.
    pub(crate) fn horizon(&self, supply: &impl Supply) -> Option<Ns> {
        let room = self.room(supply)?;
        let idle = rate(supply)
            .checked_sub(self.load)
            .filter(|&idle| idle > 0)?;
        Ns::try_from((room << 64).div_ceil(idle)).ok()
    }

    /// The right side of the condition of [`Terms::horizon`], ns, rounded up.
    fn room(&self, supply: &impl Supply) -> Option<u128> {
        let delay = u128::from(supply.delay()?);
        let late = (delay * (rate(supply) + 1)).div_ceil(1 << 64);
        let room = self.ahead.checked_add(late)?;
        (room >> 62 == 0).then_some(room)
    }

    /// Prepares for a search among instants from `start` on: there a job's deadline that lies φ back leaves φ C/T of
    /// its share of the load undemanded, and an excess at t has no more than the condition of [`Terms::horizon`] leaves,
    /// room - (α - U) t.
    pub(crate) fn narrow(&mut self, supply: &impl Supply, start: Ns) {
        let left = self.room(supply).map(|room| {
            let idle = rate(supply).saturating_sub(self.load);
            room.saturating_sub((idle * u128::from(start)) >> 64)
        });
        for term in &mut self.terms {
            let window = left
                .and_then(|left| left.checked_mul(u128::from(term.period)))
                .map(|share| share.div_ceil(u128::from(term.wcet)));
            term.window = window.map_or(Ns::MAX, |window| Ns::try_from(window).unwrap_or(Ns::MAX));
        }
    }

    /// An excess at a deadline in a window, searched from the window's end in at most this number of turns. The load is at
    /// most the rate, and the window within 2^62 ns.
    ///
    /// QPA (Zhang and Burns 2009) with sbf⁻¹ in the place of the identity: from t to just before sbf⁻¹(required(t)), as
    /// less is required in between and more supplied. Between two deadlines nothing changes: an excess there is
    /// so at the deadline before.
    pub(crate) fn walk(
        &self,
        supply: &impl Supply,
        window: Range<Ns>,
        turns: u64,
        steps: &mut Budget,
    ) -> Result<Option<Excess>, Undecided> {
        let mut end = window.end;
        for _ in 0..turns {
            let Some(t) = end.checked_sub(1).filter(|t| window.contains(t)) else {
                break;
            };
            match self.look(t) {
                Look::Skip(back, looked) => {
                    steps.spend(looked)?;
                    end -= back;
                }
                Look::Required(demand) => {
                    steps.spend(self.terms.len())?;
                    match supply.inverse(demand) {
                        Some(wait) if wait <= t => end = wait,
                        _ => {
                            let instant = last_deadline(self.tasks, end).unwrap_or(t);
                            return Ok(Some(Excess { instant, demand }));
                        }
                    }
                }
            }
        }
        Ok(None)
    }

    /// No sum overflows: at a load of at most 1 demand by t is at most t and the sum of all wcets, which is at most the
    /// longest period.
    #[inline]
    fn look(&self, t: Ns) -> Look {
        let mut demand = 0;
        let mut held = 0;
        for (index, term) in self.terms.iter().enumerate() {
            let Some(past) = t.checked_sub(term.first) else {
                continue;
            };
            // The quotient by the reciprocal is at most one too small.
            let mut jobs = high(past, term.reciprocal);
            let mut phase = past - jobs * term.period;
            if phase >= term.period {
                jobs += 1;
                phase -= term.period;
            }
            if phase > term.window {
                return Look::Skip(phase - term.window, index + 1);
            }
            demand += (jobs + 1) * term.wcet;
            held = term.blocking.max(held);
        }
        Look::Required(demand + held)
    }
}

/// The long-run rate of a supply in units of 2^-64, rounded down.
fn rate(supply: &impl Supply) -> u128 {
    let (supplied, per) = supply.rate();
    (u128::from(supplied) << 64) / u128::from(per.max(1))
}
