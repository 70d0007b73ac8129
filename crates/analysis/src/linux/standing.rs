//! Where a set of reservations stands, by the kernel and by theory.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::refusal::Refusal;
use crate::{Undecided, Verdict, Witness};

/// Where a set stands: whether the kernel admits it, and whether its deadlines hold. The two are different questions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// The kernel admits it and every deadline holds.
    Guaranteed,
    /// Every deadline would hold, but the kernel refuses.
    RefusedThoughFeasible(Refusal),
    /// The kernel admits it, but a deadline can be missed.
    AdmittedThoughInfeasible(Witness),
    /// The kernel refuses, and rightly.
    RefusedAndInfeasible(Refusal, Witness),
    /// The kernel admits it; whether deadlines hold is not shown.
    AdmittedUndecided(Undecided),
    /// The kernel refuses; whether deadlines would hold is not shown.
    RefusedUndecided(Refusal, Undecided),
}

impl Standing {
    /// Joins the two answers.
    ///
    /// ```
    /// use timecell_analysis::{Verdict, linux::Standing};
    ///
    /// assert_eq!(Standing::of(Ok(()), Verdict::Schedulable), Standing::Guaranteed);
    /// ```
    pub fn of(kernel: Result<(), Refusal>, theory: Verdict) -> Standing {
        match (kernel, theory) {
            (Ok(()), Verdict::Schedulable) => Standing::Guaranteed,
            (Ok(()), Verdict::Unschedulable(witness)) => {
                Standing::AdmittedThoughInfeasible(witness)
            }
            (Ok(()), Verdict::Undecided(why)) => Standing::AdmittedUndecided(why),
            (Err(refusal), Verdict::Schedulable) => Standing::RefusedThoughFeasible(refusal),
            (Err(refusal), Verdict::Unschedulable(witness)) => {
                Standing::RefusedAndInfeasible(refusal, witness)
            }
            (Err(refusal), Verdict::Undecided(why)) => Standing::RefusedUndecided(refusal, why),
        }
    }

    /// Whether the kernel admits it.
    ///
    /// ```
    /// use timecell_analysis::linux::{DeadlineParams, RootDomain};
    ///
    /// // 0.3 each of the cpu, but 1.2 ms are due within 1 ms.
    /// let late = DeadlineParams { runtime: 600_000, deadline: 1_000_000, period: 2_000_000 };
    /// let standing = RootDomain::of_cpus(1).standing(&[late; 2]);
    /// assert_eq!((standing.is_admitted(), standing.is_feasible()), (true, Some(false)));
    /// ```
    pub const fn is_admitted(&self) -> bool {
        matches!(
            self,
            Standing::Guaranteed
                | Standing::AdmittedThoughInfeasible(_)
                | Standing::AdmittedUndecided(_)
        )
    }

    /// Whether every deadline holds; `None` where that is not shown either way.
    ///
    /// ```
    /// use timecell_analysis::linux::{DeadlineParams, RootDomain};
    ///
    /// let standing = RootDomain::of_cpus(1).standing(&[DeadlineParams::new(98_000_000, 100_000_000)]);
    /// assert_eq!((standing.is_admitted(), standing.is_feasible()), (false, Some(true)));
    /// ```
    pub const fn is_feasible(&self) -> Option<bool> {
        match self {
            Standing::Guaranteed | Standing::RefusedThoughFeasible(_) => Some(true),
            Standing::AdmittedThoughInfeasible(_) | Standing::RefusedAndInfeasible(..) => {
                Some(false)
            }
            Standing::AdmittedUndecided(_) | Standing::RefusedUndecided(..) => None,
        }
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Standing::Guaranteed => write!(f, "admitted by the kernel, and every deadline holds"),
            Standing::RefusedThoughFeasible(refusal) => write!(
                f,
                "feasible in theory, but refused by the kernel ({}): {refusal}",
                refusal.errno()
            ),
            Standing::AdmittedThoughInfeasible(witness) => write!(
                f,
                "admitted by the kernel, but not feasible: {}",
                Shortage(witness)
            ),
            Standing::RefusedAndInfeasible(refusal, witness) => write!(
                f,
                "refused by the kernel ({}): {refusal}; nor is it feasible: {}",
                refusal.errno(),
                Shortage(witness)
            ),
            Standing::AdmittedUndecided(why) => {
                write!(
                    f,
                    "admitted by the kernel, but not shown to be feasible: {why}"
                )
            }
            Standing::RefusedUndecided(refusal, why) => write!(
                f,
                "refused by the kernel ({}): {refusal}; nor is it shown to be feasible: {why}",
                refusal.errno()
            ),
        }
    }
}

/// A witness in words.
struct Shortage<'a>(&'a Witness);

impl fmt::Display for Shortage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Witness {
            task,
            instant,
            demand,
            supply,
            ..
        } = self.0;
        write!(
            f,
            "the deadline of {task} can be missed, since {demand} ns of work are due within {instant} ns that supply {supply} ns"
        )
    }
}
