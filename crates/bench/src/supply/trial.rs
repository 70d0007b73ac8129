//! One trial: a thread that spins inside a budget.

use host::cpu_use;
use host::root::Root;
use host::sched::Class;
use probe::{SpinClass, SupplyArgs, prepare_gaps};
use record::run::Run;
use record::supply::SupplyTrial;
use record::{Budget, Reacted};

use super::setting::Setting;
use super::subject::Subject;
use crate::held::{self, Holder, group_name};
use crate::load::PlannedLoad;
use crate::together::{self, Around, Beside, Member};

/// The cell's name.
const MEMBER: &str = "supply";

/// One trial that is to take place.
pub(super) struct Trial<'a> {
    pub subject: &'a Subject,
    pub round: u32,
    pub setting: &'a Setting,
    /// Load beside it.
    pub load: Option<&'a PlannedLoad>,
    pub around: Around<'a>,
    /// Where the gaps go.
    pub run: &'a Run,
}

impl Trial<'_> {
    /// Runs it. Failures are on the record; nothing of the trial stays on the machine.
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
        let mut beside = self.load.map(|load| Beside::new(load, &self.around));
        let measure = || self.measure(beside.as_mut());
        let (steal_ns, measured) = stolen_while(&record.cpus, measure);
        match measured {
            Ok(reacted) => record.reacted = reacted,
            Err(failure) => record.failure = Some(failure),
        }
        record.load = beside.map(|beside| beside.record);
        record.steal_ns = steal_ns;
        record
    }

    fn measure(&self, beside: Option<&mut Beside<'_>>) -> Result<Option<Reacted>, String> {
        let laid = self.setting.stretches.of(self.subject, self.round);
        let gaps = self.around.stage.shared.join("gaps");
        prepare_gaps(&gaps, laid.each.len())
            .map_err(|error| format!("{}: {error}", gaps.display()))?;
        let args = SupplyArgs {
            control: "/cell/control".to_owned(),
            slot: 0,
            gaps: "/cell/gaps".to_owned(),
            class: self.spin_class(),
            beside: self.beside(),
            group: None,
            cpus: self.cpus(),
            stretches: laid.each,
            rest_ns: laid.rest_ns,
            grid_ns: self.setting.stretches.tick_ns,
        };
        let spot = &self.setting.spot;
        let member = Member {
            name: MEMBER.to_owned(),
            words: args.to_words(),
            slots: 0..1,
            classes: vec![self.class()],
            rtprio: spot.priority,
            held: (self.holder())
                .map(|(_, held)| (self.around).wanted(MEMBER, *held, spot.cpu, group_name())),
        };
        let expected_ns = self.setting.stretches.expected_ns(self.subject);
        let reacted = together::run(&self.around, &[member], None, beside, expected_ns)?;
        (self.run.keep_gaps(self.around.number, &gaps)).map_err(|error| error.to_string())?;
        Ok(reacted.into_iter().next().flatten())
    }

    /// The thread's holder and budget; `None`: nothing holds it.
    fn holder(&self) -> Option<(&'static dyn Holder, &Budget)> {
        let held = self.subject.held.as_ref()?;
        Some((held::by(held.enforcer)?, held))
    }

    fn class(&self) -> Class {
        held::class_of(self.spin_class())
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

/// Measures, and returns the steal time of these cpus meanwhile, ns; `None` if the kernel does not report it.
pub(crate) fn stolen_while<T>(cpus: &[u32], measure: impl FnOnce() -> T) -> (Option<u64>, T) {
    let before = stolen(cpus);
    let measured = measure();
    let stolen = before.zip(stolen(cpus));
    let steal_ns = stolen.map(|(before, after)| after.saturating_sub(before));
    (steal_ns, measured)
}

/// Steal time of these cpus since boot, ns.
fn stolen(cpus: &[u32]) -> Option<u64> {
    let ticks = cpu_use::ticks(&Root::live()).ok()?;
    let ours = ticks.iter().filter(|ticks| cpus.contains(&ticks.cpu));
    Some(ours.map(|ticks| ticks.stolen).sum::<u64>() * host::process::tick_ns().unsigned_abs())
}
