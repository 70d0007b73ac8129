//! Whether a cell fits on a cpu beside the cells that are there.

use analysis::inside::{Policy, fixed_priority, test};
use analysis::linux::{
    DeadlineParams, Held, most_run, postponement, rt_most_charged, thread_of, threads_hold,
};
use analysis::reservation::Dedicated;
use analysis::{Ns, Supply, Task, Verdict, Witness};
use model::Enforcer;
use model::mission::CellClass;
use record::supply::MeasuredSupply;
use text::units::exact;

use super::asked::Asked;
use super::facts::LimitedBy;
use super::supplied::{Supplied, held};
use super::{Basis, Facts, ample, frames, keeper, partition, quotas, roaming, servers, supervisor};

/// The grant to a cell before admission knows whether it fits.
#[derive(Debug, Clone)]
pub(super) struct Candidate<'a> {
    pub(super) asked: &'a Asked,
    /// Budget and period, ns; `None` under SCHED_DEADLINE with a runtime for each task, and where nothing is enforced.
    pub(super) budget: Option<(Ns, Ns)>,
}

/// The bound of a cell beside the others of its cpu.
#[derive(Debug, Clone)]
pub(super) struct Bound {
    pub(super) basis: Basis,
    pub(super) rate: (Ns, Ns),
    pub(super) delay_ns: Option<Ns>,
    pub(super) postponed_ns: Ns,
    /// Of each task in order of urgency.
    pub(super) responses: Vec<Option<Ns>>,
}

/// Why one does not fit.
#[derive(Debug, Clone)]
pub(super) struct Unfit {
    /// Position of the cell among the candidates.
    pub(super) of: usize,
    pub(super) why: String,
    /// The task, in order of urgency, and its witness.
    pub(super) witness: Option<(usize, Witness)>,
}

impl Candidate<'_> {
    /// The threads of SCHED_DEADLINE that it needs, one for each task.
    pub(super) fn threads(&self) -> Vec<DeadlineParams> {
        if self.asked.class != CellClass::Deadline {
            return Vec::new();
        }
        let tasks = &self.asked.work.tasks;
        match self.budget {
            Some((budget, period)) if tasks.len() <= 1 => vec![DeadlineParams::new(budget, period)],
            _ => tasks.iter().map(thread_of).collect(),
        }
    }

    /// Share of a cpu that it holds, as (part, whole) summands.
    pub(super) fn shares(&self) -> Vec<(Ns, Ns)> {
        match (self.asked.class, self.budget) {
            (CellClass::Deadline, _) => (self.threads().iter())
                .map(|thread| (thread.runtime, thread.effective_period()))
                .collect(),
            (_, Some(budget)) => vec![budget],
            (_, None) if self.asked.work.tasks.is_empty() => {
                self.asked.reservation.into_iter().collect()
            }
            (_, None) => (self.asked.work.tasks.iter())
                .map(|task| (task.wcet, task.period))
                .collect(),
        }
    }

    pub(super) fn bandwidth(&self) -> f64 {
        self.shares()
            .iter()
            .map(|&(part, whole)| part as f64 / whole.max(1) as f64)
            .sum()
    }
}

/// Whether all deadlines of the cells on one cpu hold, with the bounds of their response times; `cells` in any order, the answers
/// in the same.
pub(super) fn check(
    cells: &[Candidate<'_>],
    facts: &Facts,
    measured: &[MeasuredSupply],
) -> Result<Vec<Bound>, Unfit> {
    let mut bounds: Vec<Option<Bound>> = vec![None; cells.len()];
    let mut above: Vec<Held> = Vec::new();
    apart(cells)?;
    servers::alone(cells)?;
    quotas::alone(cells)?;
    unmixed(cells)?;
    partition::shared(cells, facts)?;
    deadline(cells, facts, &mut bounds, &mut above)?;
    servers::check(cells, facts, measured, &mut bounds, &mut above)?;
    quotas::check(cells, facts, measured, &mut bounds, &mut above)?;
    frames::check(cells, facts, &mut bounds, &mut above)?;
    let supervisors = supervisor::check(cells, &above)?;
    let keeper = keeper::above(cells);
    let mut order: Vec<usize> = (0..cells.len())
        .filter(|&at| cells[at].asked.class == CellClass::Fifo && !cells[at].asked.is_supervisor)
        .filter(|&at| bounds[at].is_none())
        .collect();
    order.sort_by_key(|&at| std::cmp::Reverse(cells[at].asked.band.map(|band| band.highest)));
    let mut tasks_above: Vec<Task> = (above.iter())
        .map(|held| Task::new(held.budget, held.period))
        .collect();
    for own in (supervisors.iter().map(|(_, _, held)| held)).chain(&keeper) {
        tasks_above.push(Task::new(own.budget, own.period).jittered(own.period));
        above.push(*own);
    }
    for (at, bound, _) in supervisors {
        bounds[at] = Some(bound);
    }
    for at in order {
        let cell = &cells[at];
        let enforced =
            (cell.budget).and_then(|(budget, period)| held(cell.asked.enforcer, budget, period));
        let bound = match enforced {
            Some(budget) => {
                let own = Held {
                    budget: budget.budget_ns,
                    period: budget.period_ns,
                    overdraw: facts.overdraw_ns(budget.enforcer),
                };
                let ample = || ample::bound(cell, own, &above, facts);
                let supplied = || supplied_below(at, cell, own, &above, facts, measured);
                // An assumption that the file states is used first; an unstated one only where nothing else does.
                let bound = match cell.asked.is_assumed {
                    false => ample().map_or_else(supplied, Ok)?,
                    true => supplied().or_else(|unfit| ample().ok_or(unfit))?,
                };
                above.push(own);
                tasks_above.push(Task::new(own.budget, own.period).jittered(own.period));
                bound
            }
            None => {
                let (bound, own) = unprotected(at, cell, &tasks_above)?;
                tasks_above.extend(own);
                // Nothing stops it, so nobody below can be held to more than it claims to need.
                above.extend(cell.shares().iter().map(|&(budget, period)| Held {
                    budget,
                    period,
                    overdraw: facts.tick_ns(),
                }));
                bound
            }
        };
        bounds[at] = Some(bound);
    }
    // Ordinary threads come last: a budget is the most that they get. The thread that holds them comes first, and is in
    // `keeper`.
    for (bound, cell) in bounds.iter_mut().zip(cells) {
        if cell.asked.class == CellClass::Other {
            *bound = Some(Bound {
                basis: Basis::WholeCpu,
                rate: cell.budget.unwrap_or((0, 1)),
                delay_ns: None,
                postponed_ns: 0,
                responses: Vec::new(),
            });
        }
    }
    let bounds: Vec<Bound> = bounds.into_iter().flatten().collect();
    within_limit(cells, &bounds, &keeper, facts)?;
    Ok(bounds)
}

/// Whether no cell has the priority of another owner's cell: of two with the same priority, either may run first.
fn apart(cells: &[Candidate<'_>]) -> Result<(), Unfit> {
    let fifo = |cell: &Candidate<'_>| {
        cell.asked
            .band
            .filter(|_| cell.asked.class == CellClass::Fifo)
    };
    for (of, cell) in cells.iter().enumerate() {
        let Some(band) = fifo(cell).filter(|_| cell.asked.holder.is_none()) else {
            continue;
        };
        let other = (cells.iter())
            .filter(|other| other.asked.holder.is_some())
            .find(|other| fifo(other).is_some_and(|taken| taken.overlaps(band)));
        if let Some(other) = other {
            let taken = fifo(other).map_or(String::new(), |taken| taken.to_string());
            return Err(Unfit {
                of,
                why: format!(
                    "{} already has the priority {taken} that this cell needs on its cpu",
                    other.asked.called()
                ),
                witness: None,
            });
        }
    }
    Ok(())
}

/// Whether no cell of class FIFO that is held to a budget is beside one that nothing holds: one that spins takes all that the
/// kernel lets real-time threads have, and then the kernel stops them all, regardless of priorities and budgets, those that hold cells
/// as well. Threads of SCHED_DEADLINE it does not stop so.
fn unmixed(cells: &[Candidate<'_>]) -> Result<(), Unfit> {
    let fifo = |cell: &Candidate<'_>| {
        (cell.asked.class == CellClass::Fifo && !cell.asked.is_supervisor)
            .then_some(cell.asked.enforcer)
    };
    let of = |is_held: bool| {
        let is = |enforcer: Enforcer| enforcer.has_budgets() == is_held;
        cells.iter().rposition(|cell| fifo(cell).is_some_and(is))
    };
    let (Some(held), Some(free)) = (of(true), of(false)) else {
        return Ok(());
    };
    let by = cells[held].asked.enforcer.name();
    // The first one was already granted its place.
    let why = match held > free {
        true => format!(
            "{}, on the same cpu, has no enforced budget (`cpuset-only`): if it spins, the kernel throttles all real-time \
             threads of the cpu, this cell's too; give this cell another cpu, or both the enforcer `{by}`",
            cells[free].asked.called()
        ),
        false => format!(
            "`{by}` holds {} on its cpu, but this cell has no enforced budget (`cpuset-only`): if it spins, the kernel \
             throttles all real-time threads of the cpu, the held ones too; give it another cpu, or the enforcer `{by}`",
            cells[held].asked.called()
        ),
    };
    Err(Unfit {
        of: held.max(free),
        why,
        witness: None,
    })
}

/// Whether all real-time threads of one cpu stay within the kernel's limit for all of them, though those that are held may
/// overdraw their budgets: beyond that it stops every thread of class FIFO, or puts ordinary ones before them.
fn within_limit(
    cells: &[Candidate<'_>],
    bounds: &[Bound],
    keeper: &[Held],
    facts: &Facts,
) -> Result<(), Unfit> {
    let own = |cell: &&Candidate<'_>| !cell.asked.is_supervisor;
    let Some(of) = cells.iter().rposition(|cell| own(&cell)) else {
        return Ok(());
    };
    // Threads of SCHED_DEADLINE count, and are not stopped.
    if !(cells.iter().filter(own)).any(|cell| cell.asked.class == CellClass::Fifo) {
        return Ok(());
    }
    for limit in facts.limits() {
        let all = (cells.iter().zip(bounds))
            .map(|(cell, bound)| most_charged(cell, bound, facts, limit.period_ns))
            .chain(
                (keeper.iter())
                    .map(|own| rt_most_charged(own.budget, own.period, 0, limit.period_ns)),
            )
            .fold(0, Ns::saturating_add);
        if all > limit.runtime_ns {
            let (then, fix) = match limit.by {
                LimitedBy::Throttling => (
                    "the kernel throttles all real-time threads",
                    ", or raise kernel.sched_rt_runtime_us",
                ),
                LimitedBy::FairServer => (
                    "the kernel's fair server runs before all real-time threads",
                    "",
                ),
            };
            return Err(Unfit {
                of,
                why: format!(
                    "the cells on its cpu can be charged {} per {}, with saved-up budgets and overdrafts, but \
                     {then} after {}: lower budgets or execution times, or shorten their periods{fix}",
                    exact(all),
                    exact(limit.period_ns),
                    exact(limit.runtime_ns)
                ),
                witness: None,
            });
        }
    }
    Ok(())
}

/// The most that a cell is charged on one cpu in any window if it is held to its grant, or keeps to it by itself.
fn most_charged(cell: &Candidate<'_>, bound: &Bound, facts: &Facts, window: Ns) -> Ns {
    let overdraw = facts.overdraw_ns(cell.asked.enforcer);
    let sum = |parts: &mut dyn Iterator<Item = Ns>| parts.fold(0, Ns::saturating_add);
    let tasks = cell.asked.work.tasks.as_slice();
    match (cell.asked.class, cell.budget, cell.asked.reservation) {
        // Ordinary threads, and those out of band, are charged nothing of the real-time limit.
        (CellClass::Other, _, _) => 0,
        _ if cell.asked.enforcer.is_out_of_band() => 0,
        (CellClass::Deadline, _, _) => sum(&mut (cell.threads().iter())
            .map(|own| rt_most_charged(own.runtime, own.effective_period(), overdraw, window))),
        (_, Some((budget, period)), _) => rt_most_charged(budget, period, overdraw, window),
        // No overdraw is added to a load that nothing stops.
        (_, None, Some((budget, period))) if tasks.is_empty() && cell.asked.is_supervisor => {
            rt_most_charged(budget, period, 0, window)
        }
        (_, None, Some((budget, period))) if tasks.is_empty() => {
            most_run(&Task::new(budget, period), period, window)
        }
        (_, None, _) => {
            let responses = bound
                .responses
                .iter()
                .copied()
                .chain(std::iter::repeat(None));
            sum(&mut (tasks.iter().zip(responses))
                .map(|(task, response)| most_run(task, response.unwrap_or(task.deadline), window)))
        }
    }
}

/// SCHED_DEADLINE runs above everything else on the cpu, by earliest deadline first.
fn deadline(
    cells: &[Candidate<'_>],
    facts: &Facts,
    bounds: &mut [Option<Bound>],
    above: &mut Vec<Held>,
) -> Result<(), Unfit> {
    let own = |at: &usize| cells[*at].asked.class == CellClass::Deadline;
    let places: Vec<usize> = (0..cells.len()).filter(own).collect();
    let threads: Vec<(usize, DeadlineParams)> = (places.iter())
        .flat_map(|&at| {
            cells[at]
                .threads()
                .into_iter()
                .map(move |thread| (at, thread))
        })
        .collect();
    let tick = facts.machine.runtime_tick_ns();
    let span = match facts.deadline_on_one_cpu {
        Ok(()) => partition::span(cells, facts),
        Err(_) => facts.cpus.len(),
    };
    let params: Vec<DeadlineParams> = threads.iter().map(|(_, thread)| *thread).collect();
    let verdict = match (span, &facts.deadline_on_one_cpu) {
        (1, Ok(())) => threads_hold(&params, tick).verdict,
        _ => roaming::test(&params, span, tick),
    };
    let roams = places
        .iter()
        .any(|&at| partition::roams(cells[at].asked, facts));
    if let Verdict::Schedulable = verdict {
    } else {
        let (of, why, witness) = match verdict {
            Verdict::Unschedulable(witness) => {
                let of = threads.get(witness.task).map_or(0, |(at, _)| *at);
                let place = threads[..witness.task.min(threads.len())]
                    .iter()
                    .filter(|(at, _)| *at == of)
                    .count();
                let why = match (roams, span) {
                    (true, _) => {
                        "the threads of SCHED_DEADLINE, which run on any cpu and may each overrun by a tick, are not shown to \
                         meet their deadlines together"
                    }
                    (false, 2..) => {
                        "the threads of SCHED_DEADLINE in its cpuset partition, which may each overrun by a tick, are not shown \
                         to meet their deadlines together"
                    }
                    _ => {
                        "the threads of SCHED_DEADLINE on its cpu, which may each overrun by a tick, demand more than there is"
                    }
                };
                (of, why.to_owned(), Some((place, witness)))
            }
            Verdict::Undecided(reason) => (
                places.first().copied().unwrap_or(0),
                reason.to_string(),
                None,
            ),
            Verdict::Schedulable => return Ok(()),
        };
        return Err(Unfit { of, why, witness });
    }
    for at in places {
        let cell = &cells[at];
        let responses = match (cell.budget, cell.asked.work.tasks.as_slice()) {
            (Some((budget, period)), [task]) => {
                let held = held(Enforcer::Deadline, budget, period);
                let supply = held
                    .ok_or_else(String::new)
                    .and_then(|held| super::supplied::model(&held, facts));
                let supply = supply.map_err(|why| Unfit {
                    of: at,
                    why,
                    witness: None,
                })?;
                let inside = test(&[*task], Policy::Edf, &supply);
                if let Verdict::Unschedulable(witness) = inside.verdict {
                    let why = "its runtime does not supply enough by the deadline".to_owned();
                    return Err(Unfit {
                        of: at,
                        why,
                        witness: Some((0, witness)),
                    });
                }
                inside.responses
            }
            // A job within its thread's runtime is done by the deadline: the EDF test above has just shown that.
            (_, tasks) => tasks.iter().map(|task| Some(task.deadline)).collect(),
        };
        let threads = cell.threads();
        let (part, whole) = threads
            .first()
            .map_or((1, 1), |first| (first.runtime, first.effective_period()));
        bounds[at] = Some(Bound {
            basis: Basis::Tick {
                unmeasured: match (roams, span) {
                    (true, _) => "threads of SCHED_DEADLINE run on any cpu and are admitted together by global earliest deadline first",
                    (false, 2..) => "threads of SCHED_DEADLINE run on any cpu of their partition and are admitted together by global earliest deadline first",
                    _ => "threads of SCHED_DEADLINE are admitted together by earliest deadline first",
                }
                .to_owned(),
            },
            rate: (part, whole),
            delay_ns: None,
            postponed_ns: 0,
            responses,
        });
        above.extend(threads.iter().map(|thread| Held {
            budget: thread.runtime,
            period: thread.effective_period(),
            overdraw: facts.tick_ns(),
        }));
    }
    Ok(())
}

/// A cell that is held to a budget below others on its cpu.
fn supplied_below(
    at: usize,
    cell: &Candidate<'_>,
    own: Held,
    above: &[Held],
    facts: &Facts,
    measured: &[MeasuredSupply],
) -> Result<Bound, Unfit> {
    let mut found = postponement(own, above)
        .map_err(|crowded| Unfit {
            of: at,
            why: format!(
                "with overruns, it and the cells above it on its cpu need {} per {} period: its budget, up to {} beyond that, and \
                 what comes before it",
                exact(crowded.demand),
                exact(crowded.period),
                exact(own.overdraw)
            ),
            witness: None,
        })
        .and_then(|behind| reserved(at, cell, own, behind, facts, measured));
    if let (Err(unfit), true) = (&mut found, cell.asked.only_tasks) {
        unfit
            .why
            .push_str(", and its budget is not proven to be ample");
    }
    found
}

/// A cell that is held to a budget, which comes up to `behind` ns late for the others on its cpu.
pub(super) fn reserved(
    at: usize,
    cell: &Candidate<'_>,
    own: Held,
    behind: Ns,
    facts: &Facts,
    measured: &[MeasuredSupply],
) -> Result<Bound, Unfit> {
    let unfit = |why: String, witness| Unfit {
        of: at,
        why,
        witness,
    };
    let budget = held(cell.asked.enforcer, own.budget, own.period)
        .ok_or_else(|| unfit("nothing enforces its budget".to_owned(), None))?;
    let work = &cell.asked.work;
    let supplied = Supplied::of(&budget, behind, work.longest(), facts, measured)
        .map_err(|why| unfit(why, None))?;
    within(at, cell, supplied, behind)
}

/// Whether a cell's tasks hold their deadlines inside this supply, of which `behind` ns are waiting for others.
pub(super) fn within(
    at: usize,
    cell: &Candidate<'_>,
    (supply, basis): (Supplied, Basis),
    behind: Ns,
) -> Result<Bound, Unfit> {
    let unfit = |why: String, witness| Unfit {
        of: at,
        why,
        witness,
    };
    let work = &cell.asked.work;
    let inside = test(&work.tasks, work.policy, &supply);
    match inside.verdict {
        Verdict::Schedulable => Ok(Bound {
            basis,
            rate: supply.rate(),
            delay_ns: supply.delay(),
            postponed_ns: behind,
            responses: inside.responses,
        }),
        Verdict::Unschedulable(witness) => {
            let why = "its budget does not supply enough by a deadline".to_owned();
            Err(unfit(why, Some((witness.task, witness))))
        }
        Verdict::Undecided(reason) => Err(unfit(reason.to_string(), None)),
    }
}

/// A cell that no budget protects and that none is protected from: its tasks below all that stand above.
fn unprotected(
    at: usize,
    cell: &Candidate<'_>,
    above: &[Task],
) -> Result<(Bound, Vec<Task>), Unfit> {
    let own: Vec<Task> = match (
        cell.asked.work.tasks.as_slice(),
        cell.budget.or(cell.asked.reservation),
    ) {
        ([], Some((budget, period))) => vec![Task::new(budget, period)],
        (tasks, _) => tasks.to_vec(),
    };
    let all: Vec<Task> = above.iter().chain(&own).copied().collect();
    let inside = fixed_priority(&all, &Dedicated);
    let late = (inside.responses.iter())
        .enumerate()
        .skip(above.len())
        .find(|(_, response)| response.is_none());
    if let Some((place, _)) = late {
        let witness = match inside.verdict {
            Verdict::Unschedulable(witness) if witness.task == place => {
                Some((place - above.len(), witness))
            }
            _ => None,
        };
        let why = "the cells above it on its cpu have no enforced budgets and leave it too little"
            .to_owned();
        return Err(Unfit {
            of: at,
            why,
            witness,
        });
    }
    let responses = match cell.asked.work.tasks.len() {
        0 => Vec::new(),
        _ => inside.responses[above.len()..].to_vec(),
    };
    let bound = Bound {
        basis: Basis::WholeCpu,
        rate: (1, 1),
        delay_ns: None,
        postponed_ns: 0,
        responses,
    };
    Ok((bound, own))
}
