//! `cyclictest --json` and the same frame as other tools of rt-tests write it, oslat among them.
//!
//! Traps: keys with a colon inside, a command line that is not escaped, `min` that starts at 1,000,000, no unit (us, or
//! ns with -N, which `resolution_in_ns` tells), and no count of overflows (they are `cycles` less the histogram).

use std::collections::BTreeMap;

use model::InputError;
use serde::Deserialize;

use super::{Distribution, Format, Measured, Overflow, Said, json_fault, scaled};

#[derive(Deserialize)]
struct File {
    #[serde(alias = "cmdline:")]
    cmdline: Option<String>,
    #[serde(alias = "rt_test_version:")]
    rt_test_version: Option<String>,
    sysinfo: Option<BTreeMap<String, serde_json::Value>>,
    num_threads: Option<u64>,
    #[serde(default)]
    resolution_in_ns: u64,
    return_code: Option<i64>,
    thread: BTreeMap<String, Thread>,
}

#[derive(Deserialize)]
struct Thread {
    histogram: Option<BTreeMap<String, u64>>,
    cycles: Option<u64>,
    min: Option<f64>,
    max: Option<f64>,
    avg: Option<f64>,
    cpu: Option<u32>,
}

/// What `min` holds before the first value.
const NO_MINIMUM: f64 = 1_000_000.0;

pub(super) fn read(name: &str, text: &str, format: Format) -> Result<Measured, InputError> {
    let text = escaped(text);
    let file: File = serde_json::from_str(&text).map_err(|error| json_fault(name, &error))?;
    let command = file.cmdline;
    let words = command.as_deref().unwrap_or_default().split_whitespace();
    let program = words.clone().next().unwrap_or_default();
    let oslat = format == Format::OslatJson;
    let tool = match program.rsplit('/').next() {
        Some("") | None => if oslat { "oslat" } else { "cyclictest" }.to_owned(),
        Some(tool) => tool.to_owned(),
    };
    let unit_ns = if file.resolution_in_ns == 0 { 1_000 } else { 1 };
    let mut notes = Vec::new();
    let mut distributions = Vec::new();
    let mut threads: Vec<(u64, Thread)> = Vec::new();
    for (key, thread) in file.thread {
        let number = key
            .parse()
            .map_err(|_| InputError::new(name, format!("thread `{key}` has no number"), ""))?;
        threads.push((number, thread));
    }
    threads.sort_by_key(|thread| thread.0);
    if threads.is_empty() {
        return Err(InputError::new(
            name,
            "the file has no thread",
            "the tool measured nothing",
        ));
    }
    if let Some(planned) = file.num_threads.filter(|n| *n != threads.len() as u64) {
        notes.push(format!(
            "the file says {planned} threads and holds {}",
            threads.len()
        ));
    }
    if let Some(code) = file.return_code.filter(|code| *code != 0) {
        notes.push(format!("{tool} ended with return code {code}"));
    }
    let limit = if oslat { None } else { histogram_limit(words) };
    for (number, thread) in threads {
        let place = format!("thread {number}");
        let found = distribution(&place, thread, unit_ns, limit, oslat);
        distributions
            .push(found.map_err(|what| InputError::new(name, format!("{place}: {what}"), ""))?);
    }
    if distributions.iter().all(|d| d.counts.is_empty()) {
        notes.push(
            "the file has no histogram, so there are no quantiles (-h or -H makes one)".to_owned(),
        );
    }
    if unit_ns == 1_000 && !oslat {
        notes.push("values were cut to whole microseconds by the tool".to_owned());
    }
    Ok(Measured {
        file: name.to_owned(),
        format: Some(format),
        tool,
        version: file.rt_test_version,
        command,
        machine: file.sysinfo.as_ref().map(machine),
        distributions,
        notes,
    })
}

fn distribution(
    place: &str,
    thread: Thread,
    unit_ns: i64,
    limit: Option<i64>,
    oslat: bool,
) -> Result<Distribution, String> {
    let quantity = if oslat {
        "interruption"
    } else {
        "wake-up latency"
    };
    let mut d = Distribution::new(place, quantity, unit_ns);
    d.cpu = thread.cpu;
    let mut pairs = Vec::new();
    for (key, count) in thread.histogram.unwrap_or_default() {
        let bucket: i64 = key
            .parse()
            .map_err(|_| format!("the histogram has a bucket `{key}`, which is no whole number"))?;
        pairs.push((scaled(bucket, unit_ns)?, count));
    }
    let measured = thread.cycles.is_none_or(|cycles| cycles > 0);
    let of = |value: Option<f64>| value.filter(|_| measured).map(|v| v * unit_ns as f64);
    let whole = |value: Option<f64>| of(value).map(|ns| ns.round() as i64);
    d.said = Said {
        min_ns: whole(thread.min.filter(|min| *min != NO_MINIMUM)),
        mean_ns: of(thread.avg),
        max_ns: whole(thread.max),
        cycles: thread.cycles,
    };
    d.fill(pairs);
    let end = d
        .counts
        .last()
        .map_or(0, |&(highest, _)| highest.saturating_add(unit_ns));
    if oslat {
        last_bucket_overflows(&mut d);
    } else if let Some(over) = thread
        .cycles
        .map(|cycles| cycles.saturating_sub(d.counted()))
        && over > 0
        && (!d.counts.is_empty() || limit.is_some())
    {
        let limit = limit.and_then(|limit| limit.checked_mul(unit_ns));
        d.overflow = Some(Overflow {
            count: Some(over),
            at_least_ns: limit.unwrap_or(end).max(end),
        });
    }
    Ok(d)
}

/// oslat counts what is too long in its last bucket; its maximum tells whether it did.
fn last_bucket_overflows(d: &mut Distribution) {
    let end = |highest: i64| highest.saturating_add(d.resolution_ns);
    if let Some(&(highest, count)) = d.counts.last()
        && d.said.max_ns.is_some_and(|max| max >= end(highest))
    {
        d.counts.pop();
        d.overflow = Some(Overflow {
            count: Some(count),
            at_least_ns: highest,
        });
    }
}

/// The number given with `-h`, `-H`, `--histogram` or `--histofall`: values of that size or more overflow.
fn histogram_limit<'a>(words: impl Iterator<Item = &'a str>) -> Option<i64> {
    let mut words = words.skip(1);
    while let Some(word) = words.next() {
        for option in ["--histogram", "--histofall", "-h", "-H"] {
            let Some(rest) = word.strip_prefix(option) else {
                continue;
            };
            return match rest.strip_prefix('=').unwrap_or(rest) {
                "" => words.next()?.parse().ok(),
                number => number.parse().ok(),
            };
        }
    }
    None
}

/// Kernel and architecture.
fn machine(sysinfo: &BTreeMap<String, serde_json::Value>) -> String {
    let of = |key: &str| sysinfo.get(key).and_then(|value| value.as_str());
    let parts = ["sysname", "release", "version", "machine"];
    parts
        .into_iter()
        .filter_map(of)
        .collect::<Vec<_>>()
        .join(" ")
}

/// The text with the command line escaped, which the tool does not do.
fn escaped(text: &str) -> String {
    for key in ["\"cmdline:\": \"", "\"cmdline\": \""] {
        let Some(start) = text.find(key).map(|at| at + key.len()) else {
            continue;
        };
        let Some(next) = text[start..].find("\"rt_test_version").map(|at| start + at) else {
            continue;
        };
        let Some(end) = text[start..next].rfind('"').map(|at| start + at) else {
            continue;
        };
        let raw = &text[start..end];
        let plain = serde_json::from_str::<String>(&format!("\"{raw}\"")).is_ok();
        if plain {
            return text.to_owned();
        }
        let quoted = serde_json::Value::String(raw.to_owned()).to_string();
        return format!("{}{quoted}{}", &text[..start - 1], &text[end + 1..]);
    }
    text.to_owned()
}
