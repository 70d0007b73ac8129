//! jitterdebugger's samples.raw as 64-bit machines write it: packed records of 28 bytes, little-endian, of thread
//! (u32), seconds (u64), nanoseconds (u64) and value (u64).

use std::collections::BTreeMap;
use std::io::Read;

use model::InputError;

use super::super::source::cannot;
use super::sense::{Head, Reader};
use super::tally::Tally;
use super::{Distribution, Measured, Options, Source, Unit, scaled};

pub(super) const READER: Reader = Reader::new(
    "jitterdebugger-raw",
    "samples.raw of jitterdebugger",
    looks_like,
    read,
)
.without_unit();

const RECORD: usize = 28;
/// Maximum plausible number of threads.
const THREADS: u32 = 65_536;

struct Record {
    thread: u32,
    seconds: u64,
    value: u64,
}

fn record(bytes: &[u8]) -> Option<Record> {
    let long = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    let thread = u32::from_le_bytes(bytes.get(..4)?.try_into().ok()?);
    let (seconds, nanoseconds, value) = (long(4)?, long(12)?, long(20)?);
    (thread < THREADS && nanoseconds < 1_000_000_000 && seconds < 1 << 40).then_some(Record {
        thread,
        seconds,
        value,
    })
}

/// Whether a binary file begins with such a record.
fn looks_like(head: &Head) -> bool {
    head.binary() && record(head.bytes).is_some_and(|first| first.seconds > 0)
}

fn read(source: &mut Source, options: Options) -> Result<Measured, InputError> {
    let mut measured = Measured::by("jitterdebugger");
    let unit_ns = options.unit.unwrap_or(Unit::Us).ns();
    if options.unit.is_none() {
        measured.notes.push(
            "the file gives no unit; microseconds are assumed, as without -N (--unit)".to_owned(),
        );
    }
    let mut threads: BTreeMap<u32, Tally> = BTreeMap::new();
    for whole in 0_usize.. {
        let mut bytes = Vec::with_capacity(RECORD);
        let got = source.reader().take(RECORD as u64).read_to_end(&mut bytes);
        match got.map_err(|error| InputError::new("", cannot(&error), ""))? {
            0 => break,
            RECORD => {}
            rest => {
                let what = format!("cut short: record {} has {rest} of 28 bytes", whole + 1);
                let first = whole * RECORD;
                let fix = format!("keep the {whole} records before it: head -c {first}");
                return Err(InputError::new("", what, fix));
            }
        }
        let bad = |what: String| {
            let what = format!("record {}: {what}", whole + 1);
            let fix = "32-bit and big-endian machines write other records";
            InputError::new("", what, fix)
        };
        let record =
            record(&bytes).ok_or_else(|| bad("its thread or its time is impossible".to_owned()))?;
        let value = i64::try_from(record.value)
            .map_err(|_| bad(format!("the value is {}", record.value)))?;
        let value_ns = scaled(value, unit_ns).map_err(bad)?;
        threads.entry(record.thread).or_default().add(value_ns);
    }
    for (thread, values) in threads {
        let mut d = Distribution::new(format!("thread {thread}"), "wake-up latency", unit_ns);
        values.fill(&mut d);
        measured.distributions.push(d);
    }
    Ok(measured)
}
