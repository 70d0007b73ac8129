//! Interrupts and unbound kernel work: masks in files.

use std::path::PathBuf;

use super::journal::{Change, Journal};
use super::{IsolateError, Isolated, others};
use crate::cpus::{self, format_list, parse_list};
use crate::root::{Root, reason_of};

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
        && let Err(reason) = change(root, journal, DEFAULT, &was, &format_mask(&set, &was))?
    {
        found.irqs_left.push(format!("new ones ({reason})"));
    }
    if let Ok(was) = root.read(WORKQUEUES) {
        let cpus = parse_mask(&was).unwrap_or_default();
        found.workqueues = Some(match target(&cpus, found) {
            None => true,
            Some(set) => change(root, journal, WORKQUEUES, &was, &format_mask(&set, &was))?.is_ok(),
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
    Some(if left.is_empty() {
        found.rest.clone()
    } else {
        left
    })
}

/// Notes a change and makes it; `Ok(Err(reason))` if the kernel refuses it.
pub(super) fn change(
    root: &Root,
    journal: &mut Journal,
    file: &str,
    was: &str,
    set: &str,
) -> Result<Result<(), String>, IsolateError> {
    let path: PathBuf = root.path(file);
    journal.note(&Change::File {
        path: path.clone(),
        was: was.to_owned(),
        set: set.to_owned(),
    })?;
    Ok(std::fs::write(&path, set).map_err(|error| reason_of(&error)))
}

/// Cpus of a mask as the kernel writes it: hexadecimal, 32 bits between commas, the highest first.
fn parse_mask(text: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for (word, digits) in text.trim().rsplit(',').enumerate() {
        let bits = u32::from_str_radix(digits, 16).ok()?;
        let first = u32::try_from(word * 32).ok()?;
        cpus.extend(
            (0..32)
                .filter(|bit| bits & (1 << bit) != 0)
                .map(|bit| first + bit),
        );
    }
    (cpus.last() <= Some(&cpus::HIGHEST_CPU)).then_some(cpus)
}

/// The mask of these cpus, with as many words as `like` has.
fn format_mask(cpus: &[u32], like: &str) -> String {
    let mut words = vec![0u32; like.split(',').count()];
    for &cpu in cpus {
        if let Some(word) = words.get_mut(cpu as usize / 32) {
            *word |= 1 << (cpu % 32);
        }
    }
    let texts: Vec<String> = match words.split_last() {
        None => Vec::new(),
        Some((last, [])) => vec![format!("{last:x}")],
        Some(_) => words
            .iter()
            .rev()
            .map(|word| format!("{word:08x}"))
            .collect(),
    };
    texts.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn masks_are_read_and_written_as_the_kernel_does() {
        assert_eq!(parse_mask("3\n").unwrap(), [0, 1]);
        assert_eq!(parse_mask("00000001,80000000").unwrap(), [31, 32]);
        assert_eq!(format_mask(&[0, 2], "f"), "5");
        assert_eq!(format_mask(&[33], "ffffffff,ffffffff"), "00000002,00000000");
        assert_eq!(parse_mask("x"), None);
    }

    proptest! {
        #[test]
        fn a_mask_survives_the_round_trip(mut cpus in proptest::collection::btree_set(0u32..96, 0..40)) {
            let like = "ffffffff,ffffffff,ffffffff";
            cpus.insert(1);
            let cpus: Vec<u32> = cpus.into_iter().collect();
            prop_assert_eq!(parse_mask(&format_mask(&cpus, like)).unwrap(), cpus);
        }
    }
}
