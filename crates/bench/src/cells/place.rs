//! Putting a payload where it belongs.

use std::path::Path;

use host::rtgroup::RtGroup;
use host::sched::bandwidth::{GIVEN_BACK, set_class_when_free};
use host::sched::{self, Class};

use crate::held::enter;

/// Where a cell belongs before it is armed, apart from its holder.
#[derive(Debug, Default)]
pub(crate) struct Placement<'a> {
    /// A control group with its own cpus.
    pub partition: Option<&'a Path>,
    /// A real-time group that it shares.
    pub rt_group: Option<&'a RtGroup>,
    /// Cpus and class; `None`: the cell takes them itself.
    pub class: Option<(&'a [u32], Class)>,
}

/// A virtual cpu of a machine, whose thread on the host has a place of its own.
#[derive(Debug)]
pub(crate) struct Vcpu<'a> {
    /// The slot of its first task, which is that of its holder.
    pub slot: usize,
    /// Cpus of the host that its thread may use.
    pub cpus: &'a [u32],
    /// The class of its thread.
    pub class: Class,
}

impl Placement<'_> {
    /// Puts a process there; `join` puts it into its holder, while it is in no real-time class.
    pub(super) fn take(
        &self,
        pid: i32,
        join: impl FnOnce() -> Result<(), String>,
    ) -> Result<(), String> {
        if let Some(partition) = self.partition {
            enter(partition, pid)?;
        }
        if let Some(group) = self.rt_group {
            group.add(pid).map_err(|error| error.to_string())?;
        }
        join()?;
        if let Some((cpus, class)) = &self.class {
            sched::set_affinity(pid, cpus).map_err(|error| error.to_string())?;
            set_class_when_free(pid, class, GIVEN_BACK).map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}
