//! `summary.xml` of rteval: the histograms of the cyclictest that it runs beside its loads, one for each core.
//!
//! Traps: the mean of one sample is written as 0. Where the longest latency was beyond the histogram, newer versions leave all
//! statistics out, older ones keep them without a word. The histogram of its `timerlat` module adds up the latencies of
//! interrupt, kernel thread and user thread, which is the distribution of nothing.

use std::io::Read as _;

use model::InputError;
use roxmltree::{Document, Node};

use super::sense::{Head, Reader};
use super::{Distribution, Measured, Options, Said, Source, excerpt, scaled};

pub(super) const READER: Reader = Reader::new("rteval-xml", senses, read);

/// rteval counts whole microseconds.
const UNIT_NS: i64 = 1_000;
/// Largest document, bytes: it is read whole, and those of machines with hundreds of cores have a few million.
const MOST_BYTES: u64 = 32 << 20;

fn senses(head: &Head) -> bool {
    head.line(|line| line.starts_with("<rteval ") || line.starts_with("<rteval>"))
}

fn read(source: &mut Source, _: Options) -> Result<Measured, InputError> {
    let name = source.name().to_owned();
    let refuse = |what: String, help: &str| InputError::new(&name, what, help);
    let mut text = String::new();
    let bounded = source.reader().take(MOST_BYTES + 1);
    std::io::BufReader::new(bounded)
        .read_to_string(&mut text)
        .map_err(|error| refuse(super::super::source::cannot(&error), ""))?;
    if text.len() as u64 > MOST_BYTES {
        return Err(refuse("the document is larger than 32 MiB".to_owned(), ""));
    }
    let document = Document::parse(&text).map_err(|error| {
        let at = error.pos();
        let what = format!(
            "line {}, column {}: the XML is cut short or damaged",
            at.row, at.col
        );
        refuse(what, "")
    })?;
    let root = document.root_element();
    let mut measured = Measured::by("rteval");
    measured.version = root.attribute("version").map(|v| excerpt(v).into_owned());
    measured.machine = machine(root);
    let tests: Vec<Node> = elements(root, "cyclictest").collect();
    for (number, test) in tests.iter().enumerate() {
        if let Some(command) = test.attribute("command_line") {
            measured.command = Some(command.to_owned());
        }
        measured
            .notes
            .extend(elements(*test, "abort_report").map(aborted));
        for core in elements(*test, "core") {
            let id = core.attribute("id").unwrap_or_default();
            let cpu: u32 = id
                .parse()
                .map_err(|_| refuse("a core has no number".to_owned(), ""))?;
            let place = match tests.len() {
                1 => format!("cpu {cpu}"),
                _ => format!("test {}, cpu {cpu}", number + 1),
            };
            let d = distribution(core, cpu, &place)
                .map_err(|what| refuse(format!("{place}: {what}"), ""))?;
            measured.distributions.push(d);
        }
    }
    if measured.distributions.is_empty() {
        return Err(nothing(&name, root, !tests.is_empty()));
    }
    measured
        .notes
        .push("values were cut to whole microseconds by the tool".to_owned());
    Ok(measured)
}

/// Why a document without cores of cyclictest holds nothing that can be drawn.
fn nothing(name: &str, root: Node, tested: bool) -> InputError {
    if tested {
        return InputError::new(
            name,
            "rteval wrote no statistics: the longest latency was beyond its histogram",
            "raise `buckets` of [cyclictest] in rteval.conf",
        );
    }
    if elements(root, "timerlat").next().is_some() {
        return InputError::new(
            name,
            "rteval adds up the latencies of interrupt, kernel thread and user thread of its timerlat, which tells none of them",
            "`rtla timerlat hist` itself keeps them apart",
        );
    }
    let what = "it is a summary of rteval without a latency test";
    InputError::new(name, what, "run rteval with its cyclictest module")
}

fn elements<'a>(node: Node<'a, 'a>, name: &'static str) -> impl Iterator<Item = Node<'a, 'a>> {
    node.descendants()
        .filter(move |inner| inner.has_tag_name(name))
}

fn text<'a>(node: Node<'a, 'a>, name: &'static str) -> Option<&'a str> {
    elements(node, name).next()?.text().map(str::trim)
}

/// Kernel and architecture.
fn machine(root: Node) -> Option<String> {
    let uname = elements(root, "uname").next()?;
    let parts: Vec<&str> = ["kernel", "arch"]
        .into_iter()
        .filter_map(|part| text(uname, part))
        .collect();
    (!parts.is_empty()).then(|| format!("Linux {}", parts.join(" ")))
}

fn aborted(report: Node) -> String {
    let measured = elements(report, "breaktrace")
        .next()
        .and_then(|node| node.attribute("measured_latency"))
        .and_then(|us| us.parse::<u64>().ok());
    match measured {
        Some(us) => format!("cyclictest stopped at a latency of {us} us, as its threshold said"),
        None => "cyclictest stopped before its time".to_owned(),
    }
}

/// One `<core>`.
fn distribution(core: Node, cpu: u32, place: &str) -> Result<Distribution, String> {
    let mut d = Distribution::new(place, "wake-up latency", UNIT_NS);
    d.cpu = Some(cpu);
    let mut pairs = Vec::new();
    for bucket in elements(core, "bucket") {
        let number = |key: &str| {
            let text = bucket.attribute(key).unwrap_or_default();
            text.parse::<u64>()
                .map_err(|_| format!("a bucket has no {key}"))
        };
        let index = i64::try_from(number("index")?).map_err(|_| "a bucket is beyond all time")?;
        pairs.push((scaled(index, UNIT_NS)?, number("value")?));
    }
    d.fill(pairs);
    let figure = |name: &'static str| match text(core, name) {
        None => Ok(None),
        Some(figure) => match figure.parse::<f64>() {
            Ok(us) if us.is_finite() && us >= 0.0 => Ok(Some(us * UNIT_NS as f64)),
            _ => Err(format!("its {name} is no time")),
        },
    };
    let whole = |ns: Option<f64>| ns.map(|ns| ns.round() as i64);
    let samples = text(core, "samples").map(str::parse::<u64>).transpose();
    let samples = samples.map_err(|_| "its number of samples is none".to_owned())?;
    d.said = Said {
        min_ns: whole(figure("minimum")?),
        mean_ns: figure("mean")?.filter(|_| samples.is_some_and(|samples| samples > 1)),
        max_ns: whole(figure("maximum")?),
        cycles: samples,
    };
    Ok(d)
}
