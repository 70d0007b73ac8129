//! One trial: a thread that spins inside a budget.

use engine::{Cell, CellSpec, Rights};
use host::cpu_use;
use host::root::Root;
use host::sched::Class;
use model::EngineKind;
use probe::control::State;
use probe::{Barrier, BarrierError, SpinClass, SupplyArgs, clock, prepare_gaps};
use record::run::Run;
use record::supply::SupplyTrial;
use record::{Budget, Reacted};

use super::setting::Setting;
use super::subject::Subject;
use crate::held::{self, Held, Holder, Names, group_name};
use crate::launch::Stage;
use crate::load::{PlannedLoad, with_words};
use crate::together::{Around, Beside};
use crate::watch::Watch;

/// Longest time for the process to come to be, ns; waiting for bandwidth that is given back is part of it.
const CREATION_NS: i64 = 30_000_000_000;
/// Time beyond the expected in which a thread must have ended, ns: a budget of a thousandth stretches its last steps.
const OVERTIME_NS: i64 = 60_000_000_000;

/// The load among those that are watched; the cell is the first.
const LOAD: usize = 1;

/// One trial that is to take place.
pub(super) struct Trial<'a> {
    pub subject: &'a Subject,
    pub round: u32,
    pub setting: &'a Setting,
    /// What is beside it.
    pub load: Option<&'a PlannedLoad>,
    pub around: Around<'a>,
    /// Where the gaps go.
    pub run: &'a Run,
}

impl Trial<'_> {
    /// Runs it. What fails is on the record; nothing of the trial stays on the machine.
    pub(super) fn run(&self) -> SupplyTrial {
        let mut record = SupplyTrial {
            number: self.around.number,
            round: self.round,
            held: self.subject.held,
            class: self.class().to_string(),
            cpus: self.cpus(),
            steal_ns: None,
            reacted: None,
            load: None,
            failure: None,
        };
        let before = stolen(&record.cpus);
        let mut beside = self.load.map(|load| Beside::new(load, &self.around));
        match self.measure(beside.as_mut()) {
            Ok(reacted) => record.reacted = reacted,
            Err(failure) => record.failure = Some(failure),
        }
        record.load = beside.map(|beside| beside.record);
        let stolen = before.zip(stolen(&record.cpus));
        record.steal_ns = stolen.map(|(before, after)| after.saturating_sub(before));
        record
    }

    fn measure(&self, mut beside: Option<&mut Beside<'_>>) -> Result<Option<Reacted>, String> {
        let say = |error: std::io::Error| error.to_string();
        let laid = self.setting.stretches.of(self.subject, self.round);
        let gaps = self.around.stage.shared.join("gaps");
        prepare_gaps(&gaps, laid.each.len())
            .map_err(|error| format!("{}: {error}", gaps.display()))?;
        let control = self.around.stage.shared.join("control");
        match std::fs::remove_file(&control) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(format!("{}: {error}", control.display()));
            }
            _ => {}
        }
        let barrier = Barrier::create(&control, 1).map_err(say)?;
        let watch = Watch::start(barrier.waker()).map_err(say)?;
        self.around.interrupt.wakes(Some(barrier.waker()));
        let args = SupplyArgs {
            control: "/cell/control".to_owned(),
            slot: 0,
            gaps: "/cell/gaps".to_owned(),
            class: self.spin_class(),
            beside: self.beside(),
            cpus: self.cpus(),
            stretches: laid.each,
            rest_ns: laid.rest_ns,
            grid_ns: self.setting.stretches.tick_ns,
        };
        let result = self.while_held(&args, &barrier, &watch, beside.as_deref_mut());
        self.around.interrupt.wakes(None);
        let stopped = beside.map_or(Ok(()), Beside::stop);
        let reacted = result?;
        stopped?;
        self.run
            .keep_gaps(self.around.number, &gaps)
            .map_err(|error| error.to_string())?;
        Ok(reacted)
    }

    /// What holds the cell outlives it; the cell must have left it.
    fn while_held(
        &self,
        args: &SupplyArgs,
        barrier: &Barrier,
        watch: &Watch,
        beside: Option<&mut Beside<'_>>,
    ) -> Result<Option<Reacted>, String> {
        let held = match self.holder() {
            Some((holder, held)) => {
                let names = Names {
                    id: &Stage::id(&self.name()),
                    rt_group: &group_name(),
                };
                holder.hold(held, self.setting.spot.cpu, &names)?
            }
            None => None,
        };
        let measured = self.in_cell(args, held.as_deref(), (barrier, watch), beside);
        let ended = held.map_or(Ok(()), |held| held.end());
        measured.and_then(|reacted| ended.map(|()| reacted))
    }

    fn in_cell(
        &self,
        args: &SupplyArgs,
        held: Option<&dyn Held>,
        (barrier, watch): (&Barrier, &Watch),
        beside: Option<&mut Beside<'_>>,
    ) -> Result<Option<Reacted>, String> {
        let spec = self.spec(args)?;
        let engine = engine::by_kind(EngineKind::Bare, &engine::Options::default());
        let mut cell = engine.create(&spec).map_err(|error| error.to_string())?;
        watch.add(0, cell.pid());
        let measured = self.spin(cell.as_ref(), held, (barrier, watch), beside);
        barrier.abort();
        let removed = cell.remove().map_err(|error| error.to_string());
        let _ = std::fs::remove_dir_all(&spec.work_dir);
        measured.and_then(|reacted| removed.map(|()| reacted))
    }

    /// What the cell is called.
    fn name(&self) -> String {
        format!("{}-supply", self.around.number)
    }

    fn spec(&self, args: &SupplyArgs) -> Result<CellSpec, String> {
        let spec = (self.around.stage)
            .spec(&self.name(), EngineKind::Bare, None, args.to_words())
            .map_err(|error| error.to_string())?;
        Ok(CellSpec {
            rights: Rights {
                rtprio: self.setting.spot.priority,
                memlock_bytes: 128 << 20,
                devices: Vec::new(),
            },
            ..spec
        })
    }

    fn spin(
        &self,
        cell: &dyn Cell,
        held: Option<&dyn Held>,
        (barrier, watch): (&Barrier, &Watch),
        mut beside: Option<&mut Beside<'_>>,
    ) -> Result<Option<Reacted>, String> {
        let wait = |state: State, what: &'static str, patience: i64| {
            let mut stop = || {
                self.around.interrupt.came()
                    || (barrier.state(0) < State::Done && !watch.dead().is_empty())
            };
            let result = barrier.wait_all(state, what, clock::now() + patience, &mut stop);
            if let Some(failure) = barrier.failure(0) {
                return Err(failure);
            }
            result.map_err(|error| match error {
                BarrierError::Stopped if self.around.interrupt.came() => "interrupted".to_owned(),
                BarrierError::Stopped if watch.is_dead(LOAD) => {
                    "the load beside it ended before its time".to_owned()
                }
                BarrierError::Stopped => {
                    with_words("its process ended before its time", cell.log_tail().trim())
                }
                late @ BarrierError::TimedOut { .. } => late.to_string(),
            })
        };
        wait(State::Present, "present", CREATION_NS)?;
        if let Some(held) = held {
            held.join(cell.pid())?;
        }
        barrier.permit(0);
        wait(State::Armed, "armed", CREATION_NS)?;
        let (wanted, got) = (self.class(), host::sched::get_class(cell.pid()));
        let got = got.map_err(|error| error.to_string())?;
        if got != wanted {
            return Err(format!("asked for {wanted}, the kernel reports {got}"));
        }
        if let Some(held) = held {
            held.begin()?;
        }
        if let Some(beside) = beside.as_deref_mut() {
            beside.start(&self.around, watch, LOAD)?;
        }
        barrier.open(Barrier::lead_ns(1));
        let expected = self.setting.stretches.expected_ns(self.subject);
        wait(State::Done, "done", 2 * expected + OVERTIME_NS)?;
        if let Some(beside) = beside {
            beside.close_window();
        }
        // Before it ends: how the kernel takes a process apart is no matter of its supply.
        let reacted = held.map_or(Ok(None), |held| held.reacted())?;
        // The kernel may lose count of a thread that ends in SCHED_DEADLINE. Of one that cannot be released, its end is as good.
        let _ = host::sched::bandwidth::release(cell.pid());
        barrier.leave();
        Ok(reacted)
    }

    /// What holds the thread, and to what; `None`: nothing does.
    fn holder(&self) -> Option<(&'static dyn Holder, &Budget)> {
        let held = self.subject.held.as_ref()?;
        Some((held::by(held.enforcer)?, held))
    }

    fn class(&self) -> Class {
        match self.spin_class() {
            SpinClass::Fifo { priority } => Class::Fifo { priority },
            SpinClass::Deadline {
                budget_ns,
                period_ns,
            } => Class::Deadline {
                runtime_ns: budget_ns,
                deadline_ns: period_ns,
                period_ns,
            },
        }
    }

    fn spin_class(&self) -> SpinClass {
        match self.holder() {
            Some((holder, held)) => holder.class(held, &self.setting.spot),
            None => SpinClass::Fifo {
                priority: self.setting.spot.priority,
            },
        }
    }

    /// Threads beside the measured one.
    fn beside(&self) -> u32 {
        match self.holder() {
            Some((holder, _)) if holder.unshared().is_some() => 0,
            _ => self.setting.threads - 1,
        }
    }

    fn cpus(&self) -> Vec<u32> {
        match self.holder() {
            Some((holder, _)) => holder.cpus(&self.setting.spot),
            None => vec![self.setting.spot.cpu],
        }
    }
}

/// What the host has taken of these cpus since boot, ns; `None` where the kernel does not tell.
pub(crate) fn stolen(cpus: &[u32]) -> Option<u64> {
    let ticks = cpu_use::ticks(&Root::live()).ok()?;
    let ours = ticks.iter().filter(|ticks| cpus.contains(&ticks.cpu));
    Some(ours.map(|ticks| ticks.stolen).sum::<u64>() * host::process::tick_ns().unsigned_abs())
}
