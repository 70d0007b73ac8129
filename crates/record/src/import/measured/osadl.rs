//! RT datasets of OSADL's farm (JSON): the histograms of cyclictest, an array of counts for each core from 0 on. A file with the buckets in its
//! first array has those, ascending from 0, instead of the counts of a core.

use model::InputError;
use serde::Deserialize;

use super::json::parsed;
use super::sense::{Head, Reader};
use super::{Distribution, MOST_DISTRIBUTIONS, Measured, Options, Source, scaled};

pub(super) const READER: Reader = Reader::new(
    "osadl-json",
    "RT datasets of OSADL (JSON)",
    |head| {
        head.has("latency") && (names_itself(head, "format") || names_itself(head, "format-test"))
    },
    read,
);

/// Whether this key holds a name such as `RT Dataset`.
fn names_itself(head: &Head, key: &str) -> bool {
    let rest = head.value(key).and_then(|rest| rest.split('}').next());
    rest.is_some_and(|rest| rest.contains("\"RT "))
}

#[derive(Deserialize)]
struct File {
    kernel: Option<Kernel>,
    condition: Option<Condition>,
    latency: Latency,
}

#[derive(Deserialize)]
struct Kernel {
    version: Option<String>,
}

#[derive(Deserialize)]
struct Condition {
    cyclictest: Option<String>,
    cycles: Option<u64>,
}

#[derive(Deserialize)]
struct Latency {
    granularity: Option<serde_json::Value>,
    cores: Vec<Vec<u64>>,
    #[serde(default)]
    maxima: Vec<u64>,
}

fn read(source: &mut Source, _: Options) -> Result<Measured, InputError> {
    // Arrays take several times the room of their text.
    let file: File = parsed(source.text(16)?.as_bytes())?;
    let bad = |what: String| InputError::new("", what, "");
    // A number is in us.
    let granularity = file.latency.granularity.map(|value| match value {
        serde_json::Value::String(text) => text,
        other => other.to_string(),
    });
    let unit_ns = match granularity.as_deref() {
        None | Some("1" | "microseconds" | "us") => 1_000,
        Some("nanoseconds" | "ns") => 1,
        Some(other) => {
            let what = format!(
                "its granularity is `{}`, not microseconds",
                super::excerpt(other)
            );
            return Err(bad(what));
        }
    };
    let mut measured = Measured::by("cyclictest");
    measured.machine =
        (file.kernel.and_then(|kernel| kernel.version)).map(|version| format!("Linux {version}"));
    let condition = file.condition.unwrap_or(Condition {
        cyclictest: None,
        cycles: None,
    });
    measured.command.clone_from(&condition.cyclictest);
    let is_axis = |counts: &[u64]| {
        let sum = counts.iter().copied().fold(0, u64::saturating_add);
        (0..).zip(counts).all(|(at, count)| at == *count) && condition.cycles != Some(sum)
    };
    let cores = match file.latency.cores.as_slice() {
        [axis, cores @ ..] if is_axis(axis) && !cores.is_empty() => cores,
        cores => cores,
    };
    if cores.len() > MOST_DISTRIBUTIONS {
        return Err(bad("it has more than 65,536 cores".to_owned()));
    }
    for (at, counts) in cores.iter().enumerate() {
        let mut d = Distribution::new(format!("cpu {at}"), "wake-up latency", unit_ns);
        d.cpu = u32::try_from(at).ok();
        d.said.max_ns = (file.latency.maxima.get(at))
            .and_then(|max| scaled(i64::try_from(*max).ok()?, unit_ns).ok());
        let buckets = (0..).step_by(unit_ns as usize);
        d.fill(buckets.zip(counts.iter().copied()));
        d.said.cycles = condition.cycles;
        d.overflow_of_cycles((counts.len() as i64).saturating_mul(unit_ns));
        measured.distributions.push(d);
    }
    if unit_ns == 1_000 {
        measured
            .notes
            .push("the tool truncated values to whole microseconds".to_owned());
    }
    Ok(measured)
}
