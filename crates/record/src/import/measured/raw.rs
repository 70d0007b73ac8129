//! jitterdebugger's samples.raw as 64-bit machines write it: packed records of 28 bytes, little-endian, of thread
//! (u32), seconds (u64), nanoseconds (u64) and value (u64).

use std::collections::BTreeMap;

use model::InputError;

use super::{Distribution, Format, Measured, Options, Timed, Unit, scaled};

const RECORD: usize = 28;
/// Most threads that are believed.
const THREADS: u32 = 65_536;

struct Record {
    thread: u32,
    at_ns: i128,
    value: u64,
}

fn record(bytes: &[u8]) -> Option<Record> {
    let long = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    let thread = u32::from_le_bytes(bytes.get(..4)?.try_into().ok()?);
    let (seconds, nanoseconds, value) = (long(4)?, long(12)?, long(20)?);
    (thread < THREADS && nanoseconds < 1_000_000_000 && seconds < 1 << 40).then(|| Record {
        thread,
        at_ns: i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds),
        value,
    })
}

/// Whether a binary file begins with such a record.
pub(super) fn looks_like(bytes: &[u8]) -> bool {
    record(bytes).is_some_and(|first| first.at_ns > 0)
}

pub(super) fn read(name: &str, bytes: &[u8], options: Options) -> Result<Measured, InputError> {
    let (whole, rest) = (bytes.len() / RECORD, bytes.len() % RECORD);
    if rest > 0 {
        return Err(InputError::new(
            name,
            format!("cut short: record {} has {rest} of 28 bytes", whole + 1),
            format!(
                "the {whole} records before it are whole (head -c {})",
                whole * RECORD
            ),
        ));
    }
    let mut notes = Vec::new();
    let unit = options.unit.unwrap_or_else(|| {
        notes.push(
            "the file has no units; microseconds are assumed, as without -N (--unit)".to_owned(),
        );
        Unit::Us
    });
    let unit_ns = unit.ns();
    let mut threads: BTreeMap<u32, Vec<Timed>> = BTreeMap::new();
    let mut origin = None;
    for (number, bytes) in bytes.chunks_exact(RECORD).enumerate() {
        let bad = |what: String| {
            let what = format!("record {}: {what}", number + 1);
            InputError::new(
                name,
                what,
                "32-bit and big-endian machines write other records",
            )
        };
        let record =
            record(bytes).ok_or_else(|| bad("no thread and time that can be".to_owned()))?;
        let value = i64::try_from(record.value)
            .map_err(|_| bad(format!("the value is {}", record.value)))?;
        let origin = *origin.get_or_insert(record.at_ns);
        threads.entry(record.thread).or_default().push(Timed {
            at_ns: i64::try_from(record.at_ns - origin).unwrap_or(i64::MAX),
            value_ns: scaled(value, unit_ns).map_err(bad)?,
        });
    }
    let distributions = threads
        .into_iter()
        .map(|(thread, timed)| {
            let mut d = Distribution::new(format!("thread {thread}"), "wake-up latency", unit_ns);
            d.fill_timed(timed);
            d
        })
        .collect();
    Ok(Measured {
        file: name.to_owned(),
        format: Some(Format::JitterdebuggerRaw),
        tool: "jitterdebugger".to_owned(),
        version: None,
        command: None,
        machine: None,
        distributions,
        notes,
    })
}
