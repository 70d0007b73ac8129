//! The supervisor's own reservation, admitted like a cell's: its threads have the highest priority of all cells of class
//! FIFO until their budget is used up, which they enforce themselves (see [`crate::reserve`]), to the microsecond and not
//! to the tick.

use analysis::inside::{Policy, fixed_priority};
use analysis::linux::Held;
use analysis::reservation::Dedicated;
use analysis::{Ns, Task};
use model::Enforcer;
use model::mission::{Band, CellClass, Mission, Supervisor, SupervisorClass};
use serde::{Serialize, Serializer};
use text::units::exact;

use super::asked::{Asked, ns};
use super::cpu::{Bound, Candidate, Unfit};
use super::search::Work;
use super::{Basis, Facts};

/// Its name in tables.
pub(super) const NAME: &str = "supervisor";

/// The grant to the supervisor of a mission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SupervisorGrant {
    /// Class of its threads: SCHED_FIFO within the budget, or SCHED_OTHER always.
    #[serde(serialize_with = "class_name")]
    pub class: SupervisorClass,
    /// Cpu time of all its threads together in each period, ns; `None`: it has no reservation.
    pub budget_ns: Option<Ns>,
    /// The period, ns.
    pub period_ns: Option<Ns>,
    /// SCHED_FIFO priority of its threads.
    pub priority: Option<u8>,
    /// Cpus on which it runs, all of which are counted with it.
    pub cpus: Vec<u32>,
    /// Cpus on which it could run besides, and which it leaves to the cells.
    pub spared: Vec<u32>,
    /// How late the whole budget may come where threads of SCHED_DEADLINE go before it, ns; of all its cpus the worst.
    pub response_ns: Option<Ns>,
    /// Why it has none though it was to have one, a clause.
    pub why: Option<String>,
}

impl SupervisorGrant {
    /// The grant that a mission's supervisor is to have on this machine.
    pub(super) fn wanted(mission: &Mission, facts: &Facts) -> SupervisorGrant {
        let real_time = mission.cells.iter().any(|cell| cell.is_real_time());
        let own = &mission.supervisor;
        match (own.class, &facts.supervisor) {
            (SupervisorClass::Fifo, Ok(cpus)) if real_time => {
                let named = |cpu: &u32| own.cpus.is_empty() || own.cpus.contains(cpu);
                let (cpus, spared): (Vec<u32>, Vec<u32>) = cpus.iter().partition(|cpu| named(cpu));
                if cpus.is_empty() {
                    let why = "timecell may run on none of the `cpus` of `supervisor`".to_owned();
                    return SupervisorGrant::none(Some(&why));
                }
                SupervisorGrant {
                    class: SupervisorClass::Fifo,
                    budget_ns: Some(ns(own.budget)),
                    period_ns: Some(ns(own.period)),
                    priority: Some(Supervisor::PRIORITY),
                    cpus,
                    spared,
                    response_ns: None,
                    why: None,
                }
            }
            (SupervisorClass::Fifo, Err(why)) if real_time => SupervisorGrant::none(Some(why)),
            _ => SupervisorGrant::none(None),
        }
    }

    pub(super) fn none(why: Option<&String>) -> SupervisorGrant {
        SupervisorGrant {
            class: SupervisorClass::Other,
            budget_ns: None,
            period_ns: None,
            priority: None,
            cpus: Vec::new(),
            spared: Vec::new(),
            response_ns: None,
            why: why.cloned(),
        }
    }

    /// The same on fewer cpus, where the file leaves them to timecell: on those that no cell names, and on one alone.
    pub(super) fn elsewhere(&self, mission: &Mission) -> Vec<SupervisorGrant> {
        if !mission.supervisor.cpus.is_empty() {
            return Vec::new();
        }
        let cells = || mission.cells.iter().filter(|cell| cell.is_real_time());
        let is_named = |cpu: &u32| {
            cells().any(|cell| cell.cpus.contains(cpu))
                || (mission.cpus.contains(cpu) && cells().any(|cell| cell.cpus.is_empty()))
        };
        let open = self.cpus.iter().copied().filter(|cpu| !is_named(cpu));
        let mut tries = vec![open.collect(), self.cpus.iter().copied().take(1).collect()];
        tries.dedup();
        tries.retain(|cpus: &Vec<u32>| !cpus.is_empty() && *cpus != self.cpus);
        (tries.into_iter())
            .map(|cpus| SupervisorGrant {
                spared: (self.cpus.iter().copied())
                    .filter(|cpu| !cpus.contains(cpu))
                    .collect(),
                cpus,
                ..self.clone()
            })
            .collect()
    }

    /// Whether its threads keep off a cpu on which timecell was started.
    pub fn is_kept_off(&self) -> bool {
        !self.spared.is_empty()
    }

    /// Budget and period, ns.
    pub fn reservation(&self) -> Option<(Ns, Ns)> {
        self.budget_ns.zip(self.period_ns)
    }

    /// As admission takes it; `None`: there is nothing to admit.
    pub(super) fn asked(&self) -> Option<Asked> {
        let reservation = self.reservation()?;
        Some(asked(
            usize::MAX,
            NAME.to_owned(),
            "the supervisor".to_owned(),
            self.cpus.clone(),
            reservation,
        ))
    }

    /// That there is no room for it, a sentence.
    pub(super) fn refusal(&self) -> Option<String> {
        let (budget, period) = self.reservation()?;
        Some(format!(
            "the cells fit, but on none of its cpus the supervisor beside them, which reserves {} every {}: lower its \
             budget (`supervisor = {{ budget = ... }}`), move timecell to other cpus (`taskset`), or run it as an ordinary \
             process (`supervisor = {{ class = \"other\" }}`), which reacts late where the cells use their whole grants",
            exact(budget),
            exact(period)
        ))
    }

    /// That it is an ordinary process though that was not requested.
    pub(super) fn note(&self) -> Option<String> {
        let why = self.why.as_ref()?;
        Some(format!(
            "the supervisor is an ordinary process and may react late beside cells that use their whole grants: {why}"
        ))
    }
}

/// A supervisor, this mission's or another one's.
pub(super) fn asked(
    at: usize,
    name: String,
    holder: String,
    cpus: Vec<u32>,
    reservation: (Ns, Ns),
) -> Asked {
    let priority = Supervisor::PRIORITY;
    Asked {
        at,
        name,
        // It shares no partition with anybody.
        owner: None,
        holder: Some(holder),
        is_supervisor: true,
        enforcer: Enforcer::CpusetOnly,
        class: CellClass::Fifo,
        round_robin: false,
        cpus,
        band: Some(Band {
            lowest: priority,
            highest: priority,
        }),
        reservation: Some(reservation),
        only_tasks: false,
        is_assumed: false,
        silent_for: None,
        work: Work {
            tasks: Vec::new(),
            policy: Policy::FixedPriority,
        },
        order: Vec::new(),
        names: Vec::new(),
        declared: None,
        wished: None,
    }
}

/// The supervisors among these, all of one priority, behind the threads `above` of SCHED_DEADLINE: the bound of each, and the
/// time that it may take from everybody below.
pub(super) fn check(
    cells: &[Candidate<'_>],
    above: &[Held],
) -> Result<Vec<(usize, Bound, Held)>, Unfit> {
    let own: Vec<(usize, Held)> = (cells.iter().enumerate())
        .filter(|(_, cell)| cell.asked.is_supervisor)
        .filter_map(|(at, cell)| {
            let (budget, period) = cell.asked.reservation?;
            Some((at, Held::exactly(budget, period)))
        })
        .collect();
    let mut checked = Vec::new();
    for &(at, held) in &own {
        // A budget is no job with a deadline: it is asked when all of it has come, however long that takes.
        let patience = LONGEST_NS.max(held.period);
        let others = own.iter().filter(|(other, _)| *other != at);
        let all: Vec<Task> = (above.iter().chain(others.map(|(_, held)| held)))
            .map(|held| Task::new(held.budget, held.period).jittered(held.period))
            .chain([Task::new(held.budget, patience)])
            .collect();
        let response = fixed_priority(&all, &Dedicated).responses.pop().flatten();
        let Some(response) = response else {
            return Err(Unfit {
                of: at,
                why: "the threads of SCHED_DEADLINE on its cpu leave it too little".to_owned(),
                witness: None,
            });
        };
        let bound = Bound {
            basis: Basis::WholeCpu,
            rate: (held.budget, held.period),
            delay_ns: None,
            postponed_ns: response.saturating_sub(held.budget),
            responses: vec![Some(response)],
        };
        checked.push((at, bound, held));
    }
    Ok(checked)
}

/// How long a budget may take to come, ns.
const LONGEST_NS: Ns = 10_000_000_000;

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn class_name<S: Serializer>(class: &SupervisorClass, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(class.name())
}
