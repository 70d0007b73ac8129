//! Holding a cell to its budget while it is measured: one file for each enforcer, and a line in [`ALL`]. Studies use it.

mod deadline;
mod evl;
mod freezer;
mod hcbs;
mod holder;
mod rt_cgroup;

use model::Enforcer;
use record::{Budget, Condition};

pub(crate) use freezer::real_time_us;
pub(crate) use holder::{
    Held, Holder, Names, Spot, class_of, enter, group_name, per_second_us, together_us,
};

/// Those of [`Enforcer::OF_SUPPLY`].
const ALL: [&dyn Holder; 6] = [
    &rt_cgroup::RtCgroup,
    &deadline::Deadline,
    &hcbs::Hcbs,
    &freezer::Freezer,
    &evl::Evl(::evl::Kind::Quota),
    &evl::Evl(::evl::Kind::Partition),
];

/// The holder of this enforcer; `None`: no study can hold a cell by it.
pub(crate) fn by(enforcer: Enforcer) -> Option<&'static dyn Holder> {
    ALL.into_iter().find(|one| one.enforcer() == enforcer)
}

/// The names of those that hold whole cells.
pub(crate) fn of_whole_cells() -> Vec<&'static str> {
    (ALL.iter().filter(|one| one.unshared().is_none()))
        .map(|one| one.enforcer().name())
        .collect()
}

/// The conditions under which these hold.
pub(crate) fn conditions(of: &[Enforcer], spot: &Spot) -> Vec<Condition> {
    (of.iter().filter_map(|enforcer| by(*enforcer)))
        .map(|holder| holder.condition(spot))
        .collect()
}

/// A cell that is to be held.
pub(crate) struct Wanted {
    /// Enforcer and budget.
    pub held: Budget,
    /// Where.
    pub cpu: u32,
    /// See [`Names`].
    pub id: String,
    /// See [`Names`].
    pub rt_group: String,
}

impl Wanted {
    /// The names of its holder.
    pub(crate) fn names(&self) -> Names<'_> {
        Names {
            id: &self.id,
            rt_group: &self.rt_group,
        }
    }
}

/// Removes the holders of a killed process's cells; its cells were ended before.
pub(crate) fn remove_left(name: &str) -> Result<(), String> {
    let mut removed = Ok(());
    for one in ALL {
        removed = removed.and(one.remove_left(name));
    }
    removed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_whole_cells_says_how_and_what_else_holds_threads() {
        for one in ALL {
            let by_thread = one.means(&record::Machine::here()).is_none();
            assert_eq!(by_thread, one.unshared().is_some(), "{:?}", one.enforcer());
        }
    }

    #[test]
    fn every_enforcer_of_the_studies_has_its_file() {
        let all: Vec<Enforcer> = ALL.iter().map(|one| one.enforcer()).collect();
        assert_eq!(all, Enforcer::OF_SUPPLY);
        assert!(by(Enforcer::CpusetOnly).is_none());
    }
}
