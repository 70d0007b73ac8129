//! Schedules of time partitions of EVL that timecell installed. The core keeps them until somebody removes them, and does not say whose
//! they are, so that each owner has a file in memory which remembers its own.

use ::evl::Schedules;

pub use ::evl::{Group, Window};

use crate::enforcers;
use crate::evl_quota::{Kept, Owned, QuotaError, owners_of};
use crate::root::Root;

const PARTITIONS: &str = "evl-tp";

/// The cells of one owner, such as a mission, that have time partitions.
#[derive(Debug, Clone)]
pub struct Partitioned {
    owned: Owned,
}

/// All owners of which partitions are remembered.
pub fn owners() -> Vec<String> {
    owners_of(PARTITIONS)
}

/// The windows of a cpu as the core has them; empty: it has none.
///
/// # Errors
/// If the core refuses.
pub fn windows(cpu: u32) -> Result<Vec<Window>, QuotaError> {
    let most = enforcers::evl_tp(&Root::live())?;
    Ok(Schedules::open()?.get(cpu, most)?.unwrap_or_default())
}

fn cpus(of: &[Kept]) -> Vec<u32> {
    let groups = of.iter().flat_map(|kept| &kept.groups);
    groups.map(|group| group.cpu).collect()
}

impl Partitioned {
    /// Those of the owner of this name, which is part of a path.
    pub fn by(owner: &str) -> Partitioned {
        Partitioned {
            owned: Owned::of_kind(PARTITIONS, owner),
        }
    }

    /// The partitions of this cell.
    ///
    /// # Errors
    /// As [`Owned::all`].
    pub fn of(&self, place: &str) -> Result<Option<Kept>, QuotaError> {
        self.owned.of(place)
    }

    /// Has cpus go through these windows, and remembers the partitions of these cells in them; a cpu that does so already goes on.
    ///
    /// # Errors
    /// If threads are in the partitions that a cpu has, others have installed a schedule there, or the core refuses; or as [`Owned::all`].
    pub fn run(&self, all: &[(u32, Vec<Window>)], cells: &[Kept]) -> Result<(), QuotaError> {
        let most = enforcers::evl_tp(&Root::live())?;
        let schedules = Schedules::open()?;
        let before = self.owned.all()?;
        let own = cpus(&before);
        let is_new = |kept: &&Kept| cells.iter().all(|cell| cell.place != kept.place);
        let with: Vec<Kept> = (before.iter().filter(is_new))
            .chain(cells)
            .cloned()
            .collect();
        // Before any is there, so that none is forgotten by one that is killed.
        self.owned.remember(&with)?;
        let mut begun = Vec::new();
        let each = all.iter().try_for_each(|(cpu, windows)| {
            match schedules.get(*cpu, most)? {
                Some(there) if there == *windows && own.contains(cpu) => return Ok(()),
                Some(_) if !own.contains(cpu) => return Err(QuotaError::Foreign(*cpu)),
                _ => schedules.run(*cpu, windows, most)?,
            }
            begun.push(*cpu);
            Ok(())
        });
        if each.is_err() {
            for cpu in begun.iter().filter(|cpu| !own.contains(cpu)) {
                let _ = schedules.remove(*cpu, most);
            }
            self.owned.remember(&before)?;
        }
        each
    }

    /// Forgets all cells but those that are kept, and removes the schedules of cpus on which none is left.
    ///
    /// # Errors
    /// If threads are left in one, which stays, and is remembered, or as [`Owned::all`].
    pub fn retain(&self, keeps: impl Fn(&Kept) -> bool) -> Result<(), QuotaError> {
        let all = self.owned.all()?.into_iter();
        let (mut stay, go): (Vec<Kept>, Vec<Kept>) = all.partition(&keeps);
        if go.is_empty() {
            return self.owned.retain(keeps);
        }
        let used = cpus(&stay);
        let schedules = Schedules::open()?;
        let most = enforcers::evl_tp(&Root::live())?;
        let mut result = Ok(());
        for kept in go {
            let own = cpus(std::slice::from_ref(&kept)).into_iter();
            let removed = own
                .filter(|cpu| !used.contains(cpu))
                .try_for_each(|cpu| schedules.remove(cpu, most));
            if let Err(why) = removed {
                stay.push(kept);
                result = result.and(Err(why.into()));
            }
        }
        self.owned.remember(&stay).and(result)
    }
}
