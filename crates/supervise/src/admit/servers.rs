//! Cells held to budgets by SCHED_DEADLINE servers, `cpu.rt.max` of cgroup v2: on each cpu they run before all threads of
//! class FIFO outside such groups, by earliest deadline first among themselves and threads of that class, regardless of
//! their own priorities.

use analysis::linux::{Bandwidth, DeadlineParams, HcbsTree, Held, RootDomain, threads_hold};
use analysis::{Ns, Verdict};
use model::Enforcer;
use model::mission::CellClass;
use record::supply::MeasuredSupply;
use text::units::exact;

use super::Facts;
use super::cpu::{Bound, Candidate, Unfit, reserved};
use crate::enforce::in_us;

/// The supervisors that come before a cell on every cpu: none before a server, or a thread out of band.
pub(super) fn before(enforcer: Enforcer, supervisors: &[Held]) -> &[Held] {
    match enforcer {
        Enforcer::Hcbs | Enforcer::EvlQuota | Enforcer::EvlTp => &[],
        _ => supervisors,
    }
}

fn is_server(cell: &Candidate<'_>) -> bool {
    cell.asked.enforcer == Enforcer::Hcbs && cell.budget.is_some()
}

/// A budget of a real-time group and its period as the kernel has them, ns: whole microseconds, rounded down.
pub(super) const fn in_whole_us(budget_ns: Ns, period_ns: Ns) -> (Ns, Ns) {
    (budget_ns / 1_000 * 1_000, period_ns / 1_000 * 1_000)
}

/// The same of a server, whose budget is rounded up.
fn as_written(budget_ns: Ns, period_ns: Ns) -> (Ns, Ns) {
    let written = in_us(budget_ns, period_ns);
    let ns = |us: u64| us.saturating_mul(1_000);
    (ns(written.runtime_us.unsigned_abs()), ns(written.period_us))
}

/// Whether the servers of one cpu all supply their budgets by the ends of their periods, and the cells' deadlines hold with that.
pub(super) fn check(
    cells: &[Candidate<'_>],
    facts: &Facts,
    measured: &[MeasuredSupply],
    bounds: &mut [Option<Bound>],
    above: &mut Vec<Held>,
) -> Result<(), Unfit> {
    let own: Vec<(usize, Held)> = (cells.iter().enumerate())
        .filter(|(_, cell)| is_server(cell))
        .filter_map(|(at, cell)| Some((at, cell.budget?)))
        .map(|(at, (budget, period))| {
            let (budget, period) = as_written(budget, period);
            let held = Held {
                budget,
                period,
                overdraw: facts.overdraw_ns(Enforcer::Hcbs),
            };
            (at, held)
        })
        .collect();
    let servers: Vec<DeadlineParams> = (own.iter())
        .map(|(_, held)| DeadlineParams::new(held.budget, held.period))
        .collect();
    match threads_hold(&servers, facts.tick_ns()).verdict {
        Verdict::Schedulable => {}
        Verdict::Unschedulable(witness) => {
            return Err(Unfit {
                of: own.get(witness.task).map_or(0, |(at, _)| *at),
                why: format!(
                    "the budgets of hcbs on its cpu, which may each be overdrawn by a tick, demand {} in {}",
                    exact(witness.demand),
                    exact(witness.instant)
                ),
                witness: None,
            });
        }
        Verdict::Undecided(reason) => {
            return Err(Unfit {
                of: own.first().map_or(0, |(at, _)| *at),
                why: reason.to_string(),
                witness: None,
            });
        }
    }
    for &(at, held) in &own {
        // Earliest deadline first gives each its budget anywhere within its period, if others are there.
        let behind: Ns = match own.len() {
            1 => 0,
            _ => held.period - held.budget.min(held.period),
        };
        bounds[at] = Some(reserved(at, &cells[at], held, behind, facts, measured)?);
        above.push(held);
    }
    Ok(())
}

/// Whether no other cell is on a cpu with one that has a server. A thread of SCHED_DEADLINE that runs on any cpu is not analysed beside
/// servers that are kept to theirs, and a thread of class FIFO outside such groups comes after all of these, even one that is to stop
/// cells by the clock.
pub(super) fn alone(cells: &[Candidate<'_>]) -> Result<(), Unfit> {
    let other = |cell: &Candidate<'_>| {
        !is_server(cell) && !cell.asked.is_supervisor && cell.asked.class != CellClass::Other
    };
    let (Some(server), Some(other)) = (
        cells.iter().rposition(is_server),
        cells.iter().rposition(other),
    ) else {
        return Ok(());
    };
    let is_deadline = cells[other].asked.class == CellClass::Deadline;
    let fix = match is_deadline {
        true => "give them different cpus",
        false => "give them different cpus, or both the enforcer `hcbs`",
    };
    Err(Unfit {
        // The first one was already granted its place.
        of: server.max(other),
        why: format!(
            "`hcbs` holds {} by a SCHED_DEADLINE server, which runs before FIFO threads of any priority and is not analysed \
             beside {}, which `{}` holds on the same cpu: {fix}",
            cells[server].asked.called(),
            cells[other].asked.called(),
            cells[other].asked.enforcer.name(),
        ),
        witness: None,
    })
}

/// Why the kernel's own arithmetic refuses the runtime that the top group has to reserve for all groups, beside threads of
/// SCHED_DEADLINE in their root domains, or refuses the groups; `None`: it takes all, or none is wanted.
pub(super) fn refused(
    candidates: &[Candidate<'_>],
    domains: &[(RootDomain, Vec<DeadlineParams>, Vec<String>)],
    facts: &Facts,
) -> Option<String> {
    let servers = facts.hcbs.as_ref().ok()?;
    let own: Vec<_> = (candidates.iter())
        .filter(|cell| is_server(cell) && cell.asked.holder.is_none())
        .filter_map(|cell| cell.budget)
        .map(|(budget, period)| in_us(budget, period))
        .collect();
    let taken_us: u64 = servers.room.taken.iter().map(|share| share.us).sum();
    let needed_us = (own.iter())
        .map(host::rtgroup::Budget::per_second_up_us)
        .fold(taken_us, u64::saturating_add);
    let top_us = needed_us.max(servers.reserved_us);
    if top_us == 0 {
        return None;
    }
    let of_second = |us: u64| Bandwidth::new(us.saturating_mul(1_000), 1_000_000_000);
    let domain = facts.deadline.as_ref().ok()?;
    let with_threads = domains.iter().map(|(domain, threads, _)| RootDomain {
        taken: (threads.iter())
            .map(DeadlineParams::ratio)
            .fold(domain.taken, u64::saturating_add),
        ..domain.clone()
    });
    let all: Vec<RootDomain> = with_threads.chain([domain.clone()]).collect();
    let refusal = HcbsTree::new(all, of_second(top_us)).and_then(|mut tree| {
        tree.add(0, of_second(taken_us))?;
        for budget in &own {
            let us = |us: u64| us.saturating_mul(1_000);
            let runtime = us(budget.runtime_us.unsigned_abs());
            tree.add(0, Bandwidth::new(runtime, us(budget.period_us)))?;
        }
        Ok(())
    });
    refusal.err().map(|refusal| {
        format!(
            "the kernel would refuse to reserve {} of every second of each cpu for groups with budgets (cpu.rt.max of the \
             top group): {refusal}",
            exact(top_us * 1_000)
        )
    })
}
