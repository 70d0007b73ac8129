//! The assumptions on which the bounds of tasks rest: all of them in one list ([`RULES`]), each with its check as far as the supervisor
//! sees, or said to be unchecked; and whether a bound stands ([`Bounds`]).

mod bound;
mod rules;
#[cfg(test)]
mod tests;

use host::rt_threads::RtThread;
use host::sched::Class;
use model::Enforcer;
use model::mission;
use serde::{Deserialize, Serialize};

pub use self::bound::Changed;
pub use self::bound::{Bounds, State};
pub use self::rules::{Check, RULES, Rule};

use crate::admit::{Admission, Basis, Grant, Unaccounted};
use crate::threads::{Match, Seen, wanted};

/// Time between two looks, ns.
const LOOKS_NS: u64 = 1_000_000_000;
/// Use by threads without a task that no look makes a deviation of, ns: a program's first thread may wake a few times a second.
const UNSEEN_NS: u64 = 1_000_000;

/// The bound of a task, and all that its proof has used.
#[derive(Debug, Clone, PartialEq)]
pub struct Proof {
    /// The task.
    pub task: String,
    /// The bound on its response time, ns; its deadline where none was computed.
    pub bound_ns: u64,
    /// The name that its thread is to have; `None`: it is the first of the cell.
    pub thread: Option<String>,
    /// The class of that thread; `None`: none was granted.
    pub class: Option<Class>,
    /// The lowest priority of the cell's tasks.
    pub lowest: Option<u8>,
    /// The cpus on which it may run.
    pub cpus: Vec<u32>,
    /// Its cell's enforcer.
    pub enforcer: Enforcer,
    /// Budget on each cpu and period, ns.
    pub budget: Option<(u64, u64)>,
    /// Cpu time that threads of its cell that run no task may use between two looks, ns, where the budget is ample for its tasks alone.
    /// `None`: the proof lets them use all of the budget.
    pub spare_ns: Option<u64>,
    /// The longest execution time of a job, that of high mode where it has one, ns.
    pub wcet_ns: i64,
    /// The shortest time between two jobs, ns.
    pub period_ns: i64,
    /// The longest time for which less urgent work delays a job, ns.
    pub blocking_ns: i64,
    /// How late the kernel may wake it, ns.
    pub latency_ns: u64,
    /// The kernel's own threads that come before it on its cpus.
    pub kernel: Vec<RtThread>,
    /// The supervisor's own reservation, ns in each period; `None`: nothing.
    pub reserved: Option<(u64, u64)>,
}

impl Proof {
    /// Those of the tasks of a cell, in the order of the mission; none of a best-effort cell.
    pub fn all(admission: &Admission, cell: &mission::Cell) -> Vec<Proof> {
        let Some(grant) = admission.grant(&cell.name) else {
            return Vec::new();
        };
        let lowest = grant.tasks.iter().filter_map(|task| task.priority).min();
        let own = &admission.supervisor;
        let tasks = cell.tasks.iter().zip(&grant.tasks);
        (tasks.zip(wanted(grant, cell)))
            .map(|((task, bound), wanted)| Proof {
                task: bound.task.clone(),
                bound_ns: bound.response_ns.unwrap_or(bound.deadline_ns),
                thread: wanted.thread,
                kernel: above(admission, grant, wanted.class.as_ref()),
                class: wanted.class,
                lowest,
                cpus: grant.cpus.clone(),
                enforcer: grant.enforcer,
                budget: grant.budget_ns.zip(grant.period_ns),
                spare_ns: spare_ns(grant),
                wcet_ns: (task.timing.wcet_high)
                    .map_or(task.timing.wcet.ns(), model::Duration::ns)
                    .max(task.timing.wcet.ns()),
                period_ns: task.timing.period.ns(),
                blocking_ns: task.timing.blocking.ns(),
                latency_ns: admission.latency_ns,
                reserved: own.budget_ns.zip(own.period_ns),
            })
            .collect()
    }

    /// Its assumptions, in the order of [`RULES`].
    pub fn assumptions(&self) -> Vec<Assumption> {
        let each = RULES.iter().filter_map(|rule| {
            let says = (rule.says)(self)?;
            Some(Assumption {
                assumption: rule.name.to_owned(),
                says,
                standing: match rule.check {
                    Check::Looked(_) => None,
                    Check::Never(why) => Some(Standing::not_checked(why)),
                },
            })
        });
        each.collect()
    }

    /// The same with how each stands by this look.
    pub fn seen(&self, look: &Look<'_>) -> Vec<Assumption> {
        let each = RULES.iter().filter_map(|rule| {
            let says = (rule.says)(self)?;
            Some(Assumption {
                assumption: rule.name.to_owned(),
                says,
                standing: Some(rule.check.standing(self, look)),
            })
        });
        each.collect()
    }

    /// The first deviation by this look, those that cannot be undone first; `None`: the bound stands.
    pub fn deviation(&self, look: &Look<'_>) -> Option<Deviation> {
        let deviations = RULES.iter().filter_map(|rule| {
            (rule.says)(self)?;
            match rule.check.standing(self, look) {
                Standing::Deviates { found, for_good } => Some(Deviation {
                    rule: rule.name,
                    found,
                    for_good,
                }),
                Standing::Holds | Standing::NotChecked { .. } => None,
            }
        });
        deviations.min_by_key(|deviation| !deviation.for_good)
    }
}

/// The use that threads without a task may make of the budget of a cell between two looks, ns; `None`: the proof lets them use all of it.
fn spare_ns(grant: &Grant) -> Option<u64> {
    let Basis::Ample { spare_ns, .. } = grant.basis else {
        return None;
    };
    // A period that is longer than the time between two looks holds more of them.
    let looks = grant.period_ns?.div_ceil(LOOKS_NS).max(1);
    Some(spare_ns / looks + UNSEEN_NS)
}

/// The kernel's threads that come before those of this class on the cpus of a grant.
fn above(admission: &Admission, grant: &Grant, class: Option<&Class>) -> Vec<RtThread> {
    let is_above = |thread: &&RtThread| match (thread.priority, class) {
        (None, _) | (_, None) => true,
        (Some(_), Some(Class::Deadline { .. })) => false,
        (Some(priority), Some(class)) => class.priority().is_none_or(|own| priority >= own),
    };
    let meets = |thread: &&RtThread| grant.cpus.iter().any(|cpu| thread.cpus.contains(cpu));
    (admission.kernel.iter())
        .filter(meets)
        .filter(is_above)
        .cloned()
        .collect()
}

/// One assumption of a bound.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assumption {
    /// Its name.
    pub assumption: String,
    /// The assumption, a clause.
    pub says: String,
    /// How it stands; `None`: it is looked at once its cell runs.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub standing: Option<Standing>,
}

/// Whether an assumption holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum Standing {
    /// It was looked at, and holds.
    Holds,
    /// Nobody can tell.
    NotChecked {
        /// Why, a clause.
        why: String,
    },
    /// It does not hold.
    Deviates {
        /// The actual state, a clause.
        found: String,
        /// Whether that cannot be undone in this life of the cell.
        for_good: bool,
    },
}

/// An assumption that does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deviation {
    /// The name of its rule.
    pub rule: &'static str,
    /// The actual state, a clause.
    pub found: String,
    /// Whether that cannot be undone in this life of the cell.
    pub for_good: bool,
}

impl Deviation {
    /// Whether a cell that begins may have it: its threads come when they come, get their classes then, and use cpu time to prepare. Jobs that end
    /// late for that are seen at the look after; `has_held`: at the look before, everything held.
    fn comes_with_beginning(&self, has_held: bool) -> bool {
        (self.rule == "responses" && !has_held)
            || matches!(self.rule, "thread" | "class" | "siblings" | "others")
    }
}

impl Standing {
    /// Of an assumption that nobody can check.
    pub fn not_checked(why: impl Into<String>) -> Standing {
        Standing::NotChecked { why: why.into() }
    }

    /// Of one that does not hold for now.
    pub fn found(found: impl Into<String>) -> Standing {
        Standing::Deviates {
            found: found.into(),
            for_good: false,
        }
    }
}

/// The handler of the cell's calls for another class, and whether it is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answered {
    /// Its agent.
    ByAgent,
    /// Its agent, which is gone.
    ByNobody,
    /// Its filter, without any effect.
    ByFilter,
    /// The kernel, as for any program: it has no filter.
    ByKernel,
}

/// Whether a task's process has locked its memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Locked {
    /// Never yet.
    #[default]
    Never,
    /// It has.
    Yes,
    /// It had, and has not any more.
    NoMore,
}

/// The observations of a task and its machine at one look.
#[derive(Debug, Clone, Copy)]
pub struct Look<'a> {
    /// The task's thread.
    pub thread: &'a Match,
    /// That thread, if there is one.
    pub seen: Option<&'a Seen>,
    /// The class that it has, or gets back with its cell's next budget.
    pub class: Option<&'a Class>,
    /// The cpus on which the kernel lets it run; empty: not known.
    pub cpus: &'a [u32],
    /// That others have moved it out of a control group, a clause.
    pub moved: Option<&'a str>,
    /// The handler of its cell's calls.
    pub answered: Answered,
    /// Parts of its cell that the enforcer does not hold, as clauses.
    pub unheld: &'a [String],
    /// A thread of its cell that runs no task and has a higher class than it may have, a clause.
    pub stray: Option<&'a str>,
    /// Cpu time charged to its cell's budget that threads have used which run no task, since the last look but one, ns.
    pub others_ns: u64,
    /// Whether its thread has used more cpu time since the look before than its jobs may; `None`: not known.
    pub overran: Option<bool>,
    /// The longest response time since the look before, as the application reports it, ns; `None`: it reports none.
    pub worst_ns: Option<i64>,
    /// Its memory.
    pub locked: Locked,
    /// Whether a signal has stopped its process.
    pub is_stopped: bool,
    /// Whether the enforcer has counted lately that the cell's ample budget was used up.
    pub used_up: bool,
    /// Real-time threads of programs that nobody accounts for.
    pub outside: &'a [Unaccounted],
    /// Settings of the machine that are no longer as admission read them, as clauses.
    pub settings: &'a [String],
    /// For how long the supervisor did not look although it was to, ns.
    pub away_ns: i64,
    /// Whether its own reservation holds.
    pub is_reserved: bool,
}
