//! `summary.xml` of rteval: the histograms of the cyclictest that it runs beside its loads, one for each core. It is read as a
//! stream; what is held of it is the counts, and the longest text between two tags while that is passed over.
//!
//! Traps: the mean of one sample is written as 0. Where the longest latency was beyond the histogram, newer versions leave all
//! statistics out, older ones keep them without a word. The histogram of its `timerlat` module adds up the latencies of
//! interrupt, kernel thread and user thread, which is the distribution of nothing.

use std::io::{self, BufRead, Read};

use model::InputError;
use quick_xml::XmlVersion;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesStart, Event};

use super::sense::{Head, Reader};
use super::tally::Tally;
use super::{Distribution, Measured, Options, Said, Source, excerpt};

pub(super) const READER: Reader = Reader::new(
    "rteval-xml",
    "summary.xml of rteval with its cyclictest module",
    senses,
    read,
);

/// rteval counts whole microseconds.
const UNIT_NS: i64 = 1_000;
/// Maximum nesting of elements: rteval writes ten.
const DEEPEST: usize = 1_000;
/// Maximum bytes of a text that are kept: figures and names are shorter.
const LONGEST_TEXT: usize = 256;

fn senses(head: &Head) -> bool {
    head.line(|line| line.starts_with("<rteval ") || line.starts_with("<rteval>"))
}

fn read(source: &mut Source, _: Options) -> Result<Measured, InputError> {
    let name = source.name().to_owned();
    let mut xml = quick_xml::Reader::from_reader(Lines {
        inner: source.reader(),
        line: 1,
    });
    // One way to end an element is enough.
    xml.config_mut().expand_empty_elements = true;
    let mut summary = Summary::new();
    let mut buffer = Vec::new();
    loop {
        buffer.clear();
        let event = xml.read_event_into(&mut buffer);
        let found = match event {
            Ok(Event::Eof) => break,
            Ok(event) => summary.take(&event),
            Err(quick_xml::Error::Io(error)) => Err(super::super::source::cannot(&error)),
            Err(_) => Err(DAMAGED.to_owned()),
        };
        found.map_err(|what| InputError::new(&name, what, "").at(xml.get_ref().line))?;
    }
    if !summary.open.is_empty() || !summary.began {
        return Err(InputError::new(&name, DAMAGED, "").at(xml.get_ref().line));
    }
    summary.end(&name)
}

const DAMAGED: &str = "the XML is cut short or damaged";

/// Counts the lines that are read.
struct Lines<R> {
    inner: R,
    /// Line of the next byte, from 1.
    line: usize,
}

impl<R: BufRead> Read for Lines<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(into)?;
        self.consume(read);
        Ok(read)
    }
}

impl<R: BufRead> BufRead for Lines<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        // Consumed bytes are in the buffer, so nothing is read for this.
        if let Ok(read) = self.inner.fill_buf() {
            let ends = read.iter().take(amount).filter(|byte| **byte == b'\n');
            self.line += ends.count();
        }
        self.inner.consume(amount);
    }
}

/// An element that has begun and not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Element {
    Other,
    Uname,
    Test,
    Abort,
    Core,
    /// Its text is what counts.
    Text(Text),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Text {
    Kernel,
    Arch,
    Samples,
    Minimum,
    Mean,
    Maximum,
}

/// What was read so far.
struct Summary {
    measured: Measured,
    /// The elements around this place, the outermost first.
    open: Vec<Element>,
    /// Whether the outermost element has begun.
    began: bool,
    /// Whether the system was described.
    uname: bool,
    /// Kernel and architecture.
    machine: [Option<String>; 2],
    timerlat: bool,
    /// Runs of cyclictest.
    tests: usize,
    /// The run of each distribution, from 1.
    of: Vec<usize>,
    /// Whether this run was stopped early, and the latency at which, us, if known.
    aborted: Option<Option<u64>>,
    core: Option<Core>,
    /// The text of the innermost element, if it counts.
    text: String,
}

/// One `<core>`.
struct Core {
    cpu: u32,
    counts: Tally,
    /// Samples, minimum, mean and maximum, as they are written.
    figures: [Option<String>; 4],
}

impl Summary {
    fn new() -> Summary {
        Summary {
            measured: Measured::by("rteval"),
            open: Vec::new(),
            began: false,
            uname: false,
            machine: [None, None],
            timerlat: false,
            tests: 0,
            of: Vec::new(),
            aborted: None,
            core: None,
            text: String::new(),
        }
    }

    /// Takes the next event of the document; a clause says what is wrong with it.
    fn take(&mut self, event: &Event<'_>) -> Result<(), String> {
        match event {
            Event::Start(tag) => {
                if self.open.is_empty() && std::mem::replace(&mut self.began, true) {
                    return Err("a second document begins".to_owned());
                }
                if self.open.len() == DEEPEST {
                    return Err(format!("more than {DEEPEST} elements are nested"));
                }
                let element = self.begin(tag)?;
                if matches!(element, Element::Text(_)) {
                    self.text.clear();
                }
                self.open.push(element);
            }
            Event::End(_) => match self.open.pop() {
                Some(element) => self.finish(element)?,
                None => return Err(DAMAGED.to_owned()),
            },
            Event::Text(text) => {
                if self.open.is_empty() && !text.trim().is_empty() {
                    return Err(DAMAGED.to_owned());
                }
                self.keep(text);
            }
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

    /// Of the innermost element.
    fn keep(&mut self, text: &str) {
        if let Some(Element::Text(_)) = self.open.last()
            && self.text.len() < LONGEST_TEXT
        {
            self.text.extend(text.chars().take(LONGEST_TEXT));
        }
    }

    fn begin(&mut self, tag: &BytesStart<'_>) -> Result<Element, String> {
        if self.open.is_empty() {
            self.measured.version = attribute(tag, "version")?.map(|v| excerpt(&v).into_owned());
        }
        let is_in = |element| self.open.contains(&element);
        Ok(match tag.local_name().as_ref() {
            "uname" if !self.uname => {
                self.uname = true;
                Element::Uname
            }
            "kernel" if is_in(Element::Uname) => Element::Text(Text::Kernel),
            "arch" if is_in(Element::Uname) => Element::Text(Text::Arch),
            "timerlat" => {
                self.timerlat = true;
                Element::Other
            }
            "cyclictest" => {
                self.tests += 1;
                if let Some(command) = attribute(tag, "command_line")? {
                    self.measured.command = Some(command);
                }
                Element::Test
            }
            "abort_report" if is_in(Element::Test) => {
                self.aborted = Some(None);
                Element::Abort
            }
            "breaktrace" if is_in(Element::Abort) => {
                if let Some(None) = self.aborted {
                    let latency = attribute(tag, "measured_latency")?;
                    self.aborted = Some(latency.and_then(|us| us.parse().ok()));
                }
                Element::Other
            }
            "core" if is_in(Element::Test) && self.core.is_none() => {
                let cpu = attribute(tag, "id")?.and_then(|id| id.parse().ok());
                self.core = Some(Core {
                    cpu: cpu.ok_or("a core has no number")?,
                    counts: Tally::default(),
                    figures: [const { None }; 4],
                });
                Element::Core
            }
            name => self.within_a_core(name, tag)?,
        })
    }

    fn within_a_core(&mut self, name: &str, tag: &BytesStart<'_>) -> Result<Element, String> {
        let Some(core) = &mut self.core else {
            return Ok(Element::Other);
        };
        Ok(match name {
            "bucket" => {
                let counted = core.bucket(tag);
                counted.map_err(|what| format!("{}: {what}", place(self.tests, core.cpu)))?;
                Element::Other
            }
            "samples" => Element::Text(Text::Samples),
            "minimum" => Element::Text(Text::Minimum),
            "mean" => Element::Text(Text::Mean),
            "maximum" => Element::Text(Text::Maximum),
            _ => Element::Other,
        })
    }

    fn finish(&mut self, element: Element) -> Result<(), String> {
        match element {
            Element::Text(which) => {
                let text = self.text.trim().to_owned();
                let place = match which {
                    Text::Kernel => Some(&mut self.machine[0]),
                    Text::Arch => Some(&mut self.machine[1]),
                    Text::Samples => self.core.as_mut().map(|core| &mut core.figures[0]),
                    Text::Minimum => self.core.as_mut().map(|core| &mut core.figures[1]),
                    Text::Mean => self.core.as_mut().map(|core| &mut core.figures[2]),
                    Text::Maximum => self.core.as_mut().map(|core| &mut core.figures[3]),
                };
                // The first of each counts.
                if let Some(place) = place {
                    place.get_or_insert(text);
                }
            }
            Element::Abort => {
                if let Some(latency) = self.aborted.take() {
                    self.measured.notes.push(match latency {
                        Some(us) => format!(
                            "cyclictest stopped at a latency of {us} us because of its threshold"
                        ),
                        None => "cyclictest stopped early".to_owned(),
                    });
                }
            }
            Element::Core => {
                if let Some(core) = self.core.take() {
                    let place = place(self.tests, core.cpu);
                    let d = core.distribution(&place);
                    let d = d.map_err(|what| format!("{place}: {what}"))?;
                    self.measured.distributions.push(d);
                    self.of.push(self.tests);
                }
            }
            Element::Other | Element::Uname | Element::Test => {}
        }
        Ok(())
    }

    /// Called at the end of the document.
    fn end(self, name: &str) -> Result<Measured, InputError> {
        let mut measured = self.measured;
        if measured.distributions.is_empty() {
            return Err(nothing(name, self.tests > 0, self.timerlat));
        }
        if self.tests > 1 {
            for (d, test) in measured.distributions.iter_mut().zip(self.of) {
                if test == 1 {
                    d.name = format!("test 1, {}", d.name);
                }
            }
        }
        let parts: Vec<String> = self.machine.into_iter().flatten().collect();
        let parts: Vec<&str> = (parts.iter().map(String::as_str))
            .filter(|part| !part.is_empty())
            .collect();
        measured.machine = (!parts.is_empty()).then(|| format!("Linux {}", parts.join(" ")));
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
fn nothing(name: &str, tested: bool, timerlat: bool) -> InputError {
    if tested {
        return InputError::new(
            name,
            "rteval wrote no statistics: the longest latency was beyond its histogram",
            "raise `buckets` of [cyclictest] in rteval.conf",
        );
    }
    if timerlat {
        return InputError::new(
            name,
            "rteval adds up the latencies of interrupt, kernel thread and user thread of its timerlat, so none of them can be told",
            "use `rtla timerlat hist`, which keeps them apart",
        );
    }
    let what = "it is a summary of rteval without a latency test";
    InputError::new(name, what, "run rteval with its cyclictest module")
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
