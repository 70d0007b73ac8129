//! A trial of a scale study: many cells of one engine, made in parallel, released together by the barrier, watched over, removed in
//! parallel. A cell that does not start, or dies, is on record; the trial goes on with the others unless more fail than the study allows.

mod creation;
mod diagnosis;
mod growth;
mod guard;
mod headroom;
pub(crate) mod looks;
mod reserve;

use std::path::Path;
use std::sync::atomic::Ordering::Acquire;

use host::process;
use model::Scale;
use probe::control::State;
use probe::{Barrier, clock};
use record::crowd::{CrowdMemory, CrowdRecord, Waiting};
use record::trial::TrialRecord;

use crate::BenchError;
use crate::cells::parallel::in_parallel;
use crate::cells::{ARMING_NS, INTERRUPTED, verify};
use crate::context::{Outcome, Trial};
use crate::payload::{class, fifo};
use crate::salvage;
use crate::session::Progress;
use crate::trial_record::{begin, longest_loop_ns, note_go, note_leftovers};
use creation::{Crowd, lock};
use guard::{GuardLimits, InFront, Watchdog};

pub(crate) use growth::Growth;
pub use headroom::ahead;
pub(crate) use reserve::{Pot, requirement};

/// Real-time budget that a crowd leaves in every second, us.
pub(crate) const KEPT_US: u64 = 10_000;

/// Length of the window in which waiting cells are looked at, ns.
const WINDOW_NS: i64 = 1_000_000_000;
/// The same where there are so many cells that their sum is worth ten seconds.
const LONG_WINDOW_NS: i64 = 10_000_000_000;
/// From so many cells on.
const MANY: usize = 1_000;

/// Runs the trial. Cells that fail make a failed trial only where they are more than the study allows.
pub(crate) fn run(
    trial: &Trial<'_>,
    scale: &Scale,
    progress: &mut dyn Progress,
) -> Result<Outcome, BenchError> {
    host::limits::raise();
    let (dir, shared, mut record, cells) = begin(trial)?;
    let planned = record.cells.clone();
    let crowd = Crowd::new(trial, cells, &shared, &planned, scale);
    let mut found = CrowdRecord {
        asked: count(planned.len()),
        parallel: scale.parallel,
        ..CrowdRecord::default()
    };
    found.reservation = trial.reserved;
    if let Some(held) = trial.reserved {
        let told = reserve::told(held);
        progress.note(&format!("{}: {told}", trial.planned.name));
    }
    let ended = steps(&crowd, scale, &mut record, &mut found, progress);
    let cells = &crowd.cells;
    // Cells still at high priority would leave next to no cpu time for the removal.
    if ended.is_err() {
        guard::freeze(&cells.watch.living());
    }
    trial.interrupt.wakes(None);
    let finished = |index: &usize| cells.barrier.state(*index) == State::Done;
    found.finished = count((0..planned.len()).filter(finished).count());
    found.gave_out = crowd.gave_out();
    let began = clock::now();
    // None is released before: the kernel tears down thousands that end at the same moment more slowly than one by one.
    let mut leftovers = cells.remove(scale.parallel as usize);
    cells.barrier.abort();
    found.removal_ns = Some(clock::now() - began);
    // For a crowd, one sentence is enough.
    leftovers.truncate(3);
    record.failure = ended.err();
    let stopped = crowd.called_off().is_some() || record.failure.as_deref() == Some(INTERRUPTED);
    if stopped && record.go_ns.is_some() {
        // Measurements stay.
        record.cut_off = record.failure.take();
    }
    note_leftovers(&mut record, &leftovers);
    record.cells = crowd.records();
    let samples = salvage::released(&record.cells, &shared);
    record.crowd = Some(found);
    Ok(Outcome {
        record,
        samples,
        begun: false,
        dir,
    })
}

fn steps(
    crowd: &Crowd<'_>,
    scale: &Scale,
    record: &mut TrialRecord,
    found: &mut CrowdRecord,
    progress: &mut dyn Progress,
) -> Result<(), String> {
    let trial = crowd.trial;
    let cells = crowd.seats.len();
    let kernel_before = looks::kernel_bytes();
    let limits_before = headroom::limits();
    let footprint = trial.plan.engines[&record.cells[0].engine].footprint();
    if let Some(told) = headroom::certain(&limits_before, &footprint, scale.memory_reserve, cells) {
        progress.note(&format!("{}: {told}", trial.planned.name));
    }
    let began = clock::now();
    in_parallel(
        (scale.parallel as usize).min(cells),
        cells,
        |index| crowd.make(index),
        || progress.gathering(count(crowd.present()), count(cells)),
    );
    found.created = count(crowd.present());
    found.creation_ns = crowd.creation_ns();
    enough(crowd)?;
    let mut stop = || trial.interrupt.came();
    if !crowd.settle(State::Armed, "armed", clock::now() + ARMING_NS, &mut stop) {
        return Err(INTERRUPTED.to_owned());
    }
    record.arming_ns = Some(clock::now() - began);
    check(crowd);
    enough(crowd)?;
    let alive: Vec<i32> = crowd.alive().into_iter().map(|(_, pid)| pid).collect();
    found.armed = count(alive.len());
    let after = headroom::limits();
    if let Some(told) = headroom::forecast(&limits_before, &after, alive.len()) {
        progress.note(&format!("{}: {told}", trial.planned.name));
    }
    idle(crowd, &alive, kernel_before, found, progress)?;

    let priority = guard::above(fifo(trial, 0));
    let in_front = InFront::of_cells(priority);
    let own_priority = guard::own_priority();
    let watchdog = Watchdog::start(
        crowd.cells.watch.living(),
        priority.saturating_add(1).min(99),
        GuardLimits {
            starvation_ns: scale.starvation_limit.ns(),
            memory_reserve: scale.memory_reserve,
        },
        crowd.cells.barrier.waker(),
    )
    .map_err(|error| format!("cannot start the watchdog: {error}"))?;
    record.cells = crowd.records();
    record.crowd = Some(found.clone());
    salvage::note_begun(trial.place, record).map_err(|error| error.to_string())?;
    let go_ns = crowd.cells.barrier.open(Barrier::lead_ns(cells));
    note_go(record, go_ns);
    let deadline = clock::now() + longest_loop_ns(trial);
    let settled = crowd.settle(State::Done, "done", deadline, &mut || {
        trial.interrupt.came() || watchdog.froze()
    });
    found.watchdog = Some(watchdog.record(own_priority, fifo(trial, 0).unwrap_or(0)));
    for (index, seat) in crowd.seats.iter().enumerate() {
        let started = crowd.cells.barrier.slot(index).started_ns.load(Acquire);
        lock(seat).record.started_ns = (started != 0).then_some(started);
    }
    if let Some((why, gave_out)) = watchdog.stopped() {
        crowd.call_off(why.clone(), gave_out);
        return Err(why);
    }
    if !settled {
        return Err(INTERRUPTED.to_owned());
    }
    drop(in_front);
    enough(crowd)
}

fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// Fails if so many cells failed that the trial says nothing.
fn enough(crowd: &Crowd<'_>) -> Result<(), String> {
    if crowd.trial.interrupt.came() {
        return Err(INTERRUPTED.to_owned());
    }
    if let Some(why) = crowd.called_off() {
        return Err(format!("{why}; {} cells had been created", crowd.present()));
    }
    if crowd.failed() <= crowd.allowed {
        return Ok(());
    }
    let first = (crowd.seats.iter()).find_map(|seat| {
        let seat = lock(seat);
        Some(format!(
            "{}: {}",
            seat.record.id,
            seat.record.failure.as_ref()?
        ))
    });
    Err(format!(
        "{} of {} cells failed, {} may; {} had been created; the first failure is {}",
        crowd.failed(),
        crowd.seats.len(),
        crowd.allowed,
        crowd.present(),
        first.unwrap_or_default()
    ))
}

/// Looks at every armed cell from outside; one that did not get its class or cpu is removed before the release.
fn check(crowd: &Crowd<'_>) {
    let class = class(crowd.trial, 0);
    for (index, pid) in crowd.alive() {
        let locked = crowd.cells.barrier.slot(index).memory_locked.load(Acquire);
        let mut seat = lock(&crowd.seats[index]);
        let mut looked = seat.record.clone();
        verify(&class, pid, locked, &mut looked);
        let failure = looked.failure.take();
        seat.record = looked;
        if let Some(why) = failure {
            crowd.fail(&mut seat, why);
            // Said again when everything is removed.
            let _ = crowd.cells.remove_one(index);
        }
    }
}

/// Usage of the cells while nothing happens.
fn idle(
    crowd: &Crowd<'_>,
    alive: &[i32],
    kernel_before: Option<u64>,
    found: &mut CrowdRecord,
    progress: &mut dyn Progress,
) -> Result<(), String> {
    let mut unknown = |what: &str, error: std::io::Error| {
        let name = &crowd.trial.planned.name;
        progress.note(&format!("{name}: {what} is unknown: {error}"));
    };
    let long = crowd.seats.len() >= MANY;
    let window_ns = if long { LONG_WINDOW_NS } else { WINDOW_NS };
    let (began, before) = (clock::now(), process::cpu_ns(alive));
    let mut interrupted = || crowd.trial.interrupt.came();
    // Nobody gets there before the release: this only waits for the time to pass.
    let _ =
        (crowd.cells.barrier).wait_all(State::Done, "done", began + window_ns, &mut interrupted);
    enough(crowd)?;
    let window_ns = clock::now() - began;
    let used = before.and_then(|before| Ok(looks::used_ns(&before, &process::cpu_ns(alive)?)));
    match used {
        Ok(cpu_ns) => found.waiting = Some(Waiting { window_ns, cpu_ns }),
        Err(error) => unknown("the cpu time of the waiting cells", error),
    }
    let kernel = looks::kernel_bytes().zip(kernel_before);
    let trial = crowd.trial;
    let mark = format!("timecell-{}-{}-", std::process::id(), trial.number);
    let cells_dir = (trial.place.dir()).join(format!("trials/{}/cells", trial.number));
    let user = trial.plan.rootless_user.as_ref().map(|user| user.uid);
    match looks::memory(alive, &mark, Path::new(&cells_dir), user) {
        Ok(memory) => {
            found.memory = Some(CrowdMemory {
                kernel_bytes: kernel.map(|(after, before)| after.saturating_sub(before)),
                ..memory
            });
        }
        Err(error) => unknown("the memory of the waiting cells", error),
    }
    Ok(())
}
