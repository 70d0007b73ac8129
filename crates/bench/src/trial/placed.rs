//! Putting a payload where it belongs.

use std::path::Path;

use host::sched;
use host::sched::bandwidth::{GIVEN_BACK, set_class_when_free};
use model::EngineKind;
use record::trial::{CellRecord, SetBy};

use crate::context::Trial;
use crate::payload::class;
use crate::verify::allowed;

/// Puts the payload in the run's real-time group and, where the cell may not do so itself, sets class and cpu.
#[expect(clippy::disallowed_methods, reason = "a control group")]
pub(crate) fn place_cell(
    trial: &Trial<'_>,
    partition: Option<&Path>,
    index: usize,
    cell: &CellRecord,
    pid: i32,
) -> Result<(), String> {
    if let Some(group) = partition {
        let file = group.join("cgroup.procs");
        std::fs::write(&file, pid.to_string())
            .map_err(|error| format!("{}: {error}", file.display()))?;
    }
    // Of a crowd, plain processes too: without a budget below the root's they would throttle the root itself.
    if (cell.engine != EngineKind::Bare || trial.plan.experiment.scale.is_some())
        && let Some(group) = trial.rt_group
    {
        group.add(pid).map_err(|error| error.to_string())?;
    }
    if cell.set_by == SetBy::Coordinator {
        sched::set_affinity(pid, allowed(cell)).map_err(|error| error.to_string())?;
        set_class_when_free(pid, &class(trial, index), GIVEN_BACK)
            .map_err(|error| error.to_string())?;
    }
    Ok(())
}
