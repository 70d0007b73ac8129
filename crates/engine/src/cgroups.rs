//! Removing the cgroups of a cell. Every engine is told to put them under `/<id>` of each hierarchy.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use host::root::Root;

/// How long the kernel may need to let go of a group whose processes have ended.
const PATIENCE: Duration = Duration::from_secs(2);

/// Removes `/<id>` with everything below in every hierarchy.
pub(crate) fn remove(id: &str) -> Result<(), String> {
    for dir in places(id) {
        remove_tree(&dir).map_err(|error| format!("cgroup {}: {error}", dir.display()))?;
    }
    Ok(())
}

fn places(id: &str) -> Vec<PathBuf> {
    let Ok(cgroups) = host::cgroup::detect() else {
        return Vec::new();
    };
    let mut places: Vec<PathBuf> = cgroups
        .v1
        .iter()
        .chain(&cgroups.v2)
        .map(|mount| mount.point.join(id))
        .collect();
    // Without root, a runtime can only make groups below its own.
    places.extend(cgroups.v2_group(&Root::live(), 0).map(|own| own.join(id)));
    places.retain(|place| place.is_dir());
    places
}

fn remove_tree(dir: &Path) -> io::Result<()> {
    if let Ok(entries) = fs::read_dir(dir) {
        for entry in entries.flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                remove_tree(&entry.path())?;
            }
        }
    }
    let began = Instant::now();
    loop {
        match fs::remove_dir(dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error)
                if error.raw_os_error() == Some(libc::EBUSY) && began.elapsed() < PATIENCE =>
            {
                std::thread::sleep(Duration::from_millis(2));
            }
            done => return done,
        }
    }
}
