//! Checks of rights: nothing that lets a cell escape.

use std::collections::HashMap;
use std::path::{Component, Path};

use crate::file::Faults;
use crate::file::nearest;
use crate::mission::capability::{allowed, escape, is_known};
use crate::mission::{Cell, Network, Place};

/// File systems of the kernel, through which a cell could escape.
const KERNEL: [&str; 3] = ["/proc", "/sys", "/dev"];
/// Below the latter only shared memory may be mounted.
const SHARED_MEMORY: &str = "/dev/shm";
/// Devices through which the machine's memory can be written.
const MEMORY: [&str; 4] = ["/dev/mem", "/dev/kmem", "/dev/port", "/dev/kmsg"];

/// Rights that would let the cell escape, and places that are given twice.
pub(super) fn check(cell: &Cell, place: &Place, faults: &mut Faults<'_>) {
    let at = place.key("rights");
    capabilities(cell, &at, faults);
    devices(cell, &at, faults);
    mounts(cell, &at, faults);
    if let Some(memory) = cell.rights.memory {
        for (index, tmpfs) in cell.rights.tmpfs.iter().enumerate() {
            let place = at.key("tmpfs").item(index);
            if tmpfs.size > memory && faults.is_clear(&at.key("memory")) {
                let what = format!(
                    "a tmpfs of {} does not fit the cell's memory of {memory}",
                    tmpfs.size
                );
                faults.report(
                    &place,
                    &["size"],
                    what,
                    "make it smaller, or give more `memory`",
                );
            }
        }
    }
}

/// The keys of a cell at `place` that processes of the host have, and a virtual machine's guest or a partition sees nothing of: those
/// that are given, each with its table.
pub(super) fn of_processes(cell: &Cell, place: &Place) -> Vec<(Place, &'static str)> {
    let rights = &cell.rights;
    let own = [
        ("args", cell.engine.is_partition() && !cell.args.is_empty()),
        ("env", !cell.env.is_empty()),
        ("workdir", cell.workdir.is_some()),
    ];
    let of_rights = [
        ("network", rights.network != Network::None),
        ("writable_root", rights.writable_root),
        ("capabilities", !rights.capabilities.is_empty()),
        ("user", rights.user.is_some()),
        ("devices", !rights.devices.is_empty()),
        ("evl", rights.evl),
        ("mounts", !rights.mounts.is_empty()),
        ("tmpfs", !rights.tmpfs.is_empty()),
    ];
    let given = |at: Place, keys: &[(&'static str, bool)]| {
        let given = keys.iter().filter(|(_, is_given)| *is_given);
        given.map(|(key, _)| (at.clone(), *key)).collect::<Vec<_>>()
    };
    [
        given(place.clone(), &own),
        given(place.key("rights"), &of_rights),
    ]
    .concat()
}

fn capabilities(cell: &Cell, at: &Place, faults: &mut Faults<'_>) {
    for (index, name) in cell.rights.capabilities.iter().enumerate() {
        let place = at.key("capabilities").item(index);
        if let Some(escape) = escape(name) {
            let what = format!("with `{name}` the cell could {escape}");
            let fix = "no guarantee would hold then; remove it and do this outside the cells";
            faults.report_at(&place, what, fix);
        } else if !is_known(name) {
            let all: Vec<String> = allowed().collect();
            let all: Vec<&str> = all.iter().map(String::as_str).collect();
            let full = format!("CAP_{}", name.to_uppercase());
            let near = if all.contains(&full.as_str()) {
                Some(full.as_str())
            } else {
                nearest(name, &all)
            };
            let fix = match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => "capabilities(7) lists their names, such as `CAP_NET_RAW`".to_owned(),
            };
            faults.report_at(&place, format!("unknown capability `{name}`"), fix);
        }
    }
}

fn devices(cell: &Cell, at: &Place, faults: &mut Faults<'_>) {
    let mut seen = HashMap::new();
    for (index, device) in cell.rights.devices.iter().enumerate() {
        let place = at.key("devices").item(index);
        let path = &device.path;
        if !faults.is_clear(&place.key("path")) {
            continue;
        }
        if !is_below(path, "/dev") || path == Path::new("/dev") {
            faults.report(
                &place,
                &["path"],
                format!("`{}` is not a path below /dev", path.display()),
                "name a device such as \"/dev/ttyS1\"; use `mounts` for other files",
            );
        }
        if MEMORY.iter().any(|memory| path == Path::new(memory)) {
            let what = format!(
                "through `{}` the cell could reach the whole machine",
                path.display()
            );
            let fix = "no guarantee would hold then; remove it and do this outside the cells";
            faults.report(&place, &["path"], what, fix);
        }
        if is_below(path, "/dev/evl") {
            let what = format!(
                "through `{}` its threads could take FIFO at any priority, and time that no budget sees",
                path.display()
            );
            let fix = "if that is meant, write `evl = true` in place of the device";
            faults.report(&place, &["path"], what, fix);
        }
        if seen.insert(path, index).is_some() {
            let what = format!("the device `{}` is given twice", path.display());
            faults.report(&place, &["path"], what, "name it once");
        }
    }
}

fn mounts(cell: &Cell, at: &Place, faults: &mut Faults<'_>) {
    let mounts = cell.rights.mounts.iter().enumerate();
    let mounts = mounts.map(|(index, mount)| (at.key("mounts").item(index), &mount.target));
    let memory = cell.rights.tmpfs.iter().enumerate();
    let memory = memory.map(|(index, tmpfs)| (at.key("tmpfs").item(index), &tmpfs.target));
    let mut seen = HashMap::new();
    for (place, target) in mounts.chain(memory) {
        if !faults.is_clear(&place.key("target")) {
            continue;
        }
        let shown = target.display();
        if target == Path::new("/") {
            let fix = "the root is the image; choose a directory in it";
            faults.report(
                &place,
                &["target"],
                "nothing can be mounted over the cell's root",
                fix,
            );
        } else if KERNEL.iter().any(|kernel| is_below(target, kernel))
            && !is_below(target, SHARED_MEMORY)
        {
            let what = format!("`{shown}` holds the kernel's own files in the cell");
            faults.report(&place, &["target"], what, "choose another directory");
        }
        if let Some(first) = seen.insert(target, place.clone()) {
            let line = faults.line(&first);
            let what = format!("two mounts have the target `{shown}`");
            let fix = format!("the first is on line {line}; give each a different one");
            faults.report(&place, &["target"], what, fix);
        }
    }
    for (index, mount) in cell.rights.mounts.iter().enumerate() {
        let source = &mount.source;
        let place = at.key("mounts").item(index);
        let kernel = KERNEL.iter().any(|kernel| is_below(source, kernel))
            && !is_below(source, SHARED_MEMORY);
        if source == Path::new("/") || kernel {
            faults.report(
                &place,
                &["source"],
                format!("through `{}` the cell could escape", source.display()),
                "mount only what the application needs; devices go into `devices`",
            );
        }
    }
}

/// Whether a path is the directory or something below it, as far as its text tells: `..` is followed, links are not.
pub(in super::super) fn is_below(path: &Path, directory: &str) -> bool {
    let mut plain = std::path::PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain.starts_with(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_leads_into_the_kernels_files_is_seen() {
        for (path, below) in [
            ("/sys/fs/cgroup", true),
            ("/sys", true),
            ("/system", false),
            ("/srv/../sys/kernel", true),
            ("sys", false),
        ] {
            assert_eq!(is_below(Path::new(path), "/sys"), below, "{path}");
        }
    }
}
