//! How much every wcet may grow, which task is the bottleneck, and how much wake-up latency a set bears.
//!
//! Works with the verdict of any test that is monotone: that never refuses a set for less work or blocking.
//!
//! ```
//! use timecell_analysis::{Task, fp, sensitivity::critical_scaling};
//!
//! // The second task is done at 3 + 3 of 7; with a sixth more work, at 7.
//! let scaling = critical_scaling(&[Task::new(300, 1_000), Task::new(300, 700)], fp::verdict);
//! assert_eq!((scaling.per_mille, scaling.bottleneck()), (1_166, Some(1)));
//! ```

use serde::{Deserialize, Serialize};

use crate::{MAX_NS, Ns, Task, Verdict};

/// How much every wcet of a set may be scaled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scaling {
    /// The largest factor, in thousandths, that keeps the set schedulable: 1,250 means that every wcet may grow by a
    /// quarter, 800 that every one must shrink by a fifth, 0 that not even a thousandth of each can be borne.
    pub per_mille: u64,
    /// The verdict on the next larger factor: its witness shows the first deadline to give way. [`Verdict::Undecided`] if the
    /// analysis could not tell there, in which case the true factor may be larger.
    pub beyond: Verdict,
}

impl Scaling {
    /// The bottleneck: the index of the task that is the first to miss its deadline as every wcet grows.
    ///
    /// ```
    /// use timecell_analysis::{Task, fp, sensitivity::critical_scaling};
    ///
    /// // The second task is done at 3 + 3 of 7: with a sixth more work, at 7. Then it is late first.
    /// let scaling = critical_scaling(&[Task::new(300, 1_000), Task::new(300, 700)], fp::verdict);
    /// assert_eq!((scaling.per_mille, scaling.bottleneck()), (1_166, Some(1)));
    /// ```
    pub fn bottleneck(&self) -> Option<usize> {
        match &self.beyond {
            Verdict::Unschedulable(witness) => Some(witness.task),
            _ => None,
        }
    }
}

/// The set of Lehoczky, Sha & Ding (RTSS 1989) for one factor: every wcet scaled by a factor in thousandths, rounded up to whole
/// ns; at most twice [`MAX_NS`], so that a task that is out of range stays so.
///
/// ```
/// use timecell_analysis::{Task, sensitivity::scaled};
///
/// assert_eq!(scaled(&[Task::new(3, 10)], 1_500)[0].wcet, 5);
/// ```
pub fn scaled(tasks: &[Task], per_mille: u64) -> Vec<Task> {
    tasks
        .iter()
        .map(|task| {
            let wcet = (u128::from(task.wcet) * u128::from(per_mille)).div_ceil(1_000);
            Task {
                wcet: Ns::try_from(wcet).unwrap_or(Ns::MAX).min(2 * MAX_NS),
                ..*task
            }
        })
        .collect()
}

/// The critical scaling factor of a set (Lehoczky, Sha & Ding, RTSS 1989) for any monotone exact test, such as
/// [`crate::fp::verdict`], [`crate::edf::verdict`] or [`crate::inside::verdict_within`]: exact on a grid of 1/1,000, with scaled wcets rounded up to
/// whole ns.
///
/// Bisection: some 20 to 60 verdicts. An undecided verdict counts as a no; a sufficient test gives a factor that is
/// safe but may be low. An empty set has factor 0 and is schedulable
/// beyond; so is, at the largest factor, a set that could be scaled by more than fits in 64 bits.
///
/// ```
/// use timecell_analysis::{Task, edf, fp, sensitivity::critical_scaling};
///
/// let tasks = [Task::new(1_000, 4_000), Task::new(1_000, 5_000), Task::new(2_000, 9_000)];
/// assert_eq!(critical_scaling(&tasks, edf::verdict).per_mille, 1_487); // 1 / 0.6722
/// let fixed = critical_scaling(&tasks, fp::verdict);
/// assert_eq!((fixed.per_mille, fixed.bottleneck()), (1_333, Some(2))); // 8 / (2 + 2 + 2)
/// ```
pub fn critical_scaling(tasks: &[Task], verdict: impl Fn(&[Task]) -> Verdict) -> Scaling {
    // No wcet may exceed its deadline.
    let most = tasks
        .iter()
        .map(|task| u128::from(task.deadline) * 1_000 / u128::from(task.wcet.max(1)))
        .min()
        .unwrap_or(0);
    let most = u64::try_from(most)
        .unwrap_or(u64::MAX - 1)
        .min(u64::MAX - 1);
    let mut low = 0;
    let mut high = most + 1;
    let mut beyond = verdict(&scaled(tasks, high));
    if tasks.is_empty() || beyond.is_schedulable() {
        return Scaling {
            per_mille: most,
            beyond,
        };
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        let answer = verdict(&scaled(tasks, middle));
        if answer.is_schedulable() {
            low = middle;
        } else {
            high = middle;
            beyond = answer;
        }
    }
    Scaling {
        per_mille: low,
        beyond,
    }
}

/// The set with a wake-up latency of at most `latency` ns, as cyclictest or `timecell bench` measures it, added to the blocking of
/// every task. Saturates at the largest [`Ns`], which no analysis accepts.
///
/// In ns; the blocking term B of the response-time equation (Audsley et al., Software Engineering Journal 8(5), 1993).
/// A job that becomes ready on an idle cpu runs up to `latency` late, at any priority: to the analysis that is a
/// section of lower priority. Latency while the cpu is busy is covered once for each busy period; an overhead of every
/// job belongs into its wcet.
///
/// ```
/// use timecell_analysis::{Task, fp, sensitivity::with_latency};
///
/// let tasks = [Task::new(200_000, 1_000_000), Task::new(1_000_000, 2_000_000)];
/// assert!(fp::verdict(&with_latency(&tasks, 600_000)).is_schedulable());
/// assert!(!fp::verdict(&with_latency(&tasks, 600_001)).is_schedulable());
/// ```
pub fn with_latency(tasks: &[Task], latency: Ns) -> Vec<Task> {
    tasks
        .iter()
        .map(|task| task.blocked(task.blocking.saturating_add(latency)))
        .collect()
}

/// The largest wake-up latency, in whole ns, with which a set is still schedulable; `None` if it is not even without.
/// Exact for a monotone exact test; an undecided verdict counts as a no. Sensitivity to one parameter by bisection, as
/// Punnekkat, Davis and Burns (ASIAN 1997). See [`with_latency`].
///
/// ```
/// use timecell_analysis::{Task, fp, sensitivity::critical_latency};
///
/// let tasks = [Task::new(200_000, 1_000_000), Task::new(1_000_000, 2_000_000)];
/// assert_eq!(critical_latency(&tasks, fp::verdict), Some(600_000));
/// ```
pub fn critical_latency(tasks: &[Task], verdict: impl Fn(&[Task]) -> Verdict) -> Option<Ns> {
    if !verdict(tasks).is_schedulable() {
        return None;
    }
    let mut low = 0;
    // No task bears a latency of its whole deadline.
    let mut high = tasks.iter().map(|task| task.deadline).min()?;
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if verdict(&with_latency(tasks, middle)).is_schedulable() {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some(low)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{edf, fp};

    #[test]
    fn a_set_that_is_overloaded_must_shrink() {
        let tasks = [Task::new(6_000, 10_000), Task::new(6_000, 10_000)];
        assert_eq!(critical_scaling(&tasks, edf::verdict).per_mille, 833);
        assert_eq!(critical_scaling(&tasks, fp::verdict).per_mille, 833);
    }

    #[test]
    fn nothing_and_nonsense_end() {
        assert_eq!(critical_scaling(&[], fp::verdict).per_mille, 0);
        assert_eq!(critical_latency(&[], fp::verdict), None);
        for task in [
            Task::new(0, 0),
            Task::new(0, u64::MAX),
            Task::new(u64::MAX, 1),
            Task::new(1_000_000, MAX_NS),
            Task::new(1, 5).due(0),
        ] {
            for verdict in [fp::verdict, edf::verdict] {
                let scaling = critical_scaling(&[task], verdict);
                assert!(!scaling.beyond.is_schedulable(), "{task:?}");
                critical_latency(&[task], verdict);
            }
        }
    }

    #[test]
    fn a_factor_is_the_largest_on_its_grid() {
        let tasks = [
            Task::new(1_003, 4_099).due(3_001),
            Task::new(507, 5_003).jittered(90),
            Task::new(2_001, 9_973).blocked(33),
        ];
        for verdict in [fp::verdict, edf::verdict] {
            let scaling = critical_scaling(&tasks, verdict);
            let factor = scaling.per_mille;
            assert!(factor > 1_000);
            assert!(verdict(&scaled(&tasks, factor)).is_schedulable());
            assert_eq!(verdict(&scaled(&tasks, factor + 1)), scaling.beyond);
            assert!(scaling.bottleneck().is_some());
        }
    }
}
