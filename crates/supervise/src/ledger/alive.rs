//! Whether the holder of an entry still exists: cells outlive their supervisor.

use std::path::Path;

use crate::names;

/// Whether cells of this mission, whose directory is `dir`, still run.
pub(super) fn mission(name: &str, dir: &Path) -> bool {
    engine::any_lives(&names::cells_of(name)) || journal_says(name, dir)
}

/// Cells of an earlier timecell have other names; their journal knows their processes.
fn journal_says(name: &str, dir: &Path) -> bool {
    let Ok(state) = crate::control::state(dir) else {
        return false;
    };
    let own = state.mission.as_deref() == Some(name);
    own && state.instances().any(|(_, _, instance)| {
        let started = instance.started.as_ref();
        started.is_some_and(|started| started.process.still_runs().unwrap_or(true))
    })
}
