//! Host paths that a cell could redirect: a cell that may write to a directory can replace an entry with a link, and another cell
//! would then be given the target of the link.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::file::Faults;
use crate::mission::machine::resolve;
use crate::mission::{Cell, Image, Machine, Mission, Place};

/// A mount that a cell may write to.
struct Writable<'m> {
    /// Index and name of the cell.
    cell: usize,
    name: &'m str,
    /// As the machine knows it.
    source: PathBuf,
}

/// Reports sources of mounts and images whose path leads through a directory that a cell of the mission may write to. A source
/// that is such a directory itself is shared, which is safe. The same is checked for the `notify` program: it runs on the host,
/// as the supervisor's user.
pub(super) fn check(file: &str, mission: &Mission, machine: &dyn Machine, faults: &mut Faults<'_>) {
    // By where it is.
    let mut writable: HashMap<PathBuf, Writable<'_>> = HashMap::new();
    for (index, cell) in mission.cells.iter().enumerate() {
        for mount in cell.rights.mounts.iter().filter(|mount| mount.writable) {
            let source = resolve(file, &mount.source);
            let Some(way) = machine.way(&source) else {
                continue;
            };
            let by = Writable {
                cell: index,
                name: &cell.name,
                source,
            };
            writable.entry(way.end).or_insert(by);
        }
    }
    if writable.is_empty() {
        return;
    }
    // The cell that may turn a path, if there is one.
    let turned_by = |path: &Path| {
        let way = machine.way(path)?;
        let mut outer = way.through.iter().flat_map(|dir| dir.ancestors());
        outer.find_map(|dir| writable.get(dir))
    };
    if let Some(program) = mission.notify.first() {
        let path = resolve(file, Path::new(program));
        let written = || writable.get(&machine.way(&path)?.end);
        if let Some(by) = turned_by(&path).or_else(written) {
            let (shown, outer) = (path.display(), by.source.display());
            faults.report_at(
                &Place::top().key("notify").item(0),
                format!(
                    "`{shown}` leads through `{outer}`, where cell `{}` may write and so could \
                     replace the program with its own, which would run on the host",
                    by.name
                ),
                format!("move the program out of `{outer}`"),
            );
        }
    }
    for (index, cell) in mission.cells.iter().enumerate() {
        for (place, path, is_mount) in paths(cell, &Place::cell(index)) {
            let path = resolve(file, &path);
            let Some(by) = turned_by(&path) else {
                continue;
            };
            let (shown, outer) = (path.display(), by.source.display());
            let who = match by.cell == index {
                true => "the cell itself".to_owned(),
                false => format!("cell `{}`", by.name),
            };
            let what = format!(
                "`{shown}` leads through `{outer}`, where {who} may write and so could redirect it to any directory of the host"
            );
            let fix = match is_mount {
                true => format!(
                    "mount `{outer}` itself, make that mount read-only, or move this elsewhere"
                ),
                false => {
                    format!("make the mount of `{outer}` read-only, or move the image elsewhere")
                }
            };
            faults.report_at(&place, what, fix);
        }
    }
}

/// A host path that a cell is given: its place, its path, and whether it is the source of a mount.
fn paths(cell: &Cell, at: &Place) -> Vec<(Place, PathBuf, bool)> {
    let place = at.key("image").key(cell.image.key());
    let image = match &cell.image {
        // It names the rest of the image.
        Image::Bundle(dir) => Some(dir.join("config.json")),
        image => image.path().map(Path::to_owned),
    };
    let image = image.map(|path| (place, path, false));
    let mounts = cell.rights.mounts.iter().enumerate().map(|(index, mount)| {
        let place = at.key("rights").key("mounts").item(index).key("source");
        (place, mount.source.clone(), true)
    });
    image.into_iter().chain(mounts).collect()
}
