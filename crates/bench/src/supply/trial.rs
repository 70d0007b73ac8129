//! One trial: a thread that spins inside a budget.

use engine::{Cell, CellSpec, Rights};
use host::cpu_use;
use host::root::Root;
use host::rtgroup::RtGroup;
use host::sched::Class;
use model::Enforcer;
use model::EngineKind;
use probe::control::State;
use probe::{Barrier, BarrierError, SpinClass, SupplyArgs, clock, prepare_gaps};
use record::run::Run;
use record::supply::SupplyTrial;

use super::{Setting, Subject};
use crate::interrupt::Interrupt;
use crate::launch::Stage;
use crate::load::with_words;
use crate::watch::Watch;

/// Longest time for the process to come to be, ns; waiting for bandwidth that is given back is part of it.
const CREATION_NS: i64 = 30_000_000_000;
/// Time beyond the expected in which a thread must have ended, ns: a budget of a thousandth stretches its last steps.
const OVERTIME_NS: i64 = 60_000_000_000;

/// One trial that is to take place.
pub(super) struct Trial<'a> {
    pub subject: &'a Subject,
    pub number: u32,
    pub round: u32,
    pub setting: &'a Setting,
    pub stage: &'a Stage,
    pub interrupt: &'a Interrupt,
    /// Where the gaps go.
    pub run: &'a Run,
}

impl Trial<'_> {
    /// Runs it. What fails is on the record; nothing of the trial stays on the machine.
    pub(super) fn run(&self) -> SupplyTrial {
        let mut record = SupplyTrial {
            number: self.number,
            round: self.round,
            held: self.subject.held,
            class: self.class().to_string(),
            cpus: self.cpus(),
            steal_ns: None,
            failure: None,
        };
        let before = stolen(&record.cpus);
        record.failure = self.measure().err();
        let stolen = before.zip(stolen(&record.cpus));
        record.steal_ns = stolen.map(|(before, after)| after.saturating_sub(before));
        record
    }

    fn measure(&self) -> Result<(), String> {
        let say = |error: std::io::Error| error.to_string();
        let laid = self.setting.stretches.of(self.subject, self.round);
        let gaps = self.stage.shared.join("gaps");
        prepare_gaps(&gaps, laid.each.len())
            .map_err(|error| format!("{}: {error}", gaps.display()))?;
        let control = self.stage.shared.join("control");
        match std::fs::remove_file(&control) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(format!("{}: {error}", control.display()));
            }
            _ => {}
        }
        let barrier = Barrier::create(&control, 1).map_err(say)?;
        let watch = Watch::start(barrier.waker()).map_err(say)?;
        self.interrupt.wakes(Some(barrier.waker()));
        let args = SupplyArgs {
            control: "/cell/control".to_owned(),
            slot: 0,
            gaps: "/cell/gaps".to_owned(),
            class: self.spin_class(),
            cpus: self.cpus(),
            stretches: laid.each,
            rest_ns: laid.rest_ns,
            grid_ns: self.setting.stretches.tick_ns,
        };
        let result = self.in_group(&args, &barrier, &watch);
        self.interrupt.wakes(None);
        result?;
        self.run
            .keep_gaps(self.number, &gaps)
            .map_err(|error| error.to_string())
    }

    /// The group outlives the cell, which must have left it.
    fn in_group(&self, args: &SupplyArgs, barrier: &Barrier, watch: &Watch) -> Result<(), String> {
        let say = |error: host::rtgroup::RtGroupError| error.to_string();
        let group = match self.subject.held {
            Some(held) if held.enforcer == Enforcer::RtCgroup => {
                let (budget, period) = (held.budget_ns / 1_000, held.period_ns / 1_000);
                Some(RtGroup::create(&group_name(), budget, period).map_err(say)?)
            }
            _ => None,
        };
        let measured = self.in_cell(args, group.as_ref(), barrier, watch);
        let removed = group.map_or(Ok(()), |group| group.remove().map_err(say));
        measured.and(removed)
    }

    fn in_cell(
        &self,
        args: &SupplyArgs,
        group: Option<&RtGroup>,
        barrier: &Barrier,
        watch: &Watch,
    ) -> Result<(), String> {
        let spec = self.spec(args)?;
        let engine = engine::by_kind(EngineKind::Bare, &engine::Options::default());
        let mut cell = engine.create(&spec).map_err(|error| error.to_string())?;
        watch.add(0, cell.pid());
        let measured = self.spin(cell.as_ref(), group, barrier, watch);
        barrier.abort();
        let removed = cell.remove().map_err(|error| error.to_string());
        let _ = std::fs::remove_dir_all(&spec.work_dir);
        measured.and(removed)
    }

    fn spec(&self, args: &SupplyArgs) -> Result<CellSpec, String> {
        let name = format!("{}-supply", self.number);
        let spec = (self.stage)
            .spec(&name, EngineKind::Bare, None, args.to_words())
            .map_err(|error| error.to_string())?;
        Ok(CellSpec {
            rights: Rights {
                rtprio: self.setting.priority,
                memlock_bytes: 128 << 20,
                devices: Vec::new(),
            },
            ..spec
        })
    }

    fn spin(
        &self,
        cell: &dyn Cell,
        group: Option<&RtGroup>,
        barrier: &Barrier,
        watch: &Watch,
    ) -> Result<(), String> {
        let wait = |state: State, what: &'static str, patience: i64| {
            let mut stop = || {
                self.interrupt.came()
                    || (barrier.state(0) < State::Done && !watch.dead().is_empty())
            };
            let result = barrier.wait_all(state, what, clock::now() + patience, &mut stop);
            if let Some(failure) = barrier.failure(0) {
                return Err(failure);
            }
            result.map_err(|error| match error {
                BarrierError::Stopped if self.interrupt.came() => "interrupted".to_owned(),
                BarrierError::Stopped => {
                    with_words("its process ended before its time", cell.log_tail().trim())
                }
                late @ BarrierError::TimedOut { .. } => late.to_string(),
            })
        };
        wait(State::Present, "present", CREATION_NS)?;
        if let Some(group) = group {
            // While it is in no real-time class: a group takes a thread of one only with a budget.
            group.add(cell.pid()).map_err(|error| error.to_string())?;
        }
        barrier.permit(0);
        wait(State::Armed, "armed", CREATION_NS)?;
        let (wanted, got) = (self.class(), host::sched::get_class(cell.pid()));
        let got = got.map_err(|error| error.to_string())?;
        if got != wanted {
            return Err(format!("asked for {wanted}, the kernel reports {got}"));
        }
        barrier.open(Barrier::lead_ns(1));
        let expected = self.setting.stretches.expected_ns(self.subject);
        wait(State::Done, "done", 2 * expected + OVERTIME_NS)?;
        // The kernel may lose count of a thread that ends in SCHED_DEADLINE. Of one that cannot be released, its end is as good.
        let _ = host::sched::bandwidth::release(cell.pid());
        barrier.leave();
        Ok(())
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
        match self.subject.held {
            Some(held) if held.enforcer == Enforcer::Deadline => SpinClass::Deadline {
                budget_ns: held.budget_ns,
                period_ns: held.period_ns,
            },
            _ => SpinClass::Fifo {
                priority: self.setting.priority,
            },
        }
    }

    fn cpus(&self) -> Vec<u32> {
        match self.spin_class() {
            SpinClass::Fifo { .. } => vec![self.setting.cpu],
            SpinClass::Deadline { .. } => self.setting.allowed.clone(),
        }
    }
}

/// What the host has taken of these cpus since boot, ns; `None` where the kernel does not tell.
pub(crate) fn stolen(cpus: &[u32]) -> Option<u64> {
    let ticks = cpu_use::ticks(&Root::live()).ok()?;
    let ours = ticks.iter().filter(|ticks| cpus.contains(&ticks.cpu));
    Some(ours.map(|ticks| ticks.stolen).sum::<u64>() * host::process::tick_ns().unsigned_abs())
}

/// Of the groups of this process, one at a time or one around the others.
pub(crate) fn group_name() -> String {
    format!("timecell-{}", std::process::id())
}
