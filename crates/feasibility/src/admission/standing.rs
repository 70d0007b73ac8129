//! The kernel's answer next to the verdict of the analysis.

use serde::Serialize;

use super::super::study::Outcome;

/// The kernel's answer next to the verdict of the analysis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Admitted, and every deadline holds.
    Guaranteed,
    /// Admitted, and every deadline holds as long as the enforcer reacts as assumed.
    GuaranteedByReaction,
    /// Every deadline would hold, but the kernel refuses.
    RefusedThoughFeasible,
    /// The kernel admits it, but a deadline can be missed.
    AdmittedThoughInfeasible,
    /// The kernel refuses, and a deadline could be missed.
    RefusedAndInfeasible,
    /// The kernel admits reservations that cannot all be supplied in time.
    AdmittedThoughNotSupplied,
    /// The kernel refuses reservations that could not all be supplied in time.
    RefusedAndNotSupplied,
    /// The kernel admits it; whether the deadlines hold is not known.
    AdmittedUndecided,
    /// The kernel refuses; whether the deadlines would hold is not known.
    RefusedUndecided,
}

impl Standing {
    /// `deadlines`: whether they hold if every reservation is supplied; `supplied`: whether every one is.
    pub(super) const fn of(admitted: bool, deadlines: Outcome, supplied: Outcome) -> Standing {
        if matches!(supplied, Outcome::Fails) && !matches!(deadlines, Outcome::Fails) {
            return if admitted {
                Standing::AdmittedThoughNotSupplied
            } else {
                Standing::RefusedAndNotSupplied
            };
        }
        match (admitted, deadlines.worst(supplied)) {
            (true, Outcome::Holds) => Standing::Guaranteed,
            (false, Outcome::Holds) => Standing::RefusedThoughFeasible,
            (true, Outcome::Fails) => Standing::AdmittedThoughInfeasible,
            (false, Outcome::Fails) => Standing::RefusedAndInfeasible,
            (true, Outcome::Undecided) => Standing::AdmittedUndecided,
            (false, Outcome::Undecided) => Standing::RefusedUndecided,
        }
    }

    /// The same if the budgets depend on a thread's reaction that is measured, not proved.
    #[must_use]
    pub(super) const fn by_reaction(self) -> Standing {
        match self {
            Standing::Guaranteed => Standing::GuaranteedByReaction,
            other => other,
        }
    }

    /// The same if some of the file was not tested.
    #[must_use]
    pub(super) const fn of_a_part(self) -> Standing {
        match self {
            Standing::Guaranteed | Standing::GuaranteedByReaction => Standing::AdmittedUndecided,
            Standing::RefusedThoughFeasible => Standing::RefusedUndecided,
            other => other,
        }
    }

    /// The sentence that tables print.
    pub const fn sentence(self) -> &'static str {
        match self {
            Standing::Guaranteed => "admitted by the kernel, and every deadline holds",
            Standing::GuaranteedByReaction => {
                "admitted by the kernel, and every deadline holds as long as the freezer reacts as assumed"
            }
            Standing::RefusedThoughFeasible => "feasible, but refused by the kernel",
            Standing::AdmittedThoughInfeasible => {
                "admitted by the kernel, but not feasible: a deadline can be missed"
            }
            Standing::RefusedAndInfeasible => "refused by the kernel, and not feasible either",
            Standing::AdmittedThoughNotSupplied => {
                "admitted by the kernel, though the reservations cannot all be supplied in time there"
            }
            Standing::RefusedAndNotSupplied => {
                "refused by the kernel, and the reservations could not all be supplied in time there"
            }
            Standing::AdmittedUndecided => {
                "admitted by the kernel; whether the deadlines hold is undecided"
            }
            Standing::RefusedUndecided => {
                "refused by the kernel; whether the deadlines would hold is undecided"
            }
        }
    }

    /// Whether the kernel and the analysis disagree.
    pub const fn differs(self) -> bool {
        !matches!(
            self,
            Standing::Guaranteed
                | Standing::GuaranteedByReaction
                | Standing::RefusedAndInfeasible
                | Standing::RefusedAndNotSupplied
        )
    }
}
