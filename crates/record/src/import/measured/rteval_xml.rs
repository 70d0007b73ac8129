//! `summary.xml` of rteval: the histograms of the cyclictest that it runs beside its loads, one for each core. It is read as a
//! stream; only the counts are held, and the longest text between two tags while that is passed over.
//!
//! Traps: the mean of one sample is written as 0. Where the longest latency was beyond the histogram, newer versions leave all
//! statistics out, older ones keep them without a word. The histogram of its `timerlat` module adds up the latencies of
//! interrupt, kernel thread and user thread, which is the distribution of nothing.

use model::InputError;
use quick_xml::XmlVersion;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesStart, Event};

use super::sense::Reader;
use super::tally::Tally;
use super::{Distribution, MOST_DISTRIBUTIONS, Measured, Options, Said, Source, excerpt};

pub(super) const READER: Reader = Reader::new(
    "rteval-xml",
    "summary.xml of rteval with its cyclictest module",
    |head| head.line(|line| line.starts_with("<rteval ") || line.starts_with("<rteval>")),
    read,
);

/// rteval counts whole microseconds.
const UNIT_NS: i64 = 1_000;
/// Maximum nesting of elements: rteval writes ten.
const DEEPEST: usize = 1_000;
/// Maximum bytes of a text that are kept: figures and names are shorter.
const LONGEST_TEXT: usize = 256;

fn read(source: &mut Source, _: Options) -> Result<Measured, InputError> {
    let mut xml = quick_xml::Reader::from_reader(source.reader());
    // One way to end an element is enough.
    xml.config_mut().expand_empty_elements = true;
    let mut summary = Summary::default();
    let mut buffer = Vec::new();
    let mut line = 1;
    loop {
        buffer.clear();
        let found = match xml.read_event_into(&mut buffer) {
            Ok(Event::Eof) => break,
            Ok(event) => {
                line += event.bytes().filter(|byte| *byte == b'\n').count();
                summary.take(&event)
            }
            Err(quick_xml::Error::Io(error)) => Err(super::super::source::cannot(&error)),
            Err(_) => Err(DAMAGED.to_owned()),
        };
        found.map_err(|what| InputError::new("", what, "").at(line))?;
    }
    if !summary.open.is_empty() || !summary.began {
        return Err(InputError::new("", DAMAGED, "").at(line));
    }
    summary.end()
}

const DAMAGED: &str = "the XML is cut short or damaged";

/// The elements that count.
const KNOWN: &str = "uname kernel arch timerlat cyclictest abort_report breaktrace core bucket samples minimum mean maximum";
const FIGURES: [&str; 4] = ["samples", "minimum", "mean", "maximum"];

/// The part read so far.
#[derive(Default)]
struct Summary {
    version: Option<String>,
    command: Option<String>,
    notes: Vec<String>,
    /// The distributions, and the run of each, from 1.
    cores: Vec<(usize, Distribution)>,
    /// The elements around this place, the outermost first; those that are not known have no name.
    open: Vec<&'static str>,
    /// Whether the outermost element has begun.
    began: bool,
    /// Kernel and architecture.
    machine: [Option<String>; 2],
    timerlat: bool,
    /// Runs of cyclictest.
    tests: usize,
    /// Whether this run was stopped early, and the latency at which, us, if known.
    aborted: Option<Option<u64>>,
    core: Option<Core>,
    /// The text since the last tag.
    text: String,
}

/// One `<core>`.
struct Core {
    cpu: u32,
    /// The number of elements around it.
    depth: usize,
    counts: Tally,
    /// Samples, minimum, mean and maximum, as they are written.
    figures: [Option<String>; 4],
}

impl Summary {
    /// Takes the next event of the document; the error is a clause on its fault.
    fn take(&mut self, event: &Event<'_>) -> Result<(), String> {
        match event {
            Event::Start(tag) => {
                if self.open.is_empty() && std::mem::replace(&mut self.began, true) {
                    return Err("a second document begins".to_owned());
                }
                if self.open.len() == DEEPEST {
                    return Err(format!("more than {DEEPEST} elements are nested"));
                }
                let name = tag.local_name();
                let known = KNOWN.split(' ').find(|known| *known == name.as_ref());
                self.begin(known.unwrap_or_default(), tag)?;
            }
            Event::End(_) => {
                let name = self.open.pop().ok_or(DAMAGED)?;
                let text = std::mem::take(&mut self.text);
                self.finish(name, text.trim())?;
            }
            Event::Text(text) if self.open.is_empty() && !text.trim().is_empty() => {
                return Err(DAMAGED.to_owned());
            }
            Event::Text(text) => self.keep(text),
            Event::CData(text) => self.keep(text),
            Event::GeneralRef(what) => match what.resolve_char_ref() {
                Ok(Some(character)) => self.keep(character.encode_utf8(&mut [0; 4])),
                Ok(None) => self.keep(resolve_predefined_entity(what).ok_or(DAMAGED)?),
                Err(_) => return Err(DAMAGED.to_owned()),
            },
            _ => {}
        }
        Ok(())
    }

    fn keep(&mut self, text: &str) {
        let room = LONGEST_TEXT.saturating_sub(self.text.len());
        self.text.extend(text.chars().take(room));
    }

    fn begin(&mut self, name: &'static str, tag: &BytesStart<'_>) -> Result<(), String> {
        let is_in = |name: &str| self.open.contains(&name);
        match name {
            _ if self.open.is_empty() => self.version = attribute(tag, "version")?,
            "timerlat" => self.timerlat = true,
            "cyclictest" => {
                self.tests += 1;
                self.command = attribute(tag, "command_line")?.or(self.command.take());
            }
            "abort_report" if is_in("cyclictest") => self.aborted = Some(None),
            "breaktrace" if self.aborted == Some(None) => {
                let latency = attribute(tag, "measured_latency")?;
                self.aborted = Some(latency.and_then(|us| us.parse().ok()));
            }
            "core" if is_in("cyclictest") && self.core.is_none() => {
                if self.cores.len() == MOST_DISTRIBUTIONS {
                    return Err("there are more than 65,536 cores".to_owned());
                }
                let cpu = attribute(tag, "id")?.and_then(|id| id.parse().ok());
                self.core = Some(Core {
                    cpu: cpu.ok_or("a core has no number")?,
                    depth: self.open.len(),
                    counts: Tally::default(),
                    figures: [const { None }; 4],
                });
            }
            "bucket" => {
                if let Some(core) = &mut self.core {
                    let counted = core.bucket(tag);
                    counted.map_err(|what| format!("{}: {what}", place(self.tests, core.cpu)))?;
                }
            }
            _ => {}
        }
        self.text.clear();
        self.open.push(name);
        Ok(())
    }

    /// The first of each figure counts.
    fn finish(&mut self, name: &str, text: &str) -> Result<(), String> {
        let figure = FIGURES.iter().position(|figure| *figure == name);
        match (name, &mut self.core) {
            ("kernel" | "arch", _) if self.open.contains(&"uname") && !text.is_empty() => {
                self.machine[usize::from(name == "arch")].get_or_insert(text.to_owned());
            }
            ("abort_report", _) => {
                self.notes
                    .extend(self.aborted.take().map(|latency| match latency {
                        Some(us) => format!(
                            "cyclictest stopped at a latency of {us} us because of its threshold"
                        ),
                        None => "cyclictest stopped early".to_owned(),
                    }));
            }
            ("core", core)
                if core
                    .as_ref()
                    .is_some_and(|core| core.depth == self.open.len()) =>
            {
                if let Some(core) = core.take() {
                    let place = place(self.tests, core.cpu);
                    let d = core.distribution(&place);
                    self.cores
                        .push((self.tests, d.map_err(|what| format!("{place}: {what}"))?));
                }
            }
            (_, Some(core)) if !text.is_empty() => {
                if let Some(at) = figure {
                    core.figures[at].get_or_insert(text.to_owned());
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Called at the end of the document.
    fn end(self) -> Result<Measured, InputError> {
        if self.cores.is_empty() {
            return Err(nothing(self.tests > 0, self.timerlat));
        }
        let mut measured = Measured::by("rteval");
        for (test, mut d) in self.cores {
            if self.tests > 1 && test == 1 {
                d.name = format!("test 1, {}", d.name);
            }
            measured.distributions.push(d);
        }
        let machine: Vec<String> = self.machine.into_iter().flatten().collect();
        measured.machine = (!machine.is_empty()).then(|| format!("Linux {}", machine.join(" ")));
        measured.version = self.version.map(|version| excerpt(&version).into_owned());
        measured.command = self.command;
        measured.notes = self.notes;
        measured
            .notes
            .push("the tool truncated values to whole microseconds".to_owned());
        Ok(measured)
    }
}

/// The name of a core in the run of this number; the first run may be the only one and has no number.
fn place(test: usize, cpu: u32) -> String {
    match test {
        1 => format!("cpu {cpu}"),
        _ => format!("test {test}, cpu {cpu}"),
    }
}

/// Why a document without cores of cyclictest has nothing that can be drawn.
fn nothing(tested: bool, timerlat: bool) -> InputError {
    if tested {
        return InputError::new(
            "",
            "rteval wrote no statistics: the longest latency was beyond its histogram",
            "raise `buckets` of [cyclictest] in rteval.conf",
        );
    }
    if timerlat {
        return InputError::new(
            "",
            "rteval adds up the latencies of interrupt, kernel thread and user thread of its timerlat, so none of them can be told",
            "use `rtla timerlat hist`, which keeps them apart",
        );
    }
    let what = "it is a summary of rteval without a latency test";
    InputError::new("", what, "run rteval with its cyclictest module")
}

fn attribute(tag: &BytesStart<'_>, name: &str) -> Result<Option<String>, String> {
    let damaged = || DAMAGED.to_owned();
    let found = tag.try_get_attribute(name).map_err(|_| damaged())?;
    found
        .map(|found| found.normalized_value(XmlVersion::Implicit1_0))
        .transpose()
        .map(|value| value.map(std::borrow::Cow::into_owned))
        .map_err(|_| damaged())
}

impl Core {
    fn bucket(&mut self, tag: &BytesStart<'_>) -> Result<(), String> {
        let number = |key: &str| {
            let text = attribute(tag, key)?.unwrap_or_default();
            text.parse::<u64>()
                .map_err(|_| format!("a bucket has no {key}"))
        };
        let index = i64::try_from(number("index")?).map_err(|_| "a bucket is beyond all time")?;
        self.counts.add_times(index, number("value")?);
        Ok(())
    }

    fn distribution(self, place: &str) -> Result<Distribution, String> {
        let mut d = Distribution::new(place, "wake-up latency", UNIT_NS);
        d.cpu = Some(self.cpu);
        let [samples, minimum, mean, maximum] = self.figures;
        let figure = |name: &str, text: Option<String>| match text.as_deref() {
            None | Some("") => Ok(None),
            Some(text) => match text.parse::<f64>() {
                Ok(us) if us.is_finite() && us >= 0.0 => Ok(Some(us * UNIT_NS as f64)),
                _ => Err(format!("its {name} is not a time")),
            },
        };
        let whole = |ns: Option<f64>| ns.map(|ns| ns.round() as i64);
        let samples = samples.filter(|text| !text.is_empty());
        let samples = samples.map(|text| text.parse::<u64>()).transpose();
        let samples = samples.map_err(|_| "its number of samples is not a number".to_owned())?;
        d.said = Said {
            min_ns: whole(figure("minimum", minimum)?),
            mean_ns: figure("mean", mean)?.filter(|_| samples.is_some_and(|samples| samples > 1)),
            max_ns: whole(figure("maximum", maximum)?),
            cycles: samples,
        };
        self.counts.fill_scaled(&mut d)?;
        Ok(d)
    }
}
