//! The least budget for fixed priorities inside a reservation.

use super::{bisection, most, needed_budget, on_grid};
use crate::budget::Budget;
use crate::inside::Policy;
use crate::{Ns, Task, Undecided};

/// Times up to 2^40 ns, 18 minutes, in sets of up to 2^16 tasks: no sum of demands can leave 64 bits.
const LONGEST: Ns = 1 << 40;
const MANY: usize = 1 << 16;

/// Sets up to this size are searched without allocation.
const FEW: usize = 32;

pub(super) fn least(
    tasks: &[Task],
    period: Ns,
    grid: Ns,
    steps: &mut Budget,
) -> Result<Option<Ns>, Undecided> {
    let mut constrained = period <= LONGEST && tasks.len() <= MANY;
    for task in tasks {
        let longest = task.period.max(task.jitter).max(task.blocking);
        constrained &= task.deadline <= task.period && longest <= LONGEST;
        if constrained && task.wcet + task.jitter > task.deadline {
            return Ok(None);
        }
    }
    if !constrained {
        return bisection::within(tasks, Policy::FixedPriority, period, grid, steps);
    }
    if tasks.len() <= FEW {
        let mut terms = [Term::default(); FEW];
        for (term, task) in terms.iter_mut().zip(tasks) {
            *term = Term::of(task);
        }
        climb(&terms[..tasks.len()], tasks, period, grid, steps)
    } else {
        let terms: Vec<Term> = tasks.iter().map(Term::of).collect();
        climb(&terms, tasks, period, grid, steps)
    }
}

/// A task's addition to the demand of those below it.
#[derive(Clone, Copy, Default)]
struct Term {
    period: Ns,
    /// ⌊(2^64 - 1)/period⌋: a product with it replaces a division.
    reciprocal: u64,
    wcet: Ns,
    jitter: Ns,
}

impl Term {
    fn of(task: &Task) -> Term {
        Term {
            period: task.period,
            reciprocal: u64::MAX / task.period,
            wcet: task.wcet,
            jitter: task.jitter,
        }
    }

    /// Jobs released in the first `t` >= 1 ns, ⌈(t + J)/T⌉.
    #[inline(always)]
    fn jobs(&self, t: Ns) -> u64 {
        quotient(t + self.jitter - 1, self.period, self.reciprocal) + 1
    }
}

/// `number / divisor` by the divisor's reciprocal ⌊(2^64 - 1)/divisor⌋; exact for all numbers: the product is too
/// small by at most 1.
#[inline(always)]
fn quotient(number: u64, divisor: u64, reciprocal: u64) -> u64 {
    let guess = ((u128::from(number) * u128::from(reciprocal)) >> 64) as u64;
    guess + u64::from(number - guess * divisor >= divisor)
}

/// Demand of the tasks above.
#[inline(always)]
fn demand(higher: &[Term], t: Ns) -> Ns {
    higher.iter().map(|term| term.jobs(t) * term.wcet).sum()
}

/// The last t with the same demand.
fn step_end(higher: &[Term], t: Ns, limit: Ns) -> Ns {
    higher
        .iter()
        .map(|term| term.jobs(t) * term.period - term.jitter)
        .fold(limit, Ns::min)
}

/// The least budget for all tasks: each task in turn raises it, if it must. The lowest priority comes first, as it
/// mostly decides; for the others one look at the deadline then mostly suffices.
fn climb(
    terms: &[Term],
    tasks: &[Task],
    period: Ns,
    grid: Ns,
    steps: &mut Budget,
) -> Result<Option<Ns>, Undecided> {
    let most = most(period, grid);
    if most == 0 {
        return Ok(None);
    }
    let mut chunks = Chunks::of(grid, period);
    for (index, task) in tasks.iter().enumerate().rev() {
        let own = Own {
            higher: &terms[..index],
            work: task.wcet + task.blocking,
            limit: task.deadline - task.jitter,
        };
        if own.is_done_at_limit(&chunks) {
            continue;
        }
        match own.raise(chunks.budget, most, period, grid, steps)? {
            Some(budget) if budget == chunks.budget => {}
            Some(budget) => chunks = Chunks::of(budget, period),
            None => return Ok(None),
        }
    }
    Ok(Some(chunks.budget))
}

/// The periodic model with a budget, ready to be inverted often.
struct Chunks {
    budget: Ns,
    reciprocal: u64,
    gap: Ns,
}

impl Chunks {
    fn of(budget: Ns, period: Ns) -> Chunks {
        Chunks {
            budget,
            reciprocal: u64::MAX / budget,
            gap: period - budget,
        }
    }

    /// The inverse supply of `work` >= 1 ns if it is at most `limit`.
    #[inline(always)]
    fn inverse(&self, work: Ns, limit: Ns) -> Option<Ns> {
        let spare = limit.checked_sub(work)?;
        let gaps = quotient(work - 1, self.budget, self.reciprocal) + 2;
        let wait = self.gap.checked_mul(gaps)?;
        (wait <= spare).then(|| work + wait)
    }
}

/// One task below others.
struct Own<'a> {
    higher: &'a [Term],
    /// C + B.
    work: Ns,
    /// D - J: when the job must be done, from the start of its busy window.
    limit: Ns,
}

impl Own<'_> {
    #[inline(always)]
    fn demand(&self, t: Ns) -> Ns {
        self.work + demand(self.higher, t)
    }

    /// Whether the demand up to the deadline is supplied by then: mostly so for all tasks but one.
    fn is_done_at_limit(&self, chunks: &Chunks) -> bool {
        chunks
            .inverse(self.demand(self.limit), self.limit)
            .is_some()
    }

    /// The least budget, no less than `budget`, with which this task meets its deadline, if there is one up to `most`.
    ///
    /// From a budget that suffices: the response time with the next smaller one is an instant at which still less may
    /// do. The smaller the budget, the later that instant, so the walk through all rounds is one walk forwards.
    fn raise(
        &self,
        budget: Ns,
        most: Ns,
        period: Ns,
        grid: Ns,
        steps: &mut Budget,
    ) -> Result<Option<Ns>, Undecided> {
        let needed = |t, work| Some(on_grid(needed_budget(period, t, work)?, grid));
        let mut enough = match needed(self.limit, self.demand(self.limit)) {
            Some(needed) if needed <= budget => return Ok(Some(budget)),
            Some(needed) if needed <= most => Some(needed),
            _ => None,
        };
        let mut t = 1;
        loop {
            let trial = match enough {
                Some(enough) => enough - grid,
                None => most,
            };
            let Some(work) = self.finish(&Chunks::of(trial, period), &mut t, steps)? else {
                return Ok(enough);
            };
            if trial == budget {
                return Ok(Some(budget));
            }
            match needed(step_end(self.higher, t, self.limit), work) {
                Some(needed) if needed > budget => enough = Some(needed),
                _ => return Ok(Some(budget)),
            }
        }
    }

    /// Walks `t`, which the job does not undercut, to when the job is done, and returns the demand there; `None` if
    /// that is too late.
    fn finish(
        &self,
        chunks: &Chunks,
        t: &mut Ns,
        steps: &mut Budget,
    ) -> Result<Option<Ns>, Undecided> {
        loop {
            let work = self.demand(*t);
            let Some(done) = chunks.inverse(work, self.limit) else {
                return Ok(None);
            };
            if done <= *t {
                return Ok(Some(work));
            }
            *t = done;
            steps.spend(1 + self.higher.len())?;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn quotients_are_exact(
            number in any::<u64>(), divisor in 1..=u64::MAX, shift in 0..64u32, number_shift in 0..64u32,
        ) {
            let divisor = (divisor >> shift).max(1);
            let number = number >> number_shift;
            prop_assert_eq!(quotient(number, divisor, u64::MAX / divisor), number / divisor);
            let multiple = number / divisor * divisor;
            prop_assert_eq!(quotient(multiple, divisor, u64::MAX / divisor), number / divisor);
        }
    }

    #[test]
    fn steps_run_out() {
        let tasks = [Task::new(1, 3), Task::new(5, 30)];
        assert!(matches!(
            least(&tasks, 4, 1, &mut Budget::new(1)),
            Err(Undecided::TooManySteps { .. })
        ));
        assert!(matches!(
            least(&tasks, 4, 1, &mut Budget::new(1_000)),
            Ok(Some(_))
        ));
    }
}
