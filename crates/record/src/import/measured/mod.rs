//! Other tools' results: histograms and single values, read into one type, [`Measured`].
//!
//! A format is a file here and a line in `FORMATS`. Files are read as a stream. Nothing is dropped in silence: values
//! beyond a tool's histogram are an [`Overflow`], and a quantile that reaches into them is "above" or unknown, never the
//! last bucket. Points left open by a file are notes; contradictions are refused.

mod columns;
mod cyclictest;
mod distribution;
mod grammar;
mod hdr_log;
mod json;
mod lines;
mod osadl;
mod oslat_text;
mod raw;
mod rt_tests_json;
mod rteval_xml;
mod rtla;
mod sense;
mod small;
mod tables;
mod tally;

use std::io::Read;

pub use distribution::{Distribution, Overflow, Reach, Said};
pub use sense::Format;
use sense::Reader;

use model::InputError;

pub use super::source::MOST_BYTES;
use super::source::Source;
pub use super::taskset::Unit;
use super::words::{bounded, excerpt, fault, shortened};

/// Every format. The first that recognises a file's opening reads it, so narrower formats come first.
const FORMATS: &[Reader] = &[
    rt_tests_json::PAIRS,
    rt_tests_json::OSLAT,
    rt_tests_json::CYCLICTEST,
    rt_tests_json::JITTERDEBUGGER,
    osadl::READER,
    rtla::READER,
    Reader::table(&tables::TOP),
    Reader::table(&tables::TRACE),
    rteval_xml::READER,
    hdr_log::READER,
    columns::RT_APP,
    columns::PERFORMANCE_TEST,
    oslat_text::READER,
    Reader::table(&tables::HWLATDETECT).maybe_empty(),
    Reader::table(&tables::STRESS_NG),
    Reader::table(&tables::RTEVAL),
    Reader::table(&tables::SCHBENCH),
    Reader::table(&tables::XENOMAI),
    Reader::table(&tables::LATMUS),
    Reader::table(&tables::JITTERDEBUGGER),
    Reader::table(&tables::SIGNALTEST),
    Reader::table(&tables::CYCLICDEADLINE),
    Reader::table(&tables::PAIRS),
    cyclictest::VERBOSE,
    cyclictest::HISTOGRAM,
    small::ITERATIONS,
    small::HACKBENCH,
    raw::READER,
];

/// A file of another tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// Its name in messages, usually its path.
    pub file: String,
    /// The format that it was read as; `None` for a run of our own.
    pub format: Option<Format>,
    /// The tool, such as `cyclictest`.
    pub tool: String,
    /// Its version, if the file has it.
    pub version: Option<String>,
    /// Its command line, if the file has it.
    pub command: Option<String>,
    /// The machine, if the file has it: kernel release, version and architecture.
    pub machine: Option<String>,
    /// One entry per thread, cpu or task; at least one.
    pub distributions: Vec<Distribution>,
    /// Content that the file claims but lacks, as a clause; the rest then cannot show that a limit is kept.
    pub incomplete: Option<String>,
    /// Assumptions, roundings and omissions of the tool or the import, one sentence each without a full stop.
    pub notes: Vec<String>,
}

/// Facts that a file leaves open.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Unit of the values, for formats that do not state it; `None`: the tool's default, with a note.
    pub unit: Option<Unit>,
}

/// Maximum number of distributions in one file.
const MOST_DISTRIBUTIONS: usize = 65_536;

impl Measured {
    /// Empty, for this tool; [`import`] adds file and format.
    fn by(tool: &str) -> Measured {
        Measured {
            file: String::new(),
            format: None,
            tool: tool.to_owned(),
            version: None,
            command: None,
            machine: None,
            distributions: Vec::new(),
            incomplete: None,
            notes: Vec::new(),
        }
    }
}

/// Reads a file from its bytes; as [`import_from`].
///
/// # Errors
/// As [`import_from`].
pub fn import(
    format: Option<Format>,
    name: &str,
    bytes: &[u8],
    options: Options,
) -> Result<Measured, InputError> {
    import_from(format, name, bytes, options)
}

/// Reads from `reader`, decompressed if it is gzip; `name` names it in messages. Without a `format`, the content decides.
///
/// # Errors
/// One sentence with the line, where there is one, that quotes no more than a few words of the file: the file is empty,
/// cut short, of no known format, impossible in its figures, or larger than [`MOST_BYTES`].
pub fn import_from(
    format: Option<Format>,
    name: &str,
    reader: impl Read,
    options: Options,
) -> Result<Measured, InputError> {
    read(format, Source::new(name, reader), options).map_err(|fault| bounded(name, fault))
}

fn read(
    format: Option<Format>,
    source: Result<Source, InputError>,
    options: Options,
) -> Result<Measured, InputError> {
    let mut source = source?;
    let bad = |what: &str, fix: &str| Err(InputError::new("", what, fix));
    let stopped = "the tool that wrote it may have been stopped early";
    if source.head().iter().all(u8::is_ascii_whitespace) {
        return bad("the file is empty", stopped);
    }
    let format = match format {
        Some(format) => format,
        None => sense::sense(&source)?,
    };
    let reader = format.entry();
    if options.unit.is_some() && !reader.unit_is_open {
        let open = Format::all().filter(|format| format.entry().unit_is_open);
        let open: Vec<&str> = open.map(Format::name).collect();
        let what = format!("a {} file states its unit itself", format.name());
        return bad(
            &what,
            &format!("remove --unit; it is for {}", open.join(", ")),
        );
    }
    let mut measured = reader.read(&mut source, options)?;
    source.name().clone_into(&mut measured.file);
    measured.format = Some(format);
    measured.notes.splice(0..0, source.take_notes());
    for d in &mut measured.distributions {
        d.notice_hidden_overflow();
        d.consistent().map_err(|what| {
            let what = format!("its figures contradict each other: {}: {what}", d.name);
            InputError::new("", what, "the file may be cut short, edited or damaged")
        })?;
    }
    measured.notes.extend(bins(&measured.distributions));
    let empty = measured.distributions.iter().all(Distribution::is_empty);
    if empty && !reader.may_be_empty {
        return bad("the file contains no measured value", stopped);
    }
    for text in [
        &mut measured.version,
        &mut measured.command,
        &mut measured.machine,
    ] {
        *text = text.take().map(|text| shortened(&text, 400).into_owned());
    }
    Ok(measured)
}

/// The note on values that are kept in bins.
fn bins(distributions: &[Distribution]) -> Option<String> {
    let bits = distributions.iter().filter_map(|d| d.bits).min()?;
    Some(format!(
        "there are too many different values to keep each: some series are rounded up to bins \
         that are up to {:.1} % of a value wide, except for the smallest and the largest value",
        100.0 / f64::from(1 << bits)
    ))
}

/// `value` in units of `unit_ns` as ns, or a clause that says why not.
fn scaled(value: i64, unit_ns: i64) -> Result<i64, String> {
    value
        .checked_mul(unit_ns)
        .ok_or_else(|| format!("the value {value} is too large for a time"))
}

/// A decimal number in units of `unit_ns`, as ns, exact to the nanosecond and rounded beyond; or a clause that says why
/// not.
fn decimal(text: &str, unit_ns: i64) -> Result<i64, String> {
    let plain = |c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | 'e' | 'E');
    let value: f64 = text
        .parse()
        .ok()
        .filter(|_| text.chars().all(plain))
        .ok_or_else(|| format!("`{}` is not a number", excerpt(text)))?;
    let ns = value * unit_ns as f64;
    // Beyond 2^53 a double no longer holds every nanosecond: 104 days.
    if ns.abs() < 9.007e15 {
        Ok(ns.round() as i64)
    } else {
        Err(format!(
            "the value {} is too large for a time",
            excerpt(text)
        ))
    }
}

/// As [`decimal`], with a unit after the number if there is one.
fn time(text: &str, unit_ns: i64) -> Result<i64, String> {
    let named = Unit::NAMES.into_iter().find_map(|(symbol, unit)| {
        let number = text.strip_suffix(symbol)?;
        number
            .ends_with(|c: char| c.is_ascii_digit())
            .then_some((number, unit.ns()))
    });
    let (number, unit_ns) = named.unwrap_or((text, unit_ns));
    decimal(number, unit_ns)
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_of_contradictions;
#[cfg(test)]
mod tests_of_field;
#[cfg(test)]
mod tests_of_rteval;
#[cfg(test)]
mod tests_of_truth;
