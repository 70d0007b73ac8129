//! How many steps an analysis may take.

use crate::Undecided;

/// The steps that an analysis may take before it says [`Undecided`]: 2^30, some seconds of one core.
///
/// One step is the work of one task in one evaluation of a demand. No practical set comes near: the sets that do have
/// busy periods of millions of jobs, at a utilisation within a millionth of 1.
pub const STEPS: u64 = 1 << 30;

/// A count of steps that runs out.
#[derive(Debug)]
pub(crate) struct Budget {
    total: u64,
    left: u64,
}

impl Budget {
    pub(crate) const fn new(total: u64) -> Budget {
        Budget { total, left: total }
    }

    /// Takes the steps of one evaluation over `tasks` tasks.
    pub(crate) fn spend(&mut self, tasks: usize) -> Result<(), Undecided> {
        let steps = (tasks as u64).max(1);
        if steps > self.left {
            return Err(Undecided::TooManySteps { steps: self.total });
        }
        self.left -= steps;
        Ok(())
    }

    /// Half of the rest, but no more than `most`, as a budget of its own; returned by [`Budget::join`].
    pub(crate) fn part(&mut self, most: u64) -> Budget {
        let part = (self.left / 2).min(most);
        self.left -= part;
        Budget {
            total: self.total,
            left: part,
        }
    }

    /// Takes back the unused rest of a part.
    pub(crate) fn join(&mut self, part: Budget) {
        self.left += part.left;
    }
}
