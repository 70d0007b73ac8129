//! Whether something that already runs can be held without a mission, beside everything that others hold.

use analysis::Ns;
use record::supply::MeasuredSupply;

use super::asked::Asked;
use super::cpu::Candidate;
use super::{Basis, Facts, Grant, HeldCell, neighbour, outside, partition, place};

/// Its cpu and its guarantee there.
#[derive(Debug, Clone, PartialEq)]
pub struct Room {
    /// The cpu.
    pub cpu: u32,
    /// Share of the cpu that it gets in the long run, and after how long, ns; of ordinary threads nothing is sure, and the share is the most.
    pub rate: f64,
    /// See `rate`.
    pub delay_ns: Option<Ns>,
    /// The basis of that guarantee.
    pub basis: Basis,
    /// Notes for the user, a sentence each.
    pub notes: Vec<String>,
}

/// Finds a place for each of its holds, in order: on the cpu that the hold names, else on the first of `cpus` on which all guarantees
/// hold with it.
///
/// # Errors
/// Why there is none, a clause.
pub fn room_for(wanted: &HeldCell, cpus: &[u32], facts: &Facts) -> Result<Vec<Room>, String> {
    // The cells beside it were admitted with the reaction measured here, so that counts for them.
    let facts = facts.reacting(&[]);
    let facts = facts.as_ref();
    facts.has(wanted.enforcer)?;
    let named = wanted.cpus().into_iter().find_map(|cpu| {
        let who = neighbour::measuring(facts, cpu)?;
        Some(format!("{} is measuring on cpu {cpu}", who.who))
    });
    if let Some(why) = named {
        return Err(why);
    }
    let holds = wanted.holds.iter().map(|hold| wanted.wanted(hold, 0));
    let own: Vec<Asked> = holds.collect();
    if let Some(why) = own.iter().find_map(|own| partition::refuses(own, facts)) {
        return Err(why);
    }
    let others = neighbour::all(facts, 1);
    let candidates: Vec<Candidate<'_>> = (others.iter())
        .map(|(asked, budget)| Candidate {
            asked,
            budget: *budget,
        })
        .chain(
            own.iter()
                .zip(&wanted.holds)
                .map(|(asked, hold)| Candidate {
                    asked,
                    budget: hold.budget_ns.zip(hold.period_ns),
                }),
        )
        .collect();
    let free: Vec<u32> = (cpus.iter().copied())
        .filter(|cpu| neighbour::measuring(facts, *cpu).is_none())
        .collect();
    let supplies = facts.beside.iter().flat_map(|other| &other.supplies);
    let measured: Vec<MeasuredSupply> = supplies.cloned().collect();
    let placed = place::place(&candidates, &free, facts, &measured);
    for (candidate, place) in candidates.iter().zip(&placed.cells) {
        if let (true, Err(unfit)) = (candidate.asked.holder.is_some(), place) {
            let called = candidate.asked.called();
            return Err(format!(
                "it would break the guarantee of {called}: {}",
                unfit.why
            ));
        }
    }
    let placed = placed.cells.into_iter().skip(others.len());
    placed
        .zip(own.iter().zip(&wanted.holds))
        .map(|(place, (own, hold))| {
            // The last one is told why it has no place, which may be its effect on others.
            let (cpus, bound) =
                place.map_err(|unfit| match &candidates[unfit.of].asked.holder {
                    Some(called) => {
                        format!("it would break the guarantee of {called}: {}", unfit.why)
                    }
                    None => unfit.why,
                })?;
            let cpu = cpus.first().copied().unwrap_or_default();
            let (part, whole) = bound.rate;
            let grant = Grant {
                cell: wanted.cell.clone(),
                enforcer: wanted.enforcer,
                cpus,
                budget_ns: hold.budget_ns,
                period_ns: hold.period_ns,
                band: own.band,
                round_robin: own.round_robin,
                basis: bound.basis.clone(),
                rate: part as f64 / whole.max(1) as f64,
                delay_ns: bound.delay_ns,
                postponed_ns: bound.postponed_ns,
                partition: None,
                tasks: Vec::new(),
            };
            let beside = match hold.priorities {
                Some(_) => outside::beside(facts, &[&grant]),
                None => Vec::new(),
            };
            Ok(Room {
                cpu,
                rate: grant.rate,
                delay_ns: grant.delay_ns,
                basis: grant.basis,
                notes: outside::notes(&beside),
            })
        })
        .collect()
}
