//! Interrupts and unbound kernel work: masks in files.

use std::path::PathBuf;

use super::found::{IsolateError, Isolated, others};
use super::journal::{Change, Journal};
use crate::cpus::{format_list, format_mask, parse_list, parse_mask};
use crate::error::{Error, Result};
use crate::root::Root;

const DEFAULT: &str = "/proc/irq/default_smp_affinity";
const WORKQUEUES: &str = "/sys/devices/virtual/workqueue/cpumask";

pub(super) fn move_away(
    root: &Root,
    journal: &mut Journal,
    found: &mut Isolated,
) -> Result<(), IsolateError> {
    for irq in root.names_in("/proc/irq") {
        let file = format!("/proc/irq/{irq}/smp_affinity_list");
        let Ok(was) = root.read(&file) else { continue };
        let Some(set) = parse_list(&was).ok().and_then(|cpus| target(&cpus, found)) else {
            continue;
        };
        match change(root, journal, &file, &was, &format_list(&set))? {
            Ok(()) => found.irqs_moved += 1,
            Err(reason) => {
                let name = root
                    .names_in(format!("/proc/irq/{irq}"))
                    .into_iter()
                    .find(|name| root.path(format!("/proc/irq/{irq}/{name}")).is_dir());
                let name = name.map_or(String::new(), |name| format!(" {name}"));
                found.irqs_left.push(format!("{irq}{name} ({reason})"));
            }
        }
    }
    // Interrupts that are set up from now on.
    if let Ok(was) = root.read(DEFAULT)
        && let Some(set) = parse_mask(&was).and_then(|cpus| target(&cpus, found))
        && let Err(reason) = change(root, journal, DEFAULT, &was, &format_mask(&set))?
    {
        found.irqs_left.push(format!("new ones ({reason})"));
    }
    if let Ok(was) = root.read(WORKQUEUES) {
        let cpus = parse_mask(&was).unwrap_or_default();
        found.workqueues = Some(match target(&cpus, found) {
            None => true,
            Some(set) => change(root, journal, WORKQUEUES, &was, &format_mask(&set))?.is_ok(),
        });
    }
    Ok(())
}

/// Where something goes that may arrive on `was`; `None` if it is off the cpus already.
fn target(was: &[u32], found: &Isolated) -> Option<Vec<u32>> {
    if !was.iter().any(|cpu| found.cpus.contains(cpu)) {
        return None;
    }
    let left = others(was, &found.cpus);
    // The kernel refuses cpus of which none is online.
    match left.iter().any(|cpu| found.rest.contains(cpu)) {
        true => Some(left),
        false => Some(found.rest.clone()),
    }
}

/// Notes a change and makes it; `Ok(Err(reason))` if the kernel refuses it.
pub(super) fn change(
    root: &Root,
    journal: &mut Journal,
    file: &str,
    was: &str,
    set: &str,
) -> Result<Result<()>, IsolateError> {
    let path: PathBuf = root.path(file);
    journal.note(&Change::File {
        path: path.clone(),
        was: was.to_owned(),
        set: set.to_owned(),
    })?;
    Ok(std::fs::write(&path, set).map_err(Error::from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_cpus_that_are_offline_alone_nothing_is_left() {
        let found = Isolated {
            cpus: vec![3],
            rest: vec![0, 1, 2],
            ..Isolated::default()
        };
        assert_eq!(target(&[3, 7], &found), Some(vec![0, 1, 2]));
        assert_eq!(target(&[2, 3, 7], &found), Some(vec![2, 7]));
        assert_eq!(target(&[0, 7], &found), None);
    }
}
