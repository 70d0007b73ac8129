//! jitterdebugger's results.json. The keys of `cpu` are numbers of threads, not of cpus, and values beyond the
//! histogram of 1 ms are dropped by the tool: only `max`, and `count` where it counts them, betray it.

use std::collections::BTreeMap;

use model::InputError;
use serde::Deserialize;

use super::json::{Buckets, json_fault};
use super::sense::{Head, Reader};
use super::{Distribution, Measured, Options, Overflow, Said, Source, excerpt};

pub(super) const READER: Reader = Reader::new(
    "jitterdebugger-json",
    "results.json of jitterdebugger",
    senses,
    read,
);

fn senses(head: &Head) -> bool {
    head.is_json() && head.has("\"cpu\"") && head.has("\"sysinfo\"") && head.program().is_none()
}

#[derive(Deserialize)]
struct File {
    version: Option<u64>,
    sysinfo: Option<Sysinfo>,
    cpu: BTreeMap<String, Thread>,
}

#[derive(Deserialize)]
struct Sysinfo {
    sysname: Option<String>,
    release: Option<String>,
    version: Option<String>,
    machine: Option<String>,
    resolution_in_ns: Option<i64>,
}

#[derive(Deserialize)]
struct Thread {
    histogram: Buckets,
    count: Option<u64>,
    min: Option<f64>,
    max: Option<f64>,
    avg: Option<f64>,
}

fn read(source: &mut Source, _: Options) -> Result<Measured, InputError> {
    let name = source.name().to_owned();
    let name = name.as_str();
    let file: File =
        serde_json::from_reader(source.reader()).map_err(|error| json_fault(name, &error))?;
    let mut notes = Vec::new();
    let known = file
        .sysinfo
        .as_ref()
        .and_then(|sysinfo| sysinfo.resolution_in_ns);
    let unit_ns = match known {
        Some(1) => 1,
        Some(1_000) => 1_000,
        Some(other) => {
            let what = format!("`resolution_in_ns` is {other}");
            return Err(InputError::new(
                name,
                what,
                "jitterdebugger writes 1 or 1000",
            ));
        }
        None => {
            notes.push("the file gives no resolution; microseconds are assumed".to_owned());
            1_000
        }
    };
    let mut threads = Vec::new();
    for (key, thread) in file.cpu {
        let number: u64 = key.parse().map_err(|_| {
            InputError::new(
                name,
                format!("`cpu` has a key `{}`, which is not a number", excerpt(&key)),
                "",
            )
        })?;
        threads.push((number, thread));
    }
    threads.sort_by_key(|thread| thread.0);
    if threads.is_empty() {
        return Err(InputError::new(
            name,
            "`cpu` is empty",
            "the tool measured nothing",
        ));
    }
    let mut distributions = Vec::new();
    for (number, thread) in threads {
        let place = format!("thread {number}");
        let found = distribution(&place, thread, unit_ns);
        distributions
            .push(found.map_err(|what| InputError::new(name, format!("{place}: {what}"), ""))?);
    }
    notes.push(
        "threads are numbered by the tool; the file does not say on which cpu each ran".to_owned(),
    );
    Ok(Measured {
        version: file
            .version
            .map(|version| format!("file version {version}")),
        machine: file.sysinfo.map(|s| {
            let parts = [s.sysname, s.release, s.version, s.machine];
            parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
        }),
        distributions,
        notes,
        ..Measured::by("jitterdebugger")
    })
}

fn distribution(place: &str, thread: Thread, unit_ns: i64) -> Result<Distribution, String> {
    let mut d = Distribution::new(place, "wake-up latency", unit_ns);
    thread.histogram.0.fill_scaled(&mut d)?;
    let measured = thread.count.is_none_or(|count| count > 0);
    let of = |value: Option<f64>| value.filter(|_| measured).map(|v| v * unit_ns as f64);
    d.said = Said {
        min_ns: of(thread.min).map(|ns| ns.round() as i64),
        mean_ns: of(thread.avg),
        max_ns: of(thread.max).map(|ns| ns.round() as i64),
        cycles: thread.count,
    };
    let over = thread
        .count
        .map_or(0, |count| count.saturating_sub(d.counted()));
    if over > 0 {
        let end = d
            .counts
            .last()
            .map_or(0, |&(highest, _)| highest.saturating_add(unit_ns));
        d.overflow = Some(Overflow {
            count: Some(over),
            at_least_ns: end,
        });
    }
    Ok(d)
}
