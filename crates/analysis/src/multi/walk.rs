//! The least fixpoint of a response-time iteration whose interference is made of straight pieces.

use super::covered::clamp;
use crate::{Ns, Task, Undecided};

/// Segments of a workload bound that one task's search may cross before it gives up.
const MAX_STEPS: u64 = 1_000_000;

/// Terms of Ω that one call may add up, so that sets of thousands of tasks end too.
pub(super) const MAX_WORK: u64 = 200_000_000;

/// A function near one x: its value there, whether it rises by 1 per ns, and the next x where that may change.
#[derive(Clone, Copy)]
pub(super) struct Piece {
    pub value: Ns,
    pub rises: bool,
    pub until: Ns,
}

/// min(piece, x - own + 1): interference is counted only as far as it can delay.
pub(super) fn capped(piece: Piece, x: Ns, own: Ns) -> Piece {
    let cap = x - own + 1;
    if piece.value < cap || (piece.value == cap && !piece.rises) {
        return piece;
    }
    let until = if piece.rises {
        piece.until
    } else {
        // The cap reaches the level value at this x.
        piece.until.min(piece.value + own - 1)
    };
    Piece {
        value: cap,
        rises: true,
        until: until.max(x + 1),
    }
}

/// The least x <= D with Ω(x) < m (x - C + 1); `None` if there is none.
///
/// `omega` gives Ω at x as (value, slope, next x where a piece may end) and never falls; it adds up `terms` terms, which
/// are taken from `left`.
pub(super) fn walk(
    task: &Task,
    cpus: u32,
    terms: usize,
    left: &mut u64,
    omega: impl Fn(Ns) -> (u128, u128, Ns),
) -> Result<Option<Ns>, Undecided> {
    let own = task.wcet;
    let mut x = own;
    for steps in 0..MAX_STEPS {
        if x > task.deadline {
            return Ok(None);
        }
        *left = left
            .checked_sub(terms as u64)
            .ok_or(Undecided::TooManySteps { steps })?;
        let (work, slope, until) = omega(x);
        let room = u128::from(cpus) * (u128::from(x - own) + 1);
        let Some(excess) = work.checked_sub(room) else {
            return Ok(Some(x));
        };
        let closing = u128::from(cpus).saturating_sub(slope);
        // Interference that grows as fast as the cpus work is not caught up with before the piece ends.
        let next = match excess.checked_div(closing) {
            None => until,
            Some(step) => until.min(clamp(u128::from(x) + step + 1)),
        };
        // Ω never falls, so that the paper's own next value is no overshoot either.
        x = next.max(clamp(u128::from(own) + work / u128::from(cpus)));
    }
    Err(Undecided::TooManySteps { steps: MAX_STEPS })
}
