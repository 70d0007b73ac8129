//! Reservations that the kernel holds, judged by measured supply: the lines of a run of `bench supply`, none of them better than
//! the proved supply.

use analysis::empirical::Envelope;
use analysis::linux::{DeadlineParams, Means, Reaction, threads_hold};
use analysis::reservation::Delayed;
use analysis::{Ns, Supply};
use model::Enforcer;
use model::taskset::{Policy, Reservation, ServerKind, TaskCell, TaskSet};
use record::supply::{Budget, Machine, MeasuredSupply};

use super::super::judge::ns;
use super::super::study::Outcome;
use super::ask::Asked;
use super::freezer::deadlines;
use text::units::exact;

/// The mechanism with which this enforcer holds cells on this machine; `None`: it enforces no budgets.
pub fn means(enforcer: Enforcer, machine: &Machine) -> Option<Means> {
    match enforcer {
        Enforcer::RtCgroup => Some(Means::RtCgroup(machine.slowest_tick_ns())),
        Enforcer::Hcbs => Some(Means::Hcbs(machine.slowest_tick_ns())),
        Enforcer::Deadline => Some(Means::Deadline(machine.runtime_tick_ns())),
        Enforcer::Freezer => Some(Means::Freezer(Reaction::MEASURED)),
        // A timer ends its budgets, wherever in each period they come.
        Enforcer::EvlQuota | Enforcer::EvlTp => Some(Means::Deadline(0)),
        Enforcer::CpusetOnly => None,
    }
}

/// Whether the deadlines inside the reservations are shown to hold with the measured supply of each, with notes on it. Never
/// answers that one is missed: the measured supply is a lower bound.
pub(super) fn inside(
    set: &TaskSet,
    asked: &Asked,
    enforcer: Enforcer,
    measured: &[MeasuredSupply],
) -> (Outcome, Vec<String>) {
    let reserving = (set.cells.iter()).filter(|cell| cell.reservation.is_some());
    let mut notes = Vec::new();
    let mut all = Outcome::Holds;
    for (place, cell) in reserving.enumerate() {
        let (outcome, what) = match supplied(cell, enforcer, &beside(asked, place), measured) {
            Ok((supply, what)) => (deadlines(cell, &supply), what),
            Err(why) => (Outcome::Undecided, why),
        };
        let said = outcome.by_a_lower_bound();
        notes.push(format!("cell {}: {what}; {said}", cell.name));
        all = all.worst(outcome);
    }
    (all, notes)
}

/// The other cells of its cpu; without a placement, all others.
fn beside(asked: &Asked, place: usize) -> Vec<&TaskCell> {
    let shares_cpu = |other: usize| {
        (asked.on.as_ref()).is_none_or(|on| on[other].iter().any(|cpu| on[place].contains(cpu)))
    };
    (asked.cells.iter().enumerate())
        .filter(|&(other, _)| other != place && shares_cpu(other))
        .map(|(_, cell)| cell)
        .collect()
}

/// Whether a cell gets its budget within each of its periods beside the `others` on its cpu, each of which may overrun until it
/// is stopped, at the latest by the tick of the measured machine.
fn comes(cell: &TaskCell, own: Reservation, others: &[&TaskCell], means: Means) -> bool {
    let budget = |held: Reservation| (ns(held.budget), ns(held.period));
    let reserved = others.iter().filter_map(|other| other.reservation);
    match means {
        Means::Deadline(tick) => {
            let thread = |held: Reservation| DeadlineParams {
                deadline: ns(held.deadline),
                ..DeadlineParams::new(ns(held.budget), ns(held.period))
            };
            let threads: Vec<DeadlineParams> = reserved.chain([own]).map(thread).collect();
            threads_hold(&threads, tick).verdict.is_schedulable()
        }
        Means::Hcbs(_) => means.comes(budget(own), &reserved.map(budget).collect::<Vec<_>>(), &[]),
        Means::RtCgroup(_) | Means::Freezer(_) => {
            let above = others.iter().filter(|other| !is_above(cell, other));
            let above: Vec<_> = above.filter_map(|o| o.reservation).map(budget).collect();
            means.comes(budget(own), &above, &[])
        }
    }
}

/// Whether the file makes a cell more urgent than another one. If not, either may come first.
fn is_above(cell: &TaskCell, other: &TaskCell) -> bool {
    let priority = |cell: &TaskCell| {
        let ordered = |kind| kind != ServerKind::ConstantBandwidth;
        cell.server.filter(|server| ordered(server.kind))?.priority
    };
    matches!((priority(cell), priority(other)), (Some(own), Some(other)) if own > other)
}

/// The measured supply of a cell's reservation, also in words; or why it is not known.
fn supplied(
    cell: &TaskCell,
    enforcer: Enforcer,
    others: &[&TaskCell],
    measured: &[MeasuredSupply],
) -> Result<(Delayed<Envelope>, String), String> {
    if cell.policy.cpus().is_some() {
        return Err("it is on several cpus, but was measured on one".to_owned());
    }
    let own = (cell.reservation).ok_or_else(|| "it has no reservation".to_owned())?;
    let held = Budget {
        enforcer,
        budget_ns: ns(own.budget),
        period_ns: ns(own.period),
    };
    let found = measured.iter().rev().find(|supply| supply.held == held);
    let found = found.ok_or_else(|| {
        format!(
            "that run did not measure {} every {} with {}",
            own.budget,
            own.period,
            enforcer.name()
        )
    })?;
    let longest = (cell.tasks.iter()).map(|task| ns(task.deadline)).max();
    if longest.is_some_and(|longest| longest > found.measured_to_ns) {
        return Err(format!(
            "windows were measured only up to {}",
            exact(found.measured_to_ns)
        ));
    }
    let supply = Envelope::of(&found.counted_on())
        .ok_or_else(|| "its measurement has no usable line".to_owned())?;
    let in_time = means(enforcer, &found.machine)
        .is_some_and(|means| others.is_empty() || comes(cell, own, others, means));
    if !in_time {
        return Err(format!(
            "beside the other cells on its cpu it is not shown to get its {} in every {}, since \
             each of them may run until the measured machine's tick stops it",
            own.budget, own.period
        ));
    }
    let (by, beside): (Ns, _) = match others.is_empty() {
        true => (0, ""),
        // Wherever in its period it runs after the others.
        false => (
            held.period_ns.saturating_sub(held.budget_ns),
            ", including other cells on its cpu",
        ),
    };
    let supply = Delayed { supply, by };
    let is_within = matches!(cell.policy, Policy::Fixed(_))
        && (cell.tasks.iter()).all(|task| task.deadline <= task.period);
    let beyond = match is_within {
        true => String::new(),
        // Several consecutive jobs may need supply over an interval of any length.
        false => format!(
            ", in windows of up to {}; longer windows are assumed to be alike",
            exact(found.measured_to_ns)
        ),
    };
    let (part, whole) = supply.rate();
    let what = format!(
        "{:.2} % of its cpu after {} was measured{beside}{beyond}",
        part as f64 * 100.0 / whole.max(1) as f64,
        supply
            .delay()
            .map_or_else(|| "an unknown time".to_owned(), exact)
    );
    Ok((supply, what))
}
