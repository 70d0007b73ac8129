//! One trial: cells created, placed, armed, released together, measured, removed.

mod machine;
mod waiting;

use std::path::PathBuf;
use std::sync::atomic::Ordering::Acquire;

use host::isolate::Isolation;
use host::sched;
use model::Keep;
use probe::control::State;
use probe::{Barrier, BarrierError, clock};
use record::Metric;
use record::trial::TrialRecord;

use crate::cells::{
    ARMING_NS, Ahead, CREATION_NS, Cells, End, Ended, INTERRUPTED, Placement, Vcpu, load_failure,
    verify, verify_thread, verify_vcpus,
};
use crate::context::{Outcome, Trial};
use crate::counted;
use crate::drain::{Drain, Rings};
use crate::held::{Wanted, group_name};
use crate::load;
use crate::payload::{class, placement, prepare, spec};
use crate::salvage;
use crate::sampler::{Sampler, Subject};
use crate::session::Progress;
use crate::trial_record::{begin, longest_loop_ns, note_go, note_leftovers};
use crate::{BenchError, Plan, PlannedTask};

/// A trial under way.
struct Going<'a> {
    trial: &'a Trial<'a>,
    shared: PathBuf,
    record: TrialRecord,
    cells: Cells<'a>,
    isolation: Option<Isolation>,
    ahead: Option<Ahead>,
    /// Whether its record was begun on the disk.
    begun: bool,
}

/// Runs the trial. A cell that fails makes a failed trial on record, not an error.
pub(crate) fn run(trial: &Trial<'_>, progress: &mut dyn Progress) -> Result<Outcome, BenchError> {
    let (dir, shared, record, cells) = begin(trial)?;
    let mut going = Going {
        trial,
        shared,
        record,
        cells,
        isolation: None,
        ahead: None,
        begun: false,
    };
    let steps = going.isolate().and_then(|()| going.steps(progress));
    going.release_bandwidth();
    let End { loads, left } = going.cells.end();
    let mut leftovers = left;
    for (kept, told) in going.record.loads.iter_mut().zip(loads) {
        *kept = told;
    }
    if let Some(isolation) = going.isolation.take() {
        leftovers.extend(isolation.end());
        going.ahead = None;
    }
    let Going {
        shared,
        mut record,
        cells,
        begun,
        ..
    } = going;
    let interrupted = trial.interrupt.came();
    match steps {
        Ok(()) => record.failure = load_failure(&record.loads),
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
        // Measurements stay: a run of a day is not thrown away for its last minute.
        record.failure = None;
        let ended = (0..record.cells.len()).all(|index| cells.barrier.state(index) >= State::Done);
        record.cut_off = (!ended).then(|| INTERRUPTED.to_owned());
    } else if interrupted {
        record.failure.get_or_insert(INTERRUPTED.to_owned());
    }
    note_leftovers(&mut record, &leftovers);
    let samples = match begun || record.go_ns.is_none() {
        true => Vec::new(),
        false => salvage::released(&record.cells, &shared),
    };
    Ok(Outcome {
        record,
        samples,
        begun,
        dir,
    })
}

/// The virtual cpus of the machine that a task set runs in, if it runs in one.
fn vcpus<'a>(trial: &'a Trial<'_>) -> Vec<Vcpu<'a>> {
    let vcpu = |slot: usize| Vcpu {
        slot,
        cpus: &trial.planned.tasks[slot].cpus,
        class: trial.planned.vcpu_class(slot, class(trial, slot)),
    };
    trial.planned.vcpus().into_iter().map(vcpu).collect()
}

impl Going<'_> {
    /// Takes other work off the cells' cpus, if the trial asks for it.
    fn isolate(&mut self) -> Result<(), Ended> {
        let trial = self.trial;
        if trial.planned.isolate {
            let journal = trial.place.isolation_journal(trial.number);
            let isolation = Isolation::hold(&trial.planned.cpus(), &journal)
                .map_err(|error| Ended::Failed(format!("cannot keep the cpus free: {error}")))?;
            self.record.isolation = Some(isolation.found().clone());
            self.isolation = Some(isolation);
            self.ahead = Ahead::of_loads();
        }
        Ok(())
    }

    fn steps(&mut self, progress: &mut dyn Progress) -> Result<(), Ended> {
        let trial = self.trial;
        let began = clock::now();
        for index in 0..self.record.cells.len() {
            if trial.planned.first_of_process(index) < index {
                self.join(index)?;
            } else if self.record.cells[index].failure.is_none() {
                // Else another cell of its arm could not be created.
                self.create(index)?;
            }
        }
        let patience = clock::now() + ARMING_NS;
        self.wait(|cells, stop| (cells.barrier).wait_all(State::Armed, "armed", patience, stop))?;
        self.record.arming_ns = Some(clock::now() - began);
        self.verify();
        self.mind_failures()?;

        self.cells.begin_holds().map_err(Ended::Failed)?;
        self.start_loads()?;
        let keep = trial.plan.experiment.keep;
        if let Keep::Histograms { .. } = keep {
            (trial.run.begin_trial(&self.record)).map_err(BenchError::Record)?;
            self.begun = true;
        }
        self.cells.open_windows();
        salvage::note_begun(trial.place, &self.record)?;
        let mut lead_ns = Barrier::lead_ns(self.record.cells.len());
        if trial.planned.machine.is_some() {
            lead_ns += machine::LEAD_NS;
        }
        let go_ns = self.cells.barrier.open(lead_ns);
        note_go(&mut self.record, go_ns);
        let sampler = trial.plan.experiment.counters.any().then(|| self.sampler());
        let patience = clock::now() + longest_loop_ns(trial);
        let ended = match keep {
            Keep::Samples => self
                .wait(|cells, stop| (cells.barrier).wait_all(State::Done, "done", patience, stop)),
            Keep::Histograms { interval } => {
                let rings = self.rings(interval.ns());
                let mut drain = Drain::start(&rings, self.cells.barrier.waker(), progress)?;
                let ended =
                    self.wait(|cells, stop| drain.until_done(&cells.barrier, patience, stop));
                if ended.is_err() {
                    // A cell that still runs could finish after the last look at its ring, and its log would lack its last jobs.
                    self.release_bandwidth();
                    self.cells.watch.kill(self.record.cells.len());
                }
                drain.finish()?;
                ended
            }
        };
        let ids: Vec<String> = (self.record.cells.iter())
            .map(|cell| cell.id.clone())
            .collect();
        for (index, cell) in self.record.cells.iter_mut().enumerate() {
            let started = self.cells.barrier.slot(index).started_ns.load(Acquire);
            cell.started_ns = (started != 0).then_some(started);
            if self.cells.barrier.state(index) == State::Done {
                let first = &ids[trial.planned.first_of_process(index)];
                machine::tell(trial.planned.machine.as_ref(), &self.shared, first, cell);
            }
        }
        self.cells.close_windows();
        self.record.counters = sampler.map(Sampler::stop).unwrap_or_default();
        counted::tell(trial, &self.shared, &mut self.record);
        ended?;
        self.note_holds()?;
        self.release_bandwidth();
        self.cells.barrier.leave();
        Ok(())
    }

    /// Compares the cells' classes and cpus with the requested ones.
    fn verify(&mut self) {
        let vcpus: Vec<sched::Class> = (vcpus(self.trial).into_iter())
            .map(|vcpu| vcpu.class)
            .collect();
        let threads = match vcpus.is_empty() {
            true => Vec::new(),
            false => self.cells.scheduled(0).unwrap_or_default(),
        };
        let wrong = verify_vcpus(&threads, &vcpus).err();
        for (index, cell) in self.record.cells.iter_mut().enumerate() {
            cell.failure = cell.failure.take().or_else(|| wrong.clone());
            let slot = self.cells.barrier.slot(index);
            if let Some(task) = self.trial.planned.tasks.get(index) {
                verify_thread(&task.class, slot, cell);
            } else {
                let locked = slot.memory_locked.load(Acquire);
                let wanted = class(self.trial, index);
                for pid in self.cells.scheduled(index).into_iter().flatten() {
                    verify(&wanted, pid, locked, cell);
                }
            }
        }
    }

    fn sampler(&self) -> Sampler {
        let cells = self.record.cells.iter().enumerate();
        let watched = cells.filter_map(|(index, cell)| {
            let pid = self.cells.pid(index)?;
            Some(Subject {
                id: cell.id.clone(),
                pid: (!counted::counts_itself(&self.shared, &cell.id)).then_some(pid),
                cpu: cell.cpu,
            })
        });
        Sampler::start(
            watched.collect(),
            Plan::loop_ns(&self.trial.planned.workload),
        )
    }

    /// Takes deadline threads out of their class before they end.
    fn release_bandwidth(&self) {
        let deadline = |task: &PlannedTask| matches!(task.class, sched::Class::Deadline { .. });
        let of_vcpus = |vcpu: &Vcpu<'_>| matches!(vcpu.class, sched::Class::Deadline { .. });
        if vcpus(self.trial).iter().any(of_vcpus) || self.trial.planned.tasks.iter().any(deadline) {
            self.cells.release_bandwidth();
        }
    }

    fn rings<'b>(&self, interval_ns: i64) -> Rings<'b> {
        let trial = self.trial;
        let files = self.record.cells.iter().map(|cell| {
            let ring = self.shared.join(format!("{}.samples", cell.id));
            let log = trial.run.log_path(trial.number, &cell.id);
            (ring, log, salvage::rest_of_log(&self.shared, &cell.id))
        });
        Rings {
            files: files.collect(),
            metrics: Metric::of_work(trial.plan.experiment.workload.work),
            interval_ns,
            go_ns: self.record.go_ns.unwrap_or(0),
            expected_end_ns: trial.expected_end_ns,
        }
    }

    /// Starts the loads one after the other and waits until each is seen at work.
    fn start_loads(&mut self) -> Result<(), Ended> {
        let trial = self.trial;
        for planned in &trial.planned.loads {
            self.cells.start_load(&load::Start {
                planned,
                place: trial.place,
                rootfs: trial.rootfs,
                trial: trial.number,
                setting: trial.ground.setting(planned),
            })?;
            // Names the dead process, if any.
            self.wait(|_, stop| match stop() {
                true => Err(BarrierError::Stopped),
                false => Ok(()),
            })?;
        }
        Ok(())
    }

    /// A thread of a cell that is there already: only to be waited for and let go on.
    fn join(&mut self, index: usize) -> Result<(), Ended> {
        self.until_present(index, clock::now() + CREATION_NS)?;
        self.cells.barrier.permit(index);
        Ok(())
    }

    fn until_present(&mut self, index: usize, patience: i64) -> Result<(), Ended> {
        self.wait(|cells, stop| {
            (cells.barrier).wait_cell(index, State::Present, "present", patience, stop)
        })
    }

    fn create(&mut self, index: usize) -> Result<(), Ended> {
        let trial = self.trial;
        let slots = index..index + trial.planned.sharing(index).len();
        for seat in slots.clone() {
            prepare(trial, &self.shared, seat, &self.record.cells[seat])?;
        }
        let spec = spec(trial, &self.shared, index, &self.record.cells)?;
        let vcpus = vcpus(trial);
        let holds = match vcpus.is_empty() {
            true => self.hold(index, &spec.id),
            false => (vcpus.iter()).try_for_each(|vcpu| self.hold(vcpu.slot, &spec.id)),
        };
        if let Err(why) = holds {
            return self.fail(index, why);
        }
        let asked_ns = clock::now();
        match trial.plan.engines[&spec.engine].create(&spec) {
            Ok(made) => self.cells.add(slots, made),
            Err(error) => return self.fail(index, error.to_string()),
        };
        self.until_present(index, asked_ns + CREATION_NS)?;
        let cell = &mut self.record.cells[index];
        if cell.failure.is_some() {
            return Ok(());
        }
        let present_ns = self.cells.barrier.slot(index).present_ns.load(Acquire);
        cell.create_ns = Some(present_ns - asked_ns);
        let placement = Placement {
            partition: self.isolation.as_ref().and_then(Isolation::group),
            ..placement(trial, index, cell)
        };
        let placed = match vcpus.is_empty() {
            true => self.cells.place(index, &placement),
            false => self.cells.place_vcpus(index, &vcpus),
        };
        if let Err(why) = placed {
            return self.fail(index, why);
        }
        self.cells.barrier.permit(index);
        Ok(())
    }

    /// Notes why a cell failed, and whether to go on.
    fn fail(&mut self, index: usize, why: String) -> Result<(), Ended> {
        self.record.cells[index].failure = Some(why);
        self.mind_failures().map(drop)
    }

    /// Makes the holder of the cell of entry `index`, which will be called `id`, if it has one.
    fn hold(&self, index: usize, id: &str) -> Result<(), String> {
        let task = self.trial.planned.tasks.get(index);
        let Some((task, by)) = task.and_then(|task| Some((task, task.held?))) else {
            return Ok(());
        };
        let wanted = Wanted {
            held: by.held,
            cpu: task.cpu(),
            id: id.to_owned(),
            rt_group: format!("{}/{}", group_name(), task.cell),
        };
        self.cells.hold(index, &wanted)
    }

    /// Records how exactly the cells have been held.
    fn note_holds(&mut self) -> Result<(), Ended> {
        let Some(record) = &mut self.record.holds else {
            return Ok(());
        };
        for (index, reacted) in self.cells.reacted().map_err(Ended::Failed)? {
            let number = self.trial.planned.tasks[index].cell;
            let mut cells = record.cells.iter_mut();
            if let Some(cell) = cells.find(|cell| cell.cell_number as usize == number) {
                cell.reacted = reacted;
            }
        }
        Ok(())
    }
}
