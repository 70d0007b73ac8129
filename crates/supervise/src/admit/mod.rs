//! Admission: can this mission's guarantees be kept on this machine, with which cpu, budget and priority for each cell,
//! and under which assumptions? Pure: knowledge of the machine comes as [`Facts`] and as measured supplies; nothing
//! is started, and nothing here reads a file.
//!
//! A cell of class FIFO is held to its budget by a real-time group; its tasks are tested under fixed priorities inside
//! the kernel's supply of that budget, as measured by `timecell bench supply` or by a model of the kernel's tick,
//! behind the cells of higher priority on its cpu. Threads of SCHED_DEADLINE are tested together by earliest deadline
//! first: those of one cpu where the kernel can confine them to it, which is exact, else those of all cells at once.
//! Without an enforcer the tasks of all cells of a cpu are tested together, and none is protected from another.

mod advice;
mod ample;
mod asked;
mod bands;
mod best_effort;
mod choice;
mod cpu;
mod eased;
mod facts;
mod fixes;
mod frames;
mod held;
mod keeper;
mod memory;
mod neighbour;
mod outcome;
mod outside;
mod partition;
mod place;
mod quotas;
mod refusal;
mod remarks;
mod roaming;
mod search;
mod servers;
mod small;
mod supervisor;
mod supplied;
#[cfg(test)]
mod tests;

pub use choice::{Choice, Offer, mechanism_of};
pub use facts::{Facts, KeptCpu, RtRoom, RtShare, ServerRoom};
pub use fixes::{Edit, Fix, Fixes, find_fixes};
pub use frames::{CpuFrames, FrameWindow, frames};
pub use held::{Room, room_for};
pub use memory::{HeldMemory, MachineMemory, MemoryShare};
pub(crate) use neighbour::HELD;
pub use neighbour::{HeldCell, HeldTask, Hold, Neighbour};
pub use outcome::{Admission, CpuLoad, Grant, Late, Outcome, Refused, TaskBound};
pub use outside::Unaccounted;
pub use supervisor::SupervisorGrant;
pub use supplied::{Basis, Exactness};

use analysis::linux::Held;
use analysis::{Ns, Task};
use freezer::Reservation;
pub use freezer::process::HIGHEST_HELD;
use model::Enforcer;
use model::mission::{CellClass, Mission, Place};
use record::supply::MeasuredSupply;
use text::units::exact;

use advice::Advice;
use ample::Searched;
use asked::Asked;
use choice::Price;
use cpu::{Bound, Candidate, Unfit};
use partition::{is_apart, roams};

/// Decides about every cell of a mission.
///
/// `measured` are supplies that `timecell bench supply` measured, of this machine or others, which do not count;
/// `latency_ns` is how late the kernel may wake a task. Sufficient, not necessary: an admitted cell holds by the analyses
/// named in its grant, a refused one may still work.
pub fn admit(
    mission: &Mission,
    facts: &Facts,
    measured: &[MeasuredSupply],
    latency_ns: Ns,
) -> Admission {
    let facts = facts.reacting(measured);
    let facts = facts.beside_partitions(mission);
    let facts = facts.as_ref();
    let (mut admission, usual) = chosen(mission, facts, measured, latency_ns);
    if let Some(refusal) = (admission.supervisor.refusal()).filter(|_| !admission.is_admitted()) {
        let alone = |assumed: bool| {
            let none = SupervisorGrant::none(None);
            let (alone, _) = ample::cheapest(mission, assumed, &|searched| {
                decide(
                    mission,
                    facts,
                    measured,
                    latency_ns,
                    none.clone(),
                    usual,
                    searched,
                )
            });
            alone.is_admitted()
        };
        if alone(false) || (ample::may_be_assumed(mission) && alone(true)) {
            admission.refusals.push(refusal);
        }
    }
    admission
}

/// The same, but where there is room for the cells alone and not for the supervisor beside them, that is not said: to find it out
/// is to decide twice.
pub(crate) fn decision(
    mission: &Mission,
    facts: &Facts,
    measured: &[MeasuredSupply],
    latency_ns: Ns,
) -> Admission {
    chosen(mission, &facts.reacting(measured), measured, latency_ns).0
}

/// The same with the enforcer of the cells that leave it to timecell.
fn chosen(
    mission: &Mission,
    facts: &Facts,
    measured: &[MeasuredSupply],
    latency_ns: Ns,
) -> (Admission, Enforcer) {
    choice::choose(mission, facts, &|usual| {
        let with = |facts: &Facts| {
            eased::decide(mission, facts, &|own, assumed| {
                ample::cheapest(mission, assumed, &|searched| {
                    let own = own.clone();
                    decide(mission, facts, measured, latency_ns, own, usual, searched)
                })
            })
        };
        let Some(undivided) = partition::none(mission, facts) else {
            return with(facts);
        };
        // A mission that asks for neither the class nor cpus takes no cpu from the rest of the machine where that is not needed.
        // And more threads than fit on cpus of their own may fit on all of them.
        let [first, other] = match partition::is_meant(mission) {
            true => [facts, &undivided],
            false => [&undivided, facts],
        };
        let decided = with(first);
        if decided.0.is_admitted() || usual_is_none_of_it(mission, usual) {
            return decided;
        }
        let otherwise = with(other);
        match otherwise.0.is_admitted() {
            true => otherwise,
            false => decided,
        }
    })
}

/// Whether no cell has threads of SCHED_DEADLINE where this holds those that leave it to timecell.
fn usual_is_none_of_it(mission: &Mission, usual: Enforcer) -> bool {
    usual != Enforcer::Deadline && !partition::is_meant(mission)
}

/// Decides about every cell beside a supervisor that gets this for itself, those held by `usual` that leave it to timecell; and
/// their total reservation. Where the budget is not said of cells in which nothing runs but their tasks, ample ones are searched, too, if any
/// are wanted.
fn decide(
    mission: &Mission,
    facts: &Facts,
    measured: &[MeasuredSupply],
    latency_ns: Ns,
    mut supervisor: SupervisorGrant,
    usual: Enforcer,
    searched: Searched<'_>,
) -> (Admission, Price) {
    let mut notes: Vec<String> = supervisor.note().into_iter().collect();
    let mut asked: Vec<Asked> = (0..mission.cells.len())
        .filter(|&at| mission.cells[at].is_real_time())
        .map(|at| Asked::of(mission, at, facts, latency_ns, usual, searched.assumed))
        .collect();
    let mut others = neighbour::all(facts, mission.cells.len());
    others.extend(supervisor.asked().map(|own| (own, None)));
    // Of the supervisors, those that a cell has above it where it may go: on one of these cpus, or, where one is sought that has no room beside
    // a supervisor, on all.
    let seeks_free = supervisor.is_kept_off() || searched.assumed;
    let exact = |cell: &Asked| -> Vec<Held> {
        let may = [&cell.cpus, &mission.cpus, &facts.cpus];
        let may: &[u32] =
            (may.into_iter().find(|cpus| !cpus.is_empty())).map_or(&[], Vec::as_slice);
        let on_all = seeks_free && cell.cpus.is_empty();
        (others.iter().map(|(other, _)| other))
            .filter(|other| other.is_supervisor)
            .filter(|other| match on_all {
                true => may.iter().all(|cpu| other.cpus.contains(cpu)),
                false => may.iter().any(|cpu| other.cpus.contains(cpu)),
            })
            .filter_map(|other| other.reservation)
            .map(|(budget, period)| Held::exactly(budget, period))
            .collect()
    };
    let taken: Vec<_> = others.iter().filter_map(|(other, _)| other.band).collect();
    let without_band = bands::give(&mut asked, &taken);
    let mut outcomes: Vec<Option<Outcome>> = vec![None; mission.cells.len()];
    let mut refuse = |at: usize, refused: Refused| {
        outcomes[at].get_or_insert(Outcome::Refused(refused));
    };
    for at in without_band {
        refuse(
            asked[at].at,
            refusal::plain(&asked[at], "too few priorities are left", Vec::new()),
        );
    }
    for cell in &asked {
        if let Some(band) = cell.band.filter(|band| band.count() < cell.names.len()) {
            let why = format!(
                "it has {} tasks for the {} of its `priorities`, and the order among equals is not analysed",
                cell.names.len(),
                match band.count() {
                    1 => "one priority".to_owned(),
                    count => format!("{count} priorities"),
                }
            );
            let advice = Advice::of(
                "priorities",
                "give it as many as it has tasks, or leave them out",
            );
            refuse(cell.at, refusal::plain(cell, &why, vec![advice]));
        }
        if let Err(why) = facts.has(cell.enforcer) {
            let advice = Advice::of("enforcer", "choose another with `enforcer` or `class`");
            refuse(
                cell.at,
                refusal::plain(
                    cell,
                    &format!(
                        "{} cannot hold it here: {why} (see `timecell doctor`)",
                        cell.enforcer.name()
                    ),
                    vec![advice],
                ),
            );
        }
    }
    for cell in &asked {
        if let Some(room) = facts.room(cell.enforcer)
            && room.free_us == 0
        {
            let auto = match mission.enforcer {
                Some(_) => "",
                None => ", the best that this kernel has,",
            };
            let takers = room.takers().unwrap_or_default();
            let name = cell.enforcer.name();
            let why = format!("{name}{auto} has no runtime left for it: {takers}");
            let ends = room.taken.iter().map(|share| Advice::end(&share.who));
            refuse(cell.at, refusal::plain(cell, &why, ends.collect()));
        }
    }
    for cell in asked
        .iter()
        .filter(|cell| cell.enforcer == Enforcer::Freezer)
    {
        if let Some(band) = cell.band.filter(|band| band.highest > HIGHEST_HELD) {
            let why = format!(
                "it has the priority {}, but the freezer's own threads must run above it: at most {} is allowed",
                band.highest, HIGHEST_HELD
            );
            let advice = Advice::of("priorities", "lower its priorities, or leave them out");
            refuse(cell.at, refusal::plain(cell, &why, vec![advice]));
        }
    }
    for cell in asked.iter().filter(|cell| roams(cell, facts)) {
        let confined = [&cell.cpus, &mission.cpus]
            .into_iter()
            .any(|cpus| !cpus.is_empty() && facts.cpus.iter().any(|cpu| !cpus.contains(cpu)));
        if let (true, Err(why)) = (confined, &facts.deadline_on_one_cpu) {
            let why = format!(
                "threads of SCHED_DEADLINE cannot be confined to some of cpus {} here: {why}",
                cpu_list(&facts.cpus)
            );
            let advice = Advice::of("cpus", "leave `cpus` out, so that they run on any cpu");
            refuse(cell.at, refusal::plain(cell, &why, vec![advice]));
        }
    }
    for cell in &asked {
        if let Some(why) = partition::refuses(cell, facts) {
            let advice = Advice::of("cpus", "choose other cpus");
            refuse(cell.at, refusal::plain(cell, &why, vec![advice]));
        }
        if let Some((who, why)) = measured_on(cell, facts) {
            let mut advice = vec![Advice::end(&who)];
            if !roams(cell, facts) {
                advice.push(Advice::of("cpus", "choose other cpus"));
            }
            refuse(cell.at, refusal::plain(cell, &why, advice));
        }
    }
    // Those of others first: they are where they are.
    let mut candidates: Vec<Candidate<'_>> = (others.iter())
        .map(|(asked, budget)| Candidate {
            asked,
            budget: *budget,
        })
        .collect();
    for cell in &asked {
        if outcomes[cell.at].is_some() {
            continue;
        }
        let share = share(cell.enforcer, facts);
        match budget(cell, share, &exact(cell), searched, facts, measured) {
            Ok(budget) => candidates.push(Candidate {
                asked: cell,
                budget,
            }),
            Err(refused) => outcomes[cell.at] = Some(Outcome::Refused(*refused)),
        }
    }
    searched.note_refused(outcomes.iter().map(Option::is_some));
    let cpus = if mission.cpus.is_empty() {
        &facts.cpus
    } else {
        &mission.cpus
    };
    let free: Vec<u32> = (cpus.iter().copied())
        .filter(|cpu| neighbour::measuring(facts, *cpu).is_none())
        .collect();
    let supplies = facts.beside.iter().flat_map(|other| &other.supplies);
    let all_measured: Vec<MeasuredSupply> = measured.iter().chain(supplies).cloned().collect();
    let placed = place::place(&candidates, &free, facts, &all_measured);
    let mut refusals = Vec::new();
    let mut held = Vec::new();
    let mut own = None;
    for (candidate, place) in candidates.iter().zip(&placed.cells) {
        if let (usize::MAX, Ok((cpus, bound))) = (candidate.asked.at, place) {
            own = Some(HeldCell::of(candidate, cpus));
            supervisor.cpus.clone_from(cpus);
            supervisor.response_ns = bound.responses.first().copied().flatten();
        }
        if candidate.asked.holder.is_some() {
            // Its guarantee stands against later missions.
            if let Err(unfit) = place {
                let called = candidate.asked.called();
                refusals.push(format!(
                    "this mission would break the guarantee of {called}: {}",
                    unfit.why
                ));
            }
            continue;
        }
        if let Ok((cpus, _)) = place {
            held.push(HeldCell::of(candidate, cpus));
        }
        outcomes[candidate.asked.at] = Some(match place {
            Ok((cpus, bound)) => Outcome::Granted(grant(candidate, cpus.clone(), bound)),
            Err(unfit) => Outcome::Refused(refusal::unfit(candidate, unfit, &candidates)),
        });
    }
    held.extend(own);
    refusals.extend(kernel(&candidates, &placed.cells, facts));
    let partitions = partition::all(&candidates, &placed.cells, facts);
    partition::enter(&mut outcomes, &partitions);
    refusals.extend(partition::bound_there(&partitions, &facts.outside));
    notes.extend(partition::notes(&partitions));
    let memory = memory::share(mission, facts, &mut refusals, &mut notes);
    let own: Vec<Candidate<'_>> = (candidates.iter())
        .filter(|cell| cell.asked.holder.is_none())
        .cloned()
        .collect();
    remarks::of(mission, &own, facts, &mut notes);
    notes.extend(keeper::note(&candidates, facts));
    notes.extend(small::note(&own));
    let grants: Vec<&Grant> = (outcomes.iter().flatten())
        .filter_map(|outcome| match outcome {
            Outcome::Granted(grant) => Some(grant),
            _ => None,
        })
        .collect();
    let unaccounted = outside::beside(facts, &grants);
    notes.extend(outside::notes(&unaccounted));
    let price = Price::of(&own);
    // Each cpu was checked with its frame, so that it has one.
    let frames = (facts.evl_tp.as_ref().ok())
        .and_then(|most| frames::frames(grants.iter().copied(), *most).ok())
        .unwrap_or_default();
    let admission = Admission {
        mission: mission.name.clone(),
        beside: facts.beside.iter().map(|other| other.who.clone()).collect(),
        unaccounted,
        kernel: facts.kernel.clone(),
        latency_ns,
        supervisor,
        held,
        partition_cpus: mission.partition_cpus(),
        cells: (outcomes.into_iter().zip(&mission.cells))
            .enumerate()
            .map(|(at, (outcome, cell))| {
                outcome
                    .unwrap_or_else(|| best_effort::outcome(mission, at, cell, facts, &partitions))
            })
            .collect(),
        cpus: placed.loads(&candidates, facts),
        partitions,
        frames,
        memory,
        choice: None,
        refusals,
        notes,
    };
    (admission, price)
}

/// The neighbour that measures where a cell would be placed, and why it cannot be there; `None`: it can, or asks for no cpu.
fn measured_on(cell: &Asked, facts: &Facts) -> Option<(String, String)> {
    let asks: &[u32] = match roams(cell, facts) {
        true => &facts.cpus,
        false => &cell.cpus,
    };
    let met = |cpu: &u32| neighbour::measuring(facts, *cpu).map(|who| (*cpu, who.who.clone()));
    if let Some((cpu, who)) = asks.iter().find_map(met) {
        let why = format!("{who} is measuring on cpu {cpu}");
        return Some((who, why));
    }
    let everywhere = asks.is_empty() && facts.cpus.iter().all(|cpu| met(cpu).is_some());
    let who = facts.cpus.first().and_then(met)?.1;
    let why = format!("{who} is measuring on every cpu");
    everywhere.then_some((who, why))
}

/// The share of a cpu that a cell's budget may take: of groups that the kernel admits together, no more than they have left.
fn share(enforcer: Enforcer, facts: &Facts) -> (Ns, Ns) {
    match facts.room(enforcer) {
        Some(room) => (room.free_us, 1_000_000),
        None => (95, 100),
    }
}

/// Budget and period of a cell: those of the file, or the least that its tasks need.
fn budget(
    cell: &Asked,
    share: (Ns, Ns),
    exact: &[Held],
    searched: Searched<'_>,
    facts: &Facts,
    measured: &[MeasuredSupply],
) -> Result<Option<(Ns, Ns)>, Box<Refused>> {
    if let (Enforcer::Freezer, Some((budget, period))) = (cell.enforcer, cell.reservation)
        && let Err(why) = Reservation::of_unsigned(budget, period)
    {
        let advice = Advice::of("reservation", "give one that it can hold");
        return Err(Box::new(refusal::plain(
            cell,
            &why.to_string(),
            vec![advice],
        )));
    }
    if cell.cpus.len() > 1 && cell.enforcer == Enforcer::Freezer {
        return Err(Box::new(refusal::plain(
            cell,
            "the freezer stops a whole cell, so it holds a cell to a budget on one cpu only",
            vec![Advice::of("cpus", "give it one cpu")],
        )));
    }
    let one_thread = cell.reservation.is_some() || cell.work.tasks.len() == 1;
    if cell.cpus.len() > 1 && one_thread && is_apart(cell, facts) {
        return Err(Box::new(refusal::plain(
            cell,
            "it has one thread of SCHED_DEADLINE, which needs one cpu only",
            vec![Advice::of("cpus", "give it one cpu")],
        )));
    }
    // Threads of SCHED_DEADLINE are, by global earliest deadline first.
    if cell.cpus.len() > 1 && !cell.work.tasks.is_empty() && !is_apart(cell, facts) {
        let advice = Advice::of("cpus", "give it one cpu");
        return Err(Box::new(refusal::plain(
            cell,
            "tasks of a cell on several cpus are not analysed",
            vec![advice],
        )));
    }
    let threads = cell.work.tasks.len() > 1 && cell.class == CellClass::Deadline;
    match cell.reservation {
        Some(_) if threads => {
            let why = "SCHED_DEADLINE holds each thread to its own runtime, not several threads to one reservation";
            Err(Box::new(refusal::plain(
                cell,
                why,
                vec![Advice::of("budget", "leave the reservation out")],
            )))
        }
        Some(_) if cell.enforcer == Enforcer::CpusetOnly => Ok(None),
        Some(reservation) => Ok(Some(reservation)),
        None if cell.class == CellClass::Deadline || cell.enforcer == Enforcer::CpusetOnly => {
            Ok(None)
        }
        None => match search::of_cell(cell, share, exact, searched, facts, measured) {
            Some(found) => Ok(Some((found.budget_ns, found.period_ns))),
            None => Err(Box::new(refusal::no_budget(
                cell, share, exact, facts, measured,
            ))),
        },
    }
}

fn grant(candidate: &Candidate<'_>, cpus: Vec<u32>, bound: &Bound) -> Grant {
    let asked = candidate.asked;
    let threads = candidate.threads();
    let priorities = asked
        .band
        .map(|band| bands::of_tasks(band, asked.declared.as_deref(), asked.names.len()));
    let mut tasks: Vec<(usize, TaskBound)> = (asked.order.iter().enumerate())
        .map(|(place, &at)| {
            let task: &Task = &asked.work.tasks[place];
            let bound = TaskBound {
                task: asked.names[place].clone(),
                response_ns: bound.responses.get(place).copied().flatten(),
                deadline_ns: task.deadline,
                priority: priorities.as_ref().map(|all| all[place]),
                runtime_ns: threads.get(place).map(|thread| thread.runtime),
            };
            (at, bound)
        })
        .collect();
    tasks.sort_by_key(|(at, _)| *at);
    Grant {
        cell: asked.name.clone(),
        enforcer: asked.enforcer,
        cpus,
        partition: None,
        budget_ns: candidate.budget.map(|(budget, _)| budget),
        period_ns: candidate.budget.map(|(_, period)| period),
        band: asked.band.filter(|_| asked.class == CellClass::Fifo),
        round_robin: asked.round_robin,
        basis: bound.basis.clone(),
        rate: bound.rate.0 as f64 / bound.rate.1.max(1) as f64,
        delay_ns: bound.delay_ns,
        postponed_ns: bound.postponed_ns,
        tasks: tasks.into_iter().map(|(_, bound)| bound).collect(),
    }
}

/// Whether the kernel's own arithmetic takes all budgets together.
fn kernel(
    candidates: &[Candidate<'_>],
    placed: &[Result<(Vec<u32>, Bound), Unfit>],
    facts: &Facts,
) -> Vec<String> {
    let mut refusals = Vec::new();
    for enforcer in [Enforcer::RtCgroup, Enforcer::Hcbs] {
        let Some(room) = facts.room(enforcer) else {
            continue;
        };
        let sum = (candidates.iter())
            // Runtime held by others is not free any more.
            .filter(|cell| cell.asked.holder.is_none())
            .filter(|cell| cell.asked.enforcer == enforcer)
            .filter_map(|cell| cell.budget)
            .map(|(budget, period)| {
                let scaled = (u128::from(budget) * 1_000_000).div_ceil(u128::from(period.max(1)));
                u64::try_from(scaled).unwrap_or(u64::MAX)
            })
            .fold(0u64, u64::saturating_add);
        if sum > room.free_us {
            let takers = room
                .takers()
                .map_or(String::new(), |who| format!(" ({who})"));
            refusals.push(format!(
                "the cells' real-time groups together need {} of every second, whatever their cpus, but {} are \
                 free{takers}: the kernel counts a group's budget on every cpu; lower budgets by {} a second, or raise \
                 kernel.sched_rt_runtime_us",
                exact(sum * 1_000),
                exact(room.free_us * 1_000),
                exact((sum - room.free_us) * 1_000)
            ));
        }
    }
    let domain = facts.deadline.as_ref().ok();
    let domains = domain.map(|domain| partition::domains(candidates, placed, domain, facts));
    let domains = domains.unwrap_or_default();
    refusals.extend(servers::refused(candidates, &domains, facts));
    for (domain, threads, others) in domains {
        if let Err(refusal) = domain.admits(&threads) {
            let with = match others.as_slice() {
                [] => String::new(),
                others => format!(", with {}", others.join(", ")),
            };
            refusals.push(format!(
                "the kernel would refuse the threads of SCHED_DEADLINE{with}: {refusal}"
            ));
        }
    }
    refusals
}

fn cpu_list(cpus: &[u32]) -> String {
    let names: Vec<String> = cpus.iter().map(ToString::to_string).collect();
    names.join(", ")
}

/// The place of a cell in the mission file.
fn place_of(cell: &Asked) -> Place {
    Place::cell(cell.at)
}
