//! A sweep over the size of cells: every combination of the values of its axes.

use model::{Bytes, InputError, Machine, Size, mib, nearest};
use serde::{Deserialize, Serialize};

/// The values of each axis; an axis without values is not swept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sweep {
    /// Numbers of virtual cpus, or limits of cpu time in cpus; 1 to 512.
    pub vcpus: Vec<u32>,
    /// Amounts of memory, or limits of it, bytes; 64 MiB or more.
    pub memory_bytes: Vec<u64>,
}

const OPTION: &str = "--sweep";
const AXES: [&str; 2] = ["vcpus", "memory"];

fn fault(what: impl Into<String>, fix: impl Into<String>) -> InputError {
    InputError::new(OPTION, what, fix)
}

impl Sweep {
    /// Reads the axes as the user gives them, each `KEY=VALUE,VALUE...`.
    ///
    /// # Errors
    /// The first fault: another axis, one without values or given twice, a value that is none, out of range or given twice.
    pub fn parse(axes: &[String]) -> Result<Sweep, InputError> {
        let mut sweep = Sweep::default();
        for text in axes {
            let (key, values) = text.split_once('=').unwrap_or((text, ""));
            if !AXES.contains(&key) {
                let meant = nearest(key, &AXES).map(|near| format!("did you mean `{near}`?"));
                let fix = meant.unwrap_or_else(|| format!("the axes are {}", AXES.join(" and ")));
                return Err(fault(format!("there is no axis `{key}`"), fix));
            }
            let values: Vec<&str> = values.split(',').map(str::trim).collect();
            if values.contains(&"") {
                let example = if key == "vcpus" {
                    "1,2,4"
                } else {
                    "128MiB,1GiB"
                };
                let what = format!("`{text}` lacks a value");
                return Err(fault(what, format!("write `{key}={example}`")));
            }
            let twice = match key {
                "vcpus" => axis(key, &mut sweep.vcpus, &values, vcpus),
                _ => axis(key, &mut sweep.memory_bytes, &values, memory),
            };
            twice?;
        }
        Ok(sweep)
    }

    /// Every combination, the last axis changing first; one of nothing if nothing is swept.
    pub fn sizes(&self) -> Vec<Size> {
        let memory = some(&self.memory_bytes);
        (some(&self.vcpus).into_iter())
            .flat_map(|vcpus| {
                memory.iter().map(move |&memory_bytes| Size {
                    vcpus,
                    memory_bytes,
                })
            })
            .collect()
    }

    /// Whether nothing is swept.
    pub fn is_empty(&self) -> bool {
        *self == Sweep::default()
    }

    /// Fails if an amount of memory is more than this host's, bytes.
    pub(super) fn fits(&self, host_bytes: u64) -> Result<(), InputError> {
        match self.memory_bytes.iter().max() {
            Some(&most) if most > host_bytes => Err(fault(
                format!(
                    "{} is more memory than the {} of this host",
                    Bytes::new(most),
                    mib(host_bytes)
                ),
                "leave it out",
            )),
            _ => Ok(()),
        }
    }
}

/// The values, or that there is none.
fn some<T: Copy>(values: &[T]) -> Vec<Option<T>> {
    match values {
        [] => vec![None],
        values => values.iter().copied().map(Some).collect(),
    }
}

fn axis<T: PartialEq>(
    key: &str,
    axis: &mut Vec<T>,
    values: &[&str],
    read: fn(&str) -> Result<T, String>,
) -> Result<(), InputError> {
    if !axis.is_empty() {
        let fix = "name all its values in one, separated by commas";
        return Err(fault(format!("the axis `{key}` is given twice"), fix));
    }
    for text in values {
        let value = read(text).map_err(|why| fault(format!("{key}: {why}"), ""))?;
        if axis.contains(&value) {
            let what = format!("{key}: {text} is there twice");
            return Err(fault(what, "name each value once"));
        }
        axis.push(value);
    }
    Ok(())
}

fn vcpus(text: &str) -> Result<u32, String> {
    let most = Machine::MOST_VCPUS;
    (text.parse().ok())
        .filter(|vcpus| (1..=most).contains(vcpus))
        .ok_or_else(|| format!("`{text}` is not a number from 1 to {most}"))
}

fn memory(text: &str) -> Result<u64, String> {
    let least = Bytes::new(Machine::LEAST_MEMORY);
    let bytes: Bytes = text.parse().map_err(|why| format!("{why}"))?;
    match bytes < least {
        true => Err(format!("{text} is less than {least}")),
        false => Ok(bytes.bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(axes: &[&str]) -> Result<Sweep, String> {
        let axes: Vec<String> = axes.iter().map(|&axis| axis.to_owned()).collect();
        Sweep::parse(&axes).map_err(|fault| fault.to_string())
    }

    #[test]
    fn every_combination_is_measured_in_order() {
        let sweep = parsed(&["vcpus=1,2", "memory=128MiB, 1GiB"]).unwrap();
        let names: Vec<String> = sweep.sizes().iter().map(Size::to_string).collect();
        assert_eq!(
            names,
            [
                "1 vcpu, 128MiB",
                "1 vcpu, 1GiB",
                "2 vcpus, 128MiB",
                "2 vcpus, 1GiB"
            ]
        );
        let one = parsed(&["memory=64MiB,65MiB"]).unwrap().sizes();
        assert_eq!(one.len(), 2);
        assert!(one.iter().all(|size| size.vcpus.is_none()));
        assert_eq!(parsed(&[]).unwrap().sizes(), [Size::default()]);
        assert!(parsed(&[]).unwrap().is_empty() && !sweep.is_empty());
    }

    #[test]
    fn faults_are_told_in_one_sentence() {
        for (axes, said) in [
            (
                &["vcpu=1"][..],
                "there is no axis `vcpu`; did you mean `vcpus`?",
            ),
            (
                &["disk=1GiB"],
                "there is no axis `disk`; the axes are vcpus and memory",
            ),
            (&["vcpus"], "`vcpus` lacks a value; write `vcpus=1,2,4`"),
            (
                &["memory=1GiB,"],
                "`memory=1GiB,` lacks a value; write `memory=128MiB,1GiB`",
            ),
            (
                &["vcpus=1", "vcpus=2"],
                "the axis `vcpus` is given twice; name all its values in one, separated by commas",
            ),
            (
                &["memory=1GiB,1024MiB"],
                "memory: 1024MiB is there twice; name each value once",
            ),
            (&["vcpus=0"], "vcpus: `0` is not a number from 1 to 512"),
            (&["vcpus=513"], "vcpus: `513` is not a number from 1 to 512"),
            (&["vcpus=two"], "vcpus: `two` is not a number from 1 to 512"),
            (&["memory=128"], "memory: `128` has no unit"),
            (&["memory=63MiB"], "memory: 63MiB is less than 64MiB"),
        ] {
            let told = parsed(axes).unwrap_err();
            assert!(told.starts_with(&format!("--sweep: {said}")), "{told}");
            assert!(!told.contains('\n'), "{told}");
        }
    }

    #[test]
    fn more_memory_than_the_host_has_is_refused() {
        let sweep = parsed(&["memory=1GiB,4GiB"]).unwrap();
        assert!(sweep.fits(4 << 30).is_ok());
        let told = sweep.fits((4 << 30) - 1).unwrap_err().to_string();
        assert_eq!(
            told,
            "--sweep: 4GiB is more memory than the 4,095 MiB of this host; leave it out"
        );
    }
}
