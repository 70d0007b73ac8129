//! Quota groups and time partitions of EVL: one for the cell, which its thread enters by itself when it goes out of band.

use ::evl::{Group, Kind, Window};
use analysis::linux::{Frames, Means};
use host::enforcers;
use host::evl_quota::{Kept, Owned};
use host::evl_tp::Partitioned;
use host::root::Root;
use model::{Enforcer, Requirement};
use record::{Budget, Condition, Machine};

use super::holder::{Held, Holder, Names, Spot, and_fifo, group_name};

pub(super) struct Evl(pub Kind);

impl Holder for Evl {
    fn enforcer(&self) -> Enforcer {
        match self.0 {
            Kind::Quota => Enforcer::EvlQuota,
            Kind::Partition => Enforcer::EvlTp,
        }
    }

    fn needs(&self, held: &Budget, spot: &Spot) -> Vec<Requirement> {
        and_fifo(had(held), spot.priority)
    }

    fn condition(&self, spot: &Spot) -> Condition {
        let within = match self.0 {
            Kind::Quota => "a quota group of its own",
            Kind::Partition => "a time partition, which has one window at the begin of each period",
        };
        Condition::new(
            self.enforcer().name(),
            format!(
                "a thread of EVL at {} in {within}, pinned to cpu {}, out of band in each stretch; its cpu time is by EVL's clock",
                spot.priority, spot.cpu
            ),
        )
    }

    fn in_contest(&self) -> &'static str {
        "not at all: sets of tasks are not run out of band"
    }

    fn means(&self, _: &Machine) -> Option<Means> {
        None
    }

    fn free_us(&self) -> u64 {
        1_000_000
    }

    fn is_throttled(&self) -> bool {
        false
    }

    fn unshared(&self) -> Option<&'static str> {
        Some("sets of tasks are not run out of band")
    }

    fn hold(
        &self,
        held: &Budget,
        cpu: u32,
        names: &Names<'_>,
    ) -> Result<Option<Box<dyn Held>>, String> {
        let number = match self.0 {
            Kind::Quota => {
                let percent = ::evl::percent(held.budget_ns, held.period_ns)?;
                let made = Owned::by(&group_name()).make(names.id, &[cpu], percent);
                made.map_err(|error| error.to_string())?.groups[0].number
            }
            Kind::Partition => {
                let kept = Kept {
                    place: names.id.to_owned(),
                    percent: 0,
                    groups: vec![Group { cpu, number: 0 }],
                };
                let run = Partitioned::by(&group_name()).run(&[(cpu, windows(held)?)], &[kept]);
                run.map_err(|error| error.to_string())?;
                0
            }
        };
        Ok(Some(Box::new(Entered {
            kind: self.0,
            place: names.id.to_owned(),
            number,
        })))
    }

    fn remove_left(&self, name: &str) -> Result<(), String> {
        self.keep(name, |_| false)
    }
}

impl Evl {
    /// Removes those of this owner that are not kept.
    fn keep(&self, owner: &str, keeps: impl Fn(&Kept) -> bool) -> Result<(), String> {
        let removed = match self.0 {
            Kind::Quota => Owned::by(owner).retain(keeps),
            Kind::Partition => Partitioned::by(owner).retain(keeps),
        };
        removed.map_err(|error| error.to_string())
    }
}

/// The frame of a cell alone on its cpu.
fn windows(held: &Budget) -> Result<Vec<Window>, String> {
    let most = enforcers::evl_tp(&Root::live()).map_err(|why| why.to_string())?;
    let frames = Frames::of(&[(held.budget_ns, held.period_ns)], most);
    let slots = frames.map_err(|why| why.to_string())?.slots.into_iter();
    Ok(slots
        .map(|slot| Window {
            length_ns: slot.length,
            partition: slot.of.map(|_| 0),
        })
        .collect())
}

/// The group or partition of a cell.
struct Entered {
    kind: Kind,
    place: String,
    number: i32,
}

impl Held for Entered {
    /// Its thread enters it by itself.
    fn join(&self, _: i32) -> Result<(), String> {
        Ok(())
    }

    fn words(&self) -> Vec<String> {
        vec![format!("{}={}", self.kind.word(), self.number)]
    }

    fn end(self: Box<Self>) -> Result<(), String> {
        Evl(self.kind).keep(&group_name(), |kept| kept.place != self.place)
    }
}

/// Whether EVL has such a quota, or such windows.
fn had(held: &Budget) -> Requirement {
    let (what, fits) = match held.enforcer {
        Enforcer::EvlQuota => (
            "evl-quota (a kernel with EVL and its quotas)",
            ::evl::percent(held.budget_ns, held.period_ns).map(drop),
        ),
        _ => (
            "evl-tp (a kernel with EVL and its time partitions)",
            windows(held).map(drop),
        ),
    };
    const KERNEL: &str = "use a kernel with EVL (timecell doctor shows it)";
    let found = match enforcers::here(&Root::live(), held.enforcer).map_err(|why| why.to_string()) {
        Ok(found) => found,
        Err(why) => return Requirement::unmet(what, why, KERNEL),
    };
    if let Err(why) = fits {
        let fix = "request another one, such as --reservation 300ms/1s";
        return Requirement::unmet(what, why, fix);
    }
    match ::evl::Quotas::open() {
        Ok(_) => Requirement::met(what, found),
        Err(why) => {
            let is_root = rustix::process::geteuid().is_root();
            let fix = if is_root {
                KERNEL
            } else {
                "run the same command with sudo"
            };
            Requirement::unmet(what, why.to_string(), fix)
        }
    }
}
