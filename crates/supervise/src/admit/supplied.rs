//! The supply that admission counts on.

use analysis::empirical::Envelope;
use analysis::linux::{FreezerSupply, Reaction, TickSupply};
use analysis::reservation::{BoundedDelay, Delayed};
use analysis::{Ns, Supply};
use model::Enforcer;
use record::supply::{Budget, MeasuredSupply, find};
use serde::Serialize;

use super::Facts;

/// On what the supply rests that admission counts on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Basis {
    /// Every window up to this length was measured on this machine (`timecell bench supply`).
    Measured {
        /// Longest window that was seen, ns.
        to_ns: Ns,
    },
    /// A model of the kernel's tick, with a tenth kept back.
    Tick {
        /// Why no measurement stands for it.
        unmeasured: String,
    },
    /// The rule of the freezer and how late it reacts, as measured on another machine: looks and overruns beyond that are possible.
    Reaction {
        /// Why no measurement stands for it.
        unmeasured: String,
    },
    /// The whole cpu, shared with what stands above it: no budget is enforced.
    WholeCpu,
}

/// What a budget is counted on to supply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Supplied {
    Measured(Delayed<Envelope>),
    Model(BoundedDelay),
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
                "its windows were measured up to {} ms only",
                found.measured_to_ns / 1_000_000
            ),
            Ok(found) => match Envelope::of(&found.counted_on()) {
                Some(supply) => {
                    let to_ns = found.measured_to_ns;
                    let supply = Delayed { supply, by: behind };
                    return Ok((Supplied::Measured(supply), Basis::Measured { to_ns }));
                }
                None => "its measurement has no usable line".to_owned(),
            },
            Err(unfit) => unfit.to_string(),
        };
        let model = model(held, facts)?;
        let basis = match held.enforcer {
            Enforcer::Freezer => Basis::Reaction { unmeasured },
            _ => Basis::Tick { unmeasured },
        };
        Ok((Supplied::Model(model), basis))
    }
}

/// What may be relied on without a measurement. It already allows for the budget to come as late in each period as others on
/// the cpu can make it.
pub(super) fn model(held: &Budget, facts: &Facts) -> Result<BoundedDelay, String> {
    let (budget, period) = (held.budget_ns, held.period_ns);
    let tick = facts.tick_ns();
    let supply = match held.enforcer {
        Enforcer::Deadline => {
            let tick = if facts.machine.deadline_by_timer == Some(true) {
                0
            } else {
                tick
            };
            TickSupply::deadline(budget, period, tick)
        }
        Enforcer::RtCgroup | Enforcer::Hcbs => TickSupply::rt_cgroup(budget, period, tick),
        Enforcer::Freezer => {
            let supply = FreezerSupply::new(budget, period, Reaction::MEASURED);
            return supply
                .map(|supply| supply.behind)
                .map_err(|error| error.to_string());
        }
        Enforcer::CpusetOnly => return Err("it is held to no budget".to_owned()),
    };
    supply
        .map(|supply| supply.cautious)
        .map_err(|error| error.to_string())
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
        }
    }

    fn inverse(&self, work: Ns) -> Option<Ns> {
        match self {
            Supplied::Measured(supply) => supply.inverse(work),
            Supplied::Model(supply) => supply.inverse(work),
        }
    }

    fn rate(&self) -> (Ns, Ns) {
        match self {
            Supplied::Measured(supply) => supply.rate(),
            Supplied::Model(supply) => supply.rate(),
        }
    }

    fn cycle(&self) -> Option<Ns> {
        match self {
            Supplied::Measured(supply) => supply.cycle(),
            Supplied::Model(supply) => supply.cycle(),
        }
    }

    fn delay(&self) -> Option<Ns> {
        match self {
            Supplied::Measured(supply) => supply.delay(),
            Supplied::Model(supply) => supply.delay(),
        }
    }
}
