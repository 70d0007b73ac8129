//! The cpus of this machine and the kernel's way of writing sets of them ("0-3,5").

use crate::root::{Root, Unreadable};

/// The highest cpu number accepted in a list; Linux itself stops at 8191.
pub const HIGHEST_CPU: u32 = 65_535;

/// A text that is not a list of cpus.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CpuListError {
    /// A part is neither a number nor a range of numbers.
    #[error("`{0}` is not a cpu or a range of cpus; write for example 0-3,5")]
    NotACpu(String),
    /// A range whose end lies before its start.
    #[error("the range `{0}` ends before it starts")]
    Backwards(String),
    /// A cpu number above [`HIGHEST_CPU`].
    #[error("cpu {0} is above the highest number a machine can have ({HIGHEST_CPU})")]
    TooHigh(u64),
}

/// Parses a list such as `0-3,5`. The empty text is the empty list. The result is sorted and has no
/// duplicates. The kernel's stride form `0-10:2/4` is accepted as well.
///
/// # Errors
/// [`CpuListError`] names the part that is wrong.
pub fn parse_list(text: &str) -> Result<Vec<u32>, CpuListError> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',') {
        let part = part.trim();
        if part.is_empty() {
            if text.trim().is_empty() {
                break;
            }
            return Err(CpuListError::NotACpu(part.to_owned()));
        }
        let (range, stride) = match part.split_once(':') {
            None => (part, None),
            Some((range, stride)) => (range, Some(stride)),
        };
        let number = |digits: &str| -> Result<u32, CpuListError> {
            if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(CpuListError::NotACpu(part.to_owned()));
            }
            let value = digits.parse::<u64>().unwrap_or(u64::MAX);
            if value > u64::from(HIGHEST_CPU) {
                return Err(CpuListError::TooHigh(value));
            }
            Ok(value as u32)
        };
        let (first, last) = match range.split_once('-') {
            None => (number(range)?, number(range)?),
            Some((first, last)) => (number(first)?, number(last)?),
        };
        if last < first {
            return Err(CpuListError::Backwards(part.to_owned()));
        }
        match stride {
            None => cpus.extend(first..=last),
            Some(stride) => {
                let (used, group) = stride
                    .split_once('/')
                    .ok_or_else(|| CpuListError::NotACpu(part.to_owned()))?;
                let (used, group) = (number(used)?, number(group)?);
                if used == 0 || group < used {
                    return Err(CpuListError::NotACpu(part.to_owned()));
                }
                cpus.extend((first..=last).filter(|cpu| (cpu - first) % group < used));
            }
        }
    }
    cpus.sort_unstable();
    cpus.dedup();
    Ok(cpus)
}

/// Writes a list the way the kernel does: `0-3,5`. Order and duplicates in `cpus` do not matter;
/// no cpu gives the empty text.
pub fn format_list(cpus: &[u32]) -> String {
    let mut sorted = cpus.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    sorted
        .chunk_by(|a, b| a + 1 == *b)
        .map(|run| match run {
            [only] => only.to_string(),
            [first, .., last] => format!("{first}-{last}"),
            [] => String::new(),
        })
        .collect::<Vec<_>>()
        .join(",")
}

/// Parses a mask such as `ff` or `1,00000003`: hexadecimal, 32 cpus between two commas, the highest first, as
/// `/proc/irq/default_smp_affinity` has it; `None` for anything else. The result is sorted.
pub fn parse_mask(text: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for (word, digits) in text.trim().rsplit(',').enumerate() {
        if digits.starts_with('+') {
            return None;
        }
        let bits = u32::from_str_radix(digits, 16).ok()?;
        let first = u32::try_from(word).ok()?.checked_mul(32)?;
        if first > HIGHEST_CPU {
            return None;
        }
        cpus.extend(
            (0..32)
                .filter(|bit| bits >> bit & 1 == 1)
                .map(|bit| first + bit),
        );
    }
    Some(cpus)
}

/// Writes a mask as [`parse_mask`] reads it, without leading zeros.
pub fn format_mask(cpus: &[u32]) -> String {
    let words = cpus.iter().max().map_or(1, |highest| highest / 32 + 1);
    let word = |number: u32| {
        (cpus.iter())
            .filter(|cpu| **cpu / 32 == number)
            .fold(0u32, |bits, cpu| bits | 1 << (cpu % 32))
    };
    let mut text = format!("{:x}", word(words - 1));
    for number in (0..words - 1).rev() {
        text.push_str(&format!(",{:08x}", word(number)));
    }
    text
}

/// The cpus that are switched on, in ascending order.
///
/// # Errors
/// If `/sys/devices/system/cpu/online` cannot be read.
pub fn online() -> Result<Vec<u32>, Unreadable> {
    online_at(&Root::live())
}

/// The cpus that could ever be switched on (by hotplug), in ascending order.
///
/// # Errors
/// If `/sys/devices/system/cpu/possible` cannot be read.
pub fn possible() -> Result<Vec<u32>, Unreadable> {
    list_file(&Root::live(), "/sys/devices/system/cpu/possible")
}

/// The cpus taken out of load balancing by `isolcpus=` or an isolated cpuset partition.
pub fn isolated() -> Vec<u32> {
    isolated_at(&Root::live())
}

/// The cpu on which real-time work goes unless the user says otherwise: the highest isolated cpu
/// that the caller's cpuset admits; without one, the highest cpu that is online and in the caller's
/// affinity and is not cpu 0; cpu 0 only if there is no other.
pub fn default_rt_cpu() -> u32 {
    default_rt_cpu_at(&Root::live())
}

/// [`online`] under another root.
pub fn online_at(root: &Root) -> Result<Vec<u32>, Unreadable> {
    list_file(root, "/sys/devices/system/cpu/online")
}

/// [`isolated`] under another root.
pub fn isolated_at(root: &Root) -> Vec<u32> {
    list_file(root, "/sys/devices/system/cpu/isolated").unwrap_or_default()
}

/// [`default_rt_cpu`] under another root.
pub fn default_rt_cpu_at(root: &Root) -> u32 {
    let online = online_at(root).unwrap_or_default();
    let highest = |cpus: &[u32]| -> Option<u32> {
        let candidates = || cpus.iter().copied().filter(|cpu| online.contains(cpu));
        candidates()
            .filter(|&cpu| cpu != 0)
            .max()
            .or(candidates().max())
    };
    // The affinity a process inherits leaves isolated cpus out; only the cpuset forbids them.
    let isolated: Vec<u32> = match cpuset_cpus(root) {
        Some(cpuset) => isolated_at(root)
            .into_iter()
            .filter(|cpu| cpuset.contains(cpu))
            .collect(),
        None => isolated_at(root),
    };
    highest(&isolated)
        .or_else(|| highest(&affinity_cpus(root)))
        .or_else(|| highest(&online))
        .unwrap_or(0)
}

/// The cpus of the affinity of the calling process, from `/proc/self/status`.
fn affinity_cpus(root: &Root) -> Vec<u32> {
    let status = root.read("/proc/self/status").unwrap_or_default();
    let list = crate::process::value(&status, "Cpus_allowed_list");
    list.and_then(|list| parse_list(list).ok())
        .unwrap_or_default()
}

/// The cpus of the cpuset of the calling process, if it is in one that can be read.
fn cpuset_cpus(root: &Root) -> Option<Vec<u32>> {
    let cgroups = crate::cgroup::detect_at(root).ok()?;
    let files = [
        cgroups
            .v1_group(root, "cpuset", 0)
            .map(|group| group.join("cpuset.effective_cpus")),
        cgroups
            .v2_group(root, 0)
            .map(|group| group.join("cpuset.cpus.effective")),
    ];
    files
        .into_iter()
        .flatten()
        .find_map(|file| list_file(root, file).ok())
        .filter(|cpus| !cpus.is_empty())
}

pub(crate) fn list_file(
    root: &Root,
    path: impl AsRef<std::path::Path>,
) -> Result<Vec<u32>, Unreadable> {
    let path = path.as_ref();
    let text = root.read(path)?;
    // nohz_full reads "(null)" on kernels that know the option but were not given it.
    if text == "(null)" {
        return Ok(Vec::new());
    }
    parse_list(&text).map_err(|error| Unreadable {
        path: path.display().to_string(),
        reason: error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;
    use proptest::prelude::*;

    #[test]
    fn lists_are_read_as_the_kernel_writes_them() {
        assert_eq!(parse_list("0-3,5\n").unwrap(), [0, 1, 2, 3, 5]);
        assert!(parse_list("").unwrap().is_empty());
        assert_eq!(parse_list("7").unwrap(), [7]);
        assert_eq!(parse_list("5,0,5").unwrap(), [0, 5]);
        assert_eq!(parse_list("0-7:2/4").unwrap(), [0, 1, 4, 5]);
    }

    #[test]
    fn masks_are_read_and_written_as_the_kernel_does() {
        assert_eq!(parse_mask("3\n").unwrap(), [0, 1]);
        assert_eq!(parse_mask("00000001,80000000").unwrap(), [31, 32]);
        assert!(parse_mask("0").unwrap().is_empty());
        for wrong in ["", "x", "1,,1", "+1", "100000000", "-1"] {
            assert_eq!(parse_mask(wrong), None, "{wrong}");
        }
        assert_eq!(format_mask(&[0, 1]), "3");
        assert_eq!(format_mask(&[31, 32]), "1,80000000");
        assert_eq!(format_mask(&[33]), "2,00000000");
        assert_eq!(format_mask(&[]), "0");
    }

    #[test]
    fn a_wrong_list_is_refused_with_the_part_that_is_wrong() {
        assert_eq!(
            parse_list("0-3,x").unwrap_err(),
            CpuListError::NotACpu("x".into())
        );
        assert_eq!(
            parse_list("3-1").unwrap_err(),
            CpuListError::Backwards("3-1".into())
        );
        assert!(matches!(
            parse_list("0-4294967295"),
            Err(CpuListError::TooHigh(_))
        ));
        for wrong in ["-1", "1-", "0,,1", ",", "0-7:0/4", "0-7:5/4", "0-7:2", "+1"] {
            assert!(parse_list(wrong).is_err(), "{wrong} was accepted");
        }
    }

    proptest! {
        #[test]
        fn a_list_survives_the_round_trip(mut cpus in proptest::collection::vec(0u32..=HIGHEST_CPU, 0..40)) {
            let text = format_list(&cpus);
            cpus.sort_unstable();
            cpus.dedup();
            prop_assert_eq!(&parse_list(&text).unwrap(), &cpus);
            let few: Vec<u32> = cpus.into_iter().filter(|cpu| *cpu < 4096).collect();
            prop_assert_eq!(parse_mask(&format_mask(&few)).unwrap(), few);
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in "[-0-9,:/ \\n]{0,30}|.{0,30}") {
            if let Ok(cpus) = parse_list(&text) {
                prop_assert_eq!(parse_list(&format_list(&cpus)).unwrap(), cpus);
            }
        }
    }

    fn tree(online: &str, allowed: &str, isolated: &str) -> Tree {
        Tree::new()
            .file("/sys/devices/system/cpu/online", online)
            .file("/sys/devices/system/cpu/isolated", isolated)
            .file(
                "/proc/self/status",
                &format!("Cpus_allowed_list:\t{allowed}\n"),
            )
    }

    #[test]
    fn real_time_work_goes_to_the_highest_fit_cpu() {
        assert_eq!(default_rt_cpu_at(&tree("0-3", "0-3", "").root()), 3);
        assert_eq!(default_rt_cpu_at(&tree("0-3", "0-1", "").root()), 1);
        assert_eq!(default_rt_cpu_at(&tree("0-3", "0-1,3", "2").root()), 2);
        assert_eq!(default_rt_cpu_at(&tree("0", "0", "").root()), 0);
        assert_eq!(default_rt_cpu_at(&tree("0-1", "0-3", "3").root()), 1);
        assert_eq!(default_rt_cpu_at(&Tree::new().root()), 0);
    }

    #[test]
    fn this_machine_has_cpus() {
        let online = online().unwrap();
        assert!(!online.is_empty());
        assert!(possible().unwrap().len() >= online.len());
        assert!(online.contains(&default_rt_cpu()));
    }
}
