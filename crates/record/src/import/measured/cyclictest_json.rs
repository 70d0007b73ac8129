//! `cyclictest --json`, and the same JSON frame from other tools of rt-tests, such as oslat.
//!
//! Traps: keys with a colon inside, a command line that is not escaped, `min` that starts at 1,000,000, no unit (us, or
//! ns with -N, which `resolution_in_ns` tells), and no count of overflows (they are `cycles` less the histogram).

use model::InputError;
use serde::Deserialize;

use super::json::{Buckets, Frame};
use super::sense::{Head, Reader};
use super::{Distribution, Measured, Options, Overflow, Said, Source};

pub(super) const READER: Reader = Reader::new(
    "cyclictest-json",
    "What `cyclictest --json` writes",
    is_cyclictest,
    |source, _| read(source, false),
);
pub(super) const OSLAT: Reader = Reader::new(
    "oslat-json",
    "What `oslat --json` writes",
    is_oslat,
    |source, _: Options| read(source, true),
);

fn is_cyclictest(head: &Head) -> bool {
    let named = head
        .program()
        .is_some_and(|name| name.starts_with("cyclic"));
    head.is_json() && (named || head.has("\"resolution_in_ns\"") && head.has("\"rt_test_version"))
}

fn is_oslat(head: &Head) -> bool {
    head.is_json() && head.has("\"freq\"") && head.has("\"duration\"")
}

#[derive(Deserialize)]
struct Thread {
    histogram: Option<Buckets>,
    cycles: Option<u64>,
    min: Option<f64>,
    max: Option<f64>,
    avg: Option<f64>,
    cpu: Option<u32>,
}

/// The value of `min` before the first measurement.
const NO_MINIMUM: f64 = 1_000_000.0;

fn read(source: &mut Source, oslat: bool) -> Result<Measured, InputError> {
    let name = source.name().to_owned();
    let mut frame = Frame::<Thread>::read(source)?;
    let tool = if oslat { "oslat" } else { "cyclictest" };
    let tool = frame.program().unwrap_or(tool).to_owned();
    let unit_ns = if frame.resolution_in_ns == 0 {
        1_000
    } else {
        1
    };
    let mut notes = Vec::new();
    let mut distributions = Vec::new();
    let threads = frame.threads(&name, &tool, &mut notes)?;
    let command = frame.cmdline.as_deref().unwrap_or_default();
    let words = command.split_whitespace();
    let limit = if oslat { None } else { histogram_limit(words) };
    for (number, thread) in threads {
        let place = format!("thread {number}");
        let found = distribution(&place, thread, unit_ns, limit, oslat);
        distributions
            .push(found.map_err(|what| InputError::new(&name, format!("{place}: {what}"), ""))?);
    }
    // One in which no value lies still says where all of them are.
    let bare = |d: &Distribution| d.counts.is_empty() && d.overflow.is_none();
    if distributions.iter().all(bare) {
        notes.push(
            "the file has no histogram, so there are no quantiles (-h or -H makes one)".to_owned(),
        );
    }
    if unit_ns == 1_000 && !oslat {
        notes.push("the tool truncated values to whole microseconds".to_owned());
    }
    let machine = frame.machine();
    Ok(Measured {
        version: frame.rt_test_version,
        command: frame.cmdline,
        machine,
        distributions,
        incomplete: frame.incomplete,
        notes,
        ..Measured::by(&tool)
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
    let measured = thread.cycles.is_none_or(|cycles| cycles > 0);
    let of = |value: Option<f64>| value.filter(|_| measured).map(|v| v * unit_ns as f64);
    let whole = |value: Option<f64>| of(value).map(|ns| ns.round() as i64);
    d.said = Said {
        min_ns: whole(thread.min.filter(|min| *min != NO_MINIMUM)),
        mean_ns: of(thread.avg),
        max_ns: whole(thread.max),
        cycles: thread.cycles,
    };
    thread.histogram.unwrap_or_default().0.fill_scaled(&mut d)?;
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

/// oslat counts too long values in its last bucket; its maximum tells whether there were any.
pub(super) fn last_bucket_overflows(d: &mut Distribution) {
    let end = |highest: i64| highest.saturating_add(d.unit_ns);
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
