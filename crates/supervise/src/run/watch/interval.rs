//! How often the aspects of a cell are looked at.

use model::mission::{Cell, Observed, Ready};

use crate::admit::Grant;

const MS: i64 = 1_000_000;
const SECOND_NS: i64 = 1_000 * MS;
/// How often a cell is looked at whose first job is awaited, ns.
const AWAITED_NS: i64 = 2 * MS;
/// The longest time between two looks at a page whose jobs count, ns; the data of an incident is no older.
const LONGEST_NS: i64 = 500 * MS;
/// The shortest, ns.
const SHORTEST_NS: i64 = MS;
/// How often memory is looked at, ns.
const MEMORY_NS: i64 = 250 * MS;
/// How often refused forks are looked for, ns.
const FORKS_NS: i64 = SECOND_NS;
/// Heartbeats have no times of their own: with them a cell is looked at so often, at the least, ns.
const HEARTBEAT_NS: i64 = 10 * MS;
/// Jobs of the shortest period between two looks: half of those that the page keeps.
const JOBS: i64 = 16;

/// How often the aspects of a cell are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Interval {
    /// Its jobs, for the rules and for incidents, ns.
    jobs_ns: Option<i64>,
    /// Whether a rule is about its jobs; else they need no look as long as none is reported.
    is_ruled: bool,
    /// Its heartbeats, where it reports no jobs, ns.
    heartbeats_ns: Option<i64>,
    /// The kernel's counts of it, ns.
    outside_ns: Option<i64>,
    pub(super) ready: Ready,
    /// Whether threads that do not run are of interest.
    pub(super) still: bool,
    /// Whether its memory limit is.
    pub(super) memory: bool,
    /// Whether forks that are refused are, which the kernel does not signal.
    pub(super) forks: bool,
    /// The budget, if its use is.
    pub(super) budget: Option<BudgetOf>,
}

/// Budget and period that are watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BudgetOf {
    /// On all cpus together, ns.
    pub(super) budget_ns: i64,
    /// From 1 ns.
    pub(super) period_ns: i64,
}

impl BudgetOf {
    /// Whether this use amounts to the whole budget: the supply is enforced by the tick, and periods are not aligned
    /// with ours, so a twentieth may be missing.
    pub(super) fn is_used_up(&self, used_ns: i64, most_ns: i64) -> bool {
        used_ns >= most_ns - most_ns / 20
    }
}

impl Interval {
    /// Of a cell; `switches`: an overrun of its changes the mode.
    pub(super) fn of(cell: &Cell, grant: Option<&Grant>, switches: bool) -> Interval {
        let shortest = cell.tasks.iter().map(|task| task.timing.period.ns()).min();
        let observes =
            |what: fn(&Observed) -> bool| cell.health.iter().any(|rule| what(&rule.when));
        let overruns = switches || observes(|when| matches!(when, Observed::Overrun { .. }));
        let misses = observes(|when| matches!(when, Observed::DeadlineMisses { .. }));
        let every_job = overruns.then_some(shortest).flatten();
        let some_jobs = shortest
            .map(|period| part_of_a_second(period.saturating_mul(JOBS).clamp(20 * MS, LONGEST_NS)));
        let undeclared = misses.then_some(LONGEST_NS);
        let timeouts = |of: fn(&Observed) -> Option<i64>| {
            cell.health.iter().filter_map(|rule| of(&rule.when)).min()
        };
        let heartbeat = timeouts(|when| match when {
            Observed::Heartbeat { timeout, .. } => Some(timeout.ns()),
            _ => None,
        });
        let still = timeouts(|when| match when {
            Observed::NoProgress { timeout } => Some(timeout.ns()),
            _ => None,
        });
        let exhausted = observes(|when| matches!(when, Observed::BudgetExhausted { .. }));
        let budget = grant.filter(|_| exhausted).and_then(budget);
        let memory = cell.rights.memory.is_some();
        let outside = [
            still.map(|timeout| timeout / 4),
            budget.map(|budget| budget.period_ns),
            (cell.reservation.as_ref())
                .filter(|_| overruns && cell.tasks.is_empty())
                .map(|reservation| reservation.period.ns()),
            memory.then_some(MEMORY_NS),
        ];
        let at_least = |ns: i64| ns.max(SHORTEST_NS);
        Interval {
            jobs_ns: [every_job, some_jobs, undeclared]
                .into_iter()
                .flatten()
                .min()
                .map(at_least),
            is_ruled: overruns || misses,
            heartbeats_ns: heartbeat.map(|timeout| at_least((timeout / 8).min(HEARTBEAT_NS))),
            outside_ns: outside.into_iter().flatten().min().map(at_least),
            ready: cell.ready,
            still: still.is_some(),
            memory,
            forks: false,
            budget,
        }
    }

    /// The longest time until the next look, ns; `None`: none is needed.
    pub(super) fn every_ns(
        &self,
        ready: bool,
        page: bool,
        reports: bool,
        heartbeats: bool,
    ) -> Option<i64> {
        let of_page = [
            match reports || self.is_ruled {
                true => self.jobs_ns,
                false => self.jobs_ns.map(|_| SECOND_NS),
            },
            self.heartbeats_ns.filter(|_| heartbeats),
            (!ready).then_some(AWAITED_NS),
        ];
        let of_page = of_page.into_iter().flatten().filter(|_| page);
        let forks = self.forks.then_some(FORKS_NS);
        of_page.chain(self.outside_ns).chain(forks).min()
    }
}

/// When to look next at this interval: cells that are looked at as often as each other are so together.
pub(super) fn next_ns(looked_ns: i64, every_ns: i64) -> i64 {
    let since_ns = looked_ns.rem_euclid(every_ns.max(1));
    (looked_ns - since_ns).saturating_add(every_ns.max(1))
}

/// The largest half, quarter and so on of a second that is at most this long, ns.
fn part_of_a_second(ns: i64) -> i64 {
    let halves = (0..).map(|times| SECOND_NS >> times);
    halves
        .take_while(|part| *part > 0)
        .find(|part| *part <= ns)
        .unwrap_or(1)
}

fn budget(grant: &Grant) -> Option<BudgetOf> {
    let on_each = i64::try_from(grant.budget_ns?).ok()?;
    let cpus = i64::try_from(grant.cpus.len().max(1)).ok()?;
    Some(BudgetOf {
        budget_ns: on_each.saturating_mul(cpus),
        period_ns: i64::try_from(grant.period_ns?).ok()?.max(1),
    })
}
