//! JSON of rt-tests and of jitterdebugger, which share a frame: figures of each thread, from some tools with a histogram.
//!
//! Traps of cyclictest: a command line that is not escaped, `min` that starts at 1,000,000, no unit (us, or ns with -N, which `resolution_in_ns`
//! tells), and no count of overflows (they are `cycles` less the histogram). jitterdebugger's keys are numbers of threads, not of cpus, and
//! it drops values beyond its histogram of 1 ms: only `max`, and `count` where it counts them, betray it. The tools that work in pairs report
//! at the thread that receives.

use model::InputError;
use serde::Deserialize;

use super::json::{Buckets, Frame};
use super::sense::{Head, Reader};
use super::{Distribution, Measured, Said, Source};

/// A tool, its quantity, and its name of a thread.
struct Tool {
    name: &'static str,
    quantity: &'static str,
    place: &'static str,
}

const fn tool(name: &'static str, quantity: &'static str, place: &'static str) -> Tool {
    Tool {
        name,
        quantity,
        place,
    }
}

const CYCLIC: Tool = tool("cyclictest", "wake-up latency", "thread");
const INTERRUPTIONS: Tool = tool("oslat", "interruption", "thread");
const JITTER: Tool = tool("jitterdebugger", "wake-up latency", "thread");
/// Tools without a histogram.
const OTHERS: [Tool; 6] = [
    tool("ptsematest", "hand-over of a mutex", PAIR),
    tool("svsematest", "hand-over of a System V semaphore", PAIR),
    tool("pmqtest", "delivery of a POSIX message", PAIR),
    tool("sigwaittest", "delivery of a signal to sigwait", PAIR),
    tool(
        "signaltest",
        "round of a signal through all threads",
        "thread",
    ),
    tool("rt-migrate-test", "wait until a woken task runs", "task"),
];
const PAIR: &str = "pair";

pub(super) const PAIRS: Reader = Reader::new(
    "rt-tests-json",
    "What ptsematest, svsematest, pmqtest, sigwaittest, signaltest and rt-migrate-test write by --json",
    |head| head.is_json() && other(head.program()).is_some(),
    |source, _| read(source, None),
);
pub(super) const OSLAT: Reader = Reader::new(
    "oslat-json",
    "What `oslat --json` writes",
    is_oslat,
    |source, _| read(source, Some(&INTERRUPTIONS)),
);
pub(super) const CYCLICTEST: Reader = Reader::new(
    "cyclictest-json",
    "What `cyclictest --json` writes",
    is_cyclictest,
    |source, _| read(source, Some(&CYCLIC)),
);
pub(super) const JITTERDEBUGGER: Reader = Reader::new(
    "jitterdebugger-json",
    "results.json of jitterdebugger",
    |head| head.has("cpu") && head.has("sysinfo") && head.program().is_none(),
    |source, _| read(source, Some(&JITTER)),
);

fn other(program: Option<&str>) -> Option<&'static Tool> {
    OTHERS.iter().find(|tool| Some(tool.name) == program)
}

/// Its own, our export in its form, or one that does not say.
fn is_cyclictest(head: &Head) -> bool {
    match head.program() {
        Some(program) => head.is_json() && (program.starts_with("cyclic") || program == "timecell"),
        None => head.has("resolution_in_ns") && head.has("thread"),
    }
}

fn is_oslat(head: &Head) -> bool {
    let text = String::from_utf8_lossy(head.bytes);
    head.has("thread") && text.contains("\"freq\"") && text.contains("\"duration\"")
}

#[derive(Deserialize)]
struct Thread {
    sender: Option<Box<Thread>>,
    receiver: Option<Box<Thread>>,
    histogram: Option<Buckets>,
    #[serde(alias = "count")]
    cycles: Option<u64>,
    samples: Option<u64>,
    min: Option<f64>,
    max: Option<f64>,
    avg: Option<f64>,
    cpu: Option<u32>,
    prio: Option<i64>,
    timeoutcount: Option<u64>,
}

/// The value of `min` before the first measurement.
const NO_MINIMUM: f64 = 1_000_000.0;

fn read(source: &mut Source, tool: Option<&'static Tool>) -> Result<Measured, InputError> {
    let mut frame = Frame::<Thread>::read(source)?;
    let Some(tool) = tool.or_else(|| other(frame.program())) else {
        return Err(InputError::new(
            "",
            "the command line in the file names no tool whose figures are known",
            "the tools are those of `rt-tests-json` in `timecell report --help`",
        ));
    };
    let is = |known: &Tool| known.name == tool.name;
    let mut measured = Measured::by(frame.program().unwrap_or(tool.name));
    let unit_ns = frame.unit_ns(is(&JITTER), &mut measured.notes);
    let unit_ns = unit_ns.map_err(|what| InputError::new("", what, ""))?;
    let command = frame.cmdline.as_deref().unwrap_or_default();
    let limit = histogram_limit(command.split_whitespace().skip(1)).filter(|_| is(&CYCLIC));
    for (number, thread) in frame.threads(tool.name, &mut measured.notes)? {
        let place = format!("{} {number}", tool.place);
        let d = thread.distribution(&place, tool, unit_ns, limit, &mut measured.notes);
        let d = d.map_err(|what| InputError::new("", format!("{place}: {what}"), ""))?;
        measured.distributions.push(d);
    }
    // One in which no value lies still says where all of them are.
    let bare = |d: &Distribution| d.counts.is_empty() && d.overflow.is_none();
    if measured.distributions.iter().all(bare) {
        let how = if is(&CYCLIC) {
            " (-h or -H makes one)"
        } else {
            ""
        };
        measured.notes.push(format!(
            "the file has no histogram, so there are no quantiles{how}"
        ));
    }
    if is(&JITTER) {
        measured.notes.push(
            "threads are numbered by the tool; the file does not say on which cpu each ran"
                .to_owned(),
        );
    } else if unit_ns == 1_000 && is(&CYCLIC) {
        measured
            .notes
            .push("the tool truncated values to whole microseconds".to_owned());
    }
    measured.machine = frame.machine();
    measured.incomplete = frame.incomplete;
    let version = frame
        .version
        .map(|version| format!("file version {version}"));
    measured.version = frame.rt_test_version.or(version);
    measured.command = frame.cmdline;
    Ok(measured)
}

impl Thread {
    fn distribution(
        mut self,
        place: &str,
        tool: &'static Tool,
        unit_ns: i64,
        limit: Option<i64>,
        notes: &mut Vec<String>,
    ) -> Result<Distribution, String> {
        let prio = self.prio.filter(|_| tool.place == "task");
        let name = prio.map_or_else(
            || place.to_owned(),
            |prio| format!("{place}, priority {prio}"),
        );
        let samples = self.sender.take().and_then(|sender| sender.samples);
        if let Some(receiver) = self.receiver.take().filter(|_| tool.place == PAIR) {
            self = *receiver;
        }
        if let Some(late) = self.timeoutcount.filter(|late| *late > 0) {
            notes.push(format!(
                "{place}: {late} messages came too late to be counted"
            ));
        }
        let mut d = Distribution::new(name, tool.quantity, unit_ns);
        d.cpu = self.cpu;
        let cycles = self.cycles.or(samples);
        let ns = |value: Option<f64>| {
            let value = value.filter(|_| cycles != Some(0));
            value.map(|value| value * unit_ns as f64)
        };
        let min = self
            .min
            .filter(|min| *min != NO_MINIMUM || tool.name != CYCLIC.name);
        d.said = Said {
            min_ns: ns(min).map(|ns| ns.round() as i64),
            mean_ns: ns(self.avg),
            max_ns: ns(self.max).map(|ns| ns.round() as i64),
            cycles,
        };
        self.histogram.unwrap_or_default().0.fill_scaled(&mut d)?;
        if tool.name == INTERRUPTIONS.name {
            last_bucket_overflows(&mut d);
        } else if !d.counts.is_empty() || limit.is_some() {
            d.overflow_of_cycles(
                limit
                    .and_then(|limit| limit.checked_mul(unit_ns))
                    .unwrap_or(0),
            );
        }
        Ok(d)
    }
}

/// oslat counts too long values in its last bucket; its maximum tells whether there were any.
pub(super) fn last_bucket_overflows(d: &mut Distribution) {
    let end = |highest: i64| highest.saturating_add(d.unit_ns);
    if let Some(&(highest, count)) = d.counts.last()
        && d.said.max_ns.is_some_and(|max| max >= end(highest))
    {
        d.counts.pop();
        d.overflow = Some(super::Overflow {
            count: Some(count),
            at_least_ns: highest,
        });
    }
}

/// The number given with `-h`, `-H`, `--histogram` or `--histofall`: values of that size or more overflow.
fn histogram_limit<'a>(mut words: impl Iterator<Item = &'a str>) -> Option<i64> {
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
