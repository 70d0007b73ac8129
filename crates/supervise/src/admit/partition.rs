//! Cpus that a mission has to itself, so that its threads of SCHED_DEADLINE can be confined to them: each cpu, or set of
//! cpus, with cells of that class is a cpuset partition, shared with the mission's other cells that are to run there.
//!
//! Two missions never share a partition: it has one owner, who creates it before its first cell and removes it after the
//! last. With two owners each could remove it, or change its cpus, under the other's cells; and while it exists the
//! kernel moves everything else off its cpus, which only the one who asked for it can have wanted.

use analysis::linux::{DeadlineParams, RootDomain};
use model::Enforcer;
use model::mission::{CellClass, Mission};

use super::asked::Asked;
use super::cpu::{Bound, Candidate, Unfit};
use super::{Facts, Outcome, Unaccounted, cpu_list};

/// Whether a cell's threads run on any cpu.
pub(super) fn roams(cell: &Asked, facts: &Facts) -> bool {
    let everywhere = cell.holder.is_some() && facts.cpus.len() > 1 && cell.cpus == facts.cpus;
    cell.class == CellClass::Deadline && (facts.deadline_on_one_cpu.is_err() || everywhere)
}

/// Whether a cell's cpus are a partition. The only cpu of a machine need not be one.
pub(super) fn is_apart(cell: &Asked, facts: &Facts) -> bool {
    cell.class == CellClass::Deadline && facts.cpus.len() > 1 && !roams(cell, facts)
}

/// That of these partitions which has all of these cpus.
pub(super) fn of<'a>(partitions: &'a [Vec<u32>], cpus: &[u32]) -> Option<&'a [u32]> {
    let has = |partition: &&Vec<u32>| cpus.iter().all(|cpu| partition.contains(cpu));
    let found = partitions.iter().filter(|_| !cpus.is_empty()).find(has);
    found.map(Vec::as_slice)
}

/// Over how many cpus the threads of SCHED_DEADLINE of one cpu may migrate.
pub(super) fn span(cells: &[Candidate<'_>], facts: &Facts) -> usize {
    let in_class = |cell: &&Candidate<'_>| cell.asked.class == CellClass::Deadline;
    let spans = cells.iter().filter(in_class).map(|cell| {
        match roams(cell.asked, facts) {
            true => facts.cpus.len(),
            // One that is to be placed gets one.
            false => cell.asked.cpus.len().max(1),
        }
    });
    spans.max().unwrap_or(1)
}

/// Whether the cells of one cpu may share it, if it is a partition.
pub(super) fn shared(cells: &[Candidate<'_>], facts: &Facts) -> Result<(), Unfit> {
    let Some(first) = cells.iter().position(|cell| is_apart(cell.asked, facts)) else {
        return Ok(());
    };
    let apart = cells[first].asked;
    let others = cells.iter().map(|cell| cell.asked).enumerate();
    for (at, other) in others.filter(|(at, other)| *at != first && !other.is_supervisor) {
        let unfit = |of: usize, why: String| {
            let witness = None;
            Err(Unfit { of, why, witness })
        };
        // The first one was already granted its place.
        let later = first.max(at);
        if other.owner != apart.owner {
            return match &apart.owner {
                Some(owner) => unfit(
                    at,
                    format!("its cpu is a cpuset partition of {owner}, where nothing else can run"),
                ),
                None => unfit(
                    first,
                    format!(
                        "its cpu would become a cpuset partition of this mission, but {} runs there",
                        other.called()
                    ),
                ),
            };
        }
        if other.enforcer == Enforcer::Freezer {
            let cell = other.called();
            return unfit(
                later,
                format!(
                    "the freezer's threads for {cell} cannot run in the cpuset partition that {} needs on this cpu; give one of \
                     the two cells another cpu",
                    apart.called()
                ),
            );
        }
        // Where both are on one cpu it is this one.
        let one = |cell: &Asked| cell.cpus.len() <= 1;
        let within = |cell: &Asked| cell.cpus.iter().all(|cpu| apart.cpus.contains(cpu));
        let fits = match is_apart(other, facts) {
            true => {
                (one(apart) && one(other))
                    || (apart.cpus.len() == other.cpus.len() && within(other))
            }
            false => one(other) || within(other),
        };
        if !fits {
            return unfit(
                later,
                format!(
                    "the cpus of {} and {} overlap, but the cpus of a cell of SCHED_DEADLINE are a cpuset partition: give both the same",
                    apart.called(),
                    other.called()
                ),
            );
        }
    }
    Ok(())
}

/// Why no partition can be made of this cpu, a clause; `None`: one can.
fn kept(facts: &Facts, cpu: u32) -> Option<&str> {
    let mut kept = facts.kept_cpus.iter();
    kept.find(|kept| kept.cpu == cpu)
        .map(|kept| kept.by.as_str())
}

/// Whether nobody but its owner can run on this cpu: it is a partition already.
pub(super) fn is_closed(facts: &Facts, cpu: u32) -> bool {
    let mut kept = facts.kept_cpus.iter();
    kept.any(|kept| kept.cpu == cpu && kept.is_partition)
}

/// Why a cell cannot have the cpus that it names, a clause; `None`: it can.
pub(super) fn refuses(cell: &Asked, facts: &Facts) -> Option<String> {
    let apart = is_apart(cell, facts);
    (cell.cpus.iter()).find_map(|&cpu| {
        let by = kept(facts, cpu).filter(|_| apart || is_closed(facts, cpu))?;
        Some(match apart {
            true => format!(
                "cpu {cpu} cannot be a cpuset partition for its threads of SCHED_DEADLINE: {by}"
            ),
            false => format!("cpu {cpu} is taken: {by}"),
        })
    })
}

/// The cpus of these on which a cell may be placed, in the order in which they are tried: for threads of SCHED_DEADLINE
/// from the last one down, because most of the machine's other work is bound to the first.
pub(super) fn open_to(cell: &Asked, cpus: &[u32], facts: &Facts) -> Vec<u32> {
    let apart = is_apart(cell, facts);
    let is_open = |cpu: &&u32| match apart {
        true => kept(facts, **cpu).is_none(),
        false => !is_closed(facts, **cpu),
    };
    let mut open: Vec<u32> = cpus.iter().filter(is_open).copied().collect();
    if apart {
        open.reverse();
    }
    open
}

/// Why no cpu can be tried for a cell.
pub(super) fn no_cpu(of: usize, cpus: &[u32], facts: &Facts) -> Unfit {
    let why = cpus.iter().find_map(|&cpu| {
        let by = kept(facts, cpu)?;
        Some(format!("there is no cpu for it: cpu {cpu} is taken: {by}"))
    });
    Unfit {
        of,
        why: why.unwrap_or_else(|| "there is no cpu for cells".to_owned()),
        witness: None,
    }
}

/// Whether a cpu is left for all else of the machine when these are partitions beside those of others.
pub(super) fn leave_one(taken: &[u32], facts: &Facts) -> bool {
    let is_left = |cpu: &u32| !taken.contains(cpu) && !is_closed(facts, *cpu);
    facts.cpus.iter().any(is_left)
}

/// Why one does not get these cpus though its deadlines hold there.
pub(super) fn takes_the_last(of: usize, cpus: &[u32]) -> Unfit {
    Unfit {
        of,
        why: format!(
            "its cpuset partition would take cpu {} and leave no cpu for the rest of the machine",
            cpu_list(cpus)
        ),
        witness: None,
    }
}

fn sorted(cpus: &[u32]) -> Vec<u32> {
    let mut cpus = cpus.to_vec();
    cpus.sort_unstable();
    cpus
}

/// The partitions of this mission: the cpus of its cells that are apart, each set once.
pub(super) fn all(
    candidates: &[Candidate<'_>],
    placed: &[Result<(Vec<u32>, Bound), Unfit>],
    facts: &Facts,
) -> Vec<Vec<u32>> {
    let mut all: Vec<Vec<u32>> = Vec::new();
    for (candidate, place) in candidates.iter().zip(placed) {
        if let Ok((cpus, _)) = place
            && candidate.asked.holder.is_none()
            && is_apart(candidate.asked, facts)
        {
            let cpus = sorted(cpus);
            if !all.contains(&cpus) {
                all.push(cpus);
            }
        }
    }
    all.sort();
    all
}

/// Threads of SCHED_DEADLINE by the root domains in which the kernel admits them, each with the others that have threads there.
pub(super) fn domains(
    candidates: &[Candidate<'_>],
    placed: &[Result<(Vec<u32>, Bound), Unfit>],
    domain: &RootDomain,
    facts: &Facts,
) -> Vec<(RootDomain, Vec<DeadlineParams>, Vec<String>)> {
    let mut all: Vec<(Vec<u32>, Vec<&Candidate<'_>>)> = Vec::new();
    for (candidate, place) in candidates.iter().zip(placed) {
        if candidate.asked.class != CellClass::Deadline {
            continue;
        }
        let cpus = match (is_apart(candidate.asked, facts), place) {
            (true, Ok((cpus, _))) => sorted(cpus),
            // It gets none, and is refused for that.
            (true, Err(_)) => continue,
            (false, _) => facts.cpus.clone(),
        };
        match all.iter_mut().find(|(known, _)| *known == cpus) {
            Some((_, members)) => members.push(candidate),
            None => all.push((cpus, vec![candidate])),
        }
    }
    (all.into_iter())
        .map(|(cpus, members)| {
            let capacities = (facts.cpus.iter().zip(&domain.capacities))
                .filter(|(cpu, _)| cpus.contains(cpu))
                .map(|(_, capacity)| *capacity);
            let own = RootDomain {
                capacities: capacities.collect(),
                ..domain.clone()
            };
            let threads = members.iter().flat_map(|cell| cell.threads()).collect();
            let others = members.iter().map(|cell| cell.asked);
            let others = others.filter(|asked| asked.holder.is_some());
            (own, threads, others.map(Asked::called).collect())
        })
        .collect()
}

/// The cpus of a best-effort cell beside these partitions: those of them on which it can run; in a partition only if it names none
/// outside.
pub(super) fn beside(partitions: &[Vec<u32>], cpus: &[u32], facts: &Facts) -> Vec<u32> {
    let is_apart = |cpu: &u32| partitions.iter().any(|partition| partition.contains(cpu));
    let open: Vec<u32> = (cpus.iter().copied())
        .filter(|cpu| !is_apart(cpu) && !is_closed(facts, *cpu))
        .collect();
    if !open.is_empty() {
        return open;
    }
    let within = |partition: &Vec<u32>| -> Vec<u32> {
        let own = cpus.iter().filter(|cpu| partition.contains(cpu));
        own.copied().collect()
    };
    let mut inside = partitions.iter().map(within);
    inside.find(|cpus| !cpus.is_empty()).unwrap_or_default()
}

/// Foreign real-time threads that are bound to a partition's cpus alone, a sentence for each: the kernel would move
/// them off these.
pub(super) fn bound_there(partitions: &[Vec<u32>], outside: &[Unaccounted]) -> Vec<String> {
    let bound = outside.iter().filter_map(|thread| {
        let partition = of(partitions, &thread.cpus)?;
        Some((thread, partition))
    });
    bound
        .map(|(thread, partition)| {
            format!(
                "{thread}, and the cpuset partition of cpu {} would move it elsewhere; end it, or give the cells another cpu",
                host::cpus::format_list(partition)
            )
        })
        .collect()
}

/// The effect of each partition on everything else, a sentence for each.
pub(super) fn notes(partitions: &[Vec<u32>]) -> Vec<String> {
    let of = |partition: &Vec<u32>| {
        format!(
            "while the mission runs, cpu {} is a cpuset partition, so that threads of SCHED_DEADLINE can be confined to it: no \
             other program runs there, whatever its affinity",
            host::cpus::format_list(partition)
        )
    };
    partitions.iter().map(of).collect()
}

/// Puts it down with each grant in which partition it is.
pub(super) fn enter(outcomes: &mut [Option<Outcome>], partitions: &[Vec<u32>]) {
    for outcome in outcomes.iter_mut().flatten() {
        if let Outcome::Granted(grant) = outcome {
            grant.partition = of(partitions, &grant.cpus).map(<[u32]>::to_vec);
        }
    }
}

/// The machine without partitions, for a mission whose threads of SCHED_DEADLINE may run on any cpu; `None`: some are
/// to be confined to cpus, others have cpus to themselves, or there are no partitions anyway.
pub(super) fn none(mission: &Mission, facts: &Facts) -> Option<Facts> {
    let confined =
        !mission.cpus.is_empty() || mission.cells.iter().any(|cell| !cell.cpus.is_empty());
    let held = facts.beside.iter().flat_map(|other| &other.cells);
    let mut held = held.flat_map(|cell| &cell.holds);
    let divided = facts.kept_cpus.iter().any(|kept| kept.is_partition)
        || held.any(|hold| hold.class == CellClass::Deadline && hold.cpus != facts.cpus);
    let possible = facts.cpus.len() > 1 && facts.deadline_on_one_cpu.is_ok();
    (possible && !confined && !divided).then(|| Facts {
        deadline_on_one_cpu: Err("with partitions it would not be admitted".to_owned()),
        ..facts.clone()
    })
}

/// Whether a mission says that cells of it are of class SCHED_DEADLINE.
pub(super) fn is_meant(mission: &Mission) -> bool {
    let in_class = |class: Option<CellClass>| class == Some(CellClass::Deadline);
    mission.enforcer == Some(Enforcer::Deadline)
        || mission.cells.iter().any(|cell| in_class(cell.class))
}
