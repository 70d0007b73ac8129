//! The supply that admission relies on.

use analysis::empirical::Envelope;
use analysis::linux::{Cyclic, Means, Reaction};
use analysis::reservation::{BoundedDelay, Delayed, ReservationError};
use analysis::{Ns, Supply};
use feasibility::means;
use model::Enforcer;
use record::supply::{Budget, MeasuredSupply, find};
use serde::Serialize;
use text::units::exact;

use super::Facts;

/// The basis of the supply that admission relies on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Basis {
    /// Every window up to this length was measured on this machine (`timecell bench supply`).
    Measured {
        /// Longest window that was seen, ns.
        to_ns: Ns,
        /// How exact the freezer was at the worst, which the supply is no better than; `None` where the kernel itself holds the budget.
        #[serde(skip_serializing_if = "Option::is_none")]
        reaction: Option<Exactness>,
    },
    /// A model of the kernel's tick, with a tenth kept back.
    Tick {
        /// Why no measurement stands for it.
        unmeasured: String,
    },
    /// The windows of the cell's time partition.
    Windows {
        /// The frame after which they are repeated, ns.
        major_ns: Ns,
    },
    /// The rule of the freezer and how exact it is.
    Reaction {
        /// How exact.
        #[serde(flatten)]
        reaction: Exactness,
        /// Why that is a measurement of another machine, of 99 of 100 looks and overruns; `None`: it is the worst that
        /// was measured on this one, of other budgets.
        #[serde(skip_serializing_if = "Option::is_none")]
        unmeasured: Option<String>,
    },
    /// Its budget is ample: the cell's tasks alone never use it up, so that it has the cpu as those above leave it; as long as nothing else runs in
    /// the cell.
    Ample {
        /// How late the freezer looks at most, of which the budget holds that much more, ns; `None` where the kernel itself holds it.
        #[serde(skip_serializing_if = "Option::is_none")]
        late_ns: Option<Ns>,
        /// As in `reaction`.
        #[serde(skip_serializing_if = "Option::is_none")]
        unmeasured: Option<String>,
        /// The part that its tasks leave, ns: other threads may use as much in any window of two periods.
        #[serde(default)]
        spare_ns: Ns,
        /// Whether the file does not say that nothing but its tasks runs in the cell (`only_tasks`), and the guarantee assumes it, because
        /// there is none without.
        assumed: bool,
    },
    /// The whole cpu, shared with everything above it: no budget is enforced.
    WholeCpu,
}

impl Basis {
    /// Whether it rests on nothing but the cell's tasks running in it, which the file does not say.
    pub fn is_assumed(&self) -> bool {
        matches!(self, Basis::Ample { assumed: true, .. })
    }
}

/// How late the freezer reacts at most, and how far a cell overruns its budget, as measured: more is possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Exactness {
    /// Lateness, ns.
    pub late_ns: Ns,
    /// Overrun, ns.
    pub overrun_ns: Ns,
}

impl Exactness {
    fn of(reaction: Reaction) -> Exactness {
        Exactness {
            late_ns: reaction.late,
            overrun_ns: reaction.overrun,
        }
    }
}

/// The supply counted on from a budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Supplied {
    Measured(Delayed<Envelope>),
    Model(BoundedDelay),
    Windows(Cyclic),
}

impl Supplied {
    /// Of `budget` ns every `period` ns, coming up to `behind` ns later than alone on its cpu; only windows up to `longest` ns
    /// will be asked for.
    pub(super) fn of(
        held: &Budget,
        behind: Ns,
        longest: Ns,
        facts: &Facts,
        measured: &[MeasuredSupply],
    ) -> Result<(Supplied, Basis), String> {
        let unmeasured = match find(measured, held, &facts.machine) {
            Ok(found) if found.measured_to_ns < longest => format!(
                "its windows were measured only up to {}",
                exact(found.measured_to_ns)
            ),
            Ok(found) => {
                let by_freezer = held.enforcer == Enforcer::Freezer;
                let (lines, by) = match by_freezer {
                    true => (behind_others(found, behind, facts)?, 0),
                    false => (found.counted_on(), behind),
                };
                match Envelope::of(&lines) {
                    Some(supply) => {
                        let basis = Basis::Measured {
                            to_ns: found.measured_to_ns,
                            reaction: by_freezer.then(|| Exactness::of(facts.reaction())),
                        };
                        return Ok((Supplied::Measured(Delayed { supply, by }), basis));
                    }
                    None => "its measurement has no usable line".to_owned(),
                }
            }
            Err(unfit) => unfit.to_string(),
        };
        let model = model(held, facts)?;
        let basis = match held.enforcer {
            Enforcer::Freezer => Basis::Reaction {
                reaction: Exactness::of(facts.reaction()),
                unmeasured: facts.measured_reaction.is_none().then_some(unmeasured),
            },
            _ => Basis::Tick { unmeasured },
        };
        Ok((Supplied::Model(model), basis))
    }
}

/// The lines of a cell that the freezer holds and whose budget comes up to `behind` ns later than when it was measured, none better than
/// the proof for one that has others beside it: its use near the end of a period may be charged to the next, which costs rate and not
/// only time.
fn behind_others(
    measured: &MeasuredSupply,
    behind: Ns,
    facts: &Facts,
) -> Result<Vec<(Ns, Ns, Ns)>, String> {
    let bound = model(&measured.held, facts)?;
    let (most, of) = bound.rate();
    let least_delay = bound.delay().unwrap_or(Ns::MAX);
    let slower = |(supplied, per, delay): (Ns, Ns, Ns)| {
        let is_faster = u128::from(supplied) * u128::from(of) > u128::from(most) * u128::from(per);
        let (supplied, per) = if is_faster {
            (most, of)
        } else {
            (supplied, per)
        };
        let delay = delay.saturating_add(behind).max(least_delay);
        (supplied, per, delay)
    };
    Ok(measured.counted_on().into_iter().map(slower).collect())
}

/// The supply to rely on without a measurement of this budget. It already allows for the budget to come as late in each period as others on
/// the cpu can make it.
pub(super) fn model(held: &Budget, facts: &Facts) -> Result<BoundedDelay, String> {
    let (budget, period) = (held.budget_ns, held.period_ns);
    let means = match means(held.enforcer, &facts.machine) {
        Some(Means::Freezer(_)) => Means::Freezer(facts.reaction()),
        Some(means) => means,
        None => return Err("it has no enforced budget".to_owned()),
    };
    (means.certain(budget, period)).map_err(|error| match (means, error) {
        (Means::Freezer(reaction), ReservationError::Zero(_)) => format!(
            "none of {} every {} is guaranteed when the freezer checks up to {} late, as it did when measured",
            exact(budget),
            exact(period),
            exact(reaction.late)
        ),
        (_, error) => error.to_string(),
    })
}

/// The budget as measurements name it; `None`: the enforcer holds nothing to a budget.
pub(super) fn held(enforcer: Enforcer, budget_ns: Ns, period_ns: Ns) -> Option<Budget> {
    enforcer.has_budgets().then_some(Budget {
        enforcer,
        budget_ns,
        period_ns,
    })
}

impl Supply for Supplied {
    fn sbf(&self, t: Ns) -> Ns {
        match self {
            Supplied::Measured(supply) => supply.sbf(t),
            Supplied::Model(supply) => supply.sbf(t),
            Supplied::Windows(supply) => supply.sbf(t),
        }
    }

    fn inverse(&self, work: Ns) -> Option<Ns> {
        match self {
            Supplied::Measured(supply) => supply.inverse(work),
            Supplied::Model(supply) => supply.inverse(work),
            Supplied::Windows(supply) => supply.inverse(work),
        }
    }

    fn rate(&self) -> (Ns, Ns) {
        match self {
            Supplied::Measured(supply) => supply.rate(),
            Supplied::Model(supply) => supply.rate(),
            Supplied::Windows(supply) => supply.rate(),
        }
    }

    fn cycle(&self) -> Option<Ns> {
        match self {
            Supplied::Measured(supply) => supply.cycle(),
            Supplied::Model(supply) => supply.cycle(),
            Supplied::Windows(supply) => supply.cycle(),
        }
    }

    fn delay(&self) -> Option<Ns> {
        match self {
            Supplied::Measured(supply) => supply.delay(),
            Supplied::Model(supply) => supply.delay(),
            Supplied::Windows(supply) => supply.delay(),
        }
    }
}
