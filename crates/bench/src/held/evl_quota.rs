//! Quota groups of EVL: a group for the cell, which its thread enters by itself when it goes out of band.

use analysis::linux::Means;
use host::enforcers;
use host::evl_quota::{Kept, Owned};
use host::root::Root;
use model::{Enforcer, Requirement};
use record::{Budget, Condition, Machine};

use super::holder::{Held, Holder, Names, Spot, and_fifo, group_name};

pub(super) struct EvlQuota;

impl Holder for EvlQuota {
    fn enforcer(&self) -> Enforcer {
        Enforcer::EvlQuota
    }

    fn needs(&self, held: &Budget, spot: &Spot) -> Vec<Requirement> {
        and_fifo(quota(held), spot.priority)
    }

    fn condition(&self, spot: &Spot) -> Condition {
        Condition::new(
            "evl-quota",
            format!(
                "a thread of EVL at {} in a quota group of its own, pinned to cpu {}, out of band in each stretch; its cpu time \
                 is by EVL's clock",
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
        let percent = evl::percent(held.budget_ns, held.period_ns)?;
        let owned = Owned::by(&group_name());
        let made = owned.make(names.id, &[cpu], percent);
        let kept = made.map_err(|error| error.to_string())?;
        Ok(Some(Box::new(Group { owned, kept })))
    }

    fn remove_left(&self, name: &str) -> Result<(), String> {
        let owned = Owned::by(name);
        owned.retain(|_| false).map_err(|error| error.to_string())
    }
}

struct Group {
    owned: Owned,
    kept: Kept,
}

impl Held for Group {
    /// Its thread enters the group by itself.
    fn join(&self, _: i32) -> Result<(), String> {
        Ok(())
    }

    fn words(&self) -> Vec<String> {
        let groups = self.kept.groups.iter();
        groups
            .map(|group| format!("group={}", group.number))
            .collect()
    }

    fn end(self: Box<Self>) -> Result<(), String> {
        let removed = self.owned.remove(&self.kept.place);
        removed.map_err(|error| error.to_string())
    }
}

/// Whether EVL has such a quota.
fn quota(held: &Budget) -> Requirement {
    let what = "evl-quota (a kernel with EVL and its quotas)";
    let here = enforcers::here(&Root::live(), Enforcer::EvlQuota);
    let found = match here.map_err(|why| why.to_string()) {
        Ok(found) => found,
        Err(why) => {
            return Requirement::unmet(
                what,
                why,
                "use a kernel with EVL (timecell doctor shows it)",
            );
        }
    };
    if let Err(why) = evl::percent(held.budget_ns, held.period_ns) {
        let fix = "request another one, such as --reservation 300ms/1s";
        return Requirement::unmet(what, why, fix);
    }
    match evl::Quotas::open() {
        Ok(_) => Requirement::met(what, found),
        Err(why) => Requirement::unmet(what, why.to_string(), "run the same command with sudo"),
    }
}
