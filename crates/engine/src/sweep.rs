//! Removing the remains of cells whose coordinator was killed.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use model::EngineKind;

use crate::app::freezer;
use crate::engines::info;
use crate::identity::{Identity, Noted};
use crate::{EngineError, made, marks, note};

/// Removes all remains of the cell of this private directory after its coordinator was killed.
///
/// Does nothing if there is no note of a cell; may be called again. The cell's log stays.
///
/// # Errors
/// Names the parts that could not be removed.
pub fn sweep(work_dir: &Path) -> Result<(), EngineError> {
    let spec = match note::read(work_dir) {
        Ok(Some(spec)) => spec,
        Ok(None) => return Ok(()),
        Err(source) => {
            return Err(EngineError {
                engine: EngineKind::Bare,
                doing: "read the note of a left cell".to_owned(),
                source,
            });
        }
    };
    thaw(&[&spec]);
    made::clear(&spec, info(spec.engine).wipe)
        .map_err(|cause| made::error(&spec, "sweep the cell away", cause))
}

/// Thaws the cells: a frozen cell could not be killed.
fn thaw(cells: &[&Noted]) {
    // Without cgroups nothing is frozen.
    if let Ok(cgroups) = host::cgroup::detect() {
        for cell in cells {
            freezer::thaw_if_there(&cgroups, &cell.id);
        }
    }
}

/// Whether the cell of this private directory is there, whole or in part.
pub fn is_left(work_dir: &Path) -> bool {
    note::path(work_dir).exists()
}

/// Cells that are removed at the same time.
const AT_ONCE: usize = 8;

/// As [`sweep`] for the cells of many private directories: all of their processes are killed first, so that a crowd at
/// high priority does not hold up its own removal. Returns how many cells there were, and the failed removals.
pub fn sweep_many(work_dirs: &[PathBuf]) -> (usize, Vec<EngineError>) {
    let mut specs = Vec::new();
    let mut left = Mutex::new(Vec::new());
    for dir in work_dirs {
        match note::read(dir) {
            Ok(spec) => specs.extend(spec),
            // Says why.
            Err(_) => left
                .get_mut()
                .unwrap_or_else(PoisonError::into_inner)
                .extend(sweep(dir).err()),
        }
    }
    thaw(&specs.iter().collect::<Vec<_>>());
    let cells: Vec<&dyn Identity> = specs.iter().map(|spec| spec as &dyn Identity).collect();
    for source in marks::kill_of_each(&cells) {
        let failed = EngineError {
            engine: EngineKind::Bare,
            doing: "end the processes of left cells".to_owned(),
            source,
        };
        left.get_mut()
            .unwrap_or_else(PoisonError::into_inner)
            .push(failed);
    }
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(spec) = specs.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(cause) = made::finish(spec, info(spec.engine).wipe) {
                let failed = made::error(spec, "sweep the cell away", cause);
                left.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(failed);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..AT_ONCE.min(specs.len()) {
            // Where no more threads are to be had, this one does all.
            let _ = std::thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
    let left = left.into_inner().unwrap_or_else(PoisonError::into_inner);
    (specs.len(), left)
}
