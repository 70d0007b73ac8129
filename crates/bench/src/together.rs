//! The cells of one trial, whatever they run: created, placed, armed, released together, waited for, removed.

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::Ordering::Acquire;

use engine::{Cell, CellSpec, Rights};
use host::sched::Class;
use host::sched::bandwidth::release;
use model::EngineKind;
use probe::control::State;
use probe::{Barrier, BarrierError, clock};
use record::LoadRecord;

use crate::BenchError;
use crate::held::{Held, group_name};
use crate::launch::Stage;
use crate::load::{self, Ground, PlannedLoad, Running, Start, with_words};
use crate::session::{Interrupt, Progress, Quiet, Session};
use crate::watch::Watch;

/// Longest time for a process to come to be and to be armed, ns; waiting for bandwidth that is given back is part of it.
const CREATION_NS: i64 = 60_000_000_000;

/// What is around all trials of a study. Dropping it leaves the machine as it was.
pub(crate) struct Surroundings {
    _quiet: Quiet,
    ground: Ground,
    pub stage: Stage,
}

impl Surroundings {
    /// Around real-time cells on this cpu, beside these loads.
    pub(crate) fn make(
        session: &Session,
        loads: &[&PlannedLoad],
        cpu: u32,
        progress: &mut dyn Progress,
    ) -> Result<Surroundings, BenchError> {
        let mut stage = Stage::of_run(&session.run)?;
        // Before any is made: whoever comes after a `kill -9` removes it.
        stage.place.note_held_groups(&group_name())?;
        let (ground, remarks) = Ground::make(loads, session.run.dir(), &mut stage.place)?;
        for remark in remarks {
            progress.note(&remark);
        }
        Ok(Surroundings {
            _quiet: Quiet::around(&[cpu], true, progress),
            ground,
            stage,
        })
    }

    /// What is around the trial of this number.
    pub(crate) fn of<'a>(&'a self, session: &'a Session, number: u32) -> Around<'a> {
        Around {
            stage: &self.stage,
            ground: &self.ground,
            interrupt: &session.interrupt,
            number,
        }
    }
}

/// What is around one trial.
pub(crate) struct Around<'a> {
    pub stage: &'a Stage,
    pub ground: &'a Ground,
    pub interrupt: &'a Interrupt,
    pub number: u32,
}

/// One cell.
pub(crate) struct Member<'a> {
    pub name: String,
    pub words: Vec<String>,
    /// Its threads' slots on the control page.
    pub slots: Range<usize>,
    /// The class of each of its threads.
    pub classes: Vec<Class>,
    /// Real-time priority that its process may take.
    pub rtprio: u8,
    /// What holds it, other than its class.
    pub held: Option<&'a dyn Held>,
}

/// A load beside the cells.
pub(crate) struct Beside<'a> {
    planned: &'a PlannedLoad,
    running: Option<Running>,
    pub record: LoadRecord,
}

/// What the cell of this member is called in this trial.
pub(crate) fn cell_name(number: u32, member: &str) -> String {
    format!("{number}-{member}")
}

impl<'a> Beside<'a> {
    pub(crate) fn new(planned: &'a PlannedLoad, around: &Around<'_>) -> Beside<'a> {
        Beside {
            record: load::record(planned, &around.ground.setting(planned)),
            planned,
            running: None,
        }
    }

    pub(crate) fn start(
        &mut self,
        around: &Around<'_>,
        watch: &Watch,
        place: usize,
    ) -> Result<(), String> {
        let started = load::start(&Start {
            planned: self.planned,
            place: &around.stage.place,
            rootfs: &around.stage.rootfs,
            trial: around.number,
            setting: around.ground.setting(self.planned),
        });
        let running = started.map_err(|error| error.to_string())??;
        watch.add(place, running.pid());
        let running = self.running.insert(running);
        let mut stop = || around.interrupt.came() || !watch.dead().is_empty();
        (running.wait_until_at_work(&mut stop))
            .map_err(|why| with_words(&why, &running.last_words()))?;
        running.open_window();
        Ok(())
    }

    pub(crate) fn last_words(&self) -> String {
        self.running
            .as_ref()
            .map(Running::last_words)
            .unwrap_or_default()
    }

    pub(crate) fn close_window(&mut self) {
        if let Some(running) = &mut self.running {
            running.close_window();
        }
    }

    /// Ends it; what it achieved is in its record.
    pub(crate) fn stop(&mut self) -> Result<(), String> {
        let stopped = (self.running.as_mut()).map_or(Ok(()), |load| load.stop(&mut self.record));
        let said = self.record.failure.clone();
        stopped.and(said.map_or(Ok(()), |why| {
            Err(format!("load {}: {why}", self.record.name))
        }))
    }
}

/// Runs the members to their ends, at most about `expected_ns` long. Nothing of them stays, whatever happens.
pub(crate) fn run(
    around: &Around<'_>,
    members: &[Member<'_>],
    partition: Option<&Path>,
    mut beside: Option<&mut Beside<'_>>,
    expected_ns: i64,
) -> Result<(), String> {
    let control = around.stage.shared.join("control");
    match std::fs::remove_file(&control) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(format!("{}: {error}", control.display()));
        }
        _ => {}
    }
    let slots = members.last().map_or(0, |member| member.slots.end);
    let barrier = Barrier::create(&control, slots).map_err(|error| error.to_string())?;
    let watch = Watch::start(barrier.waker()).map_err(|error| error.to_string())?;
    around.interrupt.wakes(Some(barrier.waker()));
    let mut these = These {
        around,
        members,
        partition,
        barrier: &barrier,
        watch: &watch,
        cells: Vec::new(),
    };
    let measured = these.go(beside.as_deref_mut(), expected_ns);
    let ended = these.end(measured.is_ok());
    around.interrupt.wakes(None);
    let stopped = beside.map_or(Ok(()), Beside::stop);
    measured.and(ended).and(stopped)
}

struct These<'a> {
    around: &'a Around<'a>,
    members: &'a [Member<'a>],
    partition: Option<&'a Path>,
    barrier: &'a Barrier,
    watch: &'a Watch,
    cells: Vec<(Box<dyn Cell>, std::path::PathBuf)>,
}

impl These<'_> {
    fn go(&mut self, mut beside: Option<&mut Beside<'_>>, expected_ns: i64) -> Result<(), String> {
        for member in self.members {
            self.create(member)?;
        }
        for member in self.members {
            for slot in member.slots.clone() {
                self.wait(slot, State::Armed, "armed", CREATION_NS, &mut beside)?;
            }
            self.verify(member)?;
        }
        if let Some(load) = beside.as_deref_mut() {
            load.start(self.around, self.watch, self.members.len())?;
        }
        self.barrier.open(Barrier::lead_ns(self.members.len()));
        let patience = expected_ns.saturating_mul(3).saturating_add(CREATION_NS);
        for slot in self.members.iter().flat_map(|member| member.slots.clone()) {
            self.wait(slot, State::Done, "done", patience, &mut beside)?;
        }
        if let Some(load) = beside {
            load.close_window();
        }
        Ok(())
    }

    #[expect(clippy::disallowed_methods, reason = "a control group")]
    fn create(&mut self, member: &Member<'_>) -> Result<(), String> {
        let name = cell_name(self.around.number, &member.name);
        let spec = (self.around.stage)
            .spec(&name, EngineKind::Bare, None, member.words.clone())
            .map_err(|error| error.to_string())?;
        let spec = CellSpec {
            rights: Rights {
                rtprio: member.rtprio,
                memlock_bytes: 128 << 20,
                devices: Vec::new(),
            },
            ..spec
        };
        let engine = engine::by_kind(EngineKind::Bare, &engine::Options::default());
        let cell = engine.create(&spec).map_err(|error| error.to_string())?;
        let pid = cell.pid();
        self.watch.add(self.cells.len(), pid);
        self.cells.push((cell, spec.work_dir));
        for slot in member.slots.clone() {
            self.wait(slot, State::Present, "present", CREATION_NS, &mut None)?;
        }
        if let Some(held) = member.held {
            held.join(pid)?;
            held.begin()?;
        }
        if let Some(partition) = self.partition {
            let file = partition.join("cgroup.procs");
            std::fs::write(&file, pid.to_string())
                .map_err(|error| format!("{}: {error}", file.display()))?;
        }
        for slot in member.slots.clone() {
            self.barrier.permit(slot);
        }
        Ok(())
    }

    /// Waits for one slot, and turns what went wrong into a sentence.
    fn wait(
        &self,
        slot: usize,
        state: State,
        what: &'static str,
        patience_ns: i64,
        beside: &mut Option<&mut Beside<'_>>,
    ) -> Result<(), String> {
        let dead = || -> Option<usize> {
            self.watch.dead().into_iter().find(|&place| {
                let slots = self.members.get(place).map(|member| member.slots.clone());
                // Behind the cells comes the load, which never ends by itself.
                slots.is_none_or(|mut slots| {
                    slots.any(|slot| self.barrier.state(slot) < State::Done)
                })
            })
        };
        let mut stop = || self.around.interrupt.came() || dead().is_some();
        let until = clock::now() + patience_ns;
        let result = self.barrier.wait_cell(slot, state, what, until, &mut stop);
        let failed = (0..self.slots()).find_map(|slot| self.barrier.failure(slot));
        if let Some(failure) = failed {
            return Err(failure);
        }
        let ended = |name: &str, said: &str| {
            with_words(&format!("{name} ended before its time"), said.trim())
        };
        result.map_err(|error| match (error, dead()) {
            (BarrierError::Stopped, _) if self.around.interrupt.came() => "interrupted".to_owned(),
            (BarrierError::Stopped, Some(place)) => match (self.members.get(place), beside) {
                (Some(member), _) => {
                    let said = (self.cells.get(place)).map(|(cell, _)| cell.log_tail());
                    ended(&member.name, &said.unwrap_or_default())
                }
                (None, Some(load)) => {
                    ended(&format!("load {}", load.record.name), &load.last_words())
                }
                (None, None) => "a process ended before its time".to_owned(),
            },
            (error, _) => error.to_string(),
        })
    }

    fn slots(&self) -> usize {
        self.members.last().map_or(0, |member| member.slots.end)
    }

    /// That the threads are what they were to be, by what the kernel told them.
    fn verify(&self, member: &Member<'_>) -> Result<(), String> {
        for (slot, wanted) in member.slots.clone().zip(&member.classes) {
            let slot = self.barrier.slot(slot);
            let (policy, priority) = (slot.policy.load(Acquire), slot.priority.load(Acquire));
            let good = match wanted {
                Class::Fifo { priority: wanted } => {
                    policy == libc::SCHED_FIFO && priority == i32::from(*wanted)
                }
                // Its times are what it asked for, or the kernel would have refused them.
                Class::Deadline { .. } => policy == libc::SCHED_DEADLINE,
                _ => true,
            };
            if !good {
                return Err(format!(
                    "{}: asked for {wanted}, the kernel reports policy {policy}, priority {priority}",
                    member.name
                ));
            }
        }
        Ok(())
    }

    /// Ends the cells and removes them; the error is the first that could not be.
    fn end(&mut self, good: bool) -> Result<(), String> {
        let deadline = |member: &Member<'_>| {
            (member.classes.iter()).any(|class| matches!(class, Class::Deadline { .. }))
        };
        for ((cell, _), member) in self.cells.iter().zip(self.members) {
            if deadline(member) {
                // Before cpusets change. Of a thread that cannot be, its end is as good.
                let _ = release(cell.pid());
            }
        }
        if good {
            self.barrier.leave();
        } else {
            self.barrier.abort();
        }
        let mut removed = Ok(());
        for (mut cell, work_dir) in self.cells.drain(..) {
            removed = removed.and(cell.remove().map_err(|error| error.to_string()));
            let _ = std::fs::remove_dir_all(&work_dir);
        }
        removed
    }
}
