//! What holds a thread to its budget while it is measured: one file for each enforcer, and a line in [`ALL`]. What a study does with
//! it is elsewhere.

mod deadline;
mod freezer;
mod rt_cgroup;

use model::{Enforcer, Requirement};
use probe::SpinClass;
use record::series::Condition;
use record::supply::{Budget, Reacted};

use super::Setting;
pub(crate) use deadline::deadline;
pub(crate) use freezer::remove_left as remove_left_by_freezer;
pub(crate) use rt_cgroup::groups;

/// Those of [`Enforcer::OF_SUPPLY`].
const ALL: [&dyn Holder; 3] = [&rt_cgroup::RtCgroup, &deadline::Deadline, &freezer::Freezer];

/// The one of this enforcer; `None`: its supply cannot be measured.
pub(super) fn by(enforcer: Enforcer) -> Option<&'static dyn Holder> {
    ALL.into_iter().find(|one| one.enforcer() == enforcer)
}

/// The conditions under which these hold.
pub(super) fn conditions(of: &[Enforcer], setting: &Setting) -> Vec<Condition> {
    (of.iter().filter_map(|enforcer| by(*enforcer)))
        .map(|holder| holder.condition(setting))
        .collect()
}

/// An enforcer whose supply is measured.
pub(super) trait Holder: Sync {
    /// Which one it is.
    fn enforcer(&self) -> Enforcer;

    /// What it needs of the machine for this budget, met and unmet.
    fn needs(&self, held: &Budget, setting: &Setting) -> Vec<Requirement>;

    /// How the thread is held, for the report.
    fn condition(&self, setting: &Setting) -> Condition;

    /// The class of the thread.
    fn class(&self, _: &Budget, setting: &Setting) -> SpinClass {
        SpinClass::Fifo {
            priority: setting.priority,
        }
    }

    /// Cpus that the thread may use.
    fn cpus(&self, setting: &Setting) -> Vec<u32> {
        vec![setting.cpu]
    }

    /// Why several tasks cannot share a budget, a clause; `None`: they can.
    fn unshared(&self) -> Option<&'static str> {
        None
    }

    /// Makes what holds the cell with this id on this cpu, before the cell is made; `None`: its class does. The error is one sentence, and
    /// nothing is left behind then.
    fn hold(&self, _: &Budget, _cpu: u32, _id: &str) -> Result<Option<Box<dyn Held>>, String> {
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
    fn every_enforcer_of_the_study_has_its_file() {
        let all: Vec<Enforcer> = ALL.iter().map(|one| one.enforcer()).collect();
        assert_eq!(all, Enforcer::OF_SUPPLY);
        assert!(by(Enforcer::CpusetOnly).is_none());
    }
}
