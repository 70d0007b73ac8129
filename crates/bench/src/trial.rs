//! One trial: cells created, placed, armed, released together, measured, removed.

mod ahead;
mod apart;
mod holds;
mod members;
mod placed;
mod waiting;

use std::path::Path;
use std::sync::atomic::Ordering::{Acquire, Release};

use host::isolate::Isolation;
use host::sched;
use host::sched::bandwidth::release;
use model::Keep;
use probe::control::State;
use probe::{Barrier, BarrierError, clock};
use record::Metric;
use record::trial::TrialRecord;

pub(crate) use placed::place_cell;

use crate::context::{ARMING_NS, CREATION_NS, INTERRUPTED, Outcome, Trial};
use crate::counted;
use crate::drain::{Drain, Rings};
use crate::error::failed;
use crate::load;
use crate::payload::{class, prepare_page, spec, words};
use crate::salvage;
use crate::sampler::{Sampler, Subject};
use crate::session::Progress;
use crate::trial_record::{longest_loop_ns, new_record};
use crate::verify::{verify, verify_thread};
use crate::watch::Watch;
use crate::{BenchError, Plan, PlannedTask};
use apart::isolate;
use members::{Ended, Live, Members};
use waiting::{load_failure, mind_failures, wait};

/// Runs the trial. A cell that fails makes a failed trial on record, not an error.
pub(crate) fn run(trial: &Trial<'_>, progress: &mut dyn Progress) -> Result<Outcome, BenchError> {
    let dir = trial.place.sub(&format!("trials/{}", trial.number))?;
    let shared = trial
        .place
        .sub(&format!("trials/{}/shared", trial.number))?;
    let control = shared.join("control");
    let barrier = Barrier::create(&control, trial.planned.cells.len())
        .map_err(failed(&control, "make the control page"))?;
    trial.interrupt.wakes(Some(barrier.waker()));
    let mut record = new_record(trial);
    crate::live::write(trial, &record, &dir)?;
    let mut live = Members::default();
    let mut begun = false;
    let steps = isolate(trial, &mut record, &mut live).and_then(|()| {
        steps(
            trial,
            &barrier,
            &shared,
            &mut record,
            &mut live,
            &mut begun,
            progress,
        )
    });
    release_bandwidth(trial, &live);
    barrier.abort();
    trial.interrupt.wakes(None);
    let mut leftovers = Vec::new();
    for (load, record) in live.loads.iter_mut().zip(&mut record.loads) {
        leftovers.extend(load.stop(record).err());
    }
    for live in live.cells.iter_mut().flatten() {
        if let Err(error) = live.cell.remove() {
            leftovers.push(error.to_string());
        }
    }
    leftovers.extend(holds::end(&mut live));
    if let Some(isolation) = live.isolation.take() {
        leftovers.extend(isolation.end());
        live.ahead = None;
    }
    let interrupted = trial.interrupt.came();
    match steps {
        Ok(()) => record.failure = load_failure(&record),
        Err(Ended::Failed(why)) => record.failure = Some(why),
        Err(Ended::Error(BenchError::Record(source))) if begun => {
            return Err(BenchError::Unwritten {
                number: trial.number,
                source,
                place: trial.place.dir().to_owned(),
            });
        }
        Err(Ended::Error(error)) => {
            let _ = std::fs::remove_dir_all(&dir);
            return Err(error);
        }
    }
    if interrupted
        && record.go_ns.is_some()
        && record
            .failure
            .as_deref()
            .is_none_or(|why| why == INTERRUPTED)
    {
        // What was measured stays: a run of a day is not thrown away for its last minute.
        record.failure = None;
        let ended = (0..record.cells.len()).all(|index| barrier.state(index) >= State::Done);
        record.cut_off = (!ended).then(|| INTERRUPTED.to_owned());
    } else if interrupted {
        record.failure.get_or_insert(INTERRUPTED.to_owned());
    }
    if !leftovers.is_empty() {
        record
            .failure
            .get_or_insert(format!("could not be removed: {}", leftovers.join("; ")));
    }
    let samples = (record.cells.iter())
        .map(|cell| (cell.id.clone(), shared.join(format!("{}.samples", cell.id))))
        .filter(|(_, path)| !begun && record.go_ns.is_some() && salvage::was_released(path))
        .collect();
    Ok(Outcome {
        record,
        samples,
        begun,
        dir,
    })
}

fn steps(
    trial: &Trial<'_>,
    barrier: &Barrier,
    shared: &Path,
    record: &mut TrialRecord,
    live: &mut Members,
    begun: &mut bool,
    progress: &mut dyn Progress,
) -> Result<(), Ended> {
    let watch = Watch::start(barrier.waker())
        .map_err(|error| BenchError::Failed(format!("cannot watch the cells: {error}")))?;
    let began = clock::now();
    for index in 0..record.cells.len() {
        if trial.planned.first_of_cell(index) < index {
            join(trial, barrier, &watch, index, record, live)?;
            continue;
        }
        if record.cells[index].failure.is_some() {
            // Another cell of its arm could not be made.
            live.cells.push(None);
            continue;
        }
        create(trial, barrier, &watch, shared, index, record, live)?;
    }
    let patience = clock::now() + ARMING_NS;
    wait(trial, barrier, &watch, record, live, |stop| {
        barrier.wait_all(State::Armed, "armed", patience, stop)
    })?;
    record.arming_ns = Some(clock::now() - began);
    for (index, cell) in record.cells.iter_mut().enumerate() {
        if let Some(task) = trial.planned.tasks.get(index) {
            verify_thread(&task.class, barrier.slot(index), cell);
            continue;
        }
        let Some(live) = live.cells.get(index).and_then(Option::as_ref) else {
            continue;
        };
        let locked = barrier.slot(index).memory_locked.load(Acquire);
        verify(&class(trial, index), live.pid, locked, cell);
    }
    mind_failures(trial, barrier, record, live)?;

    holds::begin(live)?;
    start_loads(trial, barrier, &watch, record, live)?;
    let keep = trial.plan.experiment.keep;
    if let Keep::Histograms { .. } = keep {
        trial.run.begin_trial(record).map_err(BenchError::Record)?;
        *begun = true;
    }
    for load in &mut live.loads {
        load.open_window();
    }
    salvage::note_begun(trial.place, record)?;
    let go_ns = barrier.open(Barrier::lead_ns(record.cells.len()));
    crate::trial_record::note_go(record, go_ns);
    let sampler = trial.plan.experiment.counters.any().then(|| {
        let cells = record.cells.iter().zip(&live.cells);
        let watched = cells.filter_map(|(cell, live)| {
            let pid = live.as_ref()?.pid;
            Some(Subject {
                id: cell.id.clone(),
                pid: (!counted::counts_itself(shared, &cell.id)).then_some(pid),
                cpu: cell.cpu,
            })
        });
        Sampler::start(watched.collect(), Plan::loop_ns(&trial.planned.workload))
    });
    let patience = clock::now() + longest_loop_ns(trial);
    let ended = match keep {
        Keep::Samples => wait(trial, barrier, &watch, record, live, |stop| {
            barrier.wait_all(State::Done, "done", patience, stop)
        }),
        Keep::Histograms { interval } => {
            let rings = rings(trial, shared, record, interval.ns());
            let mut drain = Drain::start(&rings, barrier.waker(), progress)?;
            let ended = wait(trial, barrier, &watch, record, live, |stop| {
                drain.until_done(barrier, patience, stop)
            });
            if ended.is_err() {
                // Whoever still ran could finish behind the last look at its ring, and its log would lack its last jobs.
                release_bandwidth(trial, live);
                watch.kill(record.cells.len());
            }
            drain.finish()?;
            ended
        }
    };
    for (index, cell) in record.cells.iter_mut().enumerate() {
        let started = barrier.slot(index).started_ns.load(Acquire);
        cell.started_ns = (started != 0).then_some(started);
    }
    for load in &mut live.loads {
        load.close_window();
    }
    record.counters = sampler.map(Sampler::stop).unwrap_or_default();
    counted::tell(trial, shared, record);
    ended?;
    // Before they end: how the kernel takes a process apart is no matter of what holds it.
    holds::note(live, trial, record)?;
    release_bandwidth(trial, live);
    barrier.leave();
    Ok(())
}

/// Takes deadline threads out of their class before they end.
fn release_bandwidth(trial: &Trial<'_>, live: &Members) {
    let deadline = |task: &PlannedTask| matches!(task.class, sched::Class::Deadline { .. });
    if trial.planned.tasks.iter().any(deadline) {
        for live in live.cells.iter().flatten() {
            // Of a thread that cannot be, its end is as good.
            let _ = release(live.pid);
        }
    }
}

fn rings<'a>(
    trial: &Trial<'_>,
    shared: &Path,
    record: &TrialRecord,
    interval_ns: i64,
) -> Rings<'a> {
    let files = record.cells.iter().map(|cell| {
        let ring = shared.join(format!("{}.samples", cell.id));
        let log = trial.run.log_path(trial.number, &cell.id);
        (ring, log, salvage::rest_of_log(shared, &cell.id))
    });
    Rings {
        files: files.collect(),
        metrics: Metric::of_work(trial.plan.experiment.workload.work),
        interval_ns,
        go_ns: record.go_ns.unwrap_or(0),
        expected_end_ns: trial.expected_end_ns,
    }
}

/// Starts the loads one after the other and waits until each is seen at work.
fn start_loads(
    trial: &Trial<'_>,
    barrier: &Barrier,
    watch: &Watch,
    record: &mut TrialRecord,
    live: &mut Members,
) -> Result<(), Ended> {
    for (index, planned) in trial.planned.loads.iter().enumerate() {
        let started = load::start(&load::Start {
            planned,
            place: trial.place,
            rootfs: trial.rootfs,
            trial: trial.number,
            setting: trial.ground.setting(planned),
        })?;
        let fail = |record: &mut TrialRecord, why: String| {
            record.loads[index].failure = Some(why);
            Err(Ended::Failed(load_failure(record).unwrap_or_default()))
        };
        let running = match started {
            Ok(running) => running,
            Err(why) => return fail(record, why),
        };
        watch.add(record.cells.len() + index, running.pid());
        let mut stop = || trial.interrupt.came() || !watch.dead().is_empty();
        let at_work = running.wait_until_at_work(&mut stop);
        let words = running.last_words();
        live.loads.push(running);
        if let Err(why) = at_work {
            return fail(record, load::with_words(&why, &words));
        }
        // Says what died, if anything did.
        wait(trial, barrier, watch, record, live, |stop| match stop() {
            true => Err(BarrierError::Stopped),
            false => Ok(()),
        })?;
    }
    Ok(())
}

/// A thread of a cell that is there already: only to be waited for and let go on.
fn join(
    trial: &Trial<'_>,
    barrier: &Barrier,
    watch: &Watch,
    index: usize,
    record: &mut TrialRecord,
    live: &mut Members,
) -> Result<(), Ended> {
    live.cells.push(None);
    let patience = clock::now() + CREATION_NS;
    wait(trial, barrier, watch, record, live, |stop| {
        barrier.wait_cell(index, State::Present, "present", patience, stop)
    })?;
    barrier.permit(index);
    Ok(())
}

fn create(
    trial: &Trial<'_>,
    barrier: &Barrier,
    watch: &Watch,
    shared: &Path,
    index: usize,
    record: &mut TrialRecord,
    live: &mut Members,
) -> Result<(), Ended> {
    for seat in trial.planned.sharing(index) {
        let samples = shared.join(format!("{}.samples", record.cells[seat].id));
        let jobs = u64::from(trial.jobs[seat]);
        match trial.planned.ring_records(trial.plan.experiment.keep) {
            Some(records) => probe::prepare_ring(&samples, records, jobs),
            None if trial.plan.experiment.counts_activations() => {
                probe::prepare_counted_samples(&samples, jobs)
            }
            None => probe::prepare_samples(&samples, jobs),
        }
        .map_err(failed(&samples, "make the samples file"))?;
        prepare_page(trial, shared, seat, &record.cells[seat].id)?;
    }
    let words = words(trial, record, index);
    let cell = &mut record.cells[index];
    let work = trial
        .place
        .sub(&format!("trials/{}/cells/{}", trial.number, cell.id))?;
    let spec = spec(trial, index, cell, words, shared, &work);
    if let Err(why) = holds::make(trial, index, &spec.id, live) {
        live.cells.push(None);
        cell.failure = Some(why);
        return mind_failures(trial, barrier, record, live).map(drop);
    }
    let asked_ns = clock::now();
    match trial.plan.engines[&cell.engine].create(&spec) {
        Ok(made) => {
            let pid = made.pid();
            watch.add(index, pid);
            barrier.slot(index).pid.store(pid, Release);
            live.cells.push(Some(Live { cell: made, pid }));
        }
        Err(error) => {
            live.cells.push(None);
            cell.failure = Some(error.to_string());
            return mind_failures(trial, barrier, record, live).map(drop);
        }
    }
    let patience = asked_ns + CREATION_NS;
    wait(trial, barrier, watch, record, live, |stop| {
        barrier.wait_cell(index, State::Present, "present", patience, stop)
    })?;
    let cell = &mut record.cells[index];
    if cell.failure.is_some() {
        return Ok(());
    }
    let present_ns = barrier.slot(index).present_ns.load(Acquire);
    cell.create_ns = Some(present_ns - asked_ns);
    let partition = (live.isolation.as_ref())
        .and_then(Isolation::group)
        .map(Path::to_owned);
    if let Some(made) = live.cells[index].as_ref()
        && let Err(why) = place_cell(trial, partition.as_deref(), index, cell, made.pid)
            .and_then(|()| holds::join(live, index, made.pid))
    {
        cell.failure = Some(why);
        return mind_failures(trial, barrier, record, live).map(drop);
    }
    barrier.permit(index);
    Ok(())
}
