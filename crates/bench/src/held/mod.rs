//! What holds a cell to its budget while it is measured: one file for each enforcer, and a line in [`ALL`]. What a study does with
//! it is elsewhere.

mod deadline;
mod freezer;
mod rt_cgroup;

use model::{Enforcer, Requirement};
use probe::SpinClass;
use record::series::Condition;
use record::supply::{Budget, Reacted};

pub(crate) use deadline::granted as granted_by_deadline;
pub(crate) use freezer::{real_time_us, remove_left as remove_left_by_freezer};

/// Those of [`Enforcer::OF_BENCH`].
const ALL: [&dyn Holder; 3] = [&rt_cgroup::RtCgroup, &deadline::Deadline, &freezer::Freezer];

/// Where a cell is held, and how urgent it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Spot {
    /// Where its threads are pinned.
    pub cpu: u32,
    /// All that this process may use.
    pub allowed: Vec<u32>,
    /// Of its most urgent thread.
    pub priority: u8,
}

/// What that is called which is made for a cell. Both begin with [`group_name`]: by that whoever comes after a `kill -9` finds them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Names<'a> {
    /// The cell's own, by which whoever ends it finds its processes.
    pub id: &'a str,
    /// Of a real-time group, below the root; with another one before it, that is there.
    pub rt_group: &'a str,
}

/// Of the groups of this process, one at a time or one around the others.
pub(crate) fn group_name() -> String {
    format!("timecell-{}", std::process::id())
}

/// The one of this enforcer; `None`: no study knows how to hold a cell by it.
pub(crate) fn by(enforcer: Enforcer) -> Option<&'static dyn Holder> {
    ALL.into_iter().find(|one| one.enforcer() == enforcer)
}

/// The conditions under which these hold.
pub(crate) fn conditions(of: &[Enforcer], spot: &Spot) -> Vec<Condition> {
    (of.iter().filter_map(|enforcer| by(*enforcer)))
        .map(|holder| holder.condition(spot))
        .collect()
}

/// An enforcer under which cells are measured.
pub(crate) trait Holder: Sync {
    /// Which one it is.
    fn enforcer(&self) -> Enforcer;

    /// What it needs of the machine for this budget, met and unmet.
    fn needs(&self, held: &Budget, spot: &Spot) -> Vec<Requirement>;

    /// How the thread is held, for the report.
    fn condition(&self, spot: &Spot) -> Condition;

    /// The class of a cell with one thread.
    fn class(&self, _: &Budget, spot: &Spot) -> SpinClass {
        SpinClass::Fifo {
            priority: spot.priority,
        }
    }

    /// Cpus that the thread may use.
    fn cpus(&self, spot: &Spot) -> Vec<u32> {
        vec![spot.cpu]
    }

    /// Why several tasks cannot share a budget, a clause; `None`: they can.
    fn unshared(&self) -> Option<&'static str> {
        None
    }

    /// Makes what holds the cell of these names on this cpu, before the cell is made; `None`: its class does. The error is one sentence, and
    /// nothing is left behind then.
    fn hold(&self, _: &Budget, _cpu: u32, _: &Names<'_>) -> Result<Option<Box<dyn Held>>, String> {
        Ok(None)
    }
}

/// What holds a cell. It outlives the cell.
pub(crate) trait Held {
    /// Takes a process, while it is in no real-time class.
    fn join(&self, pid: i32) -> Result<(), String>;

    /// The budget is held from now on at the latest.
    fn begin(&self) -> Result<(), String> {
        Ok(())
    }

    /// How exact whoever holds it has been since [`Held::begin`]; `None` where that is the kernel itself.
    fn reacted(&self) -> Result<Option<Reacted>, String> {
        Ok(None)
    }

    /// Removes it; the cell has ended.
    fn end(self: Box<Self>) -> Result<(), String>;
}

/// A cell that is to be held beside others.
pub(crate) struct Wanted {
    /// By what, and to what.
    pub held: Budget,
    /// Where.
    pub cpu: u32,
    /// See [`Names`].
    pub id: String,
    /// See [`Names`].
    pub rt_group: String,
}

/// What holds the cells of a trial, in their order; `None`: the class of its thread does, or nothing.
pub(crate) type Holds = Vec<Option<Box<dyn Held>>>;

/// Makes what holds the cells of a trial: all of it, or nothing is left.
pub(crate) fn hold_all(wanted: &[Option<Wanted>]) -> Result<Holds, String> {
    let mut holds = Vec::new();
    for one in wanted {
        let made = match one
            .as_ref()
            .and_then(|one| Some((by(one.held.enforcer)?, one)))
        {
            Some((holder, one)) => {
                let names = Names {
                    id: &one.id,
                    rt_group: &one.rt_group,
                };
                holder.hold(&one.held, one.cpu, &names)
            }
            None => Ok(None),
        };
        match made {
            Ok(made) => holds.push(made),
            Err(why) => {
                let _ = end_all(holds);
                return Err(why);
            }
        }
    }
    Ok(holds)
}

/// Removes it all; their cells have ended. The first thing that could not be is the error.
pub(crate) fn end_all(holds: Holds) -> Result<(), String> {
    let mut ended = Ok(());
    for held in holds.into_iter().flatten() {
        ended = ended.and(held.end());
    }
    ended
}

/// That this process may write to a directory of control groups.
fn writable(dir: &std::path::Path) -> Result<(), String> {
    let path = std::ffi::CString::new(std::os::unix::ffi::OsStrExt::as_bytes(dir.as_os_str()))
        .map_err(|error| error.to_string())?;
    // SAFETY: a valid C string; nothing is changed.
    match unsafe { libc::access(path.as_ptr(), libc::W_OK) } {
        0 => Ok(()),
        _ => Err(format!(
            "{}: {}",
            dir.display(),
            std::io::Error::last_os_error()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_enforcer_of_the_studies_has_its_file() {
        let all: Vec<Enforcer> = ALL.iter().map(|one| one.enforcer()).collect();
        assert_eq!(all, Enforcer::OF_BENCH);
        assert!(by(Enforcer::CpusetOnly).is_none());
    }
}
